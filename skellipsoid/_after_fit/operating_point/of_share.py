"""The offset for a given share of open samples, from held-out samples and classes."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..._ellipsoid.math.held_out import KNOWN, OF_OTHER_CLASS, SYNTHETIC, HeldOut, candidates, expected_f1, near_best
from ..traffic.held import Floats, HeldOutScores

#: Shares beyond these limits are not distinguished from them: no log is so sure.
SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.99
#: Standard error of the expected F1 times √(number of held-out samples). With 0.3, F1 changes by −0.8 to +0.1 on text
#: and +2.5 on tables, with 3 by −1.9 to +0.7 and −4.0 (skellipsoid-bench/results/constants.rst).
ERROR = 1.0
#: Resamplings that the error of a gain is read off.
N_RESAMPLINGS = 50


def check_share_options(
    open_share: Any, cost_open: Any, cost_reject: Any, *, has_X: bool, has_y: bool, has_rate: bool
) -> None:
    """Raise an error unless the options of a share fit together."""
    costs = {"cost_open": cost_open, "cost_reject": cost_reject}
    given = [name for name, value in {"open_share": open_share, **costs}.items() if value is not None]
    for name, cost in costs.items():
        if cost is not None and not (isinstance(cost, int | float | np.number) and 0 < cost < np.inf):
            raise ValueError(f"{name}={cost!r} is not a cost; use a positive number.")
    if has_rate:
        if given:
            raise ValueError(f"{given[0]} and a rate are both given; set one of them and leave the other None.")
        if not has_X:
            raise ValueError("A rate is a share of samples, but there are none; pass X.")
        return
    if has_y:
        raise ValueError(
            "y is given without a rate that refers to it; set rejection_rate, or pass X alone as unlabelled traffic."
        )
    is_number = isinstance(open_share, int | float | np.number) and not isinstance(open_share, bool)
    if open_share is not None and open_share != "auto" and not (is_number and 0 <= open_share <= 1):
        raise ValueError(
            f"open_share={open_share!r} is not a share; use a number from 0 to 1, or 'auto' with unlabelled X."
        )
    if has_X and is_number:
        raise ValueError(
            f"open_share={open_share!r} says how much of X is open; leave X out, or pass open_share='auto'."
        )
    if given and not has_X and not is_number:
        raise ValueError(f"{given[0]} needs the open share; pass unlabelled traffic as X, or open_share as a number.")


class Line(NamedTuple):
    """An offset for a share, and the gain of F1 that is expected of it against the fitted boundary, in percent."""

    offset: float
    gain: float
    error: float

    def describe(self, share: float) -> str | None:
        """Say why the fitted boundary is taken, if it is, whatever limit the model has."""
        if self.gain > self.error:
            return None
        return (
            f"The limit for this share is the fitted boundary: for an open share of {100 * share:.0f} % another one is "
            f"expected to change F1 by {round(self.gain, 1) + 0.0:+.1f} points, with an error of {self.error:.1f}."
        )


def line_of_share(held: HeldOutScores, share: float, n_classes: int) -> Line:
    """Offset with the best expected F1 at a share of open samples.

    Samples of held-out classes and of synthetic classes stand for open ones: unknown classes lie nearer than the first
    and farther out than the others. The offset is the mean of all candidates, weighted by exp(F1 / error): with few
    samples it is chance which candidate is best. The error of the gain is a standard deviation over resampled
    samples and held-out classes.
    """
    samples = _table(held, n_classes)
    per_known = [_clipped(share) / (1 - _clipped(share))]
    offsets = candidates(held.known)
    f1 = expected_f1(samples, -offsets[::-1], per_known)[::-1]
    offset = float(np.average(offsets, weights=near_best(f1, ERROR / len(held.known) ** 0.5)))
    scales, sign = np.sort([-offset, 0.0]), np.sign(-offset)  # a scale is an offset times −1
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(N_RESAMPLINGS):
        weights = samples.weights * rng.standard_exponential(len(samples))
        of_class = rng.standard_exponential(n_classes + 1)
        weights[samples.kinds == OF_OTHER_CLASS] *= of_class[held.open_classes]
        f1 = expected_f1(replace(samples, weights=weights), scales, per_known)
        gains.append(sign * (f1[1] - f1[0]))
    f1 = expected_f1(samples, scales, per_known)
    return Line(offset, float(100 * sign * (f1[1] - f1[0])), float(100 * np.std(gains)))


def _clipped(share: float) -> float:
    return float(np.clip(share, SMALLEST_SHARE, LARGEST_SHARE))


def offset_of_cost(held: HeldOutScores, share: float, cost_open: float | None, cost_reject: float | None) -> float:
    """Offset with the lowest expected cost at a share of open samples, for which held-out classes stand.

    A cost that is ``None`` is 1. The offset is the mean of all candidates, weighted by exp(−cost / error).
    """
    offsets, costs = candidates(held.known), [1.0 if cost is None else float(cost) for cost in (cost_open, cost_reject)]
    found, error = _expected_cost(held, offsets, _clipped(share), *costs)
    return float(np.average(offsets, weights=near_best(-found, error)))


def _table(held: HeldOutScores, n_classes: int) -> HeldOut:
    """Known samples, samples of held-out classes and of synthetic ones."""
    numbers = len(held.known), len(held.opened), len(held.synthetic)
    return HeldOut(
        np.repeat([KNOWN, OF_OTHER_CLASS, SYNTHETIC], numbers),
        -np.concatenate([held.known, held.opened, held.synthetic]),  # a distance is smaller for more known samples
        np.concatenate([held.assigned, held.open_assigned, held.synthetic_assigned]),
        np.concatenate([held.classes, np.full(sum(numbers[1:]), n_classes)]),
        np.concatenate([held.weights, held.sharpened_weights(), np.ones(numbers[2])]),
        np.arange(sum(numbers)),
        n_classes,
    )


def _expected_cost(
    held: HeldOutScores, offsets: Floats, share: float, cost_open: float, cost_reject: float
) -> tuple[Floats, float]:
    """Mean cost of a sample at ascending offsets, and the standard error of the lowest."""
    rejected = _weight_below(held.known, held.weights, offsets)
    accepted = 1 - _weight_below(held.opened, held.sharpened_weights(), offsets)
    of_open, of_known = share * cost_open, (1 - share) * cost_reject
    costs = of_open * accepted + of_known * rejected
    best, variance = costs.argmin(), 0.0
    for cost, part, n in ((of_open, accepted[best], len(held.opened)), (of_known, rejected[best], len(held.known))):
        rate = (n * part + 1) / (n + 2)  # no rate is known to be 0
        variance += cost**2 * rate * (1 - rate) / n
    return np.asarray(costs), float(variance**0.5)


def _weight_below(scores: Floats, weights: Floats, offsets: Floats) -> Floats:
    """Share of the weight of scores below each offset."""
    order = np.argsort(scores, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(total[np.searchsorted(scores[order], offsets, side="left")] / total[-1])
