"""The rule that judges boundaries by rows they were made without: expected F1, and the size."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from skellipsoid._engine.geometry import Factors, assigned_norms
from skellipsoid._engine.held_out import (
    HeldOutRows,
    Judged,
    Open,
    Reach,
    best_size,
    boundary_f1,
    expected_f1,
    loss_size,
)
from skellipsoid._engine.samples import Samples


def unweighted(known, classes, assigned, opened, n_classes):
    """Rows that all weigh 1 and are independent; ``opened`` are pairs of reaches and classes."""
    kinds = [Open(reach, judging, np.ones(len(reach))) for reach, judging in opened]
    return Reach(known, classes, assigned, np.ones(len(known)), len(known), kinds, n_classes)


def some_reach(n_known=40, n_open=(15,), n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=n_known)
    return unweighted(
        known=rng.gamma(4, 0.25, n_known),
        classes=classes,
        assigned=np.where(rng.random(n_known) < 0.8, classes, rng.integers(n_classes, size=n_known)),
        opened=[(rng.gamma(9, 0.2, size), rng.integers(n_classes, size=size)) for size in n_open],
        n_classes=n_classes,
    )


def weighted(reach):
    """Give rows weights, also where they are open; they are not independent of each other."""
    rng = np.random.default_rng(8)
    opened = [kind._replace(weights=rng.gamma(2, 3, len(kind.reach))) for kind in reach.open]
    return replace(reach, weights=rng.gamma(2, 3, len(reach.known)), n_independent=11.5, open=opened)


def brute_force_f1(reach, size):
    """Macro F1 of scikit-learn on the rows, the open ones weighted; the mean over kinds and shares of open rows."""
    known = np.where(reach.known <= size, reach.assigned, reach.n_classes)
    if not reach.open:
        return f1_score(
            reach.classes,
            known,
            labels=np.unique(reach.classes),
            average="macro",
            sample_weight=reach.weights,
            zero_division=0,
        )
    values = []
    for kind in reach.open:
        truth = np.append(reach.classes, np.full(len(kind.reach), reach.n_classes))
        answers = np.append(known, np.where(kind.reach <= size, kind.assigned, reach.n_classes))
        for per_known in (1 / 3, 1, 3):  # a quarter, a half and three quarters of all rows are open
            weight = per_known * reach.weights.sum() / kind.weights.sum()
            weights = np.append(reach.weights, weight * kind.weights)
            found = f1_score(
                truth, answers, labels=np.unique(truth), average="macro", sample_weight=weights, zero_division=0
            )
            values.append(found)
    return np.mean(values)


@pytest.mark.parametrize("n_open", [(), (1,), (15,), (200, 3)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weigh", [False, True])
def test_expected_f1_is_that_of_scikit_learn(n_open, seed, weigh):
    reach = some_reach(n_open=n_open, seed=seed)
    reach = weighted(reach) if weigh else reach
    sizes = np.unique(np.concatenate([[0.0, 0.5, 1.0, 9.0], reach.known[:5], *(kind.reach[:3] for kind in reach.open)]))
    expected = [brute_force_f1(reach, size) for size in sizes]
    np.testing.assert_allclose(expected_f1(reach, sizes), expected, rtol=1e-12, atol=1e-12)


def test_a_class_without_held_out_rows_does_not_count():
    reach = some_reach()
    more = replace(reach, n_classes=6)
    sizes = np.linspace(0.1, 3, 9)
    np.testing.assert_allclose(expected_f1(more, sizes), expected_f1(reach, sizes))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weigh", [False, True])
def test_best_size_is_the_mean_of_the_good_ones(seed, weigh):
    reach = some_reach(seed=seed)
    n_independent = 11.5 if weigh else len(reach.known)
    reach = weighted(reach) if weigh else reach
    candidates = np.sort(reach.known)
    values = np.array([brute_force_f1(reach, size) for size in candidates])
    error = 0.3 / np.sqrt(n_independent)
    weights = np.exp((values - values.max()) / error)
    size, best = best_size(reach)
    assert best == pytest.approx(values.max())
    assert size == pytest.approx(np.exp(np.sum(weights * np.log(candidates)) / weights.sum()))
    assert expected_f1(reach, np.array([size]))[0] > best - 3 * error


def test_between_well_separated_rows_the_size_is_in_the_middle_of_what_separates_them():
    known = np.linspace(0.5, 1.0, 50)
    classes = np.arange(50) % 2
    reach = unweighted(known, classes, classes, [(np.linspace(4, 9, 30), np.arange(30) % 2)], 2)
    assert 0.9 < best_size(reach)[0] <= 1.0


def test_boundaries_that_no_row_judges_are_worth_nothing():
    none = np.empty(0, dtype=np.int64)
    for is_sized in (False, True):
        nobody = unweighted(np.empty(0), none, none, [(np.ones(1), np.zeros(1, dtype=np.int64))], 2)
        assert boundary_f1(nobody, is_sized=is_sized) == 0


def test_what_lies_between_far_classes_keeps_the_size_from_covering_every_stray_row():
    known, classes = np.concatenate([np.linspace(0.5, 1, 180), np.linspace(1.2, 3, 20)]), np.arange(200) % 2
    far, between = ((np.linspace(*ends, 200), np.arange(200) % 2) for ends in ((6, 9), (1.1, 2.5)))
    assert best_size(unweighted(known, classes, classes, [far], 2))[0] > 2
    assert best_size(unweighted(known, classes, classes, [far, between], 2))[0] < 1.2


def test_best_size_without_open_rows_covers_all_held_out_rows():
    zeros = np.zeros(3, dtype=np.int64)
    reach = unweighted(np.array([0.2, 1.7, 0.9]), zeros, zeros, [], 1)
    assert best_size(reach) == (1.7, 1.0)


def test_best_size_without_a_reach_is_one():
    none = np.empty(0, dtype=np.int64)
    zeros = np.zeros(2, dtype=np.int64)
    assert best_size(unweighted(np.zeros(2), zeros, zeros, [(np.array([1.0]), zeros[:1])], 1)) == (1.0, 0.0)
    assert best_size(unweighted(np.empty(0), none, none, [], 2)) == (1.0, 0.0)


def ellipsoids(n_classes=4, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    components = np.eye(n_features) + 0.3 * rng.normal(size=(n_classes, n_features, n_features))
    return torch.from_numpy(rng.normal(size=(n_classes, n_features))), torch.from_numpy(components)


def literal(row, k, centroids, components):
    return float((components[k] @ (row - centroids[k])).norm() / 2)


def test_held_out_rows_are_judged_as_known_and_as_open():
    rng = np.random.default_rng(1)
    known, classes = torch.from_numpy(rng.normal(size=(40, 3))), torch.from_numpy(rng.integers(4, size=40))
    real_open = torch.from_numpy(rng.normal(size=(9, 3)))
    centroids, components = ellipsoids()
    points = torch.tensor([False, False, True, False])
    judge = HeldOutRows(Samples.of(known, classes, 4), real_open, centroids, points)
    between = torch.from_numpy(rng.normal(size=(5, 3)))
    shapes, radii = Factors.from_components(components), torch.full((4,), 2.0, dtype=torch.float64)
    reach = judge.reach(shapes, radii, between)

    def judged(rows, without):
        distances = [(centroids - row).norm(dim=1).tolist() for row in rows]
        nearest = [
            min((k for k in range(4) if k != label), key=row.__getitem__)
            for row, label in zip(distances, without, strict=True)
        ]
        return nearest, [literal(row, k, centroids, components) for row, k in zip(rows, nearest, strict=True)]

    shaped = ~points[classes]
    rows, labels = known[shaped], classes[shaped].tolist()
    as_known, as_open, real = judged(rows, [-1] * len(rows)), judged(rows, labels), judged(real_open, [-1] * 9)
    assert len(judge) == len(rows)
    np.testing.assert_allclose(reach.known, as_known[1])
    np.testing.assert_array_equal(reach.assigned, as_known[0])
    np.testing.assert_allclose(reach.open[0].reach, as_open[1] + real[1])
    np.testing.assert_array_equal(reach.open[0].assigned, as_open[0] + real[0])
    mixed = judged(between, [-1] * 5)
    np.testing.assert_allclose(reach.open[1].reach, mixed[1] + real[1])
    np.testing.assert_array_equal(reach.open[1].assigned, mixed[0] + real[0])


def test_held_out_rows_count_by_their_weights_and_their_groups():
    rng = np.random.default_rng(1)
    classes, weights, groups = rng.integers(4, size=40), rng.gamma(2, size=40), rng.integers(9, size=40)
    rows, real_open = torch.from_numpy(rng.normal(size=(40, 3))), torch.from_numpy(rng.normal(size=(6, 3)))
    samples = Samples.of(rows, torch.from_numpy(classes), 4, weights, None, groups)
    centroids, components = ellipsoids()
    shapes, radii = Factors.from_components(components), torch.ones(4, dtype=torch.float64)
    reach = HeldOutRows(samples, real_open, centroids, torch.zeros(4, dtype=torch.bool)).reach(shapes, radii)
    np.testing.assert_array_equal(reach.weights, weights)
    np.testing.assert_array_equal(reach.open[0].weights, [*weights, 1, 1, 1, 1, 1, 1])
    totals = np.bincount(groups, weights)
    assert reach.n_independent == pytest.approx(totals.sum() ** 2 / np.square(totals).sum())


def paper_losses(reach, size, beta, unit):
    """eq. 13 of the known rows and eq. 15 of the last kind of open ones, each a weighted mean."""
    between = reach.open[-1]
    outside = np.maximum(reach.known - size, 0) / unit
    depth = (size - between.reach) / unit
    contraction = np.where(depth > 0, depth + beta, beta * np.exp(np.minimum(depth, 0)))
    return np.average(outside, weights=reach.weights) + np.average(contraction, weights=between.weights)


def test_the_size_of_the_losses_is_smallest_and_falls_with_beta():
    rng = np.random.default_rng(0)
    known, opened = 3 * rng.gamma(4, 0.25, size=80), 3 * rng.gamma(4, 0.4, size=60)
    zeros = np.zeros(80, dtype=np.int64)
    open_rows = Open(opened, zeros[:60], rng.gamma(2, size=60))
    reach = Reach(known, zeros, zeros, rng.gamma(2, size=80), 80.0, [open_rows], 1)
    unit = np.sqrt(np.cov(known, aweights=reach.weights, ddof=0))
    betas = [0, 0.1, 0.5, 1, 5, 50]
    sizes = [loss_size(reach, beta) for beta in betas]
    for size, beta in zip(sizes, betas, strict=True):
        losses = [paper_losses(reach, candidate, beta, unit) for candidate in known]
        assert size == pytest.approx(known[np.argmin(losses)])
    assert (np.diff(sizes) <= 0).all()
    assert sizes[-1] < sizes[2] < sizes[0]
    alone = Reach(known, zeros, zeros, reach.weights, 80.0, [], 1)
    assert loss_size(alone, 0.5) == 1


def test_real_open_rows_stand_alone_where_nothing_stands_in_for_them():
    nothing, some = (Judged(torch.arange(n) * 1.0, torch.zeros(n, dtype=torch.int64), torch.ones(n)) for n in (0, 3))

    def sizes(stand_ins, real):
        return [len(kind.reach) for kind in Reach.of(some, some.assigned, np.arange(3), stand_ins, real, 1).open]

    assert sizes([nothing], nothing) == []
    assert sizes([nothing], some) == [3]
    assert sizes([some, nothing, some], some) == [6, 6]


def test_held_out_rows_of_one_class_are_never_open():
    centroids, components = ellipsoids(n_classes=1)
    rows, classes = torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.zeros(10)
    judge = HeldOutRows(Samples.of(rows, classes.long()), rows[:0], centroids, torch.tensor([False]))
    reach = judge.reach(Factors.from_components(components), torch.ones(1, dtype=torch.float64))
    assert not len(reach.open)
    np.testing.assert_allclose(
        reach.known, assigned_norms(rows, classes.long(), centroids, Factors.from_components(components))
    )
