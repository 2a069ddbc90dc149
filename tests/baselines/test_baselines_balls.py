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


def test_a_class_that_is_one_point_has_a_typical_radius():
    X = np.array([[0.0, 0.0]] * 3 + [[10.0, 0.0], [12.0, 0.0], [11.0, 1.0], [11.0, -1.0]])
    y = [0] * 3 + [1] * 4
    message = "Classes without spread.*: 0; their boundaries get the typical size"
    with pytest.warns(UserWarning, match=message) as caught:
        classifier = BallClassifier(coverage=1).fit(X, y)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(classifier.radii_, 1.0)
