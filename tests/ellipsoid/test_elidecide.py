"""EliDecide through the classifier: its settings, its validation samples, and a Pipeline that transforms them."""

import warnings

import numpy as np
import pytest
from matrix_helpers import matrices_of
from open_set_data import gaussians
from sklearn.exceptions import ConvergenceWarning

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, predict_open_proba
from skellipsoid.datasets import make_open_blobs


def make(*, beta=0.5, alpha=0.6, **settings):
    trainer = EliDecide(**{"max_iter": 10, **settings})
    return EllipsoidOpenSetClassifier(alpha=alpha, beta=beta, trainer=trainer, random_state=0)


def test_centroids_and_radii_are_those_of_the_paper():
    X, y = gaussians()
    clf = make().fit(X, y, X_val=X, y_val=y)
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(clf.centroids_, means, atol=1e-5)
    distances = np.linalg.norm(X - means[y], axis=1)
    np.testing.assert_allclose(clf.radii_, [distances[y == k].mean() for k in range(3)], rtol=1e-5)
    assert clf.scale_ == pytest.approx(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))
    nearest = np.linalg.norm(X[:, np.newaxis] - clf.centroids_, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(clf.predict_known(X), nearest)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_mix", 2.5), ("learning_rate", 0), ("shape", "box"), ("recalibrate", None), ("validation_fraction", 1.0)],
)
def test_a_setting_out_of_its_range_is_named(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of EliDecide must be"):
        make(**{name: value}).fit(*gaussians())


@pytest.mark.parametrize("loss", ["contraction", "adb", "clab", "adb_gen"])
@pytest.mark.parametrize("shape", ["diagonal", "ball"])
def test_a_shape_is_what_its_name_says(shape, loss):
    X, y = gaussians(4, distance=2, n_features=4)
    clf = make(shape=shape, negative_loss=loss, learning_rate=0.01).fit(X, y)
    assert not (matrices_of(clf) * (1 - np.eye(4))).any()
    diagonals = np.diagonal(matrices_of(clf), axis1=1, axis2=2)
    assert ((np.ptp(diagonals, axis=1) > 1e-3) == (shape == "diagonal")).all()
    np.testing.assert_allclose(np.diagonal(clf.class_margins(clf.centers_)), 1, atol=1e-6)


# Validation samples.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X_val": gaussians()[0]}, "X_val is given without y_val"),
        ({"y_val": gaussians()[1]}, "y_val is given without X_val"),
        ({"X_val": gaussians()[0], "y_val": [0, 1]}, "X_val has 120 rows, but y_val has 2 labels"),
        ({"X_val": gaussians()[0], "y_val": ["a"] * 120}, "y_val holds strings .* and y holds numbers"),
    ],
    ids=["no labels", "no features", "lengths", "kinds"],
)
def test_validation_samples_that_do_not_fit_are_an_error(given, message):
    clf = make().fit(*gaussians())
    with pytest.raises(ValueError, match=message):
        clf.fit(*gaussians(), **given)
    assert hasattr(clf, "radii_")  # a fit that fails changes nothing


def test_small_data_are_trained_until_boundaries_move_or_a_warning_says_that_none_did():
    X, y = make_open_blobs(360, 8, n_known=12, open_share=0.0, class_sep=3.0, random_state=0)
    train = np.arange(len(y)) % 2 == 0
    clf = EllipsoidOpenSetClassifier(trainer=EliDecide(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        clf.fit(X[train], y[train])
    assert clf.n_iter_ * 2 >= 170  # two steps in an epoch
    assert (clf.predict(X[~train]) == -1).mean() < 0.5
    # The boundary and the probabilities are of one mind.
    answers = np.append(clf.classes_, -1)[predict_open_proba(clf, X[~train]).argmax(axis=1)]
    assert (answers == clf.predict(X[~train])).mean() > 0.98
    ended = r"^The training ended after 5 epochs \(10 steps\) although its loss"
    with pytest.warns(ConvergenceWarning, match=ended) as said:
        clf.set_params(trainer=EliDecide(max_iter=5)).fit(X[train], y[train])
    assert said[0].filename == __file__


@pytest.mark.parametrize("n_mix", [(2,), (3, 2), (1, 3), (2, 3, 4), (2, 2.5)])
def test_a_range_of_p_that_is_none_is_an_error(n_mix):
    with pytest.raises(ValueError, match=r"n_mix of EliDecide is .*smallest and the largest"):
        make(n_mix=n_mix).fit(*gaussians())
