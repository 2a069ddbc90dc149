"""An operating point that cross-validation chooses: its folds, its groups, and the estimators around and inside it."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, set_operating_point
from skellipsoid._traffic.operating_point.tuned_folds import deal
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_accuracy_scorer, open_set_f1_score, open_set_f1_scorer
from skellipsoid.model_selection import OpenSetKFold

QUICK = EllipsoidOpenSetClassifier(random_state=0)
N = 400


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(N, 6, n_known=6, open_share=0.0, random_state=0)


@pytest.mark.parametrize("rates", [{}, {"open_acceptance_rate": 0.1}])
def test_tuner_repeats_what_its_folds_say(blobs, rates):
    X, y = blobs
    tuned = TunedOperatingPointCV(QUICK, cv=3, **rates).fit(X, y)
    offsets = []
    for i, (train, test) in enumerate(OpenSetKFold(3, shuffle=True, random_state=0).split(X, y)):
        fold = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])

        def measured(clf, test=test):
            answers = clf.predict(X[test])
            known = np.isin(y[test], clf.classes_)
            f1 = open_set_f1_score(y[test], answers, labels=clf.classes_, zero_division=0)
            return np.mean(answers[known] == -1), np.mean(answers[~known] != -1), f1

        if rates:
            labels = np.where(np.isin(y[test], fold.classes_), y[test], -1)
            offsets.append(set_operating_point(fold, X[test], labels, **rates).offset_)
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
    whole = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    whole.offset_ = tuned.offset_
    for method in ("predict", "score_samples", "decision_function"):
        np.testing.assert_array_equal(getattr(tuned, method)(X), getattr(whole, method)(X))
    assert tuned.score(X, y) == whole.score(X, y)


def test_tuner_goes_where_estimators_go(blobs, tmp_path):
    X, y = blobs
    names = np.array([f"class {label}" for label in y])
    model = make_pipeline(StandardScaler(), QUICK)
    with joblib.parallel_config(backend="threading"):  # as with processes, which take seconds to begin
        tuned = TunedOperatingPointCV(model, cv=OpenSetKFold(2), rejection_rate=0.1, n_jobs=2).fit(X, names)
    assert tuned.open_label_ == "-1"
    assert tuned.classes_.tolist() == tuned.estimator_.classes_.tolist()
    assert tuned.n_features_in_ == 6
    copy = pickle.loads(pickle.dumps(tuned))
    np.testing.assert_array_equal(copy.predict(X), tuned.predict(X))
    features = tuned.estimator_[:-1].transform(X)
    np.testing.assert_array_equal(tuned.predict_known(X), tuned.estimator_[-1].predict_known(features))
    np.testing.assert_array_equal(tuned.known_p_value(X), tuned.estimator_[-1].known_p_value(features))
    assert open_set_accuracy_scorer(tuned, X, names) == tuned.score(X, names)
    assert skellipsoid.explain(tuned, X[:3]).answer.tolist() == tuned.predict(X[:3]).tolist()
    classifier = TunedOperatingPointCV(QUICK, cv=2).fit(X, names).estimator_
    skellipsoid.save(classifier, tmp_path / "model")
    assert skellipsoid.load(tmp_path / "model").offset_ == classifier.offset_


def test_tuner_errors_are_sentences(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="both given; set one"):
        TunedOperatingPointCV(QUICK, rejection_rate=0.1, open_acceptance_rate=0.1).fit(X, y)
    with pytest.raises(ValueError, match="'rejection_rate' parameter of TunedOperatingPointCV must be"):
        TunedOperatingPointCV(QUICK, rejection_rate=1.5).fit(X, y)
    with pytest.raises(ValueError, match="A fold holds no open sample"):
        TunedOperatingPointCV(QUICK, cv=KFold(2, shuffle=True, random_state=0)).fit(X, y)
    with pytest.raises(TypeError, match="LogisticRegression has no operating point"):
        TunedOperatingPointCV(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="TunedOperatingPointCV requires y to be passed, but"):
        TunedOperatingPointCV(QUICK).fit(X, None)
    with pytest.raises(NotFittedError):
        TunedOperatingPointCV(QUICK).predict(X)


class Recorded(EllipsoidOpenSetClassifier):
    """Notes the rows and groups of each fit."""

    fits = None

    def fit(self, X, y, *, sample_weight=None, groups=None, X_val=None, y_val=None):
        Recorded.fits.append((X, groups))
        return super().fit(X, y, sample_weight=sample_weight, groups=groups, X_val=X_val, y_val=y_val)


def test_an_interrupted_last_fit_leaves_the_earlier_one(blobs, monkeypatch):
    X, y = blobs
    tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=3).fit(X, y)
    before = tuned.offset_, tuned.predict(X)

    fit = EllipsoidOpenSetClassifier.fit

    def interrupt_the_last(estimator, rows, labels):
        if len(rows) == len(X):
            raise KeyboardInterrupt
        return fit(estimator, rows, labels)

    monkeypatch.setattr(EllipsoidOpenSetClassifier, "fit", interrupt_the_last)
    with pytest.raises(KeyboardInterrupt):
        tuned.fit(3 * X, y)
    assert tuned.offset_ == before[0]
    np.testing.assert_array_equal(tuned.predict(X), before[1])


def test_folds_leave_each_class_out_once():
    y = np.repeat(np.arange(10), 10)
    gone = [{*y} - {*y[train]} for train, _ in deal(y, -1, None)]
    assert [len(classes) for classes in gone] == [2] * 5
    assert set().union(*gone) == {*y}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_classes_and_classes_of_one_row_have_folds(blobs, n_classes):
    X, y = blobs
    X = np.concatenate([X[y < n_classes], X[y == 5][:1]])
    y = np.append(y[y < n_classes], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of one row
        tuned = TunedOperatingPointCV(make_pipeline(PCA(4), QUICK)).fit(X, y)
    assert np.isfinite(tuned.cv_results_["open_set_f1"]).all()
    assert tuned.score(*(part[blobs[1] < n_classes] for part in blobs)) > 0.8
    with pytest.raises(ValueError, match="fewer than two classes beside open samples"):
        TunedOperatingPointCV(QUICK).fit(X, np.where(y == 0, 0, -1))


def test_held_out_samples_and_forecasts_are_those_of_the_folds(blobs):
    X, y = blobs
    tuned = TunedOperatingPointCV(make_pipeline(PCA(4), QUICK), cv=3).fit(X, y)
    held_out, results = tuned.estimator_[-1].held_out_, tuned.cv_results_
    assert len(held_out.score) == len(X)
    is_rejected = held_out.score < tuned.offset_
    for is_open, name in ((False, "rejection_rate"), (True, "open_acceptance_rate")):
        of_folds = np.mean(results[name])  # of folds that are nearly as large as each other
        expected = 1 - of_folds if is_open else of_folds
        assert np.mean(is_rejected[held_out.is_open == is_open]) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("groups", [None, np.arange(N) // 2])
def test_tuner_around_a_search_and_inside_one(blobs, groups):
    X, y = blobs
    grid, how = {"ellipsoidopensetclassifier__beta": [0.1]}, {"cv": OpenSetKFold(2), "scoring": open_set_f1_scorer}
    search = GridSearchCV(make_pipeline(StandardScaler(), QUICK), grid, **how)
    tuned = TunedOperatingPointCV(search, rejection_rate=0.2, cv=3).fit(X, y, groups=groups)
    best = tuned.estimator_.best_estimator_
    assert groups is None or len(np.unique(best[-1].groups_)) == N / 2  # the search passes them on, too
    assert tuned.offset_ == best[-1].offset_ == np.median(tuned.cv_results_["offset"]) != 0
    np.testing.assert_array_equal(tuned.predict(X), best.predict(X))
    np.testing.assert_array_equal(tuned.predict_known(X), best[-1].predict_known(best[:-1].transform(X)))
    assert tuned.score(X, y) == np.mean(tuned.predict(X) == y)  # accuracy, not what the search was scored by
    if groups is None:
        grid = {"estimator__ellipsoidopensetclassifier__beta": [0.1], "rejection_rate": [0.2]}
        inner = TunedOperatingPointCV(make_pipeline(StandardScaler(), QUICK), cv=3)
        around = GridSearchCV(inner, grid, **how).fit(X, y)
        assert around.best_estimator_.offset_ != 0
        assert around.best_estimator_.estimator_[-1].beta == 0.1
        assert set_operating_point(around).best_estimator_.offset_ == 0


@pytest.mark.parametrize("around", [lambda search: search, lambda search: make_pipeline(StandardScaler(), search)])
def test_a_search_that_cannot_pass_groups_on_is_named(blobs, around):
    X, y = blobs
    search = GridSearchCV(QUICK, {"beta": [0.5]}, cv=OpenSetKFold(2), scoring=open_set_f1_scorer)
    tuned = TunedOperatingPointCV(around(search), rejection_rate=0.2, cv=3)
    message = (
        "GridSearchCV passes groups to its splitter only, so EllipsoidOpenSetClassifier is fitted without them; search "
        "over make_pipeline(EllipsoidOpenSetClassifier(...)) instead, or use metadata routing and "
        "set_fit_request(groups=True)."
    )
    with pytest.warns(UserWarning, match="passes groups to its splitter only") as caught:
        tuned.fit(X, y, groups=np.arange(N) // 2)
    assert [str(warning.message) for warning in caught] == [message]
    assert caught[0].filename == __file__


def test_metadata_reach_what_requests_them(blobs, monkeypatch):
    X, y = blobs
    groups, weights = np.arange(N) // 2, np.random.default_rng(0).random(N)
    given = {"groups": groups, "sample_weight": weights}
    usual = TunedOperatingPointCV(make_pipeline(StandardScaler(), QUICK), rejection_rate=0.2, cv=3)
    expected = clone(usual).fit(X, y, **given).score_samples(X)
    monkeypatch.setattr(Recorded, "fits", [])
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="not explicitly set as requested or not requested"):
            clone(usual).fit(X, y, **given)
        asks = Recorded(random_state=0).set_fit_request(groups=True, sample_weight=True, X_val=True, y_val=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        tuned = clone(usual).set_params(estimator=make_pipeline(scaler, asks)).fit(X, y, **given)
        np.testing.assert_array_equal(tuned.score_samples(X), expected)
        assert [len(of_fold) == len(rows) for rows, of_fold in Recorded.fits] == [True] * 4
        plain = clone(usual).set_params(estimator=asks)
        with pytest.raises(ValueError, match="y_val"):  # it gets there, not divided
            clone(plain).fit(X, y, X_val=X[:7])
        scored = clone(plain).set_score_request(sample_weight=True)
        found = cross_validate(scored, X, y, cv=OpenSetKFold(2), params=given, return_estimator=True)["estimator"]
        assert all(len(np.unique(each.estimator_.groups_)) < len(X) / 2 for each in found)
        with pytest.raises(TypeError, match="colour"):
            clone(plain).fit(X, y, colour=groups)
    with pytest.raises(ValueError, match=r"^TunedOperatingPointCV.fit passes X_val on under metadata routing alone; "):
        usual.fit(X, y, X_val=X)


def test_tags_are_those_of_the_first_and_the_last_step():
    model = make_pipeline(skellipsoid.SupConTextEncoder(), QUICK)
    for estimator in (model, GridSearchCV(model, {})):
        tags = get_tags(TunedOperatingPointCV(estimator))
        assert tags.input_tags.string
        assert tags.input_tags.one_d_array
        assert not tags.input_tags.two_d_array
        assert tags.target_tags.required
    assert get_tags(TunedOperatingPointCV(QUICK)).input_tags.two_d_array
