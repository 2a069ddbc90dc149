"""The commands that use a model: ``predict`` and ``evaluate``."""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from errno import ENOENT
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.messages import named
from .._core.pipelines import read_estimator, split_estimator
from .._core.texts import printable
from .._core.warn import warn
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._encoders.text_features import TextFeatures
from .._traffic.explain import explain
from ..metrics import open_set_report
from ..persistence._folder import CachedModel, shown
from ..persistence._load import find, load_with_manifest
from ..plotting._pictures import require_matplotlib, save_picture
from ._many_files import answer_files
from ._text_files.decode import decode_lines
from ._text_files.delimited import find_table
from ._text_files.read import PARQUET, read_log, read_partly_labelled, read_rows, read_table, read_texts
from ._text_files.write import write_rows
from ._trade_off import MEMBERS, tested_trade_off

#: Lines that ``predict`` labels at a time when they come from a file or a pipe.
_LINES = 1024
_DIGITS = 4
#: Names of the columns that answers add to a file, by those of ``--json``.
_ADDED = {
    "label": "answer",
    "margin": "margin",
    "p_value": "p_value",
    "nearest_class": "nearest_class",
    "neighbor_1": "nearest_text",
    "neighbor_label_1": "nearest_text_label",
}
#: What to do with a table on standard input.
_REMEDY = "pass the table as a file with --data, or only its column of texts"
#: Training texts that ``--explain`` prints for a line.
_N_NEIGHBORS = 2


def predict(options: argparse.Namespace) -> None:
    """Label lines from standard input, or the texts of a file."""
    _check_written(options)
    read = partial(
        read_rows if options.keep_columns else read_texts, text_column=options.text_column, encoding=options.encoding
    )
    given: Any = None
    if options.out is None:
        given = read(options.data) if options.keep_columns else texts_of_file(options)
    pipeline, manifest = load_model(options.model, options)
    _check_explained(pipeline, options)
    classifier = split_estimator(pipeline)[1]
    scores = options.scores or (options.keep_columns and isinstance(classifier, EllipsoidOpenSetClassifier))
    n_neighbors = min(_N_NEIGHBORS if options.explain else int(options.keep_columns), len(_kept_texts(pipeline)))
    if not (scores or options.explain):
        n_neighbors = 0
    answer = partial(_answer, pipeline, scores=scores, n_neighbors=n_neighbors)
    size = 1 if options.data is None and sys.stdin.isatty() else _LINES

    def records(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        for row, record in enumerate(chain.from_iterable(map(answer, _in_groups(lines, size)))):
            if not options.open_only or record["label"] == classifier.open_label_:
                yield row, record

    def answers(path: Path, given: Any) -> Iterator[str] | Iterator[bytes]:
        if not options.keep_columns:
            return (_written(record, as_json=options.json) for _, record in records(given))
        table, texts, _ = given
        added = ((row, _added(record)) for row, record in records(texts))
        return write_rows(path, table, _added(next(answer([""]))), added)

    if options.out is not None:
        answer_files(options, manifest["manifest_sha256"], lambda path: answers(path, read(path)))
        return
    if isinstance(sys.stdout, TextIOWrapper):
        # Whatever the locale says: no character may end the stream.
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="replace")
    written = _on_terminal if sys.stdout.isatty() else str
    if given is None:
        given = lines_of_input() if sys.stdin.isatty() else _noted(lines_of_input())
    for line in answers(options.data, given):
        print(written(line), flush=size == 1)


def _check_written(options: argparse.Namespace) -> None:
    """Refuse options that ``--out`` and ``--keep-columns`` have no use for."""
    others = [name for name in ("scores", "explain", "json") if getattr(options, name)]
    if options.out is not None and options.data is None:
        msg = "--out takes the answers to the files of --data; pass a file or a pattern, or leave --out out."
    elif not options.keep_columns:
        return
    elif options.data is None:
        msg = "--keep-columns keeps the columns of the file of --data; pass a file, or leave --keep-columns out."
    elif others:
        msg = f"--keep-columns writes all scores in the format of the file; leave --{others[0]} out."
    elif options.out is None and options.data.suffix.lower() in PARQUET:
        msg = "--keep-columns writes parquet to files alone; pass --out with a folder for them."
    else:
        return
    raise ValueError(msg)


def _added(record: dict[str, Any]) -> dict[str, Any]:
    """Columns that an answer adds to the row of a file."""
    return {name: record[key] for key, name in _ADDED.items() if key in record}


def _on_terminal(line: Any) -> str:
    """Escape what a terminal would obey; a file or a pipe gets the text as it is."""
    return re.sub(r"[^\t\n]+", lambda found: printable(found[0]), line)


def texts_of_file(options: argparse.Namespace) -> list[str] | None:
    """Texts of ``--data``; ``None`` if they come from standard input."""
    _check_data(options)
    if options.data is None:
        return None
    return read_texts(options.data, text_column=options.text_column, encoding=options.encoding)


def _check_data(options: argparse.Namespace) -> None:
    """Refuse options of a file without one."""
    if options.text_column is not None and options.data is None:
        raise ValueError("--text-column names a column of the file of --data; pass a file, or leave --text-column out.")
    if options.encoding is not None and options.data is None:
        raise ValueError("--encoding is that of the file of --data; pass a file, or leave --encoding out.")


def log_of_file(
    options: argparse.Namespace, classifier: Any
) -> tuple[list[str] | None, NDArray[np.object_] | None, dict[str, list[str]]]:
    """Texts of ``--data``, their labels with ``--label-column``, ``None`` where nobody has labelled, and the rest."""
    if options.label_column is None:
        _check_data(options)
        if options.data is None:
            return None, None, {}
        texts, _, columns = read_log(options.data, text_column=options.text_column, encoding=options.encoding)
        return texts, None, columns
    if options.data is None:
        raise ValueError("--label-column names a column of the file of --data; pass a file, or leave it out.")
    known = {str(label): label for label in classifier.classes_.tolist()}
    texts, labels, columns = read_partly_labelled(
        options.data,
        text_column=options.text_column,
        label_column=options.label_column,
        kept={*known, str(classifier.open_label_)},
        encoding=options.encoding,
    )
    if texts and not any(labels):
        raise ValueError(
            f"The column {options.label_column!r} of {str(options.data)!r} holds no label; label about 30 texts that "
            f"are drawn at random, those of no intent with {str(classifier.open_label_)!r}."
        )
    y = [known.get(label, classifier.open_label_) if label else None for label in labels]
    return texts, np.array(y, dtype=object), columns


def lines_of_input() -> Iterator[str]:
    """Lines of standard input."""
    return (line.rstrip("\r\n") for line in decode_lines(sys.stdin.buffer, _note_damaged, "The input"))


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


def _noted(lines: Iterator[str]) -> Iterator[str]:
    """Warn if lines of a pipe are a table: each is answered with all its cells."""
    first = list(islice(lines, _LINES))
    if table := find_table(first):
        warn(f"The input is {table}, and each line is answered as one text; {_REMEDY}.")
    return chain(first, lines)


def evaluate(options: argparse.Namespace) -> None:
    """Report on the texts of a file, and draw the confusion matrix."""
    if options.plot is not None:
        require_matplotlib("--plot")
    pipeline = load_model(options.model, options)[0]
    classifier = split_estimator(pipeline)[1]
    texts, labels = read_labelled(options, classifier)
    if not len(texts):
        raise ValueError(
            f"{str(options.data)!r} holds no row with both a text and a label; give it texts and their labels."
        )
    known = {str(label): label for label in classifier.classes_.tolist()}
    truth = np.array([known.get(label, classifier.open_label_) for label in labels.tolist()])
    others = Counter(label for label in labels.tolist() if label not in known)
    print(_describe(len(texts), others))
    classifier, features = read_estimator(pipeline, texts, MEMBERS, "evaluate")
    predicted = classifier.predict(features)
    print(f"\n{report(classifier, truth, predicted)}")
    advice = "choose one on other texts than you report on"
    if not options.quiet and (table := tested_trade_off(classifier, features, truth, advice)):
        print(f"\n{table}")
    if options.plot is not None:
        save_picture(options.plot, lambda: _draw(classifier, truth, predicted))
        print(f"\nThe confusion matrix is in {options.plot}")


def read_labelled(options: argparse.Namespace, classifier: Any) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Texts and labels of ``--data``; the labels of a model are none that mark missing values."""
    kept = {str(label) for label in [*classifier.classes_, classifier.open_label_]}
    columns = {"text_column": options.text_column, "label_column": options.label_column}
    found = read_table(options.data, **columns, kept=kept, encoding=options.encoding)
    return found.texts, found.labels


def report(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> str:
    """Format the open-set report; undefined values are nan, and averages leave them out."""
    found = _report(classifier, truth, predicted)
    return "\n".join(map(printable, str(found).split("\n")))  # labels of a model may hold anything


def metrics(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, float]:
    """Give the numbers of the report that are not of single classes; undefined ones are left out."""
    found = _report(classifier, truth, predicted, output_dict=True)
    return {name: value for name, value in found.items() if isinstance(value, float) and np.isfinite(value)}


def _report(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any], **options: Any) -> Any:
    named = {"open_label": classifier.open_label_, "labels": classifier.classes_, "zero_division": np.nan}
    return open_set_report(truth, predicted, **named, **options)


def load_model(folder: Path, options: argparse.Namespace | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a model that takes texts, and use it once; the second result is the manifest that it was loaded by.

    With the options of a command that leaves the model as it is, the model may be on the hub.
    """
    with explained(f"The model in {str(folder)!r}", OSError, ValueError):
        source: Path | CachedModel = folder
        if options is not None:
            with _without_bars() if options.quiet else nullcontext():
                source = find(folder.as_posix(), getattr(options, "revision", None))
        pipeline, manifest = load_with_manifest(source)
    encoders = [step for step in split_estimator(pipeline)[0] if isinstance(step, TextFeatures)]
    if not encoders or not hasattr(pipeline, "predict"):
        raise ValueError(
            f"The model in {str(folder)!r} does not take texts; save a Pipeline of encoder and classifier."
        )
    with explained(f"The model in {str(folder)!r}"):
        pipeline.predict(["the first call builds the text model"])
    return pipeline, manifest


@contextmanager
def _without_bars() -> Iterator[None]:
    """Hide the bars of downloads."""
    from huggingface_hub import utils

    hub: Any = utils  # its functions carry no types
    were_hidden = hub.are_progress_bars_disabled()
    hub.disable_progress_bars()
    try:
        yield
    finally:
        if not were_hidden:
            hub.enable_progress_bars()


def _check_explained(pipeline: Any, options: argparse.Namespace) -> None:
    """Refuse a model whose answers cannot be explained as they are to be."""
    classifier, folder = split_estimator(pipeline)[1], str(options.model)
    asked = [name for name in ("scores", "explain") if getattr(options, name)]
    if asked and not isinstance(classifier, EllipsoidOpenSetClassifier):
        msg = (
            f"--{asked[0]} explains ellipsoids, but the model in {folder!r} ends in a {type(classifier).__name__}; "
            f"leave --{asked[0]} out."
        )
    elif options.explain and not len(_kept_texts(pipeline)):
        msg = f"--explain prints training texts, but the model in {folder!r} holds none; train it with --keep-texts."
    else:
        return
    raise ValueError(msg)


def _kept_texts(pipeline: Any) -> Sequence[str]:
    """Training texts that the first step of a model has kept."""
    found: Sequence[str] = getattr(split_estimator(pipeline)[0][0], "training_texts_", ())
    return found


@contextmanager
def explained(what: str, *sentences: type[Exception]) -> Iterator[None]:
    """Turn any error of a damaged model into one sentence: the libraries that read its files raise many types.

    Nothing but the first use of a model belongs inside, so that a bug elsewhere keeps its traceback.

    Parameters
    ----------
    what : str
        What is read.
    *sentences : type
        Errors that are sentences already.
    """
    try:
        yield
    except Exception as error:
        is_of_machine = isinstance(error, OSError) and error.errno not in (None, ENOENT)  # such as a full disk
        if is_of_machine or isinstance(error, (MemoryError, *sentences)):
            raise
        first = str(error).partition("\n")[0].partition(". ")[0]  # transformers and torch write paragraphs
        reason = f"{type(error).__name__}: {first.strip(' .:!')}"
        raise ValueError(
            f"{what} cannot be used ({reason}); take a complete copy of it, make it again, or load it in Python to see "
            "where it fails."
        ) from error


def _note_damaged(number: int) -> None:
    warn(f"Line {number} is not UTF-8; what cannot be read in it is replaced by \ufffd.")


def _in_groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while group := list(islice(iterator, size)):
        yield group


def _answer(pipeline: Any, lines: list[str], *, scores: bool, n_neighbors: int) -> Iterator[dict[str, Any]]:
    """Give one record for each line, its text last."""
    if not (scores or n_neighbors):
        for label, line in zip(pipeline.predict(lines).tolist(), lines, strict=True):
            yield {"label": label, "text": line}
        return
    why = explain(pipeline, lines, n_axes=0, n_neighbors=n_neighbors)
    columns: dict[str, list[Any]] = {"label": why.answer.tolist()}
    if scores:
        columns |= {
            "nearest_class": why.nearest_class.tolist(),
            "margin": np.round(why.margin.astype(np.float64), _DIGITS).tolist(),
            "p_value": np.round(why.p_value, _DIGITS).tolist() if "p_value" in why else [None] * len(lines),
            "runner_up": why.runner_up.tolist(),
        }
    for i in range(1, n_neighbors + 1):
        columns[f"neighbor_{i}"] = [shown(text) for text in why[f"neighbor_{i}"]]
        columns[f"neighbor_label_{i}"] = why.get(f"neighbor_label_{i}", np.full(len(lines), None)).tolist()
    columns["text"] = lines
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _written(record: dict[str, Any], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(record, ensure_ascii=False)
    *others, text = record.values()
    text = re.sub(r"[\r\n]+", " ", text)  # a text of a file may have several lines
    return "\t".join([*("" if value is None else printable(value) for value in others), text])


def _describe(n_texts: int, others: Counter[str]) -> str:
    if not others:
        return f"{n_texts} texts, all of intents that the model knows: open rejection is not measured"
    counts = [f"{label!r} ({count})" for label, count in others.most_common()]
    return (
        f"{n_texts} texts, {others.total()} of them open, because the model does not know the {named('label', counts)}"
    )


def _draw(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> Any:
    """Draw the confusion matrix."""
    from ..plotting import OpenSetConfusionMatrixDisplay

    display = OpenSetConfusionMatrixDisplay.from_predictions(
        truth, predicted, open_label=classifier.open_label_, labels=classifier.classes_
    )
    return display.figure_.figure
