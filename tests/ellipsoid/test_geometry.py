"""Centroids, radii, distances and axes against NumPy in double precision."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from skellipsoid._ellipsoid.math.geometry import (
    Factors,
    assigned_norms,
    class_centroids,
    mean_radii,
    nearest_centroid,
    nearest_other,
)
from skellipsoid._samples.samples import Samples
from skellipsoid._torch import devices

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-13}


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


def literal_norms(features, centroids, components):
    return np.array([[np.linalg.norm(a @ (x - c)) for c, a in zip(centroids, components)] for x in features])  # noqa: B905


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_centroids_and_mean_radii(rows, dtype):
    features, classes = rows
    means = np.array([features[classes == k].mean(axis=0) for k in range(4)])
    radii = [np.linalg.norm(features[classes == k] - means[k], axis=1).mean() for k in range(4)]
    samples = Samples.of(torch.tensor(features, dtype=dtype), torch.from_numpy(classes))
    centroids = class_centroids(samples)
    assert centroids.dtype == dtype
    np.testing.assert_allclose(centroids, means, atol=TOLERANCE[dtype])
    found = mean_radii(samples, centroids)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, radii, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_rows", [1, 7, 5000])
def test_centroid_of_equal_rows_is_that_row(n_rows):
    row = torch.from_numpy(np.random.default_rng(0).normal(size=50).astype(np.float32))
    samples = Samples.of(row.repeat(n_rows, 1), torch.zeros(n_rows, dtype=torch.long))
    centroids = class_centroids(samples)
    assert torch.equal(centroids[0], row)
    assert mean_radii(samples, centroids).item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nearest_centroid_is_the_brute_force_one(rows, ellipsoids, dtype):
    features, centroids = rows[0], ellipsoids[0]
    distances = np.linalg.norm(features[:, np.newaxis] - centroids, axis=2)
    found = nearest_centroid(torch.tensor(features, dtype=dtype), torch.tensor(centroids, dtype=dtype))
    np.testing.assert_array_equal(found, distances.argmin(axis=1))


def test_nearest_centroid_takes_the_first_of_equal_ones():
    centroids = torch.tensor([[2.0, 0], [0, 1], [0, 1]])
    assert nearest_centroid(torch.tensor([[0.0, 0.9], [2.0, 0.1]]), centroids).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_norms_are_the_literal_ones(rows, ellipsoids, dtype):
    features, classes = rows
    expected = literal_norms(features, *ellipsoids)
    given, centroids = torch.tensor(features, dtype=dtype), torch.tensor(ellipsoids[0], dtype=dtype)
    components = Factors.from_components(torch.tensor(ellipsoids[1], dtype=dtype)).padded()
    every = components.all_norms(given, centroids)
    assert every.dtype == dtype
    np.testing.assert_allclose(every, expected, rtol=TOLERANCE[dtype])
    for assigned in (classes, np.full(60, 2), np.arange(60) % 3):  # all classes, one alone, one left out
        own = assigned_norms(given, torch.from_numpy(assigned), centroids, components)
        assert own.dtype == dtype
        np.testing.assert_allclose(own, expected[np.arange(60), assigned], rtol=TOLERANCE[dtype])
        np.testing.assert_allclose(own, every[np.arange(60), assigned], rtol=TOLERANCE[dtype])


def test_no_rows_have_no_norms(ellipsoids):
    centroids = torch.from_numpy(ellipsoids[0])
    components = Factors.from_components(torch.from_numpy(ellipsoids[1])).padded()
    none = torch.empty(0, 5, dtype=torch.float64)
    assert nearest_centroid(none, centroids).shape == (0,)
    assert assigned_norms(none, torch.empty(0, dtype=torch.long), centroids, components).shape == (0,)
    assert components.all_norms(none, centroids).shape == (0, 4)


def test_nearest_other_passes_over_the_own_class():
    centroids = torch.tensor([[0.0, 0], [1, 0], [3, 0], [9, 0]])
    rows, classes = torch.tensor([[0.1, 0], [0.9, 0], [9, 0]]), torch.tensor([0, 1, 3])
    assert nearest_other(rows, classes, centroids).tolist() == [1, 0, 2]
    assert nearest_centroid(rows, centroids).tolist() == [0, 1, 3]


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
    given, centroids, expected = torch.from_numpy(rows[0]), torch.from_numpy(ellipsoids[0]), np.array(components)
    expected = literal_norms(rows[0], ellipsoids[0], expected)
    np.testing.assert_allclose(factors.padded().all_norms(given, centroids), expected, rtol=1e-12)
    own = assigned_norms(given, torch.from_numpy(rows[1]), centroids, factors.padded())
    np.testing.assert_allclose(own, expected[np.arange(60), rows[1]], rtol=1e-12)


def test_rows_beyond_the_precision_are_infinitely_far():
    factors = Factors(torch.tensor([[1.0, 0]]), torch.tensor([0.5]), [0, 1], torch.tensor([2.0]))
    far, centroids = torch.tensor([[1e30, 1e30]]), torch.zeros(1, 2)
    assert factors.padded().all_norms(far, centroids).tolist() == [[torch.inf]]
    assert assigned_norms(far, torch.tensor([0]), centroids, factors.padded()).tolist() == [torch.inf]


@pytest.mark.parametrize("n_rows", [0, 1, 10, 999])
@pytest.mark.parametrize("chunk_bytes", [1, 5000, 2**26])
def test_chunks_cover_every_row_once(monkeypatch, n_rows, chunk_bytes):
    monkeypatch.setattr(devices, "CHUNK_BYTES", chunk_bytes)
    chunks = list(devices.row_chunks(n_rows, 216))
    covered = [i for chunk in chunks for i in range(n_rows)[chunk]]
    assert covered == list(range(n_rows))
    assert all(chunk.stop - chunk.start <= max(1, chunk_bytes // 216) for chunk in chunks)


@pytest.mark.parametrize(
    ("free", "chunk"), [(2**20, devices.CHUNK_BYTES), (2**30, 2**28), (80 * 2**30, devices.LARGEST_CHUNK_BYTES)]
)
def test_chunks_on_a_gpu_are_a_share_of_its_free_memory(monkeypatch, free, chunk):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free - 1000, free))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2000)
    assert devices.chunk_bytes(torch.device("cuda")) == chunk
    assert devices.chunk_bytes(torch.device("cpu")) == devices.CHUNK_BYTES
