"""F1 scores and accuracy of predicted labels, each a known class or *open*."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._counts import Counts, ZeroDivision, check_zero_division, count_predictions, f1_scores, fill_undefined, macro
from ._reading import read_label_problem


def open_set_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Macro F1 over the K known classes and open: the *F1* of the open-intent literature.

    Open has the same weight as one known class, for any number of open samples. A class that is never predicted
    correctly has an F1 of 0.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred : array-like of shape (n_samples,)
        Predictions of the same kind. One outside ``labels`` that is not the open label is wrong for every sample and
        no false positive of any class, as with the ``labels`` of :func:`sklearn.metrics.f1_score`.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels: −1 for numbers, ``"-1"`` for strings.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``y_pred`` and are not the open label; pass the
        training classes when ``y_true`` names the classes of open samples, or when a known class may have no test
        sample.
    zero_division : {"warn", 0, 1, nan}, default="warn"
        Value of an undefined F1. The F1 of a known class is undefined if the class is neither a true label nor a
        prediction. The F1 of open is undefined if no sample of ``y_true`` is open. "warn" is 0 with an
        ``UndefinedMetricWarning``; NaN leaves it out of the mean.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    f1 : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or ``labels`` lists a class twice or the open label.

    See Also
    --------
    known_f1_score : The mean over the known classes alone.
    open_f1_score : The F1 of open alone.
    open_set_report : All of these, for each class.

    Notes
    -----
    With true positives TP, false positives FP and false negatives FN of each class, open being class K + 1,

    .. math:: F_1 = \frac{1}{K + 1} \sum_{k=1}^{K+1} \frac{2 \, TP_k}{2 \, TP_k + FP_k + FN_k},

    the mean of the F1 scores as in [1]_, not the F1 of mean precision and recall. If ``y_true`` has an open sample, it
    equals ``sklearn.metrics.f1_score(..., labels=[*known, open_label], average="macro")``.

    References
    ----------
    .. [1] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    >>> from skellipsoid.metrics import open_set_f1_score
    >>> y_true = ["pay", "pay", "card", "weather", "joke"]
    >>> y_pred = ["pay", "-1", "card", "card", "-1"]
    >>> round(open_set_f1_score(y_true, y_pred, labels=["card", "pay"]), 4)
    0.6111
    """
    check_zero_division(zero_division)
    counts = count_predictions(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    return macro(np.append(_known_f1(counts, zero_division), _open_f1(counts, zero_division)))


def known_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Macro F1 over the K known classes: *F1-known*.

    Open samples count too: a known class predicted for an open sample reduces the precision of this class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred : array-like of shape (n_samples,)
        Predictions of the same kind. One outside ``labels`` that is not the open label is wrong.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``y_pred`` and are not the open label.
    zero_division : {"warn", 0, 1, nan}, default="warn"
        Value of the F1 of a known class that is neither a true label nor a prediction, and of the mean if there is no
        known class. "warn" is 0 with an ``UndefinedMetricWarning``; NaN leaves a class out of the mean.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    f1 : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or ``labels`` lists a class twice or the open label.

    See Also
    --------
    open_set_f1_score : The mean over the known classes and open.

    Notes
    -----
    The mean of :math:`2 \, TP_k / (2 \, TP_k + FP_k + FN_k)` over the known classes k = 1 … K [1]_.

    References
    ----------
    .. [1] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    >>> from skellipsoid.metrics import known_f1_score
    >>> round(known_f1_score([0, 0, 1, -1, -1], [0, -1, 1, 1, -1]), 4)
    0.6667
    """
    check_zero_division(zero_division)
    counts = count_predictions(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    scores = _known_f1(counts, zero_division)
    if not len(scores):
        scores = fill_undefined(
            np.array([np.nan]),
            np.array([True]),
            zero_division,
            what="F1 over the known classes",
            missing="y_true and y_pred have no",
            names=["known class"],
        )
    return macro(scores)


def open_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""F1 with open as the positive class: *F1-open*.

    All unknown classes together count as one class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred : array-like of shape (n_samples,)
        Predictions of the same kind; only the open label itself means open.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``y_pred`` and are not the open label.
    zero_division : {"warn", 0, 1, nan}, default="warn"
        Value if no sample of ``y_true`` is open, whatever was predicted. "warn" is 0 with an
        ``UndefinedMetricWarning``.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    f1 : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or ``labels`` lists a class twice or the open label.

    See Also
    --------
    open_set_f1_score : The mean over the known classes and open.
    skellipsoid.metrics.open_set_auroc : How well a score separates open from known samples, over all offsets.

    Notes
    -----
    :math:`2 \, TP / (2 \, TP + FP + FN)`, where TP are open samples predicted open, FP known samples predicted open,
    and FN open samples predicted as a known class [1]_.

    References
    ----------
    .. [1] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    >>> from skellipsoid.metrics import open_f1_score
    >>> open_f1_score([0, 0, 1, -1, -1], [0, -1, 1, 1, -1])
    0.5
    """
    check_zero_division(zero_division)
    counts = count_predictions(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    return float(_open_f1(counts, zero_division)[0])


def open_set_accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Proportion of correct predictions. For open samples, the open label is correct.

    The *ACC* of the open-intent literature. Every sample has the same weight. If few classes are known, most test
    samples are open, and the accuracy is mostly the open rejection rate.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred : array-like of shape (n_samples,)
        Predictions of the same kind. One outside ``labels`` that is not the open label is wrong, even if ``y_true``
        has the same label, because this sample is open.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``y_pred`` and are not the open label.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used.

    Returns
    -------
    accuracy : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or ``labels`` lists a class twice or the open label.

    See Also
    --------
    open_set_f1_score : Every class has the same weight.

    Notes
    -----
    The accuracy over K + 1 classes of [1]_.

    References
    ----------
    .. [1] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    >>> from skellipsoid.metrics import open_set_accuracy
    >>> open_set_accuracy([0, 0, 1, 7, 8], [0, -1, 1, 1, -1], labels=[0, 1])
    0.6
    """
    problem = read_label_problem(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    return float(np.average(problem.true == problem.predicted, weights=problem.weight))


def _known_f1(counts: Counts, zero_division: ZeroDivision) -> NDArray[np.float64]:
    """F1 of each known class."""
    return _f1(counts, slice(-1), zero_division, "F1", "y_true and y_pred have no")


def _open_f1(counts: Counts, zero_division: ZeroDivision) -> NDArray[np.float64]:
    """F1 of open, of shape (1,)."""
    return _f1(counts, slice(-1, None), zero_division, "F1 of open", "y_true has no")


def _f1(counts: Counts, part: slice, zero_division: ZeroDivision, what: str, missing: str) -> NDArray[np.float64]:
    values, undefined = f1_scores(counts)
    return fill_undefined(
        values[part], undefined[part], zero_division, what=what, missing=missing, names=counts.names[part]
    )
