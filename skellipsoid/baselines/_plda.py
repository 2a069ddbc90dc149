"""The two-covariance model: probabilistic linear discriminant analysis."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from .._engine.samples import Gathered
from ._covariance import class_means, shrunk_covariance, whitener
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier

#: Variance between class means, in units of that within classes, below which an axis says nothing.
_SMALLEST_BETWEEN = 1e-10


class PLDAClassifier(ThresholdedClassifier):
    r"""Open-set classifier by the two-covariance model (probabilistic linear discriminant analysis).

    The mean of a class, known or not, is drawn from :math:`N(\mu, B)`, and a sample of it from :math:`N(m, W)` [1]_
    [2]_ [3]_. With :math:`n_k` samples of mean :math:`c_k`, the class's mean is known to be :math:`N(\hat m_k, C_k)`,
    :math:`C_k = (B^{-1} + n_k W^{-1})^{-1}`, :math:`\hat m_k = C_k (B^{-1} \mu + n_k W^{-1} c_k)`. The score is the
    largest log-likelihood ratio of a known class against a class never seen,

    .. math:: \ell_k(x) = \ln N(x; \hat m_k, W + C_k) - \ln N(x; \mu, W + B),

    and the sample is assigned to the class of the maximum. The samples that a class accepts form an ellipsoid.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    shrinkage : "auto" or float in [0, 1], default="auto"
        Share of a sphere in W; ``"auto"`` is that of Ledoit and Wolf. With 0, nothing changes with any invertible
        affine map of the features.

    threshold : {"quantile", "auto"} or float, default="quantile"
        The publications set none. ``"quantile"`` rejects 5 % of the known samples, each scored by a fit without its
        fold (five folds, which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose
        samples are open there, and takes the threshold with the best expected F1, as the ellipsoids' size is chosen;
        with fewer than three classes and no samples of ``open_label`` it is ``"quantile"``. 0 accepts what a known
        class explains better than a class never seen does.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a sample within its class weigh: together as much as one sample, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Samples with
        this label in ``y`` serve ``threshold="auto"`` alone.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means.

    between_variances_ : ndarray of shape (n_axes,)
        Variances of the class means along the axes in which they differ, in units of the variance within classes.

    shrinkage_ : float
        Share of a sphere in W.

    threshold_ : float
        The score below which samples are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    class_offsets_ : ndarray of shape (n_classes,)
        How much stricter than ``offset_`` each class is. Zeros after ``fit``.

    groups_ : ndarray of shape (n_samples,)
        Samples with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for samples of weight 0 and outlying samples.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    MahalanobisClassifier : The same for class means that are known exactly.
    skellipsoid.EllipsoidOpenSetClassifier : Uses this ratio for the shape that all classes share.

    Notes
    -----
    W is the covariance about the class means (divisor N − K), μ the mean of the class means, and B their covariance
    less W times the mean of 1 / n_k, without its negative eigenvalues relative to W. Along the axes V with VᵀWV = I and
    VᵀBV = diag λ everything is one-dimensional, and axes with λ = 0 say nothing, so that a single class, which has no
    B, scores 0 everywhere. [3]_ was not at hand: that the formulas are those printed there is unverified.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "threshold": [Real, StrOptions({"quantile", "auto"})],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
    }

    def __init__(
        self,
        *,
        shrinkage: str | float = "auto",
        threshold: str | float = "quantile",
        duplicates: str = "once",
        open_label: int | str = -1,
    ) -> None:
        self.shrinkage = shrinkage
        self.threshold = threshold
        self.duplicates = duplicates
        self.open_label = open_label

    def _fit_scores(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        n_classes = len(self.classes_)
        self.centroids_, counts = class_means(X, classes, gathered.weights, n_classes)
        total = float(counts.sum())
        divisor = total - n_classes if total > n_classes else total
        offsets = X - self.centroids_[classes]
        within, self.shrinkage_ = shrunk_covariance(offsets, gathered.weights, self.shrinkage, divisor)
        self._mean = self.centroids_.mean(axis=0)
        whitening, _ = whitener(within)
        means = (self.centroids_ - self._mean) @ whitening
        between = means.T @ means / max(n_classes - 1, 1) - np.eye(len(whitening)) * float(np.mean(1 / counts))
        variances, axes = np.linalg.eigh(between)
        kept = variances > _SMALLEST_BETWEEN
        self.between_variances_ = variances[kept]
        self._axes = whitening @ axes[:, kept]
        self._counts = counts

    def _score(self, X: Floats) -> Scored:
        by_class = plda_ratios(
            (X - self._mean) @ self._axes,
            (self.centroids_ - self._mean) @ self._axes,
            self._counts,
            self.between_variances_,
        )
        return Scored(by_class.argmax(axis=1), by_class.max(axis=1), by_class)


def plda_ratios(rows: Floats, means: Floats, counts: Floats, between: Floats) -> NDArray[np.float64]:
    """ℓ of rows, (n_samples, n_classes), along axes with variance 1 within classes and ``between`` of their means."""
    ratios = np.empty((len(rows), len(means)))
    unseen = np.square(rows) @ (1 / (1 + between)) + np.log1p(between).sum()
    for k, (mean, count) in enumerate(zip(means, counts, strict=True)):
        known = count * between
        variances = 1 + between / (1 + known)
        squares = np.square(rows - mean * known / (1 + known)) @ (1 / variances)
        ratios[:, k] = 0.5 * (unseen - squares - np.log(variances).sum())
    return ratios
