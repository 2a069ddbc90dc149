"""A random split of a user's texts into training and test, with copies of a text on one side and open classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.messages import named
from .._core.pipelines import duplicate_groups
from .._samples.folds import validation_rows

#: Proportion of each label's distinct texts that is test, and of the intents that are held out as open.
_TEST_PROPORTION, _OPEN_PROPORTION = 0.25, 0.2


class Split(NamedTuple):
    """Training texts, test texts, and notes about them."""

    train: NDArray[np.object_]
    train_labels: NDArray[Any]
    test: NDArray[np.object_]
    test_labels: NDArray[Any]
    note: str
    #: What the test cannot measure, a sentence each.
    gaps: list[str]


def split_table(texts: NDArray[np.object_], labels: NDArray[Any], open_label: str, seed: int) -> Split:
    """Split a user's table for the report: a quarter of each label's distinct texts is test.

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
        n_unknown = min(max(1, int(_OPEN_PROPORTION * len(intents))), max(0, most))
        unknown = np.sort(rng.choice(testable, n_unknown, replace=False))
    is_test = validation_rows(codes, _TEST_PROPORTION, rng, groups)
    is_unknown = np.isin(labels, unknown)
    train = ~is_test & ~is_unknown
    truth = np.where(is_unknown, open_label, labels)[is_test]
    n_open = int((truth == open_label).sum())
    known = np.setdiff1d(intents[is_intent], unknown)
    what = f"open rows are labelled {open_label!r}"
    if is_intent.all():
        names = ", ".join(map(printable, unknown))
        what = f"held out as open: {names}" if names else "no intent is held out as open"
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
