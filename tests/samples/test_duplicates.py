"""Exact and near duplicates: found where they are, and not where rows are near each other by chance."""

import numpy as np
import pytest
from gathered import numbered
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from skellipsoid import find_duplicates
from skellipsoid._samples import duplicates, equal

N_ROWS = 60  # of each of three classes, before they are copied


def blobs(rng, n_rows=N_ROWS, n_features=20, draw=None):
    """Three classes around centroids of their own."""
    classes = np.repeat(np.arange(3), n_rows)
    noise = rng.normal(size=(len(classes), n_features)) if draw is None else draw(rng, (len(classes), n_features))
    return 3 * rng.normal(size=(3, n_features))[classes] + noise, classes


#: Which rows are there once more.
COPIED = {
    "twice": lambda rng, n_rows: np.arange(n_rows),
    "some twice": lambda rng, n_rows: rng.choice(n_rows, size=n_rows // 5, replace=False),
    "a hundred times": lambda rng, n_rows: np.full(99, rng.integers(n_rows)),
}


def spacing(rows, classes):
    """Median distance of a row to the nearest other one of its class."""
    nearest = []
    for label in np.unique(classes):
        distances = squareform(pdist(rows[classes == label]))
        np.fill_diagonal(distances, np.inf)
        nearest += distances.min(axis=1).tolist()
    return np.median(nearest)


def with_copies(kind, seed=0, jitter=0.0, **shape):
    """Rows, classes, and which rows are copies of each other; jitter is a proportion of the distance between rows."""
    rng = np.random.default_rng(seed)
    rows, classes = blobs(rng, **shape)
    origins = rng.permutation(np.append(np.arange(len(rows)), COPIED[kind](rng, len(rows))))
    noise = rng.normal(size=(len(origins), rows.shape[1])) / np.sqrt(rows.shape[1])
    return rows[origins] + jitter * spacing(rows, classes) * noise, classes[origins], numbered(origins)


def has_duplicates(units):
    return len(np.unique(units)) < len(units)


@pytest.mark.parametrize("n_rows", [4, 9, 60])  # fewer rows than tell a density, hardly enough, and many
@pytest.mark.parametrize("n_features", [2, 20])
@pytest.mark.parametrize("kind", COPIED)
def test_copies_are_found(kind, n_features, n_rows):
    rows, classes, units = with_copies(kind, n_rows=n_rows, n_features=n_features)
    np.testing.assert_array_equal(find_duplicates(rows, classes), units)


def falsely_linked(found, units):
    """Share of the linked rows that are linked to rows that are no copies."""
    linked = [rows for unit in np.unique(found) if len(rows := np.flatnonzero(found == unit)) > 1]
    n_false = sum(len(rows) for rows in linked if len(np.unique(units[rows])) > 1)
    return n_false / sum(map(len, linked))


@pytest.mark.parametrize("jitter", [1e-4, 0.05])
@pytest.mark.parametrize("kind", COPIED)
def test_near_copies_are_found(kind, jitter):
    for seed in range(3):
        rows, classes, units = with_copies(kind, seed, jitter)
        found = find_duplicates(rows, classes)
        assert all(len(np.unique(found[units == unit])) == 1 for unit in np.unique(units))
        assert falsely_linked(found, units) <= 0.05


@pytest.mark.parametrize("load", [load_digits, load_wine, load_iris, load_breast_cancer])
def test_measured_tables_have_no_duplicates(load):
    rows, classes = load(return_X_y=True)
    if load is load_iris:  # rounded to one digit
        assert len(np.unique(rows, axis=0)) < len(rows)
    np.testing.assert_array_equal(find_duplicates(rows, classes), np.arange(len(rows)))


DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t2": lambda rng, shape: rng.standard_t(2, size=shape),
    "elliptic t2": lambda rng, shape: rng.normal(size=shape) / np.sqrt(rng.chisquare(2, size=(shape[0], 1)) / 2),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "unequal scales": lambda rng, shape: rng.normal(size=shape) * np.logspace(-3, 3, shape[1]),
    "two directions": lambda rng, shape: rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1])),
}


@pytest.mark.parametrize("n_features", [2, 5, 20, 100])
@pytest.mark.parametrize("draw", DRAWS)
def test_rows_that_are_near_by_chance_are_no_duplicates(draw, n_features):
    for seed, n_rows in enumerate([10, 30, 100, 300]):
        rows, classes = blobs(np.random.default_rng(seed), n_rows, n_features, DRAWS[draw])
        assert not has_duplicates(find_duplicates(rows, classes))


ROUNDED = {
    "one digit": lambda rng, shape: np.round(rng.normal(size=shape), 1),
    "counts": lambda rng, shape: rng.poisson(2, size=shape).astype(float),
    "binary": lambda rng, shape: rng.integers(2, size=shape).astype(float),
    "mostly 0": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "half binary": lambda rng, shape: rng.integers(2, size=shape) + np.arange(shape[1]) % 2 * rng.normal(size=shape),
}


@pytest.mark.parametrize("n_features", [2, 5, 20])
@pytest.mark.parametrize("draw", ROUNDED)
def test_rows_that_rounding_made_equal_are_no_duplicates(draw, n_features):
    for seed, (n_classes, n_rows) in enumerate([(3, 30), (3, 100), (3, 300), (40, 5)]):
        rows = ROUNDED[draw](np.random.default_rng(seed), (n_classes * n_rows, n_features))
        assert not has_duplicates(find_duplicates(rows, np.repeat(np.arange(n_classes), n_rows)))


CHANGES = {
    "shift": lambda rows: rows + np.linspace(-50, 50, rows.shape[1]),
    "large scale": lambda rows: 1e6 * rows,
    "large shift": lambda rows: rows + 1e8,
    "order of features": lambda rows: rows[:, ::-1],
    "turn": lambda rows: rows @ np.linalg.qr(np.random.default_rng(3).normal(size=2 * (rows.shape[1],)))[0],
    "more constants": lambda rows: np.column_stack([rows, np.full((len(rows), 3), 7.0)]),
}


@pytest.mark.parametrize("jitter", [0.0, 0.05])
@pytest.mark.parametrize("change", CHANGES)
def test_duplicates_do_not_depend_on_the_unit_and_the_origin(change, jitter):
    rows, classes, _ = with_copies("some twice", jitter=jitter)
    found = find_duplicates(rows, classes)
    assert has_duplicates(found)
    changed = CHANGES[change](rows)
    if change == "turn" and not jitter:
        # Equal rows are equal to the last bit, which a product of matrices does not promise.
        changed = changed[np.unique(found, return_index=True)[1]][found]
    np.testing.assert_array_equal(find_duplicates(changed, classes), found)


@pytest.mark.parametrize("jitter", [0.0, 1e-4])
def test_rows_of_different_classes_are_never_linked(jitter):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 20))
    twice = np.concatenate([rows, rows + jitter * rng.normal(size=rows.shape)])
    assert not has_duplicates(find_duplicates(twice, np.repeat([0, 1], 60)))
    np.testing.assert_array_equal(find_duplicates(twice, np.zeros(120, dtype=np.int64)), np.tile(np.arange(60), 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [2, 5, 8])
def test_rows_of_small_classes_are_duplicates_where_only_rounding_tells_them_apart(n_rows, dtype):
    rng = np.random.default_rng(0)
    rows, classes = blobs(rng, n_features=20)
    small = np.append(np.flatnonzero(classes < 2), np.flatnonzero(classes == 2)[:n_rows])
    rows, classes = rows[small], classes[small]
    rows = rows.astype(dtype)
    rows[-1] = rows[-2] * (1 + 1e-6)
    assert (rows[-1] != rows[-2]).any()
    expected = np.append(np.arange(len(rows) - 1), len(rows) - 2)
    np.testing.assert_array_equal(find_duplicates(rows, classes), expected)


@pytest.mark.parametrize("jitter", [0.0, 1e-4])
def test_large_classes_are_compared_piece_by_piece(monkeypatch, jitter):
    monkeypatch.setattr(duplicates, "MOST_ROWS", 64)  # of more than 2,048, as it is, it takes seconds
    rows, classes, units = with_copies("some twice", jitter=jitter, n_rows=200)
    found = find_duplicates(rows, classes)
    together = [len(np.unique(found[units == unit])) == 1 for unit, n in enumerate(np.bincount(units)) if n > 1]
    # A cut may come between near rows, but not between equal ones.
    assert all(together) if not jitter else np.mean(together) > 0.9
    assert falsely_linked(found, units) <= 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_samples_are_told_from_those_with_equal_hashes(dtype, monkeypatch):
    """Also 0 and −0 are equal, and equal features of two classes are not."""
    features = np.array([[0.0, 1], [2, 3], [-0.0, 1], [2, 3], [2, 4]], dtype=dtype)
    classes = np.array([0, 1, 0, 2, 1])
    assert equal.equal_samples(features, classes).tolist() == [0, 1, 0, 2, 3]
    monkeypatch.setattr(equal, "_hashes", lambda table, labels: np.zeros(len(table), dtype=np.uint64))
    assert equal.equal_samples(features, classes).tolist() == [0, 1, 0, 2, 3]
