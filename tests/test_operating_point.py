import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, set_operating_point
from skellipsoid._operating_point import _largest_offset, _smallest_offset

RATES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.07, 0.29, 0.5, 1.0]))
SCORES = st.lists(
    st.sampled_from([-2.0, -0.5, 0.1, 0.25, 0.9, 1.0]) | st.floats(-5, 1, width=32), min_size=1, max_size=40
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + np.repeat([[0], [6], [-6]], 100, axis=0)
    y = np.repeat(["a", "b", "new"], 100)
    return X, y


@pytest.fixture
def fitted(data):
    X, y = data
    return EllipsoidOpenSetClassifier(max_iter=5, random_state=0).fit(X[y != "new"][::2], y[y != "new"][::2])


@settings(deadline=None)
@given(scores=SCORES, rate=RATES, single=st.booleans())
def test_rejection_offset_is_the_largest_that_keeps_the_rate(scores, rate, single):
    scores = np.array(scores, dtype=np.float32 if single else np.float64)
    offset = _largest_offset(scores, rate)
    assert np.mean(scores < offset) <= rate
    higher = np.nextafter(scores.dtype.type(offset), scores.dtype.type(np.inf))
    assert offset == np.inf or np.mean(scores < higher) > rate


@settings(deadline=None)
@given(scores=SCORES, rate=RATES, single=st.booleans())
def test_acceptance_offset_is_the_smallest_that_keeps_the_rate(scores, rate, single):
    scores = np.array(scores, dtype=np.float32 if single else np.float64)
    offset = _smallest_offset(scores, rate)
    assert np.mean(scores >= offset) <= rate
    lower = np.nextafter(scores.dtype.type(offset), scores.dtype.type(-np.inf))
    assert offset == -np.inf or np.mean(scores >= lower) > rate


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rates_hold_for_predictions(data, fitted, dtype):
    X, y = data[0].astype(dtype), data[1]
    known = y != "new"
    assert set_operating_point(fitted, X, y, rejection_rate=0.1) is fitted
    assert np.mean(fitted.predict(X[known]) == "-1") == 0.1
    set_operating_point(fitted, X, y, open_acceptance_rate=0.2)
    assert np.mean(fitted.predict(X[~known]) != "-1") == 0.2
    set_operating_point(fitted, X[~known], open_acceptance_rate=0.0)
    assert (fitted.predict(X[~known]) == "-1").all()


def test_moving_the_offset_is_scaling_every_radius(data, fitted):
    X, y = data
    set_operating_point(fitted, X, y, rejection_rate=0.3)
    moved = fitted.predict(X)
    fitted.radii_ = fitted.radii_ * (1 - fitted.offset_)
    set_operating_point(fitted, X)
    assert fitted.offset_ == 0
    assert np.mean(fitted.predict(X) == moved) > 0.99  # the row on the boundary may round to either side


def test_survives_pickle_and_save_and_a_refit_resets_it(data, fitted, tmp_path):
    X, y = data
    set_operating_point(fitted, X, y, rejection_rate=0.3)
    skellipsoid.save(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), skellipsoid.load(tmp_path / "model")):
        assert copy.offset_ == fitted.offset_ != 0
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert fitted.fit(X, y).offset_ == 0


def test_takes_a_pipeline(data):
    X, y = data
    model = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(max_iter=3, random_state=0)).fit(X, y)
    set_operating_point(model, X, rejection_rate=0.25)
    assert np.mean(model.predict(X) == "-1") == 0.25


@pytest.mark.parametrize(
    ("rates", "labels", "match"),
    [
        ({"rejection_rate": 0.1, "open_acceptance_rate": 0.1}, None, "both given; set one"),
        ({"rejection_rate": 1.5}, None, "rejection_rate=1.5 is no share"),
        ({"open_acceptance_rate": float("nan")}, None, "no share"),
        ({"rejection_rate": 0.1}, "new", "Every row of y is open"),
        ({"open_acceptance_rate": 0.1}, "a", "Every row of y is known"),
    ],
)
def test_errors_are_sentences(data, fitted, rates, labels, match):
    X = data[0][:10]
    with pytest.raises(ValueError, match=match):
        set_operating_point(fitted, X, None if labels is None else [labels] * 10, **rates)
    assert fitted.offset_ == 0


def test_foreign_estimators_are_refused(data):
    X, y = data
    with pytest.raises(TypeError, match="LogisticRegression has no operating point"):
        set_operating_point(LogisticRegression().fit(X, y), X, y, rejection_rate=0.1)
