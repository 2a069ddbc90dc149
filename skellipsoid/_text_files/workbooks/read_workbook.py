"""Reads the sheets of a workbook as a table: chooses sheets, finds the header, numbers the rows."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skellipsoid_runtime._install import how_to_install

from ..._core.messages import named, numbered, say_empty
from ..._core.warn import LossWarning, warn
from ..decode import read_bytes
from ..delimited import is_header
from ..headers import rank_label, rank_text
from ..text_table import Table
from . import child
from .cells import Cell
from .package import Package, damaged, locked, open_package, packed, target_of, unpack
from .scan import (
    Corners,
    Scan,
    XmlError,
    lengths_of_strings,
    relations,
    scan_ods,
    scan_xlsx,
    sheets_of_xlsx,
)

#: Letters of all cells of a sheet, and seconds that the reader of cells may take.
_MOST_LETTERS, _MOST_SECONDS = 200_000_000, 300
#: Rows above a header at most, and words of a name of a column.
_MOST_TITLES, _MOST_WORDS = 20, 3
#: Members of a workbook of Excel's that every reader looks for, and those that relations of these kinds lead to.
_HEAD = ("[Content_Types].xml", "_rels/.rels")
_STRINGS = "xl/sharedStrings.xml"
_PARTS = {"sharedStrings": _STRINGS, "styles": "xl/styles.xml"}


class _Sheet(NamedTuple):
    """Cells of a sheet, from its first row and column on."""

    name: str
    rows: list[list[str]]
    merged: list[Corners]


def read_workbook(
    path: Path,
    wanted: Sequence[str] = (),
    sheets: Sequence[str] = (),
    *,
    fewest: int = 2,
    keeps_empty: bool = False,
    by_number: bool = False,
) -> Table:
    """Read the cells of a workbook.

    Parameters
    ----------
    path : Path
        ``.xlsx``, ``.xlsm``, ``.xls`` or ``.ods``, whatever its name says.
    wanted : sequence of str
        Names of columns that the user gave.
    sheets : sequence of str
        Names of sheets, or else numbers from 1 of the visible ones; empty: the first visible one.
    fewest : int
        Columns that are needed: with 1, no labels.
    keeps_empty : bool
        Whether empty rows between others are rows; else they are left out, and said.
    by_number : bool
        Whether the user gave a column by its number, so that an empty first column counts.

    Returns
    -------
    table : Table
        Numbered by the rows that a spreadsheet shows. What is no text is a :class:`Cell`.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is damaged, locked or too large, if it lacks a sheet, or if two sheets have different columns.
    ImportError
        If python-calamine is not installed.
    """
    if importlib.util.find_spec("python_calamine") is None:
        raise ImportError(f"{str(path)!r} is a workbook, which needs python-calamine: {_install()}.")
    found, unread = _read_sheets(open_package(read_bytes(path), path), path, sheets)
    if unread and not sheets:
        verb = "is" if unread == 1 else "are"
        warn(
            f"{str(path)!r}: the sheet {found[0].name!r} is read, {numbered(unread, 'other sheet')} {verb} not "
            "(--sheet chooses)."
        )
    tables = [
        _table(sheet, path, wanted, fewest, keeps_empty=keeps_empty, by_number=by_number, alone=len(found) == 1)
        for sheet in found
    ]
    return tables[0] if len(tables) == 1 else _joined(tables, [sheet.name for sheet in found], path)


def _install() -> str:
    return how_to_install("skellipsoid[excel]")


def _read_sheets(package: Package, path: Path, chosen: Sequence[str]) -> tuple[list[_Sheet], int]:
    """Read some sheets, and count the visible ones that are not read."""
    scans: dict[str, Scan] = {}
    if package.kind == "xls":
        present = _cells(package.content, [], path)["sheets"]
        names = _choose([(name, is_visible) for name, is_visible in present], chosen, path)
        content = package.content
    else:
        try:
            read = _open_xlsx if package.kind == "xlsx" else _open_ods
            present, names, scans, content = read(package, path, chosen)
        except XmlError as error:
            raise ValueError(damaged(path)) from error
    found = _cells(content, names, path)["found"]
    sheets = []
    for name, each in zip(names, found, strict=True):
        scan = scans.get(name, Scan())
        sheets.append(_Sheet(name, _as_cells(each["rows"], scan), [*each["merged"], *scan.merged]))
    return sheets, sum(is_visible and name not in names for name, is_visible in present)


def _choose(present: Sequence[tuple[str, bool]], chosen: Sequence[str], path: Path) -> list[str]:
    """Names of the chosen sheets."""
    visible = [name for name, is_visible in present if is_visible]
    if not present:
        raise ValueError(f"{str(path)!r} has no sheet with cells; save the table in one.")
    names = []
    for each in chosen or ["1"]:
        if chosen and each in (name for name, _ in present):
            names.append(each)
        elif each.isascii() and each.isdigit() and 1 <= int(each) <= len(visible):
            names.append(visible[int(each) - 1])
        elif not chosen:
            names.append(present[0][0])  # all are hidden
        else:
            raise ValueError(
                f"--sheet {each!r} is no sheet of {str(path)!r}; pass the name or number of one: "
                f"{named('sheet', [repr(name) for name in visible])}."
            )
    return list(dict.fromkeys(names))


_Opened = tuple[list[tuple[str, bool]], list[str], dict[str, Scan], bytes]


def _open_xlsx(package: Package, path: Path, chosen: Sequence[str]) -> _Opened:
    """Choose and scan sheets of Excel's, and pack what is needed to read them."""
    head = unpack(package, ["xl/workbook.xml", "xl/_rels/workbook.xml.rels"], path)
    if len(head) < 2:
        raise XmlError("no relations")
    links = relations(head["xl/_rels/workbook.xml.rels"])
    sheets = [
        (name, is_visible, target_of(links[link][1]))
        for name, is_visible, link in sheets_of_xlsx(head["xl/workbook.xml"])
        if links.get(link, ("", ""))[0] == "worksheet"
    ]
    present = [(name, is_visible) for name, is_visible, _ in sheets]
    names = _choose(present, chosen, path)
    places = {name: place for name, _, place in sheets if name in names}
    parts = {_PARTS[kind]: target_of(target) for kind, target in links.values() if kind in _PARTS}
    needed = dict(parts) | {place: place for place in places.values()} | {each: each for each in _HEAD}
    contents = unpack(package, [place.lower() for place in needed.values()], path)
    read = {name: contents[place.lower()] for name, place in needed.items() if place.lower() in contents}
    if not set(places.values()) <= read.keys():
        raise XmlError("no sheet")
    lengths = lengths_of_strings(read[_STRINGS]) if _STRINGS in read else []
    scans = {name: scan_xlsx(read[place], lengths) for name, place in places.items()}
    _check_sizes(scans, path)
    return present, names, scans, packed(read | head)


def _open_ods(package: Package, path: Path, chosen: Sequence[str]) -> _Opened:
    """Choose and scan tables of an OpenDocument, and pack what is needed to read them."""
    contents = unpack(package, ["mimetype", "content.xml", "meta-inf/manifest.xml"], path)
    contents["META-INF/manifest.xml"] = contents.pop("meta-inf/manifest.xml", b"<manifest/>")
    tables = scan_ods(contents["content.xml"])
    present = [(name, is_visible) for name, is_visible, _ in tables]
    names = _choose(present, chosen, path)
    scans = {name: scan for name, _, scan in tables}
    _check_sizes(scans, path)  # all of them are read
    return present, names, scans, packed(contents)


def _check_sizes(scans: dict[str, Scan], path: Path) -> None:
    """Refuse sheets that take more memory than a table does."""
    for name, scan in scans.items():
        if scan.n_rows * scan.n_columns > child.MOST_CELLS:
            raise _too_large(name, path, f"{scan.n_rows} rows and {scan.n_columns} columns")
    if sum(scan.n_letters for scan in scans.values()) > _MOST_LETTERS:
        raise ValueError(
            f"The cells of {str(path)!r} hold more than {_MOST_LETTERS // 1_000_000} million letters; save the sheet "
            "as 'CSV UTF-8', or split it."
        )


def _too_large(name: str, path: Path, size: str) -> ValueError:
    return ValueError(
        f"The sheet {name!r} of {str(path)!r} goes on to its last cell over {size}; delete what stands far from the "
        "table, or save the sheet as 'CSV UTF-8'."
    )


def _cells(content: bytes, names: list[str], path: Path) -> dict[str, Any]:
    """Ask a process of its own for the cells of sheets; its end is a sentence."""
    command = [sys.executable, "-P", child.__file__]  # nothing beside it is imported by chance
    asked = json.dumps(names).encode() + b"\n" + content
    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=_MOST_SECONDS, check=False)
        written = done.stdout.partition(child.PREFIX)[2]
        found: dict[str, Any] = json.loads(written) if done.returncode == 0 else {"error": "end"}
    except (subprocess.TimeoutExpired, ValueError):
        found = {"error": "end"}
    if "too_large" in found:
        raise _too_large(found["too_large"], path, f"more than {child.MOST_CELLS} cells")
    if found.get("error") == "PasswordError":
        raise ValueError(locked(path))
    if "error" in found:
        raise ValueError(damaged(path))
    return found


def _as_cells(rows: list[list[Any]], scan: Scan) -> list[list[str]]:
    """Give the cells as text, and mark those that only seem empty."""
    cells = [[each if isinstance(each, str) else Cell(each[1], each[0]) for each in row] for row in rows]
    for (row, column), kind in scan.unseen.items():
        if row < len(cells) and column < len(cells[row]) and not cells[row][column]:
            cells[row][column] = Cell("", kind)
    return cells


def _fill_merged(sheet: _Sheet, header: int) -> None:
    """Give a cell that is merged over several rows below the header to each of them."""
    n_left = child.MOST_CELLS
    for (top, left), (bottom, _) in sheet.merged:
        below = range(top + 1, min(bottom + 1, len(sheet.rows), top + 1 + n_left) if top > header else 0)
        n_left -= len(below)
        for row in below:
            if left < len(sheet.rows[row]) and not sheet.rows[row][left]:
                sheet.rows[row][left] = sheet.rows[top][left]


def _table(
    sheet: _Sheet, path: Path, wanted: Sequence[str], fewest: int, *, keeps_empty: bool, by_number: bool, alone: bool
) -> Table:
    """Find the header of a sheet, and leave out what is above it."""
    filled = [i for i, row in enumerate(sheet.rows) if any(map(_is_filled, row))]
    if not filled:
        return Table([], [], [], "row")
    rows = _less_empty_columns(sheet.rows, by_number=by_number)
    stripped = [[cell.strip() for cell in rows[i]] for i in filled]
    place = _find_header(stripped, [name.casefold() for name in wanted], fewest)
    header = -1 if place is None else filled[place]
    if place:
        above = filled[:place]
        warn(
            f"{named('row', [i + 1 for i in above]).capitalize()} of the sheet {sheet.name!r} of {str(path)!r} above "
            f"the header in row {header + 1} {'is a title' if place == 1 else 'are titles'} and left out.",
            LossWarning,
        )
    _fill_merged(sheet, header)
    rows = _less_empty_columns(sheet.rows, by_number=by_number)
    body = [i for i in filled if i > header]
    every = range(header + 1 if place is not None else filled[0], filled[-1] + 1)
    if keeps_empty:
        body = list(every)
    else:
        say_empty([i + 1 for i in sorted(set(every) - set(body))], path, "row")
    numbers: list[Any] = [i + 1 if alone else f"{i + 1} of {sheet.name!r}" for i in body]
    names = [] if place is None else stripped[place]
    return Table(names, [list(rows[i]) for i in body], numbers, "row", header + 1)


def _is_filled(cell: str) -> bool:
    """Whether a person sees something in a cell."""
    return isinstance(cell, Cell) or bool(cell.strip())


def _less_empty_columns(rows: list[list[str]], *, by_number: bool) -> list[list[str]]:
    """Leave out columns without a cell at both ends, and bring all rows to one length."""
    width = max(len(row) for row in rows)
    used = {i for row in rows for i, cell in enumerate(row) if _is_filled(cell)}
    first = 0 if by_number else min(used)
    return [[*row, *[""] * (width - len(row))][first : max(used) + 1] for row in rows]


def _find_header(rows: list[list[str]], wanted: list[str], fewest: int) -> int | None:
    """Find the first row that holds the names of columns, given or guessed; ``None`` if there is no header."""
    for i, row in enumerate(rows[: _MOST_TITLES + 1]):
        folded = {cell.casefold() for cell in row}
        if folded.issuperset(wanted) if wanted else _holds_names(row, rows[:i], fewest):
            return i
    is_wanted = not {cell.casefold() for cell in rows[0]}.isdisjoint(wanted)
    return 0 if is_wanted or is_header(rows) else None


def _holds_names(row: list[str], above: list[list[str]], fewest: int) -> bool:
    """Whether a row holds usual names of texts and labels, or of texts alone where no labels are needed."""
    short = [cell for cell in row if cell and len(cell.split()) <= _MOST_WORDS]
    texts, labels = ([rank(cell) for cell in short] for rank in (rank_text, rank_label))
    if fewest > 1:
        pairs = [(a, b) for i, a in enumerate(texts) for j, b in enumerate(labels) if i != j]
        return any(min(pair) > 0 and max(pair) == 2 for pair in pairs)
    n_filled = [sum(map(bool, cells)) for cells in (row, *above)]
    return 2 in texts and len(short) > 1 and n_filled[0] > max(n_filled[1:], default=0) and bool(above)


def _joined(tables: list[Table], sheets: list[str], path: Path) -> Table:
    """Put the rows of several sheets below each other."""
    tables = [table for table in tables if table.rows or table.names] or tables[:1]
    first = tables[0]
    for table, name in zip(tables, sheets, strict=False):
        if table.names != first.names or table.n_columns != first.n_columns:
            raise ValueError(
                f"The sheets {sheets[0]!r} and {name!r} of {str(path)!r} have different columns; pass one --sheet, or "
                "name their columns alike."
            )
    rows = [row for table in tables for row in table.rows]
    return first._replace(rows=rows, numbers=[number for table in tables for number in table.numbers])
