"""Critical-difference diagrams: ranks, tests, and what is drawn."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from skellipsoid_bench import CriticalDifferenceDisplay

#: Mean ranks of C4.5 with and without two options on 14 data sets: Demšar (2006).
DEMSAR = np.array([3.143, 2.000, 2.893, 1.964])
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
SCORES = np.random.default_rng(0).random((14, 4))


@pytest.mark.parametrize(("alpha", "critical_difference"), [(0.05, 1.25), (0.10, 1.12)])
def test_the_critical_difference_is_the_published_one(alpha, critical_difference):
    display = CriticalDifferenceDisplay.from_scores(SCORES, NAMES, alpha=alpha)
    assert display.critical_difference == pytest.approx(critical_difference, abs=0.005)


def test_ranks_and_the_friedman_test():
    scores = np.array([[0.9, 0.8, 0.7, 0.7], [0.5, 0.6, 0.4, 0.3], [0.7, 0.9, 0.8, 0.1]])
    display = CriticalDifferenceDisplay.from_scores(scores, NAMES)
    np.testing.assert_allclose(display.mean_ranks, [6 / 3, 4 / 3, 8.5 / 3, 11.5 / 3])
    friedman = friedmanchisquare(*scores.T)
    assert (display.statistic, display.pvalue) == (friedman.statistic, friedman.pvalue)
    errors = CriticalDifferenceDisplay.from_scores(1 - scores, NAMES, greater_is_better=False)
    np.testing.assert_allclose(errors.mean_ranks, display.mean_ranks)


@pytest.mark.parametrize(
    ("scores", "names", "alpha", "message"),
    [
        (np.ones((5, 2)), "ab", 0.05, r"^scores has the shape \(5, 2\), but must be .*; compare two models with"),
        (np.ma.masked_less(np.eye(3), 1), "abc", 0.05, r"^scores holds nan; pass the cases that"),
        (np.ones((2, 3)), "ab", 0.05, r"^names has 2 names for 3 models; pass one for each\.$"),
        (np.ones((2, 3)), "abc", 1.0, r"^alpha=1\.0 is not in \(0, 1\); pass a level such as 0\.05\.$"),
    ],
)
def test_what_cannot_be_ranked_is_refused(scores, names, alpha, message):
    with pytest.raises(ValueError, match=message):
        CriticalDifferenceDisplay.from_scores(scores, names, alpha=alpha)


def test_models_that_are_always_equal_are_one_group():
    display = CriticalDifferenceDisplay.from_scores(np.ones((5, 3)), "abc")
    assert display.mean_ranks.tolist() == [2, 2, 2]
    assert (display.statistic, display.pvalue) == (0.0, 1.0)
    assert display.groups_ == [(0, 1, 2)]


def test_groups_lie_within_the_critical_difference():
    display = CriticalDifferenceDisplay(DEMSAR, NAMES, 1.12).plot()
    assert display.groups_ == [(3, 1, 2), (2, 0)]
    assert CriticalDifferenceDisplay(DEMSAR, NAMES, 1.25).plot().groups_ == [(3, 1, 2, 0)]
    assert CriticalDifferenceDisplay(DEMSAR, NAMES, 0.3).plot().groups_ == [(3, 1), (2, 0)]
