"""Fitted boundaries, and how they score samples."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from .geometry import Factors, PaddedFactors, assigned_norms
from .held_out import HeldOut


@dataclass(frozen=True)
class Metric:
    """Coordinates in which the shape that all classes share is the identity, and the metric that assigns classes.

    Where the samples do not span all features there is one more coordinate: the distance from their span.
    """

    axes: Tensor | None  # (n_features, n_axes); None are the features themselves
    products: Tensor | None  # (n_axes, n_axes) of the axes, inverted, where they do not span all features
    off_span: float  # factor of the additional coordinate
    directions: (
        Tensor  # (n_classes, n_coordinates) the closeness of a sample z to a class is directions @ z + constants
    )
    constants: Tensor  # (n_classes,)

    @classmethod
    def euclidean(cls, centroids: Tensor) -> "Metric":
        """Features as they are."""
        return cls(None, None, 0.0, centroids, -0.5 * centroids.square().sum(1))

    def coordinates(self, rows: Tensor) -> Tensor:
        """Coordinates of samples, (n_rows, n_coordinates)."""
        if self.axes is None:
            return rows
        found = rows @ self.axes
        if self.products is None:
            return found
        # Of differences: between squares of far classes, in single precision, they would be rounding alone.
        off = torch.linalg.vector_norm(rows - (found @ self.products) @ self.axes.T, dim=1) * self.off_span
        return torch.cat([found, off.unsqueeze(1)], dim=1)

    def nearest(self, coordinates: Tensor) -> Tensor:
        """Class with the nearest mean, (n_rows,)."""
        return torch.addmm(self.constants, coordinates, self.directions.T).argmax(1)


class Shapes(NamedTuple):
    """Ellipsoids of all classes."""

    metric: Metric
    centres: Tensor  # (n_classes, n_coordinates)
    factors: Factors  # of A_k in these coordinates
    radii: Tensor  # (n_classes,)

    def scorer(self) -> "Scorer":
        """Prepare them for scoring."""
        return Scorer(self.metric, self.centres, self.factors.padded(), self.radii)


class Scorer(NamedTuple):
    """Ellipsoids of all classes for scoring, in one precision and on one device."""

    metric: Metric
    centres: Tensor  # (n_classes, n_coordinates)
    factors: PaddedFactors
    radii: Tensor  # (n_classes,)

    def assigned(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Class of each sample, and its margin."""
        coordinates = self.metric.coordinates(rows)
        labels = self.metric.nearest(coordinates)
        return labels, 1 - assigned_norms(coordinates, labels, self.centres, self.factors) / self.radii[labels]

    def all(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Class of each sample, and the margins of all classes, (n_rows, n_classes)."""
        coordinates = self.metric.coordinates(rows)
        labels = self.metric.nearest(coordinates)
        return labels, 1 - self.factors.all_norms(coordinates, self.centres) / self.radii

    def bytes_per_row(self, *, of_all: bool) -> int:
        """Memory that scoring takes for each row, about."""
        n_classes, n_coordinates = self.centres.shape
        n_axes = sum(bucket.axes.shape[1] for bucket in self.factors.axes.buckets)
        numbers = 5 * n_coordinates + 2 * n_classes + 2 * n_axes
        if of_all:
            n_axes = max(bucket.axes.shape[1] for bucket in self.factors.axes.buckets)
            numbers += n_classes * (n_coordinates + n_axes + 4)
        return numbers * self.centres.element_size()


class Shrinkage(NamedTuple):
    """The shares a, b and ρ of the shapes."""

    spherical: float  # a, share of a sphere in T
    between: float | None  # b, share of T in B; None without a background
    shared: float  # ρ, share of Q in the shape of a class


class Chosen(NamedTuple):
    """What a fit chooses by held-out samples; with it given, boundaries follow from the samples alone."""

    shrinkage: Shrinkage
    scale_of_large: float  # radius scale of a class of very many samples
    error: float  # e: the radius of n samples is √(1 + e / n) times as large


class Moments(NamedTuple):
    """Statistics that the closed form is computed from: class counts, scatters, covariances."""

    counts: Tensor  # (n_classes,) weight of each class's samples
    freedoms: Tensor  # (n_classes,) degrees of freedom of its scatter
    scatters: Tensor  # (n_axes of all classes together,) eigenvalues of the scatters along the classes' axes
    variances_of_means: Tensor  # (n_axes,) of B₀, in units of T
    stretches: Tensor  # (n_axes,) coordinates, divided by these, have T = I
    variance_off_span: float  # of T


@dataclass(frozen=True)
class Boundaries:
    """Fitted boundaries { z : ‖A_k (z − m_k)‖ ≤ Δ_k } of all classes, on the device of the fit."""

    origin: Tensor  # (n_features,) where the coordinates begin
    centroids: Tensor  # (n_classes, n_features) class means, from the origin
    centres: Tensor  # (n_classes, n_features) m_k, from the origin
    shapes: Shapes
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread
    held_out: HeldOut | None = None
    moments: Moments | None = None  # of the closed form
    chosen: Chosen | None = None  # by the closed form
    losses: list[float] = field(default_factory=list)  # of a trainer, one for each epoch
    scores: list[float] = field(default_factory=list)  # of the validation samples of a trainer
