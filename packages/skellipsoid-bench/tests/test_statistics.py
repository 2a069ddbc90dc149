"""Paired tests and Holm's correction against SciPy, formulas and enumeration."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skellipsoid_bench import holm, paired_test

seeds = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=9)


@given(seeds)
def test_paired_test_against_formulas(scores):
    a, b = (np.array(column) / 1000 for column in zip(*scores, strict=True))
    result = paired_test(a, b, confidence_level=0.9)
    difference = a - b
    n, mean, deviation = len(difference), difference.mean(), difference.std(ddof=1)
    assert result.n_pairs == n
    assert result.mean_difference == pytest.approx(mean, abs=1e-12)
    mirrored = paired_test(b, a, confidence_level=0.9)
    assert mirrored.t_pvalue == pytest.approx(result.t_pvalue)
    assert mirrored.wilcoxon_pvalue == pytest.approx(result.wilcoxon_pvalue)
    assert (mirrored.low, mirrored.high) == pytest.approx((-result.high, -result.low))
    if np.ptp(difference) < 1e-9:
        return
    half = stats.t.ppf(0.95, n - 1) * deviation / np.sqrt(n)
    assert (result.low, result.high) == pytest.approx((mean - half, mean + half))
    assert result.effect_size == pytest.approx(mean / deviation)
    assert result.t_statistic == pytest.approx(result.effect_size * np.sqrt(n))
    assert result.t_pvalue == pytest.approx(2 * stats.t.sf(abs(result.t_statistic), n - 1))


def signed_rank_p_value(difference):
    """Two-sided p-value by all sign patterns of the ranks."""
    ranks = stats.rankdata(np.abs(difference))
    observed = abs(np.sum(ranks * np.sign(difference)))
    sums = [abs(np.dot(ranks, signs)) for signs in product([-1, 1], repeat=len(difference))]
    return np.mean(np.array(sums) >= observed)


@given(st.lists(st.integers(-9, 9).filter(bool), min_size=2, max_size=8), st.integers(0, 2), st.data())
def test_wilcoxon_against_enumeration(sizes, n_equal, data):
    # Hundredths, whose differences tie only up to rounding; seeds on which both are equal tell this test nothing.
    difference = np.array(sizes + [0] * n_equal)
    b = np.array(data.draw(st.lists(st.integers(10, 90), min_size=len(difference), max_size=len(difference))))
    result = paired_test((b + difference) / 100, b / 100)
    assert result.wilcoxon_pvalue == pytest.approx(signed_rank_p_value(sizes))
    ranks = stats.rankdata(np.abs(sizes))
    assert result.wilcoxon_statistic == min(ranks[np.array(sizes) > 0].sum(), ranks[np.array(sizes) < 0].sum())


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("tied", [True, False])
def test_wilcoxon_of_many_pairs_is_scipys(n, tied):
    rng = np.random.default_rng(0)
    difference = rng.integers(-5, 9, n) if tied else rng.normal(size=n) + 0.3
    result = paired_test(difference, np.zeros(n))
    expected = stats.wilcoxon(difference[difference != 0], method="exact" if n == 20 and not tied else "approx")
    assert result.wilcoxon_statistic == expected.statistic
    assert result.wilcoxon_pvalue == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0.1, 0.2], [0.1], "scores_a has 2 scores and scores_b has 1, but both need one for each of at least two"),
        (np.ma.array([0.1, 0.3], mask=[0, 1]), [0.1, 0.2], "scores_a holds nan: pass finite numbers only"),
        ([0.1, 0.2], [0.1, np.inf], "scores_b holds inf: pass finite numbers only"),
        ([[0.1, 0.2]], [0.1, 0.2], r"scores_a has shape \(1, 2\), but must be"),
    ],
)
def test_bad_pairs(a, b, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        paired_test(a, b)
    with pytest.raises(ValueError, match=r"^confidence_level=1 is not in \(0, 1\): pass a proportion such as 0\.95"):
        paired_test([1, 2, 4], [1, 1, 1], confidence_level=1)


@given(st.lists(st.integers(0, 200).map(lambda k: k / 200), min_size=1, max_size=7))
def test_holm_is_the_closure_of_bonferroni(p_values):
    # A hypothesis is rejected when every set of hypotheses that holds it is rejected by Bonferroni.
    expected = []
    for k in range(len(p_values)):
        groups = [g for size in range(1, len(p_values) + 1) for g in combinations(range(len(p_values)), size) if k in g]
        expected.append(max(min(1, len(g) * min(p_values[j] for j in g)) for g in groups))
    np.testing.assert_allclose(holm(p_values), expected)


@pytest.mark.parametrize(
    ("p_values", "message"),
    [
        ([0.1, 1.2], r"p_values holds 1.2, which is not in \[0, 1\]"),
        ([np.nan], "p_values holds nan: pass finite numbers only"),
        (0.1, r"p_values has shape \(\), but must be one-dimensional"),
    ],
)
def test_bad_p_values(p_values, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        holm(p_values)
