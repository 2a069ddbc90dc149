"""Training samples, their weights, and which of them are left out together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import median_abs_deviation

from .equal import in_order

if TYPE_CHECKING:  # metrics need no torch
    from torch import Tensor

    from .moments import ClassMoments

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Outliers. Half or twice of any of these changes no F1 in results/constants.rst, but for 20 deviations: −2.6
# on digits with one wild sample in a hundred.
#: Smallest distance of an outlier from the median of its class, in units of the median distance.
OUTLYING = 20.0
#: Smallest logarithm of that ratio, in robust standard deviations of all samples.
OUTLYING_DEVIATIONS = 10.0
#: Smallest ratio of a distance to the median distance, for its logarithm.
SMALLEST_RATIO = 1e-12
#: Number of fresh samples whose distances, relative to those of the others, are trusted by half; chosen by hand.
HALF_FRESH = 20
#: Smallest class with a median distance of its own; smaller classes are compared with the others.
FEWEST_WITH_OWN_MEDIAN = 8


class SetRuns(NamedTuple):
    """The sets that are left out."""

    members: Integers  # samples of all sets, one set after another
    starts: Integers  # (n_sets,) where a set begins in ``members``
    sizes: Integers  # (n_sets,)
    numbers: Integers  # (n_samples,) of the set that is left out when a sample is scored

    def table(self, chosen: Integers) -> Integers:
        """Members of ``chosen`` sets, (n_chosen, size of the largest); −1 pads."""
        sizes = self.sizes[chosen][:, np.newaxis]
        columns = np.arange(sizes.max(initial=0))
        places = np.where(columns < sizes, self.starts[chosen][:, np.newaxis] + columns, 0)
        return np.where(columns < sizes, self.members[places], -1)


@dataclass(frozen=True)
class Samples:
    """Samples of known classes.

    - A *unit* are duplicates, which count as one observation.
    - A *group* is given by the user: samples that depend on each other. Without groups the units are the groups.
    - The *set* of a sample is left out when the sample is scored: its group, and its unit in all groups.
    - A *block* divides no group, and as few units as possible (``joined``). Whole blocks are held out.

    They may be drawn from more samples, whose counts, means and scatters are then the ``moments``. Each drawn sample
    stands for ``n_represented`` samples of its class where samples are counted, and for itself where it is left out.
    """

    features: "Tensor"  # (n_samples, n_features)
    classes: "Tensor"  # (n_samples,)
    n_classes: int
    weights: "Tensor"  # (n_samples,) double
    units: Integers  # (n_samples,)
    groups: Integers  # (n_samples,)
    moments: "ClassMoments | None" = None  # of all samples of all classes, each of them a unit of weight 1
    n_represented: "Tensor | None" = None  # (n_samples,) double; 1 without it

    @classmethod
    def of(
        cls,
        features: "Tensor",
        classes: "Tensor",
        n_classes: int | None = None,
        weights: Floats | None = None,
        units: Integers | None = None,
        groups: Integers | None = None,
    ) -> "Samples":
        """Fill in defaults: every sample weighs 1, and is a unit and a group of its own."""
        import torch

        own = np.arange(len(features))
        units = own if units is None else units
        return cls(
            features,
            classes,
            int(classes.max()) + 1 if n_classes is None else n_classes,
            torch.from_numpy(np.ones(len(features)) if weights is None else weights).to(features.device),
            units,
            units if groups is None else groups,
        )

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.features)

    @property
    def n_all(self) -> int:
        """Number of the samples, and of those that they were drawn from."""
        return len(self) if self.moments is None else self.moments.total

    @property
    def counted_weights(self) -> "Tensor":
        """Weight of each sample, and of those that it stands for, (n_samples,)."""
        return self.weights if self.n_represented is None else self.weights * self.n_represented

    def of_classes(self, chosen: "Tensor") -> "Samples":
        """Select samples of the ``chosen`` classes, (n_classes,) Boolean."""
        return self.where(chosen[self.classes])

    def where(self, chosen: "Tensor") -> "Samples":
        """Select samples that are ``chosen``, (n_samples,) Boolean; not of samples that stand for others."""
        if self.moments is not None:
            raise ValueError("Samples with the moments of others cannot be selected.")
        mask = chosen.cpu().numpy()
        return Samples(
            self.features[chosen],
            self.classes[chosen],
            self.n_classes,
            self.weights[chosen],
            self.units[mask],
            self.groups[mask],
        )

    @cached_property
    def blocks(self) -> Integers:
        """Number of each sample's block."""
        return joined(self.units, self.groups)

    @cached_property
    def _left_out(self) -> tuple[Integers, Integers, Integers]:
        """Set of each sample (its group and its duplicates); then all pairs of a set and a member, in two arrays."""
        groups, units = in_order(self.groups), in_order(self.units)
        first = np.full(units.max(initial=0) + 1, -1)
        first[units[::-1]] = groups[::-1]
        crosses = np.isin(units, units[groups != first[units]])
        if not crosses.any():
            return groups, groups, np.arange(len(self))
        pairs, inverse = np.unique(np.stack([groups, units])[:, crosses], axis=1, return_inverse=True)
        members = [np.flatnonzero((groups == group) | (units == unit)) for group, unit in pairs.T]
        # Two groups may have the same set: each is one sample of the same unit.
        distinct: dict[bytes, int] = {}
        same = np.array([distinct.setdefault(own.tobytes(), len(distinct)) for own in members])
        wider = [members[first] for first in np.unique(same, return_index=True)[1]]
        sets, n_groups = groups.copy(), groups.max() + 1
        sets[crosses] = n_groups + same[inverse.ravel()]
        numbers = np.repeat(n_groups + np.arange(len(wider)), [len(own) for own in wider])
        return sets, np.concatenate([groups, numbers]), np.concatenate([np.arange(len(self)), *wider])

    @property
    def sets(self) -> Integers:
        """Number of the set that is left out when a sample is scored, (n_samples,)."""
        return self._left_out[0]

    def set_runs(self) -> SetRuns:
        """List the sets to leave out."""
        sets, numbers, members = self._left_out
        order = np.argsort(numbers, kind="stable")
        found, of_sample = np.unique(sets, return_inverse=True)
        starts, ends = (np.searchsorted(numbers[order], found, side) for side in ("left", "right"))
        return SetRuns(members[order], starts, ends - starts, of_sample)


def joined(units: Integers, groups: Integers) -> Integers:
    """Assign each sample the number of its block, (n_samples,): blocks divide no group, and as few units as possible.

    A text that every user sends once would join all users into one block. So units join groups, those in the fewest
    groups first, as long as no block has more than a fifth of the samples.
    """
    blocks, units = in_order(groups), in_order(units)
    pairs = np.unique(np.stack([units, blocks]), axis=1)
    crossing = np.flatnonzero(np.bincount(pairs[0]) > 1)
    most = max(len(units) / 5, float(np.bincount(blocks).max()))
    for unit in crossing[np.argsort(np.bincount(pairs[0])[crossing], kind="stable")]:
        together = np.isin(blocks, blocks[units == unit])
        if together.sum() <= most:
            blocks[together] = blocks[together].min()
    return in_order(blocks)


def effective_number(weights: Floats, sets: Integers) -> float:
    """Kish's effective sample size of sets of samples: (Σ w)² / Σ w²."""
    totals = np.bincount(np.unique(sets, return_inverse=True)[1].ravel(), weights)
    return float(totals.sum() ** 2 / max(float(np.square(totals).sum()), 1e-300))


def find_scale(features: NDArray[np.floating], mean: Floats, weights: Floats) -> float:
    """Root mean squared distance of samples to their mean; 1 when that is 0. The weights sum to 1."""
    squares = np.einsum("ij,ij->i", centred := features - mean, centred)
    return usable_scale(float(np.sqrt(weights @ squares)), mean, features.dtype)


def fresh_weight(n_fresh: float) -> float:
    """Shrinkage weight of the logarithm of a ratio that is estimated with ``n_fresh`` fresh samples."""
    return n_fresh / (n_fresh + HALF_FRESH)


def of_unit_length(features: NDArray[Any]) -> NDArray[Any]:
    """Divide samples by their length, in any units; samples of zeros stay.

    scikit-learn's ``normalize`` takes samples shorter than ten times the rounding for zeros.
    """
    for norm in (np.inf, 2):  # squares of a sample whose largest value is 1 do not underflow
        lengths = np.linalg.norm(features, norm, axis=1, keepdims=True)
        features = features / np.where(lengths > 0, lengths, 1)
    return features


def usable_scale(scale: float, mean: Floats, dtype: np.dtype[Any]) -> float:
    """Return the scale of features of a precision, or 1 where it is 0 up to rounding."""
    # Equal samples differ from their mean by rounding alone.
    rounding = np.finfo(dtype).eps * float(np.linalg.norm(mean))
    return scale if scale > 4 * rounding else 1.0


def find_outliers(features: Floats, classes: Integers) -> Integers:
    """Find samples so far from their class that they would dominate its mean and scatter.

    The criterion is the distance of a sample to the median of its class, divided by the class's median distance. A
    sample is an outlier if this ratio is above ``OUTLYING``, and its logarithm is above ``OUTLYING_DEVIATIONS`` times
    the robust standard deviation of the logarithms of all samples.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)

    Returns
    -------
    numbers : ndarray of shape (n_outlying,)
    """
    members = list(members_of(classes))
    distances = np.zeros(len(features))
    typical = np.zeros(len(members))
    for k, own in enumerate(members):
        part = features[own].astype(np.float64, copy=False)
        distances[own] = np.linalg.norm(part - np.median(part, axis=0), axis=1)
        typical[k] = np.median(distances[own])
    is_large = np.array([len(own) >= FEWEST_WITH_OWN_MEDIAN for own in members])
    # With many small classes, those of three samples or more.
    if not is_large.any() and len(features) >= FEWEST_WITH_OWN_MEDIAN:
        is_large = np.array([len(own) >= 3 for own in members]) & (len(members) > 1)
    if not (is_large & (typical > 0)).any():
        return np.empty(0, dtype=np.int64)
    common = float(np.median(typical[is_large & (typical > 0)]))
    typical = np.where(is_large & (typical > 0), typical, np.maximum(typical, common))
    ratios = np.zeros(len(features))
    for k, own in enumerate(members):
        ratios[own] = np.log(np.maximum(distances[own] / typical[k], SMALLEST_RATIO))
    deviation = float(median_abs_deviation(ratios, scale="normal"))
    threshold = max(np.log(OUTLYING), OUTLYING_DEVIATIONS * deviation)
    found = [np.empty(0, dtype=np.int64)]
    for k, own in enumerate(members):
        outlying = own[ratios[own] > threshold]
        few = len(outlying) <= max(1, len(own) // 20) < len(own)  # more than 5 % of them belong to the class
        if few and not _is_cluster(features[outlying] / typical[k], distances[outlying] / typical[k]):
            found.append(outlying)
    return np.sort(np.concatenate(found))


def _is_cluster(features: Floats, distances: Floats) -> bool:
    """Whether outliers lie near each other, and not so far out that they must be errors; in typical distances."""
    if len(features) < 3 or distances.max() > 1000:
        return False
    return bool(np.median(pdist(features)) < np.median(distances) / 2)


def members_of(classes: Integers) -> Iterator[Integers]:
    """List the samples of each class."""
    order = np.argsort(classes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)
