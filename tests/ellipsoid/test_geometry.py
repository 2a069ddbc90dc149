"""Centroids, radii, distances, axes and their tiles against NumPy in double precision; growths of small classes."""

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from scipy import stats

from skellipsoid._ellipsoid.math import tiles
from skellipsoid._ellipsoid.math.geometry import Factors, assigned_norms
from skellipsoid._ellipsoid.math.mixtures import draw_mixtures, draw_synthetic_classes
from skellipsoid._ellipsoid.math.tiles import PaddedAxes
from skellipsoid._torch import devices


@pytest.fixture
def rows():
    """60 rows of 5 features in 4 classes of unequal size, every class present."""
    rng = np.random.default_rng(0)
    classes = np.append(np.arange(4), rng.choice(4, size=56, p=[0.6, 0.2, 0.1, 0.1]))
    return rng.normal(size=(60, 5)) + classes[:, np.newaxis], classes


@pytest.fixture
def ellipsoids():
    """Centroids and matrices of 4 classes."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(4, 5)), np.eye(5) + 0.3 * rng.normal(size=(4, 5, 5))


def test_factors_are_the_matrices_that_they_stand_for(rows, ellipsoids):
    rng = np.random.default_rng(3)
    starts = [0, 0, 2, 7, 10]
    weights, residual = rng.uniform(0.2, 3, size=10), rng.uniform(0.2, 3, size=4)
    axes = np.concatenate([np.linalg.qr(rng.normal(size=(5, 5)))[0][:n_axes] for n_axes in np.diff(starts)])
    components = []
    for k, (first, last) in enumerate(pairwise(starts)):
        own = axes[first:last]
        squared = own.T @ np.diag(weights[first:last]) @ own + residual[k] * (np.eye(5) - own.T @ own)
        components.append(np.linalg.cholesky(squared).T)
    factors = Factors(*map(torch.from_numpy, (axes, weights)), starts, torch.from_numpy(residual))
    assert len(factors.residual) == 4
    given, centroids, padded_axes = torch.from_numpy(rows[0]), torch.from_numpy(ellipsoids[0]), factors.padded()
    pairs = [*zip(ellipsoids[0], components, strict=True)]
    expected = np.array([[np.linalg.norm(a @ (x - c)) for c, a in pairs] for x in rows[0]])  # ‖A_k (z − c_k)‖
    np.testing.assert_allclose(padded_axes.all_norms(given, centroids), expected, rtol=1e-12)
    own = assigned_norms(given, torch.as_tensor(rows[1]), centroids, padded_axes)
    np.testing.assert_allclose(own, expected[np.arange(60), rows[1]], rtol=1e-12)


# Distances of classes of unlike sizes


# Tiles of one class


@pytest.fixture(params=["cpu", "gpu"])
def machine(request, monkeypatch):
    """Tiles as on a CPU, and as on a GPU, where numbers of tiles are not read."""
    monkeypatch.setattr(tiles, "reads_are_free", lambda device: request.param == "cpu")
    return request.param


def padded(ranks, n_features=7, n_weightings=2, seed=0):
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *ranks]).tolist()
    axes, weights = rng.normal(size=(starts[-1], n_features)), rng.uniform(size=(starts[-1], n_weightings))
    return PaddedAxes.of(*map(torch.from_numpy, (axes, weights)), starts), axes, weights, starts


@pytest.mark.parametrize("ranks", [[3, 3, 3, 3], [3, 0, 5, 1], [0, 0, 0], [40, 2, 1, 2, 3, 0, 19], [4]])
@pytest.mark.parametrize("n_rows", [0, 1, 2, 9, 400])
@pytest.mark.parametrize("of_one_class", [False, True])
@pytest.mark.usefixtures("machine")
def test_squared_norms_are_those_of_each_row_alone(ranks, n_rows, of_one_class):
    given, axes, weights, starts = padded(ranks)
    rng = np.random.default_rng(1)
    samples, rows, centres = rng.normal(size=(9, 7)), rng.integers(9, size=n_rows), rng.normal(size=(len(ranks), 7))
    classes = rng.integers(len(ranks), size=n_rows)
    if of_one_class:
        classes[:] = len(ranks) - 1
    own = [slice(*pair) for pair in pairwise(starts)]
    offsets = samples[rows] - centres[classes]
    expected = [(axes[own[k]] @ offset) ** 2 @ weights[own[k]] for offset, k in zip(offsets, classes, strict=True)]
    along, squares = given.squared_norms(*map(torch.from_numpy, (samples, rows, classes, centres)), whole=True)
    np.testing.assert_allclose(along, np.reshape(expected, (n_rows, 2)), rtol=1e-12)
    np.testing.assert_allclose(squares, np.square(offsets).sum(axis=1), rtol=1e-12)


# Mixtures: which rows are mixed, and with which weights

#: Unequal classes, their rows mixed; labels need not start at 0.
CLASSES = np.random.default_rng(9).permutation(np.repeat([2, 3, 5, 8], [1, 3, 6, 10]))


@pytest.mark.parametrize("alpha", [0.2, 0.6, 1.0, 5.0])
@pytest.mark.parametrize("n_mix", [2, 3, 4])
def test_weights_have_the_moments_of_the_dirichlet_distribution(n_mix, alpha):
    weights = draw_mixtures(CLASSES, 20_000, n_mix=n_mix, alpha=alpha, rng=np.random.default_rng(0)).weights
    variance = (n_mix - 1) / (n_mix**2 * (n_mix * alpha + 1))
    covariance = np.full((n_mix, n_mix), -variance / (n_mix - 1))
    np.fill_diagonal(covariance, variance)
    np.testing.assert_allclose(weights.mean(axis=0), 1 / n_mix, atol=0.01)
    np.testing.assert_allclose(np.cov(weights.T), covariance, atol=0.005)


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
    rng = np.random.default_rng(0)
    drawn = np.sort(CLASSES[draw_mixtures(CLASSES, n_mixtures, n_mix=n_mix, alpha=0.6, rng=rng).indices], axis=1)
    observed = [(drawn == key).all(axis=1).sum() for key in expected]
    assert stats.chisquare(observed, n_mixtures * np.array(list(expected.values()))).pvalue > 0.01


def test_synthetic_samples_deviate_from_a_line_of_two_centroids_as_a_row_of_the_nearer_class_does():
    rng = np.random.default_rng(0)
    centroids = np.zeros((9, 13))
    centroids[:, :9] = np.eye(9)  # tells which are mixed, and how
    rows = centroids[CLASSES]
    rows[:, 9:] = rng.normal(size=(len(CLASSES), 4))

    means, sources = draw_synthetic_classes(CLASSES, 300, 0.6, np.random.default_rng(0), np.ones(len(CLASSES)))
    found = means.of(torch.from_numpy(centroids)).numpy() + (rows - centroids[CLASSES])[sources]
    shares = np.sort(found[:, :9], axis=1)[:, ::-1]
    np.testing.assert_allclose(shares[:, :2].sum(axis=1), 1)
    assert np.count_nonzero(found[:, :9], axis=1).max() == 2
    assert shares[:, 0].min() < 0.55
    assert shares[:, 0].max() > 0.95
    for row, nearer in zip(found, found[:, :9].argmax(axis=1), strict=True):
        assert np.isclose(rows[nearer == CLASSES][:, 9:], row[9:]).all(axis=1).any()
    assert draw_synthetic_classes(np.full(9, 3), 300, 0.6, np.random.default_rng(0), np.ones(9)) is None


@pytest.mark.parametrize(
    ("free", "chunk"), [(2**20, devices.CHUNK_BYTES), (2**30, 2**28), (80 * 2**30, devices.LARGEST_CHUNK_BYTES)]
)
def test_chunks_on_a_gpu_are_a_share_of_its_free_memory(monkeypatch, free, chunk):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free - 1000, free))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2000)
    assert devices.chunk_bytes(torch.device("cuda")) == chunk
    assert devices.chunk_bytes(torch.device("cpu")) == devices.CHUNK_BYTES
