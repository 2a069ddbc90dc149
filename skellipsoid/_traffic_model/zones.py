"""The zones of three answers: which messages are answered, which are asked about, and which are open.

A message is *open* below a score, *answered* from another score on if the gap between its first two classes is large
enough, and asked about otherwise. A question offers the first three classes. How often these hold the right class, by
score and gap, is read off held-out samples; how far out messages lie and how many are open says the model of the log.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr
from sklearn.linear_model import LogisticRegression

from .._held_out.table import N_FIRST, Floats, HeldOutTable, Integers
from .normal_scores import NormalScores
from .posterior import CANDIDATES, CENTRES, TrafficModel, bins_of
from .priors import EVIDENCE
from .threshold import Figure, proportions_of_messages

#: Candidates of the gap, as normal scores of the gaps of held-out known samples; the bin i ends at the candidate i.
GAPS = np.linspace(-2.5, 2.0, 19)
_GAP_EDGES = np.concatenate([[-np.inf], GAPS, [np.inf]])
_GAP_CENTRES = np.append(GAPS, GAPS[-1] + 0.25) - 0.125
#: A gap that is infinite: there is no second class.
_ALONE = 10.0
#: Number of draws of equal weight that stand for the posterior.
N_DRAWS = 128
#: Log-odds where there is no doubt.
_SURE = 30.0
#: The gaps of samples with one score vary at least so much: a few samples of equal gaps do not say that all have them.
_LEAST_DEVIATION = 0.3
#: To keep a miss rate, the cost of a miss rises through these numbers of questions until misses are rare enough.
_STEPS = 1.2 ** np.arange(-12, 60)
#: No score reaches this threshold, and every score is above −1 times it.
NO_THRESHOLD = float(np.finfo(np.float32).max)


class Costs(NamedTuple):
    """Costs of a question, of a wrong prediction, and of a message that is handed over.

    The defaults ask where the question helps more often than not. With 20 % open and 30 labels they serve 81, 87 and
    73 % of three bots' known messages (skellipsoid-bench/results/ask.rst).
    """

    question: float = 1.0
    wrong: float = 4.0
    person: float = 2.0


class Zones(NamedTuple):
    """Scores below ``low`` are open; from ``high`` on, those are answered whose gap is at least ``gap``."""

    low: float
    high: float
    gap: float


class Rates(NamedTuple):
    """What zones do: rates of known messages, and of open ones."""

    served: float  # answered with the right class
    wrong: float  # answered with a wrong class
    asked: float
    missed: float  # neither answered right nor asked with the right class among those that are offered
    open_asked: float
    open_answered: float


class Questions(NamedTuple):
    """What zones are expected to ask about: a rate of known messages, and one of open ones."""

    asked: Figure
    open_asked: Figure

    def rounded(self) -> dict[str, list[float]]:
        """Return each rate with its standard deviation."""
        return {name: [round(figure.mean, 4), round(figure.error, 4)] for name, figure in self._asdict().items()}


class Ranks:
    """How often the right class is among the first ones, by score and gap, and how the gaps lie at each score.

    Parameters
    ----------
    held_out : HeldOutTable
    n_classes : int
    """

    def __init__(self, held_out: HeldOutTable, n_classes: int) -> None:
        self.held_out, self.n_classes = held_out, n_classes
        self.scores = NormalScores.of(held_out)
        self._z = self.scores(held_out.known.scores)

    @cached_property
    def gaps(self) -> NormalScores | None:
        """Gaps as normal scores of those of held-out known samples; ``None`` without a finite one."""
        is_finite = np.isfinite(self.held_out.known.gaps)
        if not is_finite.any():
            return None
        known = self.held_out.known
        return NormalScores(known.gaps[is_finite], known.weights[is_finite])

    def normal_gaps(self, gaps: Floats) -> Floats:
        """Return gaps as normal scores."""
        found = np.full(len(gaps), _ALONE)
        is_finite = np.isfinite(gaps)
        if self.gaps is not None:
            found[is_finite] = np.minimum(self.gaps(gaps[is_finite]), _ALONE)
        return found

    def gap_of(self, number: int) -> float:
        """Gap of a candidate; number 0 is none, number i the end of the bin i − 1."""
        if number == 0 or self.gaps is None:
            return -NO_THRESHOLD
        return float(self.gaps.inverse(GAPS[number - 1 : number])[0])

    def number_of(self, gap: float) -> int:
        """Return the candidate of a gap, as ``gap_of``."""
        if gap <= -NO_THRESHOLD:
            return 0
        return int(np.abs(GAPS - self.normal_gaps(np.array([gap]))).argmin()) + 1

    @cached_property
    def _u(self) -> Floats:
        return self.normal_gaps(self.held_out.known.gaps)

    @cached_property
    def of_known(self) -> Floats:
        """Share of each bin of gaps among known messages of each bin of scores, (n_bins, n_gaps)."""
        return _proportions_of_gaps(self._z, self._u, self.held_out.known.weights)

    @cached_property
    def of_open(self) -> Floats:
        """The same of open messages, as of samples of held-out classes; without any, as of known ones."""
        held_out = self.held_out
        if not len(held_out.other_class):
            return self.of_known
        u = self.normal_gaps(held_out.other_class.gaps)
        return _proportions_of_gaps(self.scores(held_out.other_class.scores), u, held_out.other_class.weights)

    def gap_odds(self, scores: Floats, gaps: Floats) -> Floats:
        """Logarithm of how much likelier gaps are of open messages than of known ones of these scores."""
        bins, of_gap = bins_of(self.scores(scores)), np.searchsorted(GAPS, self.normal_gaps(gaps))
        return np.asarray(np.log((self.of_open[bins, of_gap] + 1e-3) / (self.of_known[bins, of_gap] + 1e-3)))

    @cached_property
    def _models(self) -> list[Any]:
        """Logistic regressions for the first class, the first two and the first three; a number where all are alike.

        One right and one wrong sample more, so that nothing is certain.
        """
        weights = self.held_out.known.weights * EVIDENCE / self.held_out.known.weights.sum()
        features = np.column_stack([self._z, self._u])
        mean = np.average(features, axis=0, weights=weights)
        features = np.concatenate([features, [mean, mean]])
        weights = np.append(weights, [weights.mean()] * 2)
        models: list[Any] = []
        for n_first in range(1, N_FIRST + 1):
            if n_first >= self.n_classes:
                models.append(_SURE)
                continue
            is_among = (self.held_out.known.ranks >= 1) & (self.held_out.known.ranks <= n_first)
            models.append(LogisticRegression().fit(features, np.append(is_among, [True, False]), weights))
        return models

    def log_odds(self, z: Floats, u: Floats) -> Floats:
        """Log-odds that a held-out sample's class is the first, among the first two, and three, (3, n_samples)."""
        features = np.column_stack([z, u])
        found = [
            np.full(len(z), model) if isinstance(model, float) else model.decision_function(features)
            for model in self._models
        ]
        return np.asarray(np.maximum.accumulate(found, axis=0))

    @cached_property
    def of_bins(self) -> Floats:
        """Log-odds of all bins of scores and gaps, (3, n_bins, n_gaps)."""
        z, u = np.meshgrid(CENTRES, _GAP_CENTRES, indexing="ij")
        return self.log_odds(z.ravel(), u.ravel()).reshape(N_FIRST, len(CENTRES), len(_GAP_CENTRES))


def _proportions_of_gaps(z: Floats, u: Floats, weights: Floats) -> Floats:
    """Share of each bin of gaps at each bin of scores: normal, with a mean that is a line of the score."""
    mean_z, mean_u = np.average(z, weights=weights), np.average(u, weights=weights)
    slope = float(np.average((z - mean_z) * (u - mean_u), weights=weights))
    slope /= max(float(np.average(np.square(z - mean_z), weights=weights)), 1e-6)
    rest = u - mean_u - slope * (z - mean_z)
    deviation = max(float(np.average(np.square(rest), weights=weights)) ** 0.5, _LEAST_DEVIATION)
    means = mean_u + slope * (CENTRES - mean_z)
    return np.asarray(np.diff(ndtr((_GAP_EDGES - means[:, np.newaxis]) / deviation), axis=1))


class Masses(NamedTuple):
    """Of all messages, the proportions in each bin of scores and gaps, each (n_bins, n_gaps)."""

    known: Floats
    opened: Floats
    first: Floats  # known ones whose class is the first
    offered: Floats  # known ones whose class is among the first three

    @classmethod
    def of(cls, ranks: Ranks, found: TrafficModel, scores: Floats) -> "Masses":
        """Means over draws of the posterior, of a log of these ``scores``, or without any of traffic to come."""
        known, opened = proportions_of_messages(found, ranks.scores, scores)
        draws = _even(found.weights)
        known, opened, confusion = known[draws], opened[draws], found.confusion[draws]
        of_known, moved = known.mean(axis=0)[:, np.newaxis] * ranks.of_known, confusion[:, :, np.newaxis]
        first, offered = (
            np.einsum("db,dbg->bg", known, expit(ranks.of_bins[place] - moved)) / len(draws) * ranks.of_known
            for place in (0, N_FIRST - 1)
        )
        return cls(of_known, opened.mean(axis=0)[:, np.newaxis] * ranks.of_open, first, offered)

    def rates(self, low: int, high: int, gap: int) -> Rates:
        """Return what zones do that begin with these bins."""
        n_known, n_open = (max(float(part.sum()), 1e-12) for part in (self.known, self.opened))

        def answered(part: Floats) -> float:
            return float(part[high:, gap:].sum())

        def asked(part: Floats) -> float:
            return float(part[low:].sum()) - answered(part)

        served, offered = answered(self.first) / n_known, asked(self.offered) / n_known
        return Rates(
            served=served,
            wrong=answered(self.known) / n_known - served,
            asked=asked(self.known) / n_known,
            missed=max(1 - served - offered, 0.0),
            open_asked=asked(self.opened) / n_open,
            open_answered=answered(self.opened) / n_open,
        )


def _even(weights: Floats) -> Integers:
    """Draw evenly by weight, without random numbers."""
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    return np.asarray(np.searchsorted(np.cumsum(weights), levels * weights.sum()).clip(max=len(weights) - 1))


def _from_each(part: Floats) -> Floats:
    """Add up all bins from each bin of scores and of gaps on, (n_bins + 1, n_gaps)."""
    sums = part[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return np.asarray(np.vstack([sums, np.zeros(part.shape[1])]))


class _Bins(NamedTuple):
    """Zones by their first bins."""

    low: int
    high: int
    gap: int

    def wider(self, other: "_Bins") -> "_Bins":
        """Ask about all that either asks about."""
        return _Bins(min(self.low, other.low), max(self.high, other.high), max(self.gap, other.gap))


def _best(answer: Floats, ask: Floats, opened: Floats, at: int) -> _Bins:
    """Zones of the least cost, by the costs of the three actions in each bin; the threshold is before bin ``at``."""
    of_low = _from_each(ask - opened)[: at + 1, 0]
    low = at - int(of_low[::-1].argmin())  # of equal ones that with the fewest questions
    of_high = _from_each(answer - ask)[at:]
    high, gap = np.unravel_index(int(of_high.argmin()), of_high.shape)
    return _Bins(low, at + int(high), int(gap))


def place_by_costs(masses: Masses, at: int, costs: Costs) -> _Bins:
    """Zones with the least expected cost."""
    everybody = masses.known + masses.opened
    answer = costs.wrong * (everybody - masses.first)
    ask = costs.question * everybody + costs.person * (everybody - masses.offered)
    return _best(answer, ask, costs.person * everybody, at)


def place_by_rate(masses: Masses, at: int, miss_rate: float) -> _Bins:
    """Zones with the fewest questions of those that keep a rate of misses; if none does, all are asked.

    A miss costs more and more questions. What was asked about once is asked about from then on, so that a smaller rate
    asks about all that a larger one asks about.
    """
    everybody, found = masses.known + masses.opened, _Bins(at, at, 0)
    for step in _STEPS:
        answer = step * (masses.known - masses.first)
        ask = everybody + step * (masses.known - masses.offered)
        found = found.wider(_best(answer, ask, step * masses.known, at))
        if masses.rates(*found).missed <= miss_rate:
            return found
    return _Bins(0, len(CENTRES), 0)


class Asking(NamedTuple):
    """Zones, what they were placed by, and what they are expected to do."""

    zones: Zones
    costs: Costs
    miss_rate: float | None
    confusion: float  # mean of the posterior
    foretold: Rates

    def as_mapping(self) -> dict[str, float]:
        """Give all numbers by name: ``asking_`` of a classifier."""
        costs = {f"cost_{name}": cost for name, cost in self.costs._asdict().items()}
        found = {**self.zones._asdict(), **costs, "confusion": self.confusion, **self.foretold._asdict()}
        return found if self.miss_rate is None else {**found, "miss_rate": self.miss_rate}


def place_zones(
    held_out: HeldOutTable,
    found: TrafficModel,
    scores: Floats,
    offset: float,
    n_classes: int,
    costs: Costs | None = None,
    miss_rate: float | None = None,
) -> Asking:
    """Place the zones around a threshold, by costs or by a rate of misses.

    Parameters
    ----------
    held_out : HeldOutTable
    found : TrafficModel
        Of the log, or of what is expected of the traffic.
    scores : ndarray of shape (n_messages,)
        Scores of the log; none without one.
    offset : float
        Score below which ``predict`` rejects. Zones of answers lie above it, zones of open below.
    n_classes : int
    costs : Costs, default=None
    miss_rate : float, default=None
        Largest proportion of known messages that get neither the right class nor a question that offers it.
        ``None``: by the costs.
    """
    costs, ranks = costs or Costs(), Ranks(held_out, n_classes)
    masses = Masses.of(ranks, found, scores)
    at = _bin_of(ranks, offset)
    if miss_rate is None:
        bins = place_by_costs(masses, at, costs)
    else:
        bins = place_by_rate(masses, at, miss_rate)

    def score_before(number: int) -> float:
        if number == at:
            return offset
        if number in (0, len(CENTRES)):
            return -NO_THRESHOLD if number == 0 else NO_THRESHOLD
        return float(ranks.scores.inverse(CANDIDATES[number - 1 : number])[0])

    low, high = min(score_before(bins.low), offset), max(score_before(bins.high), offset)
    confusion = float(found.weights @ found.confusion[:, 0])
    zones = Zones(low, high, ranks.gap_of(bins.gap))
    return Asking(zones, costs, miss_rate, confusion, masses.rates(*bins))


def least_missed(held_out: HeldOutTable, found: TrafficModel, scores: Floats, n_classes: int) -> float:
    """Smallest miss rate: the proportion of known messages that are missed if every message is asked about."""
    return Masses.of(Ranks(held_out, n_classes), found, scores).rates(0, len(CENTRES), 0).missed


def forecast_of_zones(
    held_out: HeldOutTable, found: TrafficModel, zones: Zones, n_classes: int, *log: Floats
) -> Questions:
    """Forecast how much zones ask about, in a ``log`` of scores and gaps or in traffic to come.

    Which messages of a log are asked about is known, but not which of them are open. Without gaps, those of known and
    of open messages are as those of held-out samples.
    """
    scores, gaps = (*log, np.zeros(0), np.zeros(0))[:2]
    ranks = Ranks(held_out, n_classes)
    parts = proportions_of_messages(found, ranks.scores, scores)
    if not len(gaps):
        gap, bins = ranks.number_of(zones.gap), np.arange(len(CENTRES))
        low, high = (_bin_of(ranks, threshold) for threshold in (zones.low, zones.high))
        of_gaps = (table[:, gap:].sum(axis=1) for table in (ranks.of_known, ranks.of_open))
        asked = [(bins >= low) - 1.0 * (bins >= high) * answered for answered in of_gaps]
    else:
        bins = bins_of(ranks.scores(scores))
        is_asked = (scores >= zones.low) & ~((scores >= zones.high) & (gaps >= zones.gap))
        counts = np.maximum(np.bincount(bins, minlength=len(CENTRES)), 1)
        asked = [np.bincount(bins, is_asked, minlength=len(CENTRES)) / counts] * 2
    of_each = zip(parts, asked, strict=True)
    known, opened = (part @ of_bins / np.maximum(part.sum(axis=1), 1e-12) for part, of_bins in of_each)
    of_known = Figure.of(found.weights, known, held_out.n_independent)
    return Questions(of_known, Figure.of(found.weights, opened, held_out.n_other_classes))


def _bin_of(ranks: Ranks, threshold: float) -> int:
    """Return the first bin of scores that is above a threshold."""
    if abs(threshold) >= NO_THRESHOLD:
        return 0 if threshold < 0 else len(CENTRES)
    return int(np.abs(CANDIDATES - ranks.scores(np.array([threshold]))).argmin()) + 1


def costs_of(asking: Mapping[str, float] | None) -> tuple[Costs | None, float | None]:
    """Return what the zones of a classifier were placed by, to place them again."""
    if asking is None:
        return None, None
    return Costs(*(asking[f"cost_{name}"] for name in Costs._fields)), asking.get("miss_rate")
