"""Random sample of each class by bottom-k sampling on hashes: the same one however the data are partitioned.

Each group has a priority, a hash of the seed and the group (without groups, of the row number). Of each class, groups
are drawn in ascending order of priority until there are enough samples. So each partition can drop groups that cannot
be drawn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Integers = NDArray[np.int64]

_HIGHEST = np.iinfo(np.uint64).max


def priorities(keys: Keys, seed: int) -> Keys:
    """Hash keys with a seed to pseudo-random numbers (SplitMix64 of Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def group_keys(groups: Any) -> Keys:
    """Key of each group, which does not depend on the partition."""
    import pandas as pd

    values = np.asarray(groups)
    if values.dtype.kind not in "biufmM":
        values = values.astype(object)
    return np.asarray(pd.util.hash_array(values, categorize=True))


class Keyed(NamedTuple):
    """Class and group of each sample of a partition."""

    codes: Integers
    keys: Keys


class Draw(NamedTuple):
    """Groups of each class that may be drawn, sorted by class and priority."""

    classes: Integers  # (n_drawn,)
    keys: Keys  # (n_drawn,) of the groups
    counts: Integers  # (n_drawn,) samples of the group in the class

    @classmethod
    def of(cls, part: Keyed, most: int, seed: int) -> "Draw":
        """Draw from one partition: ``most`` samples of each class, or all if there are fewer; groups stay whole."""
        return cls(*part, np.ones(len(part.keys), dtype=np.int64))._reduced(most, seed)

    @classmethod
    def merged(cls, parts: Sequence["Draw"], most: int, seed: int) -> "Draw":
        """Merge the draws of several partitions: the result equals a draw from all data at once."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))._reduced(most, seed)

    def _reduced(self, most: int, seed: int) -> "Draw":
        order = np.lexsort((self.keys, priorities(self.keys, seed), self.classes))
        classes, keys = self.classes[order], self.keys[order]
        is_first = np.ones(len(keys), dtype=bool)
        is_first[1:] = (classes[1:] != classes[:-1]) | (keys[1:] != keys[:-1])
        starts = np.flatnonzero(is_first)
        counts = np.add.reduceat(self.counts[order], starts) if len(starts) else self.counts[:0]
        classes, keys = classes[starts], keys[starts]
        before = np.cumsum(counts) - counts
        before -= before[np.searchsorted(classes, classes)]  # of the same class
        chosen = before < most
        return Draw(classes[chosen], keys[chosen], counts[chosen])

    def limits(self, counts: Integers, seed: int) -> Keys:
        """Highest priority drawn in each class, (n_classes,); the largest number if the whole class is drawn.

        Parameters
        ----------
        counts : ndarray of shape (n_classes,)
            Number of all samples of each class.
        """
        limits = np.zeros(len(counts), dtype=np.uint64)
        np.maximum.at(limits, self.classes, priorities(self.keys, seed))
        limits[np.bincount(self.classes, self.counts, minlength=len(counts)) >= counts] = _HIGHEST
        return limits
