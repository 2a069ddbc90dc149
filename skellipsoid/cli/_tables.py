"""Texts and labels from files: one reader for tab-separated and comma-separated ones, and an honest split."""

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from .._engine.training import held_out_rows
from .._pipelines import duplicate_groups

#: Share of each label's distinct texts that is test, and of the intents that are held out as open.
_TEST_SHARE, _OPEN_SHARE = 0.25, 0.2
#: Lines or labels that a message names at most, and letters of a line that it shows.
_MOST_NAMED, _MOST_LETTERS = 5, 100


class Split(NamedTuple):
    """Texts to learn from, texts to judge the result by, and what to say about them."""

    train: NDArray[np.object_]
    train_labels: NDArray[Any]
    test: NDArray[np.object_]
    test_labels: NDArray[Any]
    note: str
    #: What the test cannot measure, a sentence each.
    gaps: list[str]


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
        msg = f"--data {str(path)!r} cannot be read ({error.strerror}); pass a file of texts and labels."
        raise OSError(msg) from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        msg = f"{str(path)!r} is UTF-16 text, but must be UTF-8; save it as UTF-8."
        raise ValueError(msg)
    damaged: list[int] = []
    # Not splitlines of a str: a text may hold what Unicode calls a line separator.
    lines = decode_lines(content.splitlines(keepends=True), damaged.append)
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


def decode_lines(lines: Iterable[bytes], on_damaged: Callable[[int], object]) -> Iterator[str]:
    """Decode lines of UTF-8; ``on_damaged`` is called with the number of each that is not, U+FFFD in its place."""
    for number, line in enumerate(lines, start=1):
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
                f"Line {number} of {str(path)!r} is {shown!r}, but every line must be a text, one {what} and a label"
                f"{'; put quotes around a text that holds a comma' if is_csv else ''}."
            )
            raise ValueError(msg)
        yield number, fields


def split_table(texts: NDArray[np.object_], labels: NDArray[Any], open_label: str, seed: int) -> Split:
    """Split a user's table for an honest report: a quarter of each label's distinct texts is test.

    Copies of a text, whatever their labels, are on one side. Every intent keeps a text to learn from. Where no row is
    labelled open, a fifth of the intents is held out as open, if two remain: they are in the test rows alone.
    """
    intents, codes = np.unique(labels, return_inverse=True)
    found = duplicate_groups(texts, np.zeros(len(texts)))
    groups = np.arange(len(texts)) if found is None else found
    is_intent = intents != open_label
    n_texts = np.array([len(np.unique(groups[codes == k])) for k in range(len(intents))])
    rng = np.random.default_rng(seed)
    unknown: NDArray[Any] = intents[:0]
    if is_intent.all():
        testable = intents[n_texts > 1]
        most = min(len(intents) - 2, len(testable) - 1)  # two to tell apart, one of them to test
        n_unknown = min(max(1, int(_OPEN_SHARE * len(intents))), max(0, most))
        unknown = np.sort(rng.choice(testable, n_unknown, replace=False))
    is_test = held_out_rows(codes, _TEST_SHARE, rng, groups)
    is_unknown = np.isin(labels, unknown)
    train = ~is_test & ~is_unknown
    width = max(labels.dtype.itemsize // 4, len(open_label))
    truth = np.where(is_unknown, open_label, labels.astype(f"<U{width}"))[is_test]
    n_open = int((truth == open_label).sum())
    known = np.setdiff1d(intents[is_intent], unknown)
    what = f"open rows are labelled {open_label!r}"
    if is_intent.all():
        what = f"held out as open: {', '.join(unknown)}" if len(unknown) else "no intent is held out as open"
    note = (
        f"{len(known)} known intents, {train.sum()} training texts, {is_test.sum()} test texts ({n_open} open); {what}"
    )
    gaps = _gaps(known, truth, n_open, open_label)
    return Split(texts[train], labels[train], texts[is_test], truth, note, gaps)


def _gaps(known: NDArray[Any], truth: NDArray[Any], n_open: int, open_label: str) -> list[str]:
    gaps = []
    untested = known[~np.isin(known, truth)].tolist()
    if untested:
        only = "its only text trains" if len(untested) == 1 else "the only text of each trains"
        gaps.append(f"Not tested: {named('intent', [repr(name) for name in untested])}, because {only}.")
    if not n_open:
        gaps.append(
            "Open rejection is not measured, because no test text is open: label open texts "
            f"{open_label!r}, or gather at least three intents of several texts."
        )
    return gaps


def named(noun: str, things: list[Any]) -> str:
    """Name the first things, and say how many more there are."""
    named = ", ".join(map(str, things[:_MOST_NAMED]))
    more = f" and {len(things) - _MOST_NAMED} more" if len(things) > _MOST_NAMED else ""
    return f"{noun}{'' if len(things) == 1 else 's'} {named}{more}"
