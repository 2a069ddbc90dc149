"""Cells of a workbook as text, with warnings about numbers, dates, errors and formulas."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..._core.messages import named, numbered
from ..._core.warn import LossWarning, warn
from ..text_table import Table
from .scan import ERROR, FORMULA

#: Smallest number of digits of which a spreadsheet has lost the last ones.
_MOST_DIGITS = 16
_SHOWN = 3
_WHOLE = re.compile(r"[-+]?\d+")
_UNSEEN = {ERROR, FORMULA}


class Cell(str):
    """A cell that is no text: a number, a date or a truth; or an error or a formula without a value, both empty."""

    __slots__ = ("kind",)

    kind: str

    def __new__(cls, text: str, kind: str) -> "Cell":
        """Give the cell that is read as a text."""
        cell = super().__new__(cls, text)
        cell.kind = kind
        return cell


def check_kinds(table: Table, path: Path, column: int, kept: Collection[str] = ()) -> None:
    """Say which cells of a column of texts or labels are no text in a workbook, and how they are read.

    ``kept`` are the classes of a model: a number that is one of them needs no word.

    Raises
    ------
    ValueError
        If a number is not what somebody wrote: it lost its last digits, or the zeros before it.

    Warns
    -----
    UserWarning
        If there are numbers, dates or truths, and cells that seem empty but are not.
    """
    cells = [(number, row[column]) for number, row in zip(table.numbers, table.rows, strict=True)]
    found = [(number, cell) for number, cell in cells if isinstance(cell, Cell)]
    if not found:
        return
    where = f"column {table.titled(column)} of {str(path)!r}"
    _check_numbers(found, {str(cell).strip() for _, cell in cells if not isinstance(cell, Cell)} | {*kept}, where)
    unseen = [number for number, cell in found if cell.kind in _UNSEEN]
    if unseen:
        warn(
            f"{numbered(len(unseen), 'cell')} of {where} {'holds' if len(unseen) == 1 else 'hold'} an error or a "
            f"formula without a stored value, and {'is' if len(unseen) == 1 else 'are'} read as empty "
            f"({named(table.unit, unseen)}); open the workbook in Excel and save it.",
            LossWarning,
        )
    read = [(number, cell) for number, cell in found if cell.kind not in _UNSEEN and str(cell) not in kept]
    if read:
        shown = ", ".join(f"{str(cell)!r} in {table.unit} {number}" for number, cell in read[:_SHOWN])
        kinds = " and ".join(sorted({f"a {cell.kind}" if len(read) == 1 else f"{cell.kind}s" for _, cell in read}))
        warn(
            f"{numbered(len(read), 'cell')} of {where} {'holds' if len(read) == 1 else 'hold'} {kinds}, read as "
            f"{shown}{' and so on' if len(read) > _SHOWN else ''}; where that is not what was written, format the "
            "column as text and write it again."
        )


def _check_numbers(found: list[tuple[Any, Cell]], texts: Collection[str], where: str) -> None:
    padded = {str(int(text)): text for text in texts if _WHOLE.fullmatch(text) and str(int(text)) != text}
    for number, cell in found:
        if cell.kind != "number":
            continue
        digits = len(str(int(abs(float(cell))))) if abs(float(cell)) < float("inf") else _MOST_DIGITS
        if digits >= _MOST_DIGITS:
            raise ValueError(
                f"Row {number} in {where} holds the number {cell}, of which a spreadsheet keeps 15 digits; format the "
                "column as text and write it again."
            )
        if cell in padded:
            raise ValueError(
                f"Row {number} in {where} holds the number {cell}, but {padded[cell]!r} is also written there as text; "
                "format the column as text and write both alike."
            )
