"""Centroids, radii, distances and axes against NumPy in double precision."""

import numpy as np
import pytest
import torch

from skellipsoid._engine import devices
from skellipsoid._engine.geometry import (
    assigned_norms,
    class_centroids,
    ellipsoid_axes,
    mean_radii,
    nearest_centroid,
    scoring_chunks,
    transformed_norms,
)

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
    given, labels = torch.tensor(features, dtype=dtype), torch.from_numpy(classes)
    centroids = class_centroids(given, labels, 4)
    assert centroids.dtype == dtype
    np.testing.assert_allclose(centroids, means, atol=TOLERANCE[dtype])
    found = mean_radii(given, labels, centroids)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, radii, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_rows", [1, 7, 5000])
def test_centroid_of_equal_rows_is_that_row(n_rows):
    row = torch.from_numpy(np.random.default_rng(0).normal(size=50).astype(np.float32))
    features, classes = row.repeat(n_rows, 1), torch.zeros(n_rows, dtype=torch.long)
    centroids = class_centroids(features, classes, 1)
    assert torch.equal(centroids[0], row)
    assert mean_radii(features, classes, centroids).item() == 0


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
    components = torch.tensor(ellipsoids[1], dtype=dtype)
    every = transformed_norms(given, centroids, components)
    assert every.dtype == dtype
    np.testing.assert_allclose(every, expected, rtol=TOLERANCE[dtype])
    for assigned in (classes, np.full(60, 2), np.arange(60) % 3):  # all classes, one alone, one left out
        own = assigned_norms(given, torch.from_numpy(assigned), centroids, components)
        assert own.dtype == dtype
        np.testing.assert_allclose(own, expected[np.arange(60), assigned], rtol=TOLERANCE[dtype])
        np.testing.assert_allclose(own, every[np.arange(60), assigned], rtol=TOLERANCE[dtype])


def test_norms_of_double_rows_with_single_matrices(rows, ellipsoids):
    # How a fitted classifier scores float64 rows: its matrices are float32.
    components = ellipsoids[1].astype(np.float32)
    expected = literal_norms(rows[0], ellipsoids[0], components.astype(np.float64))
    given = torch.from_numpy(rows[0]), torch.from_numpy(ellipsoids[0]), torch.from_numpy(components)
    np.testing.assert_allclose(transformed_norms(*given), expected, rtol=1e-13)
    assigned = torch.from_numpy(rows[1])
    own = assigned_norms(given[0], assigned, *given[1:])
    np.testing.assert_allclose(own, expected[np.arange(60), rows[1]], rtol=1e-13)


def test_no_rows_have_no_norms(ellipsoids):
    centroids, components = (torch.from_numpy(values) for values in ellipsoids)
    none = torch.empty(0, 5, dtype=torch.float64)
    assert nearest_centroid(none, centroids).shape == (0,)
    assert assigned_norms(none, torch.empty(0, dtype=torch.long), centroids, components).shape == (0,)
    assert transformed_norms(none, centroids, components).shape == (0, 4)


def test_axes_of_a_known_ellipsoid():
    # x'M x <= 4 with eigenvalues 1, 4 and 1/4 of AᵀA: semi-axes 2, 1 and 4.
    turn = np.array([[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]])
    component = np.diag([1, 2, 0.5]) @ turn
    directions, lengths = ellipsoid_axes(component, 2.0)
    np.testing.assert_allclose(lengths, [4, 2, 1])
    np.testing.assert_allclose(abs(directions @ turn[[2, 0, 1]].T), np.eye(3), atol=1e-12)


def test_axes_rebuild_the_matrix(ellipsoids):
    for component in ellipsoids[1]:
        directions, lengths = ellipsoid_axes(component, 3.0)
        assert (np.diff(lengths) <= 0).all()
        np.testing.assert_allclose(directions @ directions.T, np.eye(5), atol=1e-12)
        rebuilt = directions.T @ np.diag((3.0 / lengths) ** 2) @ directions
        np.testing.assert_allclose(rebuilt, component.T @ component, atol=1e-10)


def test_an_axis_without_a_bound_is_infinite():
    directions, lengths = ellipsoid_axes(np.diag([0.0, 2.0]), 1.0)
    assert lengths.tolist() == [np.inf, 0.5]
    np.testing.assert_array_equal(abs(directions), np.eye(2))


@pytest.mark.parametrize("n_rows", [0, 1, 10, 999])
@pytest.mark.parametrize("chunk_bytes", [1, 5000, 2**26])
def test_scoring_chunks_cover_every_row_once(monkeypatch, n_rows, chunk_bytes):
    monkeypatch.setattr(devices, "CHUNK_BYTES", chunk_bytes)
    chunks = scoring_chunks(n_rows, 7, 3)
    covered = [i for chunk in chunks for i in range(n_rows)[chunk]]
    assert covered == list(range(n_rows))
    largest = max(1, chunk_bytes // (8 * (3 * 7 + 2 * 3)))
    assert all(chunk.stop - chunk.start <= largest for chunk in chunks)
