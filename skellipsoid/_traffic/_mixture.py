"""A mixture of known and open samples that explains the p-values of traffic, with an interval for the open share.

If known traffic is drawn as the training samples were, its p-values are uniform. Open samples have few large p-values.
So the density of large p-values gives the known share (Storey's estimator). Two things are not known exactly, and get a
prior:

1. *Tilt*: known traffic is never drawn quite as the training samples were. Its p-values have a density proportional to
   exp(−t p), where t is normal around 0.
2. *Sharpness*: unknown classes are not like held-out ones. Their density is that of the held-out classes to the power
   s, where log s is normal around log 2.

The share is uniform. Sums over grids give its posterior distribution.
"""

from typing import NamedTuple

import numpy as np

from ._held import EDGES, SHARPNESS, WIDTHS, Floats, Integers, bins, sharpened

#: Candidates of the open share, of the tilt and of the sharpness, and the errors of the last two.
SHARES = np.linspace(0, 1, 201)
TILTS = np.linspace(-2, 3, 51)
TILT_ERROR = 0.4
LOG_SHARPNESSES = np.linspace(np.log(SHARPNESS) - 1.6, np.log(SHARPNESS) + 1.6, 17)
LOG_SHARPNESS_ERROR = 0.4
#: Posterior mass of the interval, with which 97.6 % of the measured streams are covered, those without open samples in
#: 90.6 % (``benchmarks/traffic.py``).
POSTERIOR_MASS = 0.97
#: Bins in which there are hardly any open samples, so that they test what is assumed of known ones.
UPPER = EDGES[:-1] >= 0.4


class Mixture(NamedTuple):
    """What the p-values of traffic say."""

    share: float
    low: float
    high: float
    tilt: float  # posterior mean
    misfit: float  # likelihood ratio statistic of the upper bins
    known: Floats  # (n_samples,) probability that a sample is known


def fit_mixture(p_values: Floats, copies: Integers, open_shares: Floats, n_held_out: int) -> Mixture:
    """Fit the mixture to the p-values of traffic.

    Parameters
    ----------
    p_values : ndarray of shape (n_samples,)
    copies : ndarray of shape (n_samples,)
        Samples with the same number are copies of one message. They count for the share, but tell less about it than
        as many different messages.
    open_shares : ndarray of shape (n_bins,)
        Share of the samples of held-out classes in each bin.
    n_held_out : int
        Number of held-out known samples, which the p-values compare with.
    """
    of_bin = bins(p_values)
    seen = np.bincount(of_bin, minlength=len(WIDTHS)) / len(p_values)
    counts = np.bincount(copies)
    n_independent = 1 / ((counts**2).sum() / len(p_values) ** 2 + 1 / n_held_out)
    known, opened = _known_shares(), _open_shares(open_shares)
    mixed = SHARES[:, None, None, None] * opened + (1 - SHARES[:, None, None, None]) * known[:, None]
    priors = -0.5 * (TILTS[:, None] / TILT_ERROR) ** 2
    priors = priors - 0.5 * ((LOG_SHARPNESSES - np.log(SHARPNESS)) / LOG_SHARPNESS_ERROR) ** 2
    logs = np.log(mixed) @ (n_independent * seen) + priors  # (n_shares, n_tilts, n_sharpnesses)
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    of_share = posterior.sum(axis=(1, 2))
    low, high = _interval(of_share)
    known_part = np.einsum("stk,s,tb->b", posterior, 1 - SHARES, known, optimize=True)
    whole = np.einsum("stk,stkb->b", posterior, mixed, optimize=True)
    best = mixed[np.unravel_index(logs.argmax(), logs.shape)]
    return Mixture(
        share=float(of_share @ SHARES),
        low=low,
        high=high,
        tilt=float(posterior.sum(axis=(0, 2)) @ TILTS),
        misfit=_misfit(seen, best, n_independent),
        known=(known_part / whole)[of_bin],
    )


def _known_shares() -> Floats:
    """Share of known samples in each bin for each tilt, (n_tilts, n_bins)."""
    tilts = np.where(np.abs(TILTS) < 1e-9, 1e-9, TILTS)[:, None]
    return np.asarray(np.diff(np.expm1(-tilts * EDGES) / np.expm1(-tilts), axis=1))


def _open_shares(shares: Floats) -> Floats:
    """Share of open samples in each bin for each sharpness, (n_sharpnesses, n_bins)."""
    return np.array([sharpened(shares, power) for power in np.exp(LOG_SHARPNESSES)])


def _interval(posterior: Floats) -> tuple[float, float]:
    """Limits of the shares with the highest posterior probability; where it falls from 0 on, they begin there."""
    likely = np.argsort(-posterior, kind="stable")
    likely = likely[: int(np.searchsorted(np.cumsum(posterior[likely]), POSTERIOR_MASS)) + 1]
    return float(SHARES[likely.min()]), float(SHARES[likely.max()])


def _misfit(seen: Floats, best: Floats, n_independent: float) -> float:
    """Likelihood ratio statistic of the upper bins, and of all others as one."""
    found, told = (np.append(shares[UPPER], shares[~UPPER].sum()) for shares in (seen, best))
    present = found > 0
    return float(2 * n_independent * (found[present] * np.log(found[present] / told[present])).sum())
