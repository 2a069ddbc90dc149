"""Move a fitted boundary to a wanted rejection or acceptance rate, without fitting anything again."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ._base import BaseOpenSetClassifier
from ._labels import as_labels
from .metrics._scorers import final_step


def set_operating_point(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    rejection_rate: float | None = None,
    open_acceptance_rate: float | None = None,
) -> Any:
    """Set how much a fitted classifier rejects.

    Moves ``offset_``, the score below which ``predict`` answers open; moving it to o is multiplying every radius by
    1 − o. Nothing else changes. Use rows that took no part in training.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted. It is changed in place; a later ``fit`` resets it.
    X : array-like
        What the estimator predicts on: features, or texts for a text Pipeline.
    y : array-like of shape (n_samples,), default=None
        Labels of the rows; those outside ``classes_`` are open. ``None``: every row is known for ``rejection_rate``,
        every row is open for ``open_acceptance_rate``.
    rejection_rate : float in [0, 1], default=None
        Take the largest offset that rejects at most this share of the rows not labelled open.
    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this share of the open rows.

    Returns
    -------
    estimator : object
        The same estimator. With both rates ``None`` its offset is 0 again: the learned boundary itself.

    Raises
    ------
    ValueError
        If both rates are given, if a rate is outside [0, 1], or if no row of the wanted kind is there.
    TypeError
        If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 2)) + np.repeat([[0], [9]], 200, axis=0), np.repeat([0, 1], 200)
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X[::2], y[::2])
    >>> clf = skellipsoid.set_operating_point(clf, X[1::2], rejection_rate=0.05)
    >>> float((clf.predict(X[1::2]) == -1).mean())
    0.05
    """
    classifier = final_step(estimator)
    if not isinstance(classifier, BaseOpenSetClassifier):
        msg = (
            f"{type(classifier).__name__} has no operating point to set; pass an open-set classifier of this package "
            "or a Pipeline that ends in one."
        )
        raise TypeError(msg)
    check_is_fitted(classifier)
    if rejection_rate is not None and open_acceptance_rate is not None:
        msg = "rejection_rate and open_acceptance_rate are both given; set one of them and leave the other None."
        raise ValueError(msg)
    if rejection_rate is None and open_acceptance_rate is None:
        classifier.offset_ = 0.0
        return estimator
    scores = np.asarray(estimator.score_samples(X))
    if rejection_rate is not None:
        known = _rows(classifier, scores, y, want_known=True)
        classifier.offset_ = _largest_offset(known, _checked(rejection_rate, "rejection_rate"))
    else:
        opened = _rows(classifier, scores, y, want_known=False)
        classifier.offset_ = _smallest_offset(opened, _checked(open_acceptance_rate, "open_acceptance_rate"))
    return estimator


def _checked(rate: float | None, name: str) -> float:
    if rate is None or not 0 <= rate <= 1:
        msg = f"{name}={rate!r} is no share; use a number from 0 to 1."
        raise ValueError(msg)
    return float(rate)


def _rows(
    classifier: BaseOpenSetClassifier, scores: NDArray[np.floating], y: ArrayLike | None, *, want_known: bool
) -> NDArray[np.floating]:
    if y is not None:
        labels = as_labels(y)
        check_consistent_length(scores, labels)
        scores = scores[np.isin(labels, classifier.classes_) == want_known]
    if not len(scores):
        kind, others = ("known", "open") if want_known else ("open", "known")
        msg = f"Every row of y is {others}, but the rate is one of {kind} rows; pass at least one {kind} row."
        raise ValueError(msg)
    return scores


def _most(n_rows: int, rate: float) -> int:
    """Largest number of rows that is at most the share ``rate`` of them; quotients, because 0.29 · 100 < 29."""
    return int(np.searchsorted(np.arange(n_rows + 1) / n_rows, rate, side="right")) - 1


def _largest_offset(scores: NDArray[np.floating], rate: float) -> float:
    most = _most(len(scores), rate)
    return float(np.sort(scores)[most]) if most < len(scores) else np.inf


def _smallest_offset(scores: NDArray[np.floating], rate: float) -> float:
    most = _most(len(scores), rate)
    # The offset itself is accepted: it must lie a hair above the first score that is not, in the scores' precision.
    return (
        float(np.nextafter(np.sort(scores)[::-1][most], scores.dtype.type(np.inf))) if most < len(scores) else -np.inf
    )
