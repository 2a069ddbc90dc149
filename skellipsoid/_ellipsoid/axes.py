"""The axes of fitted ellipsoids, which ``components_``, ``ellipsoid_axes`` and ``explain`` read."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.validation import enumerated
from .stored_shapes import StoredShapes

#: Variance of the class means along an axis, in units of that within classes, below which the axis has no name.
_LEAST_VARIANCE = 1e-9


class Decomposition(NamedTuple):
    """Where the squared distances of samples come from."""

    contributions: NDArray[np.float64]  # (n_samples, n_axes)
    deviations: NDArray[np.float64]  # (n_samples, n_axes) ±1 is where a sample along this axis alone is on the boundary
    own: NDArray[np.float64]  # (n_samples,) along the class's own axes, beside the named ones
    poles: NDArray[np.int64]  # (n_samples, n_axes, 2) classes farthest apart; deviations are positive to the second


class FittedAxes(StoredShapes):
    """Directions and lengths of the fitted ellipsoids, as a mixin."""

    def ellipsoid_axes(self, label: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Axes of one class's ellipsoid.

        Parameters
        ----------
        label : int, float or str
            One of ``classes_``.

        Returns
        -------
        directions : ndarray of shape (n_features, n_features)
            Orthonormal rows: the eigenvectors of A_kᵀ A_k.
        lengths : ndarray of shape (n_features,)
            Semi-axis lengths Δ_k / √λ_i in the units of X, longest first.

        Raises
        ------
        ValueError
            If ``label`` is not a known class.
        """
        check_is_fitted(self)
        found = np.flatnonzero(self.classes_ == label)
        if not len(found):
            raise ValueError(f"{label!r} is not a known class; the known classes are {enumerated(self.classes_)}.")
        component = self._component(int(found[0]))
        _, singular, directions = np.linalg.svd(component)
        with np.errstate(divide="ignore"):
            lengths = float(self.radii_[found[0]]) / singular
        # Singular values come largest first.
        return directions[::-1], lengths[::-1]

    @property
    def components_(self) -> NDArray[np.float32]:
        """A_k of all classes, computed from the stored factors."""
        check_is_fitted(self)
        return np.stack([self._component(k) for k in range(len(self.classes_))]).astype(np.float32)

    def _component(self, k: int) -> NDArray[np.float64]:
        """A_k: the root of the factors' matrix, or the matrix itself where the factors are its rows."""
        own = slice(self._axis_starts[k], self._axis_starts[k + 1])
        axes, roots = self._axes[own].astype(np.float64), np.sqrt(self._axis_weights[own])
        residual = float(np.sqrt(self._residual_weights[k]))
        if self.shared_share_ is None and len(axes):  # full matrices were learned; degenerate classes have no axes
            return axes
        root: NDArray[np.float64] = residual * np.eye(axes.shape[1]) + (axes.T * (roots - residual)) @ axes
        if self._metric_axes is None:
            return root
        metric = self._metric_axes.astype(np.float64)
        n_features, n_axes = metric.shape
        if n_axes == n_features:
            return np.asarray(root @ metric.T)
        span = np.linalg.qr(metric)[0]
        off_span = residual * self._off_span * (np.eye(n_features) - span @ span.T)
        return np.asarray(span @ root[:n_axes, :n_axes] @ metric.T + off_span)

    @property
    def within_covariance_(self) -> NDArray[np.float64] | None:
        """T, the covariance within classes, in the squared units of X; its metric defines the nearest class mean.

        ``None`` if the metric is Euclidean.
        """
        check_is_fitted(self)
        if self._metric_axes is None:
            return None
        axes = self._metric_axes.astype(np.float64) / self._stretches
        span, root = np.linalg.qr(axes)
        within = span @ np.linalg.inv(root @ root.T) @ span.T
        if span.shape[0] > span.shape[1]:
            within += self._off_variance * (np.eye(len(span)) - span @ span.T)
        return np.asarray(self.scale_**2 * within)

    def shared_axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
        """Axes along which class means differ, as in linear discriminant analysis; all classes share them.

        Returns
        -------
        directions : ndarray of shape (n_axes, n_features)
            ``X @ directions.T`` are coordinates in units of the standard deviation within classes, uncorrelated within
            classes and between class means. At most one axis less than classes, and none with a trainer.
        variances : ndarray of shape (n_axes,)
            Variance of the class means along each axis, largest first.
        poles : ndarray of shape (n_axes, 2)
            The two classes of ``classes_`` whose means are farthest apart along each axis, from low to high.
        """
        check_is_fitted(self)
        if self._metric_axes is None:
            return np.empty((0, len(self._mean))), np.empty(0), np.empty((0, 2), dtype=self.classes_.dtype)
        named = np.flatnonzero(self._between > _LEAST_VARIANCE)
        order = named[np.argsort(-self._between[named], kind="stable")]
        directions = (self._metric_axes.astype(np.float64) / self._stretches).T[order] / self.scale_
        means = (self.centroids_ - self._mean) @ directions.T
        poles = self.classes_[np.stack([means.argmin(axis=0), means.argmax(axis=0)], axis=1)]
        return directions, self._between[order], poles

    def _decompose(self, X: NDArray[Any], assigned: NDArray[np.int64]) -> Decomposition:
        """Split (1 − margin)² of samples for their classes into the contributions of named axes, and the rest.

        The contribution of the coordinate y_j to a quadratic form yᵀDy is y_j (Dy)_j.
        """
        rows = ((X - self._mean) / self.scale_).astype(np.float64)
        n_axes = rows.shape[1] if self._metric_axes is None else int((self._between > _LEAST_VARIANCE).sum())
        found = Decomposition(
            np.zeros((len(rows), n_axes)),
            np.zeros((len(rows), n_axes)),
            np.zeros(len(rows)),
            np.zeros((len(rows), n_axes, 2), dtype=np.int64),
        )
        centroids = (self.centroids_ - self._mean) / self.scale_
        for k in np.unique(assigned):
            mine, part = np.flatnonzero(assigned == k), slice(self._axis_starts[k], self._axis_starts[k + 1])
            radius = self.radii_[k] / self.scale_
            if self._metric_axes is None:
                axes, lengths = self.ellipsoid_axes(self.classes_[k])
                along = (rows[mine] - (self.centers_[k] - self._mean) / self.scale_) @ axes.T
                found.deviations[mine] = along / (lengths / self.scale_)
                found.contributions[mine] = found.deviations[mine] ** 2
                means = centroids @ axes.T
            else:
                metric = self._metric_axes.astype(np.float64)
                offsets = rows[mine] @ metric - self._centers[k, : metric.shape[1]]
                axes = self._axes[part, : metric.shape[1]].astype(np.float64)
                weights, residual = self._axis_weights[part], self._residual_weights[k]
                along = offsets @ axes.T
                of_class = (along * weights) @ axes
                gradient = of_class + residual * (offsets - along @ axes)
                found.contributions[mine] = (offsets * gradient)[:, :n_axes] / radius**2
                found.own[mine] = (offsets * of_class)[:, n_axes:].sum(axis=1) / radius**2
                curvature = residual + (weights - residual) @ axes**2
                found.deviations[mine] = (offsets * np.sqrt(curvature))[:, :n_axes] / radius
                means = (centroids @ metric)[:, :n_axes]
            ends = np.stack([means.argmin(axis=0), means.argmax(axis=0)], axis=1)
            # The sign of an axis is arbitrary: it goes from the first class to the later one.
            turned = ends[:, 0] > ends[:, 1]
            found.deviations[np.ix_(mine, turned)] *= -1
            found.poles[mine] = np.where(turned[:, np.newaxis], ends[:, ::-1], ends)
        return found
