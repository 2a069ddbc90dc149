"""Steps that every fit calls, one after another: validate, encode, drop outliers, find duplicates, gather.

Each takes arrays and gives arrays. ``used`` are the numbers of the rows that a fit uses, in ascending order.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from .._samples.samples import OUTLYING, find_outliers
from .._samples.training_samples import TrainingSamples, gather
from .labels import as_labels, cast_open_label, check_given
from .spelling import warn_of_names_of_none
from .validation import (
    check_groups,
    check_squares,
    enumerated,
    name_rows,
    naming_rows,
    read_features,
    read_relative_weights,
    select_rows,
)
from .warn import warn

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def read_training(
    classifier: Any, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None, groups: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Floats, Integers | None, Integers]:
    """Validate what ``fit`` is given; the classifier remembers the number and the names of the features.

    Gives features, labels, weights and numbers of groups, one for each row, and the rows with a weight, which are used.
    """
    check_given(y, type(classifier).__name__)
    y = as_labels(y, warn=True)
    X = read_features(X)
    with naming_rows(X):
        X, y = validate_data(classifier, X, y, dtype=(np.float64, np.float32), ensure_min_samples=1)
    X, y = np.asarray(X), np.asarray(y)
    weights, numbers = read_relative_weights(sample_weight, len(X)), check_groups(groups, len(X))
    used = np.flatnonzero(weights > 0)
    check_squares(X, used)
    return X, y, weights, numbers, used


def encode(y: NDArray[Any], open_label: Any, used: Integers) -> tuple[Any, NDArray[Any], Integers]:
    """Give the open label in the kind of the classes, the classes, and the number of each row's class, (n_rows,).

    Open rows have the number of classes.
    """
    cast = cast_open_label(open_label, y)
    known = used[y[used] != cast]
    classes, codes_of_known = np.unique(y[known], return_inverse=True)
    check_classes(classes, cast, open_label, len(used), len(used) - len(known))
    codes = np.full(len(y), len(classes), dtype=np.int64)
    codes[known] = codes_of_known
    return cast, classes, codes


def check_classes(classes: NDArray[Any], open_label: Any, given: Any, n_samples: int, n_open: int) -> None:
    """Raise an error if no class is known, and warn if the open label may be a class of the user's.

    ``given`` is the open label as the user wrote it, before it was cast to the kind of the classes.
    """
    if not len(classes):
        raise ValueError(
            f"Every one of the {n_samples} samples has the open label {open_label!r}: y must hold at least "
            "one known class; pass another open label if this label is a class of yours."
        )
    if len(classes) < 2 and n_open:
        warn(
            f"{n_open} samples with the label {open_label!r} were read as open, which leaves the single "
            f"class {classes[:1].tolist()[0]!r}; pass another open label if that label is a class of yours."
        )
    elif n_open and set(classes.tolist()) in ({0, 1}, {"0", "1"}) and str(given) == "-1":
        warn(
            f"{n_open} samples with the label {open_label!r} were read as open, beside the classes 0 and "
            "1: if that label is a class of yours, pass another open label, for instance -2; if these samples are "
            "open, label them -2 and pass -2 as the open label."
        )
    warn_of_names_of_none(classes, open_label)
    if classes.dtype.kind == "b":
        warn(
            f"y holds booleans, and open samples are answered {open_label!r}, which is true in a condition; pass "
            "strings such as 'yes' and 'no', or numbers and an open_label of your own."
        )


def without_outliers(X: NDArray[Any], codes: Integers, used: Integers, n_classes: int) -> Integers:
    """Drop known samples that are outliers from the rows that are used, with a warning that names them.

    It comes before the search for duplicates: relative to one extreme outlier all other samples are near each other.
    """
    known = used[codes[used] < n_classes]
    outlying = known[find_outliers(select_rows(X, known), codes[known])]
    warn_of_outliers(outlying)
    return np.setdiff1d(used, outlying, assume_unique=True)


def warn_of_outliers(numbers: Integers) -> None:
    """Warn of the rows that are dropped, if there are any."""
    if len(numbers):
        warn(
            f"X has outliers, more than {OUTLYING:.0f} times as far from the middle of their class as its typical "
            f"sample: {name_rows(numbers)}. They are dropped; correct them, or drop them yourself."
        )


def gather_used(
    X: NDArray[Any],
    codes: Integers,
    weights: Floats,
    groups: Integers | None,
    used: Integers,
    classes: NDArray[Any],
    duplicates: str,
) -> tuple[TrainingSamples, Integers]:
    """Find duplicates among the rows that are used, and merge equal ones.

    Gives the samples, the open ones apart from the known ones, and the group of each row, (n_rows,), −1 for those that
    are not used.
    """
    own = None if groups is None else groups[used]
    _, samples, found = gather(select_rows(X, used), codes[used], weights[used], own, duplicates)
    groups_of_rows = np.full(len(X), -1)
    groups_of_rows[used] = found
    samples = samples.with_open_apart(len(classes)).normalized()
    several = several_groups(samples.groups, samples.units, samples.classes, classes)
    return replace(samples, groups=several), groups_of_rows


def several_groups(groups: Integers, units: Integers, codes: Integers, classes: NDArray[Any]) -> Integers:
    """Warn of classes that are one group; where all are, their duplicates are the groups."""
    n_groups, n_units = (np.bincount(np.unique(np.stack([codes, labels]), axis=1)[0]) for labels in (groups, units))
    single = (n_groups == 1) & (n_units > 1)
    if not single.any():
        return groups
    names = enumerated(classes[single])
    if (n_groups == 1).all():
        warn(
            f"Every class is a single group ({names}), so that nothing remains of it when the group is left out: "
            "groups are ignored; pass smaller ones, several of each class."
        )
        return units
    warn(
        f"{single.sum()} of {len(single)} classes are a single group ({names}), so that their samples say nothing "
        "about the size of the boundaries; pass smaller groups, several of each class."
    )
    return groups


def warn_of_degenerate(
    classes: NDArray[Any], degenerate: NDArray[np.bool_], zeros: NDArray[np.bool_] | None = None
) -> None:
    """Warn of the classes whose training samples say nothing about their size; ``zeros``: are their samples that."""
    if zeros is not None and (unread := degenerate & zeros).any():
        warn(
            f"Classes whose training samples are all zeros: {enumerated(classes[unread])}; a text encoder gives them "
            "for texts of which it reads nothing, and such messages are answered with such a class: take an embedding "
            "model that reads them, or leave these classes out."
        )
        degenerate = degenerate & ~zeros
    if degenerate.any():
        result = "their boundaries take the typical size of the other classes"
        if degenerate.all():
            result = "no other class tells how large their boundaries should be, nor do X_val or open samples"
        warn(
            "Classes without spread, whose training samples are all equal or duplicates of one: "
            f"{enumerated(classes[degenerate])}; "
            f"{result}; add different samples of them."
        )
