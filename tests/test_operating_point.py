import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, set_operating_point
from skellipsoid._engine.duplicates import in_order
from skellipsoid._operating_point import _largest_offset, _smallest_offset
from skellipsoid._pipelines import duplicate_groups, fit_with_groups
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_accuracy_scorer, open_set_f1_score
from skellipsoid.model_selection import OpenSetKFold

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


QUICK = EllipsoidOpenSetClassifier(max_iter=5, random_state=0)


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(500, 6, n_known=6, open_share=0.0, random_state=0)


@pytest.mark.parametrize("rates", [{}, {"rejection_rate": 0.2}, {"open_acceptance_rate": 0.1}])
def test_tuner_repeats_what_its_folds_say(blobs, rates):
    X, y = blobs
    tuned = TunedOperatingPointCV(QUICK, cv=3, **rates).fit(X, y)
    offsets = []
    for i, (train, test) in enumerate(OpenSetKFold(3, shuffle=True, random_state=0).split(X, y)):
        fold = EllipsoidOpenSetClassifier(max_iter=5, random_state=0).fit(X[train], y[train])

        def measured(clf, test=test):
            answers = clf.predict(X[test])
            known = np.isin(y[test], clf.classes_)
            f1 = open_set_f1_score(y[test], answers, labels=clf.classes_, zero_division=0)
            return np.mean(answers[known] == -1), np.mean(answers[~known] != -1), f1

        if rates:
            offsets.append(set_operating_point(fold, X[test], y[test], **rates).offset_)
        else:
            best = measured(fold)[2]
            for offset in np.linspace(fold.score_samples(X[test]).min(), 1, 50):
                fold.offset_ = offset
                best = max(best, measured(fold)[2])
            fold.offset_ = tuned.cv_results_["offset"][i]
            assert measured(fold)[2] >= best - 0.01  # another grid of offsets
            offsets.append(fold.offset_)
        fold.offset_ = tuned.offset_
        for name, value in zip(("rejection_rate", "open_acceptance_rate", "open_set_f1"), measured(fold), strict=True):
            assert tuned.cv_results_[name][i] == pytest.approx(value)
    np.testing.assert_allclose(tuned.cv_results_["offset"], offsets)
    assert tuned.offset_ == tuned.estimator_.offset_ == np.median(offsets)
    whole = EllipsoidOpenSetClassifier(max_iter=5, random_state=0).fit(X, y)
    whole.offset_ = tuned.offset_
    np.testing.assert_array_equal(tuned.predict(X), whole.predict(X))
    np.testing.assert_array_equal(tuned.score_samples(X), whole.score_samples(X))
    np.testing.assert_array_equal(tuned.decision_function(X), whole.decision_function(X))
    assert tuned.score(X, y) == whole.score(X, y)


def test_tuner_goes_where_estimators_go(blobs, tmp_path):
    X, y = blobs
    names = np.array([f"class {label}" for label in y])
    model = make_pipeline(StandardScaler(), QUICK)
    tuned = TunedOperatingPointCV(model, cv=OpenSetKFold(2), rejection_rate=0.1, n_jobs=2).fit(X, names)
    assert tuned.open_label_ == "-1"
    assert tuned.classes_.tolist() == tuned.estimator_.classes_.tolist()
    assert tuned.n_features_in_ == 6
    copy = pickle.loads(pickle.dumps(tuned))
    np.testing.assert_array_equal(copy.predict(X), tuned.predict(X))
    assert open_set_accuracy_scorer(tuned, X, names) == tuned.score(X, names)
    assert skellipsoid.explain(tuned, X[:3]).answer.tolist() == tuned.predict(X[:3]).tolist()
    classifier = TunedOperatingPointCV(QUICK, cv=2).fit(X, names).estimator_
    skellipsoid.save(classifier, tmp_path / "model")
    assert skellipsoid.load(tmp_path / "model").offset_ == classifier.offset_


def test_tuner_takes_real_open_rows_and_text(tiny_model, texts, labels, open_texts):
    model = make_pipeline(
        skellipsoid.SupConTextEncoder(tiny_model, finetune="none"),
        EllipsoidOpenSetClassifier(max_iter=3, open_label="open", random_state=0),
    )
    both, truth = [*texts, *open_texts], [*labels, *["open"] * len(open_texts)]
    tuned = TunedOperatingPointCV(model, cv=2, open_acceptance_rate=0.5).fit(both, truth)
    assert tuned.open_label_ == "open"
    assert "open" not in tuned.classes_
    assert np.isfinite(tuned.cv_results_["open_acceptance_rate"]).all()


def test_tuner_errors_are_sentences(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="both given; set one"):
        TunedOperatingPointCV(QUICK, rejection_rate=0.1, open_acceptance_rate=0.1).fit(X, y)
    with pytest.raises(ValueError, match="'rejection_rate' parameter of TunedOperatingPointCV must be"):
        TunedOperatingPointCV(QUICK, rejection_rate=1.5).fit(X, y)
    with pytest.raises(ValueError, match="A fold holds no open row"):
        TunedOperatingPointCV(QUICK, cv=KFold(2, shuffle=True, random_state=0)).fit(X, y)
    with pytest.raises(TypeError, match="LogisticRegression has no operating point"):
        TunedOperatingPointCV(LogisticRegression()).fit(X, y)
    with pytest.raises(NotFittedError):
        TunedOperatingPointCV(QUICK).predict(X)


def test_repeated_rows_and_groups_stay_in_one_fold(monkeypatch):
    X, y = make_open_blobs(300, random_state=0)
    X, y = X[y != -1], y[y != -1]
    order = np.random.default_rng(0).permutation(2 * len(X)) % len(X)
    groups, given = order // 4, []

    def recorded(estimator, rows, labels, groups, train, test):
        given.append(groups)
        parts.append((order[train], order[test]))
        return score_fold(estimator, rows, labels, groups, train, test)

    score_fold = skellipsoid._operating_point._score_fold
    monkeypatch.setattr(skellipsoid._operating_point, "_score_fold", recorded)
    tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=3)
    for rows_together, passed in ((order, None), (groups, groups)):
        parts = []
        fitted = clone(tuned).fit(X[order], y[order], groups=passed)
        assert len(parts) == 3
        for train, test in parts:
            assert not np.isin(test, train).any()
            assert passed is None or not np.isin(test // 4, train // 4).any()
        assert fitted.estimator_.groups_.tolist() == in_order(rows_together).tolist()
    assert given[0] is None
    np.testing.assert_array_equal(given[-1], groups)


@pytest.mark.parametrize("rows", [[{"a": 1}, {"b": 2}], [["a", "b"], ["c"]], np.zeros((2, 2, 2)), [[None, 1], [2, 3]]])
def test_what_is_neither_text_nor_numbers_has_no_duplicates(rows):
    assert duplicate_groups(rows, np.zeros(2)) is None


def test_an_interrupted_last_fit_leaves_the_earlier_one(monkeypatch):
    X, y = make_open_blobs(200, random_state=0)
    X, y = X[y != -1], y[y != -1]
    tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=3).fit(X, y)
    before = tuned.offset_, tuned.predict(X)

    def interrupt_the_last(estimator, rows, labels, groups):
        if len(rows) == len(X):
            raise KeyboardInterrupt
        return fit_with_groups(estimator, rows, labels, groups)

    monkeypatch.setattr("skellipsoid._operating_point.fit_with_groups", interrupt_the_last)
    with pytest.raises(KeyboardInterrupt):
        tuned.fit(3 * X, y)
    assert tuned.offset_ == before[0]
    np.testing.assert_array_equal(tuned.predict(X), before[1])
