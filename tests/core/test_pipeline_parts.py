"""Estimators taken apart: their steps, their fingerprint, and the duplicates among what they are fitted on."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, compare, estimate_open_share, save, set_operating_point
from skellipsoid._core.pipelines import duplicate_groups, fingerprint, less_class_offsets

LABELS = np.repeat(["a", "b", "c", "d"], 12)
X = np.random.default_rng(0).normal(size=(48, 3)) + 9.0 * np.eye(4, 3)[np.repeat(range(4), 12)]
TWICE = np.repeat(X[::2], 2, axis=0)


def duplicates_in(data, labels=None):
    """Numbers of the samples of any table or list, equal ones for duplicates of one class; ``None`` without any."""
    labels = LABELS if len(data) == len(LABELS) else np.zeros(len(data)) if labels is None else np.array(labels)
    found = duplicate_groups(data, labels)
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    "use",
    [
        lambda search: save(search, "nowhere"),
        lambda search: set_operating_point(make_pipeline(StandardScaler(), search), X, rejection_rate=0.1),
        lambda search: compare(search, search, X),
        lambda search: skellipsoid.TunedOperatingPointCV(search, rejection_rate=0.1, cv=2).fit(X, LABELS),
    ],
)
def test_a_search_that_keeps_no_fitted_estimator_is_named(use):
    search = GridSearchCV(EllipsoidOpenSetClassifier(), {"beta": [0.5]}, cv=2, refit=False)
    with pytest.raises(NotFittedError, match=r"^This GridSearchCV has refit=False, .* with refit=True, or [^.]*\.$"):
        use(search)


@pytest.mark.parametrize("end", [make_pipeline, lambda clf: make_pipeline(StandardScaler(), clf)])
@pytest.mark.parametrize(
    "use",
    [
        estimate_open_share,
        skellipsoid.learn_from_traffic,
        lambda model, X, *_: compare(model, model, X),
        lambda model, X, *_: skellipsoid.OpenShareMonitor(model).fit(np.repeat(TWICE, 10, axis=0)).update(X),
        lambda model, X, *_: set_operating_point(model, X, rejection_rate=0.1),
        lambda model, X, *_: set_operating_point(model, X, LABELS),
    ],
)
def test_no_samples_are_an_error_where_samples_are_needed(use, end):
    model = end(EllipsoidOpenSetClassifier(random_state=0)).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"X is None; pass|pass X\.$|pass a log as X|there are none; pass X"):
        use(model, None, *([LABELS] if use is skellipsoid.learn_from_traffic else []))


def test_a_fingerprint_is_of_the_fit_and_not_of_the_limit():
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, LABELS)
    other = copy.deepcopy(clf)
    other.offset_, other.class_offsets_ = 0.3, other.class_offsets_ + 0.1
    assert fingerprint(other) == fingerprint(clf)
    shapes = clf._boundaries.shapes
    other._boundaries = replace(clf._boundaries, shapes=shapes._replace(radii=1.01 * shapes.radii))
    assert fingerprint(other) != fingerprint(clf)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Balance", "balance", "BALANCE"], [0, 0, 0]),
        (["my  balance", " my balance\n", "my\tbalance", "mybalance"], [0, 0, 0, 1]),
        (["\ufb01nd caf\u00e9", "find cafe\u0301", "find cafe"], [0, 0, 1]),  # a ligature, a combining accent
        (["Straße", "STRASSE", "strasse"], [0, 0, 0]),
        (["你好", "你好 ", "👍", "👍🏽"], [0, 0, 1, 2]),
        (["", " ", "."], [0, 0, 1]),
    ],
)
def test_texts_are_equal_after_case_folding_normalisation_and_white_space(texts, expected):
    assert duplicates_in(texts) == expected


def test_no_duplicates_are_looked_for_where_rows_cannot_be_compared():
    mixed = pd.DataFrame({"text": ["a"] * 48, "n": np.ones(48)})
    for data in (mixed, np.where(TWICE > 9, np.nan, TWICE), [[1], [1, 2]] * 24):
        assert duplicates_in(data) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_less_class_offsets_lie_below_the_limit_where_predict_answers_open(dtype):
    rng = np.random.default_rng(0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, LABELS)
    assigned = np.tile(clf.classes_, 50)
    differs = 0
    for _ in range(40):  # sums and differences of such numbers round otherwise
        clf.offset_, clf.class_offsets_ = rng.normal(), rng.normal(size=4)
        class_offsets = np.tile(clf.class_offsets_, 50)
        limit = (clf.offset_ + class_offsets).astype(dtype)
        beside = [np.nextafter(limit, dtype(-9)), limit, np.nextafter(limit, dtype(9))]
        scores = np.choose(rng.integers(0, 3, len(limit)), beside)  # the limit itself, and the numbers beside it
        found = less_class_offsets(clf, scores, assigned)
        np.testing.assert_array_equal(found < clf.offset_, ~(scores >= limit))
        np.testing.assert_allclose(found, scores - class_offsets, atol=1e-6)
        differs += np.sum((scores - class_offsets < clf.offset_) != (found < clf.offset_))
    assert differs > 100  # where rounding alone would decide
