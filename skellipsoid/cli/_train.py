"""The commands that train: ``demo`` and ``train``."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter, warn

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .. import (
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    TunedOperatingPointCV,
    check_training_texts,
    datasets,
    explain,
    save,
)
from .._engine.training import held_out_rows
from .._pipelines import duplicate_groups
from .._text_files import read_table
from ..persistence._folder import read_manifest
from ._options import OPEN_LABEL
from ._tables import Split, split_table
from ._use import explained, report

_SENTENCES = (
    "where is my parcel",
    "wake me up at half past six",
    "could you turn the lights down a little",
    "how many hours of sleep do I need",
    "what does it cost to send a parcel to Spain",
    "tell me a joke",
)
#: Share of each intent's texts that sets the operating point.
_TUNING_SHARE = 0.2
#: Findings of one kind that are printed at most.
_MOST_SHOWN = 5


def demo(options: argparse.Namespace) -> None:
    """Train on the shipped corpus or a user's file, report, classify sentences."""
    _check_folder(options.save, overwrite=options.overwrite)
    _check_columns(options)
    table, facts = (None, {"data": "the shipped corpus"}) if options.data is None else _read(options)
    split = _shipped() if table is None else split_table(*table, options.open_label, options.seed)
    pipeline = _train_and_report(split, options, facts)
    if table is not None:
        # The report held texts and intents back; the model that is used and kept has seen them all.
        pipeline = _fit(*table, options)
    if options.save is not None:
        _keep(pipeline, options, facts)
    print()
    _classify(pipeline, options.sentences or _SENTENCES)
    if not options.sentences and sys.stdin.isatty():
        _converse(pipeline)


def train(options: argparse.Namespace) -> None:
    """Train on all texts of a user's file, and keep the model."""
    _check_folder(options.save, overwrite=options.overwrite)
    _check_text_model(options.model_name)
    (texts, labels), facts = _read(options)
    if options.report:
        _train_and_report(split_table(texts, labels, options.open_label, options.seed), options, facts)
    _keep(_fit(texts, labels, options), options, facts)


def _check_folder(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that the model cannot be written to, before hours of training."""
    if folder is None:
        if overwrite:
            msg = "--overwrite replaces the model in the folder of --save; name the folder, or leave --overwrite out."
            raise ValueError(msg)
        return
    if os.path.lexists(folder):
        _check_replaced(folder, overwrite=overwrite)
        place = folder
    else:
        place = next(parent for parent in folder.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=place):
            pass
    except OSError as error:
        msg = f"--save {str(folder)!r} cannot be written ({error.strerror}); pass another folder."
        raise OSError(msg) from error


def _check_columns(options: argparse.Namespace) -> None:
    """Refuse the name of a column of no file."""
    for option in ("text_column", "label_column"):
        if options.data is None and getattr(options, option) is not None:
            msg = f"--{option.replace('_', '-')} names a column of the file of --data; pass --data, or leave it out."
            raise ValueError(msg)


def _check_replaced(folder: Path, *, overwrite: bool) -> None:
    """Refuse what exists, unless it is a saved model that may be replaced."""
    if not overwrite:
        msg = f"{str(folder)!r} exists; pass --overwrite to replace a model that was saved there, or another folder."
        raise FileExistsError(msg)
    try:
        read_manifest(folder)
    except (OSError, ValueError) as error:
        msg = f"{str(folder)!r} holds no saved model, and --overwrite replaces nothing else; pass another folder."
        raise FileExistsError(msg) from error


def _check_text_model(name: str | None) -> None:
    """Refuse a text model that cannot be used, before anything is read or trained."""
    if name is not None:
        with catch_warnings(), explained(f"The text model {name!r}", OSError, ValueError):
            simplefilter("ignore")  # the training repeats them
            SupConTextEncoder(name, finetune="none", device="cpu").fit(["the first text"])


def _read(options: argparse.Namespace) -> tuple[tuple[NDArray[np.object_], NDArray[Any]], dict[str, Any]]:
    """Read and check a user's file; the second of the results is what the saved model says of it."""
    texts, labels = read_table(options.data, text_column=options.text_column, label_column=options.label_column)
    if not (labels != options.open_label).any():
        found = f"{len(labels)} texts, all labelled {options.open_label!r}" if len(labels) else "no text"
        msg = f"{str(options.data)!r} holds {found}; give it texts of at least one intent."
        raise ValueError(msg)
    counts = _check_texts(texts, labels, options)
    if options.open_label not in (OPEN_LABEL, *labels) and "open_label" not in counts:
        warn(
            f"No text of {str(options.data)!r} has the open label {options.open_label!r}; every label in it is a known "
            "intent.",
            stacklevel=2,
        )
    return (texts, labels), {"data": options.data.name, "n_texts": len(texts), "data_check": counts}


def _check_texts(texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace) -> dict[str, int]:
    """Say what may be wrong with the texts, one sentence a line, and count it by kind."""
    found = check_training_texts(texts, labels, encoder=_encoder(options), open_label=options.open_label)
    counts = dict(Counter(found.kind.tolist()))
    if counts and not options.quiet:
        print(
            "Look at these texts (rows count from 0, without the header and the rows that are left out):",
            file=sys.stderr,
        )
        for kind, count in counts.items():
            print(*found.message[found.kind == kind][:_MOST_SHOWN], sep="\n", file=sys.stderr)
            if count > _MOST_SHOWN:
                print(
                    f"({count - _MOST_SHOWN} more of this kind; skellipsoid.check_training_texts gives all.)",
                    file=sys.stderr,
                )
        sys.stderr.flush()
    return counts


def _shipped() -> Split:
    corpus = datasets.load_assistant_intents(subset="train")
    test = datasets.load_assistant_intents(subset="test")
    is_open = test.target == "-1"
    note = (
        f"The shipped corpus: {len(corpus.target_names)} known intents, {len(corpus.data)} training texts, "
        f"{len(test.data)} test texts ({is_open.sum()} open)"
    )
    return Split(corpus.data, corpus.target, test.data, test.target, note, [])


def _train_and_report(split: Split, options: argparse.Namespace, facts: dict[str, Any]) -> Pipeline | None:
    """Train on one part and report on the other; ``None`` if there is nothing to report on.

    The report is added to ``facts``.
    """
    print(split.note)
    for gap in split.gaps:
        print(gap)
    if not len(split.test):
        print("There is no report, because no text is left to test.")
        return None
    start = time.perf_counter()
    pipeline = _fit(split.train, split.train_labels, options)
    print(f"\nTrained in {time.perf_counter() - start:.0f} s. On the test texts:\n", flush=True)
    facts["report"] = str(report(pipeline[-1], split.test_labels, pipeline.predict(split.test)))
    print(facts["report"], flush=True)
    return pipeline


def _fit(texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace) -> Pipeline:
    classifier = EllipsoidOpenSetClassifier(open_label=options.open_label, random_state=options.seed)
    pipeline = Pipeline([("enc", _encoder(options)), ("clf", classifier)])
    if options.rejection_rate is None:
        pipeline.fit(texts, labels)
    else:
        pipeline = _fit_tuned(pipeline, texts, labels, options)
    return pipeline.set_params(enc__verbose=0)


def _encoder(options: argparse.Namespace) -> SupConTextEncoder:
    named = {} if options.model_name is None else {"model_name": options.model_name}
    return SupConTextEncoder(
        finetune=options.finetune,
        open_label=options.open_label,
        random_state=options.seed,
        verbose=int(not options.quiet),
        **named,
    )


def _fit_tuned(
    pipeline: Pipeline, texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace
) -> Pipeline:
    """Set the operating point on texts held out of a first model, then train on all of them."""
    codes = np.unique(labels, return_inverse=True)[1]
    copies = duplicate_groups(texts, np.zeros(len(texts)))
    held_out = held_out_rows(codes, _TUNING_SHARE, np.random.default_rng(options.seed), copies)
    if not (held_out & (labels != options.open_label)).any():
        msg = (
            f"--rejection-rate {options.rejection_rate} needs texts to hold out, but every intent has a single text; "
            "gather more, or leave it out."
        )
        raise ValueError(msg)
    parts = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]
    tuned = TunedOperatingPointCV(pipeline, rejection_rate=options.rejection_rate, cv=parts).fit(texts, labels)
    n_known = int((labels[held_out] != options.open_label).sum())
    print(
        f"Operating point: of {n_known} known texts that a first model was trained without, "
        f"{tuned.cv_results_['rejection_rate'][0]:.1%} are answered open."
    )
    fitted: Pipeline = tuned.estimator_
    return fitted


def _keep(pipeline: Pipeline, options: argparse.Namespace, facts: dict[str, Any]) -> None:
    folder = options.save
    try:
        save(pipeline, folder, overwrite=options.overwrite, provenance=facts)
    except (FileExistsError, NotADirectoryError) as error:  # made by another program during the training
        beside = _save_beside(pipeline, folder if folder.name else folder.absolute(), facts)
        msg = (
            f"{str(folder)!r} appeared during the training and is left alone; the model is in {str(beside)!r} instead, "
            "use it there or move it."
        )
        raise FileExistsError(msg) from error
    print(f"\nThe model is in {folder}; label lines with: skellipsoid predict --model {folder}")


def _save_beside(pipeline: Pipeline, folder: Path, facts: dict[str, Any]) -> Path:
    """Save under the first free name with a number, so that the training is not lost."""
    number = 2
    while True:
        beside = folder.with_name(f"{folder.name}-{number}")
        try:
            save(pipeline, beside, provenance=facts)
        except (FileExistsError, NotADirectoryError):
            if not os.path.lexists(beside):
                raise
            number += 1
        else:
            return beside


def _classify(pipeline: Pipeline, sentences: Sequence[str]) -> None:
    """Print for each sentence its answer, its nearest class and the explanation."""
    classifier = pipeline[-1]
    why = explain(pipeline, list(sentences))
    named = [j for j in (1, 2, 3) if f"share_{j}" in why]
    for i, sentence in enumerate(sentences):
        answer = "open" if why.answer[i] == classifier.open_label_ else why.answer[i]
        side = "inside" if why.margin[i] >= 0 else "outside"
        print(f"{sentence!r}: {answer}")
        print(f"    nearest class {why.nearest_class[i]}, {abs(why.margin[i]):.0%} of its radius {side} the boundary")
        if "p_value" in why:
            print(f"    as far out as this: {why.p_value[i]:.0%} of the known texts that were held out")
        axes = [f"{why[f'from_{j}'][i]} - {why[f'to_{j}'][i]} {why[f'share_{j}'][i]:.0%}" for j in named]
        rest = abs(round(why.shared_share[i] - sum(why[f"share_{j}"][i] for j in named), 2))
        print(f"    its distance: {', '.join([*axes, f'other axes between intents {rest:.0%}'])},")
        print(f"    this intent's own spread {why.own_share[i]:.0%}, other directions {why.other_share[i]:.0%}")
        print(f"    next class {why.runner_up[i]}")


def _converse(pipeline: Pipeline) -> None:
    print("\nType a sentence (an empty line ends):")
    while True:
        try:
            sentence = input("> ").strip()
        except EOFError:
            break
        if not sentence:
            break
        _classify(pipeline, [sentence])
