"""Ellipsoids from class covariances, and what the losses make of them, against NumPy and brute force."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from skellipsoid._engine.class_covariance import Shrinkage
from skellipsoid._engine.covariance import OWN_SHARES, SHRINKAGES, fit_covariances
from skellipsoid._engine.ellipsoids import ROUNDING, judging_rows, learn_boundaries
from skellipsoid._engine.geometry import by_class, class_balls, transformed_norms
from skellipsoid._engine.held_out import best_size
from skellipsoid._engine.losses import contraction_loss, expansion_loss
from skellipsoid._engine.refinement import AxisLearner, learn_axes
from skellipsoid._engine.samples import Samples
from skellipsoid._engine.settings import BoundarySettings

SETTINGS = BoundarySettings(
    init="covariance",
    alpha=0.6,
    beta=0.5,
    n_mix=3,
    learning_rate=0.03,
    batch_size=8,
    max_iter=4,
    early_stopping=True,
    recalibrate=True,
    validation_fraction=0.25,
    n_iter_no_change=3,
    tol=1e-3,
    verbose=0,
)


def known_rows(n_classes=4, n_rows=12, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(n_classes), n_rows))
    stretch = np.exp(rng.normal(scale=0.5, size=(n_classes, n_features)))
    rows = rng.normal(scale=1.5, size=(n_classes, n_features))[classes] + stretch[classes] * rng.normal(
        size=(len(classes), n_features)
    )
    return torch.from_numpy(rows), torch.from_numpy(classes)


def fit(known, classes, rho=None, n_open=0, own=0.5):
    samples = Samples.of(known, classes)
    real_open = torch.from_numpy(np.random.default_rng(9).normal(size=(n_open, known.shape[1]))).to(known)
    shrinkage = None if rho is None else Shrinkage(rho, own)
    return fit_covariances(samples, class_balls(samples), real_open, shrinkage)


def spreads(known, classes, share=0.5):
    """Own spread of each class, in a mean with that of all; classes of one row have none."""
    rows = [known[classes == k].numpy() for k in range(int(classes.max()) + 1)]
    own = np.array([part.var(axis=0, ddof=1).mean() if len(part) > 1 else np.nan for part in rows])
    return np.where(np.isnan(own), np.nanmean(own), share * own + (1 - share) * np.nanmean(own))


def without_each_row(known, classes, k, shrinkage, own):
    """Refit: each row of class k, the mean of the class's other rows, and the matrix when that row is away."""
    n_features, whole = known.shape[1], spreads(known, classes, 1.0)[k]
    for i in np.flatnonzero(classes == k):
        kept = np.delete(np.arange(len(known)), i)
        others = known[kept][classes[kept] == k].numpy()
        covariance = np.zeros((n_features, n_features)) if len(others) == 1 else np.cov(others.T)
        # Where the others are nearly one point, the spread stays an m-th of what it was.
        left, common = (spreads(known[kept], classes[kept], share)[k] for share in (1.0, 0.0))
        n_classes = sum(np.bincount(classes) > 1)
        common += max(0, whole / (len(others) + 1) - left) / n_classes if len(others) > 1 else 0
        left = max(left, whole / (len(others) + 1))
        spread = common if len(others) == 1 else own * left + (1 - own) * common
        yield (
            known[i].numpy(),
            others.mean(axis=0),
            (1 - shrinkage) * covariance + shrinkage * spread * np.eye(n_features),
        )


@pytest.mark.parametrize("n_features", [3, 30])  # fewer and more than rows
@pytest.mark.parametrize(("shrinkage", "own"), [(0.01, 0.5), (0.1, 0.0), (0.7, 1.0), (1.0, 0.2)])
def test_the_matrices_are_inverse_shrunk_covariances(n_features, shrinkage, own):
    known, classes = known_rows(n_features=n_features)
    found = fit(known, classes, shrinkage, own=own)
    new = torch.from_numpy(np.random.default_rng(5).normal(size=(20, n_features)))
    norms = transformed_norms(new, found.centroids, found.factors())
    for k, spread in enumerate(spreads(known, classes, own)):
        rows = known[classes == k].numpy()
        matrix = (1 - shrinkage) * np.cov(rows.T) + shrinkage * spread * np.eye(n_features)
        offsets = new.numpy() - rows.mean(axis=0)
        squared = np.einsum("ij,jk,ik->i", offsets, np.linalg.inv(matrix), offsets)
        np.testing.assert_allclose(norms[:, k], np.sqrt(squared) * found.radius / found.unit, rtol=1e-8)


@pytest.mark.parametrize("n_features", [3, 300])
@pytest.mark.parametrize("n_rows", [12, 3, [1, 2, 3, 12]])  # a single row is a point, and says nothing
@pytest.mark.parametrize(("shrinkage", "own"), [(0.01, 1.0), (0.1, 0.5), (0.7, 0.0), (1.0, 0.5)])
def test_own_rows_are_judged_by_the_class_without_them(n_features, n_rows, shrinkage, own):
    known, classes = known_rows(n_features=n_features, n_rows=n_rows)
    found = fit(known, classes, shrinkage, own=own)
    shaped = np.flatnonzero(np.bincount(classes) > 1)
    literal = np.full(len(known), np.nan)
    for k in shaped:
        refitted = without_each_row(known, classes, k, shrinkage, own)
        distances = [np.sqrt((row - mean) @ np.linalg.inv(matrix) @ (row - mean)) for row, mean, matrix in refitted]
        literal[classes == k] = distances
        np.testing.assert_allclose(found.left_out[k], distances, rtol=1e-6)
    means = [literal[classes == k].mean() for k in shaped]
    assert found.unit == pytest.approx(np.exp(np.mean(np.log(means))))
    reach = found.reach()
    counted = np.isin(classes, shaped)
    np.testing.assert_array_equal(reach.classes, classes[counted])
    own = reach.assigned == reach.classes
    np.testing.assert_allclose(reach.known[own], literal[counted][own] / found.unit, rtol=1e-6)


@pytest.mark.parametrize("spread", [1.0, 1e-4])
def test_single_precision_is_enough(spread):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 10)
    rows = torch.from_numpy(10 * rng.normal(size=(3, 40))[classes] + spread * rng.normal(size=(30, 40))).float()
    found = fit(rows, torch.from_numpy(classes), 0.01, own=1.0)
    for k in range(3):
        refitted = without_each_row(rows.double(), torch.from_numpy(classes), k, 0.01, 1.0)
        distances = [np.sqrt((row - mean) @ np.linalg.inv(matrix) @ (row - mean)) for row, mean, matrix in refitted]
        np.testing.assert_allclose(found.left_out[k], distances, rtol=1e-4)


def test_what_is_learned_changes_left_out_distances_as_it_changes_the_others():
    known, classes = known_rows()
    found = fit(known, classes, 0.3)
    part, left_out = found.parts[1], found.left_out[1]
    same, wider = (torch.full((len(part.eigenvalues) + 1,), gain, dtype=torch.float64) for gain in (0.0, 1.0))
    np.testing.assert_allclose(part.gained(left_out, found.shrinkage, same), left_out)
    np.testing.assert_allclose(part.gained(left_out, found.shrinkage, wider), left_out * np.exp(0.5))


def test_open_rows_are_judged_by_the_nearest_other_class():
    known, classes = known_rows()
    found = fit(known, classes, 0.5, n_open=7)
    norms = (transformed_norms(known, found.centroids, found.factors()) / found.radius).numpy()
    distances = torch.cdist(known, found.centroids).numpy()
    distances[np.arange(len(known)), classes] = np.inf
    other = distances.argmin(axis=1)
    reach = found.reach(between=known[:5] / 2)
    others, mixed = reach.open
    assert [len(others.reach), len(mixed.reach)] == [len(known) + 7, 5 + 7]
    np.testing.assert_array_equal(others.assigned[: len(known)], other)
    np.testing.assert_allclose(others.reach[: len(known)], norms[np.arange(len(known)), other], rtol=1e-8)
    nearest = torch.cdist(known[:5] / 2, found.centroids).argmin(dim=1)
    np.testing.assert_array_equal(mixed.assigned[:5], nearest)
    mixed_norms = transformed_norms(known[:5] / 2, found.centroids, found.factors()) / found.radius
    np.testing.assert_allclose(mixed.reach[:5], mixed_norms[np.arange(5), nearest], rtol=1e-8)
    np.testing.assert_array_equal(mixed.reach[5:], others.reach[len(known) :])
    wrong = reach.assigned != reach.classes
    np.testing.assert_array_equal(reach.assigned[wrong], other[wrong])


def test_the_shrinkage_is_the_mean_of_those_that_tell_left_out_rows_apart_best():
    known, classes = known_rows(n_rows=30)
    log_odds, share, total = 0.0, 0.0, 0.0
    scores = {
        (rho, own): best_size(fit(known, classes, rho, own=own).reach())[1] for rho in SHRINKAGES for own in OWN_SHARES
    }
    best = max(scores.values())
    for (rho, own), score in scores.items():
        weight = np.exp((score - best) / np.sqrt(best * (1 - best) / len(known)))
        total, log_odds, share = total + weight, log_odds + weight * np.log(rho / (1 - rho)), share + weight * own
    assert sorted(scores.values())[-1] > sorted(scores.values())[-2]  # no tie
    found = fit(known, classes).shrinkage
    assert found.rho == pytest.approx(1 / (1 + np.exp(-log_odds / total)))
    assert found.own == pytest.approx(share / total)


@pytest.mark.parametrize(("n_features", "rho", "own"), [(3, 0.3, 0.5), (30, 0.7, 1.0), (5, 0.01, 0.0)])
def test_the_likelihood_is_that_of_rows_by_the_class_of_the_others(n_features, rho, own):
    known, classes = known_rows(n_features=n_features)
    found = fit(known, classes, rho, own=own)
    for k, rows in enumerate(by_class(classes, 4)):
        refitted = without_each_row(known, classes, k, rho, own)
        expected = sum(multivariate_normal.logpdf(row, mean, matrix) for row, mean, matrix in refitted)
        constant = -len(rows) * n_features / 2 * np.log(2 * np.pi)
        assert found.parts[k].log_likelihood(found.shrinkage) == pytest.approx(expected - constant)


def test_equally_good_shrinkages_leave_the_likeliest():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(2000, 2)) * [10, 1])
    for classes in (np.zeros(2000, dtype=np.int64), np.arange(2000) % 2):  # one class, and two that lie far apart
        apart = rows + 1e3 * torch.from_numpy(classes).unsqueeze(1)
        assert fit(apart, torch.from_numpy(classes)).shrinkage.rho == pytest.approx(SHRINKAGES[0])


def test_a_point_judges_by_the_ball_that_it_has():
    known, classes = known_rows(n_classes=3)
    known[classes == 2] = known[classes == 2][0]
    found = fit(known, classes, 0.3)
    near = known[classes == 2][:1] + 0.01 * torch.from_numpy(np.random.default_rng(0).normal(size=(5, 5)))
    mixed = found.reach(between=near).open[1]
    assert mixed.assigned.tolist() == [2] * 5
    norms = transformed_norms(near, found.centroids, found.factors())[:, 2] / found.radius
    np.testing.assert_allclose(mixed.reach, norms, rtol=1e-6)


def test_many_rows_shrink_less_than_few():
    few, many = (fit(*known_rows(n_rows=n_rows, n_features=8, seed=2)).shrinkage for n_rows in (4, 300))
    assert many.rho < few.rho


def test_classes_of_different_spread_keep_more_of_their_own():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(6), 20)
    unlike = 6 * np.eye(60)[classes] + np.array([0.1, 1.5])[classes % 2, np.newaxis] * rng.normal(size=(120, 60))
    assert fit(torch.from_numpy(unlike), torch.from_numpy(classes)).shrinkage.own > 0.6


def learner(known, classes, beta=0.5, max_rows=None):
    found = fit(known, classes, 0.5)
    settings = BoundarySettings(**{**vars(SETTINGS), "beta": beta})
    mixed = torch.ones(len(found.parts), dtype=torch.bool)
    return found, AxisLearner(found, known[:0], mixed, settings, np.random.default_rng(0))


def test_a_step_follows_the_gradient_of_the_losses():
    known, classes = known_rows(n_features=8, n_rows=6)
    found, axes = learner(known, classes)
    start = axes.log_weights.clone().requires_grad_()
    gains = torch.cat([start, (start * axes._is_axis()).sum(1, keepdim=True) / axes.n_axes], dim=1).exp()
    radius = torch.tensor(found.radius)
    own, opened = (
        torch.einsum("knj,kj->kn", terms, gains).clamp_min(1e-12).sqrt() for terms in (axes.own, axes.negatives)
    )
    loss = (axes.own_weights * expansion_loss(own, radius)).sum()
    loss = (loss + (axes.negative_weights * contraction_loss(opened, radius, 0.5)).sum()) / len(known)
    loss.backward()
    assert axes.step() == pytest.approx(loss.item(), rel=1e-5)
    np.testing.assert_allclose(axes.log_weights.grad, start.grad, rtol=1e-4, atol=1e-6)
    # Adam's first step has the size of the rate, against the gradient.
    moved = start.grad.abs() > 1e-4
    np.testing.assert_allclose(axes.log_weights[moved], -0.03 * start.grad.sign()[moved], rtol=1e-2)


def test_the_start_is_the_covariance_ellipsoid():
    known, classes = known_rows()
    found, axes = learner(known, classes)
    untouched, started = found.factors(), found.factors(axes.gains())
    assert torch.equal(untouched.weights, started.weights)
    axes.step()
    assert not torch.equal(untouched.weights, found.factors(axes.gains()).weights)


def test_sampled_negatives_cost_what_all_do(monkeypatch):
    known, classes = known_rows(n_rows=400, n_classes=3)
    _, everything = learner(known, classes)
    monkeypatch.setattr("skellipsoid._engine.refinement.MOST_ROWS", 5000)
    _, all_rows = learner(known, classes)
    assert all_rows.negatives.shape[1] > 4 * everything.negatives.shape[1]
    assert everything.step() == pytest.approx(all_rows.step(), rel=0.1)


def test_learning_goes_no_further_than_held_out_rows_support(monkeypatch):
    known, classes = known_rows(n_rows=40, n_classes=6)
    found = fit(known, classes)
    gains, history = learn_axes(found, known[:0], SETTINGS, np.random.default_rng(0))
    assert len(history.scores) == history.n_iter <= 4
    monkeypatch.setattr("skellipsoid._engine.refinement.SUPPORTED_GAIN", 1.0)
    gains, _ = learn_axes(found, known[:0], SETTINGS, np.random.default_rng(0))
    assert gains is None
    monkeypatch.setattr("skellipsoid._engine.refinement.SUPPORTED_GAIN", -1.0)
    gains, _ = learn_axes(found, known[:0], SETTINGS, np.random.default_rng(0))
    assert all(gain.any() for gain in gains)
    unasked = BoundarySettings(**{**vars(SETTINGS), "early_stopping": False})
    gains, history = learn_axes(found, known[:0], unasked, np.random.default_rng(0))
    assert all(gain.any() for gain in gains)
    assert history.scores == []


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
def test_all_numbers_of_classes_learn(n_classes):
    known, classes = known_rows(n_classes=n_classes)
    for n_open in (0, 9):
        real_open = torch.from_numpy(np.random.default_rng(9).normal(size=(n_open, 5)))
        learned = learn_boundaries(Samples.of(known, classes), real_open, SETTINGS, 0)
        assert torch.isfinite(learned.radii).all()
        assert len(learned.held_out_margins) == len(known)


def test_the_radius_is_the_one_of_the_size_rule():
    known, classes = known_rows(n_rows=30)
    samples = Samples.of(known, classes)
    learned = learn_boundaries(samples, known[:0], SETTINGS, 0)
    kept = learn_boundaries(samples, known[:0], BoundarySettings(**{**vars(SETTINGS), "recalibrate": False}), 0)
    found = fit(known, classes)
    np.testing.assert_allclose(kept.radii, found.radius)
    ratio = float(learned.radii[0] / kept.radii[0])
    np.testing.assert_allclose(1 - learned.held_out_margins, (1 - kept.held_out_margins) / ratio, rtol=1e-6)
    if torch.equal(learned.shapes.weights, found.factors().weights):  # nothing was learned
        between = judging_rows(samples, found.centroids, learned.points, SETTINGS, seed=0)
        reach = found.reach(between=between)
        assert ratio == pytest.approx(best_size(reach)[0] * (1 + ROUNDING))
