"""The axes of fitted ellipsoids: directions, lengths, and what they contribute to the distance of a sample."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .math.boundaries import Boundaries, Moments

#: Variance of the class means along an axis, in units of that within classes, below which the axis has no name.
_LEAST_VARIANCE = 1e-9


class Decomposition(NamedTuple):
    """Where the squared distances of samples come from."""

    contributions: NDArray[np.float64]  # (n_samples, n_axes)
    deviations: NDArray[np.float64]  # (n_samples, n_axes) ±1 is where a sample along this axis alone is on the boundary
    own: NDArray[np.float64]  # (n_samples,) along the class's own axes, beside the named ones
    poles: NDArray[np.int64]  # (n_samples, n_axes, 2) classes farthest apart; deviations are positive to the second


def component(boundaries: Boundaries, k: int) -> NDArray[np.float64]:
    """A_k, of features in the units that they are given in."""
    found = _standardized_component(boundaries, k)
    return found if boundaries.units is None else found / boundaries.units


def _standardized_component(boundaries: Boundaries, k: int) -> NDArray[np.float64]:
    """A_k in the coordinates of the fit: the root of the factors' matrix, or the matrix itself where these are rows."""
    factors, metric = boundaries.shapes.factors, boundaries.shapes.metric
    own = slice(factors.starts[k], factors.starts[k + 1])
    axes, roots = factors.axes[own].astype(np.float64), np.sqrt(factors.weights[own])
    residual = float(np.sqrt(factors.residual[k]))
    if boundaries.chosen is None and len(axes):  # full matrices were learned; degenerate classes have no axes
        return np.asarray(axes)
    root: NDArray[np.float64] = residual * np.eye(axes.shape[1]) + (axes.T * (roots - residual)) @ axes
    if metric.axes is None:
        return root
    metric_axes = metric.axes.astype(np.float64)
    n_features, n_axes = metric_axes.shape
    if n_axes == n_features:
        return np.asarray(root @ metric_axes.T)
    span = np.linalg.qr(metric_axes)[0]
    off_span = residual * metric.off_span * (np.eye(n_features) - span @ span.T)
    return np.asarray(span @ root[:n_axes, :n_axes] @ metric_axes.T + off_span)


def ellipsoid_axes(boundaries: Boundaries, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Axes of one class's ellipsoid, longest first, and their lengths in the units of X."""
    return _axes_of(component(boundaries, k), boundaries.scale * float(boundaries.shapes.radii[k]))


def _axes_of(component: NDArray[np.float64], radius: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _, singular, directions = np.linalg.svd(component)
    with np.errstate(divide="ignore"):
        lengths = radius / singular
    # Singular values come largest first.
    return directions[::-1], lengths[::-1]


def within_covariance(boundaries: Boundaries) -> NDArray[np.float64] | None:
    """T in the squared units of X; ``None`` if the metric that assigns classes is Euclidean."""
    if boundaries.moments is None:
        return None
    axes = _scaled_axes(boundaries, boundaries.moments)
    span, root = np.linalg.qr(axes)
    within = span @ np.linalg.inv(root @ root.T) @ span.T
    if span.shape[0] > span.shape[1]:
        within += boundaries.moments.variance_off_span * (np.eye(len(span)) - span @ span.T)
    divisor = np.broadcast_to(boundaries.divisor, len(within))
    return np.asarray(divisor[:, np.newaxis] * within * divisor)


def shared_axes(
    boundaries: Boundaries,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Axes along which class means differ, the variances of the means along them, and the two classes at their ends."""
    if boundaries.moments is None:
        return np.empty((0, len(boundaries.mean))), np.empty(0), np.empty((0, 2), dtype=np.int64)
    between = boundaries.moments.variances_of_means
    named = np.flatnonzero(between > _LEAST_VARIANCE)
    order = named[np.argsort(-between[named], kind="stable")]
    axes = _scaled_axes(boundaries, boundaries.moments).T[order]
    directions, means = axes / boundaries.divisor, boundaries.centroids @ axes.T
    return directions, between[order], _ends(means)


def _scaled_axes(boundaries: Boundaries, moments: Moments) -> NDArray[np.float64]:
    """Axes whose coordinates have T = I, (n_features, n_axes)."""
    return np.asarray(_metric_axes(boundaries) / moments.stretches)


def _metric_axes(boundaries: Boundaries) -> NDArray[np.float64]:
    axes: Any = boundaries.shapes.metric.axes
    return np.asarray(axes.astype(np.float64))


def _ends(means: NDArray[np.float64]) -> NDArray[np.int64]:
    """Classes whose means are farthest apart along each axis, (n_axes, 2)."""
    return np.stack([means.argmin(axis=0), means.argmax(axis=0)], axis=1)


def decompose(boundaries: Boundaries, X: NDArray[Any], assigned: NDArray[np.int64]) -> Decomposition:
    """Split (1 − margin)² of samples for their classes into the contributions of named axes, and the rest."""
    features = boundaries.standardized(X).astype(np.float64)
    moments = boundaries.moments
    n_axes = features.shape[1] if moments is None else int((moments.variances_of_means > _LEAST_VARIANCE).sum())
    found = Decomposition(
        np.zeros((len(features), n_axes)),
        np.zeros((len(features), n_axes)),
        np.zeros(len(features)),
        np.zeros((len(features), n_axes, 2), dtype=np.int64),
    )
    for k in np.unique(assigned):
        mine = np.flatnonzero(assigned == k)
        of_class = _along_own_axes if moments is None else _along_shared_axes
        contributions, deviations, own, means = of_class(boundaries, k, features[mine], n_axes)
        ends = _ends(means)
        # The sign of an axis is arbitrary: it goes from the first class to the later one.
        turned = ends[:, 0] > ends[:, 1]
        deviations[:, turned] *= -1
        found.contributions[mine], found.deviations[mine], found.own[mine] = contributions, deviations, own
        found.poles[mine] = np.where(turned[:, np.newaxis], ends[:, ::-1], ends)
    return found


#: Contributions and deviations of samples, what is the class's own, and the class means along the axes.
_Parts = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | float, NDArray[np.float64]]


def _along_own_axes(boundaries: Boundaries, k: int, features: NDArray[np.float64], n_axes: int) -> _Parts:
    """Of the axes of the class's ellipsoid."""
    axes, lengths = _axes_of(_standardized_component(boundaries, k), float(boundaries.shapes.radii[k]))
    deviations = (features - boundaries.centres[k]) @ axes.T / lengths
    return deviations**2, deviations, 0.0, boundaries.centroids @ axes.T


def _along_shared_axes(boundaries: Boundaries, k: int, features: NDArray[np.float64], n_axes: int) -> _Parts:
    """Of the shared axes: the contribution of the coordinate y_j to a quadratic form yᵀDy is y_j (Dy)_j."""
    shapes = boundaries.shapes
    factors, radius = shapes.factors, shapes.radii[k]
    part = slice(factors.starts[k], factors.starts[k + 1])
    metric = _metric_axes(boundaries)
    offsets = features @ metric - shapes.centres[k, : metric.shape[1]]
    axes = factors.axes[part, : metric.shape[1]].astype(np.float64)
    weights, residual = factors.weights[part], factors.residual[k]
    along = offsets @ axes.T
    of_class = (along * weights) @ axes
    gradient = of_class + residual * (offsets - along @ axes)
    own = (offsets * of_class)[:, n_axes:].sum(axis=1) / radius**2
    curvature = residual + (weights - residual) @ axes**2
    deviations = (offsets * np.sqrt(curvature))[:, :n_axes] / radius
    return (offsets * gradient)[:, :n_axes] / radius**2, deviations, own, (boundaries.centroids @ metric)[:, :n_axes]
