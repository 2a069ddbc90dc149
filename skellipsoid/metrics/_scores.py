"""What the metrics of scores share: reading scores, and saying when a figure is undefined."""

from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import _check_sample_weight

from ._labels import check_same_length, read_known_rows


class ScoredRows(NamedTuple):
    """Which rows are known, their scores and what they weigh, which is not 0."""

    is_known: NDArray[np.bool_]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]

    @property
    def rank(self) -> NDArray[np.int64]:
        """Dense rank of each score: the same order and the same ties, infinite scores included."""
        return np.unique(self.score, return_inverse=True)[1]


def read_scored_rows(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> ScoredRows:
    """Read which rows are known, their scores and weights; rows without weight are left out."""
    is_known = read_known_rows(y_true, open_label=open_label, labels=labels)
    scores, weights = read_scores(score, len(is_known)), read_weights(sample_weight, len(is_known))
    present = weights > 0
    return ScoredRows(is_known[present], scores[present], weights[present])


def read_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Turn weights into ``float64``, one for each row, finite, not negative and not all 0; ones for ``None``."""
    rows = np.empty((n_rows, 0))
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        msg = f"sample_weight is 0 for all {n_rows} rows, but at least one must be positive; leave it out for 1."
        raise ValueError(msg)
    return np.asarray(weights)


def read_scores(score: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Turn scores of any container into ``float64``, one for each row, none of them NaN."""
    array = np.asarray(score)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        msg = (
            f"score has shape {array.shape}, but must be one-dimensional: pass one number for each row, as "
            "score_samples gives it."
        )
        raise ValueError(msg)
    check_same_length(n_rows, array, "score")
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    if array.dtype.kind not in "buif":
        msg = f"score is of type {array.dtype}, but must be numbers: pass how known each row looks, not its label."
        raise ValueError(msg)
    n_missing = int(np.isnan(array).sum())
    if n_missing:
        msg = (
            f"score holds NaN in {n_missing} of {n_rows} rows, but every row needs a score: give the rows without one "
            "-inf to have them rank last, or leave them out."
        )
        raise ValueError(msg)
    return array.astype(np.float64)


def has_both(is_known: NDArray[np.bool_], what: str, *, stacklevel: int = 2) -> bool:
    """Whether there are known and open rows, with a warning unless there are.

    Parameters
    ----------
    is_known : ndarray of shape (n_samples,)
    what : str
        The quantity that is undefined otherwise.
    stacklevel : int
        Of the warning, counted from the caller of this function.
    """
    missing = [name for name, rows in (("known", is_known), ("open", ~is_known)) if not rows.any()]
    if missing:
        warn(
            f"{what} is undefined and set to nan, since y_true has no {missing[0]} row: pass rows of both kinds, and "
            "the known classes as labels if y_true names the classes of open rows.",
            UndefinedMetricWarning,
            stacklevel=stacklevel + 1,
        )
    return not missing
