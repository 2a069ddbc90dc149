"""Decides whether quotes around cells are those of the file format, or part of the texts."""

import csv
import re
from typing import Any

#: How cells are quoted: a quote after a comma and a blank is one; MySQL writes a backslash before one in a cell.
QUOTED: dict[str, Any] = {"skipinitialspace": True, "strict": True}
ESCAPED = QUOTED | {"doublequote": False, "escapechar": "\\"}
PLAIN: dict[str, Any] = {"quoting": csv.QUOTE_NONE}


def are_needed(text: str, delimiter: str, way: dict[str, Any]) -> bool:
    """Whether cells have quotes because the way of writing needs them, or asks for them in whole rows or columns.

    No cell without quotes around it may hold one.
    """
    rows = _cells(text, delimiter, way)
    with_commas = [is_quoted for row in rows for cell, is_quoted in row if "," in cell]
    columns: dict[int, list[bool]] = {}
    for row in rows[1:]:
        for i, (cell, is_quoted) in enumerate(row):
            if cell:
                columns.setdefault(i, []).append(is_quoted)
    return (
        _hold(rows, rf'""|\\"|[{delimiter}\r\n]')
        or (len(with_commas) > 1 and all(with_commas) and delimiter == "\t")  # as Excel writes tabs
        or any(sum(is_quoted for cell, is_quoted in row if cell) > 1 for row in rows)
        or any(len(each) > 1 and all(each) for each in columns.values())
    )


def quoted_log(lines: list[str]) -> list[tuple[int, str]] | None:
    """Numbers and texts of the lines of a log that a spreadsheet wrote, with doubled quotes or line breaks in quotes.

    ``None`` if it is another one, in which each line is a text.
    """
    if not _hold(_cells("".join(lines), "\x1f", QUOTED), r'""|[\r\n]'):
        return None
    reader = csv.reader(lines, delimiter="\x1f", **QUOTED)
    found, number = [], 1
    for row in reader:
        found.append((number, row[0].strip() if row else ""))
        number = reader.line_num + 1
    return found


def _hold(rows: list[list[tuple[str, bool]]], pattern: str) -> bool:
    """Whether a quoted cell holds what it is quoted for."""
    return any(is_quoted and re.search(pattern, cell) for row in rows for cell, is_quoted in row if cell)


def _cells(text: str, delimiter: str, way: dict[str, Any]) -> list[list[tuple[str, bool]]]:
    """Cells as they are written, and whether they have quotes around them; none if a cell without them holds one."""
    inside = r'[^"\\]*(?:(?:""|\\.)[^"\\]*)*' if way is ESCAPED else '[^"]*(?:""[^"]*)*'
    cell = re.compile(rf'(?:"({inside})"|([^"{delimiter}\r\n]*))({delimiter}|\r\n|[\r\n]|\Z)', re.DOTALL)
    rows: list[list[tuple[str, bool]]] = [[]]
    at = 0
    while '"' in text and at < len(text):
        found = cell.match(text, at)
        if not found:
            return []
        at = found.end()
        rows[-1].append((found[1] or found[2] or "", found[1] is not None))
        if found[3] != delimiter:
            rows.append([])
    return rows
