"""The table of held-out samples, and their macro F1 at fixed open shares, for radii that are multiplied by s.

That F1 chooses the shrinkage of the closed form, and with a trainer the radius scale (``best_scale``). The threshold of
the closed form is placed by the model of the traffic instead (``_traffic_model.threshold:threshold_without_log``).

Known samples, scored without their sets, should lie inside the ellipsoid of the class that they are assigned to. Two
kinds of samples that stand in for open ones should lie outside:

1. The same samples, scored by the nearest class other than their own. For that class they are samples of an unknown
   class.
2. Samples of synthetic classes, each between two known ones, after the paper's pseudo-open mixtures. An encoder that
   separates the known classes puts unknown classes there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._samples.samples import effective_number
from .expected import NOTHING_TOLD, Expected

if TYPE_CHECKING:  # most baselines, and displays, need no torch
    from torch import Tensor

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A held-out sample keeps the rank of its class among this number of nearest classes.
N_FIRST = 3
#: Kinds of held-out samples: known; known, without their class; of synthetic classes; really open; open messages that
#: were learned, which count as labels of a log.
KNOWN, OF_OTHER_CLASS, SYNTHETIC, REAL, LEARNED = range(5)
#: Open samples per known sample. The true ratio is unknown, so the F1 is the mean over a quarter, a half and
#: three quarters of open samples. With a trained encoder other means lose 0.7 to 9 points
#: (skellipsoid-bench/TRIED.md, *Before*).
OPEN_PER_KNOWN = (1 / 3, 1.0, 3.0)
#: Standard error of this F1 of m samples, times √m, where nine in ten are right: √(0.9 · 0.1). With half of it
#: F1 gains up to 0.6 and loses 0.1, with twice it loses up to 1.5 (skellipsoid-bench/results/constants.rst).
F1_STANDARD_ERROR = 0.3
#: Rounding: smaller errors and denominators are taken as these.
SMALLEST_STANDARD_ERROR, TINY = 1e-9, 1e-12
#: Relative tolerance: a sample on the boundary stays inside after its distance was rounded to single precision.
BOUNDARY_TOLERANCE = 1e-5
#: Smallest number of sets per class that judge a boundary well. With fewer, in hundreds of dimensions, held-out and new
#: samples are rejected at rates that differ by 5 to 24 points, and up to 70 % of open samples are accepted
#: (skellipsoid-bench/studies/few_samples.py --wide).
FEWEST_OF_CLASS = 10
#: Largest number of candidates of a radius scale, for speed alone; it is an average of them. With 100 and 2,000, F1 is
#: within 0.1 (skellipsoid-bench/results/constants.rst).
N_CANDIDATES = 500
#: Largest number of fresh samples that say nothing about the spread of their distances. Chosen by hand.
FEWEST_WITH_SPREAD = 8


#: Of samples whose ranks and gaps are not given.
_NO_RANKS, _NO_GAPS = np.zeros(0, dtype=np.int64), np.zeros(0)


@dataclass(frozen=True)
class HeldOutTable:
    """Samples that are scored by boundaries without them, one entry of each column for a sample.

    The closed form, the trainer and ``threshold="auto"`` of the baselines choose by it, the fit keeps it, and the model
    of the traffic compares new scores with it.
    """

    kinds: NDArray[np.int64]  # KNOWN, OF_OTHER_CLASS, SYNTHETIC, REAL or LEARNED
    # ‖Σ_k^(−1/2) (z − m_k)‖ / g_k in closed form, ‖A_k (z − m_k)‖ / Δ_k of a trainer, or a baseline's score times −1:
    # accepted if ≤ s. ``kept`` divides by s.
    distances: NDArray[np.float64]
    assigned: NDArray[np.int64]  # class k that scores
    classes: NDArray[np.int64]  # own class; the number of classes without one
    weights: NDArray[np.float64]
    sets: NDArray[np.int64]  # known samples with the same number depend on each other
    n_classes: int
    mean_error: float = 0.0  # e, see ``class_sizes``
    of_distance_0: float = 0.0  # score of a distance of 0: 1 of kept margins, −threshold of a baseline
    expected: Expected = NOTHING_TOLD  # of the traffic
    # Place of the own class in the order of the classes, 1 to 3; 0 where it is none of these, or nobody asks.
    ranks: NDArray[np.int64] = field(default_factory=lambda: _NO_RANKS)
    # Between the first two classes, in squares of ``distances``; infinite with one class, or where nobody asks.
    gaps: NDArray[np.float64] = field(default_factory=lambda: _NO_GAPS)

    def __post_init__(self) -> None:
        """Fill in ranks and gaps that are not given."""
        if len(self.ranks) < len(self):
            object.__setattr__(self, "ranks", np.zeros(len(self), dtype=np.int64))
            object.__setattr__(self, "gaps", np.full(len(self), np.inf))

    @classmethod
    def of(
        cls,
        n_classes: int,
        kind: int,
        distances: "Tensor",
        assigned: "Tensor",
        classes: "Tensor | None" = None,
        weights: "Tensor | None" = None,
        sets: NDArray[np.int64] | None = None,
        ranks: NDArray[np.int64] = _NO_RANKS,
        gaps: NDArray[np.float64] = _NO_GAPS,
    ) -> "HeldOutTable":
        """Convert tensors of samples of one kind; every sample weighs 1 without ``weights``."""
        n_samples = len(distances)
        return cls(
            np.full(n_samples, kind),
            _double(distances),
            assigned.cpu().numpy(),
            np.full(n_samples, n_classes) if classes is None else classes.cpu().numpy(),
            np.ones(n_samples) if weights is None else _double(weights),
            np.zeros(n_samples, dtype=np.int64) if sets is None else sets,
            n_classes,
            ranks=ranks,
            gaps=gaps,
        )

    @staticmethod
    def joined(parts: Iterable["HeldOutTable"], mean_error: float = 0.0) -> "HeldOutTable":
        """Append samples to each other."""
        first, *more = parts
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in (first, *more)]) for name in _COLUMNS
        }
        return replace(first, mean_error=mean_error, **columns)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.kinds)

    def where(self, chosen: NDArray[np.bool_]) -> "HeldOutTable":
        """Select samples that are ``chosen``, (n_samples,) Boolean."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the parts that were selected."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    @cached_property
    def known(self) -> "HeldOutTable":
        """Known samples."""
        return self.where(self.kinds == KNOWN)

    @cached_property
    def other_class(self) -> "HeldOutTable":
        """Samples that are scored without their class."""
        return self.where(self.kinds == OF_OTHER_CLASS)

    @cached_property
    def synthetic(self) -> "HeldOutTable":
        """Samples of synthetic classes."""
        return self.where(self.kinds == SYNTHETIC)

    @cached_property
    def real(self) -> "HeldOutTable":
        """Training samples with the open label."""
        return self.where(self.kinds == REAL)

    @cached_property
    def open(self) -> list["HeldOutTable"]:
        """Kinds of samples that stand in for open ones, none of them empty; the real ones are added to each."""
        present = [kind for kind in (OF_OTHER_CLASS, SYNTHETIC) if (self.kinds == kind).any()]
        found = [self.where((self.kinds == kind) | (self.kinds == REAL)) for kind in present or [REAL]]
        return [opened for opened in found if len(opened)]

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether a sample is open, or stands in for an open one."""
        return np.asarray(self.kinds != KNOWN)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores as the fit gives them: of a kept table margins, 0 on the boundary, negative outside."""
        return self.of_distance_0 - self.distances

    def kept(self, scale: float) -> "HeldOutTable | None":
        """Return what a fit keeps: distances and gaps at the radius scale; ``None`` if no sample is known."""
        if not len(self.known):
            return None
        return replace(self, distances=self.distances / scale, gaps=self.gaps / scale**2, of_distance_0=1.0)

    def with_fresh(self, fresh: "HeldOutTable") -> "HeldOutTable":
        """Append fresh samples, which nothing was fitted to, and give the known ones their location and spread."""
        is_known = self.kinds == KNOWN
        distances = self.distances.copy()
        distances[is_known] = _as_fresh(self.known, fresh)
        return HeldOutTable.joined([replace(self, distances=distances), fresh], self.mean_error)

    @cached_property
    def n_independent(self) -> float:
        """Effective sample size of the known samples: a forecast is no surer than that."""
        return effective_number(self.known.weights, self.known.sets)

    @cached_property
    def n_other_classes(self) -> float:
        """Effective number of held-out classes, infinite without one."""
        found = self.other_class
        return effective_number(found.weights, found.classes) if len(found) else np.inf


#: Columns of the table, one entry for each sample.
_OF_ALL = ("n_classes", "mean_error", "of_distance_0", "expected")
_COLUMNS = [column.name for column in fields(HeldOutTable) if column.name not in _OF_ALL]


def ranks_and_gaps(
    first: NDArray[np.int64], compared: NDArray[np.float64], own: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Place of a sample's own class among the first classes, and the gap between the first two of these.

    Parameters
    ----------
    first : ndarray of shape (n_samples, n_first)
        Classes, in any order; one that occurs again stands for none.
    compared : ndarray of shape (n_samples, n_first)
        What is least of the class that comes first.
    own : ndarray of shape (n_samples,), default=None
        Without it all ranks are 0.
    """
    is_again = np.zeros(first.shape, dtype=bool)
    for place in range(1, first.shape[1]):
        is_again[:, place] = (first[:, :place] == first[:, place, np.newaxis]).any(axis=1)
    compared = np.where(is_again, np.inf, compared)
    order = np.argsort(compared, axis=1, kind="stable")
    lowest = np.take_along_axis(compared, order, axis=1)
    if own is None:
        return np.zeros(len(first), dtype=np.int64), gap_of(lowest)
    is_own = (np.take_along_axis(first, order, axis=1) == own[:, np.newaxis]) & np.isfinite(lowest)
    return np.where(is_own.any(axis=1), is_own.argmax(axis=1) + 1, 0), gap_of(lowest)


def gap_of(compared: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much the second column exceeds the first, (n_samples,); infinite without a second class."""
    found = np.full(len(compared), np.inf)
    if compared.shape[1] > 1:
        np.subtract(compared[:, 1], compared[:, 0], out=found, where=np.isfinite(compared[:, 1]))
    return found


def _as_fresh(known: HeldOutTable, fresh: HeldOutTable) -> NDArray[np.float64]:
    """Distances of held-out known samples, mapped to the location and spread of those of fresh ones.

    In logarithms, over the classes in the proportions of the fresh samples. Each of the two differences counts by its
    evidence, d² / (d² + s²) with the standard error s: a clear one entirely, however few fresh samples show it.
    """
    counts = np.bincount(fresh.classes, fresh.weights, minlength=fresh.n_classes)
    totals = np.bincount(known.classes, known.weights, minlength=fresh.n_classes)
    weights = known.weights * (counts / np.maximum(totals, TINY))[known.classes]
    old = known.where((weights > 0) & (known.distances > TINY))
    new = fresh.where((totals[fresh.classes] > 0) & (fresh.distances > TINY) & (fresh.weights > 0))
    if not len(old) or not len(new):
        return known.distances
    weights = weights[(weights > 0) & (known.distances > TINY)]
    (centre, deviation), (of_new, new_deviation) = _moments(old, weights), _moments(new, new.weights)
    n_old, n_new = effective_number(weights, old.sets), effective_number(new.weights, new.sets)
    variance = 1 / n_old + 1 / n_new
    shift = _by_evidence(of_new - centre, max(deviation, new_deviation) ** 2 * variance)
    widening = 1.0
    if n_new > FEWEST_WITH_SPREAD and min(deviation, new_deviation) > SMALLEST_STANDARD_ERROR:
        # The logarithm of a deviation has half of this variance with normal tails, and all of it with heavier ones.
        widening = np.exp(_by_evidence(np.log(new_deviation / deviation), variance))
    logs = np.log(np.maximum(known.distances, TINY))
    return np.where(known.distances > TINY, np.exp(centre + shift + widening * (logs - centre)), known.distances)


def _moments(samples: HeldOutTable, weights: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation of the logarithms of distances."""
    logs = np.log(samples.distances)
    mean = np.average(logs, weights=weights)
    return float(mean), float(np.average((logs - mean) ** 2, weights=weights) ** 0.5)


def _by_evidence(difference: float, variance: float) -> float:
    return difference**3 / max(difference**2 + variance, TINY)


def _double(values: "Tensor") -> NDArray[np.float64]:
    return values.cpu().numpy().astype(np.float64)


def f1_at_fixed_shares(
    held_out: HeldOutTable, scales: NDArray[np.float64], open_per_known: Sequence[float] = OPEN_PER_KNOWN
) -> NDArray[np.float64]:
    """Macro F1 over the known classes and open if all radii are multiplied by each of ``scales``.

    The mean over the kinds of open samples and over ``open_per_known``, for which the open samples are weighted.
    Without open samples it is the macro F1 of the known classes.

    Parameters
    ----------
    held_out : HeldOutTable
    scales : ndarray of shape (n_scales,)
        Ascending.
    open_per_known : sequence of float

    Returns
    -------
    ndarray of shape (n_scales,)
    """
    known = held_out.known
    correct = _accepted(known.where(known.assigned == known.classes), scales)
    answered = _accepted(known, scales)
    support = np.bincount(known.classes, known.weights, minlength=held_out.n_classes)
    present = support > 0
    if not held_out.open:
        return np.asarray((2 * correct / np.maximum(answered + support, TINY))[:, present].mean(axis=1))
    n_known = known.weights.sum()
    falsely_rejected = n_known - answered.sum(axis=1)
    values = []
    for kind, per_known in product(held_out.open, open_per_known):
        accepted, n_open = _accepted(kind, scales), kind.weights.sum()
        n_rejected = n_open - accepted.sum(axis=1)
        weight = per_known * n_known / n_open
        f1 = 2 * correct / np.maximum(answered + weight * accepted + support, TINY)
        f1_open = 2 * weight * n_rejected / np.maximum(weight * (n_open + n_rejected) + falsely_rejected, TINY)
        values.append((f1[:, present].sum(axis=1) + f1_open) / (present.sum() + 1))
    return np.asarray(np.mean(values, axis=0))


def _accepted(samples: HeldOutTable, scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each class's samples that are accepted at each radius scale, (n_scales, n_classes)."""
    first, n_classes = np.searchsorted(scales, samples.distances, side="left"), samples.n_classes
    counts = np.bincount(first * n_classes + samples.assigned, samples.weights, minlength=(len(scales) + 1) * n_classes)
    return np.asarray(counts.reshape(len(scales) + 1, n_classes)[:-1].cumsum(axis=0))


def best_scale(held_out: HeldOutTable) -> tuple[float, float]:
    """Radius scale by ``f1_at_fixed_shares``, and the best F1 of any candidate; (1, 0) without a distance above 0.

    The closed form takes the F1 alone, to compare shapes; its scale is that of ``threshold_without_log``.

    The single best candidate is a noisy estimate. So the scale is the geometric mean of all candidates, weighted by
    ``near_best``. Without open samples it is the smallest of the best candidates.
    """
    scales = _candidate_scales(held_out)
    if not len(scales):
        return 1.0, 0.0
    scores = f1_at_fixed_shares(held_out, scales)
    best = float(scores.max())
    if not held_out.open:
        return float(scales[scores.argmax()]), best
    weights = near_best(scores, F1_STANDARD_ERROR / held_out.n_independent**0.5)
    return float(np.exp(np.average(np.log(scales), weights=weights))), best


def _candidate_scales(held_out: HeldOutTable) -> NDArray[np.float64]:
    """Distances of known samples."""
    distances = held_out.known.distances
    return candidates(distances[distances > 0])


def candidates(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distinct values, or ``N_CANDIDATES`` quantiles of them, in ascending order."""
    found = np.unique(values)
    if len(found) > N_CANDIDATES:
        found = np.unique(np.quantile(found, np.linspace(0, 1, N_CANDIDATES), method="closest_observation"))
    return np.asarray(found)


def near_best(scores: NDArray[np.float64], standard_error: float) -> NDArray[np.float64]:
    """Weights of candidates, exp((F1 − best F1) / standard error).

    With few samples many candidates count, which reduces the variance; with many only the best.
    """
    return np.asarray(np.exp((scores - scores.max()) / max(standard_error, SMALLEST_STANDARD_ERROR)))


def quantile(scores: Floats, weights: Floats, proportion: float) -> float:
    """Largest score below which at most a proportion of the weight lies."""
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]
    return float(scores[order][int((below <= proportion * weights.sum() * (1 + 1e-12)).sum()) - 1])


def best_threshold(held_out: HeldOutTable) -> float:
    """Threshold by the expected macro F1 over known classes and open, as the ellipsoids' size is chosen.

    The mean of all candidates, weighted by ``near_best``: with few samples it is chance which candidate is best.
    """
    distances = candidates(held_out.known.distances)
    f1 = f1_at_fixed_shares(held_out, distances)
    return -float(np.average(distances, weights=near_best(f1, F1_STANDARD_ERROR / held_out.n_independent**0.5)))
