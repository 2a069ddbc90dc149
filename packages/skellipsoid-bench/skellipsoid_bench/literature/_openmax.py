"""OpenMax: softmax logits, revised by how far they lie from those of the class, with a class for the unknown."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from scipy.stats import gumbel_l

from skellipsoid._base import TrainingSamples, warn
from skellipsoid._core.state_rules import Rule, floats, measured
from skellipsoid.baselines._logit_classifier import LogitClassifier, centred
from skellipsoid.baselines._threshold import Scored

from ._arrays import Floats
from ._docs import published_docs
from ._sklearn import Interval, StrOptions

_LARGEST_EXPONENT = 100.0
#: Share of training samples that the unknown may win without a warning.
_MOST_UNKNOWN = 0.5


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class OpenMaxClassifier(LogitClassifier):
    r"""Open-set classifier by softmax logits with a class for the unknown (OpenMax).

    With the centred logits v of a classifier [1]_:

    1. :math:`\mu_k` is the mean of the logits of the samples of class k that are classified correctly. Each of these
       samples has a distance to :math:`\mu_k`.
    2. An extreme-value distribution is fitted to the ``tail_size`` largest of these distances. It gives the probability
       :math:`w_k(x)` that x is too far from :math:`\mu_k` for class k.
    3. The logit of the class with rank i = 1 … α (the largest first) is multiplied by
       :math:`\omega = 1 - \frac{\alpha + 1 - i}{\alpha} w`. The sum of all reductions is the logit of an additional
       class *unknown*, :math:`\hat v_0 = \sum_k v_k (1 - \omega_k)`.
    4. P is the softmax of :math:`\hat v_0` and the revised logits. A sample is assigned to the known class with the
       largest probability. It is open if this probability is below the one of *unknown*, or below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    {estimator}

    tail_size : int, default=20
        Number of the largest distances of a class (by weight) that the extreme-value distribution is fitted to (the
        setting of the EliDecide paper). With 0 nothing is revised, there is no class *unknown*, and P is the softmax.

    n_ranked : int, default=10
        α, the number of the largest logits that are revised (the setting of the EliDecide paper); at most the number of
        classes. The reductions add up. If the logits of ranks 2 to α are large too, nearly all samples become unknown,
        and a warning says so. This happens on frozen features of a text model with many classes. Then use 2 or 3.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        The probability below which samples are open. ``"paper"`` is 0.5.
        {chosen_threshold}
        {frozen_estimator}

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes logits}

    mean_logits_ : ndarray of shape (n_classes, n_classes)
        μ_k, a row for each class.

    tail_locations_ : ndarray of shape (n_classes,)
        Location a of the extreme-value distribution of each class; infinite with ``tail_size=0``.

    tail_scales_ : ndarray of shape (n_classes,)
        Scale b of the extreme-value distribution of each class; 0 if the distances that it is fitted to are all equal.

    threshold_ : float
        Samples with a lower probability are open. ``score_samples`` is the probability of the assigned class, minus
        ``threshold_`` or the probability of *unknown*, whichever is larger.

    {offset groups features}

    See Also
    --------
    skellipsoid.baselines.SoftmaxOpenSetClassifier : The softmax of the logits without revision.

    Notes
    -----
    {logistic_regression}

    The reference code fits a Weibull distribution to the distances after shifting them to about 10,000. To four digits
    this is the Gumbel distribution of minima, :math:`w(D) = 1 - \exp(-\exp((D - a) / b))`. Here the Gumbel distribution
    is fitted directly, by maximum likelihood. In two points this class follows the code and not the publication: the
    weight is (α + 1 − i) / α instead of (α − i) / α, and w is the distribution function instead of its complement,
    which would revise near samples most. All distances are Euclidean; public codes mix several kinds. Logits are
    centred, because a common shift changes the result.

    References
    ----------
    .. [1] Bendale, A., Boult, T. E. "Towards Open Set Deep Networks." CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid_bench.literature import OpenMaxClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = OpenMaxClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    tail_size: int = 20
    n_ranked: int = 10
    threshold: str | float = "paper"

    _paper_threshold = 0.5
    _state: ClassVar[dict[str, Rule]] = {
        **LogitClassifier._state,
        "mean_logits_": floats("n_classes", "n_classes"),
        "tail_locations_": measured("n_classes"),
        "tail_scales_": floats("n_classes", least=0),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "tail_size": [Interval(Integral, 0, None, closed="left")],
        "n_ranked": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Real, StrOptions({"paper", "quantile", "auto"})],
    }

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        super()._fit_boundaries(samples)
        shares = self._probabilities(self._logits(samples.features.astype(np.float64, copy=False)))
        unknown_share = float(np.mean(shares[:, 0] > shares[:, 1:].max(axis=1)))
        if unknown_share > _MOST_UNKNOWN:
            warn(
                f"OpenMax takes {unknown_share:.0%} of its own training samples for unknown: the logits of the "
                f"{self.n_ranked} classes that it revises outweigh that of the right one; lower n_ranked (to 3, say) "
                "or tail_size."
            )

    def _fit_scores(self, samples: TrainingSamples) -> None:
        super()._fit_scores(samples)
        classes, weights = samples.classes, samples.weights
        activations, n_classes = centred(self._logits(samples.features)), len(self.classes_)
        is_right = activations.argmax(axis=1) == classes
        self.mean_logits_ = np.zeros((n_classes, n_classes))
        self.tail_locations_, self.tail_scales_ = np.full(n_classes, np.inf), np.zeros(n_classes)
        for k in range(n_classes):
            chosen = (classes == k) & is_right
            if not chosen.any():  # a class that is never the largest logit: all its samples
                chosen = classes == k
            self.mean_logits_[k] = np.average(activations[chosen], axis=0, weights=weights[chosen])
            distances = np.linalg.norm(activations[chosen] - self.mean_logits_[k], axis=1)
            if self.tail_size:
                tail = largest(distances, weights[chosen], self.tail_size)
                self.tail_locations_[k], self.tail_scales_[k] = fit_tail(tail)

    def _probabilities(self, logits: Floats) -> Floats:
        """P of the unknown, then of the known classes, (n_samples, n_classes + 1)."""
        activations = centred(logits)
        if not self.tail_size:
            return np.column_stack([np.zeros(len(logits)), np.asarray(softmax(activations, axis=1))])
        outlying = np.empty_like(activations)
        for k, mean in enumerate(self.mean_logits_):
            distances = np.linalg.norm(activations - mean, axis=1)
            outlying[:, k] = tail_probability(distances, self.tail_locations_[k], self.tail_scales_[k])
        return np.asarray(softmax(revised(activations, outlying, self.n_ranked), axis=1))

    def _from_logits(self, logits: Floats) -> Scored:
        shares = self._probabilities(logits)
        unknown, known = shares[:, 0], shares[:, 1:]
        assigned, best = known.argmax(axis=1), known.max(axis=1)
        # For the choice of a threshold: a sample that the unknown wins is below every probability.
        return Scored(assigned, np.where(best >= unknown, best, best - unknown), known)

    def _margins(self, scored: Scored) -> Floats:
        """Probability of the best class, less the threshold or that of the unknown, whichever is larger."""
        unknown = 1 - scored.by_class.sum(axis=1)
        return np.asarray(scored.by_class.max(axis=1) - np.maximum(unknown, self.threshold_))


def largest(distances: Floats, weights: Floats, total: float) -> Floats:
    """Largest distances, as many as weigh ``total``."""
    order = np.argsort(-distances, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    return distances[order][before < total * (1 - 1e-9)]


def fit_tail(distances: Floats) -> tuple[float, float]:
    """Location and scale of the law of Gumbel for minima of the largest distances; scale 0 where all are equal."""
    if np.ptp(distances) <= 1e-9 * distances.max():
        return float(distances.max()), 0.0
    location, scale = gumbel_l.fit(distances)
    return float(location), float(scale)


def tail_probability(distances: Floats, location: float, scale: float) -> Floats:
    """Probability w that distances are beyond the class, (n_samples,)."""
    if scale == 0:
        return np.asarray(distances > location + 1e-9 * max(1.0, location), dtype=np.float64)
    # Where the inner exponential would overflow the probability is 1 long since.
    return np.asarray(-np.expm1(-np.exp(np.minimum((distances - location) / scale, _LARGEST_EXPONENT))))


def revised(activations: Floats, outlying: Floats, n_ranked: int) -> Floats:
    """Logit of the unknown, then revised logits, (n_samples, n_classes + 1); the sum for each sample stays."""
    n_ranked = min(n_ranked, activations.shape[1])
    ranks = np.argsort(np.argsort(-activations, axis=1, kind="stable"), axis=1)  # 0 is the largest
    taken = np.maximum(n_ranked - ranks, 0) / n_ranked * outlying
    return np.column_stack([(activations * taken).sum(axis=1), activations * (1 - taken)])
