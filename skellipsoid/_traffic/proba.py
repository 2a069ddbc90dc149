"""Probabilities of the known classes and of open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from .._core.pipelines import read_estimator
from .._core.validation import is_number
from .._held_out.kept import held_out_of
from .._held_out.table import Floats, HeldOutTable
from .._traffic_model.normal_scores import NormalScores
from .._traffic_model.posterior import CENTRES, Unknowns, falling, open_probability
from .log import MEMBERS, Log, score

SMALLEST_RATE, LARGEST_RATE = 0.001, 0.999
#: Quantile of the held-out known scores below which the probability of the assigned class does not fall.
LOWEST = 0.05


def predict_open_proba(estimator: Any, X: ArrayLike, open_share: float | None = None) -> NDArray[np.float64]:
    """Probabilities of the known classes, and of open in the last column.

    How probable it is that a sample is open depends on how many are, and on how far out known ones lie:
    :func:`set_operating_point` learns both from a log, or set ``open_share``. The probabilities are calibrated on the
    samples and classes that were held out of the fit (``held_out_``), so no other data are needed.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. For others held-out scores and new ones are on unlike scales.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Features, or texts for a text Pipeline.
    open_share : float in [0, 1], default=None
        Share of open samples in the traffic; below 0.001 it counts as 0.001, above 0.999 as 0.999. ``None`` takes what
        :func:`set_operating_point` learned (``traffic_``), or else what the classifier expects (its ``open_share``).

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes + 1)
        The classes in the order of ``classes_``, then open. Each row sums to 1.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample or no class, if ``open_share`` is not a proportion, or if ``X`` is not valid.

    See Also
    --------
    set_operating_point : Sets the threshold of ``predict`` for a log or an open share.

    Notes
    -----
    How probable it is that a sample is open follows from the scores of known and of open samples, as
    :func:`set_operating_point` describes them: with what it learned from a log, or else as usual. How probable the
    assigned class is then follows from a logistic regression of the score, fitted on held-out known samples (Platt
    scaling [1]_).

    The probability of the other classes is divided among them by a softmax of their scores. The most probable column
    need not be what ``predict`` returns, which does not maximise the accuracy, but the macro F1. With a ``trainer`` no
    traffic places the boundary: unless ``open_share`` or a log says otherwise, it is that for which the boundary
    is right.

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
    held_out = held_out_of(classifier, "predict_open_proba")
    scores, assigned = score(classifier, features)
    share, traffic = _read_share(open_share), classifier.traffic_
    at_boundary = share is None and traffic is None and _has_paper_boundary(classifier)
    if traffic is None:
        traffic = Log.empty().fit(held_out, held_out.expected.open_share if share is None else share).traffic()
    share = float(np.clip(traffic["open_share"] if share is None else share, SMALLEST_RATE, LARGEST_RATE))
    if at_boundary:
        share = _share_of_boundary(held_out, traffic)
    is_open = of_scores(held_out, scores, {**traffic, "open_share": share})
    columns = np.asarray(classifier._score_all_checked(features), dtype=np.float64)
    known = _class_probabilities(held_out, scores, assigned, columns)
    return np.column_stack([known * (1 - is_open)[:, np.newaxis], is_open])


def of_scores(held_out: HeldOutTable, scores: Floats, traffic: Mapping[str, float]) -> Floats:
    """Probability that each sample is open, (n_samples,), by what is known of the traffic."""
    found = Unknowns._make(np.array(traffic[name]) for name in Unknowns._fields)
    of_bins = falling(open_probability(found.open_share, *found.of_bins()))
    return np.asarray(np.interp(NormalScores.of(held_out)(scores), CENTRES, of_bins))


def _has_paper_boundary(classifier: Any) -> bool:
    """Whether a training placed the boundary, not the expected traffic."""
    trainer = getattr(classifier, "trainer", None)
    return trainer is not None and not trainer.recalibrate and classifier.offset_ == 0


def _share_of_boundary(held_out: HeldOutTable, traffic: Mapping[str, float]) -> float:
    """Open share with which open is as probable on the boundary, the score 0, as the assigned class."""
    on_it = np.zeros(1)
    is_open = float(of_scores(held_out, on_it, {**traffic, "open_share": 0.5})[0])
    odds = float(_of_assigned(held_out, on_it)[0]) * (1 - is_open) / max(is_open, 1e-12)
    return float(np.clip(odds / (1 + odds), 1e-9, 1 - 1e-9))


def _read_share(share: Any) -> float | None:
    if share is None:
        return None
    if not (is_number(share) and 0 <= share <= 1):
        raise ValueError(f"open_share={share!r} is not a proportion; use a number from 0 to 1, or None.")
    return float(share)


def _class_probabilities(
    held_out: HeldOutTable, scores: Floats, assigned: NDArray[np.int64], columns: Floats
) -> Floats:
    """Probabilities of the classes if a sample is known, (n_samples, n_classes)."""
    if columns.shape[1] == 1:
        return np.ones_like(columns)
    numbers, of_assigned = np.arange(len(scores)), _of_assigned(held_out, scores)
    deviation = max(float(held_out.known.scores.std()), 1e-12)
    # Scores of −∞ say nothing of the other classes: they are equal, and far below all others.
    others = np.maximum(columns, np.finfo(np.float32).min) / deviation
    others[numbers, assigned] = -np.inf
    probabilities = softmax(others, axis=1) * (1 - of_assigned)[:, np.newaxis]
    probabilities[numbers, assigned] = of_assigned
    return np.asarray(probabilities)


def _of_assigned(held_out: HeldOutTable, scores: Floats) -> Floats:
    """Probability that the assigned class is the right one of known samples with these scores, (n_samples,)."""
    right = held_out.known.assigned == held_out.known.classes
    # Farther out there are too few held-out samples to tell.
    scores = np.maximum(scores, np.quantile(held_out.known.scores, LOWEST))
    # One right and one wrong prediction more, so that none is certain.
    log_odds = _log_odds(
        np.append(held_out.known.scores, [held_out.known.scores.mean()] * 2),
        np.append(right, [True, False]),
        np.append(held_out.known.weights, [held_out.known.weights.mean()] * 2),
        scores,
    )
    return np.asarray(expit(log_odds))


def _log_odds(scores: Floats, positive: NDArray[np.bool_], weights: Floats, new: Floats) -> Floats:
    """Log-odds of ``new`` scores by a logistic regression, (n_new,)."""
    mean, deviation = scores.mean(), max(float(scores.std()), 1e-12)
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit((scores - mean)[:, np.newaxis] / deviation, positive, sample_weight=weights * len(scores) / weights.sum())
    return np.asarray(model.decision_function((new - mean)[:, np.newaxis] / deviation))
