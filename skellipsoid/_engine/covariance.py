"""Ellipsoids from covariances: each class's own, drawn towards a shape that knows what separates the classes.

In the coordinates of a ``Frame`` the within-class covariance T is the identity and the covariance B of the class means
is diagonal. The likelihood ratio of a class against one never seen, whose mean is drawn from N(μ, B), is the quadratic
form of T⁻¹ − (T + B)⁻¹ about m_k = c_k + T B⁻¹ (c_k − μ): short axes where classes differ, long ones where all vary
alike. Its inverse Q = T + T B⁻¹ T is the shape that all classes share, and Σ_k = (1 − ρ) S_k + ρ Q, with the covariance
S_k of the class's own samples, that of one class. A class without a spread has a multiple of Q, as large as the others.
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

    @property
    def stretches(self) -> Tensor:
        """Roots of Q⁻¹ along the axes: coordinates times these have Q = I, (n_axes,)."""
        return (1 + self.inverse).rsqrt()


def background(frame: Frame, between: float | None) -> Background:
    """Shrink the covariance of the class means towards T, β being its mean variance in units of T."""
    if between is None:
        return Background(torch.zeros_like(frame.between), 0.0, 0.0)
    mean = float(frame.between.mean())
    inverse = ((1 - between) * frame.between + between * mean).reciprocal()
    return Background(inverse, 1 / (between * mean), 1 - between)


def has_background(frame: Frame) -> bool:
    """Whether there are enough different class means."""
    return len(frame.means) >= FEWEST_CLASSES_OF_BACKGROUND and float(frame.between.max()) > SMALLEST_VARIANCE


class ClassAxes(NamedTuple):
    """A class's scatter U_k in coordinates where Q is the identity."""

    axes: Tensor  # (n_axes of the class, n_axes) orthonormal
    values: Tensor  # (n_axes of the class,)
    freedom: float  # f_k; 0 for a class without a spread


def class_axes(frame: Frame, points: Tensor, stretches: Tensor) -> list[ClassAxes]:
    """Principal axes of all classes."""
    found = []
    for part, point in zip(frame.classes, points.tolist(), strict=True):
        weighted = part.offsets * stretches * part.weights.sqrt().unsqueeze(1)
        is_wide = len(weighted) < weighted.shape[1]
        # The rows' products hold the same spectrum in a smaller matrix.
        values, vectors = torch.linalg.eigh(weighted @ weighted.T if is_wide else weighted.T @ weighted)
        kept = (values > SMALLEST_VARIANCE * values[-1].clamp_min(1e-30)) & (not point)
        values, vectors = values[kept], vectors[:, kept]
        axes = weighted.T @ (vectors / values.sqrt()) if is_wide else vectors
        found.append(ClassAxes(axes.T, values, 0.0 if point else part.degrees_of_freedom()))
    return found


def typical_variance(parts: list[ClassAxes]) -> float:
    """Mean variance of a class per direction, in units of Q."""
    spreads = [float(part.values.sum()) / part.freedom for part in parts if part.freedom > 0]
    return float(np.mean(spreads)) / parts[0].axes.shape[1] if spreads else 1.0


def _factors(parts: list[ClassAxes], shared: float) -> Factors:
    """Inverse of Σ_k of all classes, in coordinates where Q is the identity."""
    typical = (1 - shared) * typical_variance(parts) + shared
    weights = [1 / ((1 - shared) * part.values / max(part.freedom, SMALLEST_VARIANCE) + shared) for part in parts]
    starts = np.cumsum([0] + [len(part.axes) for part in parts]).tolist()
    residual = parts[0].axes.new_tensor([1 / (shared if part.freedom > 0 else typical) for part in parts])
    return Factors(torch.cat([part.axes for part in parts]), torch.cat(weights), starts, residual)


class Scored(NamedTuple):
    """Rows, each scored by one class, while the set of a sample is left out of everything."""

    rows: Tensor  # (n_rows, n_axes)
    assigned: Tensor  # (n_rows,) class that scores
    sources: Tensor  # (n_rows,) sample whose set is left out
    held_out: bool  # whether the sample's whole class is left out of the background


class _Chunk(NamedTuple):
    """Offsets of rows to their class's centre, and how the shared shape changes without their set.

    Without the set, and in coordinates where Q was the identity, Q is I + XᵀEX.
    """

    positions: Tensor  # (n_rows,)
    columns: Tensor  # (n_rows, 1 + n_columns, n_axes) the offset, then X
    change: Tensor  # (n_rows, n_columns, n_columns) E
    scatter: Tensor  # (n_rows, n_columns) 1 for those columns whose products the class's own scatter loses
    freedom: Tensor  # (n_rows,) degrees of freedom of the class without the set
    inflation: Tensor  # (n_rows,) by which T is larger per degree of freedom


class LeftOutShapes:
    """The ellipsoids of all classes, without the set of each of several rows, for one background.

    Parameters
    ----------
    frame : Frame
    classes : Tensor of shape (n_samples,)
    points : Tensor of shape (n_classes,)
        Classes without a spread.
    between : float or None
        b, ``None`` without a background.
    """

    def __init__(self, frame: Frame, classes: Tensor, points: Tensor, between: float | None) -> None:
        self.frame, self.classes, self.points = frame, classes, points
        self.background = background(frame, between)
        self.stretches = self.background.stretches
        self.centres = frame.means * (1 + self.background.inverse)
        self.parts = class_axes(frame, points, self.stretches)
        self.freedoms = frame.means.new_tensor([part.freedom for part in self.parts])

    def distances(self, scored: Scored, shares: Sequence[float]) -> Tensor:
        """‖A_k (z − m_k)‖ for each share ρ, (n_shares, n_rows)."""
        return self._scores(scored, shares)[0].clamp_min(0).sqrt()

    def log_likelihoods(self, scored: Scored, shares: Sequence[float], weights: Tensor) -> Tensor:
        """Weighted Gaussian log likelihood of rows for each share ρ, but for a constant, (n_shares,)."""
        squares, log_volumes = self._scores(scored, shares, with_volumes=True)
        return -0.5 * ((squares + log_volumes) @ weights)

    def shapes(self, shared: float, scale: float, radii: Tensor) -> Shapes:
        """Shapes of all samples, squared distances being multiplied by ``scale``."""
        metric, found = self._metric(), _factors(self.parts, shared)
        centres = self.centres * self.stretches
        if metric.products is not None:  # one more coordinate: what lies off the span
            centres = functional.pad(centres, (0, 1))
            found = replace(found, axes=functional.pad(found.axes, (0, 1)))
        return Shapes(metric, centres, found.scaled(scale), radii)

    def moments(self, weights: ShapeWeights) -> Moments:
        """Give what the shapes were made of."""
        frame = self.frame
        return Moments(
            weights,
            torch.stack([part.weights.sum() for part in frame.classes]),
            self.freedoms,
            torch.cat([part.values for part in self.parts]),
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

    def _scores(self, scored: Scored, shares: Sequence[float], *, with_volumes: bool = False) -> tuple[Tensor, Tensor]:
        """Squared distances and, if wanted, logarithms of the determinants of Σ_k, (n_shares, n_rows) each."""
        found = scored.rows.new_zeros(2, len(shares), len(scored.rows))
        typical = typical_variance(self.parts)
        for chunk in self._chunks(scored):
            labels = scored.assigned[chunk.positions]
            products = chunk.columns @ chunk.columns.transpose(1, 2)
            for label in torch.unique(labels).tolist():
                mine = torch.nonzero(labels == label).flatten()
                part = self.parts[label]
                along = chunk.columns[mine] @ part.axes.T
                for i, share in enumerate(shares):
                    squares, log_volumes = _squares(
                        chunk, mine, products[mine], along, part.values, share, typical, with_volumes
                    )
                    found[0, i, chunk.positions[mine]] = squares
                    if log_volumes is not None:
                        found[1, i, chunk.positions[mine]] = log_volumes
        return found[0], found[1]

    def _chunks(self, scored: Scored) -> Iterator[_Chunk]:
        """Yield rows by the number of columns, with those of other classes that hold rows of their set apart."""
        sets = self.frame.sets
        # By class, so that a piece is scored by few of them.
        order = torch.argsort(scored.assigned, stable=True)
        for places, removed in sets.chunks(scored.sources[order], 4 * self.frame.rows.shape[1]):
            positions = order[places]
            sources, assigned = scored.sources[positions], scored.assigned[positions]
            is_foreign = torch.zeros_like(sources, dtype=torch.bool)
            if sets.foreign is not None:
                pairs, labels, at = sets.foreign_of(sources)
                same = labels == assigned[pairs]
                is_foreign[pairs[same]] = True
                if same.any():
                    few = pairs[same]
                    foreign = sets.foreign.at(at[same])
                    yield self._chunk(scored, positions[few], removed.at(few), foreign)
            if not is_foreign.all():
                yield self._chunk(scored, positions[~is_foreign], removed.at(~is_foreign), None)

    def _chunk(self, scored: Scored, positions: Tensor, removed: Removed, foreign: Removed | None) -> _Chunk:
        frame, inverse, pooled = self.frame, self.background.inverse, self.frame.pooled
        assigned, own = scored.assigned[positions], self.classes[scored.sources[positions]]
        taken = removed.rows  # V
        means, change = self._without(removed, frame.means[own], held_out=scored.held_out)
        # B⁻¹ without the set is Λ⁻¹ − Z Φ Zᵀ, where the columns of Z are f = Λ⁻¹ d and U = Λ⁻¹ Vᵀ.
        spread = torch.cat([(frame.means[own] * inverse).unsqueeze(1), taken * inverse], dim=1)
        means_of = frame.means[assigned] + removed.moved() * (own == assigned).unsqueeze(1)
        if foreign is not None:
            means_of = means_of + foreign.moved()
        apart = means_of - means
        moved = apart * inverse - (spread.transpose(1, 2) @ (change @ (spread @ apart.unsqueeze(2)))).squeeze(2)
        moved = moved - pooled * (taken.transpose(1, 2) @ (taken @ moved.unsqueeze(2))).squeeze(2)
        offsets = scored.rows[positions] - means_of - moved
        # Q without the set is T' + T' B'⁻¹ T', with T' = I − κ VᵀV: a change of E in the columns V, f and U.
        size = taken.shape[1]
        mixed = -pooled * (taken @ spread.transpose(1, 2))  # T' Z = Z + Vᵀ (this)
        n_columns = 2 * size + 1
        onto_columns = torch.cat(
            [mixed, torch.eye(size + 1, dtype=mixed.dtype, device=mixed.device).expand(len(mixed), -1, -1)], dim=1
        )
        matrix = -(onto_columns @ change @ onto_columns.transpose(1, 2))
        identity = torch.eye(size, dtype=mixed.dtype, device=mixed.device)
        crossed = taken @ (taken * inverse).transpose(1, 2)
        matrix[:, :size, :size] += -pooled * identity + pooled**2 * crossed
        matrix[:, :size, size + 1 :] -= pooled * identity
        matrix[:, size + 1 :, :size] -= pooled * identity
        columns = torch.cat([offsets.unsqueeze(1), taken, spread], dim=1)
        scatter = matrix.new_zeros(len(matrix), n_columns)
        scatter[:, :size] = (own == assigned).unsqueeze(1)
        freedom = torch.where(own == assigned, removed.freedom, self.freedoms[assigned])
        if foreign is not None:
            columns = torch.cat([columns, foreign.rows], dim=1)
            extra = foreign.rows.shape[1]
            matrix = functional.pad(matrix, (0, extra, 0, extra))
            scatter = torch.cat([scatter, scatter.new_ones(len(scatter), extra)], dim=1)
            freedom = foreign.freedom
        freedom = torch.where(self.points[assigned], 0.0, freedom)
        left = frame.freedom - (self.freedoms[own] - removed.freedom) * ~self.points[own]
        inflation = frame.freedom / left.clamp_min(1)
        return _Chunk(positions, columns * self.stretches, matrix, scatter, freedom, inflation)

    def _without(self, removed: Removed, deviations: Tensor, *, held_out: bool) -> tuple[Tensor, Tensor]:
        """Mean of the class means without the sets, and Φ; ``deviations`` are d = c_k − μ of the rows' classes.

        Without a class, B₀ loses K / (K − 1)² d dᵀ (and is not divided anew by its smaller number of classes, which
        its directions do not feel). Where its mean moves by s = Vᵀσ, B₀ gains (d sᵀ + s dᵀ + (1 − 1/K) s sᵀ) / (K − 1).
        """
        n_classes, share = len(self.frame.means), self.background.share
        size = removed.rows.shape[1]
        gains = deviations.new_zeros(len(deviations), size + 1, size + 1)
        if held_out and share:
            means = -deviations / (n_classes - 1)
            gains[:, 0, 0] = -share * n_classes / (n_classes - 1) ** 2
        else:
            means = removed.moved() / n_classes
            scale = share / max(1, n_classes - 1)
            gains[:, 0, 1:] = scale * removed.moves
            gains[:, 1:, 0] = scale * removed.moves
            gains[:, 1:, 1:] = scale * (1 - 1 / n_classes) * removed.moves.unsqueeze(2) * removed.moves.unsqueeze(1)
        both = torch.cat([deviations.unsqueeze(1), removed.rows], dim=1)
        products = (both * self.background.inverse) @ both.transpose(1, 2)
        identity = torch.eye(size + 1, dtype=gains.dtype, device=gains.device)
        return means, torch.linalg.solve(identity + gains @ products, gains)


def _squares(
    chunk: _Chunk,
    mine: Tensor,
    products: Tensor,
    along: Tensor,
    values: Tensor,
    shared: float,
    typical: float,
    with_volumes: bool,
) -> tuple[Tensor, Tensor | None]:
    """Squared distances of one class's rows, and log determinants but for that of the coordinates.

    The Woodbury identity on (1 − ρ) S_k + ρ Q without the sets.
    """
    freedom, has_spread = chunk.freedom[mine], chunk.freedom[mine] > 0
    of_scatter = torch.where(has_spread, (1 - shared) / freedom, 0.0)
    ball = (shared + (1 - shared) * typical * (~has_spread).double()) * chunk.inflation[mine]
    variances = of_scatter.unsqueeze(1) * values + ball.unsqueeze(1)
    excess = (variances.reciprocal() - ball.reciprocal().unsqueeze(1)).unsqueeze(1)
    products = products / ball.view(-1, 1, 1) + (along * excess) @ along.transpose(1, 2)
    change = chunk.change[mine] * ball.view(-1, 1, 1)
    change = change - torch.diag_embed(chunk.scatter[mine] * of_scatter.unsqueeze(1))
    inner, onto_offset = products[:, 1:, 1:], products[:, 1:, :1]
    capacity = torch.eye(inner.shape[1], dtype=inner.dtype, device=inner.device) + change @ inner
    squares = products[:, 0, 0] - (onto_offset * torch.linalg.solve(capacity, change @ onto_offset)).sum((1, 2))
    if not with_volumes:
        return squares, None
    n_other = chunk.columns.shape[2] - len(values)
    log_volumes = variances.log().sum(1) + n_other * ball.log() + torch.linalg.slogdet(capacity)[1]
    return squares, log_volumes
