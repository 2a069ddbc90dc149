"""What a fit expects: a warning where hardly any open sample will be detected."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.warn import warn
from .._held_out.table import FEWEST_OF_CLASS
from .._samples.projections import REMEDY, Projection, describe

#: The fit warns if fewer samples of held-out classes are detected. On texts .30 to .92 of them are, on other tables and
#: images .46 to 1, on overlapping blood cells .10 to .27, on noise 0 to .15. The upper end of the interval that is
#: forecast says nothing: on noise it is .89 and more (skellipsoid-bench/TRIED.md, *Projections*).
FEW_DETECTED = 0.125
_PAGE = "the page 'Your own features' of the guide"


def warn_of_expectation(classifier: Any, groups: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
    """Warn of features in which open samples look known, with the share of held-out ones that are detected.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier
        Fitted.
    groups, codes : ndarray of shape (n_samples,)
        Group and class of each known training sample.
    """
    projection = Projection(classifier._expected.projected or 0)
    counts = np.bincount(np.unique(np.stack([codes, groups]), axis=1)[0], minlength=len(classifier.classes_))
    detected = _detected(classifier)
    if projection == Projection.WHITENED:
        warn(f"{describe(projection)}; {REMEDY}.")
    if detected is None or np.median(counts) < FEWEST_OF_CLASS:  # of so few samples another warning says it
        return
    found = f"of 100 samples of held-out classes, {100 * detected:.0f} are detected as open"
    if projection == Projection.VOCABULARY:
        warn(f"{describe(projection)}: {found}; features of a text model tell more (Word counts, on {_PAGE}).")
    elif detected < FEW_DETECTED:
        warn(
            f"Most open samples will look known: {found}; use features in which the classes lie farther apart, or more "
            f"samples ({_PAGE})."
        )


def _detected(classifier: Any) -> float | None:
    """Share of the samples of held-out classes that lie outside the boundaries; ``None`` without such samples."""
    held_out = classifier._held_out
    if held_out is None:
        return None
    of_class = held_out["is_open"] & ~held_out["is_synthetic"] & (held_out["classes"] < len(classifier.classes_))
    if not of_class.any():
        return None
    return float(np.average(held_out["scores"][of_class] < 0, weights=held_out["weights"][of_class]))
