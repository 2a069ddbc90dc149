"""The line between known and open, placed where the expected macro F1 over a model of the log is best."""

from typing import NamedTuple

import numpy as np

from ..._held_out.scores import Floats, HeldOutScores
from ..log_model import CANDIDATES, CENTRES, LogModel, NormalScores, bins_of, right_of

#: The line moves if the expected gain is above so many standard deviations of it.
LEAST_GAIN = 0.5
#: Candidates are as good as the best one if they are expected to lose no more of F1, or of the cost.
AS_GOOD = 0.001
#: The model of the log is off by so much where it foretells a share of known samples.
MODEL_ERROR = 0.02


class Line(NamedTuple):
    """An offset, and what is expected of it against the fitted boundary."""

    offset: float
    moves: bool
    gain: float  # of F1 or, per sample, of the cost
    error: float  # standard deviation of the gain
    f1: float  # expected, at the offset
    f1_fitted: float
    rejected: float  # share of known samples that is expected to be rejected at the offset
    noticed: float
    rejected_error: float  # standard deviation of the share rejected


def place_line(
    held_out: HeldOutScores,
    found: LogModel,
    scores: Floats,
    n_classes: int,
    costs: tuple[float, float] | None = None,
) -> Line:
    """Offset with the best expected macro F1, or with the lowest expected cost.

    Parameters
    ----------
    held_out : HeldOutScores
    found : LogModel
        Of the log, or of a share alone.
    scores : ndarray of shape (n_messages,)
        Scores of the log; none of a share alone. The expected F1 is that of the log, or without one of traffic that is
        drawn from the model.
    n_classes : int
    costs : pair of float, default=None
        Cost of an accepted open sample, and of a rejected known one.
    """
    normal = NormalScores(held_out)
    log = np.bincount(bins_of(normal(scores)), minlength=len(CENTRES)) / len(scores) if len(scores) else None
    parts = _parts(found, log, right_of(held_out, normal))
    f1 = parts.f1(n_classes)
    quality = f1 if costs is None else -parts.cost(*costs) / sum(costs)
    mean = found.weights @ quality
    z = float(CANDIDATES[mean >= mean.max() - AS_GOOD].mean())
    fitted = int(np.abs(CANDIDATES - normal(np.zeros(1))).argmin())
    here = int(np.abs(CANDIDATES - z).argmin())
    gains = quality[:, here] - quality[:, fitted]
    gain = float(found.weights @ gains)
    error = float(found.weights @ np.square(gains - gain)) ** 0.5
    moves = gain > LEAST_GAIN * error
    at = here if moves else fitted
    f1_here, rejected, noticed = (float(found.weights @ table[:, at]) for table in (f1, parts.rejected, parts.noticed))
    scale = 1.0 if costs is None else sum(costs)
    f1_fitted = float(found.weights @ f1[:, fitted])
    rejected_error = (float(found.weights @ np.square(parts.rejected[:, at] - rejected)) + MODEL_ERROR**2) ** 0.5
    offset = float(normal.inverse(np.array(z))) if moves else 0.0
    expected = gain * scale, error * scale
    return Line(offset, moves, *expected, f1_here, f1_fitted, rejected, noticed, rejected_error)


class _Parts(NamedTuple):
    """Of all messages, the shares that are known, open, and above each candidate, for each draw."""

    n_known: Floats  # (n_draws, 1)
    n_open: Floats  # (n_draws, 1)
    accepted: Floats  # (n_draws, n_candidates) known ones
    mistaken: Floats  # (n_draws, n_candidates) open ones
    correct: Floats  # (n_draws, n_candidates) known ones, with their own class

    @property
    def rejected(self) -> Floats:
        return 1 - self.accepted / np.maximum(self.n_known, 1e-12)

    @property
    def noticed(self) -> Floats:
        return 1 - self.mistaken / np.maximum(self.n_open, 1e-12)

    def f1(self, n_classes: int) -> Floats:
        """Macro F1 of classes of equal size and open."""
        of_known = 2 * self.correct / (self.accepted + self.mistaken + self.n_known)
        noticed = self.n_open - self.mistaken
        of_open = 2 * noticed / (self.n_open + noticed + self.n_known - self.accepted)
        return (n_classes * of_known + of_open) / (n_classes + 1)

    def cost(self, of_open: float, of_known: float) -> Floats:
        return of_open * self.mistaken + of_known * (self.n_known - self.accepted)


def _parts(found: LogModel, log: Floats | None, right: Floats) -> _Parts:
    """Add up bins; ``log`` is the share of the log in each, ``None`` for traffic to come."""
    opened, known = found.shares * found.opened, (1 - found.shares) * found.known
    if log is not None:  # each message is open with its posterior probability
        opened = log * opened / (opened + known + 1e-12)
        known = log - opened

    def above(parts: Floats) -> Floats:
        return np.asarray(parts[:, ::-1].cumsum(axis=1)[:, -2::-1])

    n_known, n_open = known.sum(axis=1, keepdims=True), opened.sum(axis=1, keepdims=True)
    return _Parts(n_known, n_open, above(known), above(opened), above(known * right))
