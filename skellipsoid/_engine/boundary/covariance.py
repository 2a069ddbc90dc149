"""Ellipsoids from covariances: each class's own, shrunk towards a shape that separates the classes.

In the coordinates of a ``Frame`` the within-class covariance T is the identity and the covariance B of the class means
is diagonal. The likelihood ratio of a class against one never seen, whose mean is drawn from N(μ, B), is the quadratic
form of T⁻¹ − (T + B)⁻¹ about m_k = c_k + T B⁻¹ (c_k − μ): short axes where classes differ, long ones where all vary
alike. Its inverse Q = T + T B⁻¹ T is the shape that all classes share. The covariance of a class is
Σ_k = (1 − ρ) S_k + ρ Q, with the covariance S_k of its own samples. A degenerate class, without spread, has a multiple
of Q that is as large as the other classes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .boundaries import Metric, Moments, Shapes, ShapeWeights
from .geometry import Factors
from .left_out import Chunk, LeftOut
from .shared_shapes import Frame, identity

#: Smallest number of classes with a background. With 3, F1 is the same; with 6 it falls by 1.5 on text, since one case
#: has five classes (benchmarks/results/constants.rst).
FEWEST_CLASSES_OF_BACKGROUND = 4
#: Rounding: class means are equal if all their variances, in units of T, are below this.
EQUAL_MEANS = 1e-9
#: Rounding: axes with less than this share of the largest scatter of a class are none.
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
    ``_changes`` computes it.
    """
    if between is None:
        return Background(torch.zeros_like(frame.between), 0.0, 0.0, 0.0)
    target = between * float(frame.between.mean())
    left = 1 - 1 / (len(frame.means) - 1) if without_class else 1.0
    inverse = left / ((1 - between) * frame.between + left * target)
    return Background(inverse, 1 / target, between, target)


def has_background(frame: Frame) -> bool:
    """Whether there are enough classes, and their means differ."""
    return len(frame.means) >= FEWEST_CLASSES_OF_BACKGROUND and float(frame.between.max()) > EQUAL_MEANS


class ClassAxes(NamedTuple):
    """A class's scatter ν_k S_k in coordinates where Q is the identity."""

    axes: Tensor  # (n_axes of the class, n_axes) orthonormal
    values: Tensor  # (n_axes of the class,)
    freedom: float  # ν_k; 0 for a degenerate class


def principal_axes(frame: Frame, stretches: Tensor) -> list[ClassAxes]:
    """Principal axes of all classes."""
    found: list[ClassAxes] = []
    for members, freedom in zip(frame.members, frame.sets.freedoms.tolist(), strict=True):
        is_wide = False
        if (moments := frame.samples.moments) is not None:
            onto = frame.axes * stretches
            scatter = onto.T @ torch.from_numpy(moments.scatter(len(found))).to(onto) @ onto
        else:
            roots = frame.samples.weights[members].sqrt().unsqueeze(1)
            weighted = frame.offsets[members].double() * stretches * roots
            is_wide = len(weighted) < weighted.shape[1]
            # The products of the samples hold the same spectrum in a smaller matrix.
            scatter = weighted @ weighted.T if is_wide else weighted.T @ weighted
        values, vectors = torch.linalg.eigh(scatter)
        kept = (values > RANK_TOLERANCE * values[-1].clamp_min(1e-30)) & (freedom > 0)
        values, vectors = values[kept], vectors[:, kept]
        axes = weighted.T @ (vectors / values.sqrt()) if is_wide else vectors
        found.append(ClassAxes(axes.T, values, freedom))
    return found


def typical_variance(classes: list[ClassAxes]) -> float:
    """Mean variance of a class per direction, in units of Q."""
    spreads = [float(scatter.values.sum()) / scatter.freedom for scatter in classes if scatter.freedom > 0]
    return float(np.mean(spreads)) / classes[0].axes.shape[1] if spreads else 1.0


def _factors(classes: list[ClassAxes], shared: float) -> Factors:
    """Inverse of Σ_k of all classes, in coordinates where Q is the identity."""
    typical = (1 - shared) * typical_variance(classes) + shared
    weights = [1 / ((1 - shared) * scatter.values / (scatter.freedom or 1.0) + shared) for scatter in classes]
    starts = np.cumsum([0] + [len(scatter.axes) for scatter in classes]).tolist()
    residual = classes[0].axes.new_tensor([1 / (shared if scatter.freedom > 0 else typical) for scatter in classes])
    return Factors(torch.cat([scatter.axes for scatter in classes]), torch.cat(weights), starts, residual)


class LeftOutSamples(NamedTuple):
    """Samples of one kind, each scored by one class that is estimated without the set of a known sample."""

    kind: int  # see ``held_out``
    sources: Tensor  # (n_rows,) known sample whose set is left out
    assigned: Tensor  # (n_rows,) class that scores
    rows: Tensor | None = None  # (n_rows, n_axes); the known samples themselves without it


class _Changes(NamedTuple):
    """How the statistics that all classes share change without sets.

    In coordinates where Q was the identity, Q is ``scale`` (I + XᵀEX).
    """

    left_out: LeftOut
    columns: Tensor  # (n_sets, n_columns, n_axes) X, in coordinates where T was the identity: see ``_fewer_columns``
    matrix: Tensor  # (n_sets, n_columns, n_columns) E
    scale: Tensor  # (n_sets,)
    mean: Tensor  # (n_sets, n_axes) μ
    inverse: Tensor  # (n_sets, n_axes) D⁻¹, where B⁻¹ is proportional to D⁻¹ − (Y D⁻¹)ᵀ Φ Y D⁻¹
    solved: Tensor  # (n_sets, n_touched + size, n_axes) Y D⁻¹
    inner: Tensor  # (n_sets, n_touched + size, n_touched + size) Φ
    ratio: Tensor  # (n_sets,) by which T is larger, relative to B

    def shift(self, numbers: Tensor, means: Tensor, pooled: float) -> Tensor:
        """T B⁻¹ (c_k − μ): how far centres are from class means, (n_pairs, n_axes)."""
        deviations = (means - self.mean[numbers]).unsqueeze(2)
        solved, rows = self.solved[numbers], self.left_out.rows[numbers]
        moved = deviations * self.inverse[numbers].unsqueeze(2)
        moved = moved - solved.transpose(1, 2) @ (self.inner[numbers] @ (solved @ deviations))
        moved = moved - pooled * rows.transpose(1, 2) @ (rows @ moved)
        return moved.squeeze(2) * self.ratio[numbers].unsqueeze(1)


class _Pairs(NamedTuple):
    """Samples by pairs of a set and a class that scores, in coordinates where Q was the identity."""

    offsets: Tensor  # (n_pairs, n_scored, n_axes) to the centre
    columns: Tensor  # (n_pairs, n_columns, n_axes) X
    change: Tensor  # (n_pairs, n_columns, n_columns) E
    scatter: Tensor  # (n_pairs, n_columns) 1 for those columns whose products the class's own scatter loses
    freedom: Tensor  # (n_pairs,) degrees of freedom of the class without the set
    scale: Tensor  # (n_pairs,) Q without the set is this times (I + XᵀEX)

    def at(self, places: Tensor) -> "_Pairs":
        """Select pairs."""
        return _Pairs(*(part[places] for part in self))

    def scores(
        self, own: ClassAxes, shares: Tensor, typical: float, *, with_volumes: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Squared distances for each share ρ, and log determinants of Σ_k but for that of the coordinates.

        The Woodbury identity on (1 − ρ) S_k + ρ Q without the sets. The results have (n_shares, n_pairs, n_scored) and
        (n_shares, n_pairs) elements.
        """
        offsets, columns, has_spread = self.offsets, self.columns, self.freedom > 0
        along, offsets_along = columns @ own.axes.T, offsets @ own.axes.T
        shared = shares.unsqueeze(1)
        of_scatter = torch.where(has_spread, (1 - shared) / self.freedom, 0.0)
        # Without the set Q changes; the typical variance is not computed anew.
        sphere = shared * self.scale + (1 - shared) * typical * (~has_spread).double()
        variances = of_scatter.unsqueeze(2) * own.values + sphere.unsqueeze(2)
        excess = variances.reciprocal() - sphere.reciprocal().unsqueeze(2)
        of_sphere, weighted = sphere[..., None, None], along * excess.unsqueeze(2)
        products = columns @ columns.transpose(1, 2) / of_sphere + weighted @ along.transpose(1, 2)
        crossed = columns @ offsets.transpose(1, 2) / of_sphere + weighted @ offsets_along.transpose(1, 2)
        change = self.change * of_sphere - torch.diag_embed(self.scatter * of_scatter.unsqueeze(2))
        capacity = identity(change.shape[-1], change) + change @ products
        squares = offsets.square().sum(2) / sphere.unsqueeze(2) + (offsets_along.square() @ excess.unsqueeze(3))[..., 0]
        squares -= (crossed * torch.linalg.solve(capacity, change @ crossed)).sum(2)
        if not with_volumes:
            return squares, None
        n_other = columns.shape[2] - len(own.values)
        return squares, variances.log().sum(2) + n_other * sphere.log() + torch.linalg.slogdet(capacity)[1]


class LeftOutShapes:
    """The ellipsoids of all classes, without the set of each of several samples, for one background.

    Parameters
    ----------
    frame : Frame
    between : float or None
        b, ``None`` without a background.
    without_class : bool, default=False
        Whether the whole class of a left-out sample is left out of the background.
    """

    def __init__(self, frame: Frame, between: float | None, *, without_class: bool = False) -> None:
        self.frame, self.between, self.without_class = frame, between, without_class and between is not None
        self.background = background(frame, between, without_class=self.without_class)
        self.stretches = self.background.stretches
        self.centres = frame.means * (1 + self.background.inverse)
        self.class_axes = principal_axes(frame, self.stretches)

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
            frame.sets.weights.totals,
            frame.sets.freedoms,
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
        # Off the span W and B₀ are 0: T is a w̄ I, and B is b γ T.
        off_span = (frame.spherical * frame.mean_variance * (1 + self.background.inverse_off_span)) ** -0.5
        return Metric(axes, torch.linalg.inv(axes.T @ axes), off_span, functional.pad(labels, (0, 1)), constants)

    def _scores(
        self, samples: LeftOutSamples, shares: Sequence[float], *, with_volumes: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Squared distances and, if wanted, logarithms of the determinants of Σ_k, (n_shares, n_rows) each."""
        frame = self.frame
        found = frame.means.new_zeros(2, len(shares), len(samples.sources))
        typical, candidates = typical_variance(self.class_axes), frame.means.new_tensor(shares)
        held_out = frame.samples.classes[samples.sources] if self.without_class else None
        for chunk in frame.sets.chunks(samples.sources, samples.assigned, 4 * frame.n_axes, held_out):
            changes = self._changes(chunk)
            pairs = self._pairs(samples, chunk, changes)
            for label in torch.unique(chunk.labels).tolist():
                mine = torch.nonzero(chunk.labels == label).flatten()
                positions = chunk.positions[mine]
                inside = positions >= 0
                squares, volumes = pairs.at(mine).scores(
                    self.class_axes[label], candidates, typical, with_volumes=with_volumes
                )
                found[0][:, positions[inside]] = squares[:, inside]
                if volumes is not None:
                    found[1][:, positions[inside]] = volumes.unsqueeze(2).expand_as(squares)[:, inside]
        return found[0], found[1]

    def _pairs(self, samples: LeftOutSamples, chunk: Chunk, changes: _Changes) -> _Pairs:
        """Class means, scatters and centres without the sets."""
        frame, labels, numbers, left_out = self.frame, chunk.labels, chunk.numbers, changes.left_out
        is_touched = chunk.sets.touched[numbers] == labels.unsqueeze(1)  # (n_pairs, n_touched)
        which = is_touched.double().unsqueeze(1)
        means = frame.means[labels] + (which @ left_out.moves[numbers] @ left_out.rows[numbers]).squeeze(1)
        centres = means + changes.shift(numbers, means, frame.pooled)
        sources = samples.sources[chunk.positions]
        rows = frame.rows(sources) if samples.rows is None else samples.rows[chunk.positions]
        columns = changes.columns[numbers]
        inside = (which @ left_out.inside[numbers]).squeeze(1)
        freedom = torch.where(is_touched, chunk.sets.freedoms[numbers], 0.0).sum(1)
        return _Pairs(
            (rows - centres.unsqueeze(1)) * self.stretches,
            columns * self.stretches,
            changes.matrix[numbers],
            functional.pad(inside, (0, columns.shape[1] - inside.shape[1])),
            torch.where(is_touched.any(1), freedom, frame.sets.freedoms[labels]),
            changes.scale[numbers],
        )

    def _changes(self, chunk: Chunk) -> _Changes:
        """Change T, B, μ and Q.

        n and n' are the numbers of classes before and after, r = ι (n' − 1) / (n − 1), t = r b γ' with γ' without the
        set, and P = I − κ VᵀV. Then T' = ι P, and B' = M (n − 1) / (n' − 1) with M = (1 − b) (B₀ + YᵀGY) + t P. The
        rows of V are in Y too, so that M = D + YᵀG'Y with a diagonal D, and M⁻¹ = D⁻¹ − (YD⁻¹)ᵀ Φ YD⁻¹ (Woodbury). So

            Q' = T' + T' B'⁻¹ T' = ι (P + r P M⁻¹ P).

        Multiplied out, this is I + r D⁻¹ and products of the rows of V and of YD⁻¹, which are X. The diagonal is taken
        as a multiple of what it was, I + B⁻¹: their mean ratio.
        """
        frame, background, left_out = self.frame, self.background, chunk.sets.left_out(self.frame.offsets)
        rows, pooled, n_touched, size = left_out.rows, frame.pooled, left_out.moves.shape[1], left_out.rows.shape[1]
        inflation, n_axes = frame.without(chunk.sets)
        lost = -pooled * identity(size, rows)
        changing, mean, gains, n_left = self._class_means(chunk, left_out)
        if not background.target:
            none, empty = torch.zeros_like(mean), changing[:, :0]
            products = empty @ empty.transpose(1, 2)
            matrix = lost.expand(len(rows), -1, -1)
            return _Changes(left_out, rows, matrix, inflation, mean, none, empty, products, inflation)
        target = background.target * self._relative_trace(rows, changing, gains) / n_axes * frame.n_axes
        gains = (1 - background.between) * gains
        gains[:, n_touched:, n_touched:] += target.view(-1, 1, 1) * lost
        inverse = ((1 - background.between) * frame.between + target.unsqueeze(1)).reciprocal()
        solved = changing * inverse.unsqueeze(1)
        inner = torch.linalg.solve(identity(gains.shape[1], gains) + gains @ (solved @ changing.transpose(1, 2)), gains)
        ratio = inflation * (n_left - 1) / (len(frame.means) - 1)
        # P M⁻¹ P, with Y D⁻¹ P = Y D⁻¹ + (mixed)ᵀ V.
        mixed = -pooled * (rows @ solved.transpose(1, 2))
        onto_columns = torch.cat([mixed, identity(gains.shape[1], gains).expand(len(mixed), -1, -1)], dim=1)
        matrix = -(onto_columns @ inner @ onto_columns.transpose(1, 2))
        matrix[:, :size, :size] += pooled**2 * (rows @ (rows * inverse.unsqueeze(1)).transpose(1, 2))
        matrix[:, :size, size + n_touched :] += lost
        matrix[:, size + n_touched :, :size] += lost
        matrix *= ratio.view(-1, 1, 1)
        matrix[:, :size, :size] += lost
        factor = ((1 + ratio.unsqueeze(1) * inverse) / (1 + background.inverse)).mean(1)
        spanned, matrix = self._fewer_columns(rows, solved, inverse, matrix)
        matrix = matrix / factor.view(-1, 1, 1)
        return _Changes(left_out, spanned, matrix, inflation * factor, mean, inverse, solved, inner, ratio)

    def _class_means(self, chunk: Chunk, left_out: LeftOut) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Give Y, μ, G, and the number of classes that remain.

        The rows of Y are the deviations c − μ of the touched classes, and V. B₀ gains YᵀGY: the scatter of the class
        means that remain, about their own mean, less that of all class means, both divided by n − 1.
        """
        frame, sets, size = self.frame, chunk.sets, left_out.rows.shape[1]
        is_touched = (sets.touched >= 0).double()
        # Coefficients of the class means: those of the touched classes move, or are left out.
        before = functional.pad(torch.diag_embed(is_touched), (0, size))
        is_left = is_touched * sets.exists * (sets.touched != chunk.held_out.unsqueeze(1))
        after = torch.cat([torch.diag_embed(is_left), left_out.moves * is_left.unsqueeze(2)], dim=2)
        n_classes = len(frame.means)
        n_left = (n_classes - (is_touched - is_left).sum(1)).clamp_min(1)
        of_mean = (after - before).sum(1, keepdim=True) / n_left.view(-1, 1, 1)
        changing = torch.cat([frame.means[sets.touched], left_out.rows], dim=1)
        gains = after.transpose(1, 2) @ after - before.transpose(1, 2) @ before
        gains = (gains - n_left.view(-1, 1, 1) * of_mean.transpose(1, 2) @ of_mean) / (n_classes - 1)
        return changing, (of_mean @ changing).squeeze(1), gains, n_left

    def _fewer_columns(self, rows: Tensor, solved: Tensor, inverse: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """Give X, and E but for a factor: V and Y D⁻¹, or V and the axes where class means differ, if these are fewer.

        D⁻¹ is constant where class means do not differ, so that Y D⁻¹ has a part in V there. This is for speed: a fit
        of 4 classes × 600 samples × 384 features in groups of 100 takes 6.2 s, and 9.6 s with all columns.
        """
        size, n_between = rows.shape[1], len(self.frame.means) - 1
        if n_between >= min(size, self.frame.n_axes):
            return torch.cat([rows, solved], dim=1), matrix
        n_touched = solved.shape[1] - size
        constant = inverse[:, -1].view(-1, 1, 1)
        onto = matrix.new_zeros(*matrix.shape[:2], size + n_between)
        onto[:, :size, :size] = identity(size, rows)
        onto[:, size + n_touched :, :size] = constant * identity(size, rows)
        onto[:, size : size + n_touched, size:] = solved[:, :n_touched, :n_between]
        onto[:, size + n_touched :, size:] = (rows * (inverse.unsqueeze(1) - constant))[:, :, :n_between]
        axes = torch.eye(n_between, rows.shape[2]).to(rows).expand(len(rows), -1, -1)
        return torch.cat([rows, axes], dim=1), onto.transpose(1, 2) @ matrix @ onto

    def _relative_trace(self, rows: Tensor, changing: Tensor, gains: Tensor) -> Tensor:
        """Give the trace of P⁻¹ (B₀ + YᵀGY), relative to that of B₀, (n_sets,).

        P⁻¹ is I + Vᵀ (κ⁻¹ I − VVᵀ)⁻¹ V.
        """
        frame = self.frame
        pooled, products = frame.pooled, rows @ changing.transpose(1, 2)
        inner = (rows * frame.between) @ rows.transpose(1, 2) + products @ gains @ products.transpose(1, 2)
        capacity = identity(rows.shape[1], rows) - pooled * rows @ rows.transpose(1, 2)
        lost = torch.linalg.solve(capacity, pooled * inner).diagonal(dim1=1, dim2=2).sum(1)
        gained: Tensor = (gains * (changing @ changing.transpose(1, 2))).sum((1, 2))
        relative: Tensor = 1 + (gained + lost) / float(frame.between.sum())
        return relative
