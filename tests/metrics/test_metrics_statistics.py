"""Bootstrap intervals and paired tests against SciPy, formulas and enumeration."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from skellipsoid.metrics import (
    bootstrap_interval,
    holm,
    open_f1_score,
    open_set_accuracy,
    open_set_auroc,
    open_set_f1_score,
    oscr_score,
    paired_test,
)

property_test = settings(deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_true = np.repeat([0, 1, 2, -1], [40, 20, 10, 80])
    y_pred = np.where(rng.random(150) < 0.8, y_true, rng.integers(-1, 3, 150))
    return y_true, y_pred, rng.normal(size=150) + 2 * (y_true >= 0)


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_interval_is_scipys_over_rows(problem, method):
    y_true, y_pred, _ = problem
    ours = bootstrap_interval(
        open_set_accuracy, y_true, y_pred, n_resamples=200, confidence_level=0.9, method=method, random_state=3
    )
    theirs = stats.bootstrap(
        (y_true == y_pred,),
        np.mean,
        n_resamples=200,
        confidence_level=0.9,
        method=method,
        random_state=np.random.default_rng(3),
    )
    assert ours.estimate == np.mean(y_true == y_pred)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval))
    assert ours.standard_error == pytest.approx(theirs.standard_error)


def test_interval_of_accuracy_is_near_the_normal_one(problem):
    y_true, y_pred, _ = problem
    estimate, low, high, standard_error = bootstrap_interval(open_set_accuracy, y_true, y_pred, random_state=0)
    expected = np.sqrt(estimate * (1 - estimate) / len(y_true))
    assert standard_error == pytest.approx(expected, rel=0.1)
    assert (high - low) / 2 == pytest.approx(1.96 * expected, rel=0.15)


@pytest.mark.parametrize("by_class", [True, False])
def test_stratified_resamples_keep_the_class_sizes(problem, by_class):
    y_true, y_pred, score = problem
    sizes, rows_match = [], []

    def metric(y_true, y_pred, score, number):
        sizes.append(tuple(np.unique(y_true, return_counts=True)[1]))
        rows_match.append((y_true == problem[0][number]).all() and (score == problem[2][number]).all())
        return np.mean(y_true == y_pred)

    numbers = np.arange(len(y_true))
    stratify = y_true if by_class else None
    bootstrap_interval(metric, y_true, y_pred, score, numbers, stratify=stratify, n_resamples=20, random_state=0)
    assert all(rows_match)
    assert len(sizes) == 21
    assert (len(set(sizes)) == 1) == by_class


def test_stratifying_narrows_a_metric_that_class_sizes_move(problem):
    y_true, _, _ = problem
    share_of_open = partial(lambda y_true: float(np.mean(y_true == -1)))
    plain = bootstrap_interval(share_of_open, y_true, random_state=0, n_resamples=200)
    stratified = bootstrap_interval(share_of_open, y_true, stratify=y_true, random_state=0, n_resamples=200)
    assert plain.low < plain.estimate < plain.high
    assert stratified == (plain.estimate, plain.estimate, plain.estimate, 0)


def test_rows_of_a_stratum_are_drawn_in_their_order(problem):
    """One seed gives one interval on every machine, whether strata are mixed or one after the other."""
    y_true, y_pred, _ = problem
    strata = np.tile([1, 0], 75)
    order = np.append(np.arange(1, 150, 2), np.arange(0, 150, 2))
    mixed, sorted_ = (
        bootstrap_interval(
            open_set_accuracy, y_true[rows], y_pred[rows], stratify=strata[rows], n_resamples=50, random_state=0
        )
        for rows in (np.arange(150), order)
    )
    assert mixed == sorted_


def test_stratum_of_one_row_stays(problem):
    y_true, y_pred = [0, 0, 0, 0, 1, -1, -1, -1], [0, 0, 0, -1, 1, -1, 0, 0]
    metric = partial(open_set_f1_score, labels=[0, 1], zero_division=np.nan)
    seen = []

    def spy(y_true, y_pred):
        seen.append(np.sum(y_true == 1))
        return metric(y_true, y_pred)

    interval = bootstrap_interval(spy, y_true, y_pred, stratify=y_true, n_resamples=50, random_state=0)
    assert interval.low < interval.estimate < interval.high
    assert set(seen) == {1}


def test_same_seed_same_interval_and_nothing_global_is_touched(problem):
    y_true, _, score = problem
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    intervals = [
        bootstrap_interval(open_set_auroc, y_true, score, n_resamples=50, random_state=seed)
        for seed in (5, 5, np.random.default_rng(5), np.random.RandomState(5), 6, None)
    ]
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert intervals[0] == intervals[1] == intervals[2]
    assert len(set(intervals)) == 4
    again = bootstrap_interval(open_set_auroc, y_true, score, n_resamples=50, random_state=np.random.RandomState(5))
    assert again == intervals[3]


def test_metrics_of_three_arrays_and_of_strings(problem):
    y_true, y_pred, score = problem
    text, answers = y_true.astype(str).tolist(), np.maximum(y_pred, 0).astype(str).tolist()
    interval = bootstrap_interval(oscr_score, text, answers, score, n_resamples=50, random_state=0)
    assert interval.low < interval.estimate < interval.high
    assert interval.estimate == oscr_score(text, answers, score)
    columns = np.stack([score, -score], axis=1)  # (n_samples, 2)
    same = bootstrap_interval(
        lambda y_true, answers, columns: oscr_score(y_true, answers, columns[:, 0]),
        text, answers, columns, n_resamples=50, random_state=0,
    )  # fmt: skip
    assert same == interval


def test_perfect_answers_have_an_interval_without_width(problem):
    y_true = problem[0]
    for method in ("percentile", "BCa"):
        interval = bootstrap_interval(
            open_set_f1_score, y_true, y_true, method=method, stratify=y_true, n_resamples=20, random_state=0
        )
        assert interval == (1, 1, 1, 0)


def test_undefined_metrics():
    y_true, y_pred = [0, 0, 0, 0, -1, -1], [0, 0, 0, 0, -1, 0]
    with pytest.raises(ValueError, match=r"^The metric is NaN on \d+ of 200 resamples, .* pass stratify=y_true"):
        bootstrap_interval(open_set_auroc, y_true, [5, 4, 3, 2, 4, 0], n_resamples=200, random_state=0)
    # Resamples without an open row count 0, silently.
    bootstrap_interval(open_f1_score, y_true, y_pred, n_resamples=200, random_state=0)
    with (
        pytest.raises(ValueError, match=r"^The metric is NaN on all rows"),
        pytest.warns(UndefinedMetricWarning, match="AUROC"),
    ):
        bootstrap_interval(open_set_auroc, [0, 0, 0], [1, 2, 3], random_state=0)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (([0, -1], [0]), {}, "y_true has 2 rows and predictions has 1"),
        (([0, -1], [0, -1], [1]), {}, "y_true has 2 rows and array 2 of the predictions has 1"),
        ((np.ma.array([0, -1], mask=[0, 1]), [0, -1]), {}, "y_true has masked values in row 1; fill them"),
        (([0, -1], np.ma.array([0, -1], mask=[0, 1])), {}, "a prediction has masked values in row 1; fill them"),
        (([0, -1], [0, -1]), {"stratify": np.ma.array([0, 1], mask=[0, 1])}, "stratify has masked values in row 1"),
        (([0, -1], [0, -1]), {"stratify": [1]}, "y_true has 2 rows and stratify has 1"),
        (([0, -1], [0, -1]), {"stratify": [0, 1]}, "There is nothing to draw from 2 rows in 2 strata"),
        (([0], [0]), {}, "There is nothing to draw from 1 rows in 1 strata"),
        (([0, -1], [0, -1]), {"confidence_level": 95}, r"confidence_level=95 is not in \(0, 1\)"),
        (([0, -1], [0, -1]), {"n_resamples": 1}, "n_resamples=1 is too few"),
        ((["a", -1], ["a", "-1"]), {}, "y_true mixes strings such as 'a' with numbers such as -1"),
    ],
)
def test_bad_bootstrap(arrays, options, message):
    def metric(y_true, y_pred, *more):
        return open_set_accuracy(y_true, y_pred)

    with pytest.raises(ValueError, match=f"^{message}"):
        bootstrap_interval(metric, *arrays, **options)


seeds = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=9)


@property_test
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


@property_test
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


def test_five_seeds_are_never_significant_by_wilcoxon():
    result = paired_test([0.9, 0.91, 0.93, 0.96, 0.98], [0.1, 0.12, 0.13, 0.12, 0.11])
    assert result.t_pvalue < 1e-4
    assert result.wilcoxon_pvalue == 0.0625


def test_differences_that_are_all_equal():
    # 0.1, 0.2, … + 0.05 leaves a spread of rounding only.
    b = np.arange(1, 7) / 10
    result = paired_test(b + 0.05, b)
    assert result.mean_difference == result.low == result.high == pytest.approx(0.05)
    assert (result.effect_size, result.t_statistic, result.t_pvalue) == (np.inf, np.inf, 0)
    assert result.wilcoxon_pvalue == 2 / 2**6
    assert paired_test(b, b + 0.05).t_statistic == -np.inf
    nothing = paired_test(b, b)
    assert (nothing.mean_difference, nothing.low, nothing.high, nothing.effect_size) == (0, 0, 0, 0)
    assert (nothing.t_statistic, nothing.t_pvalue) == (nothing.wilcoxon_statistic, nothing.wilcoxon_pvalue) == (0, 1)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0.1, 0.2], [0.1], "scores_a has 2 scores and scores_b has 1, but both need one for each of at least two"),
        ([0.1], [0.2], "scores_a has 1 scores and scores_b has 1, but both need"),
        (np.ma.array([0.1, 0.3], mask=[0, 1]), [0.1, 0.2], "scores_a has masked values in row 1; fill them"),
        ([0.1, np.nan], [0.1, 0.2], "scores_a holds nan: pass finite numbers only"),
        ([0.1, 0.2], [0.1, np.inf], "scores_b holds inf: pass finite numbers only"),
        ([], [], r"scores_a has shape \(0,\), but must be one-dimensional and not empty"),
        ([[0.1, 0.2]], [0.1, 0.2], r"scores_a has shape \(1, 2\), but must be"),
    ],
)
def test_bad_pairs(a, b, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        paired_test(a, b)


def test_bad_confidence_level():
    with pytest.raises(ValueError, match=r"^confidence_level=1 is not in \(0, 1\): pass a share such as 0\.95"):
        paired_test([1, 2, 4], [1, 1, 1], confidence_level=1)


@property_test
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
        ([-0.1], r"p_values holds -0.1, which is not in \[0, 1\]"),
        ([np.nan], "p_values holds nan: pass finite numbers only"),
        (0.1, r"p_values has shape \(\), but must be one-dimensional"),
    ],
)
def test_bad_p_values(p_values, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        holm(p_values)
