"""Conformal p-values of scores, the action of each sample by the zones of ``predict_set``, and the classes offered."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANSWER, ASK, OPEN = "answer", "ask", "open"
#: Largest number of classes that a question offers.
MOST_CLASSES = 3


def p_values(held_out_scores: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
    """Conformal p-values (1 + rank) / (n + 1) of scores, (n_samples,), by ascending scores of n held-out samples."""
    as_low = np.searchsorted(held_out_scores, scores, side="right")
    return np.asarray((1 + as_low) / (len(held_out_scores) + 1))


def check_max_classes(max_classes: Any) -> int:
    """Give the most classes that a question offers, or raise one sentence."""
    is_number = isinstance(max_classes, int | np.integer) and not isinstance(max_classes, bool)
    if not is_number or not 1 <= max_classes <= MOST_CLASSES:
        raise ValueError(f"max_classes={max_classes!r} is not possible; use 1, 2 or 3.")
    return int(max_classes)


def actions(
    is_open: NDArray[np.bool_],
    scores: NDArray[Any],
    gaps: NDArray[Any],
    zones: Mapping[str, float],
    class_offsets: NDArray[np.float64],
    unread: NDArray[np.bool_] | bool = False,
) -> NDArray[np.str_]:
    """Give the action of each sample, (n_samples,): answer, ask or open.

    Parameters
    ----------
    is_open : ndarray of shape (n_samples,)
        Whether ``predict`` gives the open label.
    scores, gaps, class_offsets : ndarray of shape (n_samples,)
        The score, the gap between the first and the second class, and the offset of the nearest class.
    zones : mapping
        ``low`` and ``high`` of the score, and ``gap``.
    unread : ndarray of shape (n_samples,) or bool
        Samples of which nothing is read: nothing is asked about them.
    """
    # In the precision of the scores, as predict compares them.
    is_high = scores >= (zones["high"] + class_offsets).astype(scores.dtype)
    is_low = scores < (zones["low"] + class_offsets).astype(scores.dtype)
    is_answered = ~is_open & is_high & (gaps >= zones["gap"])
    return np.select([is_open & (is_low | unread), is_answered], [OPEN, ANSWER], ASK).astype(np.str_)


def offered(
    action: NDArray[np.str_],
    first: NDArray[np.integer],
    nearest: NDArray[np.integer],
    n_classes: int,
    max_classes: int = MOST_CLASSES,
) -> NDArray[np.int64]:
    """Numbers of the classes that are offered, the best first, (n_samples, max_classes); ``n_classes`` is none.

    ``nearest`` is the class of ``predict``, the first one also where rounding decides between two.
    """
    codes = np.full((len(first), max_classes), n_classes, dtype=np.int64)
    n_offered = np.select([action == ANSWER, action == ASK], [1, max_classes], 0)
    others = np.where(first[:, 1:] == nearest[:, np.newaxis], first[:, :1], first[:, 1:])
    for place, number in enumerate([nearest, *others.T][:max_classes]):
        codes[:, place] = np.where(place < n_offered, number, n_classes)
    return codes
