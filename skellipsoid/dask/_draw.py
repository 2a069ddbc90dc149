"""Which samples are drawn: the same ones however the data are divided.

Each group has a priority, a number that follows from the seed and from the group alone (without groups, from the number
of the row). Of each class, groups are drawn in the order of their priorities until their samples reach a number. So a
part of the data knows which of its groups cannot be drawn, and drops them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Integers = NDArray[np.int64]

_HIGHEST = np.iinfo(np.uint64).max


def priorities(keys: Keys, seed: int) -> Keys:
    """Give keys random numbers, the same ones for the same seed (SplitMix64 of Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def group_keys(groups: Any) -> Keys:
    """Give each group a key that does not depend on the partition."""
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
    """Groups of each class that may be drawn, in the order of the classes and then of their priorities."""

    classes: Integers  # (n_drawn,)
    keys: Keys  # (n_drawn,) of the groups
    counts: Integers  # (n_drawn,) samples of the group in the class

    @classmethod
    def of(cls, part: Keyed, most: int, seed: int) -> "Draw":
        """Draw from one part: at least ``most`` samples of each class, where it has as many."""
        return cls(*part, np.ones(len(part.keys), dtype=np.int64))._reduced(most, seed)

    @classmethod
    def merged(cls, parts: Sequence["Draw"], most: int, seed: int) -> "Draw":
        """Draw from parts together what would be drawn from all data at once."""
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
        """Highest priority that is drawn of each class, (n_classes,); the highest of all if the class is drawn whole.

        Parameters
        ----------
        counts : ndarray of shape (n_classes,)
            Number of all samples of each class.
        """
        limits = np.zeros(len(counts), dtype=np.uint64)
        np.maximum.at(limits, self.classes, priorities(self.keys, seed))
        limits[np.bincount(self.classes, self.counts, minlength=len(counts)) >= counts] = _HIGHEST
        return limits
