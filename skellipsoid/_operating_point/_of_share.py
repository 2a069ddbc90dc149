"""The offset for a given share of open samples, from held-out samples and classes."""

from typing import Any

import numpy as np

from .._engine.boundary.held_out import KNOWN, OF_OTHER_CLASS, HeldOut, candidates, expected_f1, near_best
from .._traffic._held import Floats, HeldOutScores

#: Shares beyond these limits are not distinguished from them: no log is so sure.
SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.99
#: Standard error of the expected F1 times √(number of held-out samples). With 0.3, F1 changes by −0.8 to +0.1 on text
#: and +2.5 on tables, with 3 by −1.9 to +0.7 and −4.0 (benchmarks/results/constants.rst).
ERROR = 1.0


def check_share_options(
    open_share: Any, cost_open: Any, cost_reject: Any, *, has_X: bool, has_y: bool, has_rate: bool
) -> None:
    """Raise an error unless the options of a share fit together."""
    costs = {"cost_open": cost_open, "cost_reject": cost_reject}
    given = [name for name, value in {"open_share": open_share, **costs}.items() if value is not None]
    for name, cost in costs.items():
        if cost is not None and not (isinstance(cost, int | float | np.number) and 0 < cost < np.inf):
            msg = f"{name}={cost!r} is not a cost; use a positive number."
            raise ValueError(msg)
    if has_rate:
        if given:
            msg = f"{given[0]} and a rate are both given; set one of them and leave the other None."
            raise ValueError(msg)
        if not has_X:
            msg = "A rate is a share of samples, but there are none; pass X."
            raise ValueError(msg)
        return
    if has_y:
        msg = "y is given without a rate that refers to it; set rejection_rate, or pass X alone as unlabelled traffic."
        raise ValueError(msg)
    is_number = isinstance(open_share, int | float | np.number) and not isinstance(open_share, bool)
    if open_share is not None and open_share != "auto" and not (is_number and 0 <= open_share <= 1):
        msg = f"open_share={open_share!r} is not a share; use a number from 0 to 1, or 'auto' with unlabelled X."
        raise ValueError(msg)
    if has_X and is_number:
        msg = f"open_share={open_share!r} says how much of X is open; leave X out, or pass open_share='auto'."
        raise ValueError(msg)
    if given and not has_X and not is_number:
        msg = f"{given[0]} needs the open share; pass unlabelled traffic as X, or open_share as a number."
        raise ValueError(msg)


def offset_of_share(
    held: HeldOutScores, share: float, n_classes: int, cost_open: float | None = None, cost_reject: float | None = None
) -> float:
    """Offset with the best expected F1, or the lowest expected cost, at a share of open samples.

    Samples of held-out classes stand for open ones. The offset is the mean of all candidates, weighted by
    exp(F1 / error), or exp(−cost / error): with few samples it is chance which candidate is best.

    Parameters
    ----------
    held : HeldOutScores
    share : float
    n_classes : int
    cost_open, cost_reject : float, default=None
        ``None`` for both is the F1; for one of them 1.
    """
    share = float(np.clip(share, SMALLEST_SHARE, LARGEST_SHARE))
    offsets = candidates(held.known)
    if cost_open is None and cost_reject is None:
        values, error = _expected_f1(held, offsets, share, n_classes), ERROR / len(held.known) ** 0.5
    else:
        costs = [1.0 if cost is None else float(cost) for cost in (cost_open, cost_reject)]
        found, error = _expected_cost(held, offsets, share, *costs)
        values = -found
    return float(np.average(offsets, weights=near_best(values, error)))


def _expected_f1(held: HeldOutScores, offsets: Floats, share: float, n_classes: int) -> Floats:
    """Macro F1 over the known classes and open at ascending offsets."""
    n_known, n_open = len(held.known), len(held.opened)
    samples = HeldOut(
        np.repeat([KNOWN, OF_OTHER_CLASS], [n_known, n_open]),
        -np.concatenate([held.known, held.opened]),  # a distance is smaller for more known samples
        np.concatenate([held.assigned, held.open_assigned]),
        np.concatenate([held.classes, np.full(n_open, n_classes)]),
        np.concatenate([held.weights, held.sharpened_weights()]),
        np.arange(n_known + n_open),
        n_classes,
    )
    return expected_f1(samples, -offsets[::-1], [share / (1 - share)])[::-1]


def _expected_cost(
    held: HeldOutScores, offsets: Floats, share: float, cost_open: float, cost_reject: float
) -> tuple[Floats, float]:
    """Mean cost of a sample at ascending offsets, and the standard error of the lowest."""
    rejected = _weight_below(held.known, held.weights, offsets)
    accepted = 1 - _weight_below(held.opened, held.sharpened_weights(), offsets)
    of_open, of_known = share * cost_open, (1 - share) * cost_reject
    costs = of_open * accepted + of_known * rejected
    best, variance = costs.argmin(), 0.0
    for unit, part, n in ((of_open, accepted[best], len(held.opened)), (of_known, rejected[best], len(held.known))):
        rate = (n * part + 1) / (n + 2)  # no rate is known to be 0
        variance += unit**2 * rate * (1 - rate) / n
    return np.asarray(costs), float(variance**0.5)


def _weight_below(scores: Floats, weights: Floats, offsets: Floats) -> Floats:
    """Share of the weight of scores below each offset."""
    order = np.argsort(scores, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(total[np.searchsorted(scores[order], offsets, side="left")] / total[-1])
