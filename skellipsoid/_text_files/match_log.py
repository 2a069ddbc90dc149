"""Finds the rows of a labelling file in the log that they were drawn from, by the digests of their messages.

Whatever a spreadsheet or a browser makes of a message, its text is taken from the log.
"""

import difflib
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from .._core.files import unguarded
from .._core.messages import numbered, shortened
from .._core.warn import LossWarning, warn
from .text_table import Table
from .workbooks.write_workbook import as_cell

#: Columns of a labelled row: its number in the log, the digest of its message, and the message.
ROW, DIGEST, MESSAGE = "row", "digest", "message"
#: Messages that an error names, and letters of each.
_MOST_SHOWN, _MOST_LETTERS = 3, 60
#: Controls, halves of characters and what is no character.
_NOTHING = {"Cc", "Cs", "Cn"}


class LabelledLog(NamedTuple):
    """A log with the numbers of its rows, as messages name them."""

    path: Path
    texts: list[str]
    numbers: list[Any]


class Match(NamedTuple):
    """Messages of labelled rows."""

    #: Text of each row, empty where it has none.
    texts: list[str]
    #: Rows of the log, from 0; ``None`` where the message is not in it.
    places: list[int | None]
    #: Rows whose message is another than that of their digest.
    edited: list[int]


def digest(text: str) -> str:
    """Digest of a message; it begins with a letter, so that no spreadsheet takes it for a number."""
    return f"m{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def match_log(table: Table, log: LabelledLog | None) -> Match:
    """Find the rows of a table in a log.

    The digest of the message tells which text it is; of equal texts, the number tells which row. Without a digest, the
    message does, white space and controls aside. Without a log, the message is the text.
    """
    nothing = [""] * len(table.rows)
    numbers, digests, written = (
        table.named_cells(name) if name in table.names else nothing for name in (ROW, DIGEST, MESSAGE)
    )
    if table.unit != "row":  # a workbook's cells are not guarded
        written = list(map(unguarded, written))
    if log is None:
        return Match(written, [None] * len(written), [])
    by_digest, by_text = defaultdict(list), defaultdict(list)
    for place, text in enumerate(log.texts):
        if text.strip():
            by_digest[digest(text)].append(place)
            by_text[_bare(text)].append(place)
    texts: list[str] = []
    places: list[int | None] = []
    edited = []
    for row, (number, name, message) in enumerate(zip(numbers, digests, written, strict=True)):
        found = by_digest.get(name, []) or (by_text.get(_bare(message), []) if message else [])
        exact = [place for place in found if str(log.numbers[place]) == number] or found
        places.append(exact[0] if exact else None)
        texts.append(log.texts[exact[0]] if exact else message)
        if exact and name in by_digest and MESSAGE in table.names and not _is_as_written(message, texts[-1]):
            edited.append(row)
    return Match(texts, places, edited)


def checked_match(table: Table, path: Path, log: LabelledLog | None, *, asks: bool) -> list[str]:
    """Texts of the rows of a table, empty for those that are not to be learned.

    Parameters
    ----------
    table : Table
        With a column ``digest`` or ``message``.
    path : Path
        Its file, for messages.
    log : LabelledLog or None
    asks : bool
        Whether what is not in the log is an error, and what was edited is left out.

    Raises
    ------
    ValueError
        If no message is in the log, or some are not and ``asks`` says so.

    Warns
    -----
    UserWarning
        If messages are other ones than their digests say, or without a log.
    """
    if log is None:
        if MESSAGE not in table.names:
            raise ValueError(f"{str(path)!r} holds no messages, but their digests; pass --log with the log.")
        if DIGEST in table.names:
            warn(f"Without --log, the messages are read as {str(path)!r} holds them; a log gives them to the letter.")
        return match_log(table, None).texts
    found = match_log(table, log)
    strangers = [row for row, place in enumerate(found.places) if place is None and _is_row(table, row, found)]
    if strangers and len(strangers) == sum(_is_row(table, row, found) for row in range(len(table.rows))):
        raise ValueError(
            f"No message of {str(path)!r} is in the log {str(log.path)!r}, for which its labels are to speak; pass the "
            "log that was reviewed, or leave --log out."
        )
    if strangers and asks:
        raise ValueError(
            f"{_counted(strangers)} of {str(path)!r} {'is' if len(strangers) == 1 else 'are'} not in the log "
            f"{str(log.path)!r}: {_shown(table, strangers, found, log)}; correct them, or pass --yes to learn them as "
            "they are."
        )
    if found.edited:
        what = "left out; put the texts back, or pass --yes to learn those of the log" if asks else "read as in the log"
        warn(
            f"{_counted(found.edited)} of {str(path)!r} {'is' if len(found.edited) == 1 else 'are'} not what their "
            f"digests say, and {what}: {_shown(table, found.edited, found, log)}.",
            LossWarning,
        )
    dropped = set(found.edited) if asks else set()
    return ["" if row in dropped else text for row, text in enumerate(found.texts)]


def _is_row(table: Table, row: int, found: Match) -> bool:
    return bool(found.texts[row]) or (DIGEST in table.names and bool(table.named_cells(DIGEST)[row]))


def _counted(rows: Sequence[int]) -> str:
    return numbered(len(rows), "message")


def _shown(table: Table, rows: Sequence[int], found: Match, log: LabelledLog) -> str:
    """Name the first rows, each with the message of the log that is nearest."""
    written = table.named_cells(MESSAGE) if MESSAGE in table.names else [""] * len(table.rows)
    parts = []
    for row in rows[:_MOST_SHOWN]:
        place = found.places[row]
        other = log.texts[place] if place is not None else _nearest(written[row], log.texts)
        what = "in the log" if place is not None else "nearest there"
        beside = f" ({what}: {shortened(other, _MOST_LETTERS)!r})" if other else ""
        parts.append(f"{table.unit} {table.numbers[row]} {shortened(written[row], _MOST_LETTERS)!r}{beside}")
    if rest := [str(table.numbers[row]) for row in rows[_MOST_SHOWN:]]:
        parts.append(f"and {table.unit}{'' if len(rest) == 1 else 's'} {', '.join(rest)}")
    return ", ".join(parts)


def _nearest(text: str, others: Sequence[str]) -> str:
    """Give the most similar text; empty if none is similar."""
    found = difflib.get_close_matches(text[:200], [other[:200] for other in others], n=1, cutoff=0.3)
    return found[0] if found else ""


def _is_as_written(message: str, text: str) -> bool:
    """Whether a cell holds a text, but for white space, controls, and what no cell or no code page holds."""
    are_equal = {_bare(message), _bare(unguarded(message))} & {_bare(text), _bare(as_cell(text))} != set()
    return are_equal or (set(_beyond(message)) <= set(_beyond(text)) and _worn(unguarded(message)) == _worn(text))


def _beyond(text: str) -> str:
    """Letters beyond ASCII."""
    return "".join(letter for letter in text if not letter.isascii())


def _worn(text: str) -> str:
    """Leave out what a spreadsheet writes as ? or without its accent, where the encoding of a CSV file lacks it."""
    return _bare(unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()).replace("?", "")


def _bare(text: str) -> str:
    """Leave out what spreadsheets change."""
    return "".join(letter for letter in text if not letter.isspace() and unicodedata.category(letter) not in _NOTHING)
