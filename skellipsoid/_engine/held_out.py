"""Rows that boundaries were made without: when to stop learning, which shape, and how large.

Such rows should lie inside the ellipsoid of the class that they are assigned to. Two kinds of rows stand in for open
ones, and should lie outside. The same rows, their own class left aside: to the ellipsoid of the nearest other class
they are what an unknown class would be. And rows of imaginary classes between two known ones, after the paper's
pseudo-open mixtures: there an encoder that drives the known classes apart leaves the unknown ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .geometry import Factors, assigned_norms, nearest_centroid, nearest_other
from .training import held_out_rows

#: How many open rows there are for each known one, in the mean over which a boundary is judged: nobody knows it, so a
#: quarter, a half and three quarters of all rows count alike.
OPEN_PER_KNOWN = (1 / 3, 1.0, 3.0)
#: The expected F1 of m rows, of which nine in ten are right, is known to about this over √m.
F1_ERROR = 0.3
SMALLEST_ERROR = 1e-9
#: Sizes that are tried, at the reaches of as many known rows.
N_SIZES = 500


#: Norms of rows as multiples of the radius, and the class that judges each.
Judged = tuple[Tensor, Tensor]


class Open(NamedTuple):
    """How far out open rows, or what stands in for them, lie."""

    reach: NDArray[np.float64]  # (n_open,)
    assigned: NDArray[np.int64]  # (n_open,) class whose ellipsoid judges


@dataclass(frozen=True)
class Reach:
    """How far out rows lie, as multiples of the radius: a row is accepted at size s where its reach is at most s."""

    known: NDArray[np.float64]  # (n_known,)
    classes: NDArray[np.int64]  # (n_known,) true class
    assigned: NDArray[np.int64]  # (n_known,) class whose ellipsoid judges
    open: list[Open]  # kinds of open rows, none of them empty
    n_classes: int

    @classmethod
    def of(cls, known: Judged, classes: Tensor, stand_ins: Sequence[Judged], real: Judged, n_classes: int) -> "Reach":
        """Collect what rows' norms, as multiples of the radius, say: each kind of stand-in joins the real open rows."""

        def opened(*kinds: Judged) -> Open:
            reach, assigned = (torch.cat(parts).cpu().numpy() for parts in zip(*kinds, strict=True))
            return Open(reach.astype(np.float64), assigned)

        kinds = [opened(kind, real) for kind in stand_ins if len(kind[0])]
        if not kinds and len(real[0]):
            kinds = [opened(real)]
        reach, assigned = opened(known)
        return cls(reach, classes.cpu().numpy(), assigned, kinds, n_classes)


Rows = tuple[Tensor, Tensor, Tensor]


def hold_out(
    known: Tensor, classes: Tensor, real_open: Tensor, fraction: float, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Split (known, classes, real_open) into rows that learn and rows that are held out."""
    held = torch.from_numpy(held_out_rows(classes.cpu().numpy(), fraction, rng)).to(known.device)
    open_held = torch.from_numpy(rng.random(len(real_open)) < fraction).to(known.device)
    return (known[~held], classes[~held], real_open[~open_held]), (known[held], classes[held], real_open[open_held])


class HeldOutRows:
    """Held-out rows of known classes, and real open ones, with what does not change while matrices are learned.

    Parameters
    ----------
    known : Tensor of shape (n_known, n_features)
    classes : Tensor of shape (n_known,)
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    points : Tensor of shape (n_classes,)
        Classes without a shape; their rows say nothing about sizes.
    unknown : Tensor of shape (n_classes,), optional
        Boolean: classes that judge nobody, and whose rows are the open ones. Without it every known row is open once,
        its own class aside.
    """

    def __init__(
        self,
        known: Tensor,
        classes: Tensor,
        real_open: Tensor,
        centroids: Tensor,
        points: Tensor,
        unknown: Tensor | None = None,
    ) -> None:
        known, classes = known[~points[classes]], classes[~points[classes]]
        self.centroids = centroids
        judging = centroids.new_zeros(len(centroids))
        as_known = as_open = torch.ones(len(known), dtype=torch.bool, device=known.device)
        if unknown is not None:
            judging[unknown] = -torch.inf
            as_known, as_open = ~unknown[classes], unknown[classes]
        self.known, self.classes = known[as_known], classes[as_known]
        self.assigned = nearest_centroid(self.known, centroids, judging)
        self.real = real_open, nearest_centroid(real_open, centroids, judging)
        others = known[as_open][: None if len(centroids) > 1 else 0]
        self.others = others, nearest_other(others, classes[as_open][: len(others)], centroids, judging)

    def __len__(self) -> int:
        """Return the number of held-out known rows."""
        return len(self.known)

    def reach(self, shapes: Factors, radii: Tensor, between: Tensor | None = None) -> Reach:
        """How far out the rows, and rows between the classes if there are, lie with the present matrices."""

        def judged(rows: Tensor, assigned: Tensor) -> Judged:
            return assigned_norms(rows, assigned, self.centroids, shapes) / radii[assigned], assigned

        stand_ins = [judged(*self.others)]
        if between is not None:
            stand_ins.append(judged(between, nearest_centroid(between, self.centroids)))
        known = judged(self.known, self.assigned)
        return Reach.of(known, self.classes, stand_ins, judged(*self.real), len(self.centroids))


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
    right = reach.assigned == reach.classes
    correct = _accepted(reach.known[right], reach.classes[right], sizes, reach.n_classes)
    answered = _accepted(reach.known, reach.assigned, sizes, reach.n_classes)
    support = np.bincount(reach.classes, minlength=reach.n_classes)
    present = support > 0
    if not len(reach.open):
        return np.asarray((2 * correct / np.maximum(answered + support, 1))[:, present].mean(axis=1))
    falsely_rejected = len(reach.known) - answered.sum(axis=1)
    values = []
    for kind, per_known in product(reach.open, OPEN_PER_KNOWN):
        opened, n_open = _accepted(*kind, sizes, reach.n_classes), len(kind.reach)
        n_rejected = n_open - opened.sum(axis=1)
        weight = per_known * len(reach.known) / n_open
        f1 = 2 * correct / np.maximum(answered + weight * opened + support, 1e-12)
        f1_open = 2 * weight * n_rejected / (weight * (n_open + n_rejected) + falsely_rejected)
        values.append((f1[:, present].sum(axis=1) + f1_open) / (present.sum() + 1))
    return np.asarray(np.mean(values, axis=0))


def _accepted(
    values: NDArray[np.float64], assigned: NDArray[np.int64], sizes: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    """Rows of each class that are accepted at each size, (n_sizes, n_classes)."""
    first = np.searchsorted(sizes, values, side="left")
    counts = np.bincount(first * n_classes + assigned, minlength=(len(sizes) + 1) * n_classes)
    return counts.reshape(len(sizes) + 1, n_classes)[:-1].cumsum(axis=0).astype(float)


def best_size(reach: Reach) -> tuple[float, float]:
    """Size by ``expected_f1``, and the best value that any size has; (1, 0) without known rows that have a reach.

    Many sizes are nearly as good as the best, which is best by chance. So the size is the geometric mean of all,
    weighted by ``near_best``. Without open rows, the smallest of the best.
    """
    sizes = np.unique(reach.known[reach.known > 0])
    if not len(sizes):
        return 1.0, 0.0
    if len(sizes) > N_SIZES:
        sizes = np.unique(np.quantile(sizes, np.linspace(0, 1, N_SIZES), method="closest_observation"))
    scores = expected_f1(reach, sizes)
    best = float(scores.max())
    if not len(reach.open):
        return float(sizes[scores.argmax()]), best
    weights = near_best(scores, F1_ERROR / len(reach.known) ** 0.5)
    return float(np.exp(np.average(np.log(sizes), weights=weights))), best


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
