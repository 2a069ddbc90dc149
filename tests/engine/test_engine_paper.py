"""The boundary learner against the paper's formulas, written out as loops over classes and samples."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from skellipsoid._engine.geometry import Factors
from skellipsoid._engine.held_out import HeldOutSamples, best_scale, expected_f1
from skellipsoid._engine.paper import (
    Ellipsoids,
    _BoundaryTrainer,
    _hold_out,
    start_ellipsoids,
    train_ellipsoids,
    validation_open,
)
from skellipsoid._engine.pseudo_open import draw_mixtures, draw_negatives
from skellipsoid._engine.samples import Samples
from skellipsoid._engine.settings import BoundarySettings
from skellipsoid._engine.training import held_out_rows, shuffled_batches

BETA = 0.4

SETTINGS = BoundarySettings(
    alpha=0.6,
    beta=BETA,
    n_mix=3,
    shape="full",
    negative_loss="contraction",
    learning_rate=1e-2,
    batch_size=8,
    max_iter=3,
    early_stopping=False,
    recalibrate=False,
    validation_fraction=0.25,
    n_iter_no_change=100,
    tol=0.0,
    verbose=0,
)


def known_rows(n_classes=4, n_rows=30, n_features=5, *, spread=2.0, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.append(np.arange(n_classes), rng.choice(n_classes, size=n_rows - n_classes)))
    rows = rng.normal(size=(n_rows, n_features)) + rng.normal(scale=spread, size=(n_classes, n_features))[classes]
    return torch.tensor(rows / math.sqrt(2 * n_features), dtype=dtype), torch.from_numpy(classes)


def open_rows(n_rows=9, n_features=5, *, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(5).normal(size=(n_rows, n_features)), dtype=dtype)


def start(known, classes):
    return start_ellipsoids(Samples.of(known, classes))


def some_ellipsoids(known, classes, *, seed=1):
    """Ellipsoids that are no spheres, with known rows and open rows on both sides of each boundary."""
    ellipsoids = start(known, classes)
    noise = np.random.default_rng(seed).normal(size=ellipsoids.components.shape)
    ellipsoids.components += 0.2 * torch.from_numpy(noise)
    return ellipsoids


def literal_loss(components, centroids, radii, batch, classes, negatives, weights=None):
    """eq. 16: for each class, eq. 13 over its own rows of the batch and eq. 15 over all negatives."""
    total = torch.zeros((), dtype=torch.float64)
    weights = torch.ones(len(batch)) if weights is None else weights
    for k, (component, centroid, radius) in enumerate(zip(components, centroids, radii, strict=True)):
        for row, label, weight in zip(batch, classes.tolist(), weights, strict=True):
            if label == k:
                norm = (component @ (row - centroid)).square().sum().sqrt()
                total = total + weight * torch.maximum(norm - radius, torch.zeros_like(norm))
        for row in negatives:
            norm = (component @ (row - centroid)).square().sum().sqrt()
            total = total + ((radius - norm) + BETA if norm < radius else BETA * torch.exp(radius - norm))
    return total


def literal_gradient(ellipsoids, batch, classes, negatives, weights=None):
    components = ellipsoids.components.detach().clone().requires_grad_()
    loss = literal_loss(components, ellipsoids.centroids, ellipsoids.radii, batch, classes, negatives, weights)
    (gradient,) = torch.autograd.grad(loss, components)
    return loss.item(), gradient


def trainer_of(ellipsoids, known, classes, real_open=None, *, seed=0, **changes):
    real_open = known[:0] if real_open is None else real_open
    settings = replace(SETTINGS, **changes)
    return _BoundaryTrainer(ellipsoids, Samples.of(known, classes), real_open, settings, np.random.default_rng(seed))


@pytest.mark.parametrize("rows", [slice(0, 30), slice(3, 11), slice(4, 5)], ids=["all", "eight", "one"])
def test_the_gradient_is_that_of_the_literal_loss(rows):
    known, classes = known_rows()
    negatives = torch.cat([open_rows(), known[:4] * 0.9])
    ellipsoids = some_ellipsoids(known, classes)
    trainer = trainer_of(ellipsoids, known, classes)
    expected_loss, expected = literal_gradient(ellipsoids, known[rows], classes[rows], negatives)
    loss = trainer._contract(negatives) + trainer._expand(known[rows], classes[rows], trainer.weights[rows])
    assert loss.item() == pytest.approx(expected_loss, rel=1e-12)
    np.testing.assert_allclose(trainer.gradient, expected, rtol=1e-10, atol=1e-12)
    assert abs(expected).max() > 0.1


@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_known_rows_count_by_their_weights(factor):
    known, classes = known_rows()
    negatives, rows = open_rows(), slice(3, 20)
    weights = torch.from_numpy(np.random.default_rng(0).gamma(2, size=30))
    ellipsoids = some_ellipsoids(known, classes)
    samples = Samples.of(known, classes, None, factor * weights.numpy())
    trainer = _BoundaryTrainer(ellipsoids, samples, known[:0], SETTINGS, np.random.default_rng(0))
    relative = weights / weights.mean()
    np.testing.assert_allclose(trainer.weights, relative)
    expected_loss, expected = literal_gradient(ellipsoids, known[rows], classes[rows], negatives, relative[rows])
    loss = trainer._contract(negatives) + trainer._expand(known[rows], classes[rows], trainer.weights[rows])
    assert loss.item() == pytest.approx(expected_loss, rel=1e-12)
    np.testing.assert_allclose(trainer.gradient, expected, rtol=1e-10, atol=1e-12)


def test_mixtures_are_drawn_from_rows_by_their_weights(monkeypatch):
    known, classes = known_rows()
    weights = np.random.default_rng(0).gamma(2, size=30)
    given = []
    monkeypatch.setattr(
        "skellipsoid._engine.paper.draw_negatives",
        lambda *arguments: (given.append(arguments), draw_negatives(*arguments))[1],
    )
    ellipsoids = some_ellipsoids(known, classes)
    trainer = _BoundaryTrainer(
        ellipsoids, Samples.of(known, classes, None, weights), known[:0], SETTINGS, np.random.default_rng(0)
    )
    rows = np.array([4, 9, 21, 3, 17])
    trainer._step(rows)
    assert torch.equal(given[0][0], known[rows])
    np.testing.assert_array_equal(given[0][-1], weights[rows])
    every = torch.eye(30)
    for known_weights in (None, np.where(np.arange(30) < 15, 1e-12, 1.0)):
        mixed = draw_negatives(
            every, classes.numpy(), every[:0], 300, SETTINGS, np.random.default_rng(0), known_weights
        )
        assert bool((mixed[:, :15] > 0).any()) == (known_weights is None)


def test_the_gradient_sees_every_branch_of_the_losses():
    """The rows of the test above lie inside and outside of boundaries, as known and as open ones."""
    known, classes = known_rows()
    ellipsoids = some_ellipsoids(known, classes)
    negatives = torch.cat([open_rows(), known[:4] * 0.9])
    inside = [
        bool((component @ (row - centroid)).norm() < radius)
        for component, centroid, radius in zip(
            ellipsoids.components, ellipsoids.centroids, ellipsoids.radii, strict=True
        )
        for row in negatives
    ]
    own = [
        bool((ellipsoids.components[k] @ (row - ellipsoids.centroids[k])).norm() < ellipsoids.radii[k])
        for row, k in zip(known, classes, strict=True)
    ]
    assert 0 < np.mean(inside) < 1
    assert 0 < np.mean(own) < 1


def test_without_negatives_only_the_expansion_is_left():
    known, classes = known_rows()
    ellipsoids = some_ellipsoids(known, classes)
    trainer = trainer_of(ellipsoids, known, classes)
    trainer.gradient.fill_(np.nan)  # whatever an earlier step left
    expected_loss, expected = literal_gradient(ellipsoids, known, classes, known[:0])
    loss = trainer._contract(known[:0]) + trainer._expand(known, classes, trainer.weights)
    assert loss.item() == pytest.approx(expected_loss, rel=1e-12)
    np.testing.assert_allclose(trainer.gradient, expected, rtol=1e-10, atol=1e-12)


def test_rows_on_a_centroid_have_no_direction():
    known, classes = known_rows()
    ellipsoids = some_ellipsoids(known, classes)
    ellipsoids.centroids[0] = 0  # A z - A c is then exactly 0
    trainer = trainer_of(ellipsoids, known, classes)
    centres = ellipsoids.centroids.clone()
    loss = trainer._contract(centres[:1]) + trainer._expand(centres, torch.arange(4), trainer.weights[:4])
    assert loss.isfinite()
    assert trainer.gradient.isfinite().all()
    np.testing.assert_allclose(trainer.gradient[0], 0, atol=1e-12)


def literal_epochs(ellipsoids, known, classes, real_open, settings, seed):
    """Train by autograd on the literal loss and torch's plain Adam, with the same random draws."""
    rng = np.random.default_rng(seed)
    components = ellipsoids.components.clone().requires_grad_()
    optimizer = torch.optim.Adam([components], lr=settings.learning_rate)
    losses = []
    for _ in range(settings.max_iter):
        total = 0.0
        for rows in shuffled_batches(len(known), settings.batch_size, rng):
            batch, labels = known[rows], classes[rows]
            n_real = min(len(real_open), len(rows) // 2)
            mixture = draw_mixtures(
                labels.numpy(), len(rows) - n_real, n_mix=settings.n_mix, alpha=settings.alpha, rng=rng
            )
            negatives = torch.cat([mixture.of(batch), real_open[rng.permutation(len(real_open))[:n_real]]])
            loss = literal_loss(components, ellipsoids.centroids, ellipsoids.radii, batch, labels, negatives)
            total += loss.item()
            optimizer.zero_grad()
            (loss / len(rows)).backward()  # the total loss is divided by the batch size
            optimizer.step()
        losses.append(total / len(known))
    return components.detach(), losses


@pytest.mark.parametrize("n_open", [0, 2, 9])
def test_training_is_the_literal_training(n_open):
    known, classes = known_rows()
    real_open = open_rows()[:n_open]
    ellipsoids = start(known, classes)
    components, losses = literal_epochs(ellipsoids, known, classes, real_open, SETTINGS, seed=3)
    history = trainer_of(ellipsoids, known, classes, real_open, seed=3).run()
    np.testing.assert_allclose(history.losses, losses, rtol=1e-9)
    np.testing.assert_allclose(ellipsoids.components, components, rtol=1e-8, atol=1e-8)
    assert abs(components - torch.eye(5)).max() > 0.02


def test_single_precision_follows_double_precision():
    known, classes = known_rows()
    single, double = (start(known.to(dtype), classes) for dtype in (torch.float32, torch.float64))
    trainer_of(single, known.float(), classes).run()
    trainer_of(double, known, classes).run()
    np.testing.assert_allclose(single.components, double.components, atol=1e-3)


def negatives_of(known, classes, real_open):
    rng = np.random.default_rng(0)
    return draw_negatives(known, classes.numpy(), real_open, len(known), SETTINGS, rng)


@pytest.mark.parametrize(
    ("n_batch", "n_open", "expected_real"), [(8, 0, 0), (8, 3, 3), (8, 9, 4), (7, 9, 3), (2, 9, 1)]
)
def test_negatives_are_as_many_as_the_batch(n_batch, n_open, expected_real):
    known, classes = known_rows(n_rows=n_batch, n_classes=2)
    real_open = 100 + open_rows()[:n_open]
    negatives = negatives_of(known, classes, real_open)
    assert len(negatives) == n_batch
    real = negatives[negatives[:, 0] > 50]
    assert len(real) == len(np.unique(real, axis=0)) == expected_real
    assert all((row == real_open).all(dim=1).any() for row in real)


@pytest.mark.parametrize(("n_open", "expected"), [(0, 0), (3, 3), (20, 8)])
def test_one_class_has_real_negatives_alone(n_open, expected):
    known, classes = known_rows(n_classes=1, n_rows=8)
    real_open = open_rows(n_open)
    negatives = negatives_of(known, classes, real_open)
    assert len(negatives) == expected
    assert all((row == real_open).all(dim=1).any() for row in negatives)


def test_one_class_without_open_rows_grows_until_it_covers_its_rows():
    known, classes = known_rows(n_classes=1)
    ellipsoids = start(known, classes)
    trainer_of(ellipsoids, known, classes, max_iter=200).run()
    norms = ((known - ellipsoids.centroids[0]) @ ellipsoids.components[0].T).norm(dim=1)
    assert (norms <= ellipsoids.radii[0] * (1 + 0.02)).all()


def test_points_take_the_median_radius_and_keep_a_ball():
    known, classes = known_rows(n_classes=5, n_rows=40)
    # A point, up to the rounding of its features.
    known[classes == 1] = known[classes == 1][:1] + 1e-8 * known[classes == 1]
    known = torch.cat([known, torch.full((1, 5), 3.0)])
    classes = torch.cat([classes, torch.tensor([5])])
    ellipsoids = start(known, classes)
    assert ellipsoids.degenerate.tolist() == [False, True, False, False, False, True]
    others = [(known[classes == k] - known[classes == k].mean(0)).norm(dim=1).mean().item() for k in (0, 2, 3, 4)]
    np.testing.assert_allclose(ellipsoids.radii[[0, 2, 3, 4]], others)
    np.testing.assert_allclose(ellipsoids.radii[[1, 5]], np.median(others))
    trainer_of(ellipsoids, known, classes).run()
    identity = torch.eye(5, dtype=torch.float64)
    for k in range(6):
        assert torch.equal(ellipsoids.components[k], identity) == (k in (1, 5))


def test_points_alone_reach_half_way_to_the_nearest_other():
    known = torch.tensor([[0.0, 0], [4, 0], [0, 3], [0, 3]], dtype=torch.float64)
    ellipsoids = start(known, torch.tensor([0, 1, 2, 2]))
    assert ellipsoids.radii.tolist() == [1.5] * 3
    for same in ([[1.0, 2.0]], [[1.0, 2.0]] * 3):
        rows = torch.tensor(same)
        assert start(rows, torch.arange(len(rows))).radii.tolist() == [1] * len(rows)


def split(known, classes, seed, fraction):
    held = held_out_rows(classes.numpy(), fraction, np.random.default_rng(seed))
    return (known[~held], classes[~held]), (known[held], classes[held])


def learn(settings, *, n_open=0, seed=0, n_classes=4):
    known, classes = known_rows(n_classes=n_classes, n_rows=80, spread=0.7)
    return known, classes, train_ellipsoids(Samples.of(known, classes), open_rows(n_open), settings, seed)


@pytest.mark.parametrize("option", ["early_stopping", "recalibrate"])
def test_rows_that_are_held_out_do_not_learn(option):
    known, classes = known_rows(n_rows=80)
    real_open = open_rows(100)
    settings = replace(SETTINGS, **{option: True})
    samples = Samples.of(known, classes)
    learning, held_out = _hold_out(samples, real_open, settings, np.random.default_rng(0))
    for rows, parts in ((known, (learning[0].rows, held_out[0].rows)), (real_open, (learning[1], held_out[1]))):
        assert sorted(torch.cat(parts).tolist()) == sorted(rows.tolist())
        assert len(parts[1]) == pytest.approx(0.25 * len(rows), abs=10)
    for part, _ in (learning, held_out):
        for row, label in zip(part.rows, part.classes, strict=True):
            assert classes[(known == row).all(dim=1)] == label
    assert _hold_out(samples, real_open, SETTINGS, np.random.default_rng(0))[1] is None


def test_without_validation_all_samples_are_trained_on():
    known, classes, learned = learn(SETTINGS)
    started = start(known, classes)
    np.testing.assert_array_equal(learned.centroids, started.centroids)
    np.testing.assert_array_equal(learned.radii, started.radii)
    assert learned.history.scores == []


@pytest.mark.parametrize("recalibrate", [False, True])
def test_the_matrices_of_the_best_epoch_are_kept(recalibrate):
    settings = replace(
        SETTINGS, early_stopping=True, recalibrate=recalibrate, max_iter=40, n_iter_no_change=8, learning_rate=0.03
    )
    known, classes, learned = learn(settings)
    _, (held, labels) = split(known, classes, 0, settings.validation_fraction)
    validator = HeldOutSamples(
        Samples.of(held, labels, 4), known[:0], learned.centroids, torch.zeros(4, dtype=torch.bool)
    )
    validation = validator.validate(Factors.from_components(learned.components), learned.radii)
    history = learned.history
    score = best_scale(validation)[1] if recalibrate else expected_f1(validation, np.ones(1))[0]
    assert score == pytest.approx(max(history.scores))
    assert history.scores[history.best_epoch] == max(history.scores) > history.scores[-1]
    assert len(history.scores) == history.n_iter < 40


@pytest.mark.parametrize(("alpha", "least", "most"), [(0.05, 0.9, 1.0), (100.0, 0.5, 0.6)])
def test_samples_of_synthetic_classes_validate_the_scale(alpha, least, most):
    rng = np.random.default_rng(0)
    classes = torch.from_numpy(np.repeat(np.arange(4), 20))
    centroids = torch.eye(4, dtype=torch.float64)
    rows = centroids[classes] + 1e-3 * torch.from_numpy(rng.normal(size=(80, 4)))
    degenerate = torch.tensor([False, False, True, False])
    found = validation_open(Samples.of(rows, classes), centroids, degenerate, replace(SETTINGS, alpha=alpha), seed=0)
    assert len(found) == 256
    assert found[:, 2].abs().max() < 0.01  # a degenerate class is not mixed
    assert least < found.max(dim=1).values.mean() < most


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("n_open", [0, 9])
def test_recalibration_multiplies_all_radii_by_the_best_scale(early_stopping, n_open):
    settings = replace(SETTINGS, early_stopping=early_stopping)
    known, classes, learned = learn(replace(settings, recalibrate=True), n_open=n_open)
    (rows, labels), (held, held_labels) = split(known, classes, 0, settings.validation_fraction)
    started = start(rows, labels)
    ratios = learned.radii / started.radii
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)
    samples = Samples.of(held, held_labels, 4)
    validator = HeldOutSamples(samples, known[:0], learned.centroids, torch.zeros(4, dtype=torch.bool))
    synthetic = validation_open(samples, learned.centroids, learned.degenerate, settings, seed=0)
    validation = validator.validate(Factors.from_components(learned.components), started.radii, synthetic)
    assert len(validation.open) == 2
    if not n_open:
        assert ratios[0].item() == pytest.approx(best_scale(validation)[0] * (1 + 1e-5))
    assert validation.known.distances.min() < ratios[0].item() < validation.known.distances.max() * (1 + 2e-5)


def test_the_same_seed_learns_the_same():
    settings = replace(SETTINGS, early_stopping=True, recalibrate=True)
    one, again, other = (learn(settings, n_open=5, seed=seed)[2] for seed in (0, 0, 1))
    assert torch.equal(one.components, again.components)
    assert torch.equal(one.radii, again.radii)
    assert one.history.losses == again.history.losses
    assert not torch.equal(one.components, other.components)


def test_degenerate_classes_alone_are_not_validated():
    rows = torch.tensor([[0.0, 0], [0, 0], [2, 0], [2, 0]])
    settings = replace(SETTINGS, early_stopping=True, recalibrate=True)
    learned = train_ellipsoids(Samples.of(rows, torch.tensor([0, 0, 1, 1])), rows[:0], settings, 0)
    assert isinstance(learned, Ellipsoids)
    assert learned.radii.tolist() == [1, 1]
    assert torch.equal(learned.components, torch.eye(2).repeat(2, 1, 1))
    assert learned.history.scores == []
    assert learned.history.n_iter == 3
