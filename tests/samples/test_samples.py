"""Rows with weights, duplicates and groups: how they are gathered, left out together and found outlying."""

import warnings

import numpy as np
import pytest
from gathered import gathered, numbered, samples
from scipy import stats

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, find_duplicates
from skellipsoid.baselines import BallClassifier

# What is gathered from rows


def gather_all(*given):
    """Gather samples, and scale their weights: then a unit weighs 1 on average."""
    numbers, found, groups = gathered(*given)
    return numbers, found.normalized(), groups


@pytest.fixture
def copies():
    """40 rows in 20 dimensions: 30 that are alone, rows 3 and 7 once and twice more, near copies of rows 5 and 12."""
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(30, 20)), np.repeat([0, 1], 15)
    origins = np.array([*range(30), 3, 7, 7, 5, 5, 12, 12, 12, 12, 12])
    rows, classes = rows[origins], classes[origins]
    rows[33:] += 1e-4 * rng.normal(size=(7, 20))
    np.testing.assert_array_equal(find_duplicates(rows, classes), origins)
    return rows, classes, origins


def test_equal_rows_of_different_groups_stay_apart(copies):
    rows, classes, origins = copies
    groups = np.full(40, 8)
    groups[32], groups[35] = 2, 1
    numbers, found, of_each = gather_all(rows, classes, np.ones(40), groups, "once")
    # Of the rows 7, 31 and 32 the last one is in another group; row 30 is merged.
    assert numbers.tolist() == [*range(30), *range(32, 40)]
    np.testing.assert_array_equal(found.units, origins[numbers])
    expected = np.zeros(40, dtype=int)
    expected[[32, 35]] = 1, 2
    np.testing.assert_array_equal(of_each, expected)
    np.testing.assert_array_equal(found.groups, expected[numbers])
    np.testing.assert_allclose(found.weights[[7, 30]], [2 / 3, 1 / 3])
    np.testing.assert_allclose(np.bincount(found.units, found.weights), 1)


@pytest.mark.parametrize("duplicates", ["once", "each", "off"])
@pytest.mark.parametrize("factor", [1e-8, 3.0, 1e8])
def test_a_unit_weighs_one_on_average_whatever_the_weights_are_in(copies, duplicates, factor):
    rows, classes, _ = copies
    weights = np.random.default_rng(1).uniform(0.5, 2, size=40)
    one, other = (gather_all(rows, classes, scale * weights, None, duplicates)[1] for scale in (1, factor))
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)
    assert one.weights.sum() == pytest.approx(len(np.unique(one.units)))


@pytest.mark.parametrize("duplicates", ["once", "each", "off"])
@pytest.mark.parametrize("has_groups", [False, True])
@pytest.mark.parametrize("by_chance", [False, True])
def test_a_row_with_a_number_of_copies_is_that_many_equal_rows(copies, duplicates, has_groups, by_chance):
    rows, classes, _ = copies
    if by_chance:
        rows = np.random.default_rng(0).integers(2, size=(40, 4)).astype(float)
    rng = np.random.default_rng(2)
    copied = rng.choice([1, 1, 1, 2, 5], 40)
    weights, groups = rng.uniform(0.5, 2, size=40), rng.integers(9, size=40) if has_groups else None
    numbers, found, _ = gathered(rows, classes, weights, groups, duplicates, copied)
    each = np.repeat(np.arange(40), copied)
    own = None if groups is None else groups[each]
    firsts, wanted, _ = gathered(rows[each], classes[each], weights[each], own, duplicates)
    np.testing.assert_array_equal(numbers, each[firsts])
    np.testing.assert_allclose(found.weights, wanted.weights)
    np.testing.assert_array_equal(found.copies, wanted.copies)
    for name in ("units", "groups"):
        np.testing.assert_array_equal(numbered(getattr(found, name)), numbered(getattr(wanted, name)))


# Rows that belong together


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_scored_once_without_its_group_and_its_duplicates(seed):
    rng = np.random.default_rng(seed)
    classes, units, groups = rng.integers(3, size=40), rng.integers(25, size=40), rng.integers(15, size=40)
    # Duplicates are of one class.
    units = units + 100 * classes
    found = samples(classes, units=units, groups=groups)
    gone = (groups[:, np.newaxis] == groups) | (units[:, np.newaxis] == units)
    runs = found.set_runs()
    for row, number in enumerate(runs.numbers):
        members = runs.members[runs.starts[number] :][: runs.sizes[number]]
        assert sorted(members) == np.flatnonzero(gone[row]).tolist()
    assert len(runs.sizes) == len(np.unique(found.sets))
    # The same number is the same set; a set may have two numbers where groups and duplicates coincide.
    same = (gone[:, np.newaxis] == gone).all(axis=2)
    assert same[np.equal.outer(found.sets, found.sets)].all()


def test_a_row_that_all_groups_share_joins_them_to_no_block_of_more_than_a_fifth():
    groups = np.repeat(np.arange(50), 4)
    units = np.where(np.arange(200) % 4, np.arange(200), 0)  # the first row of every group
    units[[1, 5]] = 1  # and one that two groups share
    blocks = samples([0] * 200, units=units, groups=groups).blocks
    assert len(np.unique(blocks)) == 49
    assert len(set(blocks[:8])) == 1
    assert all(len(set(blocks[groups == group])) == 1 for group in range(50))


def test_centroids_are_weighted_means_and_the_papers_radii_mean_distances():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(40, 3)), np.arange(40) % 2, rng.gamma(2, size=40)
    X_val, y_val = rng.normal(size=(8, 3)), np.arange(8) % 2  # so that every sample learns
    clf = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=1, recalibrate=False), random_state=0)
    clf.fit(X, y, sample_weight=weights, X_val=X_val, y_val=y_val)
    means = np.array([np.average(X[y == k], axis=0, weights=weights[y == k]) for k in (0, 1)])
    np.testing.assert_allclose(clf.centroids_, means)
    distances = np.linalg.norm(X - means[y], axis=1)
    radii = [np.average(distances[y == k], weights=weights[y == k]) for k in (0, 1)]
    np.testing.assert_allclose(clf.radii_, radii, rtol=1e-5)


# Rows that are far out


def find_outliers(rows, classes):
    """Rows that a fit drops."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        groups = BallClassifier(duplicates="off").fit(rows, classes).groups_
    found = np.flatnonzero(groups < 0)
    assert any("outliers" in str(each.message) for each in said) == bool(len(found))
    return found


@pytest.mark.parametrize("n_features", [2, 20])
@pytest.mark.parametrize("draw", [stats.norm, stats.t(2), stats.expon], ids=["normal", "t2", "exponential"])
def test_tails_are_not_outlying(draw, n_features):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        classes = np.repeat(np.arange(4), [3, 10, 40, 200])
        rows = draw.rvs(size=(len(classes), n_features), random_state=rng)
        rows += 10 * rng.normal(size=(4, n_features))[classes]
        assert find_outliers(rows, classes).tolist() == []


@pytest.mark.parametrize(
    ("n_rows", "factor", "are_outlying"),
    [(1, 15, False), (1, 25, True), (3, 25, False), (3, 900, False), (3, 1100, True)],
)
def test_a_row_is_outlying_beyond_twenty_times_the_typical_distance_and_a_cluster_beyond_a_thousand(
    n_rows, factor, are_outlying
):
    """In many dimensions all rows are equally far from the middle, so that this limit alone decides.

    Three rows near each other may be a part of the class, and so far out they must be broken.
    """
    rows, classes = np.random.default_rng(0).normal(size=(200, 50)), np.repeat([0, 1], 100)
    rows[:n_rows] += factor * np.sqrt(50) * np.eye(50)[0]
    assert find_outliers(rows, classes).tolist() == [*range(n_rows)] * are_outlying


def test_every_class_has_a_reach_of_its_own():
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(300, 5)), np.repeat([0, 1, 2], 100)
    rows[:100] *= 1e-4
    assert find_outliers(rows, classes).tolist() == []
    rows[7] = 1e-4 * 1000
    assert find_outliers(rows, classes).tolist() == [7]
    rows[7] = 0
    rows[100:200] *= 1e4
    assert find_outliers(rows, classes).tolist() == []
