"""What the metrics of scores share: saying when a figure is undefined."""

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from .._core.warn import warn


def has_both(is_known: NDArray[np.bool_], what: str) -> bool:
    """Whether there are known and open samples, with a warning unless there are.

    Parameters
    ----------
    is_known : ndarray of shape (n_samples,)
    what : str
        The quantity that is undefined otherwise.
    """
    missing = [name for name, rows in (("known", is_known), ("open", ~is_known)) if not rows.any()]
    if missing:
        warn(
            f"{what} is undefined and set to nan, since y_true has no {missing[0]} row: pass rows of both kinds, and "
            "the known classes as labels if y_true names the classes of open rows.",
            UndefinedMetricWarning,
        )
    return not missing
