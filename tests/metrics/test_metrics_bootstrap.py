"""Bootstrap intervals and paired tests against SciPy, formulas and enumeration."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from skellipsoid.metrics import bootstrap_interval, open_f1_score, open_set_accuracy, open_set_auroc


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_true = np.repeat([0, 1, 2, -1], [40, 20, 10, 80])
    y_pred = np.where(rng.random(150) < 0.8, y_true, rng.integers(-1, 3, 150))
    return y_true, y_pred, rng.normal(size=150) + 2 * (y_true >= 0)


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_interval_is_scipys_over_rows(problem, method):
    y_true, y_pred, _ = problem
    how = {"n_resamples": 200, "confidence_level": 0.9, "method": method}
    ours = bootstrap_interval(open_set_accuracy, y_true, y_pred, random_state=3, **how)
    theirs = stats.bootstrap((y_true == y_pred,), np.mean, random_state=np.random.default_rng(3), **how)
    assert ours.estimate == np.mean(y_true == y_pred)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval))
    assert ours.standard_error == pytest.approx(theirs.standard_error)


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
        (([0, -1], [0, -1], [1]), {}, "y_true has 2 rows and array 2 of the predictions has 1"),
        (([0, -1], [0, -1]), {"stratify": np.ma.array([0, 1], mask=[0, 1])}, "stratify has masked values in row 1"),
        (([0, -1], [0, -1]), {"stratify": [0, 1]}, "2 rows in 2 strata cannot be resampled"),
        (([0, -1], [0, -1]), {"confidence_level": 95}, r"confidence_level=95 is not in \(0, 1\)"),
        (([0, -1], [0, -1]), {"n_resamples": 1}, "n_resamples=1 is too few"),
    ],
)
def test_bad_bootstrap(arrays, options, message):
    def metric(y_true, y_pred, *more):
        return open_set_accuracy(y_true, y_pred)

    with pytest.raises(ValueError, match=f"^{message}"):
        bootstrap_interval(metric, *arrays, **options)
