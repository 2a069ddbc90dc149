"""Padded axes and tiles of one class: squared norms against a loop over rows, memory, and what a GPU would run."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from skellipsoid._ellipsoid.math import tiles
from skellipsoid._ellipsoid.math.tiles import PaddedAxes, Tiles, of_like_size


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
    rows, classes = rng.normal(size=(n_rows, 7)), rng.integers(len(ranks), size=n_rows)
    if of_one_class:
        classes[:] = len(ranks) - 1
    own = [slice(*pair) for pair in pairwise(starts)]
    expected = [(axes[own[k]] @ row) ** 2 @ weights[own[k]] for row, k in zip(rows, classes, strict=True)]
    found = given.squared_norms(torch.from_numpy(rows), torch.from_numpy(classes))
    np.testing.assert_allclose(found, np.reshape(expected, (n_rows, 2)), rtol=1e-12)


@pytest.mark.parametrize("n_rows", [1, 30, 1000])
@pytest.mark.usefixtures("machine")
def test_each_tile_holds_rows_of_one_class_and_each_row_has_a_place(n_rows):
    classes = torch.from_numpy(np.random.default_rng(0).geometric(0.2, size=n_rows).clip(max=20) - 1)
    found = Tiles.of(classes, 20)
    assert torch.equal(found.scatter(found.gather(classes)), classes)
    assert len(found.places.unique()) == n_rows
    of_tile = torch.cat([torch.arange(found.n_first), found.classes])
    assert torch.equal(of_tile[found.places // found.size], classes)


@pytest.mark.parametrize("ranks", [[1500, *[15] * 150], [1500, *[15] * 20], [15] * 30, [*range(200)], [0, 0], [7, 0]])
def test_padding_at_most_doubles_the_memory(ranks):
    given, axes, *_ = padded(ranks, n_features=2)
    assert sum(bucket.axes.numel() for bucket in given.buckets) <= 2 * axes.size
    assert torch.equal(torch.cat(given.members).sort().values, torch.arange(len(ranks)))


def test_classes_of_like_rank_share_a_bucket():
    assert [own.tolist() for own in of_like_size(np.array([13, 1500, 14, 15]))] == [[1], [0, 2, 3]]
    assert [own.tolist() for own in of_like_size(np.array([30, 15, 20, 31]))] == [[0, 1, 2, 3]]


def test_equal_numbers_of_axes_are_not_copied():
    axes, weights = torch.ones(6, 4), torch.ones(6, 1)
    assert PaddedAxes.of(axes, weights, [0, 2, 4, 6]).buckets[0].axes.data_ptr() == axes.data_ptr()


def test_a_place_for_more_than_rows():
    """Rows may have further dimensions: several vectors each, as in a left-out set."""
    rng = np.random.default_rng(0)
    vectors, classes = torch.from_numpy(rng.normal(size=(50, 3, 4))), torch.from_numpy(rng.integers(5, size=50))
    matrices = torch.from_numpy(rng.normal(size=(5, 4, 2)))
    found = Tiles.of(classes, 5)
    result = found.scatter(found.product(found.gather(vectors), matrices))
    torch.testing.assert_close(result, vectors @ matrices[classes])
