"""Properties that hold for any data: invariance, geometry of the ellipsoids, order of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_helpers import matrices_of

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier

#: Axes are kept in single precision.
SINGLE = 1e-5


@st.composite
def training_data(draw):
    """Two to six elongated classes, some of them overlapping, as float64: a function of the random seed."""
    number, n_classes, n_features = draw(st.integers(0, 10_000)), draw(st.integers(2, 6)), draw(st.integers(1, 5))
    n_samples = draw(st.integers(6, 25))

    def make(seed):
        rng = np.random.default_rng([number, seed])
        y = rng.permutation(np.repeat(np.arange(n_classes), n_samples))
        centers = rng.normal(scale=4, size=(n_classes, n_features))
        stretch = np.exp(rng.normal(scale=0.7, size=(n_classes, n_features)))
        return centers[y] + stretch[y] * rng.normal(size=(len(y), n_features)), y

    return make


def fitted(data, seed):
    """A fitted classifier, and its data."""
    X, y = data(seed)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X, y), X


def new_rows(X, seed, n_samples=200):
    """Rows around the classes, between and beyond them."""
    rng = np.random.default_rng(seed)
    places, scales = X[rng.integers(len(X), size=n_samples)], X.std() * rng.normal(size=(n_samples, 1))
    return places + scales * rng.normal(size=places.shape)


@given(
    training_data(),
    st.floats(-6, 6).map(lambda exponent: 10**exponent),
    st.floats(-1000, 1000),
    st.sampled_from([None, EliDecide(max_iter=4)]),
)
def test_decisions_are_the_same_after_shift_and_scaling(global_random_seed, data, scale, shift, trainer):
    X, y = data(global_random_seed)
    clf = EllipsoidOpenSetClassifier(trainer=trainer, random_state=0)
    offset = shift * np.cos(np.arange(X.shape[1]))
    rows = new_rows(X, global_random_seed)
    margins, answers = clf.fit(X, y).class_margins(rows), clf.predict(rows)
    scores, centroids, radii = clf.score_samples(rows), clf.centroids_, clf.radii_
    scale_, offset = clf.scale_, offset * scale
    clf.fit(X * scale + offset, y)
    np.testing.assert_allclose(clf.class_margins(rows * scale + offset), margins, rtol=1e-3, atol=1e-3)
    clear = abs(scores) > 1e-3
    np.testing.assert_array_equal(clf.predict(rows * scale + offset)[clear], answers[clear])
    assert clear.mean() > 0.9
    # What is in the units of X follows.
    assert clf.scale_ == pytest.approx(scale * scale_, rel=1e-6)
    np.testing.assert_allclose(clf.radii_, scale * radii, rtol=1e-3)
    np.testing.assert_allclose((clf.centroids_ - offset) / scale, centroids, rtol=1e-4, atol=1e-4)


@given(training_data())
def test_the_ends_of_the_axes_lie_on_the_boundary(global_random_seed, data):
    clf, _ = fitted(data, global_random_seed)
    for k, label in enumerate(clf.classes_):
        directions, lengths = clf.ellipsoid_axes(label)
        for sign in (-1, 1):
            ends = clf.centers_[k] + sign * lengths[:, np.newaxis] * directions
            np.testing.assert_allclose(clf.class_margins(ends)[:, k], 0, atol=SINGLE)


@given(training_data())
def test_margins_are_the_formula(global_random_seed, data):
    clf, X = fitted(data, global_random_seed)
    rows = new_rows(X, global_random_seed)
    offsets = rows[:, np.newaxis] - clf.centroids_
    distances = np.einsum("nki,ij,nkj->nk", offsets, np.linalg.inv(clf.within_covariance()), offsets)
    components = matrices_of(clf).astype(np.float64)
    norms = np.linalg.norm(np.einsum("kij,nkj->nki", components, rows[:, np.newaxis] - clf.centers_), axis=2)
    expected = 1 - norms / clf.radii_
    np.testing.assert_allclose(clf.class_margins(rows), expected, rtol=SINGLE, atol=SINGLE)
    third = np.sort(distances, axis=1)[:, : 3 if len(clf.classes_) > 2 else None][:, -1:]
    compared = np.square(1 - expected) - clf._boundaries.shapes.allowances
    nearest = np.where(distances <= third, compared, np.inf).argmin(axis=1)
    np.testing.assert_array_equal(clf.predict_known(rows), clf.classes_[nearest])
    answers = np.where(expected[np.arange(len(rows)), nearest] >= 0, clf.classes_[nearest], -1)
    np.testing.assert_array_equal(clf.predict(rows), answers)


@given(training_data(), st.randoms(use_true_random=False))
def test_each_row_is_answered_for_itself(global_random_seed, data, random):
    clf, X = fitted(data, global_random_seed)
    rows = new_rows(X, global_random_seed)
    scores, margins, answers = clf.score_samples(rows), clf.class_margins(rows), clf.predict(rows)
    order = np.array(random.sample(range(len(rows)), len(rows)))
    np.testing.assert_allclose(clf.score_samples(rows[order]), scores[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.class_margins(rows[order]), margins[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(rows[order]), answers[order])
    few = order[:7]
    np.testing.assert_allclose(clf.score_samples(rows[few]), scores[few], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(rows[few[:1]]), answers[few[:1]])
