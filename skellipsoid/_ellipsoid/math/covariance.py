"""Covariances of classes, shrunk towards a shape that separates the classes: Σ_k = (1 − ρ) S_k + ρ Q.

In the coordinates of a ``Frame`` the within-class covariance T is the identity and the covariance B of the class means
is diagonal. The likelihood ratio of a class against one never seen, whose mean is drawn from N(μ, B), is the quadratic
form of T⁻¹ − (T + B)⁻¹ about m_k = c_k + T B⁻¹ (c_k − μ): short axes where classes differ, long ones where all vary
alike. The ratio itself is this form less (c_k − μ)ᵀ B⁻¹ (c_k − μ), the allowance of the class, but for what all classes
share. The inverse of the form, Q = T + T B⁻¹ T is the shape that all classes share. The covariance of a class is
Σ_k = (1 − ρ) S_k + ρ Q, with the covariance S_k of its own samples. A degenerate class, without spread, has a multiple
of Q that is as large as the other classes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..._torch.devices import eigh_of_many
from ..._torch.threads import map_parts, n_parts
from .frames import Frame
from .geometry import Factors
from .left_out import most_elements
from .tiles import Tiles, runs_of

#: Smallest number of classes with a background. With 3, F1 is the same; with 6 it falls by 1.5 on text, since one case
#: has five classes (skellipsoid-bench/results/constants.rst).
FEWEST_CLASSES_OF_BACKGROUND = 4
#: Rounding: class means are equal if all their variances, in units of T, are below this.
EQUAL_MEANS = 1e-9
#: Rounding: axes with less than this proportion of the largest scatter of a class are none.
RANK_TOLERANCE = 1e-9


class Background(NamedTuple):
    """The inverse of B = (1 − b) B₀ + b γ T, all of it diagonal."""

    inverse: Tensor  # (n_axes,) of B; 0 without a background
    inverse_off_span: float  # the same for directions off the span of all samples
    between: float  # b
    target: float  # b γ; 0 without a background

    @property
    def stretches(self) -> Tensor:
        """Roots of Q⁻¹ along the axes: coordinates times these have Q = I, (n_axes,)."""
        return (1 + self.inverse).rsqrt()


def background(frame: Frame, between: float | None, *, without_class: bool = False) -> Background:
    """Shrink the covariance of the class means towards T, γ being its mean variance in units of T.

    With ``without_class`` the divisor of B₀ is that of one class fewer. What its scatter loses depends on the class:
    ``low_rank`` and ``refits`` compute it.
    """
    if between is None:
        return Background(torch.zeros_like(frame.variances_of_means), 0.0, 0.0, 0.0)
    target = between * float(frame.variances_of_means.mean())
    fewer = 1 - 1 / (len(frame.means) - 1) if without_class else 1.0
    inverse = fewer / ((1 - between) * frame.variances_of_means + fewer * target)
    return Background(inverse, 1 / target, between, target)


def has_background(frame: Frame) -> bool:
    """Whether there are enough classes, and their means differ."""
    return len(frame.means) >= FEWEST_CLASSES_OF_BACKGROUND and float(frame.variances_of_means.max()) > EQUAL_MEANS


class ClassAxes(NamedTuple):
    """Scatters ν_k S_k of classes of about equal size, in coordinates where Q is the identity. Zeros pad.

    A degenerate class has no axes.
    """

    classes: Tensor  # (n_own,)
    axes: Tensor  # (n_own, n_axes of a class, n_axes) orthonormal
    values: Tensor  # (n_own, n_axes of a class)

    def inner_products(
        self,
        vectors: Tensor,
        places: Tensor,
        basis: Tensor | None,
        parts: tuple[Tensor, Tensor],
        n_columns: int,
    ) -> tuple[Tensor, Tensor]:
        """Compute what the axes of the classes at ``places``, (n_pairs,) in ascending order, add to inner products.

        The vectors, of which the first are ``n_columns``, have coordinates along all axes, (n_pairs, n_vectors,
        n_axes); or along the first axes, and along a ``basis`` of each pair, (n_pairs, size, n_axes off the first).
        The ``parts`` are those of ``Pairs``. The results are those of the columns with all vectors,
        (n_shrinkages, n_pairs, n_columns, n_vectors), and of the other vectors with themselves,
        (n_shrinkages, n_pairs, n_vectors - n_columns).
        """
        if (runs := runs_of(places, len(self.axes))) is None:
            return _inner_products(self._along(vectors, places, basis), self.values[places], parts, n_columns)
        found = []
        for label, own in runs:
            along = _onto(vectors[own], self.axes[label].T, None if basis is None else basis[own])
            of_run = parts[0][:, own], parts[1][:, own]
            found.append(_inner_products(along, self.values[label], of_run, n_columns))
        of_columns, squares = (torch.cat(column, dim=1) for column in zip(*found, strict=True))
        return of_columns, squares

    def _along(self, coordinates: Tensor, places: Tensor, basis: Tensor | None) -> Tensor:
        """Multiply coordinates by the axes of the classes at ``places``, in tiles."""
        axes, (present, inverse) = self.axes, torch.unique(places, return_inverse=True)
        if 2 * len(present) < len(axes):  # to copy more would take longer than to multiply by those of absent classes
            axes, places = axes[present], inverse
        if basis is None:
            return _products(coordinates, axes, places)
        n_first = axes.shape[2] - basis.shape[2]
        found = _products(coordinates[..., :n_first], axes[..., :n_first], places)
        return found.baddbmm_(coordinates[..., n_first:], _products(basis, axes[..., n_first:], places))


def _inner_products(
    along: Tensor, values: Tensor, parts: tuple[Tensor, Tensor], n_columns: int
) -> tuple[Tensor, Tensor]:
    """Compute both from vectors along the axes, (n_pairs, n_vectors, n_axes of a class), with these scatters."""
    (of_scatter, sphere), n_vectors = parts, along.shape[1]
    spheres = sphere.unsqueeze(2)
    excess = (of_scatter.unsqueeze(2) * values + spheres).reciprocal_() - spheres.reciprocal()
    n_rows = n_vectors if n_vectors == n_columns + 1 else n_columns  # of one vector the square is among the products
    if n_vectors < len(sphere):  # for speed: one product for all shrinkages
        each = (along[:, :n_rows].unsqueeze(2) * along.unsqueeze(1)).flatten(1, 2) @ excess.permute(1, 2, 0)
        found = each.view(len(along), n_rows, n_vectors, -1).permute(3, 0, 1, 2)
    else:
        found = (along[:, :n_rows] * excess.unsqueeze(2)) @ along.mT
    if n_rows > n_columns:
        return found[:, :, :n_columns], found[:, :, n_columns:, n_columns]
    return found, (along[:, n_columns:].square() @ excess.unsqueeze(3)).squeeze(3)


def _onto(coordinates: Tensor, axes: Tensor, basis: Tensor | None) -> Tensor:
    """Multiply coordinates by the axes of one class, (n_axes, n_axes of the class)."""
    if basis is None:
        return (coordinates.flatten(0, 1) @ axes).view(*coordinates.shape[:2], -1)
    n_first = len(axes) - basis.shape[2]
    found = (coordinates[..., :n_first].flatten(0, 1) @ axes[:n_first]).view(*coordinates.shape[:2], -1)
    off = (basis.flatten(0, 1) @ axes[n_first:]).view(*basis.shape[:2], -1)
    return found.baddbmm_(coordinates[..., n_first:], off)


def _products(values: Tensor, axes: Tensor, places: Tensor) -> Tensor:
    """Multiply values, (n_pairs, n_samples, n), by the matrices of their pairs, (n_own, n_axes, n)."""
    tiles = Tiles.of(places.repeat_interleave(values.shape[1]), len(axes))
    products = tiles.product(tiles.gather(values.flatten(0, 1)), axes.transpose(1, 2))
    return tiles.scatter(products).view(*values.shape[:2], -1)


def principal_axes(frame: Frame, stretches: Tensor) -> list[ClassAxes]:
    """Principal axes of all classes."""
    found = []
    for classes, numbers, sizes in frame.members:
        of_class = min(numbers.shape[1], frame.n_axes) * frame.n_axes
        n_elements = len(sizes) * of_class
        at_once = max(1, min(most_elements(numbers.device) // of_class, -(-len(sizes) // n_parts(n_elements))))
        some_sizes = [sizes[first : first + at_once] for first in range(0, len(sizes), at_once)]
        parts = zip(torch.split(classes, at_once), torch.split(numbers, at_once), some_sizes, strict=True)
        columns = map_parts(lambda part: _principal_axes(frame, stretches, *part), parts, n_elements, numbers.device)
        found.append(ClassAxes(classes, *(torch.cat(column) for column in zip(*columns, strict=True))))
    return found


def _principal_axes(
    frame: Frame, stretches: Tensor, classes: Tensor, numbers: Tensor, sizes: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Axes and values of some classes."""
    is_wide = frame.samples.moments is None and numbers.shape[1] < frame.n_axes
    if (moments := frame.samples.moments) is not None:
        onto = frame.axes * stretches
        given = [onto.T @ torch.from_numpy(moments.scatter(k)).to(onto) @ onto for k in classes.tolist()]
        scatter = torch.stack(given)
    else:
        roots = (frame.samples.weights[numbers] * (numbers >= 0)).sqrt().unsqueeze(2)
        weighted = frame.offsets[numbers].double().mul_(stretches).mul_(roots)
        # The products of the samples hold the same spectrum in a smaller matrix.
        scatter = weighted @ weighted.mT if is_wide else weighted.mT @ weighted
    values, vectors = eigh_of_many(scatter, sizes if is_wide else [frame.n_axes] * len(sizes))
    has_spread = (frame.sets.freedoms[classes] > 0).unsqueeze(1)
    chosen = (values > RANK_TOLERANCE * values[:, -1:].clamp_min(1e-30)) & has_spread
    values = torch.where(chosen, values, 0.0)
    if is_wide:
        return (vectors * torch.where(chosen, values.rsqrt(), 0.0).unsqueeze(1)).mT @ weighted, values
    return (vectors * chosen.unsqueeze(1)).mT, values


def typical_variance(classes: list[ClassAxes], freedoms: Tensor) -> Tensor:
    """Mean variance of a class per direction, in units of Q."""
    traces = torch.zeros_like(freedoms)
    for own in classes:
        traces[own.classes] = own.values.sum(1)
    spread = torch.where(freedoms > 0, traces / freedoms, 0.0).sum() / (freedoms > 0).sum()
    return spread.nan_to_num(nan=classes[0].axes.shape[2]) / classes[0].axes.shape[2]


def scatters_in_order(classes: list[ClassAxes]) -> tuple[Tensor, Tensor, Tensor]:
    """Values of the axes of all classes without padding, the class of each, and the order of both by class."""
    chosen = [own.values > 0 for own in classes]
    labels = torch.cat([own.classes.repeat_interleave(mask.sum(1)) for own, mask in zip(classes, chosen, strict=True)])
    values = torch.cat([own.values[mask] for own, mask in zip(classes, chosen, strict=True)])
    order = labels.argsort(stable=True)
    return values[order], labels[order], order


def _axes_in_order(classes: list[ClassAxes], order: Tensor) -> Tensor:
    """Axes of all classes without padding; of many classes there is memory for one copy, or none."""
    n_axes = classes[0].axes.shape[2]
    if len(classes) == 1 and bool((classes[0].values > 0).all()):
        return classes[0].axes.view(-1, n_axes)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device)
    axes, first = classes[0].axes.new_empty(len(order), n_axes), 0
    for own in classes:
        found = own.axes[own.values > 0]
        axes[places[first : first + len(found)]] = found
        first += len(found)
    return axes


def factors(classes: list[ClassAxes], freedoms: Tensor, shared: float) -> Factors:
    """Inverse of Σ_k of all classes, in coordinates where Q is the identity."""
    values, labels, order = scatters_in_order(classes)
    typical = (1 - shared) * typical_variance(classes, freedoms) + shared
    weights = 1 / ((1 - shared) * values / freedoms[labels] + shared)
    starts = functional.pad(torch.bincount(labels, minlength=len(freedoms)).cumsum(0), (1, 0)).tolist()
    return Factors(_axes_in_order(classes, order), weights, starts, torch.where(freedoms > 0, 1 / shared, 1 / typical))


class HeldOutSamples(NamedTuple):
    """Samples of one kind, scored by classes that are estimated without the set of a known sample."""

    kind: int  # see ``_held_out.table``
    sources: Tensor  # (n_samples,) known sample whose set is left out
    assigned: Tensor  # (n_samples, n_nearest) classes that score; or (n_samples,) one class
    coordinates: Tensor | None = None  # (n_samples, n_axes); the known samples themselves without it

    def at(self, places: Tensor) -> "HeldOutSamples":
        """Select samples."""
        coordinates = None if self.coordinates is None else self.coordinates[places]
        return HeldOutSamples(self.kind, self.sources[places], self.assigned[places], coordinates)

    def of_each_class(self) -> "HeldOutSamples":
        """Repeat the samples for each class that scores them."""
        n_nearest = self.assigned.shape[1]
        sources = self.sources.repeat_interleave(n_nearest)
        coordinates = None if self.coordinates is None else self.coordinates.repeat_interleave(n_nearest, dim=0)
        return HeldOutSamples(self.kind, sources, self.assigned.flatten(), coordinates)


class Pairs(NamedTuple):
    """Samples by pairs of a set and a class that scores, without the set, in coordinates where Q was the identity."""

    numbers: Tensor | slice  # (n_pairs,) of the sets
    places: Tensor  # (n_pairs,) of the classes in ``ClassAxes``
    offsets: Tensor  # (n_pairs, n_scored, n_axes) of samples to the centre
    inside: Tensor  # (n_pairs, size) 1 for those rows of V whose products the class's own scatter loses
    freedom: Tensor  # (n_pairs,) degrees of freedom of the class
    ratio_of_shared: Tensor  # (n_pairs,) by which Q is larger

    def parts(self, shrinkages: Tensor, typical: Tensor) -> tuple[Tensor, Tensor]:
        """Factors of the class's scatter and of Q in Σ_k for each ρ, (n_shrinkages, n_pairs) each."""
        shared, has_spread = shrinkages.unsqueeze(1), self.freedom > 0
        of_scatter = torch.where(has_spread, (1 - shared) / self.freedom, 0.0)
        # Without the set Q changes; the typical variance is not computed anew.
        return of_scatter, shared * self.ratio_of_shared + (1 - shared) * typical * (~has_spread).double()
