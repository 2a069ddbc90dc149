"""Training rows with what they weigh and which of them are left out together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import median_abs_deviation
from torch import Tensor

from .duplicates import equal_rows, find_duplicates, in_order

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: An outlying row lies this many times as far from the middle of its class as its typical row, at least …
OUTLYING = 20.0
#: … and this many robust standard deviations beyond, in logarithms.
OUTLYING_DEVIATIONS = 10.0
#: Share of a class's rows that may be outlying: more of them are a part of the class.
MOST_OUTLYING = 0.05
#: Share of the rows that a block of groups joined by duplicates holds at most.
LARGEST_BLOCK = 0.2
#: A cluster of outlying rows that is nearer than this, in units of the class's typical row, may be a part of the class.
FARTHEST_CLUSTER = 1000.0
#: Rows at the very middle of a class.
SMALLEST_RATIO = 1e-12
#: Rows that tell how far a class reaches; a class of fewer rows is compared with the others.
FEWEST_ROWS_OF_REACH = 8


class Removal(NamedTuple):
    """Sets of one class's rows, each left out in turn, and the rows that are scored without them.

    Positions count the rows of the class; −1 pads.
    """

    members: Integers  # (n_sets, size) rows of the class that are left out
    scored: Integers  # (n_sets, n_scored) rows that are scored by what is left
    sets: Integers  # (n_sets,) which set


@dataclass(frozen=True)
class Samples:
    """Rows of known classes.

    A *unit* is a set of duplicates, which count as one observation. A *group* is what the user says belongs together;
    without that, the units are the groups. The *set* of a row is what is left out when the row is scored: its group,
    and its unit wherever that goes. *Blocks* cut neither a unit nor a group: whole blocks are held out.
    """

    rows: Tensor  # (n_samples, n_features)
    classes: Tensor  # (n_samples,)
    n_classes: int
    weights: Tensor  # (n_samples,) double
    units: Integers  # (n_samples,)
    groups: Integers  # (n_samples,)

    @classmethod
    def of(
        cls,
        rows: Tensor,
        classes: Tensor,
        n_classes: int | None = None,
        weights: Floats | None = None,
        units: Integers | None = None,
        groups: Integers | None = None,
    ) -> "Samples":
        """Fill in what is not said: every row weighs 1, and is a unit and a group of its own."""
        own = np.arange(len(rows))
        units = own if units is None else units
        return cls(
            rows,
            classes,
            int(classes.max()) + 1 if n_classes is None else n_classes,
            torch.from_numpy(np.ones(len(rows)) if weights is None else weights).to(rows.device),
            units,
            units if groups is None else groups,
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def of_classes(self, chosen: Tensor) -> "Samples":
        """Rows of the ``chosen`` classes, (n_classes,) Boolean."""
        return self.where(chosen[self.classes])

    def where(self, kept: Tensor) -> "Samples":
        """Rows that are ``kept``, (n_samples,) Boolean."""
        mask = kept.cpu().numpy()
        return Samples(
            self.rows[kept],
            self.classes[kept],
            self.n_classes,
            self.weights[kept],
            self.units[mask],
            self.groups[mask],
        )

    @cached_property
    def blocks(self) -> Integers:
        """Number of each row's block: the smallest sets of rows that cut neither a unit nor a group."""
        return joined(self.units, self.groups)

    @cached_property
    def _left_out(self) -> tuple[Integers, Integers, Integers]:
        """Set of each row, and all pairs of a set and a row in it: a row's group, and its duplicates wherever."""
        groups, units = in_order(self.groups), in_order(self.units)
        first = np.full(units.max(initial=0) + 1, -1)
        first[units[::-1]] = groups[::-1]
        crosses = np.isin(units, units[groups != first[units]])
        if not crosses.any():
            return groups, groups, np.arange(len(self))
        pairs, inverse = np.unique(np.stack([groups, units])[:, crosses], axis=1, return_inverse=True)
        sets, n_groups = groups.copy(), groups.max() + 1
        sets[crosses] = n_groups + inverse.ravel()
        wider = [np.flatnonzero((groups == group) | (units == unit)) for group, unit in pairs.T]
        numbers = np.repeat(n_groups + np.arange(len(wider)), [len(rows) for rows in wider])
        return sets, np.concatenate([groups, numbers]), np.concatenate([np.arange(len(self)), *wider])

    @property
    def sets(self) -> Integers:
        """Number of the set of rows that is left out when a row is judged, (n_samples,)."""
        return self._left_out[0]

    @property
    def n_independent(self) -> float:
        """Number of sets of equal weight that would say as much (Kish's effective sample size)."""
        return effective_number(self.weights.cpu().numpy(), self.sets)

    def removals(self, members: Tensor, label: int) -> tuple[list[Removal], Removal | None]:
        """List the sets to leave out of one class.

        Parameters
        ----------
        members : Tensor of shape (n_rows,)
            Rows of the class, in the order to count their positions.
        label : int

        Returns
        -------
        own : list of Removal
            For the rows of the class, one for each size of set.
        foreign : Removal or None
            Rows of other classes (numbered among all samples) whose set has rows in this class; ``None`` without any.
        """
        order = members.cpu().numpy()
        position = np.full(len(self), -1)
        position[order] = np.arange(len(order))
        sets, numbers, rows = self._left_out
        inside = position[rows] >= 0
        numbers, places = numbers[inside], position[rows[inside]]
        by_set = np.argsort(numbers, kind="stable")
        numbers, places = numbers[by_set], places[by_set]
        present, starts, sizes = np.unique(numbers, return_index=True, return_counts=True)
        judged_sets, judged_order = np.sort(sets[order], kind="stable"), np.argsort(sets[order], kind="stable")
        first = np.searchsorted(judged_sets, present)
        n_judged = np.searchsorted(judged_sets, present, side="right") - first
        own = []
        # Sets of about the same size are left out together.
        buckets = np.ceil(np.log2(sizes))
        for bucket in np.unique(buckets):
            mine = np.flatnonzero(buckets == bucket)
            own.append(
                Removal(
                    _padded(places, starts[mine], sizes[mine]),
                    _padded(judged_order, first[mine], n_judged[mine]),
                    present[mine],
                )
            )
        away = np.flatnonzero((self.classes.cpu().numpy() != label) & np.isin(sets, present))
        if not len(away):
            return own, None
        away = away[np.argsort(sets[away], kind="stable")]
        wanted, first, counts = np.unique(sets[away], return_index=True, return_counts=True)
        at = np.searchsorted(present, wanted)
        return own, Removal(_padded(places, starts[at], sizes[at]), _padded(away, first, counts), wanted)


def _padded(values: Integers, starts: Integers, sizes: Integers) -> Integers:
    """Lay runs of ``values`` out as the rows of a table, padded with −1."""
    columns = np.arange(sizes.max(initial=0))
    inside = columns < sizes[:, np.newaxis]
    places = np.where(inside, starts[:, np.newaxis] + columns, 0)
    return np.where(inside, values[places], -1)


def joined(units: Integers, groups: Integers) -> Integers:
    """Give the rows of each block a number: it cuts no group, and no unit as far as that is possible, (n_samples,).

    A text that every user sends once would join all users into one block. So units join groups, those that cross the
    fewest first, only as long as no block holds more than a fifth of the rows.
    """
    blocks, units = in_order(groups), in_order(units)
    pairs = np.unique(np.stack([units, blocks]), axis=1)
    crossing = np.flatnonzero(np.bincount(pairs[0]) > 1)
    most = max(LARGEST_BLOCK * len(units), float(np.bincount(blocks).max()))
    for unit in crossing[np.argsort(np.bincount(pairs[0])[crossing], kind="stable")]:
        together = np.isin(blocks, blocks[units == unit])
        if together.sum() <= most:
            blocks[together] = blocks[together].min()
    return in_order(blocks)


def effective_number(weights: Floats, sets: Integers) -> float:
    """Kish's effective sample size of sets of rows: (Σ w)² / Σ w²."""
    totals = np.bincount(np.unique(sets, return_inverse=True)[1].ravel(), weights)
    return float(totals.sum() ** 2 / max(float(np.square(totals).sum()), 1e-300))


class Gathered(NamedTuple):
    """Distinct rows and what each stands for."""

    rows: Integers  # (n_distinct,) the first of the equal rows
    weights: Floats  # (n_distinct,)
    units: Integers  # (n_distinct,)
    groups: Integers  # (n_distinct,)
    found: Integers  # (n_samples,) group of each row that was given

    def where(self, kept: NDArray[np.bool_]) -> "Gathered":
        """Rows that are ``kept``, (n_distinct,) Boolean; on average a unit of them weighs 1."""
        weights = normalized(self.weights[kept], self.units[kept])
        return Gathered(self.rows[kept], weights, self.units[kept], self.groups[kept], self.found)


def gather(
    features: NDArray[np.floating],
    classes: Integers,
    weights: Floats,
    groups: Integers | None,
    duplicates: str,
) -> Gathered:
    """Find duplicates, make one row of equal ones, and weigh the rows.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)
        Rows that are known to be open have a number of their own.
    weights : ndarray of shape (n_samples,)
        Positive.
    groups : ndarray of shape (n_samples,) or None
        Groups that are known, numbered; ``None`` takes the duplicates.
    duplicates : {"once", "each", "off"}
        Whether duplicates weigh together as much as their mean, or each its own weight, or are not looked for.
    """
    n_samples = len(features)
    units = np.arange(n_samples) if duplicates == "off" else find_duplicates(features, classes)
    found = units if groups is None else in_order(groups)
    if duplicates == "once":
        weights = weights / np.bincount(units)[units]
    # Equal rows are one row, unless they are independent of each other.
    keys = np.unique(np.stack([units, found, equal_rows(features, classes)]), axis=1, return_inverse=True)[1].ravel()
    same = in_order(keys) if len(np.unique(units)) < n_samples else np.arange(n_samples)
    rows = np.unique(same, return_index=True)[1]
    totals = np.bincount(same, weights).astype(np.float64)
    return Gathered(rows, normalized(totals, units[rows]), units[rows], found[rows], found)


def normalized(weights: Floats, units: Integers) -> Floats:
    """Scale weights so that on average a unit weighs 1: nothing depends on the unit of the weights."""
    scaled: Floats = weights * (len(np.unique(units)) / max(weights.sum(), 1e-300))
    if np.allclose(scaled, scaled[:1], rtol=1e-12):
        return np.full(len(scaled), round(float(scaled[0]), 12)) if len(scaled) else scaled
    return scaled


def find_scale(features: NDArray[np.floating], mean: Floats, weights: Floats) -> float:
    """Root mean squared distance of rows to their mean; 1 when that is 0. The weights sum to 1."""
    squares = np.einsum("ij,ij->i", centred := features - mean, centred)
    scale = float(np.sqrt(weights @ squares))
    # Equal rows differ from their mean by rounding alone.
    rounding = np.finfo(features.dtype).eps * float(np.linalg.norm(mean))
    return scale if scale > 4 * rounding else 1.0


def outlying_rows(features: Floats, classes: Integers) -> Integers:
    """Rows that lie so far from the middle of their class that its mean and scatter would be theirs alone.

    A row is outlying where its distance to the median of its class is more than ``OUTLYING`` times the class's median
    distance, and in logarithms more than ``OUTLYING_DEVIATIONS`` robust standard deviations of all rows beyond it.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)

    Returns
    -------
    rows : ndarray of shape (n_outlying,)
    """
    members = list(_members(classes))
    distances = np.zeros(len(features))
    typical = np.zeros(len(members))
    for k, rows in enumerate(members):
        distances[rows] = np.linalg.norm(features[rows] - np.median(features[rows], axis=0), axis=1)
        typical[k] = np.median(distances[rows])
    is_large = np.array([len(rows) >= FEWEST_ROWS_OF_REACH for rows in members])
    if not is_large.any() and len(features) >= FEWEST_ROWS_OF_REACH:  # many small classes: those of three rows or more
        is_large = np.array([len(rows) >= 3 for rows in members]) & (len(members) > 1)
    if not (is_large & (typical > 0)).any():
        return np.empty(0, dtype=np.int64)
    common = float(np.median(typical[is_large & (typical > 0)]))
    typical = np.where(is_large & (typical > 0), typical, np.maximum(typical, common))
    ratios = np.zeros(len(features))
    for k, rows in enumerate(members):
        ratios[rows] = np.log(np.maximum(distances[rows] / typical[k], SMALLEST_RATIO))
    deviation = float(median_abs_deviation(ratios, scale="normal"))
    limit = max(np.log(OUTLYING), OUTLYING_DEVIATIONS * deviation)
    found = [np.empty(0, dtype=np.int64)]
    for k, rows in enumerate(members):
        outlying = rows[ratios[rows] > limit]
        few = len(outlying) <= max(1, int(MOST_OUTLYING * len(rows))) < len(rows)
        farthest = FARTHEST_CLUSTER * typical[k]
        if few and not _is_cluster(features[outlying], distances[outlying], farthest):
            found.append(outlying)
    return np.sort(np.concatenate(found))


def _is_cluster(rows: Floats, distances: Floats, farthest: float) -> bool:
    """Whether outlying rows lie near each other, and not so far out that they must be broken."""
    if len(rows) < 3 or distances.max() > farthest:
        return False
    return bool(np.median(pdist(rows)) < np.median(distances) / 2)


def _members(classes: Integers) -> Iterator[Integers]:
    """Rows of each class."""
    order = np.argsort(classes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)
