"""Rows whose label the annotator has rejected, by what tools of annotation write beside it."""

from pathlib import Path
from typing import Any

from ..._core.messages import named, numbered
from ..._core.warn import LossWarning, warn
from .records import inside
from .text_table import Table, cell_text

#: What stands in a column of a tool, by its name: all that the tool writes there, and what rejects a label.
_PRODIGY = {"accept", "reject", "ignore"}, {"reject", "ignore"}
_ARGILLA = {"default", "edited", "validated", "pending", "draft", "submitted", "completed", "discarded"}, {"discarded"}
_LABEL_STUDIO = {"true", "false"}, {"true"}
_COLUMNS = {"answer": _PRODIGY, "status": _ARGILLA, "was_cancelled": _LABEL_STUDIO}


def rejected_rows(table: Table, path: Path, *read: int, effect: str = "they are left out") -> set[int]:
    """Find the rows whose label was rejected, skipped or cancelled, or is several, and say how many they are.

    Parameters
    ----------
    table : Table
    path : Path
        For the message.
    *read : int
        Columns that hold texts or labels: they say nothing else. The last one holds the labels.
    effect : str
        What becomes of the rows, for the message.

    Returns
    -------
    rows : set of int
        A column counts if it has the name that Prodigy, Argilla or Label Studio gives it, and no other value than
        theirs. Of several people all have rejected it.
    """
    found: dict[int, str] = {}
    for column, name in enumerate(table.names):
        written, rejects = _COLUMNS.get(name.rpartition(".")[2], (set(), set()))
        cells = [_marks(row[column]) for row in table.rows] if written and column not in read else []
        if {mark for marks in cells for mark in marks} <= written:
            found |= {row: f"{name} {marks[0]!r}" for row, marks in enumerate(cells) if marks and {*marks} <= rejects}
    if table.names and read:
        found |= dict.fromkeys(_cancelled(table, table.names[read[-1]]), "was_cancelled")
    if found:
        why = ", ".join(sorted(set(found.values())))
        numbers = named(table.unit, [table.numbers[row] for row in sorted(found)])
        warn(
            f"{numbered(len(found), 'row')} of {str(path)!r} {'was' if len(found) == 1 else 'were'} rejected by the "
            f"annotator ({why}): {effect} ({numbers}).",
            LossWarning,
        )
    several = [row for row in _several(table, read[-1]) if row not in found] if read else []
    if several:
        numbers = named(table.unit, [table.numbers[row] for row in several])
        warn(
            f"{numbered(len(several), 'row')} of {str(path)!r} {'has' if len(several) == 1 else 'have'} several "
            f"labels, of one annotator or of several who disagree: {effect} ({numbers}).",
            LossWarning,
        )
    return {*found, *several}


def _marks(value: Any) -> list[str]:
    """Give what one or more people wrote."""
    values = value if isinstance(value, list | tuple) else [value]
    return [mark for mark in (cell_text(each).lower() for each in values) if mark]


def _several(table: Table, column: int) -> list[int]:
    """Rows of a tool's export with several labels: a list, or an object of choices, also as text in CSV."""

    def is_several(cell: Any) -> bool:
        is_list = isinstance(cell, list | tuple) and len(cell) > 1
        return is_list or isinstance(cell, dict) or (isinstance(cell, str) and cell.startswith('{"choices"'))

    return [i for i, row in enumerate(table.rows) if is_several(row[column])] if column in table.label_columns else []


def _cancelled(table: Table, path: str) -> list[int]:
    """Rows whose label, at a path such as ``annotations.0.result``, is in an annotation of Label Studio's that ended.

    Label Studio keeps what somebody had chosen before skipping the task.
    """
    head, *parts = path.split(".")
    if not parts or head not in table.names:
        return []
    parents: list[tuple[Any, ...]] = [tuple(parts[:i]) for i in range(len(parts))]
    column = table.names.index(head)
    return [
        number
        for number, row in enumerate(table.rows)
        if any(inside(row[column], ".".join((*parent, "was_cancelled"))) is True for parent in parents)
    ]
