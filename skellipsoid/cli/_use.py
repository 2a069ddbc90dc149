"""A saved model as the commands use it: loaded, used once, and its predictions as records."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from errno import ENOENT
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.messages import cut, named, numbered
from .._core.pipelines import split_estimator
from .._core.spelling import refuse_other_spellings
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._encoders.text_features import TextFeatures
from .._encoders.torch.tokens import Tokenizer
from .._held_out.kept import held_out_of
from .._text_files.read import read_log, read_partly_labelled
from .._traffic.explain import explain
from .._traffic.predict_set import predict_set
from ..persistence._folder import CachedModel, shown
from ..persistence._load import find, load_with_manifest
from ._beside import FIRST_CALL, Predictor, UnreadNote
from ._given import read_by

_DIGITS = 4
#: Training texts that ``--explain`` prints for a line.
_N_NEIGHBORS = 2


def log_of_file(
    options: argparse.Namespace, classifier: Any
) -> tuple[list[str] | None, NDArray[np.object_] | None, dict[str, list[str]]]:
    """Read ``--data``: texts, labels with ``--label-column`` (``None`` where there is none), and the other columns."""
    if options.data is None:
        return None, None, {}
    if options.label_column is None:
        texts, _, columns = read_log(options.data, **read_by(options))
        return texts, None, columns
    known = {str(label): label for label in classifier.classes_.tolist()}
    texts, labels, columns = read_partly_labelled(
        options.data,
        label_column=options.label_column,
        kept={*known, str(classifier.open_label_)},
        **read_by(options),
    )
    if texts and not any(labels):
        raise ValueError(
            f"The column {options.label_column!r} of {str(options.data)!r} holds no label; label about 30 texts that "
            f"are drawn at random, those of no intent with {str(classifier.open_label_)!r}."
        )
    given = np.array([label for label in labels if label], dtype=str)
    refuse_other_spellings(given, classifier.classes_, classifier.open_label_)
    others = Counter(label for label in given.tolist() if label not in known)
    if others.keys() - {str(classifier.open_label_)}:
        print(f"{numbered(len(given), 'label')}, {others.total()} of them {open_because(others)}")
    y = [known.get(label, classifier.open_label_) if label else None for label in labels]
    return texts, np.array(y, dtype=object), columns


def open_because(others: Counter[str]) -> str:
    """Say which labels are open because the model does not know them."""
    counts = [f"{cut(label)!r} ({count})" for label, count in others.most_common()]
    return f"open, because the model does not know the {named('label', counts)}"


def weights_of(columns: dict[str, list[str]], labels: Any, path: Path | None) -> NDArray[np.float64] | None:
    """Weights of labels, by the column ``weight`` that ``review`` wrote; ``None`` where there is none."""
    if labels is None or "weight" not in columns:
        return None
    try:
        return np.array(
            [
                1.0 if label is None else float(cell.replace(",", "."))
                for cell, label in zip(columns["weight"], labels, strict=True)
            ]
        )
    except ValueError as error:
        raise ValueError(
            f"The column 'weight' of {str(path)!r} holds a cell that is no number; leave it as review wrote it."
        ) from error


def load_model(
    folder: Path, options: argparse.Namespace | None = None, *, is_used: bool = True
) -> tuple[Any, dict[str, Any]]:
    """Load a model that takes texts, and use it once; the second result is the manifest that it was loaded by.

    With the options of a command that leaves the model as it is, the model may be on the hub. A command that may refuse
    the model calls ``use_once`` itself: before it embeds a text, there is nothing to say about the processor.
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
    if is_used:
        use_once(pipeline, folder)
    return pipeline, manifest


def use_once(pipeline: Any, folder: Path) -> None:
    """Let a model predict, so that one that cannot is named."""
    with explained(f"The model in {str(folder)!r}"):
        pipeline.predict(FIRST_CALL)


def saved_predictor(options: argparse.Namespace) -> Predictor:
    """Load the saved model for ``predict``, with the columns that its options ask for."""
    pipeline, manifest = load_model(options.model, options)
    _check_explained(pipeline, options)
    classifier = split_estimator(pipeline)[1]
    scores = options.scores or (options.keep_columns and isinstance(classifier, EllipsoidOpenSetClassifier))
    n_neighbors = min(_N_NEIGHBORS if options.explain else int(options.keep_columns), len(_kept_texts(pipeline)))
    if not (scores or options.explain):
        n_neighbors = 0
    if options.ask:
        held_out_of(classifier, "--ask")  # or an error
    predict = partial(prediction_records, pipeline, scores=scores, n_neighbors=n_neighbors, asks=options.ask)
    tokenizer, note = tokenizer_of(pipeline), UnreadNote()

    def noted(lines: list[str]) -> Iterator[dict[str, Any]]:
        records = list(predict(lines))
        opened = [
            line for line, record in zip(lines, records, strict=True) if record["label"] == classifier.open_label_
        ]
        note(opened, tokenizer.counts(opened).readable <= 0)
        yield from records

    return Predictor(manifest["manifest_sha256"], classifier.open_label_, noted)


def tokenizer_of(pipeline: Any) -> Tokenizer:
    """Give the tokenizer of a model, which ``load_model`` has found to begin with an encoder."""
    encoder = next(step for step in split_estimator(pipeline)[0] if isinstance(step, TextFeatures))
    return Tokenizer.of_backbone(encoder._backbone)


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
    """Refuse a model whose predictions cannot be explained as the options ask."""
    classifier, folder = split_estimator(pipeline)[1], str(options.model)
    asked = [name for name in ("scores", "explain") if getattr(options, name)]
    if asked and not isinstance(classifier, EllipsoidOpenSetClassifier):
        msg = (
            f"--{asked[0]} explains ellipsoids, but the model in {folder!r} ends in a {type(classifier).__name__}; "
            f"leave --{asked[0]} out."
        )
    elif options.explain and not len(_kept_texts(pipeline)):
        msg = f"--explain prints training texts, but the model in {folder!r} holds none; use train --keep-texts."
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


def prediction_records(
    pipeline: Any, lines: list[str], *, scores: bool, n_neighbors: int, asks: bool = False
) -> Iterator[dict[str, Any]]:
    """Give one record for each line, its text last."""
    columns: dict[str, list[Any]] = {}
    if scores or n_neighbors:
        why = explain(pipeline, lines, n_axes=0, n_neighbors=n_neighbors)
        columns["label"] = why.answer.tolist()
    else:
        columns["label"] = pipeline.predict(lines).tolist()
    if scores:
        columns |= {
            "nearest_class": why.nearest_class.tolist(),
            "margin": np.round(why.margin.astype(np.float64), _DIGITS).tolist(),
            "p_value": np.round(why.p_value, _DIGITS).tolist() if "p_value" in why else [None] * len(lines),
            "runner_up": why.runner_up.tolist(),
            "unread": why.unread.tolist(),
        }
    for i in range(1, n_neighbors + 1):
        columns[f"neighbor_{i}"] = [shown(text) for text in why[f"neighbor_{i}"]]
        columns[f"neighbor_label_{i}"] = why.get(f"neighbor_label_{i}", np.full(len(lines), None)).tolist()
    if asks:
        found = predict_set(pipeline, lines)
        columns["action"] = found.action.tolist()
        is_empty = found.classes == split_estimator(pipeline)[1].open_label_
        offered = found.classes.astype(object)
        offered[is_empty] = None
        for i, names in enumerate(offered.T.tolist(), start=1):
            columns[f"candidate_{i}"] = names
    columns["text"] = lines
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))
