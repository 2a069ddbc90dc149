"""Promise: balls about class means are those of the publications, on cases that were worked out by hand."""

import numpy as np
import pytest

from skellipsoid.baselines import BallClassifier

LINE = np.concatenate([-np.arange(1, 11), np.arange(1, 11)])[:, np.newaxis] * 1.0  # the mean is 0, each distance twice


@pytest.mark.parametrize(("coverage", "radius"), [(0.95, 10.0), (0.94, 9.0), (1.0, 10.0), (0.2, 2.0), (0.01, 1.0)])
def test_radius_is_the_distance_of_the_last_row_covered(coverage, radius):
    clf = BallClassifier(coverage=coverage, duplicates="off").fit(LINE, np.zeros(20, dtype=int))
    np.testing.assert_allclose(clf.centroids_, 0, atol=1e-12)
    np.testing.assert_allclose(clf.radii_, radius)
    np.testing.assert_allclose(clf.score_samples([[radius], [0.0], [3 * radius]]), [0.0, 1.0, -2.0], atol=1e-12)
    # The row on the boundary is inside; of two with the same distance the second need not be covered.
    assert (clf.predict(LINE) == 0).sum() in (2 * radius - 1, 2 * radius)


def test_a_quotient_that_rounds_down_covers_the_row():
    # 0.29 * 100 is 28.999999999999996
    X = np.arange(1.0, 101.0)[:, np.newaxis]
    distances = np.sort(np.abs(X[:, 0] - 50.5))
    clf = BallClassifier(coverage=0.29, duplicates="off").fit(X, np.zeros(100, dtype=int))
    np.testing.assert_allclose(clf.radii_, distances[28])


def test_full_coverage_holds_every_row_of_any_features():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        X, y = (1e3 + rng.normal(size=(300, 20))).astype(dtype), np.repeat([0, 1, 2], 100)
        clf = BallClassifier(coverage=1).fit(X + 10 * y[:, np.newaxis].astype(dtype), y)
        assert (clf.predict(X + 10 * y[:, np.newaxis].astype(dtype)) == y).all()


def test_a_row_is_asked_of_its_nearest_mean_alone():
    # Means 0 and 5, radii 1 and 4: the row 2 is inside the second ball, but nearer to the first mean.
    X = np.array([[-1.0], [1.0], [1.0], [9.0]])
    clf = BallClassifier(coverage=1, duplicates="off").fit(X, [0, 0, 1, 1])
    assert clf.radii_.tolist() == [1.0, 4.0]
    assert clf.class_margins([[2.0]]).tolist() == [[-1.0, 0.25]]
    assert clf.predict([[2.0], [3.0], [0.5]]).tolist() == [-1, 1, 0]
    assert clf.predict_known([[2.0]]).tolist() == [0]


def test_shift_scale_and_rotation_change_no_decision():
    classifier = BallClassifier(coverage=1)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    X = rng.normal(size=(150, 4)) + 6 * y[:, np.newaxis]
    rows = 8 * rng.normal(size=(300, 4)) + 6
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    margins = classifier.fit(X, y).class_margins(rows)
    moved = classifier.fit(3e-5 * (X @ rotation) + 17, y).class_margins(3e-5 * (rows @ rotation) + 17)
    np.testing.assert_allclose(moved, margins, rtol=1e-3)


def test_a_class_that_is_one_point_has_a_typical_radius():
    X = np.array([[0.0, 0.0]] * 3 + [[10.0, 0.0], [12.0, 0.0], [11.0, 1.0], [11.0, -1.0]])
    y = [0] * 3 + [1] * 4
    message = "Classes without spread.*: 0; their boundaries take the typical size"
    with pytest.warns(UserWarning, match=message) as caught:
        classifier = BallClassifier(coverage=1).fit(X, y)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(classifier.radii_, 1.0)
