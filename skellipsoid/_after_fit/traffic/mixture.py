"""A mixture of known and open samples that explains the p-values of traffic.

If known traffic is drawn as the training samples were, its p-values are uniform. Open samples have few large p-values.
Two things are not known exactly, and get a prior:

1. *Tilt*: known traffic is never drawn quite as the training samples were. Its p-values have a density proportional to
   exp(−t p), where t is normal around 0.
2. *Sharpness*: unknown classes are not like held-out ones. Their density is that of the held-out classes to the power
   s, where log s is normal around log 2.

The share is uniform. Sums over grids give its posterior distribution.
"""

from typing import NamedTuple

import numpy as np

from .held import EDGES, SHARPNESS, WIDTHS, Floats, bins, sharpened

#: Candidates of the open share.
SHARES = np.linspace(0, 1, 101)
#: Standard deviations of the tilt and of the log sharpness. With half of the tilt the error of the share is 0.028 in
#: place of 0.030 on average, with twice of it 0.035 (skellipsoid-bench/results/open_share.rst); ``low`` needs 0.4.
TILT_ERROR = LOG_SHARPNESS_ERROR = 0.4
#: Candidates of both, in standard deviations.
DEVIATIONS = np.linspace(-2, 2, 9)


class Mixture(NamedTuple):
    """What the p-values of traffic say."""

    share: float  # posterior mean
    high: float  # the share is below it with a probability of ``certainty``
    known: Floats  # (n_samples,) probability that a sample is known


def fit_mixture(p_values: Floats, n_independent: float, open_shares: Floats, certainty: float) -> Mixture:
    """Fit the mixture to the p-values of traffic.

    Parameters
    ----------
    p_values : ndarray of shape (n_samples,)
    n_independent : float
        Number of independent samples that tell as much.
    open_shares : ndarray of shape (n_bins,)
        Share of the samples of held-out classes in each bin.
    certainty : float
    """
    of_bin = bins(p_values)
    counts = n_independent * np.bincount(of_bin, minlength=len(WIDTHS)) / len(p_values)
    limits = known_above(TILT_ERROR * DEVIATIONS[:, None], EDGES)  # (n_tilts, n_bins + 1)
    known = -np.diff(limits)
    powers = SHARPNESS * np.exp(LOG_SHARPNESS_ERROR * DEVIATIONS)
    opened = np.array([sharpened(open_shares, power) for power in powers])  # (n_sharpnesses, n_bins)
    shares = SHARES[:, None, None, None]
    mixed = shares * opened + (1 - shares) * known[:, None]
    priors = -0.5 * (DEVIATIONS[:, None] ** 2 + DEVIATIONS**2)
    logs = np.log(mixed) @ counts + priors  # (n_shares, n_tilts, n_sharpnesses)
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    of_share = posterior.sum(axis=(1, 2))
    known_part = np.einsum("stk,s,tb->b", posterior, 1 - SHARES, known, optimize=True)
    whole = np.einsum("stk,stkb->b", posterior, mixed, optimize=True)
    return Mixture(
        share=float(of_share @ SHARES),
        high=float(SHARES[(of_share.cumsum() < certainty).sum()]),
        known=(known_part / whole)[of_bin],
    )


def known_above(tilts: Floats, p_value: float | Floats) -> Floats:
    """Share of known samples whose p-value is above ``p_value``, for the density exp(−t p)."""
    tilts = np.where(np.abs(tilts) < 1e-9, 1e-9, tilts)
    return np.asarray((np.exp(-tilts * p_value) - np.exp(-tilts)) / -np.expm1(-tilts))
