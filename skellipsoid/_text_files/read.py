"""Reads texts and labels of a user's file of any kind."""

import re
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._bot_files.bot_reader import PAGE, read_bot
from .._core.characters import TIME, is_visible
from .._core.files import unguarded
from .._core.messages import named, say_empty
from .._core.warn import LossWarning, silenced, warn
from .annotations import read_annotations
from .columns import check_single, choose_columns, choose_text_column
from .decode import decode_file
from .delimited import is_tabbed, read_delimited
from .quotes import quoted_log
from .records import paths_into, read_json, read_parquet
from .rejected import rejected_rows
from .text_table import Table, is_scalar
from .workbooks.cells import check_kinds
from .workbooks.package import is_workbook
from .workbooks.read_workbook import read_workbook

_JSON = {".json", ".jsonl", ".ndjson"}
PARQUET = {".parquet", ".pq"}
_LOGS = {".txt", ".log"}
#: From here on a float does not tell neighbouring whole numbers apart.
_EXACT_FLOATS = 2**sys.float_info.mant_dig
#: Labels that a program wrote as numbers with a fraction, because some were missing.
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
#: Paths into objects that a message names.
_MOST_PATHS = 5
#: What programs write for a missing label.
_MISSING = {
    *("NaN", "nan", "-NaN", "-nan", "NA", "<NA>", "N/A", "n/a", "NaT", "NULL", "Null", "null", '""', "''", r"\N"),
    *("#N/A", "#NA", "#N/A N/A", "#NV", "#VALUE!", "#WERT!", "#REF!", "#BEZUG!", "#NAME?", "#DIV/0!"),
    *("#NUM!", "#ZAHL!", "#NULL!"),
    *("(blank)", "(Leer)", "(leer)", "(vide)", "(en blanco)", "(vuoto)"),  # of pivot tables
}


class Log(NamedTuple):
    """Texts of a log, their labels, empty where there is none, and the cells of the other columns beside them."""

    texts: list[str]
    labels: list[str]
    columns: dict[str, list[str]]


class LabelledTexts(NamedTuple):
    """Texts and labels of a file, and where each row of it begins."""

    texts: NDArray[np.object_]
    labels: NDArray[Any]
    #: Numbers from 1 of what ``unit`` says: ``"line"``, ``"record"`` or ``"text"``.
    numbers: NDArray[np.int64]
    unit: str
    #: What was read of a bot; else empty.
    note: str = ""


def read_table(
    path: Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    kept: Collection[str] = (),
    encoding: str | None = None,
    sheets: Sequence[str] = (),
    language: str | None = None,
    says_read: bool = True,
) -> LabelledTexts:
    """Read texts and labels from a file of two or more columns, or from the file, folder or zip of a bot.

    The kind of file follows from its first bytes if it is a workbook (``.xlsx``, ``.xlsm``, ``.xls``, ``.ods``), else
    from its name: ``.json``, ``.jsonl``, ``.ndjson`` and ``.parquet``; any other is delimited text, unless it holds
    what a bot's file does (``_bot_files``). The plain form is a text, a tab and a label on each line, with or without a
    first line ``text<TAB>label``: quotes are part of the text there.

    Parameters
    ----------
    path : Path
        The file.
    text_column, label_column : str, default=None
        Name of a column, or its number from 1; ``None`` guesses.
    kept : collection of str, default=()
        Labels that are read as such, although programs write them for a missing value: ``"NA"`` and the like. Their
        letters tell the encoding, too.
    encoding : str, default=None
        Encoding of a text file that is not UTF-8, by a name that Python knows; ``None`` guesses.
    sheets : sequence of str, default=()
        Sheets of a workbook: names, or else numbers from 1; empty: the first visible one.
    language : str, default=None
        The language to read of a bot that has several.
    says_read : bool, default=True
        Whether to say what was read of a bot, also if nothing was left out.

    Returns
    -------
    found : LabelledTexts
        Without the rows that have no text or no label, or whose label the annotator rejected.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a row of it cannot be read, or if it is not clear which columns to take.
    ImportError
        If it is parquet or a workbook, and nothing that reads it is installed.

    Warns
    -----
    UserWarning
        If columns were guessed, if rows are left out, or if the encoding is not UTF-8.
    """
    how: dict[str, Any] = {"encoding": encoding, "sheets": sheets, "familiar": kept}
    table = read_file(path, text_column, label_column, **how, bots=True, language=language)
    if table.note and sheets:
        raise ValueError(f"--sheet names a sheet of a workbook, and {str(path)!r} is none; leave --sheet out.")
    if table.is_cut or (table.note and says_read):
        warn(table.note, LossWarning if table.is_cut else UserWarning)
    if not table.n_columns or not table.rows:
        return LabelledTexts(np.array([], dtype=object), np.array([], dtype=str), np.array([], dtype=int), table.unit)
    text_at, label_at, is_guess = choose_columns(table, path, text_column, label_column)
    if is_guess:
        _say_guess(table, path, "--text-column and --label-column choose others", texts=text_at, labels=label_at)
    table = table.without(rejected_rows(table, path, text_at, label_at))
    check_cells(table, path, text_at)
    check_cells(table, path, label_at, kept)
    texts = [text if is_visible(text) else "" for text in table.cells(text_at)]
    written = table.cells(label_at)
    labels = written if table.note else read_labels(written, kept)
    present = [bool(text and label) for text, label in zip(texts, labels, strict=True)]
    markers = sorted({mark for mark, label in zip(written, labels, strict=True) if is_visible(mark) and not label})
    _say_missing(table, path, texts, "text", "")
    _say_missing(
        table,
        path,
        labels,
        f"label (also {', '.join(map(repr, markers))})" if markers else "label",
        "; give them the open label if they belong to no class"
        + (f", or another name if {markers[0]!r} is a class" if markers else ""),
    )
    rows = np.array(present)
    return LabelledTexts(
        np.array(texts, dtype=object)[rows],
        np.array(labels, dtype=str)[rows],
        np.array(table.numbers)[rows],
        table.unit,
        table.note,
    )


def read_texts(
    path: Path, *, text_column: str | None = None, encoding: str | None = None, sheets: Sequence[str] = ()
) -> list[str]:
    """Read the texts of a file, one for each row, as ``read_table`` does; no labels and no other column are needed.

    A file of a name that ends in ``.txt`` or ``.log`` is a log, unless nearly all of its lines have a tab: each line is
    a text, commas and all.
    """
    return read_rows(path, text_column=text_column, encoding=encoding, sheets=sheets)[1]


def read_log(
    path: Path, *, text_column: str | None = None, encoding: str | None = None, sheets: Sequence[str] = ()
) -> Log:
    """Read the texts of a file as ``read_texts`` does, and its other columns; rows without a text are left out."""
    table, texts, column = read_rows(path, text_column=text_column, encoding=encoding, sheets=sheets)
    rows = [row for row, text in enumerate(texts) if text.strip()]
    return Log([texts[row] for row in rows], [""] * len(rows), table.columns_beside(column, rows))


def read_rows(
    path: Path,
    *,
    text_column: str | None = None,
    encoding: str | None = None,
    sheets: Sequence[str] = (),
    keeps_empty: bool = False,
) -> tuple[Table, list[str], int]:
    """Read all columns of a file, its texts as ``read_texts`` does, and the number of their column.

    ``keeps_empty``: empty lines between others are rows, too.
    """
    if text_column is None and path.suffix.lower() in _LOGS and not is_workbook(path):
        written = decode_file(path, encoding)
        lines = [line.rstrip("\r\n") for line in written]
        if not is_tabbed(lines):
            rows = quoted_log(written) or list(enumerate(lines, start=1))
            numbers, lines = [number for number, _ in rows], [text for _, text in rows]
            filled = [i for i, line in enumerate(lines) if line.strip()]
            every = range(max(filled, default=-1) + 1)
            if keeps_empty:
                filled = list(every)
            say_empty([numbers[i] for i in sorted(set(every) - set(filled))], path)
            texts = [lines[i] for i in filled]
            if len(texts) > 1 and all(TIME.match(text.lstrip()) for text in texts if text.strip()):
                warn(
                    f"Each line of {str(path)!r} begins with a time, which is read as a part of the message; write the "
                    "messages alone to a file, or to a column of a table.",
                    LossWarning,
                )
            return Table([], [[text] for text in texts], [numbers[i] for i in filled], "line", delimiter="\t"), texts, 0
    table = read_file(path, text_column, encoding=encoding, sheets=sheets, fewest=1, keeps_empty=keeps_empty)
    if not table.n_columns or not table.rows:
        return table, [], 0
    column, is_guess = choose_text_column(table, path, text_column)
    if is_guess:
        _say_guess(table, path, "--text-column chooses another", texts=column)
    check_cells(table, path, column)
    return table, table.cells(column), column


def read_partly_labelled(
    path: Path,
    *,
    text_column: str | None,
    label_column: str,
    kept: Collection[str] = (),
    encoding: str | None = None,
    sheets: Sequence[str] = (),
) -> Log:
    """Read the texts of a file, their labels, and its other columns; rows without a text are left out."""
    table = read_file(path, text_column, label_column, encoding=encoding, sheets=sheets, is_partial=True)
    if not table.n_columns or not table.rows:
        return Log([], [], {})
    text_at, label_at, is_guess = choose_columns(table, path, text_column, label_column)
    check_single(table, path, "weight")
    if is_guess:
        _say_guess(table, path, "--text-column chooses another", texts=text_at)
    check_cells(table, path, text_at)
    check_cells(table, path, label_at, kept)
    labels = accepted_labels(table, path, text_at, label_at, kept)
    texts = table.cells(text_at)
    rows = [row for row, text in enumerate(texts) if is_visible(text)]
    return Log([texts[row] for row in rows], [labels[row] for row in rows], table.columns_beside(text_at, rows))


def accepted_labels(table: Table, path: Path, text_at: int, label_at: int, kept: Collection[str]) -> list[str]:
    """Labels of a table whose rows all stay; one that the annotator rejected is none."""
    rejected = rejected_rows(table, path, text_at, label_at, effect="their labels do not count")
    labels = read_labels(table.cells(label_at), kept)
    return ["" if row in rejected else label for row, label in enumerate(labels)]


def read_labels(cells: list[str], kept: Collection[str] = ()) -> list[str]:
    """Labels in the cells of a column, empty where one is missing; ``kept`` are labels whatever they look like.

    Programs write whole numbers with a fraction where some are missing, and 1.0 as 1: what is ``kept`` wins.
    """
    labels = [label if label in kept or (is_visible(label) and label not in _MISSING) else "" for label in cells]
    labels = [label if label in kept else _as_kept(label, kept) for label in labels]
    written = {label for label in labels if label}
    if written.isdisjoint(kept) and all(map(_WHOLE.fullmatch, written)):
        labels = [_WHOLE.sub(r"\1", label) for label in labels]
    return labels


def _as_kept(label: str, kept: Collection[str]) -> str:
    """Give a whole number as a class of a model is written, with or without a fraction."""
    whole = _WHOLE.fullmatch(label)
    other = whole[1] if whole else f"{label}.0"
    return other if other in kept else label


def read_file(
    path: Path,
    *wanted: str | None,
    encoding: str | None = None,
    sheets: Sequence[str] = (),
    fewest: int = 2,
    is_partial: bool = False,
    keeps_empty: bool = False,
    familiar: Collection[str] = (),
    bots: bool = False,
    language: str | None = None,
) -> Table:
    """Read all columns of a file; a first line that holds a ``wanted`` name, which is no number, is its header.

    It has at least the ``fewest`` columns. In one with empty labels, ``is_partial``, a row may end before its label.
    Where its encoding is not clear, the reading counts that has more ``familiar`` cells.
    With ``bots`` it may be the file, folder or zip of a bot, of which one ``language`` is read.
    """
    if bots and (bot := read_bot(path, language, encoding)) is not None:
        rows = [[each.text, each.label] for each in bot.texts]
        numbers = list(range(1, len(rows) + 1))
        return Table(["text", "label"], rows, numbers, "text", note=bot.note, is_cut=bot.is_cut)
    kind = path.suffix.lower()
    given = [name for name in wanted if name is not None]
    names = [name for name in given if not (name.isascii() and name.isdigit() and int(name) > 0)]
    if is_workbook(path):
        by_number = len(names) < len(given)
        found = read_workbook(path, names, sheets, fewest=fewest, keeps_empty=keeps_empty, by_number=by_number)
        return read_annotations(found)
    if sheets:
        raise ValueError(f"--sheet names a sheet of a workbook, and {str(path)!r} is none; leave --sheet out.")
    if kind in PARQUET:
        return read_annotations(read_parquet(path))

    def parsed(lines: list[str]) -> Table:
        return read_delimited(lines, path, names, fewest, is_partial=is_partial, keeps_empty=keeps_empty)

    known = {" ".join(cell.split()) for cell in familiar if not cell.isascii()}

    def n_familiar(lines: list[str]) -> int:
        with silenced(), suppress(ValueError):
            return sum(" ".join(unguarded(cell).split()) in known for row in parsed(lines).rows for cell in row)
        return 0

    lines = decode_file(path, encoding, n_familiar if known else None)
    return read_annotations(read_json(lines, path, names) if kind in _JSON else parsed(lines))


def _say_guess(table: Table, path: Path, remedy: str, **columns: int) -> None:
    header = f"{table.unit} {table.header} is the header, " if table.header else ""
    guessed = ", ".join(f"{what} from column {table.titled(column)}" for what, column in columns.items())
    warn(f"{str(path)!r}: {header}{guessed} (guessed; {remedy}).")


def check_cells(table: Table, path: Path, column: int, kept: Collection[str] = ()) -> None:
    """Refuse cells that are no texts or labels, and say how a workbook's were read; ``kept`` are labels."""
    check_kinds(table, path, column, kept)
    for number, row in zip(table.numbers, table.rows, strict=True):
        if column in table.label_columns and isinstance(row[column], list | tuple | dict):
            continue  # of a tool: one label counts, several do not
        if not is_scalar(row[column]):
            found, remedy = f"a {type(row[column]).__name__}", "choose another column"
            if _are_cats(row[column]):
                remedy = f"of classes with numbers, as in spaCy's cats, write the name of the one that is 1 ({PAGE})"
            elif paths := [each for each in paths_into(row[column]) if each]:
                named_paths = ", ".join(repr(f"{table.names[column]}.{each}") for each in paths[:_MOST_PATHS])
                remedy = f"name a path into it instead, such as {named_paths}"
        elif isinstance(row[column], float) and row[column].is_integer() and abs(row[column]) >= _EXACT_FLOATS:
            found, remedy = f"the float {row[column]!r}", "write a number as large as this as a whole number or a text"
        else:
            continue
        raise ValueError(
            f"Column {table.titled(column)} of {str(path)!r} holds {found} in {table.unit} {number}, but a text or a "
            f"label is needed; {remedy}."
        )


def _are_cats(cell: Any) -> bool:
    """Whether a cell is an object of numbers from 0 to 1 or truths, by the names of classes."""
    values = list(cell.values()) if isinstance(cell, dict) else []
    return bool(values) and all(isinstance(value, int | float) and 0 <= value <= 1 for value in values)


def _say_missing(table: Table, path: Path, cells: list[str], what: str, remedy: str) -> None:
    missing = [number for number, cell in zip(table.numbers, cells, strict=True) if not cell]
    if missing:
        n = len(missing)
        warn(
            f"{n} row{' has' if n == 1 else 's have'} no {what} in {str(path)!r} and {'is' if n == 1 else 'are'} left "
            f"out ({named(table.unit, missing)}){remedy}.",
            LossWarning,
        )
