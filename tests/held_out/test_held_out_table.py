"""Validation of boundaries: the expected F1 of held-out samples, and the radius scale."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from skellipsoid._ellipsoid.math.closed_form import MOST_VALIDATION, _subset_for_shapes
from skellipsoid._ellipsoid.math.geometry import Factors
from skellipsoid._ellipsoid.math.table_maker import MOST_OF_SET
from skellipsoid._ellipsoid.paper.ellipsoids import PaperValidator
from skellipsoid._held_out.table import KNOWN, OF_OTHER_CLASS, SYNTHETIC, HeldOutTable, best_scale, f1_at_fixed_shares
from skellipsoid._samples.samples import Samples


def part(kind, distances, scoring, own, n_classes):
    n_samples = len(distances)
    ones, rows = np.ones(n_samples), np.arange(n_samples)
    return HeldOutTable(np.full(n_samples, kind), distances, scoring, own, ones, rows, n_classes)


def unweighted(known, classes, assigned, opened, n_classes):
    """Samples of weight 1 that are independent; ``opened`` are pairs of distances and classes."""
    kinds = zip((OF_OTHER_CLASS, SYNTHETIC), opened, strict=False)
    others = [part(kind, *scored, np.full(len(scored[0]), n_classes), n_classes) for kind, scored in kinds]
    return HeldOutTable.joined([part(KNOWN, known, assigned, classes, n_classes), *others])


def some_validation(n_known=40, n_open=(15,), n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=n_known)
    return unweighted(
        known=rng.gamma(4, 0.25, n_known),
        classes=classes,
        assigned=np.where(rng.random(n_known) < 0.8, classes, rng.integers(n_classes, size=n_known)),
        opened=[(rng.gamma(9, 0.2, size), rng.integers(n_classes, size=size)) for size in n_open],
        n_classes=n_classes,
    )


def weighted(validation):
    """Give samples weights, also the open ones; every third known sample depends on the same ones."""
    weights = np.random.default_rng(8).gamma(2, 3, len(validation))
    return replace(validation, weights=weights, sets=np.arange(len(validation)) // 3)


def f1_of(validation, scales):
    return f1_at_fixed_shares(validation, np.asarray(scales, dtype=float))


def chosen(*given):
    """The scale that is chosen on samples, and its F1."""
    return best_scale(given[0] if len(given) == 1 else unweighted(*given))


def macro_f1(truth, answers, weights):
    """Macro F1 of scikit-learn over the true classes."""
    options = {"labels": np.unique(truth), "average": "macro", "zero_division": 0}
    return f1_score(truth, answers, sample_weight=weights, **options)


def brute_force_f1(validation, scale):
    """Macro F1 of scikit-learn, the open samples weighted; the mean over their kinds and shares."""
    rows = validation.known
    known = np.where(rows.distances <= scale, rows.assigned, validation.n_classes)
    if not validation.open:
        return macro_f1(rows.classes, known, rows.weights)
    values = []
    for kind in validation.open:
        truth = np.append(rows.classes, np.full(len(kind.distances), validation.n_classes))
        answers = np.append(known, np.where(kind.distances <= scale, kind.assigned, validation.n_classes))
        for per_known in (1 / 3, 1, 3):  # a quarter, a half and three quarters of all rows are open
            weight = per_known * rows.weights.sum() / kind.weights.sum()
            values.append(macro_f1(truth, answers, np.append(rows.weights, weight * kind.weights)))
    return np.mean(values)


@pytest.mark.parametrize("n_open", [(), (1,), (15,), (200, 3)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weigh", [False, True])
def test_f1_at_fixed_shares_is_that_of_scikit_learn(n_open, seed, weigh):
    validation = some_validation(n_open=n_open, seed=seed)
    validation = weighted(validation) if weigh else validation
    drawn = [validation.known.distances[:5], *(kind.distances[:3] for kind in validation.open)]
    scales = np.unique(np.concatenate([[0.0, 0.5, 1.0, 9.0], *drawn]))
    expected = [brute_force_f1(validation, scale) for scale in scales]
    np.testing.assert_allclose(f1_of(validation, scales), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("weigh", [False, True])
def test_best_scale_is_the_mean_of_the_good_ones(seed, weigh):
    validation = some_validation(seed=seed)
    validation = weighted(validation) if weigh else validation
    totals = np.bincount(validation.known.sets, validation.known.weights)
    n_independent = totals.sum() ** 2 / np.square(totals).sum()
    assert weigh or n_independent == pytest.approx(40)
    scales = np.sort(validation.known.distances)
    values = np.array([brute_force_f1(validation, scale) for scale in scales])
    error = 0.3 / np.sqrt(n_independent)
    weights = np.exp((values - values.max()) / error)
    scale, best = chosen(validation)
    assert best == pytest.approx(values.max())
    assert scale == pytest.approx(np.exp(np.sum(weights * np.log(scales)) / weights.sum()))
    assert f1_of(validation, [scale])[0] > best - 3 * error


def test_synthetic_classes_keep_the_scale_from_covering_stray_samples():
    known, classes = np.concatenate([np.linspace(0.5, 1, 180), np.linspace(1.2, 3, 20)]), np.arange(200) % 2
    far, synthetic = ((np.linspace(*ends, 200), np.arange(200) % 2) for ends in ((6, 9), (1.1, 2.5)))
    assert chosen(known, classes, classes, [far], 2)[0] > 2
    assert chosen(known, classes, classes, [far, synthetic], 2)[0] < 1.2


def ellipsoids(n_classes=4, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    components = np.eye(n_features) + 0.3 * rng.normal(size=(n_classes, n_features, n_features))
    return torch.from_numpy(rng.normal(size=(n_classes, n_features))), torch.from_numpy(components)


def validated(rows, classes, parts, real_open=None, synthetic=None, degenerate=None, **columns):
    """Held-out samples by the paper's boundaries of some centroids and matrices, with radii of 2."""
    (centroids, components), n_classes = parts, len(parts[0])
    samples = Samples.of(rows, classes, n_classes, columns.get("weights"), None, columns.get("groups"))
    degenerate = torch.zeros(n_classes, dtype=torch.bool) if degenerate is None else degenerate
    validator = PaperValidator(samples, rows[:0] if real_open is None else real_open, centroids, degenerate)
    radii = torch.full((n_classes,), 2.0, dtype=torch.float64)
    found = validator.validate(Factors.from_components(components), radii, synthetic)
    assert len(validator) == len(found.known)
    return found


def literal(row, k, centroids, components):
    return float((components[k] @ (row - centroids[k])).norm() / 2)


def test_held_out_samples_are_validated_as_known_and_as_open():
    rng = np.random.default_rng(1)
    known, classes = torch.from_numpy(rng.normal(size=(40, 3))), torch.from_numpy(rng.integers(4, size=40))
    real_open = torch.from_numpy(rng.normal(size=(9, 3)))
    centroids, components = ellipsoids()
    degenerate = torch.tensor([False, False, True, False])
    synthetic = torch.from_numpy(rng.normal(size=(5, 3)))
    validation = validated(known, classes, (centroids, components), real_open, synthetic, degenerate)

    def scored(rows, without):
        distances = [(centroids - row).norm(dim=1).tolist() for row in rows]
        nearest = [
            min((k for k in range(4) if k != label), key=row.__getitem__)
            for row, label in zip(distances, without, strict=True)
        ]
        return nearest, [literal(row, k, centroids, components) for row, k in zip(rows, nearest, strict=True)]

    shaped = ~degenerate[classes]
    rows, labels = known[shaped], classes[shaped].tolist()
    as_known, as_open, real = scored(rows, [-1] * len(rows)), scored(rows, labels), scored(real_open, [-1] * 9)
    assert len(validation.known) == len(rows)
    np.testing.assert_allclose(validation.known.distances, as_known[1])
    np.testing.assert_array_equal(validation.known.assigned, as_known[0])
    np.testing.assert_allclose(validation.open[0].distances, as_open[1] + real[1])
    np.testing.assert_array_equal(validation.open[0].assigned, as_open[0] + real[0])
    mixed = scored(synthetic, [-1] * 5)
    np.testing.assert_allclose(validation.open[1].distances, mixed[1] + real[1])
    np.testing.assert_array_equal(validation.open[1].assigned, mixed[0] + real[0])


def test_held_out_rows_count_by_their_weights_and_their_groups():
    rng = np.random.default_rng(1)
    classes, weights, groups = rng.integers(4, size=40), rng.gamma(2, size=40), rng.integers(9, size=40)
    rows, real_open = torch.from_numpy(rng.normal(size=(40, 3))), torch.from_numpy(rng.normal(size=(6, 3)))
    columns = {"weights": weights, "groups": groups}
    validation = validated(rows, torch.from_numpy(classes), ellipsoids(), real_open, **columns)
    np.testing.assert_array_equal(validation.known.weights, weights)
    np.testing.assert_array_equal(validation.open[0].weights, [*weights, 1, 1, 1, 1, 1, 1])
    totals = np.bincount(groups, weights)
    assert validation.n_independent == pytest.approx(totals.sum() ** 2 / np.square(totals).sum())


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_fit_keeps_all_distances_at_the_radius_scale(scale):
    validation = some_validation(n_open=(15, 7))
    kept = validation.kept(scale)
    np.testing.assert_array_equal(kept.scores, 1 - validation.distances / scale)
    assert kept.is_open.tolist() == [False] * 40 + [True] * 22
    assert (kept.kinds == SYNTHETIC).tolist() == [False] * 55 + [True] * 7
    assert validation.where(validation.is_open).kept(scale) is None


def test_best_scale_without_a_distance_is_one():
    none = np.empty(0, dtype=np.int64)
    zeros = np.zeros(2, dtype=np.int64)
    assert chosen(np.zeros(2), zeros, zeros, [(np.array([1.0]), zeros[:1])], 1) == (1.0, 0.0)
    assert chosen(np.empty(0), none, none, [], 2) == (1.0, 0.0)


def test_of_many_samples_a_few_of_each_set_choose_the_shapes():
    n_samples, n_sets = 2 * MOST_VALIDATION, 100
    sets = np.arange(n_samples) % n_sets
    samples = Samples.of(torch.zeros(n_samples, 1), torch.zeros(n_samples, dtype=torch.long), groups=sets)
    scored = torch.arange(n_samples)
    drawn = _subset_for_shapes(samples, scored, np.random.default_rng(0)).numpy()
    assert (np.bincount(samples.sets[drawn], minlength=n_sets) == MOST_OF_SET).all()
    assert torch.equal(_subset_for_shapes(samples, scored[:100], np.random.default_rng(0)), scored[:100])


def test_real_open_samples_join_every_kind_and_stand_alone_without_one():
    def sizes(*numbers):
        zeros = np.zeros(max(numbers), dtype=np.int64)
        parts = [part(kind, np.zeros(n), zeros[:n], zeros[:n], 1) for kind, n in enumerate(numbers)]
        return [len(kind) for kind in some_validation().joined(parts).open]

    assert sizes(3, 0, 0, 0) == []
    assert sizes(3, 0, 0, 4) == [4]
    assert sizes(3, 1, 2, 4) == [5, 6]
