"""Units of columns: found where columns do not share one, and then without effect on the predictions."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, learn_from_traffic
from skellipsoid._ellipsoid.axes import component
from skellipsoid._samples.units import column_units

TABLES = {"wine": load_wine, "iris": load_iris}


def factors(n_features, seed=0):
    return 10.0 ** np.random.default_rng(seed).integers(-3, 4, n_features)


def fitted(X, y, **settings):
    return EllipsoidOpenSetClassifier(random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seed", range(3))
def test_units_of_columns_change_no_prediction(name, seed):
    X, y = TABLES[name](return_X_y=True)
    by = factors(X.shape[1], seed)
    train = np.arange(len(y)) % 2 == 0
    answers = fitted(X[train], y[train]).predict(X)
    assert (fitted((X * by)[train], y[train]).predict(X * by) != answers).mean() <= 0.02


def test_units_of_columns_change_nothing_that_is_learned():
    X, y = load_wine(return_X_y=True)
    y[y == 2] = -1
    train, labels = np.arange(len(y)) % 2 == 0, np.where(np.arange(len(y)) % 4 == 1, y, None)
    known, found = train & (y != -1), []
    units = fitted(X[known], y[known]).column_units_
    for rows in (X, X / units, X / units * factors(X.shape[1])):
        learned = learn_from_traffic(fitted(rows[known], y[known]), rows[~train], labels[~train])
        found.append([*learned.score_samples(rows), learned.offset_, learned.traffic_["open_share"]])
    assert units.max() > 100 * units.min()
    np.testing.assert_allclose(found[1:], found[:1] * 2, atol=0.01)


def test_columns_that_share_a_unit_are_as_given():
    rng, y = np.random.default_rng(0), np.repeat(range(4), 50)
    alike = rng.normal(size=(200, 5)) + y[:, np.newaxis]
    embeddings = np.exp(rng.normal(scale=0.2, size=384)) * rng.normal(size=(200, 384))
    embeddings[:, :2] *= 1e-8  # what a text model does not use
    embeddings[:, 2:4] *= 1e-32
    for X, classes in (load_digits(return_X_y=True), (alike, y), (embeddings, y)):
        assert column_units(X, classes, np.ones(len(X))) is None
    projected = PCA().fit_transform(load_wine().data)
    assert fitted(projected, load_wine().target).column_units_ is None  # a column with less variance says less
    assert column_units(alike * [1, 1, 1, 1, 9], y, np.ones(len(y))) is not None
    assert fitted(alike * [1, 1, 1, 1, 9], y, trainer=EliDecide(max_iter=1)).column_units_ is None


def test_attributes_are_in_the_units_of_x():
    X, y = load_wine(return_X_y=True)
    clf = fitted(X, y)
    np.testing.assert_allclose(clf.centroids_, [X[y == k].mean(axis=0) for k in range(3)], rtol=1e-5)
    offsets = X - clf.centers_[1]
    margins = 1 - np.linalg.norm(offsets @ component(clf._boundaries, 1).T, axis=1) / clf.radii_[1]
    np.testing.assert_allclose(clf.class_margins(X)[:, 1], margins, rtol=1e-3, atol=1e-3)
    directions, lengths = clf.ellipsoid_axes(1)
    np.testing.assert_allclose(clf.class_margins(clf.centers_[1] + lengths[:1] * directions[:1])[0, 1], 0, atol=1e-3)
