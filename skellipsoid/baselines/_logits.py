"""Scores from logits: max softmax, max logit, and minus the energy T ln Σ exp(f_k / T)."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, logsumexp

from .._core.sklearn import Interval, StrOptions
from ._logit_classifier import LogitClassifier, centred
from ._shared_docs import shared_docs
from ._threshold import AUTO_THRESHOLD_VERSION, Floats, Scored


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class SoftmaxOpenSetClassifier(LogitClassifier):
    r"""Open-set classifier by the largest softmax probability (MSP).

    With the logits :math:`f_k` of a classifier, :math:`p_k = e^{f_k} / \sum_j e^{f_j}`. A sample is assigned to the
    class with the largest probability. This probability is its score [1]_. The sample is open if the score is below
    ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    {estimator}

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is 0.5, the setting of the EliDecide paper, which never rejects with two classes.
        {chosen_threshold}
        {frozen_estimator}

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes logits threshold offset groups features}

    See Also
    --------
    MaxLogitClassifier : The largest logit instead of its probability.
    EnergyClassifier : All logits together.

    Notes
    -----
    {logistic_regression}

    References
    ----------
    .. [1] Hendrycks, D., Gimpel, K. "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
       Networks." ICLR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import SoftmaxOpenSetClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = SoftmaxOpenSetClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    answers_version: ClassVar[int] = AUTO_THRESHOLD_VERSION
    threshold: str | float = "paper"

    _paper_threshold = 0.5
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "threshold": [Real, StrOptions({"paper", "quantile", "auto"})],
    }

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = np.exp(log_softmax(logits, axis=1))
        return Scored(logits.argmax(axis=1), by_class.max(axis=1), by_class)


@shared_docs
class MaxLogitClassifier(LogitClassifier):
    r"""Open-set classifier by the largest logit.

    The mean over the classes is subtracted from the logits :math:`f_k` of a classifier. A sample is assigned to the
    class with the largest logit. This logit is its score [1]_. The sample is open if the score is below ``threshold_``.
    A softmax probability only compares the classes; the largest logit also depends on how large the logits are.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    {estimator}

    threshold : {"quantile", "auto"} or float, default="quantile"
        {chosen_threshold}
        {frozen_estimator}

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes logits threshold offset groups features}

    See Also
    --------
    SoftmaxOpenSetClassifier : The probability instead of the logit.
    EnergyClassifier : All logits together.

    Notes
    -----
    {logistic_regression}

    A common shift of all logits of a sample does not change the cross-entropy, but it changes their maximum. So the
    logits of each sample are centred. For two classes, a classifier with a single logit g gives −g / 2 and g / 2.

    References
    ----------
    .. [1] Hendrycks, D., Basart, S., Mazeika, M., and others. "Scaling Out-of-Distribution Detection for Real-World
       Settings." ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import MaxLogitClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = MaxLogitClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    answers_version: ClassVar[int] = AUTO_THRESHOLD_VERSION

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        return Scored(by_class.argmax(axis=1), by_class.max(axis=1), by_class)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class EnergyClassifier(LogitClassifier):
    r"""Open-set classifier by the energy of the logits.

    The mean over the classes is subtracted from the logits :math:`f_k` of a classifier. The score is minus the energy
    [1]_, :math:`-E = T \ln \sum_k e^{f_k / T}`. A sample is assigned to the class with the largest logit, and is open
    if the score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    {estimator}

    temperature : float, default=1.0
        T, as in the publication. With a small T the score is nearly the largest logit.

    threshold : {"quantile", "auto"} or float, default="quantile"
        {chosen_threshold}
        {frozen_estimator}

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes logits threshold offset groups features}

    See Also
    --------
    MaxLogitClassifier : The largest logit alone.

    Notes
    -----
    {logistic_regression}

    The logits of each sample are centred, because a common shift does not change the cross-entropy. The publication
    also trains with open samples; this variant is not implemented.

    References
    ----------
    .. [1] Liu, W., Wang, X., Owens, J. D., Li, Y. "Energy-based Out-of-distribution Detection." NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import EnergyClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = EnergyClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    answers_version: ClassVar[int] = AUTO_THRESHOLD_VERSION
    temperature: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        energies = self.temperature * logsumexp(by_class / self.temperature, axis=1)
        return Scored(by_class.argmax(axis=1), energies, by_class)
