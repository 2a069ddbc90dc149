"""Promise: radii of ADB and CLAB minimise the published losses, on cases that were worked out by hand."""

import numpy as np
import pytest
import torch

from skellipsoid_bench.literature._torch.radii import RadiusSettings, learn_radii, radius_loss

CLAB = RadiusSettings(0.05, 16, 300, expand=0.5, shrink=0.1, eta=0.1)
ADB = RadiusSettings(0.05, 16, 300)


def mean_loss(distances, negatives, radius, settings):
    distances = torch.tensor(distances, dtype=torch.float64)
    negatives = None if negatives is None else torch.full_like(distances, negatives)
    return float(radius_loss(distances, negatives, torch.tensor(radius, dtype=torch.float64), settings).mean())


def test_losses_of_three_distances():
    for radius, loss in ((1.0, 1.0), (2.0, 2 / 3), (2.5, 5 / 6)):
        assert mean_loss([1, 2, 3], None, radius, ADB) == pytest.approx(loss)
    assert mean_loss([1, 2, 3], 4.0, 2.0, CLAB) == pytest.approx(2 / 3 + 0.1 * 1.5)
    radii = np.linspace(1, 3, 201)
    losses = [mean_loss([1, 2, 3], 4.0, radius, CLAB) for radius in radii]
    assert radii[np.argmin(losses)] == pytest.approx(2.0)


def test_each_class_learns_from_its_rows_by_weight():
    distances = torch.tensor([0.1, 0.2, 0.3, 1.0, 2.0, 3.0], dtype=torch.float64)
    classes = torch.tensor([0, 0, 0, 1, 1, 1])
    weights = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 5.0], dtype=torch.float64)
    radii, history = learn_radii(lambda: (distances, None), classes, weights, 2, ADB, np.random.default_rng(0))
    np.testing.assert_allclose(radii, [0.2, 3.0], atol=0.02)
    assert history.n_iter == len(history.losses)
    assert history.losses[-1] < history.losses[0]
