"""The threshold between known and open: where the expected macro F1 over the model of the traffic is best."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from .._held_out.table import Floats, HeldOutTable
from .normal_scores import NormalScores
from .posterior import CANDIDATES, CENTRES, Labels, TrafficModel, bins_of, fit_traffic_model

#: The threshold is a mean of the candidates. Each has the weight exp(−loss / NEAR), by its expected loss of F1, or of
#: the cost, to the best one.
NEAR = 0.001
#: Error of the model in a forecast rate (one standard deviation).
MODEL_ERROR = 0.02
#: Probability that a figure of a forecast lies in its interval.
CERTAINTY = 0.9


class Figure(NamedTuple):
    """A forecast rate: its mean, its standard deviation, and the ends of its interval."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, weights: Floats, draws: Floats, n: float) -> "Figure":
        """Of weighted draws, both (n_draws,), and the number of held-out groups behind it."""
        mean = float(weights @ draws)
        variance, of_model, of_groups = float(weights @ np.square(draws - mean)), MODEL_ERROR**2, _variance(mean, n)
        order = np.argsort(draws)
        levels = np.cumsum(weights[order]) - weights[order] / 2
        low, high = np.interp([(1 - CERTAINTY) / 2, (1 + CERTAINTY) / 2], levels, draws[order])
        below, above = max(mean - float(low), 0.0) + MODEL_ERROR, max(float(high) - mean, 0.0) + MODEL_ERROR
        reach = norm.ppf((1 + CERTAINTY) / 2) * of_groups**0.5
        limits = max(mean - float(np.hypot(below, reach)), 0.0), min(mean + float(np.hypot(above, reach)), 1.0)
        return cls(mean, (variance + of_model + of_groups) ** 0.5, *limits)


def _variance(rate: float, n: float) -> float:
    """Return the sampling variance of a rate of n groups; with one more of each kind, 0 and 1 are not certain."""
    if np.isinf(n):
        return 0.0
    rate = (rate * n + 1) / (n + 2)
    return rate * (1 - rate) / max(n, 1.0)


class Forecast(NamedTuple):
    """What a threshold is expected to do: rates of known messages, the recall of open ones (``noticed``), and F1."""

    right: Figure
    wrong: Figure
    rejected: Figure
    noticed: Figure
    f1: Figure

    def rounded(self) -> dict[str, list[float]]:
        """Return each rate of messages with its standard deviation."""
        return {
            name: [round(figure.mean, 4), round(figure.error, 4)]
            for name, figure in self._asdict().items()
            if name != "f1"
        }


def place_threshold(
    held_out: HeldOutTable,
    found: TrafficModel,
    scores: Floats,
    n_classes: int,
    costs: tuple[float, float] | None = None,
) -> float:
    """Offset with the best expected macro F1, or with the lowest expected cost.

    Parameters
    ----------
    held_out : HeldOutTable
        Known samples, at least one. ``expected`` says how much an accepted open sample counts in F1.
    found : TrafficModel
        Of the log, or of what is expected of the traffic.
    scores : ndarray of shape (n_messages,)
        Scores of the log; none if only the open share is given. The expected F1 is that of the log, or without one
        that of traffic drawn from the model.
    n_classes : int
    costs : pair of float, default=None
        Cost of an accepted open sample, and of a rejected known one.
    """
    normal = NormalScores.of(held_out)
    parts = _parts(found, _proportions_of_bins(normal, scores))
    if costs is None:
        quality = parts.f1(n_classes, held_out.expected.open_weight)
    else:
        quality = -parts.cost(*costs) / sum(costs)
    mean = found.weights @ quality
    z = np.average(CANDIDATES, weights=np.exp((mean - mean.max()) / NEAR))
    return float(normal.inverse(np.asarray(z)))


def threshold_without_log(held_out: HeldOutTable, n_classes: int) -> float:
    """Score below which samples are open, by the prior of the traffic alone: what a fit places its radius scale by."""
    none = np.zeros(0)
    found = fit_traffic_model(held_out, none, none.astype(np.int64), Labels.none(0), held_out.expected.open_share)
    return place_threshold(held_out, found, none, n_classes)


def forecast_of(
    held_out: HeldOutTable, found: TrafficModel, offset: float, n_classes: int, scores: Floats | None = None
) -> Forecast:
    """Forecast what an offset does in traffic to come; ``scores`` are those of a log.

    With a log there are two forecasts: of what the posterior describes, and of the log, each of whose messages is open
    by its probability. The first takes labelled messages, scored without themselves, for typical; in the second the
    proportion of open messages, which labels tell roughly, decides how many known ones lie below. Each counts half
    (linear opinion pool): where they differ, the intervals are wider.
    """
    normal = NormalScores.of(held_out)
    logs = [None] if scores is None else [None, _proportions_of_bins(normal, scores)]
    at, parts = int(np.abs(CANDIDATES - normal(np.array([offset]))).argmin()), [_parts(found, log) for log in logs]
    weights = np.tile(found.weights, len(parts)) / len(parts)

    def figure(tables: list[Floats], n: float) -> Figure:
        return Figure.of(weights, np.concatenate([table[:, at] for table in tables]), n)

    of_known = ([part.right for part in parts], [part.wrong for part in parts], [part.rejected for part in parts])
    right, wrong, rejected = (figure(tables, held_out.n_independent) for tables in of_known)
    noticed = figure([part.noticed for part in parts], held_out.n_other_classes)
    return Forecast(
        right, wrong, rejected, noticed, figure([part.f1(n_classes) for part in parts], held_out.n_independent)
    )


class _Parts(NamedTuple):
    """Of all messages, the proportions that are known, open, and above each candidate, for each draw."""

    n_known: Floats  # (n_draws, 1)
    n_open: Floats  # (n_draws, 1)
    accepted: Floats  # (n_draws, n_candidates) known ones
    mistaken: Floats  # (n_draws, n_candidates) open ones
    correct: Floats  # (n_draws, n_candidates) known ones, with their own class

    @property
    def right(self) -> Floats:
        return self.correct / np.maximum(self.n_known, 1e-12)

    @property
    def wrong(self) -> Floats:
        return (self.accepted - self.correct) / np.maximum(self.n_known, 1e-12)

    @property
    def rejected(self) -> Floats:
        return 1 - self.accepted / np.maximum(self.n_known, 1e-12)

    @property
    def noticed(self) -> Floats:
        return 1 - self.mistaken / np.maximum(self.n_open, 1e-12)

    def f1(self, n_classes: int, open_weight: float = 1.0) -> Floats:
        """Macro F1 of classes of equal size and open.

        An accepted open sample weighs ``open_weight`` times as much as a rejected known one. For the open class this is
        the F-measure whose squared β is ``open_weight`` (van Rijsbergen); for the known ones, the inverse.
        """
        confused, missed = self.accepted - self.correct + self.mistaken, self.n_known - self.correct
        total = (1 + open_weight) * self.correct
        of_known = total / np.maximum(total + open_weight * confused + missed, 1e-12)
        noticed, rejected = self.n_open - self.mistaken, self.n_known - self.accepted
        total = (1 + open_weight) * noticed
        of_open = total / np.maximum(total + open_weight * self.mistaken + rejected, 1e-12)
        return (n_classes * of_known + of_open) / (n_classes + 1)

    def cost(self, of_open: float, of_known: float) -> Floats:
        return of_open * self.mistaken + of_known * (self.n_known - self.accepted)


def _proportions_of_bins(normal: NormalScores, scores: Floats) -> Floats | None:
    """Share of a log in each bin; ``None`` without a message."""
    return np.bincount(bins_of(normal(scores)), minlength=len(CENTRES)) / len(scores) if len(scores) else None


def proportions_of_messages(found: TrafficModel, normal: NormalScores, scores: Floats) -> tuple[Floats, Floats]:
    """Proportions of all messages that are known, and that are open, in each bin, (n_draws, n_bins) each.

    Those of a log of these ``scores``; without any, of traffic to come.
    """
    return _known_and_open(found, _proportions_of_bins(normal, scores))


def _known_and_open(found: TrafficModel, log: Floats | None) -> tuple[Floats, Floats]:
    opened, known = found.shares * found.opened, (1 - found.shares) * found.known
    if log is not None:  # each message is open with its posterior probability
        opened = log * opened / (opened + known + 1e-12)
        known = log - opened
    return known, opened


def _parts(found: TrafficModel, log: Floats | None) -> _Parts:
    """Add up bins; ``log`` is the proportion of the log in each, ``None`` for traffic to come."""
    known, opened = _known_and_open(found, log)

    def above(parts: Floats) -> Floats:
        return np.asarray(parts[:, ::-1].cumsum(axis=1)[:, -2::-1])

    n_known, n_open = known.sum(axis=1, keepdims=True), opened.sum(axis=1, keepdims=True)
    return _Parts(n_known, n_open, above(known), above(opened), above(known * found.right))
