"""Finds columns that are constant, that differ much in scale, or that a projection such as PCA made."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.validation import enumerated
from .._samples.projections import REMEDY, describe, find_projection
from .._samples.units import column_units
from .findings import Finding

#: Scales that differ by a smaller factor are no finding: a fit that ignores them is hardly worse.
_UNLIKE_UNITS = 10.0


def check_columns(
    X: NDArray[np.float64], classes: NDArray[np.int64], known: NDArray[np.bool_], names: list[str] | None
) -> Iterator[Finding]:
    """Give the findings of columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)
    known : ndarray of shape (n_samples,)
        Which samples have a class.
    names : list of str or None
        Of the columns.
    """
    labels: NDArray[Any] = np.arange(X.shape[1]) if names is None else np.array(names, dtype=object)
    yield from _constant(X, labels)
    projection = find_projection(X, classes)
    if projection:
        yield Finding("projected_columns", [], None, f"{describe(projection)}; {REMEDY}.")
    elif known.any():
        yield from _in_unlike_units(X[known], classes[known], labels)


def _constant(X: NDArray[np.float64], names: NDArray[Any]) -> Iterator[Finding]:
    if len(X) < 2:
        return
    columns = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(columns):
        named = enumerated(names[columns])
        which = f"column {named} has" if len(columns) == 1 else f"columns {named} have"
        message = f"The {which} the same value in all rows; drop what is constant, if it should be."
        yield Finding("constant_columns", [], None, message)


def _in_unlike_units(X: NDArray[np.float64], classes: NDArray[np.int64], names: NDArray[Any]) -> Iterator[Finding]:
    units = column_units(X, classes, np.ones(len(X)))
    if units is None or units.max() <= _UNLIKE_UNITS * units.min():
        return
    message = (
        f"The standard deviation within classes is {units.max() / units.min():.2g} times as large in column "
        f"{enumerated(names[[units.argmax()]])} as in column {enumerated(names[[units.argmin()]])}; the default fit "
        "divides columns by it, but before trainer=EliDecide() and other methods put a StandardScaler."
    )
    yield Finding("unlike_units", [], None, message)
