"""Writes tables to a workbook: every cell is text, and labels are chosen from a list."""

import importlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from skellipsoid_runtime._install import how_to_install

from ..._core.files import check_folder, replacing

#: UTF-16 units of a cell, rows and columns of a sheet.
_MOST_UNITS, _MOST_ROWS, _MOST_COLUMNS = 32_767, 1 << 20, 1 << 14
#: Halves of surrogate pairs, and what no XML holds.
_NO_CHARACTER = re.compile("[\ud800-\udfff\ufffe\uffff]")
#: Sheet of the labels, and what stands behind the open label there.
_LABELS, _NONE = "labels", ": none of these"
#: Widths of columns of texts and of others, in letters.
_WIDE, _NARROW = 60, 20
SUFFIX = ".xlsx"
#: Sheet of the members of groups, which the column of this name leads to.
MEMBERS_SHEET = "members"


class Sheet(NamedTuple):
    """A table as one sheet."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    #: Columns of whole messages.
    wide: Sequence[str] = ()


def check_workbook(path: Path) -> None:
    """Refuse a name that no workbook can be written to.

    Raises
    ------
    OSError
        If it is a folder, a device or a pipe, or in no folder.
    ImportError
        If XlsxWriter is not installed.
    """
    if importlib.util.find_spec("xlsxwriter") is None:
        raise ImportError(f"{str(path)!r} is written with XlsxWriter: {how_to_install('skellipsoid[excel]')}.")
    check_folder(path)


def write_workbook(path: Path, sheets: Sequence[Sheet], labels: Sequence[Any] = ()) -> None:
    """Write sheets; where there are ``labels``, the open one first, the columns ``label`` offer them.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If a sheet has more rows or columns than Excel has.
    """
    check_workbook(path)
    content = workbook_bytes(sheets, labels)
    with replacing(path) as partial:
        partial.write_bytes(content)


def workbook_bytes(sheets: Sequence[Sheet], labels: Sequence[Any] = ()) -> bytes:
    """Give a workbook as bytes, as above."""
    xlsxwriter: Any = importlib.import_module("xlsxwriter")  # it has no types
    file = BytesIO()
    # A workbook that fails writes nothing.
    workbook = xlsxwriter.Workbook(file, {"in_memory": True})
    forms = {
        "text": workbook.add_format({"num_format": "@", "text_wrap": True, "valign": "top"}),
        "header": workbook.add_format({"num_format": "@", "bold": True, "bottom": 1}),
    }
    choices = [f"{label}{_NONE}" if i == 0 else str(label) for i, label in enumerate(labels)]
    for sheet in sheets:
        _write_sheet(workbook.add_worksheet(sheet.name), sheet, forms, len(choices))
    if choices:
        hidden = workbook.add_worksheet(_LABELS)
        for row, choice in enumerate(choices):
            hidden.write_string(row, 0, as_cell(choice), forms["text"])
        hidden.hide()
    workbook.close()
    return file.getvalue()


def _write_sheet(worksheet: Any, sheet: Sheet, forms: dict[str, Any], n_choices: int) -> None:
    last = 0
    if len(sheet.columns) > _MOST_COLUMNS:
        raise ValueError(f"A sheet has {_MOST_COLUMNS} columns at most, not {len(sheet.columns)}; write a .csv.")
    for column, name in enumerate(sheet.columns):
        worksheet.set_column(column, column, _WIDE if name in sheet.wide else _NARROW, forms["text"])
    for last, row in enumerate([sheet.columns, *sheet.rows]):
        if last == _MOST_ROWS:
            raise ValueError(f"A sheet has {_MOST_ROWS} rows at most, which are fewer than these; write a .csv.")
        for column, value in enumerate(row):
            if cell := as_cell("" if value is None else value):
                worksheet.write_string(last, column, cell, forms["text" if last else "header"])
    worksheet.freeze_panes(1, 0)
    worksheet.ignore_errors({"number_stored_as_text": f"A1:XFD{_MOST_ROWS}"})
    if n_choices and "label" in sheet.columns and last:
        at = list(sheet.columns).index("label")
        chosen = {
            "validate": "list",
            "source": f"='{_LABELS}'!$A$1:$A${n_choices}",
            "error_type": "warning",
            "error_title": "A new name",
            "error_message": "No class has this name. Keep it if it is to become a class.",
        }
        worksheet.data_validation(1, at, last, at, chosen)


def as_cell(value: Any) -> str:
    """Give a text as a cell can hold it: cut, and without what no XML holds."""
    text = _NO_CHARACTER.sub("\ufffd", str(value))
    text = text.encode("utf-16-le")[: 2 * _MOST_UNITS].decode("utf-16-le", errors="ignore")
    # The library takes such a text for XML of its own.
    return f"{text[: _MOST_UNITS - 1]} " if text.startswith("<r>") and text.endswith("</r>") else text


def chosen_label(label: str, open_label: Any) -> str:
    """Give the open label for what the list offers for it."""
    return str(open_label) if label == f"{open_label}{_NONE}" else label
