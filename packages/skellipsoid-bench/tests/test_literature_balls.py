"""Promise: balls of ADB, CLAB and MOGB are those of the publications, on cases that were worked out by hand."""

import numpy as np
import pytest

from skellipsoid.baselines import BallClassifier
from skellipsoid_bench.literature import ADBClassifier, CLABClassifier, MOGBClassifier
from skellipsoid_bench.literature._mogb import granular_balls

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
TWO = [0, 0, 0, 1, 1, 1]


def mixed(seed=0, rows=200):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 2)), rng.integers(3, size=rows)


def test_classes_without_a_ball_are_named_and_never_answered():
    with pytest.warns(UserWarning, match="No ball of .* min_size=5 is there for the class 0, 1") as caught:
        clf = MOGBClassifier(random_state=0).fit(LINE, TWO)
    assert caught[0].filename == __file__
    assert clf.predict([*LINE, [1.0], [11.0]]).tolist() == [-1] * 8
    X, y = np.append(LINE, np.linspace(30, 31, 9)[:, np.newaxis], axis=0), TWO + [2] * 9
    with pytest.warns(UserWarning, match="for the class 0, 1, which is never answered"):
        clf.fit(X, y)
    assert clf.predict([[0.0], [30.5]]).tolist() == [-1, 2]
    assert clf.predict_known([[0.0]]).tolist() == [2]
    assert (clf.class_margins(X)[:, :2] < 0).all()


def test_leaves_are_a_partition_of_the_rows():
    X, y = mixed()
    for purity, size in ((1.0, 1), (0.9, 5), (0.5, 20)):
        balls = list(granular_balls(X, y, np.ones(200), purity, size, np.random.default_rng(0)))
        assert sorted(np.concatenate([ball.rows for ball in balls]).tolist()) == list(range(200))
        for ball in balls:
            shares = np.bincount(y[ball.rows], minlength=3) / len(ball.rows)
            assert ball.purity == pytest.approx(shares.max())
            assert shares[ball.label] == shares.max()
            assert ball.purity >= purity or ball.weight <= size


def test_adb_without_dropout_has_the_median_distance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(202, 3)) * 100 + 7, np.repeat([0, 1], 101)
    clf = ADBClassifier(dropout=0.0, max_iter=300, random_state=0).fit(X, y)
    medians = [np.median(np.linalg.norm(X[y == k] - X[y == k].mean(axis=0), axis=1)) for k in (0, 1)]
    np.testing.assert_allclose(clf.radii_, medians, rtol=0.02)
    assert 0.4 < (clf.predict(X) != -1).mean() < 0.6


def test_clab_normalises_rows_and_looks_at_other_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    angles = np.array([0.0, 0.5, 3.0])[y] + 0.1 * rng.normal(size=300)
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(1, 9, size=(300, 1))
    clf = CLABClassifier(random_state=0, dropout=0, max_iter=300).fit(X, y)
    rows = rng.normal(size=(50, 2))
    np.testing.assert_allclose(clf.score_samples(7 * rows), clf.score_samples(rows))
    np.testing.assert_allclose(np.linalg.norm(clf.centroids_, axis=1), 1)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    own = np.linalg.norm(unit - clf.centroids_[y], axis=1)
    without = CLABClassifier(random_state=0, dropout=0, max_iter=300, eta=0.0).fit(X, y)
    for k in range(3):
        low, middle, high = np.quantile(own[y == k], [0.43, 0.5, 0.57])
        assert low <= clf.radii_[k] <= high
        assert without.radii_[k] == pytest.approx(middle, abs=0.01)


def test_clab_learns_its_radii_with_dropout_as_the_released_code_does():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = rng.normal(size=(4, 64))[y] + 0.3 * rng.normal(size=(400, 64))
    with_dropout, without = (CLABClassifier(random_state=0, dropout=rate).fit(X, y) for rate in (0.1, 0))
    np.testing.assert_allclose(with_dropout.centroids_, without.centroids_)
    assert (with_dropout.radii_ > without.radii_).all()
    # The radius is about the median distance of rows with dropout, normalised again.
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    dropped = unit * (rng.random(X.shape) >= 0.1)
    dropped /= np.linalg.norm(dropped, axis=1, keepdims=True)
    distances = np.linalg.norm(dropped - with_dropout.centroids_[y], axis=1)
    for k in range(4):
        low, high = np.quantile(distances[y == k], [0.25, 0.65])
        assert low <= with_dropout.radii_[k] <= high
    # So most samples are accepted; without dropout half of them are not.
    assert (with_dropout.predict(X) == y).mean() > 0.8
    assert 0.4 < (without.predict(X) == y).mean() < 0.6


def test_without_splitting_it_is_one_ball_for_each_class():
    X, y = mixed()
    X = X + 3 * y[:, np.newaxis]
    one = MOGBClassifier(split_purity=0.0, random_state=0).fit(X, y)
    ball = BallClassifier(coverage=1).fit(X, y)
    assert one.ball_classes_.tolist() == [0, 1, 2]
    rows = 4 * np.random.default_rng(1).normal(size=(300, 2)) + 3
    np.testing.assert_allclose(one.class_margins(rows), ball.class_margins(rows))
    np.testing.assert_array_equal(one.predict(rows), ball.predict(rows))
