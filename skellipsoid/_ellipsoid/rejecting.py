"""Whether the held-out samples of a change say that shares and size of before do not suit the classes of now."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from .._held_out.table import FEWEST_OF_CLASS
from .math.boundaries import Fitted

#: Shares and size are chosen anew where a class rejects so many held-out samples, or where all classes reject so many
#: more than before the change. Classes that reject so many more are named.
MOST_REJECTED, MOST_MORE_OF_ALL, MOST_MORE = 0.5, 0.05, 0.15
#: Level of the test that there are more than before, when there were at least so many.
LEVEL, LEAST_USUAL = 1e-3, 0.02


class Rejecting(NamedTuple):
    """Classes that reject many more of their held-out samples than all did before a change."""

    classes: NDArray[np.int64]
    most: float  # the largest share that one of them rejects
    too_many: bool  # so many that shares and size must be chosen anew

    @classmethod
    def of(cls, clf: Any, fitted: Fitted) -> "Rejecting | None":
        """Compare with the classifier of before; ``None`` without held-out samples."""
        before, table = clf._held_out, fitted.held_out
        if before is None or table is None or before["is_open"].all():
            return None
        own, is_rejected = table.classes[~table.is_open], table.margins[~table.is_open] < 0
        counts = np.bincount(own, minlength=table.n_classes)
        rejected = np.bincount(own, is_rejected, minlength=table.n_classes)
        usual = float(np.mean(before["scores"][~before["is_open"]] < 0))
        found = np.flatnonzero(_are_more(rejected, counts, usual, MOST_MORE) & (counts >= FEWEST_OF_CLASS))
        most = float((rejected / np.maximum(counts, 1))[found].max(initial=0.0))
        of_all = bool(_are_more(rejected.sum(), counts.sum(), usual, MOST_MORE_OF_ALL))
        return cls(found, most, most >= MOST_REJECTED or of_all)


def _are_more(found: Any, counts: Any, usual: float, by: float) -> Any:
    """Whether more of samples were found than is usual (one-sided binomial test), and by so large a share."""
    usual = max(usual, LEAST_USUAL)
    return (binom.sf(found - 1, counts, usual) < LEVEL) & (found > counts * (usual + by))
