"""``Table``: the rows of a file as cells, with the names of its columns where it has some."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from .._core.files import unused_name
from .._core.messages import cut


class Table(NamedTuple):
    """What a file holds, before anybody says which columns are texts and labels.

    Attributes
    ----------
    names : list of str
        Names of the columns; none without a header.
    rows : list of list
        Cells: text in a delimited file, whatever JSON or parquet hold elsewhere.
    numbers : list of int
        Where each row begins: its line, or its record, from 1.
    unit : str
        What these numbers count: ``"line"`` or ``"record"``.
    header : int
        Line of the header, 0 if there is none.
    delimiter : str
        What stands between the cells of a delimited file; else empty.
    n_added : int
        How many of the last columns are not in the file: those of a path into its objects.
    text_columns, label_columns : sequence of int
        Where a tool of annotation writes texts and labels; empty if no tool wrote the file. Such a label may be a list.
    note : str
        What was read of a bot's files, whose labels count as they are written; else empty.
    is_cut : bool
        Whether a part of a bot's files was left out.
    """

    names: list[str]
    rows: list[list[Any]]
    numbers: list[int]
    unit: str
    header: int = 0
    delimiter: str = ""
    n_added: int = 0
    text_columns: Sequence[int] = ()
    label_columns: Sequence[int] = ()
    note: str = ""
    is_cut: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names) if self.names else len(self.rows[0]) if self.rows else 0

    def titled(self, column: int) -> str:
        """Name a column for a message."""
        return repr(cut(self.names[column])) if self.names and self.names[column] else f"number {column + 1}"

    def cells(self, column: int) -> list[str]:
        """Cells of a column as text."""
        return [cell_text(row[column]) for row in self.rows]

    def without(self, rows: Collection[int]) -> "Table":
        """Leave rows out, by their positions."""
        kept = [row for row in range(len(self.rows)) if row not in rows]
        return self._replace(rows=[self.rows[row] for row in kept], numbers=[self.numbers[row] for row in kept])

    def columns_beside(self, column: int, rows: Sequence[int]) -> dict[str, list[str]]:
        """Cells of all columns but one, in some of the rows, as text; each column gets a name of its own."""
        found: dict[str, list[str]] = {}
        for i in range(self.n_columns):
            if i != column:
                cells = self.cells(i)
                name = unused_name(self.names[i] if self.names and self.names[i] else f"column_{i + 1}", found)
                found[name] = [cells[row] for row in rows]
        return found

    def named_cells(self, name: str) -> list[str]:
        """Cells of the column of a name as text."""
        return self.cells(self.names.index(name))


def cell_text(value: Any) -> str:
    """Turn a cell into text without blanks around it; a missing value is empty, and 3.0 is ``"3"``.

    A list of one value, as tools of annotation write labels, is this value; an empty one is a missing value.
    """
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, str):
        return value.strip()
    if value is None or str(value) in {"nan", "inf", "-inf", "<NA>", "NaT"}:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def is_scalar(value: Any) -> bool:
    """Whether a cell can be a text or a label: no mapping or array, and no list of several values."""
    if isinstance(value, list | tuple) and len(value) < 2:
        return not value or (is_scalar(value[0]) and not isinstance(value[0], list | tuple))
    return isinstance(value, str) or not hasattr(value, "__len__")
