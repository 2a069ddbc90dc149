"""Reads features, weights and groups from any container, with errors that name the rows."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from skellipsoid_runtime._containers import in_memory, is_missing, only_column, stack_vectors

from .messages import cut
from .sklearn import check_sample_weight
from .warn import warn

#: Squares of larger values, summed over the features, may overflow.
LARGEST_VALUE = 1e150
#: Weights below this fraction of the largest are set to 0.
SMALLEST_RELATIVE_WEIGHT = 1e-12
#: Largest number of rows that a message names.
_MOST_NAMED = 10
#: Largest number of characters of a value in a message.
_LONGEST_NAMED = 100
#: Types of dates and times; those of pandas are subclasses.
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)
_DATES_OF_ARROW = ("date", "time", "timestamp", "duration", "month")
#: Start of scikit-learn's error for missing and infinite values, which its own checks search for.
_UNUSABLE = re.compile(r"(Input X contains (NaN|infinity[^.]*))\.")
#: NumPy's error for a text among numbers, and the number of its characters in a message.
_TEXT = re.compile(r"could not convert string to float: (?:np\.str_\()?['\"](.*)['\"]", re.DOTALL)
_LONGEST_TEXT = 30
_NO_ROWS = np.empty(0, dtype=np.intp)
#: Largest number of entries of an array that is checked here; in larger ones scikit-learn's check is relatively fast.
SMALL = 2**14


def read_features(X: Any) -> Any:
    """Return features for ``validate_data``; raise an error for values that it would silently turn into numbers.

    Raises
    ------
    ValueError
        If X is sparse or not computed yet, or holds masked values, vectors of different lengths, dates, times, complex
        numbers or records.
    """
    X = stack_vectors(unmasked(X, "X"))
    if issparse(X):
        raise ValueError(
            f"X is sparse, of shape {X.shape}, but must be dense and have few features; for texts use "
            "SupConTextEncoder instead of word counts, or SoftmaxOpenSetClassifier with a classifier that takes sparse "
            "features (the guide, Features), else put TruncatedSVD before it."
        )
    for found in _dates(X):
        raise ValueError(
            f"X holds {found}, but features must be numbers; convert dates and times, for instance to days since a "
            "fixed date, and drop or fill missing ones."
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "c":  # scikit-learn's own checks search for these words
        raise ValueError(
            f"Complex data not supported: X is of type {dtype}; pass real and imaginary parts as separate features."
        )
    if isinstance(dtype, np.dtype) and dtype.names is not None:
        raise ValueError(
            f"X holds records with the fields {', '.join(dtype.names)}, but features must be numbers; convert it with "
            "numpy.lib.recfunctions.structured_to_unstructured(X)."
        )
    return X


@contextmanager
def naming_rows(X: Any) -> Iterator[None]:
    """Add to scikit-learn's errors the rows with missing and infinite values, and what to do."""
    try:
        yield
    except TypeError as error:
        if "argument must be" not in str(error):
            raise
        raise TypeError(
            f"X holds a value that is not a number ({error}), but features must be numbers; convert or drop it."
        ) from None
    except ValueError as error:
        if "an array element with a sequence" in str(error):
            raise ValueError(
                "X holds a list or an array in some of its cells, but features must be numbers; pass a column of "
                "vectors alone, such as X['embedding']."
            ) from None
        if "Found array with dim" in str(error):
            raise ValueError(f"{error} Pass X.reshape(len(X), -1), with one row for each sample.") from None
        if text := _TEXT.search(str(error)):
            raise ValueError(
                f"X holds the text {cut(text[1], _LONGEST_TEXT)!r}, but features must be numbers (could not convert "
                "string to float); put an encoder such as SupConTextEncoder before the classifier, or parse vectors "
                "that are written as text, with json.loads."
            ) from None
        found = _UNUSABLE.match(str(error))
        if found is None:
            raise
        is_missing_value = found.group(2) == "NaN"
        rows = unusable_rows(X)[0 if is_missing_value else 1]
        if not len(rows):
            raise
        remedy = "fill missing values, for instance with SimpleImputer," if is_missing_value else "correct them,"
        raise ValueError(f"{found.group(1)} in {name_rows(rows)}; {remedy} or drop these rows.") from None


def unusable_rows(X: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the rows with missing values, and the rows with values that are infinite or too large for a float."""
    try:
        with np.errstate(over="ignore"):  # values of a wider type
            table = np.asarray(with_nan(X), dtype=np.float64)
    except (TypeError, ValueError):
        return _NO_ROWS, _NO_ROWS
    if table.ndim != 2:
        return _NO_ROWS, _NO_ROWS
    return np.flatnonzero(np.isnan(table).any(axis=1)), np.flatnonzero(np.isinf(table).any(axis=1))


def with_nan(X: Any) -> Any:
    """Replace None, ``pandas.NA`` and the like in a table by NaN; anything else stays."""
    if issparse(X):
        return X
    table = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if table.dtype.kind == "O" and table.ndim == 2:
        where = np.array([is_missing(value) for value in table.ravel()], dtype=bool).reshape(table.shape)
        table = np.where(where, np.nan, table)
    return table


def unmasked(values: Any, name: str) -> Any:
    """Convert a torch tensor, or a masked array that masks nothing, to a plain array; anything else stays.

    Raises
    ------
    ValueError
        If a value is masked (NumPy and scikit-learn would use the value under the mask), or values are not computed
        yet.
    """
    rows = masked_rows(values)
    if len(rows):
        raise ValueError(f"{name} has masked values in {name_rows(rows)}; fill them, or drop these rows.")
    return np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else in_memory(values, name)


def masked_rows(values: Any) -> NDArray[np.intp]:
    """Find the rows that hold a masked value, in a masked array or in a list of masked rows."""
    if isinstance(values, list | tuple):
        return np.flatnonzero([np.ma.is_masked(row) for row in values])
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.names is not None:
        return np.empty(0, dtype=np.intp)
    mask = np.atleast_1d(np.ma.getmaskarray(values))
    return np.flatnonzero(mask.any(axis=tuple(range(1, mask.ndim))))


def _dates(X: Any) -> Iterator[str]:
    """Describe dates and times among features, which NumPy would read as 8-byte integers."""
    for field in getattr(X, "schema", ()) if hasattr(X, "column_names") else ():  # pyarrow
        if str(field.type).startswith(_DATES_OF_ARROW):
            yield f"the column {field.name!r} of type {field.type}"
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # pandas or polars
        for name, dtype in zip(X.columns, X.dtypes, strict=True):
            is_period = str(dtype).startswith("period[")
            if is_period or getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)():
                yield f"the column {name!r} of type {dtype}"
        if all(getattr(dtype, "kind", "") != "O" for dtype in X.dtypes):
            return
    try:
        table = X if hasattr(X, "dtype") or issparse(X) else np.asarray(X)
    except (TypeError, ValueError):  # ragged, which validate_data refuses
        return
    if not isinstance(table, np.ndarray):
        return
    if table.dtype.kind in "mM":
        yield f"values of type {table.dtype}"
    if table.dtype.kind == "O":
        yield from (f"{value!s} of type {type(value).__name__}" for value in table.flat if isinstance(value, _DATES))


def read_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return one finite weight of at least 0 for each row, not all 0; ones for ``None``."""
    rows = np.empty((n_rows, 0))
    given = unmasked(sample_weight, "sample_weight")
    dtype = getattr(given, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "cmMV":
        raise ValueError(f"sample_weight is of type {dtype}, but must be numbers; pass one finite number for each row.")
    check_weights(given, np.arange(n_rows))
    weights = check_sample_weight(given, rows, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weights)


def check_weights(sample_weight: Any, rows: NDArray[np.intp]) -> None:
    """Raise an error that names the rows with invalid weights; other errors are left to the reader of the weights.

    The message begins like scikit-learn's, which its own checks search for.
    """
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
        weights = given[rows] if given.ndim else np.full(len(rows), given)
    except (TypeError, ValueError, IndexError):
        return
    if sample_weight is None or weights.ndim != 1:
        return
    for what, is_bad in (
        ("Input sample_weight contains NaN", np.isnan(weights)),
        ("Input sample_weight contains infinity", np.isinf(weights)),
        ("Negative values in data passed to `sample_weight`", weights < 0),
    ):
        if is_bad.any():
            raise ValueError(f"{what} in {name_rows(rows[is_bad])}; pass a finite number of at least 0 for each row.")
    if len(weights) and not weights.any():
        raise ValueError(
            f"sample_weight is zero for all {len(rows)} rows, but at least one must be positive; omit it for equal "
            "weights."
        )


def read_relative_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return the weight of each row relative to the largest; tiny ones are 0."""
    weights = read_weights(sample_weight, n_rows)
    shares = np.asarray(weights / weights.max())
    lost = (weights > 0) & (shares < SMALLEST_RELATIVE_WEIGHT)
    if lost.any():
        warn(
            f"{lost.sum()} of {(weights > 0).sum()} positive weights are less than {SMALLEST_RELATIVE_WEIGHT:g} of the "
            f"largest, {weights.max():g}, and count as 0; check that weight."
        )
    shares[lost] = 0
    return shares


def check_equal(weights: NDArray[np.float64], name: str) -> None:
    """Raise an error if positive weights differ, for a method without weights."""
    if np.ptp(weights) > 0:
        raise ValueError(
            f"sample_weight holds different positive weights, but {name} counts neighbours, which have no weights; "
            "pass one weight for all samples to use and 0 for the others, or repeat samples."
        )


def check_groups(groups: ArrayLike | None, n_samples: int) -> NDArray[np.int64] | None:
    """Return the group of each row as an integer."""
    if groups is None:
        return None
    given = only_column(groups, "groups")
    labels = np.asarray(given, dtype=object if isinstance(given, list | tuple) else None)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups has the shape {labels.shape}, but must hold one group for each of the {n_samples} rows."
        )
    missing = np.union1d(masked_rows(given), np.flatnonzero([is_missing(label) for label in labels.tolist()]))
    if len(missing):
        raise ValueError(
            f"groups has missing values in {name_rows(missing)}; give each row that belongs to no group a value of its "
            "own."
        )
    return number(labels.tolist())


def number(keys: Iterable[Hashable]) -> NDArray[np.int64]:
    """Give equal keys the same number, in the order of their first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def is_number(value: Any) -> bool:
    """Whether a value is a real number; a Boolean is not."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def check_squares(X: NDArray[Any], used: NDArray[np.int64] | None = None) -> None:
    """Raise an error if squares of the values in the ``used`` rows would overflow."""
    largest = np.abs(X if used is None else select_rows(X, used)).max(axis=1).astype(np.float64)
    rows = np.flatnonzero(largest > LARGEST_VALUE)
    if len(rows):
        rows = rows if used is None else used[rows]
        raise ValueError(
            f"X has values up to {largest.max():.3g} in {name_rows(rows)}, whose squares overflow, but must stay below "
            f"{LARGEST_VALUE:.0e}; correct or drop these rows, or divide X by a constant."
        )


def name_rows(rows: NDArray[Any], what: str = "row") -> str:
    """Name rows, or what else they are, for a message: the first ones, and how many more there are."""
    return f"{what}{'' if len(rows) == 1 else 's'} {enumerated(rows)}"


def enumerated(values: NDArray[Any]) -> str:
    """Name values for a message: the first ones, and how many more there are."""
    names = ", ".join(shortened_repr(value) for value in values[:_MOST_NAMED].tolist())
    more = len(values) - _MOST_NAMED
    return names if more <= 0 else f"{names} and {more} more"


def shortened_repr(value: Any) -> str:
    """Write a value for a message; long texts are cut."""
    written = repr(value)
    return written if len(written) <= _LONGEST_NAMED else f"{written[:_LONGEST_NAMED]}…"


def is_plain(X: Any, estimator: Any) -> bool:
    """Whether X is a small array that needs no conversion for a fitted estimator; checks its shape and values.

    scikit-learn's check would take longer than the prediction.
    """
    if type(X) is not np.ndarray or X.dtype not in (np.float32, np.float64):
        return False
    is_small = X.ndim == 2 and 0 < X.size <= SMALL
    is_named = hasattr(estimator, "feature_names_in_")  # an array has no names, of which scikit-learn warns
    return is_small and not is_named and X.shape[1] == estimator.n_features_in_ and bool(np.isfinite(X).all())


def select_rows(X: NDArray[Any], numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Select rows, by ascending numbers; all of them without a copy."""
    return X if len(numbers) == len(X) else X[numbers]
