"""The conformal p-value: its formula, and how many new known rows it rejects."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._held_out.table import KNOWN
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


def test_a_held_out_score_that_is_equal_counts_as_low(blobs):
    X, y = blobs
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    scores = clf.score_samples(X[:9])
    nine = clf._held_out.where(np.flatnonzero(clf._held_out.kinds == KNOWN)[:9])
    clf._held_out = replace(nine, distances=-scores.astype(np.float64), of_distance_0=0.0)
    ranks = scores.argsort().argsort()  # 0 for the lowest
    np.testing.assert_allclose(clf.known_p_value(X[:9]), (ranks + 2) / 10)


def test_known_p_value_needs_held_out_rows(blobs):
    X, y = blobs
    single = np.unique(y, return_index=True)[1]
    with pytest.warns(UserWarning, match="without spread"):
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[single], y[single])
    with pytest.raises(ValueError, match="No known sample was held out of the fit"):
        clf.known_p_value(X)
