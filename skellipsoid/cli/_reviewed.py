"""The labelling file of ``review``: a workbook, a table of text, or an HTML page."""

import argparse
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from .._core.files import write_spreadsheet
from .._core.pipelines import split_estimator
from .._text_files.match_log import DIGEST, MESSAGE, ROW, digest
from .._text_files.workbooks.write_workbook import SUFFIX, Sheet, write_workbook
from .._traffic.learning import FEWEST_OF_NEW
from ._pages.page import SUFFIX as PAGE
from ._pages.page import saved_by, write_page

#: Columns before those of the log: first what is read and filled in.
_NEAREST = tuple(f"nearest_class_{i}" for i in (1, 2, 3))
COLUMNS = (MESSAGE, "label", "proposed_label", *_NEAREST, "nearest_text", "review_number", "weight", ROW, DIGEST)


class Chosen(NamedTuple):
    """A message that is to be labelled."""

    #: Its number in the log, as messages name it.
    number: Any
    text: str
    #: What the model proposes, empty where it would ask.
    proposed: Any
    #: At most three classes, the likeliest first.
    candidates: list[Any]
    #: The training text of each of them that is nearest; empty where the model keeps none.
    nearest: list[str]
    #: The nearest training text of all; else empty.
    neighbor: str
    weight: int
    #: Cells of the other columns of the log.
    cells: list[Any]


def write_chosen(options: argparse.Namespace, model: Any, names: list[str], chosen: list[Chosen]) -> None:
    """Write the messages to the file of ``--save``; ``names`` are those of the other columns of the log."""
    classifier = split_estimator(model)[1]
    if options.save.suffix.lower() == PAGE:
        _write_page(options, classifier, chosen)
        return
    rows = [
        [
            each.text,
            "",
            each.proposed,
            *each.candidates,
            *[""] * (len(_NEAREST) - len(each.candidates)),
            each.neighbor,
            number,
            each.weight,
            each.number,
            digest(each.text),
            *each.cells,
        ]
        for number, each in enumerate(chosen, start=1)
    ]
    _write_rows(options.save, [*COLUMNS, *names], rows, classifier)


def _write_rows(path: Path, names: list[str], rows: list[list[Any]], classifier: Any) -> None:
    """Write the messages, and the labels that they can get: in one workbook, or in two files."""
    classes, opened = classifier.classes_.tolist(), classifier.open_label_
    if path.suffix.lower() == SUFFIX:
        sheet = Sheet("review", names, rows, wide=["message", "nearest_text"])
        write_workbook(path, [sheet], [opened, *classes])
        return
    long = {names.index(name) for name in ("message", "nearest_text")}
    write_spreadsheet(
        path, names, [[one_line(cell) if i in long else cell for i, cell in enumerate(row)] for row in rows]
    )
    labels = path.with_name(f"{path.stem}-labels{path.suffix}")
    write_spreadsheet(labels, ["label"], [[label] for label in [*classes, opened]])


def _write_page(options: argparse.Namespace, classifier: Any, chosen: list[Chosen]) -> None:
    given = "messages of users" + (" and training texts" if any(any(each.nearest) for each in chosen) else "")
    data = {
        "saves": saved_by(options.save),
        "next": learn_command(options),
        "notice": f"This page holds {given}: give it to those alone who may read them. It sends nothing.",
        "open": str(classifier.open_label_),
        "classes": list(map(str, classifier.classes_.tolist())),
        "numbers": not isinstance(classifier.open_label_, str),
        "fewest": FEWEST_OF_NEW,
        "messages": [
            {
                "row": each.number,
                "digest": digest(each.text),
                "text": each.text,
                "weight": each.weight,
                "candidates": list(map(str, each.candidates)),
                "nearest": each.nearest,
            }
            for each in chosen
        ],
    }
    write_page(options.save, "review", f"{len(chosen)} messages to label", data)


def learn_command(options: argparse.Namespace) -> str:
    """Write the command that learns from the labelling file; ``LOG`` stands for a log of standard input."""
    labels = saved_by(options.save) if options.save.suffix.lower() == PAGE else options.save
    log = "LOG" if options.data is None else options.data
    words = ["skellipsoid", "learn", "--model", options.model, "--data", labels, "--log", log]
    words += ["--text-column", options.text_column] if options.text_column else []
    words += [part for sheet in options.sheet for part in ("--sheet", sheet)]
    words += ["--encoding", options.encoding] if options.encoding else []
    return shlex.join(map(str, words))


def one_line(text: str) -> str:
    """Give a text without line breaks, which a cell of a table of text lacks."""
    return " ".join(str(text).split())
