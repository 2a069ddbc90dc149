"""The synthetic generator, against densities of scipy and against the samples it draws."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from skellipsoid.datasets import OpenBlobsRule, make_open_blobs


def brute_force_log_ratios(rule, X):
    n_known, n_features = rule.centers.shape
    open_ = multivariate_normal(np.zeros(n_features), rule.open_variance * np.eye(n_features)).logpdf(X)
    return np.column_stack(
        [
            multivariate_normal(c, s).logpdf(X) + np.log((1 - rule.open_share) / n_known)
            for c, s in zip(rule.centers, rule.covariances, strict=True)
        ]
    ) - (open_ + np.log(rule.open_share)).reshape(-1, 1)


@pytest.mark.parametrize("n_features", [1, 2, 7])
@pytest.mark.parametrize("n_known", [1, 4])
def test_rule_equals_densities_of_scipy(n_features, n_known):
    X, _, rule = make_open_blobs(50, n_features, n_known=n_known, random_state=3, return_rule=True)
    expected = brute_force_log_ratios(rule, X)
    np.testing.assert_allclose(rule.class_log_ratios(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rule.log_density_ratio(X), np.log(np.exp(expected).sum(axis=1)), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        rule.predict(X), np.column_stack([np.zeros(50), expected]).argmax(axis=1) - 1
    )  # classes are 0, 1, ... and open is -1


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_class_and_open_are_equally_probable_on_the_ellipsoid(n_features):
    rule = make_open_blobs(n_features=n_features, random_state=0, return_rule=True)[2]
    rng = np.random.default_rng(0)
    for label in range(3):
        center, matrix = rule.ellipsoid(label)
        directions = rng.standard_normal((20, n_features))
        lengths = np.sqrt(np.einsum("ni,ij,nj->n", directions, matrix, directions))
        surface = directions / lengths[:, np.newaxis]
        np.testing.assert_allclose(rule.class_log_ratios(center + surface)[:, label], 0, atol=1e-8)
        assert (rule.class_log_ratios(center + 0.99 * surface)[:, label] > 0).all()
        assert (rule.class_log_ratios(center + 1.01 * surface)[:, label] < 0).all()


def test_samples_follow_the_distribution():
    X, y, rule = make_open_blobs(40_000, 3, n_known=2, open_share=0.4, random_state=0, return_rule=True)
    assert np.bincount(y + 1).tolist() == [16_000, 12_000, 12_000]
    for label in range(2):
        rows = X[y == label]
        np.testing.assert_allclose(rows.mean(axis=0), rule.centers[label], atol=0.1)
        np.testing.assert_allclose(np.cov(rows.T), rule.covariances[label], atol=0.2)
    np.testing.assert_allclose(X[y == -1].mean(axis=0), 0, atol=0.2)
    np.testing.assert_allclose(np.cov(X[y == -1].T) / rule.open_variance, np.eye(3), atol=0.05)


def test_no_learned_rule_beats_the_bayes_rule():
    X, y, rule = make_open_blobs(20_000, random_state=1, open_share=0.5, return_rule=True)
    train, test = slice(0, 10_000), slice(10_000, None)
    neighbors = KNeighborsClassifier(51).fit(X[train], y[train])
    best = accuracy_score(y[test], rule.predict(X[test]))
    learned = neighbors.score(X[test], y[test])
    assert learned < best < learned + 0.02  # close, since this many neighbours come near the optimum

    is_known = y[test] != -1
    best_auroc = roc_auc_score(is_known, rule.log_density_ratio(X[test]))
    p_open = neighbors.predict_proba(X[test])[:, 0]
    assert roc_auc_score(is_known, -p_open) < best_auroc


@pytest.mark.parametrize("anisotropy", [1.0, 9.0])
def test_covariances_have_the_promised_shape(anisotropy):
    rule = make_open_blobs(n_features=4, anisotropy=anisotropy, random_state=0, return_rule=True)[2]
    for covariance in rule.covariances:
        deviations = np.sqrt(np.linalg.eigvalsh(covariance))
        assert deviations[-1] / deviations[0] == pytest.approx(anisotropy)
        assert deviations.prod() == pytest.approx(1)
        assert rule.open_variance > deviations[-1] ** 2


def test_same_seed_same_result_and_the_distribution_does_not_depend_on_the_size():
    X, y, rule = make_open_blobs(100, random_state=7, return_rule=True)
    again = make_open_blobs(100, random_state=np.random.RandomState(7))
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    larger = make_open_blobs(1_000, random_state=7, shuffle=False, return_rule=True)[2]
    np.testing.assert_array_equal(larger.centers, rule.centers)
    np.testing.assert_array_equal(larger.covariances, rule.covariances)
    other = make_open_blobs(100, random_state=8)
    assert not np.array_equal(X, other[0])


def test_the_global_random_state_is_untouched():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_open_blobs(random_state=0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_without_shuffling_open_rows_come_last():
    _, y = make_open_blobs(11, n_known=2, open_share=0.25, open_label=-9, shuffle=False, random_state=0)
    assert y.tolist() == [0] * 4 + [1] * 4 + [-9] * 3
    assert y.dtype == np.int64


def test_without_open_rows_every_answer_is_the_most_probable_class():
    X, y, rule = make_open_blobs(200, open_share=0, class_sep=12, random_state=0, return_rule=True)
    assert set(y) == {0, 1, 2}
    assert (rule.class_log_ratios(X) == np.inf).all()
    assert (rule.log_density_ratio(X) == np.inf).all()
    assert rule.predict(X).tolist() == y.tolist()
    assert not rule.ellipsoid(0)[1].any()  # the whole space


def test_a_class_that_open_drowns_has_no_ellipsoid():
    rule = OpenBlobsRule(np.zeros((1, 2)), np.eye(2)[np.newaxis], open_variance=1.5, open_share=0.99)
    with pytest.raises(ValueError, match=r"Class 0 is nowhere more probable than open at open_share=0\.99"):
        rule.ellipsoid(0)
    assert rule.predict(np.zeros((1, 2))).tolist() == [-1]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples == 0, must be >= 1"),
        ({"n_features": 2.0}, TypeError, "n_features must be an instance of"),
        ({"n_known": 0}, ValueError, "n_known == 0"),
        ({"open_share": 1.0}, ValueError, "open_share == 1.0, must be < 1"),
        ({"open_share": -0.1}, ValueError, "open_share == -0.1"),
        ({"class_sep": -1}, ValueError, "class_sep == -1"),
        ({"anisotropy": 0.5}, ValueError, "anisotropy == 0.5"),
        ({"open_scale": 1.0}, ValueError, "open_scale == 1.0, must be > 1"),
        ({"open_label": "open"}, TypeError, "open_label must be an instance of"),
        ({"open_label": 2}, ValueError, "open_label=2 is one of the known classes 0 to 2"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        make_open_blobs(**parameters)


def test_rule_refuses_other_features_and_other_classes():
    rule = make_open_blobs(random_state=0, return_rule=True)[2]
    with pytest.raises(ValueError, match="X has 3 features, but this distribution has 2"):
        rule.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="label == 3, must be <= 2"):
        rule.ellipsoid(3)
