"""The commands of the first hour in production: ``review`` gives messages to label, ``learn`` takes the labels."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.files import unused_name, write_sheet
from .._core.messages import named, numbered
from .._core.pipelines import read_estimator, split_estimator
from .._core.validation import enumerated
from .._encoders.text_features import TextFeatures
from .._traffic.learning import choose_to_label, learn_from_traffic
from .._traffic.log import MEMBERS
from .._traffic.predict_set import ASK, first_classes, predict_set, zones_of
from .._traffic.share import said_of_trained
from ._ahead import check_unlabelled
from ._change import check_names, save_where_asked
from ._given import lines_of_input, read_by, with_content
from ._text_files.columns import find_column
from ._text_files.match_log import DIGEST, MESSAGE, ROW, LabelledLog, checked_match, digest
from ._text_files.read import accepted_labels, check_cells, read_file, read_rows
from ._text_files.workbooks.write_workbook import SUFFIX, Sheet, chosen_label, write_workbook
from ._trade_off import before_and_after
from ._use import answered, load_model, weights_of

#: Columns that ``review`` writes before those of the log: first what is read and filled in.
_NEAREST = tuple(f"nearest_class_{i}" for i in (1, 2, 3))
COLUMNS = ("message", "label", "proposed_label", *_NEAREST, "nearest_text", "review_number", "weight", ROW, DIGEST)


def review(options: argparse.Namespace) -> None:
    """Write messages of a log to a file, to be labelled."""
    model = load_model(options.model, options)[0]
    names, cells, texts, numbers = _log(options)
    if not texts:
        raise ValueError("There is no text to review; pass a log with one message a line, or a file with --data.")
    chosen = choose_to_label(model, texts, options.n)
    encoder = split_estimator(model)[0][0]
    keeps = isinstance(encoder, TextFeatures) and len(getattr(encoder, "training_texts_", ())) > 0
    answers = list(answered(model, [texts[row] for row in chosen.rows], scores=False, n_neighbors=int(keeps)))
    candidates, is_asked = _candidates(model, [texts[row] for row in chosen.rows])
    rows = [
        [
            texts[row],
            "",
            "" if is_asked[number - 1] else answer["label"],
            *candidates[number - 1],
            answer.get("neighbor_1", ""),
            number,
            round(1000 * weight),  # a whole number: what has a point is a date to some spreadsheets
            numbers[row],
            digest(texts[row]),
            *cells[row],
        ]
        for number, (row, answer, weight) in enumerate(zip(chosen.rows, answers, chosen.weights, strict=True), start=1)
    ]
    check_unlabelled(options.save)  # somebody may have labelled them meanwhile
    classifier = split_estimator(model)[1]
    _write_review(options.save, [*COLUMNS, *names], rows, classifier)
    opened = printable(repr(str(classifier.open_label_)))
    print(
        f"{numbered(len(rows), 'message')} of {len(texts)} are in {options.save}; fill in the column label, {opened} "
        "for a message of no intent, and pass the file to skellipsoid learn."
    )


def _write_review(path: Path, names: list[str], rows: list[list[Any]], classifier: Any) -> None:
    """Write the messages, and the labels that they can get: in one workbook, or in two files."""
    classes, opened = classifier.classes_.tolist(), classifier.open_label_
    if path.suffix.lower() == SUFFIX:
        sheet = Sheet("review", names, rows, wide=["message", "nearest_text"])
        write_workbook(path, [sheet], [opened, *classes])
        return
    long = {names.index(name) for name in ("message", "nearest_text")}
    write_sheet(path, names, [[_one_line(cell) if i in long else cell for i, cell in enumerate(row)] for row in rows])
    labels = path.with_name(f"{path.stem}-labels{path.suffix}")
    write_sheet(labels, ["label"], [[label] for label in [*classes, opened]])


def _candidates(model: Any, texts: list[str]) -> tuple[list[list[Any]], NDArray[np.bool_]]:
    """Three classes that each text may be of, the likeliest first; empty where there are fewer. And where to ask."""
    classifier, features = read_estimator(model, texts, MEMBERS, "review")
    order = first_classes(classifier, features)[0]
    empty = [""] * (len(_NEAREST) - order.shape[1])
    is_asked = np.zeros(len(texts), dtype=bool)
    if zones_of(classifier) is not None:
        is_asked = predict_set(classifier, features).action == ASK
    return [[*classifier.classes_[codes].tolist(), *empty] for codes in order], is_asked


def _log(options: argparse.Namespace) -> tuple[list[str], list[list[Any]], list[str], list[Any]]:
    """Names and cells of the columns of a log but that of its texts, its texts, and the numbers of its rows."""
    if options.data is None:
        lines = list(lines_of_input())
        texts = with_content(lines)
        return [], [[] for _ in texts], texts, [i for i, line in enumerate(lines, start=1) if line.strip()]
    table, texts, column = read_rows(options.data, **read_by(options))
    rows = [row for row, text in enumerate(texts) if text.strip()]
    others = [i for i in range(table.n_columns) if i != column]
    names = [table.names[i] if table.names else f"column_{i + 1}" for i in others]
    names = [unused_name(f"log_{name}", {*names, *COLUMNS}) if name in COLUMNS else name for name in names]
    cells = [[table.rows[row][i] for i in others] for row in rows]
    return names, cells, [texts[row] for row in rows], [table.numbers[row] for row in rows]


def learn(options: argparse.Namespace) -> None:
    """Learn from a reviewed file, and from the log that it is of."""
    model, manifest = load_model(options.model)
    classifier = split_estimator(model)[1]
    log = None
    if options.log is not None:
        rows, read, _ = read_rows(options.log, **read_by(options))
        log = LabelledLog(options.log, read, rows.numbers)
    texts, y, weights = _reviewed(options, classifier, log)
    if all(label is None for label in y.tolist()):
        raise ValueError(
            f"No message that {str(options.data)!r} labels is as it was written; put the texts back, or pass --yes."
        )
    others, n_copies = ([], 0) if log is None else _beside(log.texts, texts)
    X = [*texts, *others]
    y = np.append(y, np.full(len(others), None))
    weights = None if weights is None else np.append(weights, np.ones(len(others)))
    weights = None if options.picks else weights
    learned = learn_from_traffic(model, X, y, sample_weight=weights, picked=options.picks)
    folder = save_where_asked(learned, manifest, options)
    print(*_told(split_estimator(learned)[1], len(others) - n_copies, folder), sep="\n")


def _reviewed(
    options: argparse.Namespace, classifier: Any, log: LabelledLog | None
) -> tuple[list[str], NDArray[np.object_], NDArray[np.float64] | None]:
    """Messages of a reviewed file, their labels, ``None`` where there is none, and their weights."""
    path, known = options.data, {str(label): label for label in classifier.classes_.tolist()}
    kept = {*known, str(classifier.open_label_)}
    familiar = kept if log is None else kept.union(log.texts)
    table = read_file(path, "message", "label", encoding=options.encoding, is_partial=True, familiar=familiar)
    message = MESSAGE if MESSAGE in table.names or DIGEST not in table.names else DIGEST
    missing = [name for name in (message, "label") if name not in table.names]
    if missing:
        raise ValueError(
            f"{str(path)!r} lacks the {named('column', missing)}; pass a file that skellipsoid review wrote, or give a "
            "table of messages these names of columns."
        )
    places = [find_column(table, path, name, "The column") for name in (message, "label")]
    for column in places if log is None or DIGEST not in table.names else places[1:]:
        check_cells(table, path, column, kept)
    labels = accepted_labels(table, path, places[0], places[1], kept)
    labels = [chosen_label(label, classifier.open_label_) for label in labels]
    if not any(labels):
        raise ValueError(f"The column 'label' of {str(path)!r} is empty; fill in the labels of the messages.")
    check_names(classifier, np.array([label for label in labels if label], dtype=str), asks=not options.yes)
    is_text = isinstance(classifier.open_label_, str)
    try:
        y = [None if not label else known.get(label, label if is_text else int(label)) for label in labels]
    except ValueError as error:
        raise ValueError(
            f"The column 'label' of {str(path)!r} holds a label that is no whole number, but the labels of the model "
            "are numbers; write the number of an intent, or the open label."
        ) from error
    columns = {"weight": table.named_cells("weight")} if "weight" in table.names else {}
    weights = weights_of(columns, y, path)
    texts = checked_match(table, path, log, asks=not options.yes)
    rows = [row for row, text in enumerate(texts) if text]
    return (
        [texts[row] for row in rows],
        np.array([y[row] for row in rows], dtype=object),
        None if weights is None else weights[rows],
    )


def _beside(log: list[str], reviewed: list[str]) -> tuple[list[str], int]:
    """Messages of the log beside those of the review, and how many of them are copies of one of these."""
    left, found, n_copies = Counter(map(_one_line, reviewed)), [], 0
    for text in filter(str.strip, log):
        name = _one_line(text)
        if left.get(name, 0) > 0:  # the one that was reviewed
            left[name] -= 1
            continue
        n_copies += name in left
        found.append(text)
    return found, n_copies


def _told(classifier: Any, n_others: int, folder: Path) -> list[str]:
    """Say what was learned, in numbers that can be checked."""
    change, learned = classifier.changes_[-1], classifier.traffic_
    n_learned, others = change["n_samples"], "other " if change["n_trained"] else ""
    n_open = int(np.sum(classifier._learned.labels[-n_learned:] == classifier.open_label_))
    new = f", new is {enumerated(np.array(change['classes']))}" if change["classes"] else ""
    lines = [
        f"Learned {numbered(n_learned, 'message')}, {n_open} of them open, beside {n_others} without a label. The "
        f"model in {folder} knows {len(classifier.classes_)} classes{new}.",
        f"Between {100 * learned['low']:.0f} and {100 * learned['high']:.0f} % of the {others}messages are new.",
    ]
    if said := said_of_trained(change["n_trained"]):
        lines.append(said)
    if change["rejected"] is not None:
        lines.append(
            f"Of the labelled known messages {100 * change['rejected']:.0f} % went to a person; "
            f"{100 * change['foretold']:.0f} % of the training samples did."
        )
    return [*lines, before_and_after(change["before"], change["after"])]


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
