"""Promise: boundaries of small classes are as much larger as new samples of these classes lie farther out."""

import numpy as np
import pytest
import torch

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.math.class_sizes import ERRORS, estimate_mean_error, growths


def squares_of(sizes, error, rng, spread=0.0):
    """Squared distances of the samples of classes, their mean being proportional to 1 + e / n."""
    classes = np.repeat(np.arange(len(sizes)), sizes)
    of_class = (1 + error / sizes) * np.exp(spread * rng.normal(size=len(sizes)))
    return rng.gamma(5, of_class[classes] / 5), classes, sizes[classes].astype(float), np.ones(len(classes))


@pytest.mark.parametrize("error", [1.0, 3.0, 8.0])
def test_the_error_is_found_in_classes_of_unlike_sizes(error):
    sizes = np.tile([4, 8, 20, 60, 200], 12)
    found = [
        estimate_mean_error(*squares_of(sizes, error, np.random.default_rng(seed), spread=0.2)) for seed in range(5)
    ]
    assert np.exp(np.mean(np.log(found))) == pytest.approx(error, rel=0.35)


def test_classes_of_one_size_say_nothing_of_the_error():
    found = estimate_mean_error(*squares_of(np.full(9, 20), 5.0, np.random.default_rng(0)))
    assert found == pytest.approx(np.exp(np.log(ERRORS).mean()))


@pytest.mark.parametrize("squares", [[], [0.0, 0.0], [4.0]])
def test_hardly_any_samples_are_enough(squares):
    n = len(squares)
    found = estimate_mean_error(np.array(squares), np.arange(n), np.full(n, 2.0), np.ones(n))
    assert ERRORS[0] <= found <= ERRORS[-1]


def test_growths_are_relative_to_a_class_of_typical_size():
    found = growths(4.0, torch.tensor([1.0, 8.0, 64.0], dtype=torch.float64), 8.0)
    np.testing.assert_allclose(found, np.sqrt(np.array([5, 1.5, 1.0625]) / 1.5))


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
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y, new, labels, _ = unequal(rng, np.tile([12, 100], 12), n_features, 25)
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
        is_open, is_small = clf.predict(new) == -1, labels % 2 == 0
        few.append(is_open[is_small].mean())
        many.append(is_open[~is_small].mean())
        ratios.append(clf.radii_[::2].mean() / clf.radii_[1::2].mean())
    assert np.mean(few) < 1.5 * np.mean(many) + 0.03
    assert min(ratios) > 1


def test_classes_of_one_size_have_one_radius():
    X, y, *_ = unequal(np.random.default_rng(0), np.full(6, 15), 20, 1)
    radii = EllipsoidOpenSetClassifier(random_state=0).fit(X, y).radii_
    np.testing.assert_allclose(radii, radii[0])
