"""Promise: scores of Gaussian classes and of neighbours are the formulas', on cases that were worked out by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import LedoitWolf, shrunk_covariance
from sklearn.neighbors import LocalOutlierFactor

from skellipsoid.baselines import KNNOpenSetClassifier, LOFOpenSetClassifier, MahalanobisClassifier, PLDAClassifier

A_AND_B = np.array([[-1.0], [1.0], [9.0], [11.0]]), [0, 0, 1, 1]


def knownness(classifier, X):
    """The method's own score, before the threshold is taken off."""
    return classifier.score_samples(X) + classifier.threshold_


def gaussian_classes(seed=0, n_classes=6, rows=60, n_features=4):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), rows)
    stretch = rng.normal(size=(n_features, n_features))
    return 6 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(len(y), n_features)) @ stretch, y


def test_relative_mahalanobis_of_two_classes_on_a_line():
    clf = MahalanobisClassifier(covariance="relative", threshold=0.0, duplicates="off").fit(*A_AND_B)
    # Of all rows the variance is 26 = 1 + 25 about 5: M_0 = 4 / 26 = 0.1538.
    np.testing.assert_allclose(knownness(clf, [[3.0]]), [-8.8462], atol=1e-4)


@pytest.mark.parametrize("pooling", [0.3, 1.0])
@pytest.mark.parametrize("rows", [3, 60])
def test_class_covariances_by_few_axes_are_those_written_out(pooling, rows):
    X, y = gaussian_classes(rows=rows, n_features=8)
    clf = MahalanobisClassifier(covariance="class", pooling=pooling, threshold=0.0, shrinkage=0.1, duplicates="off")
    clf.fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in range(6)])
    shared = shrunk_covariance((X - means[y]).T @ (X - means[y]) / len(X), 0.1)
    expected = []
    for k in range(6):
        covariance = (1 - pooling) * np.cov(X[y == k].T, bias=True) + pooling * shared
        expected.append(multivariate_normal(means[k], covariance).logpdf(X) + 4 * np.log(2 * np.pi))
    np.testing.assert_allclose(clf.decision_function(X), np.array(expected).T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("covariance", ["shared", "class", "relative"])
def test_mahalanobis_does_not_change_with_an_affine_map(covariance):
    X, y = gaussian_classes()
    rng = np.random.default_rng(1)
    rows = 6 * rng.normal(size=(200, 4))
    mixing, shift = rng.normal(size=(4, 4)), rng.normal(size=4)
    clf = MahalanobisClassifier(covariance=covariance, shrinkage=0.0)
    answers, scores = clf.fit(X, y).predict(rows), clf.score_samples(rows)
    np.testing.assert_array_equal(clf.fit(X @ mixing + shift, y).predict(rows @ mixing + shift), answers)
    np.testing.assert_allclose(clf.score_samples(rows @ mixing + shift), scores, rtol=1e-6, atol=1e-6)
    assert 0 < (answers == -1).mean() < 1


def test_shrinkage_is_that_of_ledoit_and_wolf():
    X = np.random.default_rng(0).normal(size=(40, 20)) * np.linspace(1, 3, 20)
    clf = MahalanobisClassifier(shrinkage="auto", threshold=0.0, duplicates="off").fit(X, np.zeros(40))
    np.testing.assert_allclose(-knownness(clf, X), LedoitWolf().fit(X).mahalanobis(X))
    assert clf.shrinkage_ == pytest.approx(LedoitWolf().fit(X).shrinkage_)
    weights = np.random.default_rng(1).integers(1, 4, size=40)
    clf.fit(X, np.zeros(40), sample_weight=weights)
    # Their covariance is that of rows repeated, with the noise of 40 rows.
    repeated = LedoitWolf().fit(np.repeat(X, weights, axis=0))
    assert clf.shrinkage_ == pytest.approx(repeated.shrinkage_ * weights.sum() / 40)
    covariance = shrunk_covariance(np.cov(X.T, fweights=weights, bias=True), clf.shrinkage_)
    offsets = X - repeated.location_
    squares = (offsets * np.linalg.solve(covariance, offsets.T).T).sum(axis=1)
    np.testing.assert_allclose(-knownness(clf, X), squares)


def test_plda_is_the_ratio_of_densities_of_the_fitted_covariances():
    X, y = gaussian_classes(n_classes=8)
    clf = PLDAClassifier(shrinkage=0.0, threshold=0.0, duplicates="off").fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in range(8)])
    within = (X - means[y]).T @ (X - means[y]) / (len(X) - 8)
    between = np.cov(means.T) - within / 60
    assert (np.linalg.eigvalsh(between) > 0).all()
    unseen = multivariate_normal(means.mean(axis=0), within + between).logpdf(X)
    for k in range(8):
        spread = np.linalg.inv(np.linalg.inv(between) + 60 * np.linalg.inv(within))
        mean = spread @ (np.linalg.solve(between, means.mean(axis=0)) + 60 * np.linalg.solve(within, means[k]))
        expected = multivariate_normal(mean, within + spread).logpdf(X) - unseen
        np.testing.assert_allclose(clf.decision_function(X)[:, k], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n_neighbors", "expected"), [(1, [0.7654, 0.0]), (2, [0.7654, 1.4142])])
def test_distance_to_the_kth_neighbour(n_neighbors, expected):
    clf = KNNOpenSetClassifier(n_neighbors=n_neighbors, threshold=0.0).fit([[1.0, 0.0], [0.0, 1.0]], [7, 7])
    np.testing.assert_allclose(-knownness(clf, [[1.0, 1.0], [2.0, 0.0]]), expected, atol=1e-4)


def test_neighbours_vote_and_the_nearest_decides_a_tie():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    clf = KNNOpenSetClassifier(n_neighbors=2, normalize=False, threshold=-9.0).fit(X, [0, 1, 0, 1])
    assert clf.predict([[0.4], [0.6], [2.4], [2.6]]).tolist() == [0, 1, 0, 1]
    assert KNNOpenSetClassifier(n_neighbors=9, threshold=0.0).fit(X + 1, [0, 1, 0, 0]).n_neighbors_ == 1


def test_lof_is_scikit_learns_in_each_class():
    X, y = gaussian_classes()
    rows = 6 * np.random.default_rng(1).normal(size=(200, 4))
    clf = LOFOpenSetClassifier(n_neighbors=7, duplicates="off").fit(X, y)
    assigned = clf.predict_known(rows)
    for k in range(6):
        theirs = LocalOutlierFactor(7, novelty=True, contamination=0.05).fit(X[y == k])
        mine = assigned == k
        assert theirs.offset_ == pytest.approx(clf.thresholds_[k])
        np.testing.assert_allclose(clf.score_samples(rows)[mine], theirs.decision_function(rows[mine]), rtol=1e-7)


@pytest.mark.parametrize("classifier", [KNNOpenSetClassifier(), LOFOpenSetClassifier()])
def test_what_counts_neighbours_takes_no_weights_but_zero(classifier):
    X, y = gaussian_classes()
    rows = X + 0.1
    weights = np.arange(len(X)) % 2
    scores = classifier.fit(X, y, sample_weight=3 * weights).score_samples(rows)
    np.testing.assert_array_equal(classifier.fit(X[weights > 0], y[weights > 0]).score_samples(rows), scores)
    with pytest.raises(ValueError, match=r"different positive weights, but .* counts neighbours"):
        classifier.fit(X, y, sample_weight=1 + weights)


def test_lof_of_all_samples_takes_classes_of_one_row_and_a_single_row():
    X = np.append(np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 30.0]], axis=0)
    clf = LOFOpenSetClassifier(scope="all").fit(X, [0] * 50 + [1])
    assert clf.predict([[30.0, 30.0], [0.0, 0.0]]).tolist() == [-1, 0]  # far from all its neighbours
    single = LOFOpenSetClassifier(scope="all").fit([[2.0, 2.0]], [0])
    assert single.predict([[2.0, 2.0], [9.0, 9.0]]).tolist() == [0, -1]
