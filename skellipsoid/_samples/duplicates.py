"""Exact and near duplicates among the samples of each class, found from their features.

Two samples are near duplicates if they lie improbably near each other for the local density of their class. In m
dimensions the proportion (h / r)^m of the neighbours within a radius r lies within h. So if the 8th nearest neighbour
of a sample is at r, one of eight samples lies within h by chance with probability 1 − (1 − (h / r)^m)⁸. The local
dimension m follows from how the distance grows from the 8th to the 16th neighbour (Levina and Bickel 2004). The
threshold of the probabilities is chosen by their false discovery rate (Benjamini and Hochberg 1995).

Clusters of more than two samples come from complete linkage, with the cluster's largest distance as h. At every level
of the linkage the neighbours are counted among clusters, so that a hundred copies of one sample do not hide each other.

In a table of rounded or binary columns equal samples need not be duplicates: h is at least the rounding error.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from .._torch.threads import map_parts, one_thread_each
from .equal import equal_samples, in_order

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Expected proportion of falsely linked samples among all linked ones. 1, 20 and 50 % gain no more (TRIED.md,
#: *Before*, *Kept*).
FALSE_DISCOVERY_RATE = 0.05
# Other values of the next ones change F1 by at most 0.3 on logs, and by at most 0.1 elsewhere
# (results/constants.rst).
#: Probability of any link if there are no duplicates; without a link at this rate, nothing is linked.
EVIDENCE = 1e-3
#: The local density is estimated from the 8th and the 16th neighbour; in small classes from the middle and the last.
N_NEIGHBORS = 16
#: In a single feature equal values are no evidence of anything.
FEWEST_FEATURES = 2
#: With fewer neighbours the density cannot be estimated.
FEWEST_NEIGHBORS = 8
#: Heights at which the linkage is cut, as fractions of the median distance within the class.
CUTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
#: Samples that are compared with each other at once; larger classes are divided along their widest directions.
MOST_ROWS = 2048
#: Number of samples whose median is the origin of differences; it need not be that of all.
MOST_OF_MEDIAN = 64
#: Number of values below which a sort is faster than a partition at the median.
MOST_SORTED = 1024
#: Largest number of samples, evenly drawn, from which rounding errors are estimated.
MOST_TYPICAL = 2**16


#: Numbers of samples that may be duplicates of each other, and the probability that it is by chance.
Linked = tuple[float, Integers]


@one_thread_each()
def find_duplicates(
    features: NDArray[Any], classes: Integers, copies: Integers | None = None, n_others: int = 0
) -> Integers:
    """Assign duplicates within a class the same number.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        Finite.
    classes : ndarray of shape (n_samples,)
    copies : ndarray of shape (n_samples,) or None
        Number of equal samples that each one stands for; ``None``: 1.
    n_others : int, default=0
        Number of other samples, which are not searched but count as tests.

    Returns
    -------
    units : ndarray of shape (n_samples,)
        Equal numbers are duplicates, in the order of their first sample; without duplicates 0 … n_samples − 1.
        A single feature that varies is no evidence of duplicates. −1 where several copies are equal by chance.

    References
    ----------
    .. [1] Levina, E., Bickel, P. J. "Maximum Likelihood Estimation of Intrinsic Dimension." NIPS 2004.
    .. [2] Benjamini, Y., Hochberg, Y. "Controlling the False Discovery Rate." J. R. Stat. Soc. B 57, 1995.
    """
    numbers = np.arange(len(features))
    copies = np.ones_like(numbers) if copies is None else copies
    if (np.ptp(features, axis=0) > 0).sum() < FEWEST_FEATURES:
        return np.where(copies > 1, -1, numbers)
    equal = equal_samples(features, classes)
    first, counts = np.unique(equal, return_index=True)[1], np.bincount(equal, copies)
    distinct = features[first]
    typical = distinct[:: len(distinct) // MOST_TYPICAL + 1]
    columns = np.sort(np.ascontiguousarray(typical.T), axis=1)
    rounding, middle = _rounding(columns), columns[:, [(len(typical) - 1) // 2, len(typical) // 2]]
    # Samples of a small class that differ by less are equal.
    error = 1e-5 * _median(np.linalg.norm(typical - middle.mean(axis=1, dtype=np.float64), axis=1))
    # The density of a class with few samples is estimated from all classes together.
    everywhere = cache(lambda: _densities(distinct[:: len(distinct) // MOST_ROWS + 1].astype(np.float64), rounding))

    def search(numbers: Integers) -> tuple[list[Linked], list[Linked]]:
        ties: list[Linked] = []
        part = distinct[numbers].astype(np.float64)
        is_few = len(part) <= FEWEST_NEIGHBORS
        own = cache(partial(_densities, part, rounding))
        for place in np.flatnonzero(counts[numbers] > 1).tolist():
            densities = everywhere() if is_few else own()
            by_chance = _equal_by_chance(densities, None if is_few else place, distinct)
            ties.append((by_chance, numbers[[place]]))
        if len(part) < 2:
            return ties, []
        return ties, _near(part, rounding, numbers, error, lambda: _equal_by_chance(everywhere(), None, distinct))

    found = map_parts(search, pieces(distinct, classes[first]), len(distinct) * distinct.shape[1])
    ties, near = (list(chain(*links)) for links in zip(*found, strict=True))
    n_distinct = len(distinct)
    tied = np.zeros(n_distinct, dtype=bool)
    tied[[number for _, own in _significant(ties, n_distinct + n_others) for number in own]] = True
    units = np.arange(n_distinct)
    # Larger clusters come later and include the smaller ones.
    for _, own in _significant(near, n_distinct + n_others):
        units[own] = units[own].min()
        tied[own] = True
    # Samples that may be equal by chance are no duplicates.
    alone = ~tied[equal]
    return np.where(alone & (copies > 1), -1, in_order(np.where(alone, n_distinct + numbers, units[equal])))


def _rounding(columns: NDArray[Any]) -> Floats:
    """Mean squared rounding difference of each feature: gap² / 6 for two errors, uniform over a gap.

    The values of a feature are a row of ``columns``, in ascending order.
    """
    hidden, n_samples = np.zeros(len(columns)), columns.shape[1]
    n_values = 1 + np.count_nonzero(columns[:, 1:] != columns[:, :-1], axis=1)
    for number in np.flatnonzero((n_values > 1) & (n_values < n_samples / 2)):  # most values repeat
        gaps = np.diff(columns[number].astype(np.float64))
        hidden[number] = _median(gaps[gaps > 0]) ** 2 / 6
    return hidden


def pieces(distinct: Floats, classes: Integers) -> list[Integers]:
    """Divide the samples of each class into pieces of at most ``MOST_ROWS``."""
    found = []
    waiting = [np.flatnonzero(classes == label) for label in np.unique(classes)]
    while waiting:
        numbers = waiting.pop()
        if len(numbers) <= MOST_ROWS:
            found.append(numbers)
            continue
        part = distinct[numbers].astype(np.float64)
        part -= part.mean(axis=0)
        widest = np.linalg.svd(part[:: len(numbers) // MOST_ROWS + 1], full_matrices=False)[2][0]
        along = np.argsort(part @ widest, kind="stable")
        waiting += np.array_split(numbers[along], 2)
    return found


def pairwise(features: Floats) -> Floats:
    """Distances of samples, (n_samples, n_samples)."""
    import torch  # takes longer to import than all else

    # Squares are those of differences from a median: a few far samples, which move the mean, would leave rounding.
    centred = features - np.median(features[:: len(features) // MOST_OF_MEDIAN + 1], axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    # torch's product, whose threads are those of this thread alone; NumPy's are the same for the whole process.
    distances: Floats = torch.mm(torch.from_numpy(centred), torch.from_numpy(centred.T)).numpy()
    distances *= -2
    distances += squares[:, np.newaxis]
    distances += squares
    np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
    np.fill_diagonal(distances, 0)
    return (distances + distances.T) / 2


class _Density(NamedTuple):
    """Local density of the samples of a class."""

    radius: Floats  # (n_samples,) distance of the neighbour with the number ``rank``
    dimension: Floats  # (n_samples,)
    rank: int
    nearest: float  # median distance of the nearest neighbour

    def p_values(self, places: Integers, distances: Floats) -> Floats:
        """Probability that the nearest neighbour of each of some samples lies within a distance.

        The larger of two estimates: from the neighbours of the sample, and from the nearest neighbours of all samples,
        which lie near in a class of small clusters.
        """
        radii, dimensions = np.maximum(self.radius[places], 1e-300), self.dimension[places]
        shares = np.minimum(distances / radii, 1) ** dimensions
        usual = np.minimum(distances / max(self.nearest, 1e-300), 1) ** dimensions
        found: Floats = np.maximum(-np.expm1(self.rank * np.log1p(-np.minimum(shares, 1 - 1e-16))), 1 - 0.5**usual)
        return found


def _density(distances: Floats) -> _Density | None:
    """Estimate the local density from distances; ``None`` with too few samples or without a dimension."""
    farthest = min(N_NEIGHBORS, len(distances) - 1)
    if farthest < FEWEST_NEIGHBORS:
        return None
    rank = farthest // 2
    nearest = distances.argpartition((1, rank, farthest), axis=1)[:, : farthest + 1]
    every = np.arange(len(distances))
    closest, radius, far = (distances[every, nearest[:, place]] for place in (1, rank, farthest))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(far / radius)
    log_ratio[~np.isfinite(log_ratio)] = 0
    # The neighbourhood's ratio or the class's, whichever is larger: heavy tails have fewer dimensions inside.
    log_ratio = np.maximum(log_ratio[nearest].mean(axis=1), _median(log_ratio))
    if not (log_ratio > 0).all():
        return None
    # In the tails, where samples are rare, the class's median distance is used.
    radius = np.minimum(radius, _median(radius))
    # Column 0 is the sample itself.
    return _Density(radius, np.log(farthest / rank) / log_ratio, rank, _median(closest))


def _median(values: Floats) -> float:
    """Median, for which ``numpy.median`` takes several times as long if values are few."""
    ordered, low, high = values.copy(), (len(values) - 1) // 2, len(values) // 2
    if len(ordered) > MOST_SORTED:
        ordered.partition((low, high))
    else:
        ordered.sort()
    return float(ordered[low] + ordered[high]) / 2


def _densities(part: Floats, rounding: Floats) -> list[tuple[_Density, float]]:
    """Densities of samples, and the rounding distance, in units of the features and of their standard deviations.

    With the latter no column outweighs the others.
    """
    exact = (rounding == 0) & (np.ptp(part, axis=0) > 0)
    if exact.sum() >= FEWEST_FEATURES:  # the exact columns are enough
        part, rounding = part[:, exact], rounding[exact]
    spread = part.std(axis=0)
    spread[spread == 0] = 1
    found = []
    for divisor in (np.ones(len(spread)), spread):
        density = _density(pairwise(part / divisor))
        if density is not None:
            found.append((density, _hidden(part / divisor, rounding / divisor**2)))
    return found


def _hidden(part: Floats, rounding: Floats) -> float:
    """Estimate the rounding distance of two samples, limited by the variance of the columns."""
    return float(np.sqrt(np.minimum(rounding, 2 * part.var(axis=0)).sum()))


def _equal_by_chance(densities: list[tuple[_Density, float]], place: int | None, distinct: Floats) -> float:
    """Probability that a sample equals another because of rounding; of the densest sample if ``place`` is ``None``.

    Without a density the probability is 0 if all distinct samples differ in at least two columns, else 1.
    """
    if not densities:
        n_values = np.array([len(np.unique(column)) for column in distinct.T])
        return 1.0 if (n_values == len(distinct)).sum() < FEWEST_FEATURES else 0.0
    p_values = [
        density.p_values(np.array([density.radius.argmin() if place is None else place]), np.array([hidden]))[0]
        for density, hidden in densities
    ]
    return min(1.0, len(p_values) * float(min(p_values)))


def _near(
    part: Floats, rounding: Floats, numbers: Integers, error: float, by_chance: Callable[[], float]
) -> list[Linked]:
    """Find clusters of near samples at each level of the linkage, smaller ones first.

    A class of a few distinct samples has no density to compare with. There, only samples that differ by less than an
    ``error`` are duplicates.
    """
    distances, least = pairwise(part), _hidden(part, rounding)
    condensed = squareform(distances, checks=False)
    tree = _Tree.of(condensed)
    typical = _typical(tree, condensed, distances)
    linked: list[Linked] = []
    n_equal, *n_clusters = tree.n_clusters([error, *(cut * typical for cut in CUTS)])
    if n_equal <= FEWEST_NEIGHBORS:
        clusters = tree.cut(error)
        linked += [(by_chance(), numbers[members]) for members in clusters.members(np.flatnonzero(clusters.sizes > 1))]
    if len(part) <= FEWEST_NEIGHBORS:
        return linked
    n_before = len(part)
    for cut, n_now in zip(CUTS, n_clusters, strict=True):
        if n_now == n_before:  # those of the level before, if any
            continue
        n_before, clusters = n_now, tree.cut(cut * typical)
        density = _density(distances[clusters.first[:, np.newaxis], clusters.first])
        if density is None:
            break
        places = np.flatnonzero(clusters.sizes > 1)
        p_values = density.p_values(places, np.maximum(clusters.widest[places], least))
        found = p_values <= FALSE_DISCOVERY_RATE  # others are linked at no threshold
        for p_value, own in zip(p_values[found].tolist(), clusters.members(places[found]), strict=True):
            linked.append((p_value, numbers[own]))
    return linked


class _Clusters(NamedTuple):
    """Clusters at a level of a linkage."""

    first: Integers  # (n_clusters,) first sample of each
    starts: Integers  # (n_clusters,) where its samples begin among ``leaves``
    sizes: Integers  # (n_clusters,)
    widest: Floats  # (n_clusters,) largest distance of two of its samples; −1 of a single one
    leaves: Integers  # (n_samples,) samples of one cluster after another

    def members(self, places: Integers) -> list[Integers]:
        """List the samples of some clusters, each in ascending order."""
        return [np.sort(self.leaves[self.starts[i] : self.starts[i] + self.sizes[i]]) for i in places.tolist()]


class _Tree(NamedTuple):
    """Complete linkage of samples: a node's height is the largest distance of two of its samples."""

    heights: Floats  # (n_nodes,) of the samples, −1, and of all merged clusters
    above: Floats  # (n_nodes,) height of the cluster that a node is merged into
    starts: Integers  # (n_nodes,) where the samples of a node begin among ``leaves``
    sizes: Integers  # (n_nodes,)
    leaves: Integers  # (n_samples,) samples, those of each node one after another

    @classmethod
    def of(cls, condensed: Floats) -> "_Tree":
        """Link samples with these distances of all pairs."""
        merges = linkage(condensed, "complete")
        n_samples, pairs = len(merges) + 1, merges[:, :2].astype(np.int64)
        sizes = np.append(np.ones(n_samples, dtype=np.int64), merges[:, 3].astype(np.int64))
        starts, n_of = [0] * len(sizes), sizes.tolist()
        for node, (left, right) in zip(range(len(sizes) - 1, n_samples - 1, -1), pairs[::-1].tolist(), strict=True):
            starts[left], starts[right] = starts[node], starts[node] + n_of[left]
        above = np.full(len(sizes), np.inf)
        above[pairs] = merges[:, 2:3]
        places, leaves = np.array(starts), np.empty(n_samples, dtype=np.int64)
        leaves[places[:n_samples]] = np.arange(n_samples)
        return cls(np.append(np.full(n_samples, -1.0), merges[:, 2]), above, places, sizes, leaves)

    def n_clusters(self, heights: Sequence[float]) -> list[int]:
        """Return the number of clusters of each ``cut``: merged clusters stand in the order of their heights."""
        n_samples = len(self.leaves)
        found: list[int] = (n_samples - self.heights[n_samples:].searchsorted(heights, side="right")).tolist()
        return found

    def cut(self, height: float) -> _Clusters:
        """Return the clusters whose samples are all within a distance of each other."""
        tops = ((self.heights <= height) & (self.above > height)).nonzero()[0]
        tops = tops[self.starts[tops].argsort()]
        starts = self.starts[tops]
        first = np.minimum.reduceat(self.leaves, starts)
        return _Clusters(first, starts, self.sizes[tops], self.heights[tops], self.leaves)


def _typical(tree: _Tree, condensed: Floats, distances: Floats) -> float:
    """Median distance within the class; among clusters, if most pairs of samples are near duplicates."""
    typical = _median(condensed)
    while True:
        if tree.n_clusters([typical])[0] <= FEWEST_NEIGHBORS:
            return typical
        first = tree.cut(typical).first
        wider = _median(squareform(distances[first[:, np.newaxis], first], checks=False))
        if wider <= 2 * typical:
            return typical
        typical = wider


def _significant(linked: list[Linked], n_samples: int) -> list[Linked]:
    """Select links with the false discovery rate; every sample is one test, with its smallest p-value."""
    smallest = np.ones(n_samples)
    linked = [(p_value, own) for p_value, own in linked if p_value <= FALSE_DISCOVERY_RATE]  # no threshold is larger
    for p_value, own in linked:
        smallest[own] = np.minimum(smallest[own], p_value)
    smallest.sort()
    ranks = np.arange(1, n_samples + 1) / n_samples
    if not (smallest <= EVIDENCE * ranks).any():
        return []
    threshold = FALSE_DISCOVERY_RATE * ranks[smallest <= FALSE_DISCOVERY_RATE * ranks].max()
    return [(p_value, own) for p_value, own in linked if p_value <= threshold]
