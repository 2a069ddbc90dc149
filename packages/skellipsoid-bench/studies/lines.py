"""Ways to place the line by the scores of a log and its share of open messages, for ``real_lines.py``.

``posterior_line`` is the one that the study recommends, in plain NumPy; the others are its rivals.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta, norm, qmc
from sklearn.linear_model import LogisticRegression

#: Candidates of the line, in normal scores of held-out known samples, and the centres of the bins between them.
CANDIDATES = np.linspace(-4.5, 1.5, 61)
CENTRES = np.append(CANDIDATES, 1.6) - 0.05
#: Draws of the five unknowns, evenly spread: no random numbers, the same log gives the same line.
UNIFORM = np.clip(qmc.Sobol(5, seed=0).random(2048), 1e-4, 1 - 1e-4)
NORMAL = norm.ppf(UNIFORM)
#: Known traffic lies SHIFT[0] ± SHIFT[1] farther out than held-out samples (three live bots: 0.6, 0.9 and 1.4; texts of
#: the same hand: 0 to 0.3); its spread is theirs, within 10 %.
SHIFT, LOG_SPREAD = (0.3, 0.6), 0.1
#: Open samples lie OPEN_AT[0] ± OPEN_AT[1] below the median of held-out samples; their spread is OPEN_SPREAD[0], within
#: a factor exp(OPEN_SPREAD[1]).
OPEN_AT, OPEN_SPREAD = (2.4, 0.7), (0.6, 0.3)
#: Open samples lie at least this far below known ones; so many of them look known.
LEAST_APART, LOOK_KNOWN = 0.6, 0.02
#: A log counts as at most so many messages: the model of its scores is not the truth.
MOST_MESSAGES = 50
#: A number that a user tells is right within this factor (one standard deviation of its logarithm).
TOLD_ERROR = 0.3
#: The line moves if the gain is above so many standard deviations of it.
LEAST_GAIN = 0.5


class NormalScores:
    """Scores as normal scores of held-out known samples, (m,); both ways, continued linearly beyond the lowest."""

    def __init__(self, known):
        m = len(known)
        levels = np.linspace(0.5, m - 0.5, min(m, 101)) / m
        knots, z = np.quantile(known, levels), norm.ppf(levels)
        low, middle = np.quantile(known, [0.05, 0.5])
        unit = max(middle - low, 1e-9) / 1.645  # the scores of one standard deviation
        self._scores = np.maximum.accumulate(np.concatenate([[knots[0] - 10 * unit], knots, [knots[-1] + 10 * unit]]))
        self._z = np.concatenate([[z[0] - 10], z, [z[-1] + 10]])

    def __call__(self, scores):
        """Give normal scores."""
        return np.interp(scores, self._scores, self._z)

    def inverse(self, z):
        """Score of a normal score."""
        return float(np.interp(z, self._z, self._scores))


class Share(NamedTuple):
    """What is known of the open share: told (a number), or counted on the first m messages of the log."""

    value: float
    m: int = 0  # labelled messages
    k: float = 0.0  # open ones among them

    @classmethod
    def counted(cls, is_open):
        """Count the labelled messages."""
        m, k = len(is_open), float(np.sum(is_open))
        return cls((k + 0.5) / (m + 1), m, k)

    def quantiles(self, levels):
        """Of Jeffreys' posterior of a count, or a log-normal below 1 around a told number."""
        if self.m:
            return beta.ppf(levels, self.k + 0.5, self.m - self.k + 0.5)
        value = np.clip(self.value, 0.005, 0.99)
        return value * np.exp(TOLD_ERROR * norm.ppf(levels * ndtr(-np.log(value) / TOLD_ERROR)))


class Posterior(NamedTuple):
    """Draws of the unknowns with their weights, (n_draws,), and shares of the bins, (n_draws, n_bins)."""

    weights: np.ndarray
    shares: np.ndarray  # (n_draws, 1)
    known: np.ndarray
    opened: np.ndarray


def posterior(z, labelled, is_open, share):
    """Known ~ N(−shift, spread²) and open ~ N(−at, open_spread²): weigh draws of these and of the share by the log.

    ``z`` are the normal scores of the log, ``labelled`` says which messages have a label, ``is_open`` which of these
    are open.
    """
    shift, spread = SHIFT[0] + SHIFT[1] * NORMAL[:, 1:2], np.exp(LOG_SPREAD * NORMAL[:, 2:3])
    at, open_spread = OPEN_AT[0] + OPEN_AT[1] * NORMAL[:, 3:4], OPEN_SPREAD[0] * np.exp(OPEN_SPREAD[1] * NORMAL[:, 4:])
    shares = np.clip(share.quantiles(UNIFORM[:, :1]), 1e-3, 0.995)
    edges = np.concatenate([[-np.inf], CANDIDATES, [np.inf]])
    known, opened = np.diff(ndtr((edges + shift) / spread)), np.diff(ndtr((edges + at) / open_spread))
    opened = (1 - LOOK_KNOWN) * opened + LOOK_KNOWN * known
    bins = np.searchsorted(CANDIDATES, z)  # the bin i ends at the candidate i
    counts = np.bincount(bins[~labelled], minlength=len(CENTRES))
    logs = (
        np.log((1 - shares) * known + shares * opened + 1e-12) @ counts * min(1, MOST_MESSAGES / max(counts.sum(), 1))
    )
    logs += np.log(known[:, bins[labelled & ~is_open]] + 1e-9).sum(axis=1)
    logs += np.log(opened[:, bins[labelled & is_open]] + 1e-9).sum(axis=1)
    logs[(at - shift)[:, 0] < LEAST_APART] -= 8
    weights = np.exp(logs - logs.max())
    return Posterior(weights / weights.sum(), shares, known, opened)


def expected_f1(found, log, right, n_classes):
    """Macro F1 of each draw at each candidate, (n_draws, n_candidates).

    ``log`` is the share of the log in each bin, ``None`` for traffic to come; ``right`` the probability that a known
    message of a bin is assigned to its class.
    """
    opened, known = found.shares * found.opened, (1 - found.shares) * found.known
    if log is not None:  # each message is open with its posterior probability
        opened = log * opened / (opened + known + 1e-12)
        known = log - opened
    above = lambda parts: parts[:, ::-1].cumsum(axis=1)[:, -2::-1]  # noqa: E731
    n_known, n_open = known.sum(axis=1, keepdims=True), opened.sum(axis=1, keepdims=True)
    accepted, mistaken, correct = above(known), above(opened), above(known * right)
    of_known = 2 * correct / (accepted + mistaken + n_known)
    noticed = n_open - mistaken
    of_open = 2 * noticed / (n_open + noticed + n_known - accepted)
    return (n_classes * of_known + of_open) / (n_classes + 1)


def right_by_z(z, right):
    """Probability of the right class in each bin, by a logistic regression on held-out known samples."""
    if right.all():
        return np.ones(len(CENTRES))
    return LogisticRegression().fit(z[:, None], right).predict_proba(CENTRES[:, None])[:, 1]


def posterior_line(case, stream, share, least_gain=LEAST_GAIN):
    """Line with the best mean of the F1 over the draws; the fitted one unless the gain is above its deviation."""
    z = case.normal(stream.scores)
    found = posterior(z, np.arange(len(z)) < share.m, stream.is_open, share)
    log = np.bincount(np.searchsorted(CANDIDATES, z), minlength=len(CENTRES)) / len(z) if len(z) else None
    f1 = expected_f1(found, log, case.right, case.n_classes)
    mean = found.weights @ f1
    z = CANDIDATES[mean >= mean.max() - 0.001].mean()
    here, fitted = (np.abs(CANDIDATES - at).argmin() for at in (z, case.normal(0.0)))
    gains = f1[:, here] - f1[:, fitted]
    gain = found.weights @ gains
    moves = gain > least_gain * (found.weights @ (gains - gain) ** 2) ** 0.5
    return case.normal.inverse(z) if moves else 0.0


def fitted(case, stream, share):
    """Line of the fit."""
    return 0.0


def quantile(case, stream, share):
    """Quantile of the log's scores at the share."""
    return float(np.quantile(stream.scores, share.value))


def prototype(case, stream, share, scores=None, value=None):
    """Ten lines: what the log has above the line, less the known ones that held-out scores foretell, is open."""
    scores = np.sort(stream.scores if scores is None else scores)
    share = share.value if value is None else value
    lines = np.unique(np.concatenate([scores, case.few_known]))
    rejected = np.searchsorted(case.sorted_known, lines) / len(case.sorted_known)
    below = np.searchsorted(scores, lines) / len(scores)
    accepted = np.minimum.accumulate(np.clip((1 - below) - (1 - share) * (1 - rejected), 0, share))
    right = (1 - share) * (1 - rejected)
    of_known = 2 * right / (right + accepted + 1 - share)
    of_open = 2 * (share - accepted) / (share - accepted + (1 - share) * rejected + share)
    f1 = (case.n_classes * of_known + of_open) / (case.n_classes + 1)
    return float(np.median(lines[f1 >= f1.max() - 0.002]))


def prototype_bootstrap(case, stream, share, n_resamplings=50):
    """Mean of the prototype's lines over a bootstrap of the messages and of the share."""
    rng = np.random.default_rng(0)
    values = share.quantiles(rng.uniform(size=n_resamplings))
    drawn = rng.choice(stream.scores, (n_resamplings, len(stream.scores)))
    return float(np.mean([prototype(case, stream, share, *draw) for draw in zip(drawn, values, strict=True)]))
