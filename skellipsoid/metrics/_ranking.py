"""AUROC, AUPR and FPR at a TPR, of scores that are higher for known samples."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from .._core.validation import is_number
from ._counts import has_both
from ._reading import read_scored_rows


def open_set_auroc(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area under the ROC curve of known against open samples.

    The probability that a known sample scores above an open one, both drawn at random. Exchanging the roles of known
    and open (and the sign of the score) does not change it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    score : array-like of shape (n_samples,)
        Knownness, in any units: higher is more known. Infinite scores are allowed, NaN is not.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels: −1 for numbers, ``"-1"`` for strings.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes every label but the open one; pass the training classes when ``y_true`` names
        the classes of open samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    auroc : float
        In [0, 1], 0.5 for a score without information. NaN with an ``UndefinedMetricWarning`` unless both known and
        open samples are there.

    Raises
    ------
    ValueError
        If a score is NaN, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    open_set_aupr : Depends on how many samples are open.
    oscr_score : Counts only the known samples that are classified correctly.

    Notes
    -----
    With s_i the scores of the n known and t_j those of the m open samples,

    .. math:: \frac{1}{n m} \sum_{i=1}^{n} \sum_{j=1}^{m}
              \left( [s_i > t_j] + \tfrac{1}{2} [s_i = t_j] \right).

    Known is the positive class [1]_. Tied scores count one half.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
       Networks", ICLR 2017.

    Examples
    --------
    >>> from skellipsoid.metrics import open_set_auroc
    >>> round(open_set_auroc([0, 0, 1, -1, -1], [0.9, 0.2, 0.7, 0.2, -0.5]), 4)
    0.9167
    """
    scored = read_scored_rows(y_true, score, open_label=open_label, labels=labels, sample_weight=sample_weight)
    if not has_both(scored.is_known, "AUROC"):
        return float("nan")
    return float(roc_auc_score(scored.is_known, scored.rank, sample_weight=scored.weight))


def open_set_aupr(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    positive: Literal["known", "open"] = "known",
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area under the precision-recall curve (average precision), with known or open as the positive class.

    The two choices give different values, and both depend on the proportion of open samples. Compare models on the same
    samples only.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    score : array-like of shape (n_samples,)
        Knownness, in any units: higher is more known, whichever class is positive. Infinite scores are allowed, NaN
        is not.
    positive : {"known", "open"}, default="known"
        The positive class: "known" is the AUPR-In of the literature, "open" (with the score's sign turned) AUPR-Out.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes every label but the open one.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    aupr : float
        In (0, 1]; the proportion of positive samples for a score without information. NaN with an
        ``UndefinedMetricWarning`` unless there are both known and open samples.

    Raises
    ------
    ValueError
        If ``positive`` is neither, a score is NaN, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    open_set_auroc : Does not depend on how many samples are open.

    Notes
    -----
    :math:`\sum_i (R_i - R_{i-1}) P_i` over the distinct scores from the most to the least positive, R and P being
    recall and precision of the samples down to that score [1]_. Steps, not trapezoids; tied scores are one step.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
       Networks", ICLR 2017.

    Examples
    --------
    >>> from skellipsoid.metrics import open_set_aupr
    >>> y_true, score = [0, 0, 1, -1, -1], [0.9, 0.2, 0.7, 0.2, -0.5]
    >>> round(open_set_aupr(y_true, score), 4)
    0.9167
    >>> round(open_set_aupr(y_true, score, positive="open"), 4)
    0.8333
    """
    if positive not in ("known", "open"):
        raise ValueError(f"positive={positive!r} is not allowed: pass 'known' or 'open'.")
    scored = read_scored_rows(y_true, score, open_label=open_label, labels=labels, sample_weight=sample_weight)
    if not has_both(scored.is_known, "AUPR"):
        return float("nan")
    is_positive, rank = (scored.is_known, scored.rank) if positive == "known" else (~scored.is_known, -scored.rank)
    return float(average_precision_score(is_positive, rank, sample_weight=scored.weight))


def fpr_at_tpr(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    tpr: float = 0.95,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Proportion of open samples that are accepted at the highest threshold that accepts ``tpr`` of the known samples.

    Samples are accepted from the highest score down until enough known samples are accepted.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    score : array-like of shape (n_samples,)
        Knownness, in any units: higher is more known. Infinite scores are allowed, NaN is not.
    tpr : float, default=0.95
        Proportion of known samples to accept, in (0, 1].
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes every label but the open one.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    fpr : float
        In [0, 1], 0 being best. NaN with an ``UndefinedMetricWarning`` unless there are both known and open samples.

    Raises
    ------
    ValueError
        If ``tpr`` is outside (0, 1], a score is NaN, labels mix numbers and strings, or lengths differ.

    See Also
    --------
    skellipsoid.metrics.trade_off_curve : Known and open samples rejected, at every threshold.

    Notes
    -----
    Known is the positive class [1]_. With θ the highest score such that #{known: s ≥ θ} ≥ ``tpr`` · #{known}, it is
    #{open: s ≥ θ} / #{open}. An exact step of the ROC curve, never interpolated; samples tied with θ are all accepted.

    References
    ----------
    .. [1] S. Liang, Y. Li, R. Srikant, "Enhancing the Reliability of Out-of-Distribution Image Detection in Neural
       Networks", ICLR 2018.

    Examples
    --------
    >>> from skellipsoid.metrics import fpr_at_tpr
    >>> y_true, score = [0, 0, 1, -1, -1], [0.9, 0.2, 0.7, 0.2, -0.5]
    >>> fpr_at_tpr(y_true, score), fpr_at_tpr(y_true, score, tpr=0.6)
    (0.5, 0.0)
    """
    if not (is_number(tpr) and 0 < tpr <= 1):
        raise ValueError(f"tpr={tpr!r} is not in (0, 1]: pass the proportion of known samples to accept, such as 0.95.")
    scored = read_scored_rows(y_true, score, open_label=open_label, labels=labels, sample_weight=sample_weight)
    if not has_both(scored.is_known, "FPR at a given TPR"):
        return float("nan")
    known, weights = scored.score[scored.is_known], scored.weight[scored.is_known]
    order = np.argsort(-known, kind="stable")
    reached = np.cumsum(weights[order])
    # Compared as quotients, because 0.07 * 100 is above 7 in floating point, while 7 / 100 equals 0.07. Sums of weights
    # are rounded.
    threshold = known[order][np.searchsorted(reached / reached[-1], tpr * (1 - 1e-12))]
    return _rate(scored.score >= threshold, ~scored.is_known, scored.weight)


def _rate(counted: NDArray[np.bool_], of: NDArray[np.bool_], weight: NDArray[np.float64]) -> float:
    """Proportion of the samples ``of`` that are ``counted``."""
    return float(np.average(counted[of], weights=weight[of])) if of.any() else float("nan")
