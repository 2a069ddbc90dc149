"""Tests whether the shrinkage and radius scale of before suit the changed classes (one-sided binomial tests)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..._held_out.table import FEWEST_OF_CLASS
from ..math.boundaries import Fitted

#: Shrinkage and size are chosen anew if a class rejects ``MOST_REJECTED`` of its held-out samples, or if the rate at
#: which all classes reject them, or accept samples of held-out classes, rises by ``MOST_MORE_OF_ALL`` in a change.
#: Classes that reject ``MOST_MORE`` above the usual rate are named.
MOST_REJECTED, MOST_MORE_OF_ALL, MOST_MORE = 0.5, 0.05, 0.15
#: Significance levels of the tests of one class and of all, and the smallest rate that is taken as the usual one.
LEVEL, LEVEL_OF_ALL, LEAST_USUAL = 1e-3, 1e-2, 0.02


class Rejecting(NamedTuple):
    """Classes that reject many more of their held-out samples than all did before a change."""

    classes: NDArray[np.int64]
    most: float  # the largest rejection rate of one of them
    too_many: bool  # shrinkage and size must be chosen anew

    @classmethod
    def of(cls, clf: Any, fitted: Fitted) -> "Rejecting | None":
        """Compare with the classifier of before; ``None`` without held-out samples."""
        before, table = clf._held_out, fitted.held_out
        if before is None or table is None or before.is_open.all():
            return None
        own, is_rejected = table.known.classes, table.known.scores < 0
        counts = np.bincount(own, minlength=table.n_classes)
        rejected = np.bincount(own, is_rejected, minlength=table.n_classes)
        usual = float(np.mean(before.known.scores < 0))
        found = np.flatnonzero(_are_more(rejected, counts, usual, MOST_MORE, LEVEL) & (counts >= FEWEST_OF_CLASS))
        most = float((rejected / np.maximum(counts, 1))[found].max(initial=0.0))
        n_known = counts.sum()
        too_many = most >= MOST_REJECTED or _are_more(rejected.sum(), n_known, usual, MOST_MORE_OF_ALL, LEVEL_OF_ALL)
        # A new class is often nearer to the others than these are to each other: then open ones are found less often,
        # whatever is chosen. Each known sample makes about one sample of a held-out class.
        opened = before.other_class.scores
        accepted = table.other_class.scores >= 0
        if table.n_classes <= len(clf.classes_) and len(opened) and len(accepted):
            usual = float(np.mean(opened >= 0))
            too_many |= _are_more(accepted.mean() * n_known, n_known, usual, MOST_MORE_OF_ALL, LEVEL_OF_ALL)
        return cls(found, most, bool(too_many))


def _are_more(found: Any, counts: Any, usual: float, by: float, level: float) -> Any:
    """Whether the rate is significantly above the usual one (one-sided binomial test), and larger by ``by``."""
    usual = max(usual, LEAST_USUAL)
    return (binom.sf(found - 1, counts, usual) < level) & (found > counts * (usual + by))
