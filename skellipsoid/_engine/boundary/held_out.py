"""Validation: expected F1 of samples that a boundary was made without, and the radius scale that it chooses.

Known validation samples should lie inside the ellipsoid of the class that they are assigned to. Two kinds of synthetic
open samples should lie outside:

1. The same samples, scored by the nearest class other than their own. For that class they are samples of an unknown
   class.
2. Samples of synthetic classes, each between two known ones, after the paper's pseudo-open mixtures. An encoder that
   separates the known classes puts unknown classes there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..common.losses import contraction_loss, expansion_loss
from ..common.samples import Samples, effective_number
from ..common.training import held_out_rows
from .geometry import Factors, assigned_norms, nearest_centroid, nearest_other

#: Open samples per known sample. The true ratio is unknown, so the expected F1 is the mean over a quarter, a half and
#: three quarters of open samples.
OPEN_PER_KNOWN = (1 / 3, 1.0, 3.0)
#: Standard error of the expected F1 of m samples, times √m, where nine in ten are right.
F1_ERROR = 0.3
SMALLEST_ERROR = 1e-9
TINY = 1e-12
#: Relative tolerance: a sample on the boundary stays inside after its distance was rounded to single precision.
BOUNDARY_TOLERANCE = 1e-5
#: Smallest number of sets per class that judge a boundary well. With fewer, in hundreds of dimensions, held-out and new
#: samples are rejected at rates that differ by 5 to 24 points, and up to 70 % of open samples are accepted.
FEWEST_OF_CLASS = 10
#: Largest number of candidates of the radius scale.
N_SCALES = 500


@dataclass(frozen=True)
class ScoredSamples:
    """Relative distances of samples: ‖A_k (z − m_k)‖ / Δ_k for the class k that scores each, 1 on its boundary."""

    distances: NDArray[np.float64]  # (n_samples,)
    assigned: NDArray[np.int64]  # (n_samples,) class that scores
    weights: NDArray[np.float64]  # (n_samples,)

    @classmethod
    def of(cls, distances: Tensor, assigned: Tensor, weights: Tensor | None = None) -> "ScoredSamples":
        """Convert tensors; every sample weighs 1 without ``weights``."""
        weights = torch.ones_like(distances) if weights is None else weights
        return cls(_double(distances), assigned.cpu().numpy(), _double(weights))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.distances)

    def where(self, kept: NDArray[np.bool_]) -> "ScoredSamples":
        """Select the samples that are ``kept``, (n_samples,) Boolean."""
        return ScoredSamples(self.distances[kept], self.assigned[kept], self.weights[kept])

    def joined(self, other: "ScoredSamples") -> "ScoredSamples":
        """Append other samples."""
        columns = zip(vars(self).values(), vars(other).values(), strict=True)
        return ScoredSamples(*(np.concatenate(pair) for pair in columns))


def _double(values: Tensor) -> NDArray[np.float64]:
    return values.cpu().numpy().astype(np.float64)


NO_SAMPLES = ScoredSamples(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True)
class Validation:
    """Relative distances of all validation samples; a sample is accepted at radius scale s if its distance is ≤ s."""

    known: ScoredSamples
    classes: NDArray[np.int64]  # (n_known,) true class of the known samples
    n_independent: float  # effective number of independent known samples
    open: list[ScoredSamples]  # kinds of open samples, none of them empty
    n_classes: int
    mean_error: float = 0.0  # e, see ``class_sizes``

    @property
    def strictness(self) -> float:
        """Share by which the independent known samples are fewer than ``FEWEST_OF_CLASS`` per class, in [0, 1]."""
        n_classes = max(1, len(np.unique(self.classes)))
        return max(0.0, 1 - self.n_independent / (n_classes * FEWEST_OF_CLASS))

    @classmethod
    def of(
        cls,
        known: ScoredSamples,
        classes: Tensor,
        sets: NDArray[np.int64],
        synthetic: Sequence[ScoredSamples],
        real: ScoredSamples,
        n_classes: int,
        mean_error: float = 0.0,
    ) -> "Validation":
        """Collect the samples; the real open ones join every kind of synthetic open ones.

        Parameters
        ----------
        known : ScoredSamples
        classes : Tensor of shape (n_known,)
        sets : ndarray of shape (n_known,)
            Samples with the same number depend on each other.
        synthetic : sequence of ScoredSamples
        real : ScoredSamples
        n_classes : int
        mean_error : float, default=0
        """
        kinds = [kind.joined(real) for kind in synthetic if len(kind)]
        if not kinds and len(real):
            kinds = [real]
        return cls(known, classes.cpu().numpy(), effective_number(known.weights, sets), kinds, n_classes, mean_error)


@dataclass(frozen=True)
class HeldOut:
    """Margins of known samples by boundaries without them, and of open ones: mostly the same without their class."""

    margins: NDArray[np.float64]  # (n_rows,)
    assigned: NDArray[np.int64]  # (n_rows,) class that scores
    classes: NDArray[np.int64]  # (n_rows,) own class; the number of classes for real open samples
    weights: NDArray[np.float64]  # (n_rows,)
    is_open: NDArray[np.bool_]  # (n_rows,)

    @classmethod
    def of(cls, validation: Validation, left_out: Tensor | None, scale: float = 1.0) -> "HeldOut | None":
        """Collect the known samples and the first kind of open ones, at the radius scale; ``None`` without known ones.

        ``left_out`` has the own classes of the samples whose class is held out; real open samples follow them.
        """
        known = validation.known
        if not len(known):
            return None
        opened = validation.open[0] if validation.open else NO_SAMPLES
        open_classes = np.full(len(opened), validation.n_classes)
        if left_out is not None:
            open_classes[: len(left_out)] = left_out.cpu().numpy()
        both = known.joined(opened)
        return cls(
            1 - both.distances / scale,
            both.assigned,
            np.concatenate([validation.classes, open_classes]),
            both.weights,
            np.arange(len(both)) >= len(known),
        )


def hold_out(
    samples: Samples, real_open: Tensor, fraction: float, rng: np.random.Generator
) -> tuple[tuple[Samples, Tensor], tuple[Samples, Tensor]]:
    """Split known and real open samples into training and validation samples; groups stay together."""
    classes = samples.classes.cpu().numpy()
    held = torch.from_numpy(held_out_rows(classes, fraction, rng, samples.blocks)).to(samples.rows.device)
    open_held = torch.from_numpy(rng.random(len(real_open)) < fraction).to(real_open.device)
    return (samples.where(~held), real_open[~open_held]), (samples.where(held), real_open[open_held])


class HeldOutSamples:
    """Validation samples, known and really open, with everything that does not change while matrices are learned.

    Parameters
    ----------
    samples : Samples
        Known samples.
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    degenerate : Tensor of shape (n_classes,)
        Classes without spread, Boolean. Their samples are left out of the validation.
    """

    def __init__(self, samples: Samples, real_open: Tensor, centroids: Tensor, degenerate: Tensor) -> None:
        self.centroids, self.real_open = centroids, real_open
        self.known = samples.of_classes(~degenerate)
        rows, classes = self.known.rows, self.known.classes
        self.assigned, self.real_assigned = nearest_centroid(rows, centroids), nearest_centroid(real_open, centroids)
        self.others = nearest_other(rows, classes, centroids) if len(centroids) > 1 else None

    def __len__(self) -> int:
        """Return the number of known validation samples."""
        return len(self.known)

    def validate(self, shapes: Factors, radii: Tensor, synthetic: Tensor | None = None) -> Validation:
        """Give the relative distances of all samples, and of those of ``synthetic`` classes if there are any."""

        def scored(rows: Tensor, assigned: Tensor, weights: Tensor | None = None) -> ScoredSamples:
            norms = assigned_norms(rows, assigned, self.centroids, shapes)
            return ScoredSamples.of(norms / radii[assigned], assigned, weights)

        rows, weights = self.known.rows, self.known.weights
        kinds = [] if self.others is None else [scored(rows, self.others, weights)]
        if synthetic is not None:
            kinds.append(scored(synthetic, nearest_centroid(synthetic, self.centroids)))
        known, real = scored(rows, self.assigned, weights), scored(self.real_open, self.real_assigned)
        return Validation.of(known, self.known.classes, self.known.sets, kinds, real, len(self.centroids))


def expected_f1(
    validation: Validation, scales: NDArray[np.float64], open_per_known: Sequence[float] = OPEN_PER_KNOWN
) -> NDArray[np.float64]:
    """Macro F1 over the known classes and open if all radii are multiplied by each of ``scales``.

    The mean over the kinds of open samples and over ``open_per_known``, for which the open samples are weighted.
    Without open samples it is the macro F1 of the known classes.

    Parameters
    ----------
    validation : Validation
    scales : ndarray of shape (n_scales,)
        Ascending.
    open_per_known : sequence of float

    Returns
    -------
    ndarray of shape (n_scales,)
    """
    known, n_classes = validation.known, validation.n_classes
    correct = _accepted(known.where(known.assigned == validation.classes), scales, n_classes)
    answered = _accepted(known, scales, n_classes)
    support = np.bincount(validation.classes, known.weights, minlength=n_classes)
    present = support > 0
    if not validation.open:
        return np.asarray((2 * correct / np.maximum(answered + support, TINY))[:, present].mean(axis=1))
    n_known = known.weights.sum()
    falsely_rejected = n_known - answered.sum(axis=1)
    values = []
    for kind, per_known in product(validation.open, open_per_known):
        accepted, n_open = _accepted(kind, scales, n_classes), kind.weights.sum()
        n_rejected = n_open - accepted.sum(axis=1)
        weight = per_known * n_known / n_open
        f1 = 2 * correct / np.maximum(answered + weight * accepted + support, TINY)
        f1_open = 2 * weight * n_rejected / np.maximum(weight * (n_open + n_rejected) + falsely_rejected, TINY)
        values.append((f1[:, present].sum(axis=1) + f1_open) / (present.sum() + 1))
    return np.asarray(np.mean(values, axis=0))


def _accepted(samples: ScoredSamples, scales: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Weight of each class's samples that are accepted at each radius scale, (n_scales, n_classes)."""
    first = np.searchsorted(scales, samples.distances, side="left")
    counts = np.bincount(first * n_classes + samples.assigned, samples.weights, minlength=(len(scales) + 1) * n_classes)
    return np.asarray(counts.reshape(len(scales) + 1, n_classes)[:-1].cumsum(axis=0))


def best_scale(validation: Validation, strictness: float = 0.0) -> tuple[float, float]:
    """Radius scale by ``expected_f1``, and the best F1 of any candidate; (1, 0) without a distance above 0.

    The single best candidate is a noisy estimate. So the scale is the geometric mean of all candidates, weighted by
    ``near_best``, less ``strictness`` times their standard deviation. Without open samples it is the smallest of the
    best candidates.
    """
    scales = _candidate_scales(validation)
    if not len(scales):
        return 1.0, 0.0
    scores = expected_f1(validation, scales)
    best = float(scores.max())
    if not validation.open:
        return float(scales[scores.argmax()]), best
    weights = near_best(scores, F1_ERROR / validation.n_independent**0.5)
    mean = np.average(np.log(scales), weights=weights)
    deviation = np.average((np.log(scales) - mean) ** 2, weights=weights) ** 0.5
    return float(np.exp(mean - strictness * deviation)), best


def _candidate_scales(validation: Validation) -> NDArray[np.float64]:
    """Distances of known samples, or that many quantiles of them."""
    distances = validation.known.distances
    scales = np.unique(distances[distances > 0])
    if len(scales) > N_SCALES:
        scales = np.unique(np.quantile(scales, np.linspace(0, 1, N_SCALES), method="closest_observation"))
    return np.asarray(scales)


def loss_scale(validation: Validation, beta: float) -> float:
    """Radius scale that minimises the paper's two losses on validation samples; 1 without open samples.

    The sum of two means: the expansion loss (eq. 13) of the known samples, and the contraction loss (eq. 15) of the
    samples of synthetic classes (of the real open ones where there are no others). Distances are divided by the
    standard deviation of the known ones, so that the exponential tail ends within their range. The scale never grows
    with β, since the slope of the contraction loss does.
    """
    scales = _candidate_scales(validation)
    if not len(scales) or not validation.open:
        return 1.0
    known, open_samples = validation.known, validation.open[-1]
    mean_distance = np.average(known.distances, weights=known.weights)
    deviation = float(np.average((known.distances - mean_distance) ** 2, weights=known.weights) ** 0.5)
    unit = max(deviation, TINY * mean_distance)
    radii = torch.from_numpy(scales / unit).unsqueeze(1)

    def mean(loss: Callable[..., Tensor], samples: ScoredSamples) -> Tensor:
        weights = torch.from_numpy(samples.weights / samples.weights.sum())
        return loss(torch.from_numpy(samples.distances / unit), radii) @ weights

    losses = mean(expansion_loss, known)
    losses += mean(lambda norms, radii: contraction_loss(norms, radii, beta), open_samples)
    return float(scales[int(losses.argmin())])


def near_best(scores: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    """Weights of candidates, exp((F1 − best F1) / standard error).

    With few samples many candidates count, which reduces the variance; with many only the best.
    """
    return np.asarray(np.exp((scores - scores.max()) / max(error, SMALLEST_ERROR)))
