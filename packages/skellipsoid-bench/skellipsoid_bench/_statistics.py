"""Paired tests and confidence intervals of repeated scores, with corrections for many comparisons."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

_ROUNDING = 64 * np.finfo(np.float64).eps

# Pairs up to which the signed-rank test is exact: without ties, and with ties (2 ** 13 sign patterns).
_MOST_EXACT = 50
_MOST_ENUMERATED = 13


class PairedTest(NamedTuple):
    """Two models compared pair by pair.

    Attributes
    ----------
    n_pairs : int
    mean_difference : float
        Mean of a − b, in the units of the scores.
    low, high : float
        The ends of the confidence interval of the mean difference, from the t-distribution.
    effect_size : float
        Mean difference over the standard deviation of the differences (Cohen's d for pairs).
    t_statistic, t_pvalue : float
        Of the two-sided paired t-test.
    wilcoxon_statistic, wilcoxon_pvalue : float
        Of the two-sided Wilcoxon signed-rank test.

    See Also
    --------
    paired_test : Returns it.
    """

    n_pairs: int
    mean_difference: float
    low: float
    high: float
    effect_size: float
    t_statistic: float
    t_pvalue: float
    wilcoxon_statistic: float
    wilcoxon_pvalue: float


def paired_test(scores_a: ArrayLike, scores_b: ArrayLike, *, confidence_level: float = 0.95) -> PairedTest:
    """Compare two models by paired scores: one pair for each seed or split.

    Computes the paired t-test with its confidence interval, and the Wilcoxon signed-rank test.

    Parameters
    ----------
    scores_a, scores_b : array-like of shape (n_pairs,)
        One score of each model for each seed, in the same order; at least two.
    confidence_level : float, default=0.95
        Of the interval of the mean difference, in (0, 1).

    Returns
    -------
    result : PairedTest
        Named tuple; positive differences mean that ``scores_a`` are larger. If all differences are equal, the t-test
        has an infinite statistic and p-value 0, or statistic 0 and p-value 1 if they are zero.

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than two pairs, or a score is not finite.

    See Also
    --------
    holm : Corrects the p-values of several comparisons.
    skellipsoid.metrics.bootstrap_interval : The uncertainty that comes from the finite number of test samples.

    Notes
    -----
    With differences d of mean d̄ and standard deviation s over n pairs, t = d̄ √n / s and the effect size is d̄ / s. Both
    tests are two-sided. Wilcoxon's test leaves out zero differences, and gives tied ones their mean rank. It is exact
    up to 50 pairs (13 with ties), and a normal approximation beyond. With n pairs its p-value is at least 2 / 2ⁿ. For
    five seeds this is 0.0625, so five seeds are never significant at 0.05 by this test [1]_. Seeds that share test
    samples, and folds that share training samples, are not independent: p-values are then too small.

    References
    ----------
    .. [1] J. Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006.

    Examples
    --------
    >>> from skellipsoid_bench import paired_test
    >>> result = paired_test([0.84, 0.86, 0.81, 0.85, 0.88], [0.80, 0.81, 0.79, 0.84, 0.82])
    >>> round(result.mean_difference, 3), round(result.low, 3), round(result.high, 3)
    (0.036, 0.01, 0.062)
    >>> round(result.t_pvalue, 3), result.wilcoxon_pvalue
    (0.018, 0.0625)
    """
    a, b = _read_finite(scores_a, "scores_a"), _read_finite(scores_b, "scores_b")
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(
            f"scores_a has {len(a)} scores and scores_b has {len(b)}, but both need one for each of at least two "
            "seeds: pass the same seeds in the same order."
        )
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level={confidence_level!r} is not in (0, 1): pass a proportion such as 0.95.")
    difference = a - b
    rounding = float(_ROUNDING * max(np.abs(a).max(), np.abs(b).max()))
    if np.ptp(difference) <= rounding:
        # The differences vary only by rounding, which the t-test would take for a small variance.
        difference[:] = 0.0 if abs(difference.mean()) <= rounding else difference.mean()
        return _equal_differences(difference, rounding)
    t_test = stats.ttest_rel(a, b)
    interval = t_test.confidence_interval(confidence_level)
    return PairedTest(
        len(difference),
        float(difference.mean()),
        float(interval.low),
        float(interval.high),
        float(difference.mean() / difference.std(ddof=1)),
        float(t_test.statistic),
        float(t_test.pvalue),
        *_wilcoxon(difference, rounding),
    )


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Correct the p-values of several tests by Holm's step-down procedure.

    If hypotheses with a corrected p-value of at most α are rejected, the probability of any false rejection among all
    tests is at most α, also if the tests depend on each other. The procedure rejects at least as many hypotheses as
    Bonferroni's correction.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        In [0, 1].

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        The corrected p-values, in the order given, at most 1.

    Raises
    ------
    ValueError
        If a value is outside [0, 1] or NaN, or the array is not one-dimensional.

    See Also
    --------
    paired_test : Gives p-values.
    scipy.stats.false_discovery_control : Controls the proportion of false rejections instead.

    Notes
    -----
    With the p-values in rising order, the adjusted one at place i of m is max over j ≤ i of (m − j + 1) p_j, but at
    most 1 [1]_. Tied p-values get the same result.

    References
    ----------
    .. [1] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics
       6(2), 1979.

    Examples
    --------
    >>> from skellipsoid_bench import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = _read_finite(p_values, "p_values")
    if ((values < 0) | (values > 1)).any():
        outside = values[(values < 0) | (values > 1)][0].item()
        raise ValueError(f"p_values holds {outside!r}, which is not in [0, 1]: pass p-values, not statistics.")
    order = np.argsort(values)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.arange(len(values), 0, -1) * values[order])
    return np.minimum(adjusted, 1.0)


def _read_finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    if array.ndim != 1 or not len(array):
        raise ValueError(
            f"{name} has shape {array.shape}, but must be one-dimensional and not empty: pass a list of numbers."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds {array[~np.isfinite(array)][0].item()!r}: pass finite numbers only.")
    return array


def _equal_differences(difference: NDArray[np.float64], rounding: float) -> PairedTest:
    """Answer for differences that are all the same number."""
    mean = float(difference[0])
    infinite = float(np.copysign(np.inf, mean)) if mean else 0.0
    p_value = 0.0 if mean else 1.0
    return PairedTest(len(difference), mean, mean, mean, infinite, infinite, p_value, *_wilcoxon(difference, rounding))


def _wilcoxon(difference: NDArray[np.float64], rounding: float) -> tuple[float, float]:
    """Statistic and p-value of the signed-rank test of the differences that are not zero."""
    signed = _tie_equal_sizes(difference, rounding)
    signed = signed[signed != 0]
    if not len(signed):
        return 0.0, 1.0
    sizes = np.abs(signed)
    ranks = np.copysign(stats.rankdata(sizes), signed)
    if len(np.unique(sizes)) < len(sizes) <= _MOST_ENUMERATED:
        # SciPy's exact null distribution knows no ties; all signs of so few ranks can be gone through.
        signs = stats.permutation_test((ranks,), np.sum, permutation_type="samples", n_resamples=np.inf)
        return float(min(ranks[ranks > 0].sum(), -ranks[ranks < 0].sum())), float(signs.pvalue)
    exact = len(sizes) <= _MOST_EXACT and len(np.unique(sizes)) == len(sizes)
    result = stats.wilcoxon(ranks, method="exact" if exact else "approx")
    return float(result.statistic), float(result.pvalue)


def _tie_equal_sizes(difference: NDArray[np.float64], rounding: float) -> NDArray[np.float64]:
    """Signed place of each size among the distinct ones: sizes that only rounding tells apart share it, 0 for none.

    0.85 − 0.84 and 0.75 − 0.74 differ in the last bit, and would have different ranks.
    """
    sizes, place = np.unique(np.abs(difference), return_inverse=True)
    distinct = np.cumsum(np.diff(sizes, prepend=0.0) > rounding)
    return np.copysign(distinct[place].astype(np.float64), difference)
