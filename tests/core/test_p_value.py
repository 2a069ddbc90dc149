"""The conformal p-value: its formula, and how many new known rows it rejects."""

import pickle

import numpy as np
import pytest

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(300, 4, n_known=4, open_share=0.0, random_state=0)


def test_known_p_value_is_its_formula_and_survives(blobs, tmp_path):
    X, y = blobs
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    held_out, scores = clf.held_out_scores_, clf.score_samples(X)
    expected = [(1 + np.sum(held_out <= score)) / (len(held_out) + 1) for score in scores]
    np.testing.assert_allclose(clf.known_p_value(X), expected)
    skellipsoid.save(clf, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(clf)), skellipsoid.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.known_p_value(X), expected)


def test_known_p_value_needs_held_out_rows(blobs):
    X, y = blobs
    single = np.unique(y, return_index=True)[1]
    with pytest.warns(UserWarning, match="without spread"):
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[single], y[single])
    with pytest.raises(ValueError, match="No known sample was held out of the fit"):
        clf.known_p_value(X)
