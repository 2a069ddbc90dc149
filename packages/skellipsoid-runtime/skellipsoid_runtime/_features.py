"""Checks of a table of features, and the nearest kept training samples by Euclidean distance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._containers import in_memory, stack_vectors

#: What NumPy casts to numbers without an error, but is none.
_NO_NUMBERS = (np.datetime64, np.timedelta64, np.complexfloating)


def check_features(X: Any, n_features: int) -> NDArray[Any]:
    """Read a table of features, or a column of vectors, as numbers.

    Raises
    ------
    ValueError
        If they are no finite numbers, or not as many as the model takes.
    """
    features = np.asarray(stack_vectors(in_memory(X, "X")))
    if not features.ndim:
        raise ValueError(
            f"X is a {type(X).__name__}, but must be a table of features; pass an array of two dimensions."
        )
    if np.ma.is_masked(X):
        raise ValueError("X has masked values, but features must be numbers; fill them, or drop these rows.")
    if features.ndim != 2 or not len(features):
        raise ValueError(
            f"X has the shape {features.shape}, but must be a table of at least one row; pass one row per sample."
        )
    if features.shape[1] != n_features:
        raise ValueError(f"X has {features.shape[1]} features, but the model is expecting {n_features}; pass as many.")
    try:
        with np.errstate(over="ignore"):
            features = _numbers(features)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"X holds values of type {features.dtype}, but features must be numbers; convert them."
        ) from error
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise ValueError(f"Row {int(np.argmin(finite))} of X holds NaN or infinity; fill or drop such rows first.")
    return features


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Cast to numbers; a TypeError, ValueError or OverflowError for what is none."""
    of_objects = values.flat if values.dtype.kind == "O" else ()
    if values.dtype.kind in "cmMV" or any(isinstance(value, _NO_NUMBERS) for value in of_objects):
        raise TypeError(values.dtype)
    return values.astype(np.float64, copy=False)


def nearest(
    candidates: NDArray[Any], features: NDArray[Any], n_neighbors: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Euclidean distances and rows of the nearest candidates, nearest first, (n_samples, n_neighbors)."""
    # Differences from the median: distances are found by squares, which are rounding alone far from 0.
    centre = np.median(candidates.astype(np.float64), axis=0)
    others, squares = candidates - centre, np.square(candidates - centre).sum(axis=1)
    distances = np.empty((len(features), n_neighbors))
    rows = np.empty((len(features), n_neighbors), dtype=np.int64)
    if not n_neighbors:
        return distances, rows
    for i, point in enumerate(features - centre):
        near = np.argpartition(squares - 2 * (others @ point), n_neighbors - 1)[:n_neighbors]
        exact = np.linalg.norm(others[near] - point, axis=1)
        order = np.argsort(exact, kind="stable")
        distances[i], rows[i] = exact[order], near[order]
    return distances, rows
