"""Probabilities of the known classes and of open."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression

from ..._core.pipelines import read_estimator
from ..._core.warn import warn
from .held import Floats, HeldOutScores
from .share import MEMBERS, open_share_of, score

#: Open share if none is given, which is the middle of those that the size of the boundaries is chosen for.
USUAL_SHARE = 0.5
SMALLEST_SHARE, LARGEST_SHARE = 0.001, 0.999
#: Quantile of the held-out known scores below which the probability of the assigned class does not fall.
LOWEST = 0.05


def predict_open_proba(
    estimator: Any, X: ArrayLike, open_share: float | Literal["auto"] | None = None
) -> NDArray[np.float64]:
    """Probabilities of the known classes, and of open in the last column.

    How probable it is that a sample is open depends on how many are: set ``open_share``. The probabilities are
    calibrated on the samples and classes that were held out of the fit (``held_out_``), so no other data are needed.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. For others held-out scores and new ones are on unlike scales.
    X : array-like
        Features, or texts for a text Pipeline.
    open_share : float in [0, 1] or "auto", default=None
        Share of open samples in the traffic; below 0.001 it counts as 0.001, above 0.999 as 0.999. ``None`` is a half.
        ``"auto"`` estimates it from ``X``, which must then be a stretch of traffic (:func:`estimate_open_share`); with
        fewer than 50 different samples a warning says so, and a half is used.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes + 1)
        The classes in the order of ``classes_``, then open. Each row sums to 1.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample or no class, if ``open_share`` is not a share, or if ``X`` is not valid.

    Warns
    -----
    UserWarning
        If ``open_share="auto"`` and ``X`` has fewer than 50 different samples, or the share is doubtful.

    See Also
    --------
    set_operating_point : Sets the limit of ``predict`` for an open share.

    Notes
    -----
    Two logistic regressions of the score are fitted on held-out samples (Platt scaling [1]_):

    1. known samples against samples of held-out classes, weighted so that the latter are ``open_share`` of all;
    2. known samples of the assigned class against known samples of other classes.

    The probability of the other classes is divided among them by a softmax of their scores. The most probable column
    need not be the answer of ``predict``, which does not maximise the accuracy, but the macro F1.

    References
    ----------
    .. [1] Platt, J. "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized Likelihood
       Methods." Advances in Large Margin Classifiers, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, predict_open_proba
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
    >>> predict_open_proba(clf, [[0, 0], [9, 9], [20, -20]], open_share=0.2).round(1)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    classifier, features = read_estimator(estimator, X, MEMBERS, "predict_open_proba")
    held = HeldOutScores.of(classifier, "predict_open_proba")
    scores, assigned = score(classifier, features)
    n_classes = len(classifier.classes_)
    if isinstance(open_share, str) and open_share == "auto":
        found = open_share_of(held, scores, assigned, n_classes)
        share = float(found.share) if found.reason is None else USUAL_SHARE
        if doubt := found.reason or found.note:
            warn(f"The open share is taken to be {share:.2g}. {doubt}")
    else:
        share = _read_share(open_share)
    is_open = _probability_of_open(held, scores, share)
    columns = np.asarray(classifier._score_all(classifier._validate_scored_data(features)), dtype=np.float64)
    known = _class_probabilities(held, scores, assigned, columns)
    return np.column_stack([known * (1 - is_open)[:, np.newaxis], is_open])


def _read_share(share: Any) -> float:
    if share is None:
        return USUAL_SHARE
    if isinstance(share, bool) or not (isinstance(share, int | float | np.number) and 0 <= share <= 1):
        raise ValueError(f"open_share={share!r} is not a share; use a number from 0 to 1, 'auto' or None.")
    return float(share)


def _probability_of_open(held: HeldOutScores, scores: Floats, share: float) -> Floats:
    """Probability that each sample is open, (n_samples,)."""
    known, opened = (weights / weights.sum() for weights in (held.weights, held.sharpened_weights()))
    # Both kinds weigh the same in the fit, however small the share is; the share moves the log-odds afterwards.
    log_odds = _log_odds(
        np.concatenate([held.known, held.opened]),
        np.repeat([False, True], [len(known), len(opened)]),
        np.concatenate([known, opened]),
        scores,
    )
    share = float(np.clip(share, SMALLEST_SHARE, LARGEST_SHARE))
    return np.asarray(expit(log_odds + logit(share)))


def _class_probabilities(held: HeldOutScores, scores: Floats, assigned: NDArray[np.int64], columns: Floats) -> Floats:
    """Probabilities of the classes if a sample is known, (n_samples, n_classes)."""
    if columns.shape[1] == 1:
        return np.ones_like(columns)
    rows, right = np.arange(len(scores)), held.assigned == held.classes
    # Farther out there are too few held-out samples to tell.
    scores = np.maximum(scores, np.quantile(held.known, LOWEST))
    # One right and one wrong answer more, so that no answer is certain.
    log_odds = _log_odds(
        np.append(held.known, [held.known.mean()] * 2),
        np.append(right, [True, False]),
        np.append(held.weights, [held.weights.mean()] * 2),
        scores,
    )
    of_assigned = expit(log_odds)
    deviation = max(float(held.known.std()), 1e-12)
    others = columns / deviation
    others[rows, assigned] = -np.inf
    probabilities = softmax(others, axis=1) * (1 - of_assigned)[:, np.newaxis]
    probabilities[rows, assigned] = of_assigned
    return np.asarray(probabilities)


def _log_odds(scores: Floats, positive: NDArray[np.bool_], weights: Floats, new: Floats) -> Floats:
    """Log-odds of ``new`` scores by a logistic regression, (n_new,)."""
    mean, deviation = scores.mean(), max(float(scores.std()), 1e-12)
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit((scores - mean)[:, np.newaxis] / deviation, positive, sample_weight=weights * len(scores) / weights.sum())
    return np.asarray(model.decision_function((new - mean)[:, np.newaxis] / deviation))
