"""The command ``skellipsoid``: try the method on the shipped corpus or on your own file, keep the model, use it."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from . import EllipsoidOpenSetClassifier, SupConTextEncoder, __version__, datasets, explain, load, save
from .metrics import open_set_report

_SENTENCES = (
    "where is my parcel",
    "wake me up at half past six",
    "could you turn the lights down a little",
    "how many hours of sleep do I need",
    "what does it cost to send a parcel to Spain",
    "tell me a joke",
)
#: Lines that ``predict`` labels at a time when they come from a file or a pipe.
_LINES = 1024


class Corpus(NamedTuple):
    """Texts to learn from, and texts to judge the result by."""

    train: NDArray[np.object_]
    train_labels: NDArray[Any]
    test: NDArray[np.object_]
    test_labels: NDArray[Any]
    note: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``skellipsoid``; ``None`` takes them from the command line.

    Returns
    -------
    status : int
        0, or 2 after an error, which is one sentence on standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has seen enough
        # Python writes what it has not written yet once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, TypeError, MemoryError) as error:
        print(f"skellipsoid: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="skellipsoid", description="Open-set classification of text.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="demo | predict")
    demo = commands.add_parser("demo", help="train on a corpus, report on texts it has not seen, classify sentences")
    demo.add_argument("sentences", nargs="*", metavar="SENTENCE", help="classify these, instead of a few of our own")
    demo.add_argument("--data", type=Path, metavar="FILE", help="your own corpus, one text<TAB>label on each line")
    demo.add_argument("--open-label", default="-1", metavar="LABEL", help="the label of open rows (default: -1)")
    demo.add_argument("--save", type=Path, metavar="FOLDER", help="keep the model in a new folder")
    demo.add_argument("--seed", type=int, default=0, help="seed of the split and of the training (default: 0)")
    demo.set_defaults(run=_demo)
    predict = commands.add_parser("predict", help="label lines from standard input: label<TAB>text on standard output")
    predict.add_argument("--model", type=Path, required=True, metavar="FOLDER", help="what demo --save wrote")
    predict.set_defaults(run=_predict)
    return parser


def _demo(options: argparse.Namespace) -> None:
    if options.save is not None and options.save.exists():
        msg = f"{str(options.save)!r} exists; pass --save a folder that does not."
        raise FileExistsError(msg)
    start = time.perf_counter()
    table = None if options.data is None else read_table(options.data)
    corpus = _shipped() if table is None else split_table(*table, options.open_label, options.seed)
    print(corpus.note)
    pipeline = _train(corpus.train, corpus.train_labels, options)
    print(f"\nTrained in {time.perf_counter() - start:.0f} s. On the test texts:\n")
    predicted = pipeline.predict(corpus.test)
    print(_report(corpus.test_labels, predicted, pipeline[-1]))
    if table is not None:
        # The report held texts and intents back; the model that is used and kept has seen them all.
        pipeline = _train(*table, options)
    if options.save is not None:
        save(pipeline, options.save)
        print(f"\nThe model is in {options.save}; label lines with: skellipsoid predict --model {options.save}")
    print()
    _classify(pipeline, options.sentences or _SENTENCES)
    if not options.sentences and sys.stdin.isatty():
        _converse(pipeline)


def _predict(options: argparse.Namespace) -> None:
    pipeline = load(options.model)
    steps = [step for _, step in pipeline.steps] if isinstance(pipeline, Pipeline) else []
    if not hasattr(pipeline, "predict") or not any(isinstance(step, SupConTextEncoder) for step in steps):
        msg = f"The model in {str(options.model)!r} does not take texts; save a Pipeline of encoder and classifier."
        raise ValueError(msg)
    size = 1 if sys.stdin.isatty() else _LINES
    for lines in _in_groups((line.rstrip("\r\n") for line in sys.stdin), size):
        for label, line in zip(pipeline.predict(lines), lines, strict=True):
            print(f"{label}\t{line}", flush=size == 1)


def _in_groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while group := list(islice(iterator, size)):
        yield group


def read_table(path: Path) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Read texts and labels from a file of ``text<TAB>label`` lines; a header ``text<TAB>label`` is skipped.

    Raises
    ------
    ValueError
        If a line does not have exactly one tab, if a field is empty, or if the file is not UTF-8.
    """
    texts, labels = [], []
    try:
        # Not splitlines: a text may hold what Unicode calls a line separator.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        msg = f"{str(path)!r} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
        raise ValueError(msg) from error
    for number, line in enumerate(lines, start=1):
        fields = [field.strip() for field in line.split("\t")]
        if not line.strip() or (number == 1 and [field.lower() for field in fields] == ["text", "label"]):
            continue
        if len(fields) != 2 or not all(fields):
            msg = f"Line {number} of {str(path)!r} is {line!r}, but every line must be a text, one tab and a label."
            raise ValueError(msg)
        texts.append(fields[0])
        labels.append(fields[1])
    return np.array(texts, dtype=object), np.array(labels, dtype=str)


def split_table(texts: NDArray[np.object_], labels: NDArray[Any], open_label: str, seed: int) -> Corpus:
    """Split a user's table for an honest report: a quarter of each label's rows is test.

    Where no row is labelled open, a fifth of the intents is held out as open: they are in the test rows alone.

    Raises
    ------
    ValueError
        If there are too few intents, or an intent has a single row.
    """
    intents, counts = np.unique(labels[labels != open_label], return_counts=True)
    has_open = bool((labels == open_label).any())
    needed = 2 if has_open else 3
    if len(intents) < needed or counts.min() < 2:
        few = "" if not len(intents) else f", the smallest ({str(intents[counts.argmin()])!r}) with {counts.min()} rows"
        msg = f"The file has {len(intents)} intents{few}; a report needs at least {needed} intents of at least 2 rows."
        raise ValueError(msg)
    rng = np.random.default_rng(seed)
    unknown = intents[:0] if has_open else rng.choice(intents, max(1, len(intents) // 5), replace=False)
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        is_test[rows[: max(1, len(rows) // 4)]] = True
    is_unknown = np.isin(labels, unknown)
    width = max(labels.dtype.itemsize // 4, len(open_label))
    truth = np.where(is_unknown, open_label, labels.astype(f"<U{width}"))
    train = ~is_test & ~is_unknown
    what = f"held out as open: {', '.join(unknown)}" if len(unknown) else f"open rows are labelled {open_label!r}"
    note = (
        f"{len(intents) - len(unknown)} known intents, {train.sum()} training texts, {is_test.sum()} test texts "
        f"({(truth[is_test] == open_label).sum()} open); {what}"
    )
    return Corpus(texts[train], labels[train], texts[is_test], truth[is_test], note)


def _shipped() -> Corpus:
    train = datasets.load_assistant_intents(subset="train")
    test = datasets.load_assistant_intents(subset="test")
    is_open = test.target == "-1"
    note = (
        f"The shipped corpus: {len(train.target_names)} known intents, {len(train.data)} training texts, "
        f"{len(test.data)} test texts ({is_open.sum()} open)"
    )
    return Corpus(train.data, train.target, test.data, test.target, note)


def _train(texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace) -> Pipeline:
    shared = {"open_label": options.open_label, "random_state": options.seed, "verbose": 1}
    pipeline = Pipeline([("enc", SupConTextEncoder(**shared)), ("clf", EllipsoidOpenSetClassifier(**shared))])
    pipeline.fit(texts, labels)
    return pipeline.set_params(enc__verbose=0, clf__verbose=0)


def _report(truth: NDArray[Any], predicted: NDArray[Any], classifier: EllipsoidOpenSetClassifier) -> str:
    return str(
        open_set_report(
            truth, predicted, open_label=classifier.open_label_, labels=classifier.classes_, zero_division=0
        )
    )


def _classify(pipeline: Pipeline, sentences: Sequence[str]) -> None:
    """Say for each sentence what it is, what it is nearest to, and why it is in or out."""
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
