"""The warning of predict for samples whose norms are unlike those in training, and errors that name rows."""

import copy
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV
from skellipsoid.baselines import BallClassifier, KNNOpenSetClassifier


@pytest.fixture(scope="module")
def raw():
    """Digits 0 to 5, to train with."""
    X, y = load_digits(return_X_y=True)
    known = np.flatnonzero(y <= 5)[:300]
    return X[known], y[known]


@pytest.fixture(scope="module")
def new():
    """The other digits of these classes, and open ones."""
    X, y = load_digits(return_X_y=True)
    known = np.flatnonzero(y <= 5)[300:]
    return X[known], X[y > 5]


@pytest.fixture(scope="module")
def fitted(raw):
    """A classifier of unit-length features."""
    return EllipsoidOpenSetClassifier(random_state=0).fit(normalize(raw[0]), raw[1])


@pytest.fixture
def clf(fitted):
    """The same, which has not warned yet."""
    return copy.deepcopy(fitted)


def messages(call):
    """Messages of the warnings of a call, without filters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


# The warning


def test_raw_features_after_training_on_unit_length_warn_once(clf, new):
    found = messages(lambda: clf.predict(new[0]))
    assert found == [
        "New samples have a Euclidean norm of 53.5 to 68.3, but training samples had 1: prepare new samples as in "
        "training (same model, normalisation and scaling), or most predictions will be wrong."
    ]
    assert messages(lambda: [clf.predict(new[0]) for _ in range(3)]) == []


def test_a_pipeline_and_a_tuner_warn(raw, new):
    pipe = make_pipeline(Normalizer(), BallClassifier()).fit(*raw)
    with pytest.warns(UserWarning, match="New samples have a Euclidean norm of"):
        pipe[-1].predict(new[0])
    tuned = TunedOperatingPointCV(BallClassifier(), rejection_rate=0.2, cv=2).fit(normalize(raw[0]), raw[1])
    with pytest.warns(UserWarning, match="New samples have a Euclidean norm of"):
        tuned.predict(new[0])


def test_small_trainings_few_features_and_methods_that_normalise_do_not_warn(raw, new):
    X, y = normalize(raw[0]), raw[1]
    few = slice(20, 29)
    assert messages(lambda: BallClassifier().fit(X[:, few], y).predict(100 * new[0][:, few])) == []
    for classifier in (BallClassifier().fit(X[:49], y[:49]), KNNOpenSetClassifier().fit(X, y)):
        assert messages(lambda: classifier.predict(new[0])) == []  # noqa: B023
    assert len(messages(lambda: KNNOpenSetClassifier(normalize=False).fit(X, y).predict(new[0]))) == 1


def test_norms_beyond_double_precision_are_unlike(clf):
    with np.errstate(over="ignore"):
        found = messages(lambda: clf.predict(np.full((30, 64), 1e200)))
    assert found[0].startswith("New samples have a Euclidean norm of inf, but training samples had 1")


# Rows in errors


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"^Input X contains NaN in rows 3, 50; fill missing values, .* or drop these rows\.$"),
        (np.inf, r"^Input X contains infinity or a value too large for .* in rows 3, 50; correct them, or drop"),
    ],
)
def test_errors_name_the_rows_with_missing_and_infinite_values(raw, clf, value, message):
    X = raw[0].copy()
    X[[3, 50], 1] = value
    frame = pd.DataFrame(X)
    containers = [X, X.astype(np.float32), X.tolist(), frame, frame.set_index(np.arange(900, 1200)), pl.from_numpy(X)]
    containers += [torch.tensor(X), X.astype(object)]
    if np.isnan(value):
        containers += [frame.convert_dtypes(), frame.astype(object).where(frame.notna(), None)]
    for features in containers:
        with pytest.raises(ValueError, match=message):
            BallClassifier().fit(features, raw[1])
        with pytest.raises(ValueError, match=message):
            clf.predict(features)
