"""Steps that every fit calls in this order: validate, encode labels, drop outliers, find duplicates, gather samples.

All are functions of arrays. ``used`` are the numbers of the rows that a fit uses, in ascending order.
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
    """Validate the arguments of ``fit``; the number and the names of the features are stored in the classifier.

    Returns features, labels, weights and group numbers, one for each row, and the rows of positive weight.
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
    """Return the open label in the type of the classes, the classes, and the class index of each row, (n_rows,).

    The index of open rows is the number of classes.
    """
    cast = cast_open_label(open_label, y)
    known = used[y[used] != cast]
    classes, codes_of_known = np.unique(y[known], return_inverse=True)
    check_classes(classes, cast, open_label, len(used), len(used) - len(known))
    codes = np.full(len(y), len(classes), dtype=np.int64)
    codes[known] = codes_of_known
    return cast, classes, codes


def check_classes(classes: NDArray[Any], open_label: Any, given: Any, n_samples: int, n_open: int) -> None:
    """Raise an error if there is no known class, and warn if the open label may be one of the user's classes.

    ``given`` is the open label as the user wrote it, before it was cast to the kind of the classes.
    """
    if not len(classes):
        raise ValueError(
            f"All {n_samples} samples have the open label {open_label!r}, but y needs at least one known class; pass "
            "another open label if this label is one of your classes."
        )
    if len(classes) < 2 and n_open:
        warn(
            f"{n_open} samples with the label {open_label!r} were read as open, which leaves the single class "
            f"{classes[:1].tolist()[0]!r}; pass another open label if that label is one of your classes."
        )
    elif n_open and set(classes.tolist()) in ({0, 1}, {"0", "1"}) and str(given) == "-1":
        warn(
            f"{n_open} samples with the label {open_label!r} were read as open, beside the classes 0 and 1: if that "
            "label is one of your classes, pass another open label, for instance -2; if these samples are open, label "
            "them -2 and pass -2 as the open label."
        )
    warn_of_names_of_none(classes, open_label)
    if classes.dtype.kind == "b":
        warn(
            f"y holds booleans, and the prediction for open samples is {open_label!r}, which is true in a condition; "
            "pass strings such as 'yes' and 'no', or numbers and another open_label."
        )


def without_outliers(X: NDArray[Any], codes: Integers, used: Integers, n_classes: int) -> Integers:
    """Remove outliers among the known samples from the rows to use, with a warning that names them.

    This precedes the search for duplicates: beside one extreme outlier all other samples look like duplicates.
    """
    known = used[codes[used] < n_classes]
    outlying = known[find_outliers(select_rows(X, known), codes[known])]
    warn_of_outliers(outlying)
    return np.setdiff1d(used, outlying, assume_unique=True)


def warn_of_outliers(numbers: Integers) -> None:
    """Warn of dropped rows, if there are any."""
    if len(numbers):
        warn(
            f"X has outliers, which are more than {OUTLYING:.0f} times as far from the centre of their class as its "
            f"typical sample: {name_rows(numbers)}. They are dropped; correct them, or drop them yourself."
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
    """Find duplicates among the rows to use, and merge equal ones.

    Returns the samples, with the open ones separate, and the group of each row, (n_rows,), −1 for unused rows.
    """
    own = None if groups is None else groups[used]
    _, samples, found = gather(select_rows(X, used), codes[used], weights[used], own, duplicates)
    groups_of_rows = np.full(len(X), -1)
    groups_of_rows[used] = found
    samples = samples.with_open_apart(len(classes)).normalized()
    several = several_groups(samples.groups, samples.units, samples.classes, classes)
    return replace(samples, groups=several), groups_of_rows


def several_groups(groups: Integers, units: Integers, codes: Integers, classes: NDArray[Any]) -> Integers:
    """Warn of classes that are a single group; if all classes are, the duplicates become the groups."""
    n_groups, n_units = (np.bincount(np.unique(np.stack([codes, labels]), axis=1)[0]) for labels in (groups, units))
    single = (n_groups == 1) & (n_units > 1)
    if not single.any():
        return groups
    names = enumerated(classes[single])
    if (n_groups == 1).all():
        warn(
            f"Every class is a single group ({names}), so that no class can be scored without its group, and groups "
            "are ignored; pass smaller groups, several of each class."
        )
        return units
    warn(
        f"{single.sum()} of {len(single)} classes are a single group ({names}), so that they do not count for the size "
        "of the boundaries; pass smaller groups, several of each class."
    )
    return groups


def warn_of_degenerate(
    classes: NDArray[Any], degenerate: NDArray[np.bool_], zeros: NDArray[np.bool_] | None = None
) -> None:
    """Warn of classes without spread, whose size is unknown; ``zeros``: whether all their samples are zeros."""
    if zeros is not None and (unread := degenerate & zeros).any():
        warn(
            f"Classes whose training samples are all zeros: {enumerated(classes[unread])}; a text encoder returns "
            "zeros for texts that it cannot read, and predicts such a class for all unreadable messages; use an "
            "embedding model that reads them, or leave these classes out."
        )
        degenerate = degenerate & ~zeros
    if degenerate.any():
        result = "their boundaries get the typical size of the other classes"
        if degenerate.all():
            result = "no other class, X_val or open samples say how large their boundaries should be"
        warn(
            "Classes without spread, whose training samples are all equal or duplicates of one: "
            f"{enumerated(classes[degenerate])}; "
            f"{result}; add different samples of them."
        )
