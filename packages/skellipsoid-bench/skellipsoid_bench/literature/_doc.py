"""DOC: one sigmoid for each class, and a threshold for each from a Gaussian about its probabilities."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from skellipsoid._base import TrainingSamples
from skellipsoid._core.state_rules import Rule, floats
from skellipsoid.baselines._logit_classifier import SMALLEST_PROBABILITY, LogitClassifier
from skellipsoid.baselines._threshold import Scored

from ._arrays import Floats, Integers
from ._docs import published_docs
from ._sklearn import Interval, StrOptions

#: No class accepts a probability below this.
_FLOOR = 0.5


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class DOCClassifier(LogitClassifier):
    r"""Open-set classifier by one sigmoid for each class (DOC).

    Deep Open Classification [1]_: K logistic regressions of one class against the rest give the probabilities
    :math:`p_k = 1 / (1 + e^{-f_k})`. A sample is assigned to the class with the largest probability. A Gaussian with
    mean 1 is fitted to the probabilities p of the class's own training samples and their mirror images 2 − p. Its
    standard deviation gives the threshold:

    .. math:: \sigma_k^2 = \mathrm{mean}_{i \in S_k} (1 - p_k(x_i))^2, \qquad t_k = \max(0.5, 1 - \alpha \sigma_k).

    The score is the probability minus the threshold of the assigned class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    {estimator}

    alpha : float, default=3.0
        α, how many standard deviations below 1 a probability may be (the setting of both papers). Only with
        ``threshold="paper"``.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is t_k for each class. The others are one threshold on the probability for all classes.
        {chosen_threshold}
        {frozen_estimator}

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes logits}

    thresholds_ : ndarray of shape (n_classes,)
        t_k; zeros with any other ``threshold`` than ``"paper"``.

    threshold_ : float
        Samples with a lower probability are open. 0 with ``threshold="paper"``, which uses ``thresholds_`` instead.

    {offset groups features}

    See Also
    --------
    skellipsoid.baselines.SoftmaxOpenSetClassifier : Probabilities that sum to 1.

    Notes
    -----
    {logistic_regression}
    There is one for each class, against all others.

    The publication probably rejects a sample if p_k is below t_k for every class (its text was not available to the
    authors of this package). The public codes and this class use the threshold of the most probable class only. A
    sample with exactly this probability is known. So a class whose probabilities are all 1, with t_k = 1, accepts its
    samples.

    References
    ----------
    .. [1] Shu, L., Xu, H., Liu, B. "DOC: Deep Open Classification of Text Documents." EMNLP 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid_bench.literature import DOCClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = DOCClassifier().fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    alpha: float = 3.0
    threshold: str | float = "paper"

    _paper_threshold = 0.0
    _state: ClassVar[dict[str, Rule]] = {**LogitClassifier._state, "thresholds_": floats("n_classes")}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "threshold": [Real, StrOptions({"paper", "quantile", "auto"})],
    }

    def _fit_scores(self, samples: TrainingSamples) -> None:
        super()._fit_scores(samples)
        self.thresholds_ = np.zeros(len(self.classes_))
        if self.threshold == "paper":
            own = expit(self._logits(samples.features)[np.arange(len(samples)), samples.classes])
            self.thresholds_ = doc_thresholds(own, samples.classes, samples.weights, len(self.classes_), self.alpha)

    def _logistic_regression(self, features: Floats, classes: Integers, weights: Floats) -> tuple[Floats, Floats]:
        n_classes = len(self.classes_)
        if n_classes == 1:
            return np.zeros((1, features.shape[1])), np.full(1, logit(1 - SMALLEST_PROBABILITY))
        if n_classes == 2:  # the regression of one class against the other
            return super()._logistic_regression(features, classes, weights)
        of_classes = [self._fitted_regression(features, classes == k, weights) for k in range(n_classes)]
        coefs, intercepts = zip(*of_classes, strict=True)
        return np.concatenate(coefs), np.concatenate(intercepts)

    def _pair(self, one: Floats) -> Floats:
        return np.stack([-one, one])

    def _of_probabilities(self, shares: Floats) -> Floats:
        return np.asarray(logit(shares))

    def _from_logits(self, logits: Floats) -> Scored:
        assigned = logits.argmax(axis=1)
        by_class = expit(logits)
        chosen = by_class[np.arange(len(logits)), assigned]
        return Scored(assigned, chosen - self.thresholds_[assigned], by_class)


def doc_thresholds(own: Floats, classes: Integers, weights: Floats, n_classes: int, alpha: float) -> Floats:
    """t_k of each class from the probabilities of its own samples, (n_classes,)."""
    totals = np.bincount(classes, weights, minlength=n_classes)
    deviations = np.sqrt(np.bincount(classes, weights * np.square(1 - own), minlength=n_classes) / totals)
    return np.maximum(_FLOOR, 1 - alpha * deviations)
