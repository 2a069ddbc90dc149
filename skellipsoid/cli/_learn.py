"""The commands ``review``, which samples messages of a log to label, and ``learn``, which updates the model by them."""

import argparse
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skellipsoid_runtime._answers import ASK

from .._core.characters import is_visible, printable
from .._core.files import unused_name
from .._core.messages import named, numbered
from .._core.pipelines import read_estimator, split_estimator
from .._core.validation import enumerated
from .._core.warn import warn
from .._data_check.readable import find_unread, unread_message
from .._encoders.text_features import TextFeatures, embedding_once
from .._text_files.columns import check_single
from .._text_files.match_log import DIGEST, MESSAGE, ROW, LabelledLog, checked_match
from .._text_files.read import accepted_labels, check_cells, read_file, read_rows
from .._text_files.workbooks.write_workbook import chosen_label
from .._traffic.explain import nearest_of_classes
from .._traffic.learning import choose_to_label, learn_from_traffic
from .._traffic.log import MEMBERS, SHIFTED
from .._traffic.predict_set import first_classes, predict_set, zones_of
from .._traffic.share import said_of_trained
from ._ahead import check_unlabelled
from ._change import check_names, save_where_asked
from ._given import lines_of_input, read_by, with_content
from ._pages.page import SUFFIX as PAGE
from ._pages.page import saved_by
from ._reviewed import COLUMNS, Chosen, learn_command, one_line, write_chosen
from ._trade_off import before_and_after
from ._use import load_model, prediction_records, tokenizer_of, weights_of


@embedding_once()
def review(options: argparse.Namespace) -> None:
    """Write messages of a log to a labelling file."""
    model = load_model(options.model, options)[0]
    names, cells, texts, numbers = _log(options)
    if not texts:
        raise ValueError("There is no text to review; pass a log with one message a line, or a file with --data.")
    found = choose_to_label(model, texts, options.n)
    chosen = _chosen(model, [texts[row] for row in found.rows], with_neighbours=not options.no_neighbours)
    chosen = [
        # A whole number: some spreadsheets read a number with a point as a date.
        each._replace(number=numbers[row], cells=cells[row], weight=round(1000 * weight))
        for each, row, weight in zip(chosen, found.rows, found.weights, strict=True)
    ]
    check_unlabelled(options.save)  # somebody may have labelled them meanwhile
    write_chosen(options, model, names, chosen)
    print(f"{numbered(len(chosen), 'message')} of {len(texts)} are in {options.save}; {_how(options, model)}")
    if not options.no_neighbours and not any(each.neighbor for each in chosen):
        warn("No training text stands beside the messages, since the model keeps none; train --keep-texts keeps them.")


def _how(options: argparse.Namespace, model: Any) -> str:
    """Say how the messages are labelled."""
    opened = printable(repr(str(split_estimator(model)[1].open_label_)))
    if options.save.suffix.lower() == PAGE:
        how = f"open it in a browser, label, and save {saved_by(options.save)}"
    else:
        how = f"fill in the column label, {opened} for a message of no intent"
    return f"{how}. Then run:\n{printable(learn_command(options))}"


def _chosen(model: Any, texts: list[str], *, with_neighbours: bool) -> list[Chosen]:
    """Give the messages with the prediction, the candidates and the nearest training texts."""
    classifier, features = read_estimator(model, texts, MEMBERS, "review")
    candidates = classifier.classes_[first_classes(classifier, features)[0]]
    is_asked = np.zeros(len(texts), dtype=bool)
    if zones_of(classifier) is not None:
        is_asked = predict_set(classifier, features).action == ASK
    encoder = split_estimator(model)[0][0]
    keeps = with_neighbours and isinstance(encoder, TextFeatures) and len(getattr(encoder, "training_texts_", ())) > 0
    records = prediction_records(model, texts, scores=False, n_neighbors=int(keeps))
    nearest = nearest_of_classes(model, texts, candidates) if keeps else np.full(candidates.shape, "")
    return [
        Chosen(None, text, "" if asked else record["label"], names, of_names, record.get("neighbor_1", ""), 0, [])
        for text, asked, record, names, of_names in zip(
            texts, is_asked.tolist(), records, candidates.tolist(), nearest.tolist(), strict=True
        )
    ]


def _log(options: argparse.Namespace) -> tuple[list[str], list[list[Any]], list[str], list[Any]]:
    """Read a log: names and cells of its other columns, its texts, and the numbers of its rows."""
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
    """Learn from a labelling file, and from the log that it was drawn from."""
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
    _say_unread(model, texts, options)
    with warnings.catch_warnings(record=True) as notes:
        learned = learn_from_traffic(model, X, y, sample_weight=weights, picked=options.picks)
    for note in notes:
        warnings.warn(note.message, note.category, stacklevel=1)
    folder = save_where_asked(learned, manifest, options)
    has_moved = any(SHIFTED in str(note.message) for note in notes)  # with the same two figures
    print(*_told(split_estimator(learned)[1], len(others) - n_copies, folder, has_moved=has_moved), sep="\n")


def _say_unread(model: Any, texts: list[str], options: argparse.Namespace) -> None:
    """Warn of labelled messages that the embedding model cannot read, and of a language that it hardly knows."""
    tokenizer = tokenizer_of(model)
    found = find_unread(texts, tokenizer.counts(texts), len(tokenizer.tokenizer))
    if found.rows:
        warn(unread_message(repr(str(options.data)), [texts[row] for row in found.rows]))
    if found.language:
        warn(found.language)


def _reviewed(
    options: argparse.Namespace, classifier: Any, log: LabelledLog | None
) -> tuple[list[str], NDArray[np.object_], NDArray[np.float64] | None]:
    """Read a labelling file: messages, their labels, ``None`` where there is none, and their weights."""
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
    check_single(table, path, message, "label", "weight", ROW, DIGEST)
    places = [table.names.index(name) for name in (message, "label")]
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
    if "skipped" in table.names:
        _say_skipped(table.named_cells("skipped").count("True"), sum(map(bool, labels)))
    columns = {"weight": table.named_cells("weight")} if "weight" in table.names else {}
    weights = weights_of(columns, y, path)
    texts = checked_match(table, path, log, asks=not options.yes)
    rows = [row for row, text in enumerate(texts) if is_visible(text)]
    return (
        [texts[row] for row in rows],
        np.array([y[row] for row in rows], dtype=object),
        None if weights is None else weights[rows],
    )


def _say_skipped(n_skipped: int, n_labelled: int) -> None:
    if n_skipped:
        percent = 100 * n_skipped / (n_skipped + n_labelled)
        print(
            f"{numbered(n_skipped, 'message')} of {n_skipped + n_labelled} {'was' if n_skipped == 1 else 'were'} "
            f"skipped: the proportion of open messages may be off by as much, {percent:.0f} points."
        )


def _beside(log: list[str], reviewed: list[str]) -> tuple[list[str], int]:
    """Give the messages of the log that were not reviewed, and how many of them are copies of a reviewed one."""
    left, found, n_copies = Counter(map(one_line, reviewed)), [], 0
    for text in filter(str.strip, log):
        name = one_line(text)
        if left.get(name, 0) > 0:  # the one that was reviewed
            left[name] -= 1
            continue
        n_copies += name in left
        found.append(text)
    return found, n_copies


def _told(classifier: Any, n_others: int, folder: Path, *, has_moved: bool) -> list[str]:
    """Write what was learned: counts, the proportion of open messages, and the forecasts before and after."""
    change, learned = classifier.changes_[-1], classifier.traffic_
    n_learned, others = change["n_samples"], "other " if change["n_trained"] else ""
    n_open = int(np.sum(classifier._learned.labels[-n_learned:] == classifier.open_label_))
    new = f", new is {enumerated(np.array(change['classes']))}" if change["classes"] else ""
    lines = [
        f"Learned {numbered(n_learned, 'message')}, {n_open} of them open, beside {n_others} without a label. The "
        f"model in {folder} knows {len(classifier.classes_)} classes{new}.",
        f"Between {100 * learned['low']:.0f} and {100 * learned['high']:.0f} % of the {others}messages are open.",
    ]
    if said := said_of_trained(change["n_trained"]):
        lines.append(said)
    if change["rejected"] is not None and not has_moved:
        lines.append(
            f"Of the labelled known messages {100 * change['rejected']:.0f} % were handed over; "
            f"{100 * change['foretold']:.0f} % of the training texts were."
        )
    if not n_others:
        lines.append("This forecast uses these labels alone; with --log it uses the log, too.")
    return [*lines, before_and_after(change["before"], change["after"])]
