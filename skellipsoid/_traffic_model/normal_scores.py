"""Normal scores: by the quantile of a score among held-out known samples, the normal distribution's quantile."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from .._held_out.table import Floats, HeldOutTable


class NormalScores:
    """Scores in units of held-out known samples: 0 is their median, 1 a standard deviation of a normal distribution.

    Both ways, continued as a line beyond the lowest.
    """

    def __init__(self, known: Floats, weights: Floats) -> None:
        known, weights = _merged(known, weights)
        levels = (np.cumsum(weights) - weights / 2) / weights.sum()
        chosen = np.linspace(levels[0], levels[-1], min(len(known), 101))
        knots, z = np.interp(chosen, levels, known), norm.ppf(chosen)
        low, middle = np.interp([0.05, 0.5], levels, known)
        unit = max(middle - low, 1e-9) / -norm.ppf(0.05)  # the scores of one standard deviation
        self._scores = np.maximum.accumulate(np.concatenate([[knots[0] - 10 * unit], knots, [knots[-1] + 10 * unit]]))
        self._z = np.concatenate([[z[0] - 10], z, [z[-1] + 10]])

    @classmethod
    def of(cls, held_out: HeldOutTable) -> "NormalScores":
        """Read them off the known samples of a table."""
        return cls(held_out.known.scores, held_out.known.weights)

    def __call__(self, scores: NDArray[np.floating]) -> Floats:
        """Return normal scores."""
        return np.asarray(np.interp(scores, self._scores, self._z))

    def inverse(self, z: Floats) -> Floats:
        """Scores of normal scores."""
        return np.asarray(np.interp(z, self._z, self._scores))


def _merged(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Ascending scores of which no two are equal up to rounding, and the weight of each: copies count as they weigh."""
    order = np.argsort(scores, kind="stable")
    order = order[weights[order] > 0]
    scores, weights = scores[order], weights[order]
    is_first = np.append(True, np.diff(scores) > 1e-6 * max(float(scores[-1] - scores[0]), 1e-300))
    return scores[is_first], np.add.reduceat(weights, np.flatnonzero(is_first))
