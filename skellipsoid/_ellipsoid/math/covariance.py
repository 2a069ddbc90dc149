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

import torch
from torch import Tensor
from torch.nn import functional

from ..._torch.devices import eigh_of_many
from ..._torch.threads import map_parts
from .boundaries import Metric, Moments, Shapes
from .frames import Frame, identity
from .geometry import Factors
from .left_out import Chunk, LeftOut, most_numbers
from .tiles import Tiles

#: Smallest number of classes with a background. With 3, F1 is the same; with 6 it falls by 1.5 on text, since one case
#: has five classes (skellipsoid-bench/results/constants.rst).
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
        return Background(torch.zeros_like(frame.variances_of_means), 0.0, 0.0, 0.0)
    target = between * float(frame.variances_of_means.mean())
    left = 1 - 1 / (len(frame.means) - 1) if without_class else 1.0
    inverse = left / ((1 - between) * frame.variances_of_means + left * target)
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

    def along(self, rows: Tensor, places: Tensor) -> Tensor:
        """Products of (n_pairs, n_rows, n_axes) rows with the axes of the classes at ``places`` here, (n_pairs,)."""
        present, places = torch.unique(places, return_inverse=True)
        tiles = Tiles.of(places.repeat_interleave(rows.shape[1]), len(present))
        products = tiles.product(tiles.gather(rows.flatten(0, 1)), self.axes[present].transpose(1, 2))
        return tiles.scatter(products).view(*rows.shape[:2], -1)


def principal_axes(frame: Frame, stretches: Tensor) -> list[ClassAxes]:
    """Principal axes of all classes."""
    found = []
    for classes, rows, sizes in frame.members:
        at_once = max(1, most_numbers(rows.device) // (min(rows.shape[1], frame.n_axes) * frame.n_axes))
        some_sizes = (sizes[first : first + at_once] for first in range(0, len(sizes), at_once))
        parts = zip(torch.split(classes, at_once), torch.split(rows, at_once), some_sizes, strict=True)
        columns = zip(*(_principal_axes(frame, stretches, *part) for part in parts), strict=True)
        found.append(ClassAxes(classes, *(torch.cat(column) for column in columns)))
    return found


def _principal_axes(
    frame: Frame, stretches: Tensor, classes: Tensor, rows: Tensor, sizes: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Axes and values of some classes."""
    is_wide = frame.samples.moments is None and rows.shape[1] < frame.n_axes
    if (moments := frame.samples.moments) is not None:
        onto = frame.axes * stretches
        given = [onto.T @ torch.from_numpy(moments.scatter(k)).to(onto) @ onto for k in classes.tolist()]
        scatter = torch.stack(given)
    else:
        roots = (frame.samples.weights[rows] * (rows >= 0)).sqrt().unsqueeze(2)
        weighted = frame.offsets[rows].double() * stretches * roots
        # The products of the samples hold the same spectrum in a smaller matrix.
        scatter = weighted @ weighted.mT if is_wide else weighted.mT @ weighted
    values, vectors = eigh_of_many(scatter, sizes if is_wide else [frame.n_axes] * len(sizes))
    has_spread = (frame.sets.freedoms[classes] > 0).unsqueeze(1)
    kept = (values > RANK_TOLERANCE * values[:, -1:].clamp_min(1e-30)) & has_spread
    values = torch.where(kept, values, 0.0)
    if is_wide:
        return (vectors * torch.where(kept, values.rsqrt(), 0.0).unsqueeze(1)).mT @ weighted, values
    return (vectors * kept.unsqueeze(1)).mT, values


def typical_variance(classes: list[ClassAxes], freedoms: Tensor) -> Tensor:
    """Mean variance of a class per direction, in units of Q."""
    traces = torch.zeros_like(freedoms)
    for own in classes:
        traces[own.classes] = own.values.sum(1)
    spread = torch.where(freedoms > 0, traces / freedoms, 0.0).sum() / (freedoms > 0).sum()
    return spread.nan_to_num(nan=classes[0].axes.shape[2]) / classes[0].axes.shape[2]


def _without_padding(classes: list[ClassAxes]) -> tuple[Tensor, Tensor, Tensor]:
    """Axes of all classes in their order, their values, and the class of each axis."""
    kept = [own.values > 0 for own in classes]
    labels = torch.cat([own.classes.repeat_interleave(mask.sum(1)) for own, mask in zip(classes, kept, strict=True)])
    order = labels.argsort(stable=True)
    axes = torch.cat([own.axes[mask] for own, mask in zip(classes, kept, strict=True)])
    values = torch.cat([own.values[mask] for own, mask in zip(classes, kept, strict=True)])
    return axes[order], values[order], labels[order]


def _factors(classes: list[ClassAxes], freedoms: Tensor, shared: float) -> Factors:
    """Inverse of Σ_k of all classes, in coordinates where Q is the identity."""
    axes, values, labels = _without_padding(classes)
    typical = (1 - shared) * typical_variance(classes, freedoms) + shared
    weights = 1 / ((1 - shared) * values / freedoms[labels] + shared)
    starts = functional.pad(torch.bincount(labels, minlength=len(freedoms)).cumsum(0), (1, 0)).tolist()
    return Factors(axes, weights, starts, torch.where(freedoms > 0, 1 / shared, 1 / typical))


class HeldOutSamples(NamedTuple):
    """Samples of one kind, each scored by one class that is estimated without the set of a known sample."""

    kind: int  # see ``held_out``
    sources: Tensor  # (n_rows,) known sample whose set is left out
    assigned: Tensor  # (n_rows,) class that scores
    rows: Tensor | None = None  # (n_rows, n_axes); the known samples themselves without it

    def at(self, places: Tensor) -> "HeldOutSamples":
        """Select samples."""
        rows = None if self.rows is None else self.rows[places]
        return HeldOutSamples(self.kind, self.sources[places], self.assigned[places], rows)


class _Changes(NamedTuple):
    """How the statistics that all classes share change without sets.

    In coordinates where Q was the identity, Q is ``ratio_of_shared`` (I + UᵀEU).
    """

    left_out: LeftOut
    U: Tensor  # (n_sets, n_columns, n_axes) V and Y D⁻¹, in coordinates where T was the identity
    E: Tensor  # (n_sets, n_columns, n_columns)
    ratio_of_shared: Tensor  # (n_sets,)
    mean: Tensor  # (n_sets, n_axes) μ
    inverse: Tensor  # (n_sets, n_axes) D⁻¹, where B⁻¹ is proportional to D⁻¹ − (Y D⁻¹)ᵀ Φ Y D⁻¹
    YD: Tensor  # (n_sets, n_touched + size, n_axes) Y D⁻¹
    Phi: Tensor  # (n_sets, n_touched + size, n_touched + size)
    psi: Tensor  # (n_sets,) ι (K′ − 1) / (K − 1), by which T is larger, relative to B

    def shift(self, numbers: Tensor, means: Tensor, pooled: float) -> Tensor:
        """T B⁻¹ (c_k − μ): how far centres are from class means, (n_pairs, n_axes)."""
        deviations = (means - self.mean[numbers]).unsqueeze(2)
        solved, rows = self.YD[numbers], self.left_out.rows[numbers]
        moved = deviations * self.inverse[numbers].unsqueeze(2)
        moved = moved - solved.transpose(1, 2) @ (self.Phi[numbers] @ (solved @ deviations))
        moved = moved - pooled * rows.transpose(1, 2) @ (rows @ moved)
        return moved.squeeze(2) * self.psi[numbers].unsqueeze(1)


class _Pairs(NamedTuple):
    """Samples by pairs of a set and a class that scores, in coordinates where Q was the identity."""

    rows: Tensor  # (n_pairs, n_columns + n_scored, n_axes) U, and offsets of samples to the centre
    change: Tensor  # (n_pairs, n_columns, n_columns) E
    scatter: Tensor  # (n_pairs, n_columns) 1 for those columns whose products the class's own scatter loses
    freedom: Tensor  # (n_pairs,) degrees of freedom of the class without the set
    ratio_of_shared: Tensor  # (n_pairs,) Q without the set is this times (I + UᵀEU)

    def scores(
        self, own: ClassAxes, places: Tensor, shares: Tensor, typical: Tensor, *, with_volumes: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Squared distances for each share ρ, and log determinants of Σ_k but for that of the coordinates.

        The Woodbury identity on (1 − ρ) S_k + ρ Q without the sets. The classes that score are ``own`` ones at
        ``places``. The results have (n_shares, n_pairs, n_scored) and (n_shares, n_pairs) elements.
        """
        n_columns, has_spread = self.change.shape[1], self.freedom > 0
        along, values = own.along(self.rows, places), own.values[places]
        columns, offsets = self.rows[:, :n_columns], self.rows[:, n_columns:]
        shared = shares.unsqueeze(1)
        of_scatter = torch.where(has_spread, (1 - shared) / self.freedom, 0.0)
        # Without the set Q changes; the typical variance is not computed anew.
        sphere = shared * self.ratio_of_shared + (1 - shared) * typical * (~has_spread).double()
        variances = of_scatter.unsqueeze(2) * values + sphere.unsqueeze(2)
        excess = variances.reciprocal() - sphere.reciprocal().unsqueeze(2)
        of_sphere, of_columns = sphere[..., None, None], along[:, :n_columns]
        if along.shape[1] < len(shares):  # for speed: one product for all shares
            each = (of_columns.unsqueeze(2) * along.unsqueeze(1)).flatten(1, 2) @ excess.permute(1, 2, 0)
            inner = each.view(len(along), n_columns, -1, len(shares)).permute(3, 0, 1, 2)
        else:
            inner = (of_columns * excess.unsqueeze(2)) @ along.transpose(1, 2)
        inner = inner + columns @ self.rows.transpose(1, 2) / of_sphere
        products, crossed = inner[..., :n_columns], inner[..., n_columns:]
        change = self.change * of_sphere - torch.diag_embed(self.scatter * of_scatter.unsqueeze(2))
        capacity = identity(change.shape[-1], change) + change @ products
        squares = (along[:, n_columns:].square() @ excess.unsqueeze(3)).squeeze(3)
        squares += offsets.square().sum(2) / sphere.unsqueeze(2)
        squares -= (crossed * torch.linalg.solve(capacity, change @ crossed)).sum(2)
        if not with_volumes:
            return squares, None
        n_other = columns.shape[2] - values.shape[1]
        return squares, variances.log().sum(2) + n_other * sphere.log() + torch.linalg.slogdet(capacity)[1]


class LeftOutShapes:
    """The ellipsoids of all classes, without the set of each of several samples, for one background.

    Parameters
    ----------
    frame : Frame
    between : float or None
        b, ``None`` without a background.
    without_class : bool, default=False
        Whether the whole class of a sample is held out of the background.
    """

    def __init__(self, frame: Frame, between: float | None, *, without_class: bool = False) -> None:
        self.frame, self.between, self.without_class = frame, between, without_class and between is not None
        self.background = background(frame, between, without_class=self.without_class)
        self.stretches = self.background.stretches
        self.centres = frame.means * (1 + self.background.inverse)
        self.class_axes = principal_axes(frame, self.stretches)

    def distances(self, samples: HeldOutSamples, shares: Sequence[float]) -> Tensor:
        """‖Σ_k^(−1/2) (z − m_k)‖ for each share ρ, (n_shares, n_rows)."""
        return self._scores(samples, shares)[0].clamp_min(0).sqrt()

    def log_likelihoods(self, samples: HeldOutSamples, shares: Sequence[float], weights: Tensor) -> Tensor:
        """Weighted Gaussian log likelihood of samples for each share ρ, but for a constant, (n_shares,)."""
        squares, log_volumes = self._scores(samples, shares, with_volumes=True)
        return -0.5 * ((squares + log_volumes) @ weights)

    def shapes(self, shared: float, factor: float, radii: Tensor) -> Shapes:
        """Shapes of all samples, squared distances being multiplied by ``factor``."""
        metric, found = self._metric(), _factors(self.class_axes, self.frame.sets.freedoms, shared)
        centres = self.centres * self.stretches
        if metric.products is not None:  # one more coordinate: the distance from the span
            centres = functional.pad(centres, (0, 1))
            found = replace(found, axes=functional.pad(found.axes, (0, 1)))
        return Shapes(metric, centres, found.scaled(factor), radii)

    def moments(self) -> Moments:
        """Give the statistics that the shapes are computed from."""
        frame = self.frame
        return Moments(
            frame.sets.weights.totals,
            frame.sets.freedoms,
            _without_padding(self.class_axes)[1],
            frame.variances_of_means,
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
        self, samples: HeldOutSamples, shares: Sequence[float], *, with_volumes: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Squared distances and, if wanted, logarithms of the determinants of Σ_k, (n_shares, n_rows) each."""
        found = self.stretches.new_empty(2, len(shares), len(samples.sources))
        typical = typical_variance(self.class_axes, self.frame.sets.freedoms)
        for own in self.class_axes:
            mine = torch.nonzero(torch.isin(samples.assigned, own.classes)).flatten()
            found[:, :, mine] = self._scores_of(own, samples.at(mine), shares, typical, with_volumes=with_volumes)
        return found[0], found[1]

    def _scores_of(
        self, own: ClassAxes, samples: HeldOutSamples, shares: Sequence[float], typical: Tensor, *, with_volumes: bool
    ) -> Tensor:
        """Both of samples that classes of about equal size score, (2, n_shares, n_rows)."""
        frame, n_rows = self.frame, len(samples.sources)
        found = frame.means.new_zeros(2, len(shares), n_rows + 1)  # the last place is not used
        candidates = frame.means.new_tensor(shares)
        held_out = frame.samples.classes[samples.sources] if self.without_class else None

        def score(chunk: Chunk) -> None:
            pairs = self._pairs(samples, chunk, self._changes(chunk))
            places = torch.searchsorted(own.classes, chunk.labels)
            squares, volumes = pairs.scores(own, places, candidates, typical, with_volumes=with_volumes)
            found[0][:, chunk.positions] = squares
            if volumes is not None:
                found[1][:, chunk.positions] = volumes.unsqueeze(2).expand_as(squares)

        chunks = frame.sets.chunks(samples.sources, samples.assigned, 4 * frame.n_axes, held_out)
        map_parts(score, chunks, 16 * n_rows * frame.n_axes, found.device)
        return found[:, :, :n_rows]

    def _pairs(self, samples: HeldOutSamples, chunk: Chunk, changes: _Changes) -> _Pairs:
        """Class means, scatters and centres without the sets."""
        frame, labels, numbers, left_out = self.frame, chunk.labels, chunk.numbers, changes.left_out
        is_touched = chunk.sets.touched[numbers] == labels.unsqueeze(1)  # (n_pairs, n_touched)
        which = is_touched.double().unsqueeze(1)
        means = frame.means[labels] + (which @ left_out.moves[numbers] @ left_out.rows[numbers]).squeeze(1)
        centres = means + changes.shift(numbers, means, frame.pooled)
        sources = samples.sources[chunk.positions]
        rows = frame.rows(sources) if samples.rows is None else samples.rows[chunk.positions]
        columns = changes.U[numbers]
        inside = (which @ left_out.inside[numbers]).squeeze(1)
        freedom = torch.where(is_touched, chunk.sets.freedoms[numbers], 0.0).sum(1)
        return _Pairs(
            torch.cat([columns, rows - centres.unsqueeze(1)], dim=1).mul_(self.stretches),
            changes.E[numbers],
            functional.pad(inside, (0, columns.shape[1] - inside.shape[1])),
            torch.where(is_touched.any(1), freedom, frame.sets.freedoms[labels]),
            changes.ratio_of_shared[numbers],
        )

    def _changes(self, chunk: Chunk) -> _Changes:
        """Change T, B, μ and Q, by the letters and steps of docs/internals.rst, *Without a set: the algebra*.

        Q' = ι (H + ψ H M⁻¹ H), where H = I − κ VᵀV, and M⁻¹ is D⁻¹ − (YD⁻¹)ᵀ Φ YD⁻¹ with a diagonal D.
        """
        frame, background, left_out = self.frame, self.background, chunk.sets.left_out(self.frame.offsets)
        V, kappa, n_touched, size = left_out.rows, frame.pooled, left_out.moves.shape[1], left_out.rows.shape[1]
        iota, n_axes = frame.without(chunk.sets)
        minus_kappa = -kappa * identity(size, V)
        Y, mean, G, n_left = self._class_means(chunk, left_out)
        if not background.target:
            none, empty = torch.zeros_like(mean), Y[:, :0]
            products = empty @ empty.transpose(1, 2)
            E = minus_kappa.expand(len(V), -1, -1)
            return _Changes(left_out, V, E, iota, mean, none, empty, products, iota)
        target = background.target * self._relative_trace(V, Y, G) / n_axes * frame.n_axes
        G = (1 - background.between) * G
        G[:, n_touched:, n_touched:] += target.view(-1, 1, 1) * minus_kappa
        inverse = ((1 - background.between) * frame.variances_of_means + target.unsqueeze(1)).reciprocal()
        YD = Y * inverse.unsqueeze(1)
        Phi = torch.linalg.solve(identity(G.shape[1], G) + G @ (YD @ Y.transpose(1, 2)), G)
        psi = iota * (n_left - 1) / (len(frame.means) - 1)
        # H M⁻¹ H, with Y D⁻¹ H = Y D⁻¹ + (mixed)ᵀ V.
        mixed = -kappa * (V @ YD.transpose(1, 2))
        onto_columns = torch.cat([mixed, identity(G.shape[1], G).expand(len(mixed), -1, -1)], dim=1)
        E = -(onto_columns @ Phi @ onto_columns.transpose(1, 2))
        # The rows of U are V, and those of Y D⁻¹: of the touched classes, and V D⁻¹.
        of_v, of_v_solved = slice(size), slice(size + n_touched, None)
        E[:, of_v, of_v] += kappa**2 * (V @ (V * inverse.unsqueeze(1)).transpose(1, 2))
        E[:, of_v, of_v_solved] += minus_kappa
        E[:, of_v_solved, of_v] += minus_kappa
        E *= psi.view(-1, 1, 1)
        E[:, of_v, of_v] += minus_kappa
        factor = ((1 + psi.unsqueeze(1) * inverse) / (1 + background.inverse)).mean(1)
        U, E = torch.cat([V, YD], dim=1), E / factor.view(-1, 1, 1)
        return _Changes(left_out, U, E, iota * factor, mean, inverse, YD, Phi, psi)

    def _class_means(self, chunk: Chunk, left_out: LeftOut) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Give Y, μ, G, and the number of classes that remain.

        The rows of Y are the deviations c − μ of the touched classes, and V. B₀ gains YᵀGY: the scatter of the class
        means that remain, about their own mean, less that of all class means, both divided by K − 1.
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
        Y = torch.cat([frame.means[sets.touched], left_out.rows], dim=1)
        G = after.transpose(1, 2) @ after - before.transpose(1, 2) @ before
        G = (G - n_left.view(-1, 1, 1) * of_mean.transpose(1, 2) @ of_mean) / (n_classes - 1)
        return Y, (of_mean @ Y).squeeze(1), G, n_left

    def _relative_trace(self, V: Tensor, Y: Tensor, G: Tensor) -> Tensor:
        """Give the trace of H⁻¹ (B₀ + YᵀGY), relative to that of B₀, (n_sets,).

        H⁻¹ is I + Vᵀ (κ⁻¹ I − VVᵀ)⁻¹ V.
        """
        frame = self.frame
        kappa, products = frame.pooled, V @ Y.transpose(1, 2)
        inner = (V * frame.variances_of_means) @ V.transpose(1, 2) + products @ G @ products.transpose(1, 2)
        capacity = identity(V.shape[1], V) - kappa * V @ V.transpose(1, 2)
        of_v = torch.linalg.solve(capacity, kappa * inner).diagonal(dim1=1, dim2=2).sum(1)
        of_y: Tensor = (G * (Y @ Y.transpose(1, 2))).sum((1, 2))
        relative: Tensor = 1 + (of_y + of_v) / frame.variances_of_means.sum()
        return relative
