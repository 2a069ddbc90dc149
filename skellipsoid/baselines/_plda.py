"""Two-covariance PLDA: the score is the log-likelihood ratio of the best known class against an unknown class."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.sklearn import Interval, StrOptions
from .._core.state_rules import NUMBER, Rule, floats
from .._held_out.state import THRESHOLDED
from .._samples.training_samples import TrainingSamples
from ._covariance import class_means, shrunk_covariance, whitener
from ._shared_docs import shared_docs
from ._threshold import AUTO_THRESHOLD_VERSION, Floats, Scored, ThresholdedClassifier

#: Axes with a smaller ratio of the variance between class means to that within classes are ignored.
_SMALLEST_BETWEEN = 1e-10


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PLDAClassifier(ThresholdedClassifier):
    r"""Open-set classifier by the two-covariance model (probabilistic linear discriminant analysis).

    The mean of a class, known or not, is drawn from :math:`N(\mu, B)`, and a sample of it from :math:`N(m, W)` [1]_
    [2]_ [3]_. Given :math:`n_k` samples with the mean :math:`c_k`, the mean of class k has the posterior distribution
    :math:`N(\hat m_k, C_k)` with :math:`C_k = (B^{-1} + n_k W^{-1})^{-1}` and
    :math:`\hat m_k = C_k (B^{-1} \mu + n_k W^{-1} c_k)`. The score is the largest log-likelihood ratio of a known class
    against an unknown class,

    .. math:: \ell_k(x) = \ln N(x; \hat m_k, W + C_k) - \ln N(x; \mu, W + B),

    and the sample is assigned to the class of the maximum. The samples that a class accepts form an ellipsoid.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    shrinkage : "auto" or float in [0, 1], default="auto"
        Weight of a sphere in W; ``"auto"`` is the weight of Ledoit and Wolf. With 0, an invertible affine map of the
        features does not change the decisions.

    threshold : {"quantile", "auto"} or float, default="quantile"
        The publications set none. {chosen_threshold} 0 accepts a sample that is more likely under a known class than
        under an unknown one.

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means.

    between_variances_ : ndarray of shape (n_axes,)
        Variances of the class means along the axes in which they differ, in units of the variance within classes.

    shrinkage_ : float
        Weight of a sphere in W.

    {threshold offset groups features}

    See Also
    --------
    MahalanobisClassifier : The same for class means that are known exactly.
    skellipsoid.EllipsoidOpenSetClassifier : Uses this ratio for the shape that all classes share.

    Notes
    -----
    W is the covariance about the class means (divisor N − K), and μ is the mean of the class means. B is the covariance
    of the class means, minus W times the mean of 1 / n_k. Its negative eigenvalues relative to W are set to 0. Along
    the axes V with VᵀWV = I and VᵀBV = diag λ the ratio is a sum of one-dimensional terms. An axis with λ = 0
    contributes nothing. So with a single class, where B is 0, every sample has the score 0. The formulas were not
    compared with the text of [3]_, which was not available.

    References
    ----------
    .. [1] Ioffe, S. "Probabilistic Linear Discriminant Analysis." ECCV 2006.
    .. [2] Prince, S. J. D., Elder, J. H. "Probabilistic Linear Discriminant Analysis for Inferences About Identity."
       ICCV 2007.
    .. [3] Brümmer, N., de Villiers, E. "The Speaker Partitioning Problem." Odyssey 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import PLDAClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(0, 8, size=(5, 2))
    >>> y = np.repeat(np.arange(5), 40)
    >>> clf = PLDAClassifier().fit(centres[y] + rng.normal(size=(200, 2)), y)
    >>> clf.predict([*centres, [30, 30]]).tolist()
    [0, 1, 2, 3, 4, -1]
    """

    answers_version: ClassVar[int] = AUTO_THRESHOLD_VERSION
    shrinkage: str | float = "auto"

    _state: ClassVar[dict[str, Rule]] = {
        **THRESHOLDED,
        "centroids_": floats("n_classes", "n_features"),
        "shrinkage_": NUMBER,
        "_mean": floats("n_features"),
        "between_variances_": floats("n_axes", least=0),
        "_axes": floats("n_features", "n_axes"),
        "_counts": floats("n_classes", above=0),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ThresholdedClassifier._parameter_constraints,
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
    }

    def _fit_scores(self, samples: TrainingSamples) -> None:
        X, classes, n_classes = samples.features, samples.classes, len(self.classes_)
        self.centroids_, counts = class_means(X, classes, samples.weights, n_classes)
        total = float(counts.sum())
        divisor = total - n_classes if total > n_classes else total
        offsets = X - self.centroids_[classes]
        within, self.shrinkage_ = shrunk_covariance(offsets, samples.weights, self.shrinkage, divisor)
        self._mean = self.centroids_.mean(axis=0)
        whitening, _ = whitener(within)
        means = (self.centroids_ - self._mean) @ whitening
        between = means.T @ means / max(n_classes - 1, 1) - np.eye(len(whitening)) * float(np.mean(1 / counts))
        variances, axes = np.linalg.eigh(between)
        chosen = variances > _SMALLEST_BETWEEN
        self.between_variances_ = variances[chosen]
        self._axes = whitening @ axes[:, chosen]
        self._counts = counts

    def _score(self, X: Floats) -> Scored:
        by_class = plda_ratios(
            (X - self._mean) @ self._axes,
            (self.centroids_ - self._mean) @ self._axes,
            self._counts,
            self.between_variances_,
        )
        return Scored(by_class.argmax(axis=1), by_class.max(axis=1), by_class)


def plda_ratios(coordinates: Floats, means: Floats, counts: Floats, between: Floats) -> NDArray[np.float64]:
    """Log-likelihood ratios ℓ, (n_samples, n_classes), on axes of variance 1 within and ``between`` between classes."""
    ratios = np.empty((len(coordinates), len(means)))
    unseen = np.square(coordinates) @ (1 / (1 + between)) + np.log1p(between).sum()
    for k, (mean, count) in enumerate(zip(means, counts, strict=True)):
        known = count * between
        variances = 1 + between / (1 + known)
        squares = np.square(coordinates - mean * known / (1 + known)) @ (1 / variances)
        ratios[:, k] = 0.5 * (unseen - squares - np.log(variances).sum())
    return ratios
