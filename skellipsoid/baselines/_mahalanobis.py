"""Scores from Mahalanobis distances M_k = (x − c_k)ᵀ Σ⁻¹ (x − c_k): shared, relative or per class."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .._core.sklearn import Interval, StrOptions
from .._core.state_rules import NUMBER, Rule, Sizes, floats, integers, optional, require
from .._held_out.state import THRESHOLDED
from .._samples.training_samples import TrainingSamples
from ._covariance import SMALLEST_VARIANCE, class_means, shrunk_covariance, whitener
from ._shared_docs import shared_docs
from ._threshold import AUTO_THRESHOLD_VERSION, Floats, Scored, ThresholdedClassifier


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class MahalanobisClassifier(ThresholdedClassifier):
    r"""Open-set classifier by the Mahalanobis distance to the nearest class.

    With the class means :math:`c_k`, the covariance :math:`\Sigma` of all samples about their class means and
    :math:`M_k(x) = (x - c_k)^T \Sigma^{-1} (x - c_k)`, the score is

    - ``"shared"`` [1]_: :math:`-\min_k M_k`;
    - ``"relative"`` [2]_: :math:`-\min_k (M_k - M_0)`, where :math:`M_0` is the squared Mahalanobis distance with the
      mean and the covariance of all samples (:math:`\Sigma` plus the covariance of the class means). Directions in
      which all samples vary then count less;
    - ``"class"``: :math:`\max_k -\frac{1}{2} (M_k + \ln \det \Sigma_k)` with a covariance for each class,
      :math:`\Sigma_k = (1 - \rho) S_k + \rho \Sigma`.

    A sample is assigned to the class of the minimum or maximum, and is open where the score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    covariance : {"shared", "class", "relative"}, default="shared"
        The score, see above.

    shrinkage : "auto" or float in [0, 1], default="auto"
        Weight of a sphere in each covariance that is estimated from all samples; ``"auto"`` is the weight of Ledoit and
        Wolf [3]_. With 0, an invertible affine map of the features does not change the decisions.

    pooling : float in [0, 1], default=0.5
        ρ, weight of the common covariance Σ in the covariance of each class. With 0 every class needs more samples than
        there are features. Only with ``covariance="class"``.

    threshold : {"quantile", "auto"} or float, default="quantile"
        The publications set none.
        {chosen_threshold}

    open_share, known_shift : float, pair of floats or None, default=None
        The traffic that ``threshold="auto"`` expects, as of :class:`~skellipsoid.EllipsoidOpenSetClassifier`.

    {duplicates open_label random_state}

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means.

    shrinkage_ : float
        Weight of a sphere in the covariance within classes.

    {threshold offset groups features}

    See Also
    --------
    PLDAClassifier : Takes into account how uncertain a class mean is.
    skellipsoid.EllipsoidOpenSetClassifier : Ellipsoids with a separate shape for each class.

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

    covariance: str = "shared"
    shrinkage: str | float = "auto"
    pooling: float = 0.5
    open_share: float | tuple[float, float] | None = None
    known_shift: float | None = None

    _state: ClassVar[dict[str, Rule]] = {
        **THRESHOLDED,
        "centroids_": floats("n_classes", "n_features"),
        "shrinkage_": NUMBER,
        "_whitener": floats("n_features", "n_features"),
        "_log_det": NUMBER,
        # Only with covariance="relative".
        "_mean": optional(floats("n_features")),
        "_all_whitener": optional(floats("n_features", "n_features")),
        # Only with covariance="class".
        "_axes": optional(floats("n_axes", "n_features")),
        "_axis_variances": optional(floats("n_axes", above=0)),
        "_axis_starts": optional(integers("n_classes + 1", rises_to="n_axes")),
    }
    _scores_as_new: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ThresholdedClassifier._parameter_constraints,
        "covariance": [StrOptions({"shared", "class", "relative"})],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "pooling": [Interval(Real, 0, 1, closed="both")],
        "open_share": [Interval(Real, 0, 1, closed="both"), "array-like", None],
        "known_shift": [Interval(Real, None, None, closed="neither"), None],
    }

    @property
    def answers_version(self) -> int:
        """Version of the predictions; one higher where the scale of held-out scores was corrected later."""
        return AUTO_THRESHOLD_VERSION + (not self._keeps_scale())

    def _check_state(self, sizes: Sizes) -> None:
        if self.covariance == "relative":
            require(self, "_mean", "_all_whitener")
        if self.covariance == "class":
            require(self, "_axes", "_axis_variances", "_axis_starts")

    def _keeps_scale(self) -> bool:
        # The difference of two distances does; each alone grows if a covariance is estimated from fewer samples.
        return self.covariance == "relative"

    def _fit_scores(self, samples: TrainingSamples) -> None:
        X, classes, weights = samples.features, samples.classes, samples.weights
        self.centroids_, totals = class_means(X, classes, weights, len(self.classes_))
        offsets = X - self.centroids_[classes]
        within, self.shrinkage_ = shrunk_covariance(offsets, weights, self.shrinkage)
        self._whitener, self._log_det = whitener(within)
        if self.covariance == "relative":
            shares = totals / totals.sum()
            self._mean = shares @ self.centroids_
            means = self.centroids_ - self._mean
            # Shrunk once, with one weight: otherwise M_0 would exceed M_k where both should be equal.
            self._all_whitener, _ = whitener(within + (means * shares[:, np.newaxis]).T @ means)
        if self.covariance == "class":
            own = [self._own_axes(offsets[classes == k], weights[classes == k]) for k in range(len(self.classes_))]
            axes, variances = zip(*own, strict=True)
            self._axes, self._axis_variances = np.concatenate(axes), np.concatenate(variances)
            self._axis_starts = np.cumsum([0, *map(len, axes)])

    def _own_axes(self, offsets: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Axes along which a class's covariance differs from ρ of the shared one, in whitened features.

        Returns the axes, (n_axes, n_features), and the variances along them, (n_axes,).
        """
        scaled = (offsets @ self._whitener) * np.sqrt(weights / weights.sum())[:, np.newaxis]
        _, spreads, axes = np.linalg.svd(scaled, full_matrices=False)
        own = np.square(spreads)
        chosen = own > SMALLEST_VARIANCE * max(own.max(initial=0.0), 1.0)
        return axes[chosen], (1 - self.pooling) * own[chosen] + self.pooling

    def _score(self, X: Floats) -> Scored:
        whitened, centres = X @ self._whitener, self.centroids_ @ self._whitener
        by_class = np.empty((len(X), len(centres)))
        for k, centre in enumerate(centres):
            offsets = whitened - centre
            by_class[:, k] = self._log_density(k, offsets) if self.covariance == "class" else -_squares(offsets)
        if self.covariance == "relative":
            by_class += _squares((X - self._mean) @ self._all_whitener)[:, np.newaxis]
        return Scored(by_class.argmax(axis=1), by_class.max(axis=1), by_class)

    def _log_density(self, k: int, offsets: Floats) -> Floats:
        """Logarithm of the density of class k at whitened offsets, up to a constant."""
        own = slice(self._axis_starts[k], self._axis_starts[k + 1])
        variances, n_features = self._axis_variances[own], offsets.shape[1]
        along = np.square(offsets @ self._axes[own].T)
        n_rest = n_features - len(variances)
        # With ρ = 0 the variance of a class off its own axes is a rounding error.
        residual = max(self.pooling, SMALLEST_VARIANCE)
        squares = along @ (1 / variances)
        log_det = self._log_det + float(np.log(variances).sum()) + n_rest * np.log(residual)
        if n_rest:
            squares += np.maximum(_squares(offsets) - along.sum(axis=1), 0) / residual
        return np.asarray(-0.5 * (squares + log_det))


def _squares(offsets: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", offsets, offsets))
