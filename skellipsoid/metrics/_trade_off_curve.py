"""Rates at every threshold: known samples rejected, open samples detected, wrong classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._counts import has_both
from ._reading import read_closed_set_rows, trade_off_at


def trade_off_curve(
    y_true: ArrayLike,
    y_pred_known: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""Trade-off of rejection: known samples rejected, open samples detected and wrong classes, at every threshold.

    A sample is rejected if its score is below the threshold. A larger threshold rejects more: more open samples are
    detected, fewer known samples get a wrong class, and more known samples are rejected by mistake.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred_known : array-like of shape (n_samples,)
        Closed-set predictions of the same kind, as of ``predict_known``: a known class for every sample, never open.
        Those for open samples are not used.
    score : array-like of shape (n_samples,)
        Knownness, in any units: higher is more known. Infinite scores are allowed, NaN is not.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``y_pred_known`` and are not the open label.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    known_rejected : ndarray of shape (n_thresholds,)
        Proportion of known samples with a score below each threshold, rising from 0 to 1. NaN, with an
        ``UndefinedMetricWarning``, when no sample is known.
    open_noticed : ndarray of shape (n_thresholds,)
        Recall of open: the proportion of open samples with a score below each threshold, rising from 0 to 1. NaN, with
        an ``UndefinedMetricWarning``, when no sample is open.
    wrong_class : ndarray of shape (n_thresholds,)
        Proportion of known samples that are not rejected and get a wrong class, falling to 0. NaN when no sample is
        known.
    thresholds : ndarray of shape (n_thresholds,)
        The distinct scores, rising, and infinity, which rejects all samples.

    Raises
    ------
    ValueError
        If a score is NaN, ``y_pred_known`` holds the open label, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    skellipsoid.plotting.TradeOffDisplay : Draws the curve, also of held-out training samples.
    oscr_curve : Correct known samples against accepted open samples.

    Notes
    -----
    With known samples i of class y_i, closed-set prediction ŷ_i and score s_i, and open samples j of score t_j, the
    three rates at the threshold θ are #{i : s_i < θ} / n, #{j : t_j < θ} / m and #{i : s_i ≥ θ, ŷ_i ≠ y_i} / n.

    Examples
    --------
    >>> from skellipsoid.metrics import trade_off_curve
    >>> y_true, y_pred_known = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1]
    >>> known_rejected, open_noticed, wrong_class, thresholds = trade_off_curve(
    ...     y_true, y_pred_known, [0.9, 0.6, 0.6, 0.5, 0.6, 0.1]
    ... )
    >>> thresholds
    array([0.1, 0.5, 0.6, 0.9, inf])
    >>> known_rejected
    array([0.  , 0.  , 0.25, 0.75, 1.  ])
    >>> open_noticed
    array([0. , 0.5, 0.5, 1. , 1. ])
    >>> wrong_class
    array([0.25, 0.25, 0.  , 0.  , 0.  ])
    """
    rows = read_closed_set_rows(
        y_true, y_pred_known, score, open_label=open_label, labels=labels, sample_weight=sample_weight
    )
    has_both(rows.is_known, "The trade-off curve")
    thresholds = np.unique(np.append(rows.score, np.inf))
    return (*trade_off_at(rows, thresholds), thresholds)
