"""A plane through feature space { o + Vᵀp }, and its intersections with the ellipsoids."""

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.validation import read_features
from ._canvas import shorten

#: A frame extends at most this many times the extent of the known samples beyond them, to show the open ones.
_REACH = 0.35
_PADDING = 0.05
#: Number of grid points that are predicted at once: with many features the grid is large.
_CHUNK = 4096
_N_OUTLINE = 201

_Floats = NDArray[np.float64]


class Plane(NamedTuple):
    """The points ``origin + p @ directions``, on which a sample is drawn at ``(x - origin) @ coordinates.T``.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
    directions : ndarray of shape (2, n_features)
    coordinates : ndarray of shape (2, n_features)
        ``directions @ coordinates.T`` is the unit matrix. The same as ``directions`` where these are orthonormal.
    """

    origin: _Floats
    directions: _Floats
    coordinates: _Floats

    def project(self, X: _Floats) -> _Floats:
        """Coordinates of each sample, (n_samples, 2)."""
        return (X - self.origin) @ self.coordinates.T


def choose_plane(classifier: Any, features: Any, label: Any, axes: Any) -> tuple[Plane, tuple[str, str]]:
    """Choose the plane to draw, and name its sides.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier
    features : array-like of shape (n_samples, n_features)
    label : int, str or None
        The class whose axes span the plane; None for the plane of two features.
    axes : {"shared", "contributing", "longest"} or pair of int
    """
    n_features = classifier.centroids_.shape[1]
    if n_features < 2:
        raise ValueError("X has 1 feature, but the picture has two dimensions: pass features of at least two.")
    if label is None:
        if n_features > 2:
            raise ValueError(
                f"X has {n_features} features, but the picture has two dimensions: pass label=, one of the known "
                f"classes such as {classifier.classes_[:1].tolist()[0]!r}, to draw the plane along its axes."
            )
        first, second = getattr(classifier, "feature_names_in_", ("feature 0", "feature 1"))
        return Plane(np.zeros(2), np.eye(2), np.eye(2)), (shorten(first), shorten(second))
    directions, lengths = classifier.ellipsoid_axes(label)  # which also checks the label
    k = np.flatnonzero(classifier.classes_ == label)[0]
    centre = classifier.centers_[k]
    assigned = np.asarray(classifier.predict_known(features) == label)
    offsets = to_floats(features) - centre
    rows = offsets[assigned] if assigned.any() else offsets
    accepted = offsets[np.asarray(classifier.predict(features) == label)]
    root = directions / lengths[:, np.newaxis]
    if isinstance(axes, str) and axes == "shared":
        shared, _, poles = classifier.shared_axes()
        if len(shared) > 1:
            plane, names = _shared_plane(centre, root, rows, shared, poles)
            return _through_typical(plane, root, accepted), names
        axes = "contributing"
    pair, shares = choose_axes(axes, directions, lengths, rows)
    first, second = (f"axis {i} ({shares[i]:.1%} of squared distance)" for i in pair)
    chosen = directions[list(pair)]
    return _through_typical(Plane(centre, chosen, chosen), root, accepted), (first, second)


def _through_typical(plane: Plane, root: _Floats, offsets: _Floats) -> Plane:
    """Shift a plane from the centre of an ellipsoid to the sample with the median distance from it.

    Every sample has a distance in the directions that the plane does not show. A section through the centre ignores it,
    and with many features is far larger than the cloud of the samples.

    Parameters
    ----------
    plane : Plane
    root : ndarray of shape (n_features, n_features)
        The ellipsoid is { x : ‖root (x − centre)‖ ≤ 1 }.
    offsets : ndarray of shape (n_samples, n_features)
        The class's accepted samples less the centre; without any the plane stays.
    """
    if not len(offsets):
        return plane
    remainders = offsets - offsets @ plane.coordinates.T @ plane.directions
    distances = np.square(remainders @ root.T).sum(axis=1)
    typical = np.argsort(distances, kind="stable")[(len(distances) - 1) // 2]
    return plane._replace(origin=plane.origin + remainders[typical])


def _shared_plane(
    centre: _Floats, root: _Floats, offsets: _Floats, shared: _Floats, poles: NDArray[Any]
) -> tuple[Plane, tuple[str, str]]:
    """Take the two shared axes along which samples lie farthest out, in units of the ellipsoid's extent along them.

    The ellipsoid is { x : ‖root (x − centre)‖ ≤ 1 }, Σ = (rootᵀ root)⁻¹. Of all points with given coordinates, those of
    this plane, centre + p (P Σ Pᵀ)⁻¹ P Σ for coordinates P, lie deepest inside it, so that the section is the shadow.
    """
    whitened = np.linalg.lstsq(root.T, shared.T, rcond=None)[0]  # root⁻ᵀ Pᵀ, (n_features, n_axes)
    reach = np.square(whitened).sum(axis=0)
    order = np.argsort(-np.square(offsets @ shared.T).mean(axis=0) / reach, kind="stable")[:2]
    coordinates, of_pair = shared[order], whitened[:, order]
    directions = np.linalg.solve(of_pair.T @ of_pair, np.linalg.lstsq(root, of_pair, rcond=None)[0].T)
    first, second = (f"{shorten(low)}  \u2194  {shorten(high)}" for low, high in poles[order].tolist())
    return Plane(centre, directions, coordinates), (first, second)


def choose_axes(axes: Any, directions: _Floats, lengths: _Floats, offsets: _Floats) -> tuple[tuple[int, int], _Floats]:
    """Choose two axes of an ellipsoid, and say how much each axis contributes to the distance of samples.

    Parameters
    ----------
    axes : {"contributing", "longest"} or pair of int
    directions : ndarray of shape (n_features, n_features)
    lengths : ndarray of shape (n_features,)
        Semi-axes, longest first.
    offsets : ndarray of shape (n_samples, n_features)
        Samples less the centre.

    Returns
    -------
    pair : tuple of int
        Positions of the two axes.
    shares : ndarray of shape (n_features,)
        Mean proportion of each axis in ‖A (z − c)‖².
    """
    squares = np.square(offsets @ directions.T / lengths).mean(axis=0)
    shares = squares / squares.sum() if squares.any() else np.zeros(len(lengths))
    if isinstance(axes, str):
        if axes == "longest":
            return (0, 1), shares
        if axes == "contributing":
            first, second = np.argsort(-shares, kind="stable")[:2].tolist()
            return (first, second), shares
    elif isinstance(axes, Sequence) and len(axes) == 2 and all(isinstance(i, int | np.integer) for i in axes):
        first, second = (int(i) + len(lengths) * (i < 0) for i in axes)
        if first != second and all(0 <= i < len(lengths) for i in (first, second)):
            return (first, second), shares
    raise ValueError(
        f"axes={axes!r} is not allowed: pass 'shared', 'contributing', 'longest', or two different axes from 0 (the "
        f"longest) to {len(lengths) - 1}."
    )


def cut_ellipsoids(classifier: Any, plane: Plane) -> _Floats:
    """Outline of the intersection of the plane with each class's ellipsoid, (n_classes, n_points, 2)."""
    sizes = 1 - classifier.offset_ - classifier.class_offsets_
    ellipsoids = zip(classifier.centers_, classifier._matrices(), classifier.radii_, sizes, strict=True)
    outlines = [_cut_ellipsoid(plane, m, A / radius, size) for m, A, radius, size in ellipsoids]
    return np.stack(outlines)


def _cut_ellipsoid(plane: Plane, centre: _Floats, matrix: _Floats, size: float) -> _Floats:
    """Outline of the intersection of the plane with { z : ‖matrix (z − centre)‖ ≤ size }, (n_points, 2).

    The last point is the first. NaN if the plane misses the ellipsoid, or cuts it where it is unbounded.
    """
    # On the plane the norm is ‖fixed + slope p‖, least at the centre of the section.
    fixed = matrix @ (plane.origin - centre)
    slope = matrix @ plane.directions.T  # (n_features, 2)
    left, singular, right = np.linalg.svd(slope, full_matrices=False)
    least = fixed - left @ (left.T @ fixed)
    room = size**2 - least @ least
    if not (size > 0 and 0 < room < np.inf and singular[-1] > 1e-12 * max(singular[0], 1e-300)):
        return np.full((_N_OUTLINE, 2), np.nan)
    angles = np.linspace(0, 2 * np.pi, _N_OUTLINE)
    circle = np.sqrt(room) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray((circle - left.T @ fixed) / singular @ right)


def frame_around(known: _Floats, others: _Floats) -> _Floats:
    """Frame of a picture: all known samples, and as many of the others as leaves the known ones visible.

    Parameters
    ----------
    known : ndarray of shape (n_known, 2)
        Known samples, and outlines that are shown whole.
    others : ndarray of shape (n_others, 2)
        Open samples. They determine the frame if there is no known sample.

    Returns
    -------
    limits : ndarray of shape (2, 2)
        The least corner and the greatest.
    """
    core = known if len(known) else others
    low, high = core.min(axis=0), core.max(axis=0)
    if len(others):
        # A single sample, or equal samples, have no extent to compare with.
        reach = _REACH * (high - low).max() or np.inf
        low = np.minimum(low, np.maximum(others.min(axis=0), low - reach))
        high = np.maximum(high, np.minimum(others.max(axis=0), high + reach))
    padding = _PADDING * (high - low)
    padding[padding == 0] = 0.5
    return np.stack([low - padding, high + padding])


def open_region(classifier: Any, plane: Plane, limits: _Floats, resolution: int) -> NDArray[np.bool_]:
    """Whether the classifier predicts open at the points of a grid on the plane, (resolution, resolution).

    Parameters
    ----------
    classifier : open-set classifier
    plane : Plane
    limits : ndarray of shape (2, 2)
    resolution : int
        Points along each side, in the middle of their cells.
    """
    if resolution < 1:
        raise ValueError(f"grid_resolution={resolution!r} is not allowed: pass the number of points along each side.")
    steps = (np.arange(resolution) + 0.5) / resolution
    across, up = (limits[0] + steps[:, np.newaxis] * (limits[1] - limits[0])).T
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    # Without the stored feature names and norms, so that it does not warn that the grid has none, or others.
    silent = copy(classifier)
    for name in ("feature_names_in_", "_norm_range"):
        vars(silent).pop(name, None)
    codes = [
        np.asarray(silent.predict(plane.origin + chunk @ plane.directions) == classifier.open_label_)
        for chunk in np.split(points, range(_CHUNK, len(points), _CHUNK))
    ]
    return np.concatenate(codes).reshape(resolution, resolution)


def to_floats(features: Any) -> _Floats:
    """Turn features of any container into double precision."""
    return np.asarray(read_features(features), dtype=np.float64)


def n_beyond(points: NDArray[np.float64], limits: NDArray[np.float64]) -> int:
    """Count the points that lie beyond a frame."""
    return int(((points < limits[0]) | (points > limits[1])).any(axis=-1).sum())
