"""The open-set classification rate curve, CCR(θ) against FPR(θ), and its area."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc

from ._counts import has_both
from ._reading import read_closed_set_rows


def oscr_curve(
    y_true: ArrayLike,
    y_pred_known: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""Open-set classification rate curve: correct classification rate against false positive rate.

    For every threshold, the correct classification rate is the proportion of known samples that are accepted and
    classified correctly. The false positive rate is the proportion of open samples that are accepted.

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
    fpr : ndarray of shape (n_thresholds,)
        Proportion of open samples with a score of at least each threshold, rising to 1. NaN, with an
        ``UndefinedMetricWarning``, when no sample is open.
    ccr : ndarray of shape (n_thresholds,)
        Proportion of known samples that are classified correctly and have a score of at least each threshold, rising to
        the closed-set accuracy. NaN, with an ``UndefinedMetricWarning``, when no sample is known.
    thresholds : ndarray of shape (n_thresholds,)
        The distinct scores, falling; the first is infinite where an open sample has the highest score (see Notes).

    Raises
    ------
    ValueError
        If a score is NaN, ``y_pred_known`` holds the open label, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    oscr_score : The area under this curve.

    Notes
    -----
    With n known samples i of class y_i, closed-set prediction ŷ_i and score s_i, and m open samples j of score t_j
    [1]_,

    .. math:: \text{CCR}(\theta) = \frac{1}{n} \#\{i : \hat y_i = y_i, s_i \ge \theta\}, \qquad
              \text{FPR}(\theta) = \frac{1}{m} \#\{j : t_j \ge \theta\}.

    All samples with the same score are one point. At FPR = 1 the curve is at the closed-set accuracy, not at
    1. It begins with the samples of the highest score, so not at (0, 0) if all of these are known. If some of them are
    open, only the rejection of all samples has FPR = 0: then the first point is (0, 0), with an infinite threshold.

    References
    ----------
    .. [1] A. R. Dhamija, M. Günther, T. E. Boult, "Reducing Network Agnostophobia", NeurIPS 2018.

    Examples
    --------
    >>> from skellipsoid.metrics import oscr_curve
    >>> y_true, y_pred_known = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1]
    >>> fpr, ccr, thresholds = oscr_curve(y_true, y_pred_known, [0.9, 0.6, 0.6, 0.5, 0.6, 0.1])
    >>> fpr
    array([0. , 0.5, 0.5, 1. ])
    >>> ccr
    array([0.25, 0.75, 0.75, 0.75])
    >>> thresholds
    array([0.9, 0.6, 0.5, 0.1])
    """
    rows = read_closed_set_rows(
        y_true, y_pred_known, score, open_label=open_label, labels=labels, sample_weight=sample_weight
    )
    is_known, weight = rows.is_known, rows.problem.weight
    has_both(is_known, "The OSCR curve")
    thresholds, rank = np.unique(rows.score, return_inverse=True)
    ccr = _rate_at_least(is_known & (rows.problem.true == rows.problem.predicted), is_known, rank, weight)
    fpr = _rate_at_least(~is_known, ~is_known, rank, weight)
    if fpr[-1] > 0:
        # Zero times the last rate, so that it is NaN where the rates are NaN.
        ccr, fpr, thresholds = np.append(ccr, 0 * ccr[-1]), np.append(fpr, 0.0), np.append(thresholds, np.inf)
    return fpr[::-1], ccr[::-1], thresholds[::-1]


def oscr_score(
    y_true: ArrayLike,
    y_pred_known: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area under the open-set classification rate curve.

    The probability that a random known sample is classified correctly and has a higher score than a random open sample.
    It is at most the closed-set accuracy, and at most the AUROC.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred_known : array-like of shape (n_samples,)
        Closed-set predictions of the same kind, as of ``predict_known``: a known class for every sample, never open.
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
    oscr : float
        In [0, 1]. NaN with an ``UndefinedMetricWarning`` unless there are both known and open samples.

    Raises
    ------
    ValueError
        If a score is NaN, ``y_pred_known`` holds the open label, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    oscr_curve : The curve itself.
    open_set_auroc : The same when every known sample is classified correctly.

    Notes
    -----
    Trapezoids between the points of :func:`oscr_curve` [1]_, so that samples with one score are one step, which is

    .. math:: \frac{1}{n m} \sum_{i : \hat y_i = y_i} \sum_{j=1}^{m}
              \left( [s_i > t_j] + \tfrac{1}{2} [s_i = t_j] \right).

    Without ties this is the OpenAUC of [2]_. When all scores are equal it is half the closed-set accuracy.

    References
    ----------
    .. [1] A. R. Dhamija, M. Günther, T. E. Boult, "Reducing Network Agnostophobia", NeurIPS 2018.
    .. [2] Z. Wang, Q. Xu, Z. Yang, Y. He, X. Cao, Q. Huang, "OpenAUC: Towards AUC-Oriented Open-Set Recognition",
       NeurIPS 2022.

    Examples
    --------
    >>> from skellipsoid.metrics import oscr_score
    >>> y_true, y_pred_known = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1]
    >>> oscr_score(y_true, y_pred_known, [0.9, 0.6, 0.6, 0.5, 0.6, 0.1])
    0.625
    """
    fpr, ccr, _ = oscr_curve(
        y_true, y_pred_known, score, open_label=open_label, labels=labels, sample_weight=sample_weight
    )
    if np.isnan(fpr[-1]) or np.isnan(ccr[-1]):
        return float("nan")
    return float(auc(fpr, ccr))


def _rate_at_least(
    counted: NDArray[np.bool_], of: NDArray[np.bool_], rank: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Proportion of the samples ``of`` that are ``counted`` and of rank at least 0, 1, …; NaN if there are none."""
    n_ranks = rank.max() + 1

    def at_least(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(rank[rows], weights=weights[rows], minlength=n_ranks)[::-1].cumsum()[::-1]

    # Numerator and denominator are summed in the same order, so that the rate of all samples is exactly 1.
    return at_least(counted) / at_least(of)[0] if of.any() else np.full(n_ranks, np.nan)
