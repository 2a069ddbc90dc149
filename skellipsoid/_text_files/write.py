"""Writes the rows of a user's file with predictions in further columns, in the format of the file."""

import csv
import importlib
import json
from collections.abc import Iterable, Iterator
from io import BytesIO, StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from .decode import read_bytes
from .read import PARQUET
from .text_table import Table, cell_text, is_scalar
from .workbooks.package import is_workbook
from .workbooks.write_workbook import Sheet, workbook_bytes, write_workbook

#: Number of a row from 0, and its predictions by the names of their columns.
Predicted = Iterable[tuple[int, dict[str, Any]]]


def write_rows(
    path: Path, table: Table, example: dict[str, Any], predicted: Predicted
) -> Iterator[str] | Iterator[bytes]:
    """Give the lines of a file like that at ``path``, with further columns; of parquet all bytes at once.

    Rows without a prediction are left out. A workbook becomes one of these rows, all bytes at once. A delimited file
    keeps its delimiter, and has a header if it had one; JSON becomes one object on each line. Text is UTF-8, with a
    byte-order mark if ``path`` has one or is no UTF-8: Excel looks for it. ``example``, the predictions for any text,
    gives names and types of the columns where there is no row.

    Raises
    ------
    ValueError
        If the file has a column of a name that is added.
    ImportError
        If it is parquet, and pyarrow is not installed.
    """
    _check_names(path, table, example)
    if is_workbook(path):
        return iter([workbook_bytes([_sheet(table, example, predicted)])])
    if path.suffix.lower() in PARQUET:
        return _parquet(path, example, predicted)
    return _delimited(path, table, example, predicted) if table.delimiter else _json(table, predicted)


def save_rows(path: Path, source: Path, table: Table, example: dict[str, Any], predicted: Predicted) -> None:
    """Write the rows of a file, ``source``, with further columns to a workbook."""
    _check_names(source, table, example)
    write_workbook(path, [_sheet(table, example, predicted)])


def _check_names(path: Path, table: Table, example: dict[str, Any]) -> None:
    taken = [name for name in example if name in table.names]
    if taken:
        raise ValueError(
            f"{str(path)!r} has a column {taken[0]!r} already, which the predictions need; rename it in the file."
        )


def _sheet(table: Table, example: dict[str, Any], predicted: Predicted) -> Sheet:
    n_own = table.n_columns - table.n_added
    names = table.names[:n_own] if table.names else [f"column_{i + 1}" for i in range(n_own)]
    rows = ([*map(_shown, table.rows[row][:n_own]), *columns.values()] for row, columns in predicted)
    return Sheet("answers", [*names, *example], rows)


def _shown(value: Any) -> str:
    return cell_text(value) if is_scalar(value) else json.dumps(value, ensure_ascii=False, default=str)


def _json(table: Table, predicted: Predicted) -> Iterator[str]:
    for row, columns in predicted:
        own = table.rows[row][: len(table.rows[row]) - table.n_added]  # without those of a path into the objects
        yield json.dumps(dict(zip(table.names, own, strict=False)) | columns, ensure_ascii=False)


def _delimited(path: Path, table: Table, example: dict[str, Any], predicted: Predicted) -> Iterator[str]:
    header = [[*table.names, *example]] if table.names else []
    mark = _byte_order_mark(path)
    for cells in chain(header, ([*table.rows[row], *columns.values()] for row, columns in predicted)):
        yield mark + _line(cells, table.delimiter)
        mark = ""


def _line(cells: list[Any], delimiter: str) -> str:
    file = StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\r\n").writerow(cells)  # cells with either are quoted
    return file.getvalue().removesuffix("\r\n")


def _byte_order_mark(path: Path) -> str:
    try:
        return "\ufeff" if read_bytes(path).decode().startswith("\ufeff") else ""
    except UnicodeDecodeError:
        return "\ufeff"


def _parquet(path: Path, example: dict[str, Any], predicted: Predicted) -> Iterator[bytes]:
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f"{str(path)!r} is parquet, which is written with pyarrow; install it, or save the file as CSV."
        ) from error
    found = list(predicted)
    # pandas would make numbers with gaps floats.
    rows = arrow.array([row for row, _ in found], arrow.int64())
    table = parquet.read_table(arrow.BufferReader(read_bytes(path))).take(rows)
    for name, value in example.items():
        column = arrow.array([value, *(columns[name] for _, columns in found)])
        if column.type == arrow.null():  # nothing says of which type they would be
            column = column.cast(arrow.string())
        table = table.append_column(name, column[1:])
    file = BytesIO()
    parquet.write_table(table, file)
    yield file.getvalue()
