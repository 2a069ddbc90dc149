"""The memory: which learned messages lower the score of what lies near an open one (cosine)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..math.memory import Memory
from .learned import Learned

#: Margin that a cosine of 1 takes, in interquartile ranges of the held-out scores of known samples.
DEDUCTION = 3.0
#: "None of these" is remembered if another open message has such a cosine to it.
NEAR = 0.7
#: The memory has places for ``FEWEST_PLACES`` open messages, or for one per class if there are more classes. When it is
#: full, messages with a cosine above ``SAME`` to a later one are dropped first, then the oldest.
SAME = 0.95
FEWEST_PLACES = 100


def remembered(learned: Learned | None, classes: NDArray[Any], held_out: NDArray[np.float64] | None) -> Memory | None:
    """Make the memory of learned messages; ``None`` if none of them is open.

    Parameters
    ----------
    learned : Learned or None
    classes : ndarray of shape (n_classes,)
        Any other label is open.
    held_out : ndarray of shape (n_held_out,) or None
        Scores of held-out known samples.
    """
    if learned is None or held_out is None or len(held_out) < 2:
        return None
    is_known = np.isin(learned.labels, classes)
    directions, n_places = unit(learned.features), max(FEWEST_PLACES, len(classes))
    opened = _sure(directions[~is_known], ~np.isnan(learned.gaps[~is_known]))
    if not len(opened):
        return None
    if len(opened) > n_places:
        opened = _distinct(opened)[-n_places:]
    known = directions[is_known]
    if len(known) > n_places:  # those that an open message is nearest to
        nearness = (known @ opened.T).max(axis=1)
        known = known[np.sort(np.argsort(-nearness, kind="stable")[:n_places])]
    low, high = np.quantile(held_out, [0.25, 0.75])
    return Memory(opened, known, float(DEDUCTION * (high - low)))


def _sure(directions: NDArray[np.float32], are_picked: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Leave out a single pick of "none of these": up to half of these are of a class that was not offered."""
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -1)
    return directions[~are_picked | (cosines >= NEAR).any(axis=1)]


def _distinct(directions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Leave out messages that are near a later one."""
    is_near = np.triu(directions @ directions.T >= SAME, k=1).any(axis=1)
    return directions[~is_near]


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide rows by their length; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)
