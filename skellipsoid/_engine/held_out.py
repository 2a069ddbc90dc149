"""Rows that boundaries were made without: when to stop learning, which shape, and how large.

Such rows should lie inside the ellipsoid of the class that they are assigned to. Two kinds of rows stand in for open
ones, and should lie outside. The same rows, their own class left aside: to the nearest other class they look like rows
of an unknown class. And rows of imaginary classes between two known ones, after the paper's pseudo-open mixtures: there
an encoder that drives the known classes apart leaves the unknown ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .geometry import Factors, assigned_norms, nearest_centroid, nearest_other
from .losses import contraction_loss, expansion_loss
from .samples import Samples, effective_number
from .training import held_out_rows

#: How many open rows there are for each known one, in the mean over which a boundary is judged: nobody knows it, so a
#: quarter, a half and three quarters of all rows count alike.
OPEN_PER_KNOWN = (1 / 3, 1.0, 3.0)
#: The expected F1 of m rows, of which nine in ten are right, is known to about this over √m.
F1_ERROR = 0.3
SMALLEST_ERROR = 1e-9
TINY = 1e-12
#: A row on the boundary stays inside after its reach went through single precision.
ROUNDING = 1e-5
#: Sizes that are tried, at the reaches of as many known rows.
N_SIZES = 500


class Judged(NamedTuple):
    """Norms of rows as multiples of the radius, the class that scores each, and what it weighs."""

    reach: Tensor  # (n_rows,)
    assigned: Tensor  # (n_rows,)
    weights: Tensor  # (n_rows,)


class Open(NamedTuple):
    """How far out open rows, or what stands in for them, lie."""

    reach: NDArray[np.float64]  # (n_open,)
    assigned: NDArray[np.int64]  # (n_open,) class whose ellipsoid judges
    weights: NDArray[np.float64]  # (n_open,)


@dataclass(frozen=True)
class Reach:
    """How far out rows lie, as multiples of the radius: a row is accepted at size s where its reach is at most s."""

    known: NDArray[np.float64]  # (n_known,)
    classes: NDArray[np.int64]  # (n_known,) true class
    assigned: NDArray[np.int64]  # (n_known,) class whose ellipsoid judges
    weights: NDArray[np.float64]  # (n_known,)
    n_independent: float  # effective number of independent known rows
    open: list[Open]  # kinds of open rows, none of them empty
    n_classes: int

    @classmethod
    def of(
        cls,
        known: Judged,
        classes: Tensor,
        sets: NDArray[np.int64],
        stand_ins: Sequence[Judged],
        real: Judged,
        n_classes: int,
    ) -> "Reach":
        """Collect what rows' norms say: each kind of stand-in joins the real open rows.

        Parameters
        ----------
        known : Judged
        classes : Tensor of shape (n_known,)
        sets : ndarray of shape (n_known,)
            Rows with the same number depend on each other.
        stand_ins : sequence of Judged
        real : Judged
        n_classes : int
        """

        def opened(*kinds: Judged) -> Open:
            reach, assigned, weights = (torch.cat(parts).cpu().numpy() for parts in zip(*kinds, strict=True))
            return Open(reach.astype(np.float64), assigned, weights.astype(np.float64))

        kinds = [opened(kind, real) for kind in stand_ins if len(kind[0])]
        if not kinds and len(real[0]):
            kinds = [opened(real)]
        reach, assigned, weights = opened(known)
        n_independent = effective_number(weights, sets)
        return cls(reach, classes.cpu().numpy(), assigned, weights, n_independent, kinds, n_classes)


def hold_out(
    samples: Samples, real_open: Tensor, fraction: float, rng: np.random.Generator
) -> tuple[tuple[Samples, Tensor], tuple[Samples, Tensor]]:
    """Split known and real open rows into those that learn and those that are held out; groups stay together."""
    classes = samples.classes.cpu().numpy()
    held = torch.from_numpy(held_out_rows(classes, fraction, rng, samples.blocks)).to(samples.rows.device)
    open_held = torch.from_numpy(rng.random(len(real_open)) < fraction).to(real_open.device)
    return (samples.where(~held), real_open[~open_held]), (samples.where(held), real_open[open_held])


class HeldOutRows:
    """Held-out rows of known classes, and real open ones, with what does not change while matrices are learned.

    Parameters
    ----------
    samples : Samples
        Known rows.
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    points : Tensor of shape (n_classes,)
        Classes without a shape; their rows say nothing about sizes.
    """

    def __init__(
        self,
        samples: Samples,
        real_open: Tensor,
        centroids: Tensor,
        points: Tensor,
    ) -> None:
        self.centroids = centroids
        self.known = samples.of_classes(~points)
        self.assigned = nearest_centroid(self.known.rows, centroids)
        self.real = real_open, nearest_centroid(real_open, centroids), torch.ones_like(real_open[:, 0])
        n_others = len(self.known) if len(centroids) > 1 else 0
        rows, classes = self.known.rows[:n_others], self.known.classes[:n_others]
        self.others = rows, nearest_other(rows, classes, centroids), self.known.weights[:n_others]

    def __len__(self) -> int:
        """Return the number of held-out known rows."""
        return len(self.known)

    def reach(self, shapes: Factors, radii: Tensor, between: Tensor | None = None) -> Reach:
        """How far out the rows, and rows between the classes if there are, lie with the present matrices."""

        def judged(rows: Tensor, assigned: Tensor, weights: Tensor) -> Judged:
            return Judged(assigned_norms(rows, assigned, self.centroids, shapes) / radii[assigned], assigned, weights)

        stand_ins = [judged(*self.others)]
        if between is not None:
            stand_ins.append(judged(between, nearest_centroid(between, self.centroids), torch.ones_like(between[:, 0])))
        known = judged(self.known.rows, self.assigned, self.known.weights)
        return Reach.of(known, self.known.classes, self.known.sets, stand_ins, judged(*self.real), len(self.centroids))


def expected_f1(reach: Reach, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro F1 over the known classes and open if all radii are multiplied by each of ``sizes``.

    The mean over ``OPEN_PER_KNOWN``, the open rows being weighted accordingly, and over the kinds of open rows. Without
    open rows it is the known classes' F1 alone.

    Parameters
    ----------
    reach : Reach
    sizes : ndarray of shape (n_sizes,)
        Ascending.

    Returns
    -------
    ndarray of shape (n_sizes,)
    """
    known = Open(reach.known, reach.assigned, reach.weights)
    right = reach.assigned == reach.classes
    correct = _accepted(Open(*(values[right] for values in known)), sizes, reach.n_classes)
    answered = _accepted(known, sizes, reach.n_classes)
    support = np.bincount(reach.classes, reach.weights, minlength=reach.n_classes)
    present = support > 0
    if not len(reach.open):
        return np.asarray((2 * correct / np.maximum(answered + support, TINY))[:, present].mean(axis=1))
    n_known = reach.weights.sum()
    falsely_rejected = n_known - answered.sum(axis=1)
    values = []
    for kind, per_known in product(reach.open, OPEN_PER_KNOWN):
        opened, n_open = _accepted(kind, sizes, reach.n_classes), kind.weights.sum()
        n_rejected = n_open - opened.sum(axis=1)
        weight = per_known * n_known / n_open
        f1 = 2 * correct / np.maximum(answered + weight * opened + support, TINY)
        f1_open = 2 * weight * n_rejected / np.maximum(weight * (n_open + n_rejected) + falsely_rejected, TINY)
        values.append((f1[:, present].sum(axis=1) + f1_open) / (present.sum() + 1))
    return np.asarray(np.mean(values, axis=0))


def _accepted(rows: Open, sizes: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Weight of each class's rows that are accepted at each size, (n_sizes, n_classes)."""
    first = np.searchsorted(sizes, rows.reach, side="left")
    counts = np.bincount(first * n_classes + rows.assigned, rows.weights, minlength=(len(sizes) + 1) * n_classes)
    return np.asarray(counts.reshape(len(sizes) + 1, n_classes)[:-1].cumsum(axis=0))


def best_size(reach: Reach) -> tuple[float, float]:
    """Size by ``expected_f1``, and the best value that any size has; (1, 0) without known rows that have a reach.

    Many sizes are nearly as good as the best, which is best by chance. So the size is the geometric mean of all,
    weighted by ``near_best``. Without open rows, the smallest of the best.
    """
    sizes = _sizes(reach)
    if not len(sizes):
        return 1.0, 0.0
    scores = expected_f1(reach, sizes)
    best = float(scores.max())
    if not len(reach.open):
        return float(sizes[scores.argmax()]), best
    weights = near_best(scores, F1_ERROR / reach.n_independent**0.5)
    return float(np.exp(np.average(np.log(sizes), weights=weights))), best


def _sizes(reach: Reach) -> NDArray[np.float64]:
    """Sizes that are tried: reaches of known rows."""
    sizes = np.unique(reach.known[reach.known > 0])
    if len(sizes) > N_SIZES:
        sizes = np.unique(np.quantile(sizes, np.linspace(0, 1, N_SIZES), method="closest_observation"))
    return np.asarray(sizes)


def loss_size(reach: Reach, beta: float) -> float:
    """Size that minimises the paper's two losses on rows that trained nothing; 1 without open rows.

    The mean expansion loss (eq. 13) of the known rows plus the mean contraction loss (eq. 15) of rows of imaginary
    classes, or of real open ones where there are no others; distances in units of the standard deviation of the known
    ones, so that the exponential tail ends within their range. It never grows with β, since the slope of the
    contraction loss does.
    """
    sizes = _sizes(reach)
    if not len(sizes) or not reach.open:
        return 1.0
    between = reach.open[-1]
    mean_reach = np.average(reach.known, weights=reach.weights)
    unit = max(float(np.average((reach.known - mean_reach) ** 2, weights=reach.weights) ** 0.5), TINY * mean_reach)
    radii = torch.from_numpy(sizes / unit).unsqueeze(1)

    def mean(loss: Callable[..., Tensor], norms: NDArray[np.float64], weights: NDArray[np.float64]) -> Tensor:
        return loss(torch.from_numpy(norms / unit), radii) @ torch.from_numpy(weights / weights.sum())

    losses = mean(expansion_loss, reach.known, reach.weights)
    losses += mean(lambda norms, radii: contraction_loss(norms, radii, beta), between.reach, between.weights)
    return float(sizes[int(losses.argmin())])


def near_best(scores: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    """Weights of candidates by their expected F1: 1 for the best, 1/e for what is worse by the error of that F1.

    With few rows it is chance which candidate is best, and a mean is safer; with many the best stands alone.
    """
    return np.asarray(np.exp((scores - scores.max()) / max(error, SMALLEST_ERROR)))


def boundary_f1(reach: Reach, *, is_sized: bool) -> float:
    """Judge boundaries by their expected F1: at the best size if they are to be sized, else as they are."""
    if not len(reach.known):
        return 0.0
    return best_size(reach)[1] if is_sized else float(expected_f1(reach, np.ones(1))[0])
