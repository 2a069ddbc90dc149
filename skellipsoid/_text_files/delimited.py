"""Parses the lines of a delimited file: finds its delimiter, its quotes and its header."""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._core.messages import named, numbered, say_empty
from .._core.warn import warn
from .headers import looks_like_header, rank_label, rank_text
from .quotes import ESCAPED, PLAIN, QUOTED, are_needed
from .text_table import Table

#: In the order of preference where several divide all lines alike: a text has commas more often than the others.
_DELIMITERS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma"}
#: Lines that the delimiter is chosen by, and letters of a line that a message shows.
_SAMPLE, _MOST_LETTERS = 500, 100
#: Smallest number of rows in which a first row of single words may be a header: if this proportion of the other texts
#: is longer.
_FEWEST_ROWS, _LONG_PROPORTION = 10, 0.8
#: Delimiters of which one stands in no file: then a line is one cell.
_NO_DELIMITERS = ("\x1f", "\x1e", "\x1d", "\ue000")
_TABBED = {".tsv", ".tab", ".txt", ".log"}
#: Proportion of short rows from which they are trimmed, and not broken.
_SHORT_PROPORTION = 0.1
#: Rows below a single cell that make a table, if nearly all have the same number of cells.
_FEWEST_BELOW = 3
#: Proportion of rows with one number of cells from which lines are a table, and not messages with commas.
_TABLE_PROPORTION = 0.9
#: Words of a name of a column at most.
_MOST_WORDS = 3
_SPACE = re.compile(r"\s")
#: Numbers, dates and times.
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ TZ%-]*")

#: Line number and cells of each row that is not empty.
_Rows = list[tuple[int, list[str]]]


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Read cells longer than the 131,072 characters at which Python stops, such as a mail with an attachment."""
    longest = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(longest)


@_cells_of_any_length()
def read_delimited(
    lines: list[str],
    path: Path,
    wanted: list[str],
    fewest: int = 2,
    *,
    is_partial: bool = False,
    keeps_empty: bool = False,
) -> Table:
    """Read lines of any delimiter.

    Parameters
    ----------
    lines : list of str
        With their ends.
    path : Path
        A tab in a text does not make a file tab-separated whose name ends in ``.csv``.
    wanted : list of str
        Names of columns that the user gave; a first line that holds one is a header.
    fewest : int
        Columns that are needed. With 1, a file whose first line is one cell is a column of texts, commas and all.
    is_partial : bool
        Whether labels may be missing, so that a row may end before its last, empty cell.
    keeps_empty : bool
        Whether empty lines between others are rows of empty cells; else they are left out, and said.

    Raises
    ------
    ValueError
        If a line cannot be read, or has not as many cells as the first.
    """
    declared = re.fullmatch(r'"?sep=(.)"?\s*', lines[0]) if lines else None  # how Excel is told the delimiter
    is_csv = path.suffix.lower() == ".csv"
    delimiter = declared[1] if declared else _find_delimiter(lines, is_csv=is_csv)
    skipped = int(declared is not None)
    has_no_tab = path.suffix.lower() in {".tsv", ".tab"} and not any("\t" in line for line in lines)
    is_text = has_no_tab and not declared and not find_table(lines)  # commas and all
    if fewest == 1 and (is_text or _begins_with_one_cell(lines[skipped:], declared[1] if declared else None)):
        if not declared and (table := find_table(lines, below=True)):
            raise ValueError(
                f"The first line of {str(path)!r} has one field, but those below are {table}; remove it, or put quotes "
                "around the texts if they hold such characters."
            )
        alone = next((each for each in _NO_DELIMITERS if not any(each in line for line in lines)), _NO_DELIMITERS[0])
        rows, empty = _rows(lines, alone, path, skipped, 1)
        delimiter = delimiter if declared else "," if is_csv else "\t"  # of what is written beside it
    else:
        rows, empty = _rows(lines, delimiter, path, skipped, 1 if is_partial or fewest == 1 else 2)
    if not keeps_empty:
        say_empty(empty, path)
    number, first = rows[0] if rows else (0, [])
    first = [cell.strip() for cell in first]
    is_wanted = not {cell.casefold() for cell in first}.isdisjoint(name.casefold() for name in wanted)
    has_header = is_wanted or is_header([[cell.strip() for cell in cells] for _, cells in rows])
    body = rows[has_header:]
    names, header = (first, number) if has_header else ([], 0)
    if keeps_empty:
        body = sorted([*body, *((number, [""] * len(first)) for number in empty if number > header)])
    return Table(names, [cells for _, cells in body], [number for number, _ in body], "line", header, delimiter)


def is_tabbed(lines: list[str]) -> bool:
    """Whether nearly all lines have a tab, so that they are rows and not messages."""
    filled = [line for line in lines if line.strip()]
    return sum("\t" in line.strip() for line in filled) > _TABLE_PROPORTION * len(filled)


@_cells_of_any_length()
def find_table(lines: list[str], *, below: bool = False) -> str | None:
    """Describe the table that lines are, such as the rows of a CSV file; ``None`` if they are probably messages.

    Nine of ten rows have the same number of cells, and the first is a header or the cells are too many for commas that
    happen to stand in messages. ``below``: any three rows after the first, whatever that is.
    """
    sample = [line for line in lines if line.strip()][below : below + _SAMPLE]
    for delimiter, name in _DELIMITERS.items():
        rows, width, proportion = _divided(sample, delimiter)
        if not rows or proportion < _TABLE_PROPORTION:
            continue
        is_named = len(rows[0]) == width and max(max(rank_text(cell), rank_label(cell)) for cell in rows[0]) == 2
        if below and len(rows) >= _FEWEST_BELOW:
            is_named = True
        if len(rows) > 1 and (is_named or (len(rows) >= _FEWEST_ROWS and (width > 2 or delimiter == "\t"))):
            return f"a table of {width} columns with a {name} between them"
    return None


def _begins_with_one_cell(lines: list[str], declared: str | None) -> bool:
    """Whether no delimiter, or not the declared one, divides the first line that is not empty."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    delimiters = _DELIMITERS if declared is None else [declared]
    return all(len(next(csv.reader(lines[first:], delimiter=each), [])) == 1 for each in delimiters)


def _find_delimiter(lines: list[str], *, is_csv: bool) -> str:
    """Find the delimiter that divides the most lines into the same number of cells, at least two."""
    sample = lines[:_SAMPLE]
    first = next((line for line in sample if line.strip()), "")
    if "\t" in first.strip("\r\n") and not is_csv:
        return "\t"
    fit = {delimiter: _divided(sample, delimiter)[2] for delimiter in _DELIMITERS}
    best = max(fit.values())
    if not best:
        return "," if is_csv else "\t"
    return next(delimiter for delimiter, proportion in fit.items() if proportion == best)


def _divided(lines: list[str], delimiter: str) -> tuple[list[list[str]], int, float]:
    """Rows of lines, their most frequent number of cells from two on, and the proportion of the rows that have it."""
    rows = []
    with suppress(csv.Error):  # a cell that is too long; the reader says so again
        for row in csv.reader(lines, delimiter=delimiter):
            if any(row):
                rows.append(row)
    widths = Counter(len(row) for row in rows if len(row) > 1)
    width, count = next(iter(widths.most_common(1)), (0, 0))
    return rows, width, count / max(1, len(rows))


def _rows(lines: list[str], delimiter: str, path: Path, skipped: int, fewest: int) -> tuple[_Rows, list[int]]:
    """Parse the lines in the way of quoting that they are written in; second, lines of empty rows.

    Between commas quotes are the file's. Between tabs, and in a single column, they are where they are needed: nobody
    writes ``"stop"`` who quotes only what needs it. If the quotes do not pair, they are part of the texts.
    """
    are_optional = delimiter == "\t" or delimiter in _NO_DELIMITERS
    quoted = [QUOTED, *([ESCAPED] if any('\\"' in line for line in lines) else [])]
    ways = quoted if delimiter != "\t" else []
    if are_optional:
        text = "".join(lines[skipped:])
        own = [way for way in quoted if are_needed(text, delimiter, way)]
        is_csv = delimiter != "\t" and path.suffix.lower() not in _TABBED
        ways = [*own, *(ways if is_csv else []), PLAIN, *(quoted if delimiter == "\t" else [])]
    errors: list[tuple[bool, ValueError]] = []
    for way in ways:
        try:
            return _parsed(lines, delimiter, path, skipped, fewest, way)
        except ValueError as error:
            errors.append((way is PLAIN, error))
    raise max(errors, key=lambda each: each[0])[1]


def _parsed(
    lines: list[str], delimiter: str, path: Path, skipped: int, fewest: int, way: dict[str, Any]
) -> tuple[_Rows, list[int]]:
    """Parse the lines. Empty cells at the end of a row may be missing, or too many, but for the ``fewest`` of a row."""
    quoted = way is not PLAIN
    reader = csv.reader(lines[skipped:], delimiter=delimiter, **way)
    rows: _Rows = []
    empty: list[int] = []
    short: list[int] = []  # rows that end before the first one does
    while True:
        number = reader.line_num + 1 + skipped  # a quoted cell may go over several lines
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"Line {number} of {str(path)!r} cannot be read ({error}); correct its quotes or shorten it."
            ) from error
        if row is None:
            break
        cells = [cell.strip() for cell in row]
        if not any(cells):
            empty.append(number)
            continue
        width = len(rows[0][1]) if rows else max(1 if delimiter in _NO_DELIMITERS else 2, len(cells))
        if len(cells) > width and not any(cells[width:]):
            row, cells = row[:width], cells[:width]
        is_begun = not quoted and row[0].lstrip().startswith('"')  # a quoted cell with a line break
        if rows and fewest <= len(cells) < width and not is_begun:
            short.append(len(rows))
        elif len(cells) != width:
            raise _other_width(number, row, rows, path, delimiter, quoted=quoted)
        rows.append((number, row))
    if short and not _are_trimmed(rows, short, is_partial=fewest == 1):
        number, row = rows[short[0]]
        raise _other_width(number, row, rows, path, delimiter, quoted=quoted)
    width = len(rows[0][1]) if rows else 0
    for place in short:
        number, row = rows[place]
        rows[place] = number, [*row, *[""] * (width - len(row))]
    if short and fewest > 1:
        numbers = named("line", [rows[place][0] for place in short]).capitalize()
        end = "ends" if len(short) == 1 else "end"
        warn(f"{numbers} of {str(path)!r} {end} before the last column, and the rest is read as empty.")
    return rows, [number for number in empty if rows and number < rows[-1][0]]  # not the end of the file


def _are_trimmed(rows: _Rows, short: list[int], *, is_partial: bool) -> bool:
    """Whether short rows lack empty cells, as programs write them, and are not parts of a broken row.

    Then many rows are short, or the cells that they lack are empty in a row that is not.
    """
    width = len(rows[0][1])
    whole = [row for _, row in rows[1:] if len(row) == width]
    shortest = min(len(rows[place][1]) for place in short)
    are_empty_elsewhere = any(not any(cell.strip() for cell in row[shortest:]) for row in whole)
    is_last = is_partial and shortest == width - 1
    return is_last or are_empty_elsewhere or len(short) >= max(2, _SHORT_PROPORTION * len(rows))


def _other_width(number: int, row: list[str], rows: _Rows, path: Path, delimiter: str, *, quoted: bool) -> ValueError:
    """Describe a row with another number of cells than the first."""
    line, width = delimiter.join(row), len(rows[0][1]) if rows else 2
    shown = line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]}…"
    return ValueError(
        f"Line {number} of {str(path)!r} is {shown!r} with {numbered(len(row), 'field')}, but "
        f"{_needed(rows, delimiter)}{_remedy(len(row) - width, delimiter, quoted=quoted) if rows else ''}."
    )


def _needed(rows: _Rows, delimiter: str) -> str:
    name = _DELIMITERS.get(delimiter, repr(delimiter))
    if not rows:
        return "a text and a label are needed, with a tab, comma, semicolon or pipe between them"
    return f"line {rows[0][0]} has {len(rows[0][1])}, separated by a {name}"


def _remedy(surplus: int, delimiter: str, *, quoted: bool) -> str:
    if not quoted:
        return "; correct it" if delimiter == "\t" else ""
    what = _DELIMITERS.get(delimiter, repr(delimiter))
    return f"; put quotes around a text that holds a {what if surplus > 0 else f'line break or a {what}'}"


def is_header(rows: list[list[str]]) -> bool:
    """Tell whether the first row is the names of the columns.

    If usual names of texts and labels are there, it is. If not, no cell may be a number or occur again in its column.
    """
    if not rows:
        return False
    first, rest = rows[0], rows[1:]
    if len(first) == 1:
        is_name = rank_text(first[0]) and len(first[0].split()) <= _MOST_WORDS
        return bool(is_name) and not _occurs_again(first, rest)
    if len(first) == 2:
        return {cell.lower() for cell in first} == {"text", "label"} or _names_two(first, rest)
    if max(map(rank_text, first)) == max(map(rank_label, first)) == 2:
        return True
    is_number = any(map(_NUMBER.fullmatch, first))
    return sum(map(bool, first)) > 1 and not is_number and not _occurs_again(first, rest)


def _names_two(first: list[str], rest: list[list[str]]) -> bool:
    """Tell whether the first row names two columns: it could also be a text of one word and its label."""
    if _occurs_again(first, rest):
        return False
    if looks_like_header(*first) or _have_both_names(*first):
        return True
    if any(map(_SPACE.search, first)):
        return False
    if max(max(rank_text(cell), rank_label(cell)) for cell in first) == 2:
        return True
    return len(rest) >= _FEWEST_ROWS and any(_stands_out(rest, text, 1 - text) for text in (0, 1))


def _have_both_names(first: str, second: str) -> bool:
    """Whether one cell is like a name of texts and the other like one of labels, such as ``Ticket text, Category``."""
    are_short = max(len(cell.split()) for cell in (first, second)) <= _MOST_WORDS
    return bool(are_short and ((rank_text(first) and rank_label(second)) or (rank_label(first) and rank_text(second))))


def _stands_out(rest: list[list[str]], text: int, label: int) -> bool:
    """Whether a first row of two single words is unlike all others: their labels come back, most texts are longer."""
    counts = Counter(row[label] for row in rest)
    n_long = sum(bool(_SPACE.search(row[text])) for row in rest)
    return min(counts.values()) > 1 and n_long >= _LONG_PROPORTION * len(rest)


def _occurs_again(first: list[str], rest: list[list[str]]) -> bool:
    """Whether a cell of the first row occurs again in its column."""
    return any(cell and cell == row[i] for row in rest for i, cell in enumerate(first))
