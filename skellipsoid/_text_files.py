"""Texts and labels from files: one reader for tab-separated and comma-separated ones."""

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

#: Lines or labels that a message names at most, and letters of a line that it shows.
_MOST_NAMED, _MOST_LETTERS = 5, 100


def read_table(path: Path) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Read texts and labels, two fields on each line; a header ``text, label`` and empty lines are skipped.

    A file whose name ends in ``.csv`` is separated by commas and may quote its fields; any other is separated by tabs,
    and quotes are part of the text.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a line does not hold a text and a label, or if the file is UTF-16.

    Warns
    -----
    UserWarning
        If lines are not UTF-8; what cannot be read is replaced by U+FFFD.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        msg = f"{str(path)!r} cannot be read ({error.strerror}); pass a file of texts and labels."
        raise OSError(msg) from error
    damaged: list[int] = []
    # Not splitlines of a str: a text may hold what Unicode calls a line separator.
    lines = decode_lines(content.splitlines(keepends=True), damaged.append, repr(str(path)))
    texts, labels = [], []
    for number, fields in _rows(lines, path):
        names = [field.lower() for field in fields] if number == 1 else []
        if names == ["label", "text"]:
            msg = f"Line 1 of {str(path)!r} names the label first, but the text must stand first; swap the columns."
            raise ValueError(msg)
        if names != ["text", "label"]:
            texts.append(fields[0])
            labels.append(fields[1])
    if damaged:
        warn(
            f"{named('line', damaged)} of {str(path)!r} {'is' if len(damaged) == 1 else 'are'} not UTF-8; each "
            "character that cannot be read is replaced by \ufffd, save the file as UTF-8 to keep it.",
            stacklevel=2,
        )
    return np.array(texts, dtype=object), np.array(labels, dtype=str)


def decode_lines(lines: Iterable[bytes], on_damaged: Callable[[int], object], name: str) -> Iterator[str]:
    """Decode lines of UTF-8.

    ``on_damaged`` is called with the number of each line that is not, whose unreadable bytes become U+FFFD.

    Raises
    ------
    ValueError
        If they are UTF-16; it calls them ``name``.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            msg = f"{name} is UTF-16 text, but must be UTF-8; save it as UTF-8."
            raise ValueError(msg)
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        try:
            decoded = content.decode()
        except UnicodeDecodeError:
            on_damaged(number)
            decoded = content.decode(errors="replace")
        yield decoded


def _rows(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number, text and label of each row."""
    is_csv = path.suffix.lower() == ".csv"
    separator = "," if is_csv else "\t"
    reader = csv.reader(
        lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if is_csv else csv.QUOTE_NONE, strict=is_csv
    )
    while True:
        number = reader.line_num + 1  # a quoted field may go over several lines
        try:
            row = next(reader, None)
        except csv.Error as error:
            msg = f"Line {number} of {str(path)!r} cannot be read ({error}); correct its quotes or shorten it."
            raise ValueError(msg) from error
        if row is None:
            return
        fields = [field.strip() for field in row]
        if not any(fields):
            continue
        if len(fields) != 2 or not all(fields):
            line = separator.join(row)
            shown = line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]}…"
            what = "comma" if is_csv else "tab"
            msg = (
                f"Line {number} of {str(path)!r} is {shown!r} with {_found(fields)}, but every line must be a text, "
                f"one {what} and a label{_remedy(fields) if is_csv else ''}."
            )
            raise ValueError(msg)
        yield number, fields


def _found(fields: list[str]) -> str:
    if len(fields) == 2:
        return "an empty label" if fields[0] else "an empty text"
    return f"{len(fields)} field{'' if len(fields) == 1 else 's'}"


def _remedy(fields: list[str]) -> str:
    """Say what to do about a line of a file of comma-separated values."""
    if [field.lower() for field in fields] == ["", "text", "label"]:
        return "; write the file without its index (to_csv(index=False))"
    if len(fields) == 1 and ";" in fields[0]:
        return "; separate them by a comma, not by a semicolon"
    return "; put quotes around a text that holds a comma" if len(fields) > 2 else ""


def named(noun: str, things: list[Any]) -> str:
    """Name the first things, and say how many more there are."""
    named = ", ".join(map(str, things[:_MOST_NAMED]))
    more = f" and {len(things) - _MOST_NAMED} more" if len(things) > _MOST_NAMED else ""
    return f"{noun}{'' if len(things) == 1 else 's'} {named}{more}"
