"""The folds of a tuned operating point: how samples are dealt, and what the fitted classifier keeps of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.labels import positions
from ..._core.pipelines import read_estimator, split_estimator
from ..._core.sklearn import take_rows
from ..._held_out.table import KNOWN, N_FIRST, OF_OTHER_CLASS, REAL, HeldOutTable, ranks_and_gaps
from ..._samples.folds import fold_numbers
from ..._samples.projections import projection_left_out
from .offsets import Fold, HeldOutOfFold

#: Folds where nobody says how many: five, by convention.
N_FOLDS = 5

Integers = NDArray[np.int64]


def deal(labels: NDArray[Any], open_label: Any, groups: NDArray[Any] | None) -> Iterator[tuple[Integers, Integers]]:
    """Deal samples and classes into folds, from two classes on: rows to train on and to test, for each fold.

    A class with a single group is never tested as known. Open samples are in one test part each, and in no training.
    """
    rng = np.random.RandomState(0)
    is_open = labels == open_label
    classes = np.unique(labels[~is_open], return_inverse=True)[1].astype(np.int64)
    if not len(classes) or not classes.any():
        raise ValueError(
            "y has fewer than two classes beside open samples, so that no fold can leave a class out; fit the "
            "classifier itself, and set its threshold by new samples (set_operating_point)."
        )
    known = np.flatnonzero(~is_open)
    blocks = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    order = rng.permutation(len(known))
    folds = np.empty(len(known), dtype=np.int64)
    folds[order] = fold_numbers(classes[order], blocks[known][order].astype(np.int64), N_FOLDS)
    opened = rng.permutation(np.flatnonzero(is_open))
    n_left_out = np.zeros(classes.max() + 1)
    for fold in range(N_FOLDS):
        tested, present = folds == fold, np.unique(classes[folds == fold])
        # Those that were left out least often; two classes stay, or one of two.
        present = rng.permutation(present)
        n_most = max(1, min(round(len(n_left_out) / N_FOLDS), len(n_left_out) - 2))
        lacks = present[np.argsort(n_left_out[present], kind="stable")][:n_most]
        n_left_out[lacks] += 1
        rows = np.sort(np.concatenate([known[tested], opened[fold::N_FOLDS]]))
        if len(rows):
            yield known[~tested & ~np.isin(classes, lacks)], rows


def are_discriminants(classifier: Any, folds: list[Fold]) -> bool:
    """Whether the features are of a linear discriminant analysis: one column fewer than there are classes, everywhere.

    It overfits more where samples are left out, so that folds reject more known samples than the fit to all will.
    """
    n_columns, n_all = getattr(classifier, "n_features_in_", 0), len(classifier.classes_)
    of_folds = {(fold.n_features, fold.n_classes) for fold in folds}
    leaves_out = any(n_classes < n_all for _, n_classes in of_folds)
    return leaves_out and all(n_features == n_classes - 1 for n_features, n_classes in {*of_folds, (n_columns, n_all)})


def keep(classifier: Any, folds: list[Fold]) -> None:
    """Let a classifier that keeps held-out samples keep those of the folds, so that its forecasts are of these.

    Nothing changes where its scores are on another scale than those of the folds, or a fold held out nothing.
    """
    if any(fold.held_out is None for fold in folds) or getattr(classifier, "_held_out", None) is None:
        return
    n_classes = len(classifier.classes_)
    parts: list[HeldOutTable] = []
    for held_out in (fold.held_out for fold in folds if fold.held_out is not None):
        first, own = (positions(labels.ravel(), classifier.classes_) for labels in (held_out.first, held_out.labels))
        first = first.reshape(held_out.first.shape)
        ranks, gaps = ranks_and_gaps(first, held_out.compared, own)
        kinds = np.where(held_out.is_known, KNOWN, np.where(own < n_classes, OF_OTHER_CLASS, REAL))
        columns = 1 - held_out.scores, first[:, 0], own, np.ones(len(own)), np.arange(len(own)) + sum(map(len, parts))
        parts.append(HeldOutTable(kinds, *columns, n_classes, ranks=ranks, gaps=gaps))
    table = HeldOutTable.joined(parts)
    if len(table.known):
        classifier._held_out = replace(table, of_distance_0=1.0)


def score_fold(estimator: Any, X: Any, labels: NDArray[Any], passed: Mapping[str, Any], train: Any, test: Any) -> Fold:
    """Fit an estimator to the training part of a fold, with what it is ``passed``, and score the test part."""
    of_train = {
        name: take_rows(value, train) if hasattr(value, "__len__") and len(value) == len(labels) else value
        for name, value in passed.items()
    }
    with projection_left_out(bool(split_estimator(estimator)[0])):
        estimator.fit(take_rows(X, train), labels[train], **of_train)
    classifier, features = read_estimator(
        estimator, take_rows(X, test), ("score_samples", "predict_known"), "TunedOperatingPointCV"
    )
    true, scores = classifier._encode(labels[test]), classifier.score_samples(features)
    held_out, is_known = None, true < len(classifier.classes_)
    if getattr(classifier, "_scores_as_new", False) and getattr(classifier, "_held_out", None) is not None:
        first, compared = classifier._in_order(features, N_FIRST)
        first_labels = classifier.classes_[first]
        held_out = HeldOutOfFold(labels[test], is_known, scores.astype(np.float64), first_labels, compared)
    nearest = classifier._encode(classifier.predict_known(features))
    n_features = getattr(classifier, "n_features_in_", 0)
    return Fold(true, nearest, scores, len(classifier.classes_), n_features, held_out)
