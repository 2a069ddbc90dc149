"""Pseudo-open samples: which rows are mixed, and with which weights."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy import stats

from skellipsoid._ellipsoid.math.mixtures import Mixture, draw_mixtures, draw_synthetic_classes

#: Unequal classes, their rows mixed; labels need not start at 0.
CLASSES = np.random.default_rng(9).permutation(np.repeat([2, 3, 5, 8], [1, 3, 6, 10]))


def draw(classes=CLASSES, n_mixtures=200, *, n_mix=3, alpha=0.6, seed=0):
    return draw_mixtures(np.asarray(classes), n_mixtures, n_mix=n_mix, alpha=alpha, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("n_mix", [2, 3, 4])
def test_mixtures_have_distinct_labels(n_mix):
    mixture = draw(n_mix=n_mix)
    assert mixture.indices.shape == mixture.weights.shape == (200, n_mix)
    labels = CLASSES[mixture.indices]
    assert all(len(set(row)) == n_mix for row in labels.tolist())


def test_fewer_classes_than_n_mix_mix_what_there_is():
    assert draw(n_mix=9).indices.shape == (200, 4)
    assert draw([7, 7, 4], n_mix=3).indices.shape == (200, 2)


@pytest.mark.parametrize("classes", [[3], [3, 3, 3]])
def test_one_class_has_no_mixtures(classes):
    assert draw(classes) is None


def test_weights_sum_to_one():
    for alpha in (1e-3, 0.6, 100.0):
        weights = draw(alpha=alpha).weights
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.2, 0.6, 1.0, 5.0])
@pytest.mark.parametrize("n_mix", [2, 3, 4])
def test_weights_have_the_moments_of_the_dirichlet_distribution(n_mix, alpha):
    weights = draw(n_mixtures=20_000, n_mix=n_mix, alpha=alpha).weights
    variance = (n_mix - 1) / (n_mix**2 * (n_mix * alpha + 1))
    covariance = np.full((n_mix, n_mix), -variance / (n_mix - 1))
    np.fill_diagonal(covariance, variance)
    np.testing.assert_allclose(weights.mean(axis=0), 1 / n_mix, atol=0.01)
    np.testing.assert_allclose(np.cov(weights.T), covariance, atol=0.005)


def test_small_alpha_lets_one_sample_dominate():
    shares = [np.median(draw(alpha=alpha).weights.max(axis=1)) for alpha in (0.05, 0.6, 20.0)]
    assert shares[0] > 0.99 > shares[1] > 0.5 > shares[2]


@pytest.mark.parametrize("n_mix", [2, 3])
def test_classes_are_drawn_with_their_rows(n_mix):
    """Each further row is uniform among rows of classes not yet drawn: enumerate the orders of the classes."""
    n_mixtures = 20_000
    labels, counts = np.unique(CLASSES, return_counts=True)
    expected = {}
    for order in permutations(range(len(labels)), n_mix):
        probability, left = 1.0, counts.sum()
        for k in order:
            probability *= counts[k] / left
            left -= counts[k]
        key = tuple(sorted(labels[list(order)]))
        expected[key] = expected.get(key, 0) + probability
    assert sum(expected.values()) == pytest.approx(1)
    drawn = np.sort(CLASSES[draw(n_mixtures=n_mixtures, n_mix=n_mix).indices], axis=1)
    observed = [(drawn == key).all(axis=1).sum() for key in expected]
    assert stats.chisquare(observed, n_mixtures * np.array(list(expected.values()))).pvalue > 0.01


def test_rows_of_a_class_are_drawn_alike():
    drawn = np.bincount(draw(n_mixtures=20_000).indices.ravel(), minlength=len(CLASSES))
    for label in (3, 5, 8):
        assert stats.chisquare(drawn[np.equal(CLASSES, label)]).pvalue > 0.01
    assert (drawn > 0).all()


def test_weights_do_not_depend_on_the_class():
    mixture = draw(n_mixtures=20_000, n_mix=2)
    labels = CLASSES[mixture.indices]
    for label in np.unique(CLASSES):
        assert mixture.weights[labels == label].mean() == pytest.approx(0.5, abs=0.02)


def test_same_generator_same_mixtures():
    one, again, other = draw(seed=4), draw(seed=4), draw(seed=5)
    np.testing.assert_array_equal(one.indices, again.indices)
    np.testing.assert_array_equal(one.weights, again.weights)
    assert (one.weights != other.weights).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_are_the_weighted_sums(dtype):
    features = torch.from_numpy(np.random.default_rng(1).normal(size=(len(CLASSES), 6))).to(dtype)
    mixture = draw(n_mixtures=12)
    expected = [
        sum(weight * features[i].double().numpy() for i, weight in zip(indices, weights, strict=True))
        for indices, weights in zip(mixture.indices, mixture.weights, strict=True)
    ]
    mixed = mixture.of(features)
    assert mixed.dtype == dtype
    np.testing.assert_allclose(mixed, expected, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)


def test_one_full_weight_is_the_row_itself():
    features = torch.arange(6.0).reshape(3, 2)
    mixture = Mixture(np.array([[2, 0], [1, 2]]), np.array([[1.0, 0.0], [0.25, 0.75]]))
    assert mixture.of(features).tolist() == [[4, 5], [3.5, 4.5]]


def test_synthetic_samples_deviate_from_a_line_of_two_centroids_as_a_row_of_the_nearer_class_does():
    rng = np.random.default_rng(0)
    centroids = np.zeros((9, 13))
    centroids[:, :9] = np.eye(9)  # tells which are mixed, and how
    rows = centroids[CLASSES]
    rows[:, 9:] = rng.normal(size=(len(CLASSES), 4))

    drawn = draw_synthetic_classes(CLASSES, 300, 0.6, np.random.default_rng(0), np.ones(len(CLASSES)))
    found = drawn.of(torch.from_numpy(centroids), torch.from_numpy(rows - centroids[CLASSES])).numpy()
    shares = np.sort(found[:, :9], axis=1)[:, ::-1]
    np.testing.assert_allclose(shares[:, :2].sum(axis=1), 1)
    assert np.count_nonzero(found[:, :9], axis=1).max() == 2
    assert shares[:, 0].min() < 0.55
    assert shares[:, 0].max() > 0.95
    for row, nearer in zip(found, found[:, :9].argmax(axis=1), strict=True):
        assert np.isclose(rows[nearer == CLASSES][:, 9:], row[9:]).all(axis=1).any()
    assert draw_synthetic_classes(np.full(9, 3), 300, 0.6, np.random.default_rng(0), np.ones(9)) is None
