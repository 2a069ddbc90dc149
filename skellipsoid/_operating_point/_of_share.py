"""The offset for a given share of open samples, from held-out samples and classes."""

import numpy as np

from .._engine.boundary.held_out import ScoredSamples, Validation, expected_f1, near_best
from .._traffic._held import Floats, HeldOutScores

#: Shares beyond these limits are not distinguished from them: no log is so sure.
SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.99
#: Standard error of the expected F1, or of the cost, times √(number of held-out samples).
ERROR = 1.0
_N_CANDIDATES = 500


def offset_of_share(
    held: HeldOutScores, share: float, n_classes: int, cost_open: float | None = None, cost_reject: float | None = None
) -> float:
    """Offset with the best expected F1, or the lowest expected cost, at a share of open samples.

    Samples of held-out classes stand for open ones. The offset is the mean of all candidates, weighted by
    exp(F1 / error): with few samples it is chance which candidate is best.

    Parameters
    ----------
    held : HeldOutScores
    share : float
    n_classes : int
    cost_open, cost_reject : float, default=None
        ``None`` for both is the F1; for one of them 1.
    """
    share = float(np.clip(share, SMALLEST_SHARE, LARGEST_SHARE))
    candidates = np.unique(np.quantile(held.known, np.linspace(0, 1, _N_CANDIDATES), method="closest_observation"))
    if cost_open is None and cost_reject is None:
        values = _expected_f1(held, candidates, share, n_classes)
    else:
        costs = [1.0 if cost is None else float(cost) for cost in (cost_open, cost_reject)]
        values = -_expected_cost(held, candidates, share, *costs)
    return float(np.average(candidates, weights=near_best(values, ERROR / len(held.known) ** 0.5)))


def _expected_f1(held: HeldOutScores, offsets: Floats, share: float, n_classes: int) -> Floats:
    """Macro F1 over the known classes and open at ascending offsets."""
    # The engine's distances are smaller for more known samples.
    known = ScoredSamples(-held.known, held.assigned, held.weights)
    opened = ScoredSamples(-held.opened, held.open_assigned, held.sharpened_weights())
    validation = Validation(known, held.classes, len(held.known), [opened], n_classes)
    return expected_f1(validation, -offsets[::-1], [share / (1 - share)])[::-1]


def _expected_cost(held: HeldOutScores, offsets: Floats, share: float, cost_open: float, cost_reject: float) -> Floats:
    """Mean cost of a sample at ascending offsets, where the dearest mistakes on all samples cost 1."""
    rejected = _weight_below(held.known, held.weights, offsets)
    accepted = 1 - _weight_below(held.opened, held.sharpened_weights(), offsets)
    unit = max(share * cost_open, (1 - share) * cost_reject)
    return np.asarray((share * cost_open * accepted + (1 - share) * cost_reject * rejected) / unit)


def _weight_below(scores: Floats, weights: Floats, offsets: Floats) -> Floats:
    """Share of the weight of scores below each offset."""
    order = np.argsort(scores, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(total[np.searchsorted(scores[order], offsets, side="left")] / total[-1])
