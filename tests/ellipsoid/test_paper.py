"""The paper's training against its formulas and the facts of the released code, written out as loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from operator_helpers import Operators
from paper_helpers import SETTINGS, known_rows, literal_loss, open_rows, some_ellipsoids, start, trainer_of, whole_loss
from sklearn.metrics import f1_score

from skellipsoid._ellipsoid.math.geometry import Factors
from skellipsoid._ellipsoid.paper import ellipsoids as paper
from skellipsoid._ellipsoid.paper.pseudo_open import draw_negatives
from skellipsoid._held_out.table import KNOWN, HeldOutTable, best_scale
from skellipsoid._samples.folds import validation_rows
from skellipsoid._samples.samples import Samples
from skellipsoid._torch.training_loop import shuffled_batches

# The loss: means over samples, sums over classes.


@pytest.mark.parametrize("rows", [slice(0, 30), slice(3, 11), slice(4, 5)], ids=["all", "eight", "one"])
@pytest.mark.parametrize("n_open", [0, 1, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_and_its_gradient_are_the_literal_ones(rows, n_open, weighted):
    known, classes = known_rows()
    weights = np.random.default_rng(0).gamma(2, size=30) if weighted else np.ones(30)
    ellipsoids, real_open = some_ellipsoids(known, classes, weights=weights), open_rows(n_open)
    trainer = trainer_of(ellipsoids, known, classes, real_open, weights=1e-3 * weights)
    loss = whole_loss(trainer, np.arange(30)[rows])
    gradient = torch.cat(torch.autograd.grad(loss, trainer.entries))
    negatives = negatives_of(known[rows], classes[rows], real_open, weights=1e-3 * weights[rows])
    components = ellipsoids.components.detach().clone().requires_grad_()
    relative = torch.from_numpy(weights / weights.mean())[rows]
    expected = literal_loss(components, ellipsoids, known[rows], classes[rows], negatives, relative)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    (wanted,) = torch.autograd.grad(expected, components)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-12)


# Pseudo-open samples.


def negatives_of(rows, classes, real_open, n_mix=SETTINGS.n_mix, n_wanted=None, weights=None, rng=None):
    """What a batch is contrasted with."""
    n_wanted, rng = n_wanted or len(rows), np.random.default_rng(0) if rng is None else rng
    settings = replace(SETTINGS, n_mix=n_mix)
    return draw_negatives(rows, np.asarray(classes), real_open, n_wanted, settings, rng, weights)


def draw(classes, n_mix=(2, 3), n_wanted=20_000, weights=None, real_open=None):
    """Negatives of rows that are unit vectors, so that a mixture shows its weights."""
    rows = torch.eye(len(classes), dtype=torch.float64)
    real_open = rows[:0] if real_open is None else real_open
    return negatives_of(rows, classes, real_open, n_mix, n_wanted, weights)


def test_the_number_of_labels_is_uniform_and_so_are_the_labels_and_the_rows_of_each():
    classes = np.repeat([0, 1, 2, 3], [1, 2, 5, 20])
    mixed = (draw(classes) > 0).numpy()
    assert len(mixed) == 20_000
    labels = np.stack([mixed[:, classes == k].sum(axis=1) for k in range(4)])
    assert labels.max() == 1  # distinct labels
    assert np.mean(labels.sum(axis=0) == 2) == pytest.approx(0.5, abs=0.015)
    assert set(labels.sum(axis=0)) <= {1, 2, 3}  # a weight may round to 0
    np.testing.assert_allclose(labels.mean(axis=1), 2.5 / 4, atol=0.02)  # a class of one row as often as one of twenty
    for k in range(4):
        shares = mixed[:, classes == k].sum(axis=0) / labels[k].sum()
        np.testing.assert_allclose(shares, 1 / (classes == k).sum(), atol=0.02)


def test_real_open_samples_take_the_place_of_as_many_mixtures():
    real_open = -torch.eye(20, dtype=torch.float64)
    for n_open, n_real in ((6, 6), (20, 15)):  # up to half of all
        found = draw(np.repeat([0, 1, 2, 3], 5), n_wanted=30, real_open=real_open[:n_open])
        assert (len(found), int((found.sum(1) < 0).sum())) == (30, n_real)


# Steps: Adam with L2 weight decay on every entry.


def literal_epochs(ellipsoids, known, classes, real_open, settings, seed):
    """Adam's formulas by hand on the literal loss, with the same random draws."""
    rng = np.random.default_rng(seed)
    components = ellipsoids.components.clone().requires_grad_()
    first, second, step, losses = torch.zeros_like(components), torch.zeros_like(components), 0, []
    for _ in range(settings.max_iter):
        of_epoch = []
        for rows in shuffled_batches(len(known), settings.batch_size, rng):
            batch, labels = known[rows], classes[rows]
            negatives = negatives_of(batch, labels, real_open, weights=np.ones(len(rows)), rng=rng)
            loss = literal_loss(components, ellipsoids, batch, labels, negatives)
            of_epoch.append(loss.item())
            (gradient,) = torch.autograd.grad(loss, components)
            gradient = gradient + settings.weight_decay * components.detach()
            step += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient.square()
            change = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
            components = (components.detach() - settings.learning_rate * change).requires_grad_()
        losses.append(np.mean(of_epoch))
    return components.detach(), losses


@pytest.mark.parametrize("n_open", [0, 2, 9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_training_is_the_literal_training(n_open, weight_decay):
    known, classes = known_rows()
    real_open = open_rows()[:n_open]
    ellipsoids = start(known, classes)
    settings = replace(SETTINGS, weight_decay=weight_decay)
    components, losses = literal_epochs(ellipsoids, known, classes, real_open, settings, seed=3)
    history = trainer_of(ellipsoids, known, classes, real_open, seed=3, weight_decay=weight_decay).run()
    np.testing.assert_allclose(history.losses, losses, rtol=1e-8)
    np.testing.assert_allclose(ellipsoids.components, components, rtol=1e-7, atol=1e-7)
    assert abs(components - torch.eye(5)).max() > 0.02


@pytest.mark.parametrize("negative_loss", ["contraction", "adb", "clab", "adb_gen"])
def test_a_step_reads_nothing_however_many_samples_there_are(negative_loss):
    """One class has no spread, and of one the matrix is fixed."""
    totals = []
    for n_rows in (40, 400):
        known, classes = known_rows(n_rows=n_rows)
        known, classes = torch.cat([known, known[:1]]), torch.cat([classes, torch.tensor([4])])
        samples = Samples.of(known, classes)
        ellipsoids = paper.start_ellipsoids(
            samples, paper.Fixed(torch.tensor([2]), 2 * torch.eye(5).double().unsqueeze(0))
        )
        trainer = trainer_of(ellipsoids, known, classes, open_rows(), negative_loss=negative_loss)
        batch = np.append(np.arange(12), n_rows)
        trainer.step(batch)  # makes the state of the optimiser
        with Operators() as operators:
            loss = trainer.step(batch)
        assert operators.reads.total() == 0
        assert loss > 0
        assert torch.equal(ellipsoids.components[4], torch.eye(5).double())
        assert torch.equal(ellipsoids.components[2], 2 * torch.eye(5).double())
        totals.append(operators.total)
    assert totals[0] == totals[1]


# The stop rule, and which matrices are kept.


def learn(settings, *, n_open=0):
    known, classes = known_rows(n_rows=80, spread=0.7)
    samples, opened = Samples.of(known, classes), open_rows(n_open)
    held = torch.from_numpy(paper.hold_out(samples, np.full(80, -1), settings.validation_fraction, 0))
    open_held = torch.from_numpy(paper.hold_out_open(np.full(n_open, -1), settings.validation_fraction, 0))
    validation = samples.where(held), opened[open_held]
    return known, classes, paper.train_ellipsoids(samples.where(~held), opened[~open_held], settings, 0, validation)


def test_the_score_is_the_macro_f1_of_the_known_classes_with_open_as_an_error():
    distances, assigned = np.array([0.5, 0.9, 1.0, 0.2, 0.4, 1.5]), np.array([0, 0, 0, 1, 0, 2])
    classes = np.array([0, 0, 0, 1, 1, 2])
    weights = np.array([1.0, 2, 1, 1, 1, 1])
    known = HeldOutTable(np.full(6, KNOWN), distances, assigned, classes, weights, np.arange(6), 4)
    answers = [0, 0, 9, 1, 0, 9]  # r = Δ is open
    expected = f1_score(classes, answers, labels=[0, 1, 2], average="macro", sample_weight=weights)
    assert paper.known_f1(known) == pytest.approx(expected)


@pytest.mark.parametrize("restore_best", [False, True])
def test_training_stops_without_a_better_score_and_keeps_the_last_or_the_best_epoch(restore_best):
    settings = replace(SETTINGS, learning_rate=0.1, n_iter_no_change=3, restore_best=restore_best)
    learned = learn(replace(settings, max_iter=60))[2]
    scores = np.array(learned.history.scores)
    best = scores.argmax() + 1  # of equal scores the first
    assert best > 1
    assert learned.history.n_iter == len(scores) == best + 3 < 60
    ended, other = (learn(replace(settings, max_iter=n))[2] for n in (best, best + 3))
    assert torch.equal(learned.components, (ended if restore_best else other).components)
    assert not torch.equal(ended.components, other.components) or restore_best


def test_a_sample_on_the_boundary_is_open():
    # Two rows of a class are both at its mean distance from the mean; the matrices stay identities.
    rows = torch.tensor([[3.0, 4], [-3, -4], [30, 4], [24, -4]])
    samples = Samples.of(rows, torch.tensor([0, 0, 1, 1]))
    settings = replace(SETTINGS, learning_rate=1e-30, max_iter=1)
    fitted = paper.as_fitted(paper.train_ellipsoids(samples, rows[:0], settings, 0, (samples, rows[:0])))
    boundaries = fitted.boundaries
    np.testing.assert_allclose(boundaries.shapes.radii, [5, 5], rtol=1e-6)
    identities = Factors.from_components(torch.eye(2).repeat(2, 1, 1))
    factors = replace(boundaries.shapes.factors, axes=identities.axes.numpy())
    boundaries = replace(boundaries, shapes=boundaries.shapes._replace(factors=factors))
    for dtype in (torch.float32, torch.float64):
        scorer = boundaries.prepared(torch.device("cpu"), dtype).scorer
        assert (scorer.assigned(rows.to(dtype))[1] < 0).all()
        inside = scorer.centres + (rows[::2].to(dtype) - scorer.centres) * (1 - 1e-6)
        assert (scorer.assigned(inside)[1] > 0).all()
    assert (fitted.held_out.known.scores < 0).all()
    assert list(fitted.scores) == [0.0]


# The radius scale, which is not part of the paper.


@pytest.mark.parametrize(("alpha", "least", "most"), [(0.05, 0.9, 1.0), (100.0, 0.5, 0.6)])
def test_samples_of_synthetic_classes_validate_the_scale(alpha, least, most):
    rng = np.random.default_rng(0)
    classes = torch.from_numpy(np.repeat(np.arange(4), 20))
    centroids = torch.eye(4, dtype=torch.float64)
    rows = centroids[classes] + 1e-3 * torch.from_numpy(rng.normal(size=(80, 4)))
    degenerate = torch.tensor([False, False, True, False])
    found = paper.validation_open(
        Samples.of(rows, classes), centroids, degenerate, replace(SETTINGS, alpha=alpha), seed=0
    )
    assert len(found) == 256
    assert found[:, 2].abs().max() < 0.01  # a degenerate class is not mixed
    assert least < found.max(dim=1).values.mean() < most


@pytest.mark.parametrize("n_open", [0, 9])
def test_recalibration_multiplies_all_radii_by_the_best_scale(n_open):
    settings = replace(SETTINGS, recalibrate=True)
    known, classes, learned = learn(settings, n_open=n_open)
    held = validation_rows(classes.numpy(), settings.validation_fraction, np.random.default_rng([0, 2]))
    started = start(known[~held], classes[~held])
    ratios = learned.radii / started.radii
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)
    samples = Samples.of(known[held], classes[held], 4)
    validator = paper.PaperValidator(samples, known[:0], learned.centroids, torch.zeros(4, dtype=torch.bool))
    synthetic = paper.validation_open(samples, learned.centroids, learned.degenerate, settings, seed=0)
    validation = validator.validate(Factors.from_components(learned.components), started.radii, synthetic)
    assert len(validation.open) == 2
    if not n_open:
        assert ratios[0].item() == pytest.approx(best_scale(validation)[0] * (1 + 1e-5))
    assert validation.known.distances.min() < ratios[0].item() < validation.known.distances.max() * (1 + 2e-5)


# Some matrices alone are trained.


@pytest.mark.parametrize("negative_loss", ["contraction", "adb", "clab", "adb_gen"])
@pytest.mark.parametrize("shape", ["full", "diagonal", "ball"])
def test_a_matrix_that_is_trained_alone_is_that_of_a_training_of_all(shape, negative_loss):
    samples, opened = Samples.of(*known_rows(n_rows=80, spread=0.7)), open_rows(7)
    settings = replace(SETTINGS, shape=shape, negative_loss=negative_loss)
    given = samples, opened, settings, 0, (samples, opened)  # which validate, too
    everything = paper.train_ellipsoids(*given)
    other = torch.tensor([3, 0, 1])
    matrices = torch.from_numpy(np.random.default_rng(3).normal(size=(3, 5, 5)))
    alone = paper.train_ellipsoids(*given, paper.Fixed(other, matrices))
    np.testing.assert_allclose(alone.components[2], everything.components[2], rtol=1e-12, atol=1e-14)
    assert not torch.equal(alone.components[2], torch.eye(5, dtype=torch.float64))
    assert torch.equal(alone.components[other], matrices)
