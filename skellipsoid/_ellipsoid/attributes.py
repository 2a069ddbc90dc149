"""Attributes and methods of a fitted classifier that read its boundaries."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.fitted_state import of_one_fit
from .._core.validation import enumerated
from .._held_out.table import HeldOutTable
from . import axes
from .math.boundaries import Boundaries


def _fitted(read: Callable[[Boundaries], Any], what: str) -> Any:
    """Return a property that reads what a fit stored."""

    def found(classifier: Any) -> Any:
        check_is_fitted(classifier)
        return read(classifier._boundaries)

    return property(found, doc=what)


class BoundaryAttributesMixin:
    """Mixin of the classifier that stores ``Boundaries``, and the scores of samples that were held out."""

    classes_: NDArray[Any]
    _boundaries: Boundaries
    _held_out: HeldOutTable | None

    scale_ = _fitted(lambda found: found.scale, "Divisor of the features.")
    column_units_ = _fitted(lambda found: found.units, "Units of the columns, or None where these are as given.")
    centroids_ = _fitted(lambda found: found.mean + found.divisor * found.centroids, "Class means in the units of X.")
    centers_ = _fitted(lambda found: found.mean + found.divisor * found.centres, "Centres in the units of X.")
    radii_ = _fitted(lambda found: found.scale * found.shapes.radii, "Δ_k in the units of X.")
    spherical_share_ = _fitted(lambda found: found.shrinkage[0], "Shrinkage a of T to a sphere, or None.")
    between_share_ = _fitted(lambda found: found.shrinkage[1], "Shrinkage b of the covariance of means to T, or None.")
    shared_share_ = _fitted(lambda found: found.shrinkage[2], "Shrinkage ρ of classes to the shared shape, or None.")

    @property
    def held_out_scores_(self) -> NDArray[np.float64] | None:
        """Scores of known samples by boundaries that were computed without them, in ascending order."""
        check_is_fitted(self)
        held_out = self._held_out
        return None if held_out is None else np.sort(held_out.known.scores)

    def within_covariance(self) -> NDArray[np.float64] | None:
        """Covariance T within classes, whose metric defines the nearest class mean.

        Returns
        -------
        within : ndarray of shape (n_features, n_features) or None
            In the squared units of X; ``None`` if the metric is Euclidean.
        """
        check_is_fitted(self)
        return axes.within_covariance(self._boundaries)

    @of_one_fit
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
        return axes.ellipsoid_axes(self._boundaries, int(found[0]))

    def _matrices(self) -> Iterator[NDArray[np.float64]]:
        """A_k of each class, one at a time: they are as large as a square of the features."""
        return (axes.component(self._boundaries, k) for k in range(len(self.classes_)))

    @of_one_fit
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
        directions, variances, ends = axes.shared_axes(self._boundaries)
        return directions, variances, self.classes_[ends]
