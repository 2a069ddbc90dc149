"""Texts that a command reads: lines of standard input, or those of a file."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from .._core.warn import warn
from .._text_files.decode import decode_lines
from .._text_files.delimited import find_table
from .._text_files.read import read_texts

#: Lines that are predicted at a time when they come from a file or a pipe.
LINES = 1024
#: Warning about a file or an input without a line.
NO_TEXT = "holds no text, and nothing is predicted"
#: What to do with a table on standard input.
_REMEDY = "pass the table as a file with --data, or only its column of texts"


def read_by(options: argparse.Namespace) -> dict[str, Any]:
    """How the file of texts is to be read, as the options say."""
    return {"text_column": options.text_column, "encoding": options.encoding, "sheets": options.sheet}


def texts_of_file(options: argparse.Namespace) -> list[str] | None:
    """Texts of ``--data``; ``None`` if they come from standard input."""
    if options.data is None:
        return None
    return read_texts(options.data, **read_by(options))


def lines_of_input() -> Iterator[str]:
    """Lines of standard input."""
    return (line.rstrip("\r\n") for line in decode_lines(sys.stdin.buffer, _note_damaged, "The input"))


def _note_damaged(number: int) -> None:
    warn(f"Line {number} is not UTF-8; what cannot be read in it is replaced by \ufffd.")


def with_content(given: list[str] | None) -> list[str]:
    """Texts that are not blank, of a file or else of standard input.

    Raises
    ------
    ValueError
        If the input is a table.
    """
    texts = list(lines_of_input()) if given is None else given
    if given is None and (table := find_table(texts)):
        raise ValueError(f"The input is {table}, not a text on each line; {_REMEDY}.")
    return [text for text in texts if text.strip()]


def noted(lines: Iterator[str]) -> Iterator[str]:
    """Warn if lines of a pipe are a table: each is predicted with all its cells."""
    first = list(islice(lines, LINES))
    if not first:
        warn(f"The input {NO_TEXT}.")
    if table := find_table(first):
        warn(f"The input is {table}, and each line is predicted as one text; {_REMEDY}.")
    return chain(first, lines)


def in_groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Give lines in groups of a size; the last one may be smaller."""
    iterator = iter(lines)
    while group := list(islice(iterator, size)):
        yield group
