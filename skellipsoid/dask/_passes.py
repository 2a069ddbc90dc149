"""The three passes of a fit: labels, draw, moments; what each partition computes, and how results are merged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from .._core.labels import as_kind_of, as_labels
from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.validation import check_groups, check_squares, naming_rows, read_features
from .._samples.moments import ClassMoments
from ._draw import Integers, Keyed, Keys, group_keys, priorities
from ._parts import naming_partition


class LabelCounts(NamedTuple):
    """Different labels of a partition, and how many samples have each."""

    labels: NDArray[Any]
    counts: Integers


def count_labels(y: Any, number: int) -> LabelCounts:
    """Count the labels of a partition."""
    if not len(y):
        return LabelCounts(np.empty(0), np.empty(0, dtype=np.int64))
    with naming_partition(number):
        labels, counts = np.unique(as_labels(y), return_counts=True)
    return LabelCounts(labels, counts)


def joined_labels(parts: Sequence[LabelCounts]) -> tuple[NDArray[Any], Integers]:
    """Different labels of all partitions, and how many samples have each."""
    filled = [(number, part) for number, part in enumerate(parts) if len(part.labels)]
    if not filled:
        raise ValueError("X has no rows in any of its partitions; pass at least one sample.")
    first, start = filled[0]
    found = [
        as_kind_of(part.labels, start.labels, f"Partition {number} of y", f"partition {first}")
        for number, part in filled
    ]
    labels, codes = np.unique(np.concatenate(found), return_inverse=True)
    counts = np.bincount(codes.ravel(), np.concatenate([part.counts for _, part in filled]))
    return labels, counts.astype(np.int64)


def keyed_part(classifier: BaseOpenSetClassifier, y: Any, groups: Any, number: int, start: int) -> Keyed:
    """Class and key of each sample of a partition; the key is its group, or its row number in all data."""
    if not len(y):
        return Keyed(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64))
    codes = classifier._encode(as_kind_of(as_labels(y), classifier.classes_, "y", "classes_"))
    if groups is None:
        return Keyed(codes, np.arange(start, start + len(y), dtype=np.uint64))
    with naming_partition(number):
        _check_rows("groups", len(groups), len(y))
        check_groups(groups, len(y))  # the numbers it returns are those of this partition
    return Keyed(codes, group_keys(groups))


def _check_rows(name: str, n_rows: int, n_labels: int) -> None:
    if n_rows != n_labels:
        raise ValueError(f"{name} has {n_rows} rows, but y has {n_labels}; pass one for each label.")


@dataclass(frozen=True)
class DrawRule:
    """Which samples are drawn."""

    limits: Keys  # (n_classes + 1,) see Draw.limits; the last one is that of open samples
    seed: int
    groups: Keys | None  # ascending keys; None if each sample is a group of its own

    def among(self, part: Keyed) -> NDArray[np.bool_]:
        """Whether each sample of a partition is drawn."""
        if self.groups is None:
            return np.asarray(priorities(part.keys, self.seed) <= self.limits[part.codes])
        places = np.searchsorted(self.groups, part.keys).clip(max=len(self.groups) - 1)
        return np.asarray(self.groups[places] == part.keys)


class Reduced(NamedTuple):
    """Moments and drawn samples of one partition or several."""

    moments: ClassMoments | None  # of known classes; None if the partition has none
    features: NDArray[np.floating]  # (n_drawn, n_features)
    codes: Integers  # (n_drawn,)
    keys: Keys  # (n_drawn,)
    number: int  # of the first partition with samples; -1 without


def reduced_part(X: Any, keyed: Keyed, chosen: DrawRule, number: int) -> Reduced:
    """Compute the moments of a partition, and pick the samples that are drawn."""
    with naming_partition(number):
        X = read_features(X)
        _check_rows("X", len(X), len(keyed.codes))
        if not len(X):
            return Reduced(None, np.empty((0, 0)), keyed.codes, keyed.keys, -1)
        with naming_rows(X):
            X = np.asarray(check_array(X, dtype=(np.float64, np.float32), input_name="X"))
        check_squares(X)
    drawn = chosen.among(keyed)
    known = keyed.codes < len(chosen.limits) - 1
    of_known = (X, keyed.codes) if known.all() else (X[known], keyed.codes[known])
    moments = ClassMoments.of(*of_known) if known.any() else None
    return Reduced(moments, X[drawn], keyed.codes[drawn], keyed.keys[drawn], number)


def merge_reduced(parts: list[Reduced]) -> Reduced:
    """Merge the moments of several partitions, and join their drawn samples."""
    filled = [part for part in parts if part.number >= 0]
    if not filled:
        return parts[0]
    first = filled[0]
    for part in filled:
        if part.features.shape[1] != first.features.shape[1]:
            raise ValueError(
                f"Partition {part.number}: X has {part.features.shape[1]} features, but partition {first.number} has "
                f"{first.features.shape[1]}; all must have the same."
            )
    moments = [part.moments for part in filled if part.moments is not None]
    return Reduced(
        ClassMoments.merged(moments) if moments else None,
        np.concatenate([part.features for part in filled]),
        np.concatenate([part.codes for part in filled]),
        np.concatenate([part.keys for part in filled]),
        first.number,
    )
