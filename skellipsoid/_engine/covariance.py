"""Ellipsoids from covariances: each class's own, shrunk towards a shape that separates the classes.

In the coordinates of a ``Frame`` the within-class covariance T is the identity and the covariance B of the class means
is diagonal. The likelihood ratio of a class against one never seen, whose mean is drawn from N(μ, B), is the quadratic
form of T⁻¹ − (T + B)⁻¹ about m_k = c_k + T B⁻¹ (c_k − μ): short axes where classes differ, long ones where all vary
alike. Its inverse Q = T + T B⁻¹ T is the shape that all classes share. The covariance of a class is
Σ_k = (1 − ρ) S_k + ρ Q, with the covariance S_k of its own samples. A degenerate class, without spread, has a multiple
of Q that is as large as the other classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .boundaries import Metric, Moments, Shapes, ShapeWeights
from .geometry import Factors
from .left_out import Removed
from .shared_shapes import FEWEST_CLASSES_OF_BACKGROUND, SMALLEST_VARIANCE, Frame


class Background(NamedTuple):
    """The inverse of B = (1 − b) B₀ + b β T, all of it diagonal."""

    inverse: Tensor  # (n_axes,) of B; 0 without a background
    off_span: float  # the same for directions off the span of all rows
    share: float  # 1 − b; 0 without a background
    target: float  # b β; 0 without a background

    @property
    def stretches(self) -> Tensor:
        """Roots of Q⁻¹ along the axes: coordinates times these have Q = I, (n_axes,)."""
        return (1 + self.inverse).rsqrt()


def background(frame: Frame, between: float | None) -> Background:
    """Shrink the covariance of the class means towards T, β being its mean variance in units of T."""
    if between is None:
        return Background(torch.zeros_like(frame.between), 0.0, 0.0, 0.0)
    mean = float(frame.between.mean())
    inverse = ((1 - between) * frame.between + between * mean).reciprocal()
    return Background(inverse, 1 / (between * mean), 1 - between, between * mean)


def has_background(frame: Frame) -> bool:
    """Whether there are enough classes, and their means differ."""
    return len(frame.means) >= FEWEST_CLASSES_OF_BACKGROUND and float(frame.between.max()) > SMALLEST_VARIANCE


class ClassAxes(NamedTuple):
    """A class's scatter U_k in coordinates where Q is the identity."""

    axes: Tensor  # (n_axes of the class, n_axes) orthonormal
    values: Tensor  # (n_axes of the class,)
    freedom: float  # f_k; 0 for a degenerate class


def principal_axes(frame: Frame, degenerate: Tensor, stretches: Tensor) -> list[ClassAxes]:
    """Principal axes of all classes."""
    found = []
    for of_class, is_degenerate in zip(frame.classes, degenerate.tolist(), strict=True):
        weighted = of_class.offsets * stretches * of_class.weights.sqrt().unsqueeze(1)
        is_wide = len(weighted) < weighted.shape[1]
        # The products of the samples hold the same spectrum in a smaller matrix.
        values, vectors = torch.linalg.eigh(weighted @ weighted.T if is_wide else weighted.T @ weighted)
        kept = (values > SMALLEST_VARIANCE * values[-1].clamp_min(1e-30)) & (not is_degenerate)
        values, vectors = values[kept], vectors[:, kept]
        axes = weighted.T @ (vectors / values.sqrt()) if is_wide else vectors
        found.append(ClassAxes(axes.T, values, 0.0 if is_degenerate else of_class.degrees_of_freedom()))
    return found


def typical_variance(classes: list[ClassAxes]) -> float:
    """Mean variance of a class per direction, in units of Q."""
    spreads = [float(scatter.values.sum()) / scatter.freedom for scatter in classes if scatter.freedom > 0]
    return float(np.mean(spreads)) / classes[0].axes.shape[1] if spreads else 1.0


def _factors(classes: list[ClassAxes], shared: float) -> Factors:
    """Inverse of Σ_k of all classes, in coordinates where Q is the identity."""
    typical = (1 - shared) * typical_variance(classes) + shared
    weights = [
        1 / ((1 - shared) * scatter.values / max(scatter.freedom, SMALLEST_VARIANCE) + shared) for scatter in classes
    ]
    starts = np.cumsum([0] + [len(scatter.axes) for scatter in classes]).tolist()
    residual = classes[0].axes.new_tensor([1 / (shared if scatter.freedom > 0 else typical) for scatter in classes])
    return Factors(torch.cat([scatter.axes for scatter in classes]), torch.cat(weights), starts, residual)


class LeftOutSamples(NamedTuple):
    """Samples, each scored by one class that is estimated without the set of a known sample."""

    rows: Tensor  # (n_rows, n_axes)
    assigned: Tensor  # (n_rows,) class that scores
    sources: Tensor  # (n_rows,) known sample whose set is left out
    without_class: bool  # whether the whole class of that sample is left out of the background


class _Chunk(NamedTuple):
    """Offsets of samples to the centre of their class, and how the shared shape changes without their set.

    Without the set, and in coordinates where Q was the identity, Q is I + XᵀEX.
    """

    positions: Tensor  # (n_rows,)
    columns: Tensor  # (n_rows, 1 + n_columns, n_axes) the offset, then X
    change: Tensor  # (n_rows, n_columns, n_columns) E
    scatter: Tensor  # (n_rows, n_columns) 1 for those columns whose products the class's own scatter loses
    freedom: Tensor  # (n_rows,) degrees of freedom of the class without the set
    inflation: Tensor  # (n_rows,) by which T is larger per degree of freedom

    def at(self, places: Tensor) -> "_Chunk":
        """Select samples."""
        return _Chunk(*(part[places] for part in self))


class _ClassChunk(NamedTuple):
    """The samples of a chunk that one class scores."""

    chunk: _Chunk
    products: Tensor  # (n_rows, 1 + n_columns, 1 + n_columns) of the columns
    along: Tensor  # (n_rows, 1 + n_columns, n_axes of the class) columns along the axes of the class
    values: Tensor  # (n_axes of the class,) eigenvalues of its scatter

    def scores(self, shared: float, typical: float, *, with_volumes: bool) -> tuple[Tensor, Tensor | None]:
        """Give squared distances, and log determinants of Σ_k but for that of the coordinates.

        The Woodbury identity on (1 − ρ) S_k + ρ Q without the sets.
        """
        chunk, has_spread = self.chunk, self.chunk.freedom > 0
        of_scatter = torch.where(has_spread, (1 - shared) / chunk.freedom, 0.0)
        sphere = (shared + (1 - shared) * typical * (~has_spread).double()) * chunk.inflation
        variances = of_scatter.unsqueeze(1) * self.values + sphere.unsqueeze(1)
        excess = (variances.reciprocal() - sphere.reciprocal().unsqueeze(1)).unsqueeze(1)
        products = self.products / sphere.view(-1, 1, 1) + (self.along * excess) @ self.along.transpose(1, 2)
        change = chunk.change * sphere.view(-1, 1, 1)
        change = change - torch.diag_embed(chunk.scatter * of_scatter.unsqueeze(1))
        inner, onto_offset = products[:, 1:, 1:], products[:, 1:, :1]
        capacity = _identity(inner) + change @ inner
        squares = products[:, 0, 0] - (onto_offset * torch.linalg.solve(capacity, change @ onto_offset)).sum((1, 2))
        if not with_volumes:
            return squares, None
        n_other = chunk.columns.shape[2] - len(self.values)
        log_volumes = variances.log().sum(1) + n_other * sphere.log() + torch.linalg.slogdet(capacity)[1]
        return squares, log_volumes


class LeftOutShapes:
    """The ellipsoids of all classes, without the set of each of several samples, for one background.

    Parameters
    ----------
    frame : Frame
    classes : Tensor of shape (n_samples,)
    degenerate : Tensor of shape (n_classes,)
        Classes without spread.
    between : float or None
        b, ``None`` without a background.
    """

    def __init__(self, frame: Frame, classes: Tensor, degenerate: Tensor, between: float | None) -> None:
        self.frame, self.classes, self.degenerate = frame, classes, degenerate
        self.background = background(frame, between)
        self.stretches = self.background.stretches
        self.centres = frame.means * (1 + self.background.inverse)
        self.class_axes = principal_axes(frame, degenerate, self.stretches)
        self.freedoms = frame.means.new_tensor([scatter.freedom for scatter in self.class_axes])

    def distances(self, samples: LeftOutSamples, shares: Sequence[float]) -> Tensor:
        """‖A_k (z − m_k)‖ for each share ρ, (n_shares, n_rows)."""
        return self._scores(samples, shares)[0].clamp_min(0).sqrt()

    def log_likelihoods(self, samples: LeftOutSamples, shares: Sequence[float], weights: Tensor) -> Tensor:
        """Weighted Gaussian log likelihood of samples for each share ρ, but for a constant, (n_shares,)."""
        squares, log_volumes = self._scores(samples, shares, with_volumes=True)
        return -0.5 * ((squares + log_volumes) @ weights)

    def shapes(self, shared: float, scale: float, radii: Tensor) -> Shapes:
        """Shapes of all samples, squared distances being multiplied by ``scale``."""
        metric, found = self._metric(), _factors(self.class_axes, shared)
        centres = self.centres * self.stretches
        if metric.products is not None:  # one more coordinate: the distance from the span
            centres = functional.pad(centres, (0, 1))
            found = replace(found, axes=functional.pad(found.axes, (0, 1)))
        return Shapes(metric, centres, found.scaled(scale), radii)

    def moments(self, weights: ShapeWeights) -> Moments:
        """Give the statistics that the shapes are computed from."""
        frame = self.frame
        return Moments(
            weights,
            torch.stack([of_class.weights.sum() for of_class in frame.classes]),
            self.freedoms,
            torch.cat([scatter.values for scatter in self.class_axes]),
            frame.between,
            self.stretches,
            frame.spherical * frame.mean_variance,
        )

    def _metric(self) -> Metric:
        frame = self.frame
        axes = frame.axes * self.stretches
        n_features, n_axes = axes.shape
        labels, constants = frame.means / self.stretches, -0.5 * frame.means.square().sum(1)
        if n_axes == n_features:
            return Metric(axes, None, 0.0, labels, constants)
        # Off the span W and B₀ are 0: T is a w̄ I, and B is b β T.
        off_span = (frame.spherical * frame.mean_variance * (1 + self.background.off_span)) ** -0.5
        return Metric(axes, torch.linalg.inv(axes.T @ axes), off_span, functional.pad(labels, (0, 1)), constants)

    def _scores(
        self, samples: LeftOutSamples, shares: Sequence[float], *, with_volumes: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Squared distances and, if wanted, logarithms of the determinants of Σ_k, (n_shares, n_rows) each."""
        found = samples.rows.new_zeros(2, len(shares), len(samples.rows))
        typical = typical_variance(self.class_axes)
        for chunk in self._chunks(samples):
            labels = samples.assigned[chunk.positions]
            products = chunk.columns @ chunk.columns.transpose(1, 2)
            for label in torch.unique(labels).tolist():
                mine, own = torch.nonzero(labels == label).flatten(), self.class_axes[label]
                part = chunk.at(mine)
                of_class = _ClassChunk(part, products[mine], part.columns @ own.axes.T, own.values)
                for i, share in enumerate(shares):
                    squares, log_volumes = of_class.scores(share, typical, with_volumes=with_volumes)
                    found[0, i, part.positions] = squares
                    if log_volumes is not None:
                        found[1, i, part.positions] = log_volumes
        return found[0], found[1]

    def _chunks(self, samples: LeftOutSamples) -> Iterator[_Chunk]:
        """Yield samples by the number of columns; those scored by another class with samples of their set apart."""
        sets = self.frame.sets
        # By class, so that few classes score a piece.
        order = torch.argsort(samples.assigned, stable=True)
        for places, removed in sets.chunks(samples.sources[order], 4 * self.frame.rows.shape[1]):
            positions = order[places]
            sources, assigned = samples.sources[positions], samples.assigned[positions]
            is_foreign = torch.zeros_like(sources, dtype=torch.bool)
            if sets.foreign is not None:
                pairs, labels, at = sets.foreign_of(sources)
                same = labels == assigned[pairs]
                is_foreign[pairs[same]] = True
                if same.any():
                    few = pairs[same]
                    foreign = sets.foreign.at(at[same])
                    yield self._chunk(samples, positions[few], removed.at(few), foreign)
            if not is_foreign.all():
                yield self._chunk(samples, positions[~is_foreign], removed.at(~is_foreign), None)

    def _chunk(self, samples: LeftOutSamples, positions: Tensor, removed: Removed, foreign: Removed | None) -> _Chunk:
        frame, inverse, taken = self.frame, self.background.inverse, removed.rows  # V
        assigned, own = samples.assigned[positions], self.classes[samples.sources[positions]]
        is_own = own == assigned
        mean, change = self._without(removed, frame.means[own], without_class=samples.without_class)
        # B⁻¹ without the set is Λ⁻¹ − Z Φ Zᵀ, where the columns of Z are f = Λ⁻¹ d and U = Λ⁻¹ Vᵀ.
        spread = torch.cat([(frame.means[own] * inverse).unsqueeze(1), taken * inverse], dim=1)
        means = frame.means[assigned] + removed.moved() * is_own.unsqueeze(1)
        if foreign is not None:
            means = means + foreign.moved()
        offsets = samples.rows[positions] - means - self._shift(means - mean, taken, spread, change)
        matrix = self._shape_change(taken, spread, change)
        columns = torch.cat([offsets.unsqueeze(1), taken, spread], dim=1)
        scatter = matrix.new_zeros(matrix.shape[:2])
        scatter[:, : taken.shape[1]] = is_own.unsqueeze(1)
        freedom = torch.where(is_own, removed.freedom, self.freedoms[assigned])
        if foreign is not None:
            columns = torch.cat([columns, foreign.rows], dim=1)
            extra = foreign.rows.shape[1]
            matrix = functional.pad(matrix, (0, extra, 0, extra))
            scatter = torch.cat([scatter, scatter.new_ones(len(scatter), extra)], dim=1)
            freedom = foreign.freedom
        freedom = torch.where(self.degenerate[assigned], 0.0, freedom)
        left = frame.freedom - (self.freedoms[own] - removed.freedom) * ~self.degenerate[own]
        inflation = frame.freedom / left.clamp_min(1)
        return _Chunk(positions, columns * self.stretches, matrix, scatter, freedom, inflation)

    def _shift(self, deviations: Tensor, taken: Tensor, spread: Tensor, change: Tensor) -> Tensor:
        """T' B'⁻¹ (c_k − μ) without the sets: how far the centres are from the class means, (n_rows, n_axes)."""
        moved = deviations * self.background.inverse
        moved = moved - (spread.transpose(1, 2) @ (change @ (spread @ deviations.unsqueeze(2)))).squeeze(2)
        return moved - self.frame.pooled * (taken.transpose(1, 2) @ (taken @ moved.unsqueeze(2))).squeeze(2)

    def _shape_change(self, taken: Tensor, spread: Tensor, change: Tensor) -> Tensor:
        """E of the columns V, f and U, (n_rows, n_columns, n_columns).

        Q without the set is T' + T' B'⁻¹ T', with T' = I − κ VᵀV.
        """
        pooled, size = self.frame.pooled, taken.shape[1]
        mixed = -pooled * (taken @ spread.transpose(1, 2))  # T' Z = Z + Vᵀ (this)
        onto_columns = torch.cat([mixed, _identity(change).expand(len(mixed), -1, -1)], dim=1)
        matrix = -(onto_columns @ change @ onto_columns.transpose(1, 2))
        identity = torch.eye(size, dtype=mixed.dtype, device=mixed.device)
        crossed = taken @ (taken * self.background.inverse).transpose(1, 2)
        matrix[:, :size, :size] += -pooled * identity + pooled**2 * crossed
        matrix[:, :size, size + 1 :] -= pooled * identity
        matrix[:, size + 1 :, :size] -= pooled * identity
        return matrix

    def _without(self, removed: Removed, deviations: Tensor, *, without_class: bool) -> tuple[Tensor, Tensor]:
        """Mean of the class means without the sets, and Φ; ``deviations`` are d = c_k − μ of the samples' classes.

        Without a class, B₀ loses K / (K − 1)² d dᵀ. (It is not divided again by the smaller number of classes, which
        does not change its directions.) Where the mean of a class moves by s = Vᵀσ, B₀ gains
        (d sᵀ + s dᵀ + (1 − 1/K) s sᵀ) / (K − 1). B's target loses b β κ VᵀV.
        """
        n_classes, share = len(self.frame.means), self.background.share
        size = removed.rows.shape[1]
        gains = deviations.new_zeros(len(deviations), size + 1, size + 1)
        if without_class and share:
            means = -deviations / (n_classes - 1)
            gains[:, 0, 0] = -share * n_classes / (n_classes - 1) ** 2
        else:
            means = removed.moved() / n_classes
            scale = share / max(1, n_classes - 1)
            gains[:, 0, 1:] = scale * removed.moves
            gains[:, 1:, 0] = scale * removed.moves
            gains[:, 1:, 1:] = scale * (1 - 1 / n_classes) * removed.moves.unsqueeze(2) * removed.moves.unsqueeze(1)
        # T loses κ VᵀV, and so does B's target.
        gains[:, 1:, 1:].diagonal(dim1=1, dim2=2).sub_(self.background.target * self.frame.pooled)
        both = torch.cat([deviations.unsqueeze(1), removed.rows], dim=1)
        products = (both * self.background.inverse) @ both.transpose(1, 2)
        return means, torch.linalg.solve(_identity(gains) + gains @ products, gains)


def _identity(matrices: Tensor) -> Tensor:
    """Identity of the size of square matrices."""
    return torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
