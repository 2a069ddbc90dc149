"""Gaussian classes: Mahalanobis distances, and the two-covariance model (PLDA)."""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from .._engine.samples import Gathered
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier

#: Variances below this share of the largest are rounding.
_SMALLEST_VARIANCE = 1e-12
#: Variance between class means, in units of that within classes, below which an axis says nothing.
_SMALLEST_BETWEEN = 1e-10


def class_means(X: Floats, classes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Weighted mean, (n_classes, n_features), and total weight, (n_classes,), of each class."""
    totals = np.bincount(classes, weights, minlength=n_classes).astype(np.float64)
    means = np.zeros((n_classes, X.shape[1]))
    np.add.at(means, classes, X * weights[:, np.newaxis])
    return means / totals[:, np.newaxis], totals


def shrunk_covariance(
    centred: Floats, weights: Floats, shrinkage: str | float, divisor: float | None = None
) -> tuple[Floats, float]:
    """Covariance of centred rows, shrunk towards a sphere of its mean variance, and the share of the sphere.

    ``shrinkage="auto"`` is the share of Ledoit and Wolf, as in :class:`~sklearn.covariance.LedoitWolf`, which takes no
    weights.
    """
    n_features, total = centred.shape[1], float(weights.sum())
    scale = float(np.sqrt(np.square(centred).sum(axis=1) @ weights / total)) or 1.0  # fourth powers may overflow
    centred = centred / scale
    covariance = (centred * weights[:, np.newaxis]).T @ centred / total
    variance = float(np.trace(covariance)) / n_features
    if isinstance(shrinkage, str):
        squares = float(np.square(covariance).sum())
        noise = (float(np.square(np.square(centred).sum(axis=1)) @ weights) / total - squares) / total
        spread = squares - n_features * variance**2
        share = min(max(noise, 0.0) / spread, 1.0) if spread > 0 else 0.0
    else:
        share = float(shrinkage)
    covariance *= 1 - share
    covariance.flat[:: n_features + 1] += share * variance
    covariance *= scale**2 * total / (total if divisor is None else divisor)
    return covariance, share


def whitener(covariance: Floats) -> tuple[Floats, float]:
    """V with VᵀΣV = I, and ln det Σ; directions without variance have the smallest that rounding leaves."""
    variances, axes = np.linalg.eigh(covariance)
    largest = variances[-1] if variances[-1] > 0 else 1.0
    variances = np.maximum(variances, _SMALLEST_VARIANCE * largest)
    return axes / np.sqrt(variances), float(np.log(variances).sum())


class _OwnAxes(NamedTuple):
    """A class's covariance, in whitened features: the residual variance, and other variances along a few axes."""

    axes: Floats  # (n_axes, n_features)
    variances: Floats  # (n_axes,)


class MahalanobisClassifier(ThresholdedClassifier):
    r"""Open-set classifier by the Mahalanobis distance to the nearest class.

    With the class means :math:`c_k`, the covariance :math:`\Sigma` of all rows about their class means and
    :math:`M_k(x) = (x - c_k)^T \Sigma^{-1} (x - c_k)`, the score is

    - ``"shared"`` [1]_: :math:`-\min_k M_k`;
    - ``"relative"`` [2]_: :math:`-\min_k (M_k - M_0)`, where :math:`M_0` is the distance in mean and covariance of all
      rows, which takes out directions in which all rows vary;
    - ``"class"``: :math:`\max_k -\frac{1}{2} (M_k + \ln \det \Sigma_k)` with a covariance for each class,
      :math:`\Sigma_k = (1 - \rho) S_k + \rho \Sigma`.

    A row is assigned to the class of the minimum or maximum, and is open where the score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    covariance : {"shared", "class", "relative"}, default="shared"
        Which score.

    shrinkage : "auto" or float in [0, 1], default="auto"
        Share of a sphere in each covariance that is estimated from all rows; ``"auto"`` is that of Ledoit and Wolf
        [3]_. With 0, decisions do not change with any invertible affine map of the features.

    pooling : float in [0, 1], default=0.5
        ρ, share of the covariance of all classes in that of each; with 0 every class needs more rows than there are
        features. Only with ``covariance="class"``.

    threshold : {"quantile", "auto"} or float, default="quantile"
        The publications set none. ``"quantile"`` rejects 5 % of the known rows, each scored by a fit without its fold
        (five folds, which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose rows are
        open there, and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer
        than three classes and no rows of ``open_label`` it is ``"quantile"``.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a row within its class weigh: together as much as one row, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Rows with
        this label in ``y`` serve ``threshold="auto"`` alone.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means.

    shrinkage_ : float
        Share of a sphere in the covariance within classes.

    threshold_ : float
        The score below which rows are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    groups_ : ndarray of shape (n_samples,)
        Rows with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for rows of weight 0 and outlying rows.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    PLDAClassifier : Knows how uncertain a class mean is.
    skellipsoid.EllipsoidOpenSetClassifier : Ellipsoids of this kind, with a size of their own.

    References
    ----------
    .. [1] Lee, K., Lee, K., Lee, H., Shin, J. "A Simple Unified Framework for Detecting Out-of-Distribution Samples
       and Adversarial Attacks." NeurIPS 2018. Its score of one layer's features.
    .. [2] Ren, J., Fort, S., Liu, J., and others. "A Simple Fix to Mahalanobis Distance for Improving Near-OOD
       Detection." Preprint, 2021.
    .. [3] Ledoit, O., Wolf, M. "A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices." Journal of
       Multivariate Analysis 88, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import MahalanobisClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> clf = MahalanobisClassifier().fit(X, np.repeat(["left", "right"], 100))
    >>> clf.predict([[0, 0], [10, 10], [0, 10]]).tolist()
    ['left', 'right', '-1']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "covariance": [StrOptions({"shared", "class", "relative"})],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "pooling": [Interval(Real, 0, 1, closed="both")],
        "threshold": [Real, StrOptions({"quantile", "auto"})],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
    }

    def __init__(
        self,
        *,
        covariance: str = "shared",
        shrinkage: str | float = "auto",
        pooling: float = 0.5,
        threshold: str | float = "quantile",
        duplicates: str = "once",
        open_label: int | str = -1,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.pooling = pooling
        self.threshold = threshold
        self.duplicates = duplicates
        self.open_label = open_label

    def _fit_scores(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        weights = gathered.weights
        self.centroids_, _ = class_means(X, classes, weights, len(self.classes_))
        offsets = X - self.centroids_[classes]
        within, self.shrinkage_ = shrunk_covariance(offsets, weights, self.shrinkage)
        self._whitener, self._log_det = whitener(within)
        if self.covariance == "relative":
            self._mean = weights @ X / weights.sum()
            everything, _ = shrunk_covariance(X - self._mean, weights, self.shrinkage)
            self._all_whitener, _ = whitener(everything)
        if self.covariance == "class":
            own = [self._own_axes(offsets[classes == k], weights[classes == k]) for k in range(len(self.classes_))]
            self._axes = np.concatenate([each.axes for each in own])
            self._axis_variances = np.concatenate([each.variances for each in own])
            self._axis_starts = np.cumsum([0, *(len(each.axes) for each in own)])

    def _own_axes(self, offsets: Floats, weights: Floats) -> _OwnAxes:
        """Axes along which a class's covariance differs from ρ of the shared one, in whitened features."""
        scaled = (offsets @ self._whitener) * np.sqrt(weights / weights.sum())[:, np.newaxis]
        _, spreads, axes = np.linalg.svd(scaled, full_matrices=False)
        own = np.square(spreads)
        kept = own > _SMALLEST_VARIANCE * max(own.max(initial=0.0), 1.0)
        variances = (1 - self.pooling) * own[kept] + self.pooling
        return _OwnAxes(axes[kept], variances)

    def _score(self, X: Floats) -> Scored:
        whitened, centres = X @ self._whitener, self.centroids_ @ self._whitener
        by_class = np.empty((len(X), len(centres)))
        for k, centre in enumerate(centres):
            offsets = whitened - centre
            by_class[:, k] = self._log_density(k, offsets) if self.covariance == "class" else -_squares(offsets)
        if self.covariance == "relative":
            by_class += _squares((X - self._mean) @ self._all_whitener)[:, np.newaxis]
        assigned = by_class.argmax(axis=1)
        return Scored(assigned, by_class[np.arange(len(X)), assigned], by_class)

    def _log_density(self, k: int, offsets: Floats) -> Floats:
        """Logarithm of the density of class k, without the constant that all share, of whitened offsets."""
        own = slice(self._axis_starts[k], self._axis_starts[k + 1])
        variances, n_features = self._axis_variances[own], offsets.shape[1]
        along = np.square(offsets @ self._axes[own].T)
        n_rest = n_features - len(variances)
        # Without any share of the other classes a class has only rounding off its own axes.
        residual = max(self.pooling, _SMALLEST_VARIANCE)
        squares = along @ (1 / variances)
        log_det = self._log_det + float(np.log(variances).sum()) + n_rest * np.log(residual)
        if n_rest:
            squares += np.maximum(_squares(offsets) - along.sum(axis=1), 0) / residual
        return np.asarray(-0.5 * (squares + log_det))


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


class PLDAClassifier(ThresholdedClassifier):
    r"""Open-set classifier by the two-covariance model (probabilistic linear discriminant analysis).

    The mean of a class, known or not, is drawn from :math:`N(\mu, B)`, and a row of it from :math:`N(m, W)` [1]_ [2]_
    [3]_. With :math:`n_k` rows of mean :math:`c_k`, the class's mean is known to be
    :math:`N(\hat m_k, C_k)`, :math:`C_k = (B^{-1} + n_k W^{-1})^{-1}`,
    :math:`\hat m_k = C_k (B^{-1} \mu + n_k W^{-1} c_k)`. The score is the largest log-likelihood ratio of a known class
    against a class never seen,

    .. math:: \ell_k(x) = \ln N(x; \hat m_k, W + C_k) - \ln N(x; \mu, W + B),

    and the row is assigned to the class of the maximum. The rows that a class accepts form an ellipsoid.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    shrinkage : "auto" or float in [0, 1], default="auto"
        Share of a sphere in W; ``"auto"`` is that of Ledoit and Wolf. With 0, nothing changes with any invertible
        affine map of the features.

    threshold : {"quantile", "auto"} or float, default="quantile"
        The publications set none. ``"quantile"`` rejects 5 % of the known rows, each scored by a fit without its fold
        (five folds, which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose rows are
        open there, and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer
        than three classes and no rows of ``open_label`` it is ``"quantile"``. 0 accepts what a known class explains
        better than a class never seen does.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a row within its class weigh: together as much as one row, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Rows with
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
        The score below which rows are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    groups_ : ndarray of shape (n_samples,)
        Rows with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for rows of weight 0 and outlying rows.

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
        assigned = by_class.argmax(axis=1)
        return Scored(assigned, by_class[np.arange(len(X)), assigned], by_class)


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
