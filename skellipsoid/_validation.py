"""Checks of weights and groups, and the reset after a failed ``fit``."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from ._engine.devices import to_numpy

#: Squares of larger values, summed over the features, may overflow.
LARGEST_VALUE = 1e150
#: Weights below this share of the largest are 0.
SMALLEST_SHARE = 1e-12
#: Rows that a message names at most.
_MOST_NAMED = 10


def read_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Give one finite weight, not negative, for each row, and not all of them 0; ones for ``None``."""
    rows = np.empty((n_rows, 0))
    weights = _check_sample_weight(to_numpy(sample_weight), rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        msg = f"sample_weight is 0 for all {n_rows} rows, but at least one must be positive; leave it out for 1."
        raise ValueError(msg)
    return np.asarray(weights)


def read_weight_shares(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Give the weight of each row as a share of the largest, tiny ones as 0."""
    weights = read_weights(sample_weight, n_rows)
    shares = np.asarray(weights / weights.max())
    shares[shares < SMALLEST_SHARE] = 0  # beside the largest they are nothing
    return shares


def check_groups(groups: ArrayLike | None, n_samples: int) -> NDArray[np.int64] | None:
    """Give the group of each row as a number."""
    if groups is None:
        return None
    given = to_numpy(groups)
    labels = np.asarray(given, dtype=object if isinstance(given, list | tuple) else None)
    if labels.shape != (n_samples,):
        msg = f"groups has the shape {labels.shape}, but must hold one group for each of the {n_samples} rows."
        raise ValueError(msg)
    missing = np.flatnonzero([is_missing(label) for label in labels.tolist()])
    if len(missing):
        msg = (
            f"groups has missing values in {name_rows(missing)}; give each row that belongs to no group a value of its "
            "own."
        )
        raise ValueError(msg)
    return number(labels.tolist())


def number(keys: Iterable[Hashable]) -> NDArray[np.int64]:
    """Give keys numbers in the order of their first appearance; equal ones have the same number."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, ``pandas.NA`` or ``pandas.NaT``."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array has one truth value per entry
        return False


def check_squares(X: NDArray[Any]) -> None:
    """Raise one sentence if squares of the values would overflow."""
    largest = np.abs(X).max(axis=1).astype(np.float64)
    rows = np.flatnonzero(largest > LARGEST_VALUE)
    if len(rows):
        msg = (
            f"X has values up to {largest.max():.3g} in {name_rows(rows)}, whose squares overflow, but must stay below "
            f"{LARGEST_VALUE:.0e}; correct or drop these rows, or divide X by a constant."
        )
        raise ValueError(msg)


def name_rows(rows: NDArray[Any]) -> str:
    """Name rows for a message: the first ones, and how many more there are."""
    return f"{'row' if len(rows) == 1 else 'rows'} {enumerated(rows)}"


def enumerated(values: NDArray[Any]) -> str:
    """Name values for a message: the first ones, and how many more there are."""
    names = ", ".join(map(repr, values[:_MOST_NAMED].tolist()))
    more = len(values) - _MOST_NAMED
    return names if more <= 0 else f"{names} and {more} more"


def unfit(estimator: Any) -> None:
    """Remove all that a fit has stored, so that neither a partial fit nor a part of an earlier one remains.

    Parameters stay, and what scikit-learn keeps for its own (output containers, metadata requests, callbacks).
    """
    kept, of_sklearn = estimator.get_params(deep=False), ("_sklearn", "_skl", "_metadata", "_parent", "_callback")
    for name in [name for name in vars(estimator) if name not in kept and not name.startswith(of_sklearn)]:
        delattr(estimator, name)
