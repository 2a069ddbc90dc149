"""Fitted boundaries { z : ‖A_k (z − m_k)‖₂ ≤ Δ_k }, and the margins 1 − ‖A_k (z − m_k)‖₂ / Δ_k of samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._held_out.table import HeldOutTable
from .geometry import Factors, PaddedFactors, assigned_norms
from .memory import Memory
from .tiles import reads_are_free

#: A tensor in a fit and in scoring, an array where it is stored.
Array = Any
#: Number of classes with the nearest means that a sample may be assigned to.
N_NEAREST = 3


@dataclass(frozen=True)
class Metric:
    """Coordinates in which the shape that all classes share is the identity, and the metric that assigns classes.

    Where the samples do not span all features there is one more coordinate: the distance from their span.
    """

    axes: Array | None  # (n_features, n_axes); None are the features themselves
    products: Array | None  # (n_axes, n_axes) of the axes, inverted, where they do not span all features
    off_span: float  # factor of the additional coordinate
    directions: Array  # (n_classes, n_coordinates) closeness of a sample z to the classes: directions @ z + constants
    constants: Array  # (n_classes,)

    @classmethod
    def euclidean(cls, centroids: Tensor) -> "Metric":
        """Features as they are."""
        return cls(None, None, 0.0, centroids, -0.5 * centroids.square().sum(1))

    def coordinates(self, features: Tensor) -> Tensor:
        """Coordinates of samples, (n_samples, n_coordinates)."""
        if self.axes is None:
            return features
        found: Tensor = features @ self.axes
        if self.products is None:
            return found
        # Of differences: between squares of far classes, in single precision, they would be rounding alone.
        off = torch.linalg.vector_norm(features - (found @ self.products) @ self.axes.T, dim=1) * self.off_span
        return torch.cat([found, off.unsqueeze(1)], dim=1)

    def nearest(self, coordinates: Tensor, n_nearest: int) -> Tensor:
        """Classes with the nearest means, or all of fewer, (n_samples, n_nearest)."""
        found = torch.addmm(self.constants, coordinates, self.directions.T)
        if n_nearest == 1 or found.shape[1] == 1:
            return found.argmax(1, keepdim=True)
        nearest: Tensor = found.topk(min(n_nearest, found.shape[1]), dim=1).indices
        return nearest


class Shapes(NamedTuple):
    """Ellipsoids of all classes."""

    metric: Metric
    centres: Array  # (n_classes, n_coordinates)
    factors: Factors  # of A_k in these coordinates
    radii: Array  # (n_classes,)
    allowances: Array  # (n_classes,) subtracted from squared distances, in units of Δ², where classes are compared

    def scorer(self, n_nearest: int) -> "Scorer":
        """Prepare them for scoring."""
        return Scorer(self.metric, self.centres, self.factors.padded(), self.radii, self.allowances, n_nearest)


class Scorer(NamedTuple):
    """Ellipsoids of all classes for scoring, in one precision and on one device."""

    metric: Metric
    centres: Tensor  # (n_classes, n_coordinates)
    factors: PaddedFactors
    radii: Tensor  # (n_classes,)
    allowances: Tensor  # (n_classes,)
    n_nearest: int  # classes with the nearest means, one of which is assigned

    def assigned(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Class of each sample, and its margin."""
        nearest, distances, compared = self.nearest(features)
        if nearest.shape[1] == 1:
            return nearest.squeeze(1), 1 - distances.squeeze(1)
        places = compared.argmin(dim=1, keepdim=True)
        return nearest.gather(1, places).squeeze(1), 1 - distances.gather(1, places).squeeze(1)

    def nearest(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Classes with the ``nearest`` means, their distances, and what the least of is that of the assigned."""
        coordinates = self.metric.coordinates(features)
        nearest = self.metric.nearest(coordinates, self.n_nearest)
        labels = nearest.flatten()
        rows = torch.arange(len(nearest), device=nearest.device).unsqueeze(1).expand_as(nearest).flatten()
        distances = assigned_norms(coordinates, labels, self.centres, self.factors, rows) / self.radii[labels]
        distances = distances.view(nearest.shape)
        return nearest, distances, self._compared(nearest, distances)

    def all(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Margins of all classes, classes with the ``nearest`` means, and what the least of is that of the assigned."""
        coordinates = self.metric.coordinates(features)
        distances = self.factors.all_norms(coordinates, self.centres) / self.radii
        nearest = self.metric.nearest(coordinates, self.n_nearest)
        return 1 - distances, nearest, self._compared(nearest, distances.gather(1, nearest))

    def _compared(self, nearest: Tensor, distances: Tensor) -> Tensor:
        """Squared distances less the allowances of the classes."""
        return distances.square() - self.allowances[nearest]

    def bytes_per_sample(self, *, of_all: bool) -> int:
        """Memory that scoring takes for each sample, about."""
        n_classes, n_coordinates = self.centres.shape
        n_axes = sum(bucket.axes.shape[1] for bucket in self.factors.axes.buckets)
        n_copies = 0 if reads_are_free(self.centres.device) else 2 * self.n_nearest  # tiles; runs are small
        numbers = (3 + n_copies) * n_coordinates + 2 * n_classes + 2 * self.n_nearest * n_axes
        if of_all:
            n_axes = max(bucket.axes.shape[1] for bucket in self.factors.axes.buckets)
            numbers += n_classes * (n_coordinates + n_axes + 4)
        return numbers * self.centres.element_size()


class Shrinkage(NamedTuple):
    """The shrinkage intensities a, b and ρ of the shapes."""

    spherical: float  # a, weight of a sphere in T
    between: float | None  # b, weight of T in B; None without a background
    shared: float  # ρ, weight of Q in the shape of a class


class Chosen(NamedTuple):
    """What a fit chooses by held-out samples; with it given, boundaries follow from the samples alone."""

    shrinkage: Shrinkage
    scale_of_large: float  # radius scale of a class of very many samples
    mean_error: float  # e: the radius of n samples is √(1 + e / n) times as large


class Moments(NamedTuple):
    """Statistics that the closed form is computed from: class counts, scatters, covariances."""

    counts: Array  # (n_classes,) weight of each class's samples
    freedoms: Array  # (n_classes,) degrees of freedom of its scatter
    scatters: Array  # (n_axes of all classes together,) eigenvalues of the scatters along the classes' axes
    variances_of_means: Array  # (n_axes,) of B₀, in units of T
    stretches: Array  # (n_axes,) coordinates, divided by these, have T = I
    variance_off_span: float  # of T


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Fitted boundaries { z : ‖A_k (z − m_k)‖ ≤ Δ_k } of all classes, with NumPy arrays only.

    z is a sample in the coordinates of the fit: less ``mean``, divided by ``scale`` and the ``units`` of columns.
    """

    mean: Array  # (n_features,)
    scale: float
    centroids: Array  # (n_classes, n_features) class means
    centres: Array  # (n_classes, n_features) m_k
    shapes: Shapes
    moments: Moments | None = None  # of the closed form
    chosen: Chosen | None = None  # by the closed form
    n_nearest: int = 1  # see ``Scorer``
    units: Array | None = None  # (n_features,) of the columns, their geometric mean is 1; None: as given
    memory: Memory | None = None  # of labelled messages
    _ready: dict[Any, "ReadyScorer"] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the tensors: copies and pickles hold NumPy arrays only."""
        return {**vars(self), "_ready": {}}

    @classmethod
    def of(cls, origin: Tensor, centroids: Tensor, centres: Tensor, shapes: Shapes, **chosen: Any) -> "Boundaries":
        """Store the tensors of a fit; axes in single precision, all else in double."""
        metric: Any = shapes.metric
        factors: Any = shapes.factors
        rest = shapes._replace(metric=replace(metric, axes=None), factors=replace(factors, axes=None))
        found, (shared, own) = with_arrays(rest, _stored), with_arrays((metric.axes, factors.axes), _stored_axes)
        shapes = found._replace(metric=replace(found.metric, axes=shared), factors=replace(found.factors, axes=own))
        chosen = with_arrays(chosen, _stored)
        return cls(_stored(origin), 1.0, _stored(centroids), _stored(centres), shapes, **chosen)

    @property
    def shrinkage(self) -> tuple[float | None, float | None, float | None]:
        """a, b and ρ; ``None`` where nothing was chosen."""
        return (None, None, None) if self.chosen is None else self.chosen.shrinkage

    @property
    def divisor(self) -> Any:
        """Divisor of all columns, or of each, (n_features,)."""
        return self.scale if self.units is None else self.scale * self.units

    def placed(self, mean: Array, scale: float, units: Array | None = None) -> "Boundaries":
        """Boundaries of features in ``units``, less their mean, divided by their scale, those of the features."""
        mean = mean + scale * self.mean
        return replace(self, mean=mean if units is None else units * mean, scale=scale, units=units)

    def standardized(self, X: Array) -> Array:
        """Return samples in the coordinates of the fit, in double precision."""
        return np.asarray((X - self.mean) / self.divisor)

    def ready(self, device: torch.device, dtype: torch.dtype) -> "ReadyScorer":
        """Prepare them for scoring; the tensors are made once for each device and type."""
        found = self._ready.get((device, dtype))
        if found is None:  # two threads may both make them
            found = self._ready.setdefault((device, dtype), self.prepared(device, dtype))
        return found

    def prepared(self, device: torch.device, dtype: torch.dtype) -> "ReadyScorer":
        """Make tensors of them on a device, in a precision."""

        def on_device(given: Array) -> Tensor:
            return torch.from_numpy(np.require(given, requirements="W")).to(device=device, dtype=dtype)

        mean = on_device(self.mean)
        rest = None if dtype == torch.float64 else on_device(self.mean - mean.cpu().numpy())
        scorer = with_arrays(self.shapes, on_device).scorer(self.n_nearest)
        divisor = self.scale if self.units is None else on_device(self.divisor)
        memory = None
        if self.memory is not None:
            memory = with_arrays(self.memory, on_device).beside(on_device(self.centroids))
        return ReadyScorer(scorer, mean, rest, divisor, memory)


class ReadyScorer(NamedTuple):
    """Fitted boundaries on a device, in one precision, for samples in the units of the user."""

    scorer: Scorer
    mean: Tensor  # (n_features,)
    rest: Tensor | None  # (n_features,) what the mean loses in single precision
    divisor: float | Tensor  # of all columns, or (n_features,) of each
    memory: Memory | None = None  # with the class means

    def lost(self, features: Tensor) -> Tensor:
        """Return what the memory takes of the scores of standardized samples, (n_samples,)."""
        if self.memory is None:
            return torch.zeros_like(features[:, 0])
        return self.memory.deduction(features)

    def standardize(self, X: Tensor) -> Tensor:
        """Subtract the mean, and divide, as in double precision: a large shift costs nothing."""
        offsets = X - self.mean
        return (offsets if self.rest is None else offsets.sub_(self.rest)).div_(self.divisor)


class Fitted(NamedTuple):
    """What a fit finds."""

    boundaries: Boundaries
    degenerate: NDArray[np.bool_]  # (n_classes,) classes without spread
    held_out: HeldOutTable | None = None
    losses: Sequence[float] = ()  # of a trainer, one for each epoch
    scores: Sequence[float] = ()  # of the validation samples of a trainer


def with_arrays(part: Any, convert: Callable[[Any], Any]) -> Any:
    """Copy tuples and dataclasses with all their arrays, or tensors, converted; numbers and ``None`` stay."""
    if isinstance(part, np.ndarray | Tensor):
        return convert(part)
    if isinstance(part, dict):
        return {name: with_arrays(value, convert) for name, value in part.items()}
    if is_dataclass(part):
        return replace(
            part,
            **{  # type: ignore[type-var]
                column.name: with_arrays(getattr(part, column.name), convert) for column in fields(part)
            },
        )
    if isinstance(part, tuple):
        values = (with_arrays(value, convert) for value in part)
        return type(part)(*values) if hasattr(part, "_fields") else tuple(values)
    return part


def _stored(found: Tensor) -> Array:
    return found.cpu().numpy().astype(np.float64)


def _stored_axes(found: Tensor) -> Array:
    return found.cpu().numpy().astype(np.float32)
