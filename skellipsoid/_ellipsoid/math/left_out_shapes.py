"""Distances of samples to ellipsoids that are estimated without them (leave-one-out), for all candidates of ρ."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from ..._torch.threads import map_parts
from .boundaries import Metric, Moments, Shapes
from .covariance import (
    Background,
    ClassAxes,
    HeldOutSamples,
    Pairs,
    background,
    factors,
    principal_axes,
    scatters_in_order,
    typical_variance,
)
from .frames import Frame
from .left_out import Chunk, Sets, most_elements
from .low_rank import LowRank, low_rank_changes
from .refits import Refit, refit, refit_is_faster
from .views import n_coordinates, view_of

#: From this number of classes on, and this mean number of samples of a class, a background without a class takes the
#: axes of that of all: it halves the eigendecompositions, a third of a fit. Q without the class differs from a
#: multiple of Q by about 1 / n_classes. Predictions of StackOverflow (20 classes of 200) change for .2 % of the texts,
#: F1 by at most .01; of Banking77 (57 classes of 90) for .8 %, F1 by -.2 in the mean, so that smaller classes keep axes
#: of their own.
MANY_CLASSES, LARGE_CLASS = 20, 160


class LeftOutShapes:
    """The ellipsoids of all classes, without the set of each of several samples, for one background.

    Parameters
    ----------
    frame : Frame
    between : float or None
        b, ``None`` without a background.
    without_class : bool, default=False
        Whether the whole class of a sample is held out of the background.
    axes_of : LeftOutShapes, optional
        Ellipsoids that have the axes of the classes, and the coordinates.
    """

    def __init__(
        self,
        frame: Frame,
        between: float | None,
        *,
        without_class: bool = False,
        axes_of: "LeftOutShapes | None" = None,
    ) -> None:
        self.frame, self.between, self.without_class = frame, between, without_class and between is not None
        own = background(frame, between, without_class=self.without_class)
        self.background: Background = own if axes_of is None else axes_of.background
        self.stretches = self.background.stretches
        self.centres = frame.means * (1 + self.background.inverse)
        #: (c_k − μ)ᵀ B⁻¹ (c_k − μ): samples of a class far from μ are by this farther from its centre m_k, in squares.
        #: Beside it, how frequent a class is.
        self.allowances = frame.means.square() @ own.inverse + frame.frequencies
        self.class_axes: list[ClassAxes] = (
            principal_axes(frame, self.stretches) if axes_of is None else axes_of.class_axes
        )

    def of_held_out_classes(self) -> "LeftOutShapes":
        """Hold the whole class of a sample out of the background, too; without one they stay as they are."""
        if self.between is None:
            return self
        n_classes = len(self.frame.means)
        is_large = n_classes >= MANY_CLASSES and self.frame.samples.n_all >= LARGE_CLASS * n_classes
        return LeftOutShapes(self.frame, self.between, without_class=True, axes_of=self if is_large else None)

    def distances(self, samples: HeldOutSamples, shrinkages: Sequence[float]) -> Tensor:
        """‖Σ_k^(−1/2) (z − m_k)‖ for each ρ, (n_shrinkages, n_samples)."""
        return self._scores(samples, shrinkages)[0].clamp_min(0).sqrt()

    def log_likelihoods(self, samples: HeldOutSamples, shrinkages: Sequence[float], weights: Tensor) -> Tensor:
        """Weighted Gaussian log likelihood of samples for each ρ, but for a constant, (n_shrinkages,)."""
        squares, log_volumes = self._scores(samples, shrinkages, with_volumes=True)
        return -0.5 * ((squares + log_volumes) @ weights)

    def shapes(self, shared: float, factor: float, growths: Tensor, size: float = 1.0) -> Shapes:
        """Shapes of all samples, with radii ``size`` × ``growths``; squared distances are multiplied by ``factor``."""
        metric, found = self._metric(), factors(self.class_axes, self.frame.sets.freedoms, shared)
        centres = self.centres * self.stretches
        if metric.products is not None:  # one more coordinate: the distance from the span
            centres = functional.pad(centres, (0, 1))
            found = replace(found, axes=functional.pad(found.axes, (0, 1)))
        return Shapes(metric, centres, found.scaled(factor), size * growths, self.allowances * factor / size**2)

    def moments(self) -> Moments:
        """Return the statistics that the shapes are computed from."""
        frame = self.frame
        return Moments(
            frame.sets.weights.totals,
            frame.sets.freedoms,
            scatters_in_order(self.class_axes)[0],
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
        self, samples: HeldOutSamples, shrinkages: Sequence[float], *, with_volumes: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Squared distances and, if wanted, logarithms of the determinants of Σ_k, (n_shrinkages, n_samples) each."""
        found = self.stretches.new_empty(2, len(shrinkages), len(samples.sources))
        typical = typical_variance(self.class_axes, self.frame.sets.freedoms)
        for own in self.class_axes:
            mine = torch.nonzero(torch.isin(samples.assigned, own.classes)).flatten()
            found[:, :, mine] = self._scores_of(own, samples.at(mine), shrinkages, typical, with_volumes=with_volumes)
        return found[0], found[1]

    def _scores_of(
        self,
        own: ClassAxes,
        samples: HeldOutSamples,
        shrinkages: Sequence[float],
        typical: Tensor,
        *,
        with_volumes: bool,
    ) -> Tensor:
        """Both of samples that classes of about equal size score, (2, n_shrinkages, n_samples)."""
        frame, n_samples = self.frame, len(samples.sources)
        found = frame.means.new_zeros(2, len(shrinkages), n_samples + 1)  # the last place is not used
        candidates = frame.means.new_tensor(shrinkages)
        held_out = frame.samples.classes[samples.sources] if self.without_class else None

        n_axes, n_own = own.axes.shape[2], own.axes.shape[1]

        def is_large(sets: Sets) -> bool:
            return refit_is_faster(sets, len(frame.means), n_own, n_axes, len(shrinkages))

        def n_elements(sets: Sets, n_scored: int) -> int:
            if is_large(sets):
                return (2 * n_axes + len(shrinkages) * n_own) * (n_own + n_scored)
            size = sets.members.shape[1]
            return (2 * n_coordinates(frame, size) + len(shrinkages) * n_own) * (size + n_scored) + n_axes * size

        def score(chunk: Chunk) -> None:
            as_refit = is_large(chunk.sets)
            view = view_of(frame, self.background, chunk.sets, as_it_is=as_refit)
            changes = (refit if as_refit else low_rank_changes)(view, chunk)
            at_once = most_elements(found.device) // n_elements(chunk.sets, chunk.positions.shape[1])
            for part in chunk.split(max(1, at_once)) if as_refit else [chunk]:
                pairs = self._pairs(samples, own, part, changes)
                squares, volumes = changes.scores(own, pairs, candidates, typical, with_volumes=with_volumes)
                found[0][:, part.positions] = squares
                if volumes is not None:
                    found[1][:, part.positions] = volumes.unsqueeze(2).expand_as(squares)

        chunks = frame.sets.chunks(samples.sources, samples.assigned, n_elements, held_out, is_large)
        map_parts(score, chunks, 16 * n_samples * n_axes, found.device)
        return found[:, :, :n_samples]

    def _pairs(self, samples: HeldOutSamples, own: ClassAxes, chunk: Chunk, changes: LowRank | Refit) -> Pairs:
        """Class means, scatters and centres without the sets."""
        frame, labels, numbers, left_out, view = self.frame, chunk.labels, chunk.numbers, changes.left_out, changes.view
        is_touched = chunk.sets.touched[numbers] == labels.unsqueeze(1)  # (n_pairs, n_touched)
        which = is_touched.double().unsqueeze(1)
        means = view.means[labels] + (which @ left_out.moves[numbers] @ left_out.V[numbers]).squeeze(1)
        centres = means + changes.shift(numbers, means)
        freedom = torch.where(is_touched, chunk.sets.freedoms[numbers], 0.0).sum(1)
        return Pairs(
            numbers,
            torch.searchsorted(own.classes, labels),
            (view.coordinates(samples, chunk) - centres.unsqueeze(1)) * view.background.stretches,
            (which @ left_out.inside[numbers]).squeeze(1),
            torch.where(is_touched.any(1), freedom, frame.sets.freedoms[labels]),
            changes.ratio_of_shared[numbers],
        )
