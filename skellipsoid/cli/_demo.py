"""The command ``demo``: train, predict a few sentences with their nearest training texts, and report a test."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .. import datasets
from .._core.characters import printable
from .._core.messages import shortened
from .._core.texts import first_of_equal
from .._encoders.text_features import embedding_once
from .._torch import machine
from .._traffic.explain import explain
from ._ahead import check_folder
from ._split import Split, split_table
from ._trade_off import forecast_sentence, of_hundred
from ._train import Tested, fit_with_features, keep, print_report, read, run_test

_SENTENCES = (
    "where is my parcel",
    "wake me up at half past six",
    "could you turn the lights down a little",
    "how many hours of sleep do I need",
    "what does it cost to send a parcel to Spain",
    "who won the match last night",
)
#: Training texts that are shown as the reason of a prediction, and the letters that are shown of each.
_NEIGHBORS, _LONGEST = ("nearest training text", "the next one"), 60


class _Known(NamedTuple):
    """Training texts of which no two are the same, their labels and their features."""

    texts: NDArray[np.object_]
    labels: NDArray[Any]
    features: NDArray[Any]


@embedding_once()
def demo(options: argparse.Namespace) -> None:
    """Train on the shipped corpus or a user's file, classify sentences, and say what to expect of new texts."""
    replaced = check_folder(options.save, overwrite=options.overwrite)
    if options.data is None:
        _check_no_columns(options)
        facts: dict[str, Any] = {"data": "the shipped corpus"}
        split = _shipped()
        texts, labels = split.train, split.train_labels
    else:
        (texts, labels), facts, _ = read(options)
        split = split_table(texts, labels, options.open_label, options.seed)
    pipeline, features = fit_with_features(texts, labels, options)
    rows = first_of_equal(texts.tolist())  # copies of a text add nothing
    show = partial(_show, pipeline, _Known(texts[rows], labels[rows], features[rows]), options.report)
    show(options.sentences or _SENTENCES)
    # A test needs a model that has not seen its texts; of the shipped corpus the test part is no training text.
    tested = run_test(split, options, facts, pipeline if options.data is None else None)
    _print_test(split, tested, pipeline["clf"], options)
    if options.save is not None:
        keep(pipeline, options, facts, replaced)
    if not options.sentences and machine.is_terminal(sys.stdin):
        _converse(show)


def _print_test(split: Split, tested: Tested | None, classifier: Any, options: argparse.Namespace) -> None:
    print()
    if tested is not None:
        print("On the in-distribution test set:")
        print(summarize(split.test_labels, tested.predicted, options.open_label))
    if (sentence := forecast_sentence(classifier)) is not None:
        print(sentence)
    for gap in split.gaps:
        print(gap)
    if options.report:
        print(split.note)
        print_report(tested)
    elif tested is not None:
        print(
            f"(Tested on {len(split.test)} texts that it was not trained on; --report prints all results.)", flush=True
        )


def summarize(truth: NDArray[Any], predicted: NDArray[Any], open_label: str) -> str:
    """Say in one sentence how known and open texts are predicted: of 100, or of all where there are fewer."""
    known = truth != open_label
    right, handed_over = (predicted == truth)[known].sum(), (predicted == open_label)[known].sum()
    parts = []
    if n_known := int(known.sum()):
        counts = of_hundred([right, n_known - right - handed_over, handed_over])
        parts.append(f"of {sum(counts)} known texts {counts[0]} are right, {counts[1]} wrong, {counts[2]} handed over")
    if n_open := int((~known).sum()):
        detected = int((predicted == open_label)[~known].sum())
        counts = of_hundred([detected, n_open - detected])
        parts.append(f"of {sum(counts)} open {'ones' if parts else 'texts'} {counts[0]} are detected")
    else:
        parts.append("how many open ones are detected is not tested")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _check_no_columns(options: argparse.Namespace) -> None:
    for option in ("text_column", "label_column"):
        if getattr(options, option) is not None:
            raise ValueError(
                f"--{option.replace('_', '-')} names a column of the file of --data; pass --data, or leave it out."
            )


def _shipped() -> Split:
    corpus = datasets.load_assistant_intents(subset="train")
    test = datasets.load_assistant_intents(subset="test")
    is_open = test.target == "-1"
    note = (
        f"The shipped corpus: {len(corpus.target_names)} known intents, {len(corpus.data)} training texts, "
        f"{len(test.data)} test texts ({is_open.sum()} open)"
    )
    return Split(corpus.data, corpus.target, test.data, test.target, note, [])


def _show(model: Pipeline, known: _Known, with_scores: bool, sentences: Sequence[str]) -> None:
    """Print for each sentence the prediction and the nearest training texts."""

    def named(label: Any) -> str:
        return "open" if label == model[-1].open_label_ else printable(label)

    n_neighbors = min(len(_NEIGHBORS), len(known.texts))
    features = model[:-1].transform(list(sentences))
    why = explain(model[-1], features, n_axes=0, n_neighbors=n_neighbors, reference=known.features)
    for i, sentence in enumerate(sentences):
        print(f"{sentence!r}: {named(why.answer[i])}")
        for j, name in zip(range(n_neighbors), _NEIGHBORS, strict=False):
            row = why[f"neighbor_{j + 1}"][i]
            print(f"    {name}: {shortened(known.texts[row], _LONGEST)!r} ({named(known.labels[row])})")
        if with_scores:
            p_value = f", p-value {why.p_value[i]:.2f}" if "p_value" in why else ""
            print(f"    nearest class {printable(why.nearest_class[i])}, margin {why.margin[i]:.2f}{p_value}")


def _converse(show: Callable[[Sequence[str]], None]) -> None:
    print("\nType a sentence (an empty line ends):")
    with suppress(EOFError):
        while sentence := input("> ").strip():
            show([sentence])
