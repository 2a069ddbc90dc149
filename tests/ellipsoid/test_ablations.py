"""The paper's ablations of the boundary learner: shapes, and the losses that make ellipsoids smaller."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from paper_helpers import SETTINGS as PAPER
from paper_helpers import open_rows, whole_loss

from skellipsoid._ellipsoid.paper.ellipsoids import start_ellipsoids, train_ellipsoids
from skellipsoid._ellipsoid.paper.pseudo_open import draw_others
from skellipsoid._ellipsoid.paper.training import BoundaryTrainer
from skellipsoid._samples.samples import Samples

SETTINGS = replace(PAPER, max_iter=5, n_mix=(3, 3))


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(4), 12))
    rows = (rng.normal(size=(48, 5)) + 1.5 * rng.normal(size=(4, 5))[classes]) / 3
    return Samples.of(torch.from_numpy(rows), torch.from_numpy(classes), None, rng.gamma(2, size=48))


def some_trainer(samples, noise=0.2, **changes):
    """Ellipsoids that are no spheres, unless there is no noise, and their trainer."""
    ellipsoids = start_ellipsoids(samples)
    random = np.random.default_rng(1).normal(size=ellipsoids.components.shape)
    ellipsoids.components += noise * torch.from_numpy(random)
    settings = replace(SETTINGS, **changes)
    return ellipsoids, BoundaryTrainer(ellipsoids, samples, samples.features[:0], settings, np.random.default_rng(0))


def literal_loss(ellipsoids, components, rows, classes, weights, others, *, times):
    """The appendix's losses, written out: row by row, with the sample of another class of each; the mean over rows."""
    total = torch.zeros((), dtype=torch.float64)
    for row, k, weight, other in zip(rows, classes.tolist(), weights, others, strict=True):
        centroid, radius = ellipsoids.centroids[k], ellipsoids.radii[k]
        norm = (components[k] @ (row - centroid)).square().sum().sqrt()
        total = total + weight * (torch.clamp(norm - radius, min=0) + times * torch.clamp(radius - norm, min=0))
        if other is not None:
            norm = (components[k] @ (other - centroid)).square().sum().sqrt()
            shrinking, expanding = torch.clamp(radius + 0.1 - norm, min=0), torch.clamp(norm - radius - 0.5, min=0)
            total = total + weight * 0.1 * (shrinking + expanding)
    return total / len(rows)


@pytest.mark.parametrize("loss", ["adb", "clab"])
def test_the_gradient_is_that_of_the_literal_loss(samples, loss):
    """The inside loss of ADB is multiplied by the number of classes, as in the released code."""
    ellipsoids, trainer = some_trainer(samples, negative_loss=loss)
    batch = np.array([4, 9, 21, 3, 17, 30, 41, 5, 11])
    rows, classes, weights = samples.features[batch], samples.classes[batch], trainer.weights[batch]
    found = whole_loss(trainer, batch)
    (own,) = torch.autograd.grad(found, trainer.entries)
    others = [None] * len(batch)
    if loss == "clab":
        others = rows[draw_others(classes.numpy(), np.random.default_rng(0), samples.weights[batch].numpy())]
    components = ellipsoids.components.detach().clone().requires_grad_()
    times = 4 if loss == "adb" else 1
    expected = literal_loss(ellipsoids, components, rows, classes, weights, others, times=times)
    (gradient,) = torch.autograd.grad(expected, components)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(own, gradient, rtol=1e-10, atol=1e-12)
    assert abs(gradient).max() > 0.01


@pytest.mark.parametrize("shape", ["full", "diagonal", "ball"])
def test_the_gradient_of_a_shape_is_that_of_its_own_entries(samples, shape):
    ellipsoids, trainer = some_trainer(samples, noise=0.0, shape=shape, negative_loss="adb")
    (found,) = torch.autograd.grad(whole_loss(trainer, np.arange(48)), trainer.entries)
    sizes = {"full": (4, 5, 5), "diagonal": (4, 5), "ball": (4, 1)}
    own = torch.ones(sizes[shape], dtype=torch.float64) if shape != "full" else torch.eye(5).repeat(4, 1, 1).double()
    own.requires_grad_()
    components = own if shape == "full" else torch.diag_embed(own.expand(4, 5))
    parts = samples.features, samples.classes, trainer.weights, [None] * 48
    (expected,) = torch.autograd.grad(literal_loss(ellipsoids, components, *parts, times=4), own)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_adb_gen_is_the_contraction_without_beta(samples):
    settings = (replace(SETTINGS, **changes) for changes in ({"negative_loss": "adb_gen"}, {"beta": 0.0}))
    validation = samples, samples.features[:0]
    gen, without = (train_ellipsoids(samples, open_rows(3), each, 0, validation) for each in settings)
    assert torch.equal(gen.components, without.components)
    assert gen.history.losses == without.history.losses


def test_others_are_drawn_by_their_weights():
    classes, weights = np.array([0, 1, 1, 2, 0]), np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    rng = np.random.default_rng(0)
    drawn = np.stack([draw_others(classes, rng, weights) for _ in range(20_000)])
    for row, own in enumerate(classes):
        shares = weights * (classes != own)
        np.testing.assert_allclose(np.bincount(drawn[:, row], minlength=5) / 20_000, shares / shares.sum(), atol=0.015)
