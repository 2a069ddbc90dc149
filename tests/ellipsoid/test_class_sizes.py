"""Promise: boundaries of small classes are as much larger as new samples of these classes lie farther out."""

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.math.class_sizes import estimate_mean_error


def unequal(rng, sizes, n_features, n_new):
    """Classes whose means differ in as many dimensions as there are classes; fresh samples of all; and open samples."""
    n_classes = len(sizes)
    means = 1.5 * rng.normal(size=(2 * n_classes, n_features)) / np.sqrt(n_features)

    def draw(labels):
        return means[labels] + 2 * rng.normal(size=(len(labels), n_features)) / np.sqrt(n_features)

    y, new = np.repeat(np.arange(n_classes), sizes), np.repeat(np.arange(n_classes), n_new)
    return draw(y), y, draw(new), new, draw(np.repeat(np.arange(n_classes, 2 * n_classes), n_new))


@pytest.mark.parametrize("n_features", [60, 300])
def test_small_classes_beside_large_ones_reject_about_as_many_known_samples(n_features):
    """Without the growths, small classes reject five times as many in 60 dimensions."""
    few, many, ratios = [], [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y, new, labels, _ = unequal(rng, np.tile([12, 100], 12), n_features, 25)
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
        is_open, is_small = clf.predict(new) == -1, labels % 2 == 0
        few.append(is_open[is_small].mean())
        many.append(is_open[~is_small].mean())
        ratios.append(clf.radii_[::2].mean() / clf.radii_[1::2].mean())
    assert np.mean(few) < 1.5 * np.mean(many) + 0.03
    assert min(ratios) > 1


def test_the_error_of_a_mean_is_found_in_any_unit():
    classes = np.arange(900) // 10
    sizes, found = np.array([5.0, 20.0, 100.0])[classes % 3], []
    for error in (1.0, 8.0):
        squares = (1 + error / sizes) * np.random.default_rng(0).gamma(50, 1 / 50, size=900)
        found.append([estimate_mean_error(unit * squares, classes, sizes, np.ones(900)) for unit in (1e-6, 1.0, 1e6)])
    np.testing.assert_allclose(found[0], found[0][0], rtol=1e-6)
    assert found[0][0] == pytest.approx(1, rel=0.5)
    assert found[1][0] == pytest.approx(8, rel=0.5)
