"""The posterior of the traffic: how far out known and open messages lie, and how many are open (importance sampling).

Scores are read as *normal scores* z of held-out known samples: these have mean 0 and standard deviation 1, and lower is
farther out. Known messages are drawn from N(−shift, spread²), open ones from N(−place, width²). The four numbers and
the open share have priors; the posterior is a set of weighted draws of the five.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit, log_ndtr, logit, ndtr
from scipy.stats import norm, qmc
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from .._held_out.expected import NOTHING_TOLD, TRAFFIC, Expected, Share
from .._held_out.table import Floats, HeldOutTable, Integers
from .normal_scores import NormalScores
from .priors import (
    CONFUSION,
    DOUBTED,
    EVIDENCE,
    GAP_ERROR,
    LEAST_APART,
    LEAST_WIDTH,
    LOOK_KNOWN,
    MEAN_PLACE,
    MEAN_WIDTH,
    MOST_ELSEWHERE,
    MOST_MESSAGES,
    MOST_REAL,
    NEARER,
    PLACE,
    PLACE_DEGREES,
    SHIFT,
    SPREAD,
    SYNTHETIC_PART,
    TOLD_ERROR,
    WIDTH,
)

#: Candidates of the threshold, and the centres of the bins that they divide; the bin i ends at the candidate i.
CANDIDATES = np.linspace(-4.5, 1.5, 61)
CENTRES = np.append(CANDIDATES, 1.6) - 0.05
#: Draws of six standard normal numbers, evenly spread, from which the unknowns are computed: no random numbers, so that
#: the same log gives the same result.
POINTS = norm.ppf(np.clip(qmc.Sobol(6, seed=0).random(2048), 1e-4, 1 - 1e-4))
#: Below this effective sample size, draw again around the posterior, at most ``MOST_MOVES`` times; ``N_STAY`` stay.
ENOUGH_DRAWS, MOST_MOVES, N_STAY = 500, 5, 512
LEVELS = (1e-12, 1 - 1e-12)  # of Student's t: beyond, the place of open messages would be infinite
_GAP_ERRORS = GAP_ERROR * norm.ppf(np.clip(qmc.Sobol(7, seed=1).random(len(POINTS))[:, 6:], 1e-4, 1 - 1e-4))
#: Open shares are clipped to these bounds.
SMALLEST_RATE, LARGEST_RATE = 0.001, 0.995
CERTAINTY = 0.95  # probability that the open share lies in its interval
_EDGES = np.concatenate([[-np.inf], CANDIDATES, [np.inf]])


class Labels(NamedTuple):
    """Which messages of a log have a label, which of these are open, and what each label counts."""

    labelled: NDArray[np.bool_]  # (n_messages,)
    is_open: NDArray[np.bool_]  # (n_labelled,)
    is_right: NDArray[np.bool_]  # (n_labelled,) assigned to the class of the label
    counts: Floats  # (n_labelled,) their sum is the number of labels drawn at random that tell as much
    of_share: Floats  # (n_labelled,) what each counts for the open share: less, if it is of another log
    # (n_labelled,) of what users picked when they were asked: the logarithm of how much likelier the gap between the
    # first two classes is of an open message than of a known one. NaN of labels that were drawn; empty if all were.
    odds: Floats = np.zeros(0)

    @property
    def is_picked(self) -> NDArray[np.bool_]:
        """Whether a label was picked: then the score and the gap said that there is one."""
        return ~np.isnan(self.odds) if len(self.odds) else np.zeros(len(self.counts), dtype=bool)

    @classmethod
    def of(
        cls,
        labelled: NDArray[np.bool_],
        is_open: NDArray[np.bool_],
        is_right: NDArray[np.bool_],
        weights: Floats,
        sheets: Integers | None = None,
    ) -> "Labels":
        """Scale weights, one over the chance of being labelled, so that a sheet sums to its effective sample size."""
        shares = weights / max(weights.max(initial=0.0), np.finfo(float).tiny)  # their squares do not overflow
        sheets = np.unique(np.zeros(len(weights)) if sheets is None else sheets, return_inverse=True)[1].ravel()
        factors = np.bincount(sheets, shares) / np.maximum(np.bincount(sheets, np.square(shares)), 1e-300)
        counts = shares * factors[sheets]
        return cls(labelled, is_open, is_right, counts, counts)

    @classmethod
    def none(cls, n_messages: int) -> "Labels":
        """No labels."""
        none = np.zeros(0, dtype=bool)
        return cls(np.zeros(n_messages, dtype=bool), none, none, np.zeros(0), np.zeros(0))

    def of_elsewhere(self, elsewhere: NDArray[np.bool_]) -> "Labels":
        """Let labels of other logs, (n_labelled,), tell little of the open share of this one."""
        n = self.counts[elsewhere].sum()
        factors = np.where(elsewhere, min(1.0, MOST_ELSEWHERE / max(n, 1e-9)), 1.0)
        return self._replace(of_share=self.counts * factors)


def open_share_draws(
    open_share: Share | None, labels: Labels, expected: Share = TRAFFIC, points: Floats = POINTS[:, 0]
) -> Floats:
    """Draws of the open share before labels and scores are read, (n_draws, 1).

    It is told; or, with labels, roughly as ``expected``; or anything.
    """
    levels, doubt = ndtr(points), 1.0
    if open_share is None and len(labels.counts):
        open_share, doubt = expected, DOUBTED
    if isinstance(open_share, tuple):
        low, high = logit(np.clip(open_share, 0.002, 0.998))
        shares = expit((low + high) / 2 + doubt * points * (high - low) / (2 * norm.ppf(0.5 + CERTAINTY / 2)))
    elif open_share is not None:
        value, error = np.clip(open_share, 0.005, 0.99), doubt * TOLD_ERROR
        shares = value * np.exp(error * norm.ppf(levels * ndtr(-np.log(value) / error)))  # below 1
    else:
        shares = levels
    return np.asarray(np.clip(shares, SMALLEST_RATE, LARGEST_RATE)[:, np.newaxis])


class Unknowns(NamedTuple):
    """What a log is described by; ``traffic_`` of a classifier holds their means."""

    open_share: Floats
    known_shift: Floats
    known_spread: Floats
    open_place: Floats
    open_width: Floats

    def of_bins(self) -> tuple[Floats, Floats]:
        """Shares of the bins among known and among open messages, both (n_draws, n_bins)."""
        known = np.diff(ndtr((_EDGES + self.known_shift) / self.known_spread))
        opened = np.diff(ndtr((_EDGES + self.open_place) / self.open_width))
        opened = (1 - LOOK_KNOWN) * opened + LOOK_KNOWN * known
        # Nearer than the mean of the known ones, no message is more probably open than there: else messages that lie
        # nearer than all held-out samples would be open ones, which lie anywhere.
        is_near = -self.known_shift < CENTRES
        ratios = opened / (known + 1e-300)
        at_mean = np.take_along_axis(ratios, is_near.argmax(axis=-1, keepdims=True), axis=-1)
        return known, np.where(is_near, np.minimum(opened, known * at_mean), opened)


class TrafficModel(NamedTuple):
    """Weighted draws of the unknowns, and the proportions of the bins among known and open messages."""

    weights: Floats  # (n_draws,)
    unknowns: Unknowns  # each (n_draws, 1)
    known: Floats  # (n_draws, n_bins)
    opened: Floats  # (n_draws, n_bins)
    right: Floats  # (n_draws, n_bins) probability that a known message of each bin is assigned to its class
    confusion: Floats  # (n_draws, 1) how far the log-odds of that lie below those of held-out samples

    @property
    def shares(self) -> Floats:
        """Draws of the open share, (n_draws, 1)."""
        return self.unknowns.open_share

    def interval(self) -> tuple[float, float]:
        """Credible interval of the open share."""
        order = np.argsort(self.shares[:, 0])
        levels = np.cumsum(self.weights[order])
        low, high = np.interp([(1 - CERTAINTY) / 2, (1 + CERTAINTY) / 2], levels, self.shares[order, 0])
        return float(low), float(high)

    def traffic(self) -> dict[str, float]:
        """Means of the unknowns, and the credible interval of the open share."""
        means = {name: float(self.weights @ draws[:, 0]) for name, draws in self.unknowns._asdict().items()}
        low, high = self.interval()
        return {"open_share": means.pop("open_share"), "low": low, "high": high, **means}

    def open_probability(self) -> Floats:
        """Probability that a message of each bin is open, (n_bins,)."""
        return falling(self.weights @ open_probability(self.shares, self.known, self.opened))


def open_probability(shares: Any, known: Floats, opened: Floats) -> Floats:
    """Probability that a message of each bin is open."""
    return np.asarray(shares * opened / (shares * opened + (1 - shares) * known + 1e-300))


def falling(probabilities: Floats) -> Floats:
    """Make P(open) non-increasing in the score: in the tails the broader of two normal densities would win."""
    return np.asarray(np.maximum.accumulate(probabilities[::-1])[::-1])


def usual_open(held_out: HeldOutTable, normal: NormalScores, *, is_unseen: bool = False) -> tuple[float, float]:
    """Usual place and width of open messages.

    The mean of those of texts and of samples of held-out classes; the place, less those of synthetic classes. Known
    classes that lie far apart do not say that unknown ones lie as far: where the traffic ``is_unseen``, these lie
    no farther than in texts. Behind a projection, where open samples lie nearer, held-out classes alone say how near.
    """
    place, width, part = MEAN_PLACE, MEAN_WIDTH, 1.0 if held_out.expected.projected else 0.5
    if len(held_out.other_class):
        z = normal(held_out.other_class.scores)
        mean = np.average(z, weights=held_out.other_class.weights)
        place -= part * (MEAN_PLACE + float(mean))
        width += part * (
            float(np.average(np.square(z - mean), weights=held_out.other_class.weights)) ** 0.5 - MEAN_WIDTH
        )
    if is_unseen:
        place = min(place, MEAN_PLACE)
    if len(held_out.synthetic):
        place -= SYNTHETIC_PART * (place + float(normal(held_out.synthetic.scores).mean()))
    return place, max(width, LEAST_WIDTH)


class Evidence(NamedTuple):
    """What is known of a log beside the prior."""

    bins: Integers  # (n_messages,) of the normal scores
    copies: Integers  # (n_messages,) equal numbers for copies of one message
    labels: Labels
    open_share: Share | None  # what somebody tells; None: what the labels tell
    usual: tuple[float, float]  # place and width of open messages
    right: Floats  # (n_bins,) log-odds that a held-out sample of each bin is assigned to its class
    offered: Floats  # (n_bins,) the same of its class being among the first three
    real: Integers  # (n_real,) bins of real open samples of the training
    expected: Expected = NOTHING_TOLD

    def unknowns(self, points: Floats) -> Unknowns:
        """Compute them from draws of standard normal numbers, (n_draws, 6)."""
        known_shift = self.expected.known_shift
        shares = open_share_draws(self.open_share, self.labels, self.expected.open_share, points[:, 0])
        shift, spread, place, width = np.split(points[:, 1:5], 4, axis=1)
        # Where known samples come as the training samples did, open ones come from there, too.
        at_usual = known_shift == 0 or self.expected.projected
        place = (0.0 if at_usual else PLACE[0]) + PLACE[1] * student.ppf(np.clip(ndtr(place), *LEVELS), PLACE_DEGREES)
        shift = -SHIFT * log_ndtr(-shift) if known_shift is None else np.full_like(shares, known_shift)
        mean, deviation = (0.0, 0.0) if known_shift == 0 else SPREAD  # 0: known messages are as held-out samples
        usual_place, usual_width = self.usual
        return Unknowns(
            shares,
            shift,
            np.exp(mean + deviation * spread),
            usual_place + place,
            usual_width * np.exp(WIDTH[0] + WIDTH[1] * width),
        )

    def log_likelihood(self, unknowns: Unknowns, known: Floats, opened: Floats) -> Floats:
        """Of each draw, (n_draws,); ``known`` and ``opened`` are its proportions of the bins."""
        labels, shares = self.labels, unknowns.open_share
        apart = (unknowns.open_place - unknowns.known_shift)[:, 0]
        logs = np.where(apart < LEAST_APART, -8.0, 0.0) + NEARER * np.minimum(apart, 0.0)
        if len(self.real):
            logs += np.log(opened[:, self.real] + 1e-9).mean(axis=1) * min(len(self.real), MOST_REAL)
        picked, of_labelled = labels.is_picked, self.bins[labels.labelled]
        is_unlabelled = ~labels.labelled
        # What was picked, and copies of labelled messages, which count nothing as labels, are of the log as others are.
        is_unlabelled[np.flatnonzero(labels.labelled)[picked | (labels.counts == 0)]] = True
        unlabelled = np.bincount(self.bins[is_unlabelled], minlength=len(CENTRES))
        if n := unlabelled.sum():
            n_independent = n**2 / np.square(np.bincount(self.copies[is_unlabelled])).sum()
            each = min(MOST_MESSAGES, n_independent) / n
            logs += np.log((1 - shares) * known + shares * opened + 1e-12) @ unlabelled * each
        is_open, is_known = labels.is_open & ~picked, ~labels.is_open & ~picked
        n_open, n_known = labels.of_share[is_open].sum(), labels.of_share[is_known].sum()
        logs += n_open * np.log(shares[:, 0]) + n_known * np.log(1 - shares[:, 0])
        logs += np.log(known[:, of_labelled[is_known]] + 1e-9) @ labels.counts[is_known]
        logs += np.log(opened[:, of_labelled[is_open]] + 1e-9) @ labels.counts[is_open]
        if picked.any():
            bins = of_labelled[picked]
            chances = self._of_picks(unknowns, known[:, bins], opened[:, bins], bins, labels.odds[picked])
            none = labels.is_open[picked]
            logs += np.log(np.where(none, chances, 1 - chances) + 1e-9) @ labels.counts[picked]
        return np.asarray(logs)

    def _of_picks(self, unknowns: Unknowns, known: Floats, opened: Floats, bins: Integers, odds: Floats) -> Floats:
        """Probability that "none of these" is picked, (n_draws, n_picked), where score and gap are as they are.

        It is picked of open messages, and of known ones whose class is not offered. Only what is asked about has a
        label, and that depends on the score and the gap alone: so the label tells, not that there is one.
        """
        of_open = unknowns.open_share * (opened + 1e-9) * np.exp(odds + _GAP_ERRORS)
        of_known = (1 - unknowns.open_share) * (known + 1e-9)
        is_offered = expit(self.offered[bins] - unknowns.known_shift - CONFUSION[0])
        return np.asarray((of_open + of_known * (1 - is_offered)) / (of_open + of_known))


def importance_sampled(evidence: Evidence) -> TrafficModel:
    """Weigh draws of the unknowns by the normal scores of a log and its labels (adaptive importance sampling).

    The draws are first those of the prior. Where their effective sample size is small, they are drawn anew around those
    that carry the weight, and weighed by the ratio of the densities.
    """
    points, ratios = POINTS, np.zeros(len(POINTS))
    for move in range(MOST_MOVES + 1):
        unknowns = evidence.unknowns(points)
        known, opened = unknowns.of_bins()
        logs = ratios + evidence.log_likelihood(unknowns, known, opened)
        weights = _weights_of(logs)
        if move == MOST_MOVES or 1 / np.square(weights).sum() >= ENOUGH_DRAWS:
            break
        points, ratios = _moved(points, logs)
    labels = evidence.labels
    drawn_known = ~labels.is_open & ~labels.is_picked  # questions are about what is confused
    of_known = evidence.bins[labels.labelled][drawn_known]
    confusion = unknowns.known_shift
    if evidence.expected.known_shift != 0:
        moved = evidence.right[of_known] - float(weights @ confusion[:, 0])
        is_right, counts = labels.is_right[drawn_known], labels.counts[drawn_known]
        confusion = confusion + _confusion(moved, is_right, counts)[:, np.newaxis]
    return TrafficModel(weights, unknowns, known, opened, expit(evidence.right - confusion), confusion)


def _weights_of(logs: Floats) -> Floats:
    """Weights, with the sum 1, of their logarithms."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _moved(points: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Draw most points where the weight is, and give the logarithm of the prior density over that of all points.

    The weights are first made more equal (a power of them), so that enough points say where it is. The last of the six
    numbers is not weighed, and stays.
    """
    low, high = 0.0, 1.0
    for _ in range(20):
        power = (low + high) / 2
        is_enough = 1 / np.square(_weights_of(power * logs)).sum() >= ENOUGH_DRAWS / 2
        low, high = (power, high) if is_enough else (low, power)
    weights, weighed = _weights_of(low * logs), points[:, :5]
    mean = weights @ weighed
    covariance = (weighed - mean).T @ (weights[:, np.newaxis] * (weighed - mean)) + 1e-4 * np.eye(5)
    root = np.linalg.cholesky(covariance)
    drawn = np.concatenate([POINTS[:N_STAY, :5], mean + POINTS[N_STAY:, :5] @ root.T])
    prior = -np.square(drawn).sum(axis=1) / 2
    around = solve_triangular(root, (drawn - mean).T, lower=True)
    around = -np.square(around).sum(axis=0) / 2 - np.log(np.diag(root)).sum()
    part = N_STAY / len(POINTS)
    return np.hstack([drawn, POINTS[:, 5:]]), prior - np.logaddexp(np.log(part) + prior, np.log(1 - part) + around)


def _confusion(log_odds: Floats, is_right: NDArray[np.bool_], counts: Floats) -> Floats:
    """Draws of how far the log-odds of the right class lie below those of held-out samples, (n_draws,).

    Labelled known messages tell it: their expected ``log_odds``, and whether their class is right. Nothing else is
    learned from that, since a wrong class may be an error of the label.
    """
    mean, deviation = CONFUSION
    candidates = mean + deviation * np.linspace(-4, 4, 81)
    odds = log_odds[:, np.newaxis] - candidates  # (n_known, n_candidates)
    logs = counts @ -np.logaddexp(0, np.where(is_right[:, np.newaxis], -odds, odds)) + norm.logpdf(
        candidates, mean, deviation
    )
    levels = np.cumsum(np.exp(logs - logs.max()))
    return np.asarray(np.interp(ndtr(POINTS[:, 5]), levels / levels[-1], candidates))


def bins_of(z: Floats) -> Integers:
    """Bin of each normal score; what is no number lies farthest out."""
    return np.asarray(np.searchsorted(CANDIDATES, np.nan_to_num(z, nan=-np.inf)))


def _log_odds_of(held_out: HeldOutTable, normal: NormalScores, right: NDArray[np.bool_]) -> Floats:
    """Log-odds in each bin of what is ``right`` of held-out samples, (n_bins,): a logistic regression."""
    if right.all() or not right.any():
        return np.full(len(CENTRES), 10.0 if right.all() else -10.0)
    weights = EVIDENCE * held_out.known.weights / held_out.known.weights.sum()
    model = LogisticRegression().fit(normal(held_out.known.scores)[:, np.newaxis], right, weights)
    return np.asarray(model.decision_function(CENTRES[:, np.newaxis]))


def fit_traffic_model(
    held_out: HeldOutTable,
    scores: Floats,
    copies: Integers,
    labels: Labels,
    open_share: Share | None = None,
) -> TrafficModel:
    """Fit the model to the scores of a log and its labels, as ``importance_sampled``."""
    normal = NormalScores.of(held_out)
    usual = usual_open(held_out, normal, is_unseen=not len(scores))
    evidence = Evidence(
        bins_of(normal(scores)),
        copies,
        labels,
        open_share,
        usual,
        _log_odds_of(held_out, normal, held_out.known.assigned == held_out.known.classes),
        _log_odds_of(held_out, normal, held_out.known.ranks > 0) if labels.is_picked.any() else np.zeros(0),
        bins_of(normal(held_out.real.scores)),
        held_out.expected,
    )
    return importance_sampled(evidence)
