"""Groups of samples by the likelihood that they share a class; the number of groups follows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .likelihood import Floats, effective, evidence, log_ratios

Integers = NDArray[np.int64]

#: Groups that are compared with each other at once; their matrix takes 16 MB.
MOST_COMPARED = 2000
#: How often samples move to their likeliest group.
N_ROUNDS = 5
#: Samples that are scored at once.
_CHUNK = 4096


class _Groups(NamedTuple):
    means: Floats  # (n_groups, n_axes)
    counts: Floats  # (n_groups,) samples
    labels: Integers  # (n_samples,) group of each sample

    @classmethod
    def of_samples(cls, coordinates: Floats) -> "_Groups":
        """Make each sample a group of its own."""
        return cls(coordinates, np.ones(len(coordinates)), np.arange(len(coordinates)))

    def merged(self, labels: Integers) -> "_Groups":
        """Join groups by labels from 0."""
        counts = np.bincount(labels, self.counts).astype(np.float64)
        sums = np.zeros((len(counts), self.means.shape[1]))
        np.add.at(sums, labels, self.means * self.counts[:, np.newaxis])
        return _Groups(sums / counts[:, np.newaxis], counts, labels[self.labels])


def find_groups(coordinates: Floats, variances: Floats, min_size: int) -> Integers:
    """Group samples that probably share a class.

    Two groups are merged, the best pair first, as long as the log-likelihood ratio of one class against two is
    positive. Then each sample moves to its likeliest group, or out of all groups, some times. Groups that have become
    alike are merged again.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, n_axes)
        Distinct, in coordinates with variance 1 within classes.
    variances : ndarray of shape (n_axes,)
        Variances of the class means.
    min_size : int
        Smaller groups are noise.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        −1 is noise.
    """
    if not len(variances):
        return np.full(len(coordinates), -1)
    found = _agglomerate(_Groups.of_samples(coordinates), variances)
    labels = _without_small(found.labels, min_size)
    for _ in range(2):
        for _ in range(N_ROUNDS):
            moved = _without_small(_assign(coordinates, labels, variances), min_size)
            if (moved == labels).all():
                break
            labels = moved
        if labels.max() < 1:
            break
        groups = _means(coordinates, labels)
        labels = np.where(labels < 0, -1, _agglomerate(groups, variances).labels[labels])
    return labels


def _without_small(labels: Integers, min_size: int) -> Integers:
    """Make noise of small groups, and number the others without gaps."""
    counts = np.bincount(labels[labels >= 0], minlength=1)
    numbers = np.where(counts >= min_size, np.cumsum(counts >= min_size) - 1, -1)
    return np.where(labels < 0, -1, numbers[labels])


def _means(coordinates: Floats, labels: Integers) -> _Groups:
    """Make groups from the labels of samples, −1 in none; the labels of the groups are their numbers."""
    inside = np.flatnonzero(labels >= 0)
    found = _Groups.of_samples(coordinates[inside]).merged(labels[inside])
    return found._replace(labels=np.arange(len(found.counts)))


def _assign(coordinates: Floats, labels: Integers, variances: Floats) -> Integers:
    """Move each sample to the group of the largest positive ratio; its own group is scored without it."""
    if labels.max() < 0:
        return labels
    groups, found = _means(coordinates, labels), np.full(len(coordinates), -1)
    for start in range(0, len(coordinates), _CHUNK):
        part = slice(start, start + _CHUNK)
        ratios = log_ratios(coordinates[part], groups.means, groups.counts, variances)
        inside = np.flatnonzero(labels[part] >= 0)
        own = labels[part][inside]
        ratios[inside, own] = own_ratios(coordinates[part][inside], groups.means[own], groups.counts[own], variances)
        best = ratios.argmax(axis=1)
        found[part] = np.where(ratios[np.arange(len(best)), best] > 0, best, -1)
    return found


def own_ratios(coordinates: Floats, means: Floats, counts: Floats, variances: Floats) -> Floats:
    """Log-likelihood ratio of samples for their own group without them, (n_samples,); at least two in each group."""
    rest = counts - 1
    means = (counts[:, np.newaxis] * means - coordinates) / rest[:, np.newaxis]
    numbers, one = effective(rest), effective(np.ones(len(coordinates)))
    sums, added = means * numbers[:, np.newaxis], coordinates * one[:, np.newaxis]
    both = evidence(sums + added, numbers + one, variances)
    return np.asarray(both - evidence(sums, numbers, variances) - evidence(added, one, variances))


def _agglomerate(groups: _Groups, variances: Floats) -> _Groups:
    """Merge groups while the ratio is positive; many in halves first, so that memory does not grow with them."""
    n_groups = len(groups.counts)
    if n_groups <= MOST_COMPARED:
        return groups.merged(_merge(groups.means, groups.counts, variances))
    widest = int(np.ptp(groups.means, axis=0).argmax())
    upper = np.empty(n_groups, dtype=bool)
    upper[np.argsort(groups.means[:, widest], kind="stable")] = np.arange(n_groups) >= n_groups // 2
    labels = np.empty(n_groups, dtype=np.int64)
    n_found = 0
    for half in (~upper, upper):
        numbers = np.arange(int(half.sum()))
        labels[half] = (
            n_found + _agglomerate(_Groups(groups.means[half], groups.counts[half], numbers), variances).labels
        )
        n_found = int(labels[half].max()) + 1
    found = groups.merged(labels)
    several = np.flatnonzero(found.counts > 1) if n_found > MOST_COMPARED else np.arange(n_found)
    if not 1 < len(several) <= MOST_COMPARED:
        return found
    joined = _merge(found.means[several], found.counts[several], variances)
    labels = np.arange(n_found) + len(several)
    labels[several] = joined
    return found.merged(np.unique(labels, return_inverse=True)[1].ravel())


def _merge(means: Floats, counts: Floats, variances: Floats) -> Integers:
    """Merge the best pair of groups as long as its ratio is positive, (n_groups,) labels from 0."""
    n_groups = len(counts)
    means, counts, parents = means.copy(), counts.copy(), np.arange(n_groups)
    numbers = effective(counts)
    sums = means * numbers[:, np.newaxis]
    alone = evidence(sums, numbers, variances)
    ratios = _pairwise(sums, numbers, alone, variances)
    partners = ratios.argmax(axis=1)
    best = ratios[np.arange(n_groups), partners]
    alive = np.ones(n_groups, dtype=bool)
    while best[first := int(best.argmax())] > 0:
        second = int(partners[first])
        means[first] = np.average(means[[first, second]], axis=0, weights=counts[[first, second]])
        counts[first] += counts[second]
        parents[parents == second] = first
        alive[second], best[second] = False, -np.inf
        ratios[second] = ratios[:, second] = -np.inf
        numbers[first] = effective(counts[[first]])[0]
        sums[first] = means[first] * numbers[first]
        alone[first] = evidence(sums[[first]], numbers[[first]], variances)[0]
        others = np.flatnonzero(alive)
        others = others[others != first]
        if not len(others):
            break
        both = evidence(sums[others] + sums[first], numbers[others] + numbers[first], variances)
        new = (both - alone[others] - alone[first]).astype(ratios.dtype)
        ratios[first, others] = ratios[others, first] = new
        # Groups whose partner has changed look for one again; for the others only the new group can be better.
        orphans = others[np.isin(partners[others], (first, second))]
        better = others[new > best[others]]
        partners[better], best[better] = first, ratios[better, first]
        again = np.append(orphans, first)
        partners[again] = ratios[again].argmax(axis=1)
        best[again] = ratios[again, partners[again]]
    return np.unique(parents, return_inverse=True)[1].ravel()


def _pairwise(sums: Floats, numbers: Floats, alone: Floats, variances: Floats) -> NDArray[np.float32]:
    """Log-likelihood ratios of all pairs, (n_groups, n_groups), −∞ for a group with itself."""
    ratios = np.empty((len(numbers), len(numbers)), dtype=np.float32)
    sizes = np.unique(numbers)
    members = [np.flatnonzero(numbers == size) for size in sizes]
    for i, of_first in enumerate(members):
        for j in range(i, len(sizes)):
            of_second = members[j]
            spread = 1 + (sizes[i] + sizes[j]) * variances
            weights = variances / spread
            first = 0.5 * np.square(sums[of_first]) @ weights - alone[of_first]
            second = 0.5 * (np.square(sums[of_second]) @ weights - np.log(spread).sum()) - alone[of_second]
            block = (sums[of_first] * weights) @ sums[of_second].T + first[:, np.newaxis] + second
            ratios[np.ix_(of_first, of_second)] = block
            ratios[np.ix_(of_second, of_first)] = block.T
    np.fill_diagonal(ratios, -np.inf)
    return ratios
