"""Warnings of features in which open samples look known, with the recall of open that held-out classes show."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.warn import warn
from .._held_out.table import FEWEST_OF_CLASS
from .._samples.projections import REMEDY, Projection, describe

_PAGE = "the page 'Your own features' of the guide"


def warn_of_expectation(classifier: Any, groups: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
    """Warn of features in which open samples look known, with the recall of open on held-out classes.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier
        Fitted.
    groups, codes : ndarray of shape (n_samples,)
        Group and class of each known training sample.
    """
    projection = Projection(classifier._expected.projected or 0)
    if projection not in (Projection.WHITENED, Projection.VOCABULARY) or (detected := _detected(classifier)) is None:
        return
    counts = np.bincount(np.unique(np.stack([codes, groups]), axis=1)[0], minlength=len(classifier.classes_))
    if projection == Projection.WHITENED:
        warn(f"{describe(projection)}; {REMEDY}.")
    elif np.median(counts) >= FEWEST_OF_CLASS:  # of fewer samples another warning says it
        found = f"of 100 samples of held-out classes, {100 * detected:.0f} are detected as open"
        warn(f"{describe(projection)}: {found}; features of an embedding model tell more (Word counts, on {_PAGE}).")


def _detected(classifier: Any) -> float | None:
    """Proportion of the samples of held-out classes that lie outside the boundaries; ``None`` without any."""
    held_out = classifier._held_out
    if held_out is None:
        return None
    opened = held_out.other_class
    return float(np.average(opened.scores < 0, weights=opened.weights)) if len(opened) else None
