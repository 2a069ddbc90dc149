import itertools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, predict_open_proba, set_operating_point
from skellipsoid._core.pipelines import duplicate_groups, fit_with_groups
from skellipsoid._held_out.scores import HeldOutScores
from skellipsoid._samples.duplicates import in_order
from skellipsoid._traffic.log import Log
from skellipsoid._traffic.log_model import Labels
from skellipsoid._traffic.operating_point import tuned as _tuned
from skellipsoid._traffic.operating_point.line import place_line
from skellipsoid._traffic.operating_point.offsets import acceptance_offset, most_beyond, rejection_offset, warn_of_few
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_accuracy_scorer, open_set_f1_score, open_set_f1_scorer
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
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[y != "new"][::2], y[y != "new"][::2])


@settings(deadline=None)
@given(scores=SCORES, rate=RATES, single=st.booleans())
def test_rejection_offset_keeps_the_rate_for_a_row_that_is_left_out(scores, rate, single):
    # Each of n + 1 scores once is the new one: this is the mean that the rate is about, without any chance.
    scores = np.array([*scores, 0.3], dtype=np.float32 if single else np.float64)
    offsets = np.array([rejection_offset(np.delete(scores, i), rate) for i in range(len(scores))])
    assert np.mean(scores < offsets) <= max(rate, 1 / len(scores))
    if len(np.unique(scores)) == len(scores):
        assert np.mean(scores < offsets) > rate - 1 / len(scores)


@pytest.mark.parametrize(("rate", "offset"), [(0.0, 1), (0.05, 1), (0.1, 1), (0.2, 2), (0.95, 9), (1.0, np.inf)])
def test_rejection_offset_of_nine_scores(rate, offset):
    assert rejection_offset(np.arange(9.0, 0.0, -1.0), rate) == offset


@pytest.mark.parametrize(("n_rows", "rate"), [(5, 0.2), (20, 0.05), (40, 0.05), (200, 0.05)])
def test_new_known_rows_are_rejected_at_most_at_the_rate(n_rows, rate):
    rng = np.random.default_rng(0)

    def draw(n):
        y = rng.integers(2, size=n)
        return rng.normal(size=(n, 3)) + 6 * y[:, np.newaxis], y

    clf = EllipsoidOpenSetClassifier(random_state=0).fit(*draw(200))
    new = clf.score_samples(draw(20_000)[0])
    rejected = [
        np.mean(new < set_operating_point(clf, draw(n_rows)[0], rejection_rate=rate).offset_) for _ in range(400)
    ]
    error = np.std(rejected) / np.sqrt(len(rejected))
    wanted = np.floor((n_rows + 1) * rate + 1e-9) / (n_rows + 1)  # below the rate, where that is no such quotient
    assert np.mean(rejected) <= rate + 3 * error
    assert np.mean(rejected) == pytest.approx(wanted, abs=4 * error)


@pytest.mark.parametrize(("n_rows", "rate"), [(5, 0.46), (59, 0.05), (100, 0.05), (100, 0.29)])
@pytest.mark.parametrize("kind", ["known", "open"])
def test_rates_hold_for_new_rows_on_average(n_rows, rate, kind):
    rng = np.random.default_rng(0)
    given = rng.uniform(size=(4000, n_rows))  # new scores beyond an offset are then as many as it is large
    if kind == "known":
        shares = np.array([rejection_offset(scores, rate) for scores in given])
    else:
        shares = 1 - np.array([acceptance_offset(scores, rate) for scores in given])
    error = shares.std() / np.sqrt(len(shares))
    assert rate - 1 / (n_rows + 1) - 4 * error <= np.mean(shares) <= rate + 4 * error


def test_few_open_rows_say_what_they_are_worth(data, fitted):
    X, y = data
    rows = np.flatnonzero(y == "new")[:5]
    message = (
        r"too few rows for open_acceptance_rate=0.05 \(of 5 open rows, 19 are needed; 5 can keep 17 % on average, "
        r"or 45 % with a confidence of 95 %\): the offset is above their highest score"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        set_operating_point(fitted, X[rows], open_acceptance_rate=0.05)
    assert caught[0].filename == __file__
    assert (fitted.predict(X[rows]) == "-1").all()
    set_operating_point(fitted, X[rows], open_acceptance_rate=0.5)  # warnings are errors here


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.29, 0.5, 0.99])
def test_the_rows_that_are_needed_are_the_fewest(rate):
    fewest = next(n for n in range(1, 2000) if most_beyond(n, rate) >= 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_few("rate", rate, fewest)
        assert not caught
        if fewest > 1:
            warn_of_few("rate", rate, fewest - 1)
            assert f"known rows, {fewest} are needed; {fewest - 1} can keep" in str(caught[0].message)


def test_few_rows_take_the_lowest_score_with_a_warning(data, fitted):
    X = data[0]
    with pytest.warns(
        UserWarning, match=r"too few rows for rejection_rate=0.05 \(of 18 known rows, 19 are needed; 18 can keep 5.3 % "
    ) as caught:
        set_operating_point(fitted, X[:18], rejection_rate=0.05)
    assert caught[0].filename == __file__
    assert fitted.offset_ == fitted.score_samples(X[:18]).min()
    set_operating_point(fitted, X[:19], rejection_rate=0.05)  # warnings are errors here
    assert fitted.offset_ == fitted.score_samples(X[:19]).min()
    set_operating_point(fitted, X[:3], rejection_rate=0.0)
    assert fitted.offset_ == fitted.score_samples(X[:3]).min()


def test_every_call_sets_the_offsets_of_classes_back(data, fitted):
    X, y = data
    for options in ({"X": X, "y": y, "rejection_rate": 0.3}, {"open_share": 0.05, "cost_open": 0.02}, {}):
        fitted.class_offsets_ = np.array([0.0, 0.3])
        assert set_operating_point(fitted, **options) is fitted
        assert fitted.class_offsets_.tolist() == [0, 0]


@settings(deadline=None)
@given(scores=SCORES, rate=RATES, single=st.booleans())
def test_acceptance_offset_is_the_mirror_image_of_the_rejection_offset(scores, rate, single):
    scores = np.array(scores, dtype=np.float32 if single else np.float64)
    # Minus the score, an open row that is accepted is a known row that is rejected.
    offset, mirrored = acceptance_offset(scores, rate), rejection_offset(-scores, rate)
    assert np.sum(scores >= offset) == np.sum(-scores < mirrored)
    lower = np.nextafter(scores.dtype.type(offset), scores.dtype.type(-np.inf))
    assert offset == -np.inf or np.sum(scores >= lower) + 1 > max(1, rate * (len(scores) + 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rates_hold_for_predictions(data, fitted, dtype):
    X, y = data[0].astype(dtype), data[1]
    known = y != "new"
    assert set_operating_point(fitted, X, y, rejection_rate=0.1) is fitted
    assert np.mean(fitted.predict(X[known]) == "-1") == 0.095  # 19 of 200 rows, and the 20th lowest is the offset
    set_operating_point(fitted, X, y, open_acceptance_rate=0.2)
    assert np.mean(fitted.predict(X[~known]) != "-1") == 0.19  # 19 of 100 rows, and the 20th highest is below
    set_operating_point(fitted, X[~known], open_acceptance_rate=0.0)
    assert (fitted.predict(X[~known]) == "-1").all()


def test_moving_the_offset_is_scaling_every_radius(data, fitted):
    X, y = data
    set_operating_point(fitted, X, y, rejection_rate=0.3)
    moved = fitted.predict(X)
    shapes = fitted._boundaries.shapes
    larger = shapes._replace(radii=shapes.radii * (1 - fitted.offset_))
    fitted._boundaries = replace(fitted._boundaries, shapes=larger)
    set_operating_point(fitted)
    assert fitted.offset_ == 0
    assert np.mean(fitted.predict(X) == moved) > 0.99  # the row on the boundary may round to either side


def test_survives_pickle_and_save_and_a_refit_resets_it(data, fitted, tmp_path):
    X, y = data
    set_operating_point(fitted, X, y, rejection_rate=0.3)
    fitted.class_offsets_[1] = 0.1
    skellipsoid.save(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), skellipsoid.load(tmp_path / "model")):
        assert copy.offset_ == fitted.offset_ != 0
        assert copy.class_offsets_.tolist() == fitted.class_offsets_.tolist() != [0, 0]
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert fitted.fit(X, y).offset_ == 0
    assert fitted.class_offsets_.tolist() == [0, 0, 0]


def test_takes_a_pipeline(data):
    X, y = data
    model = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(random_state=0)).fit(X, y)
    set_operating_point(model, X, rejection_rate=0.25)
    assert np.sum(model.predict(X) == "-1") == 74


@pytest.mark.parametrize(
    ("rates", "labels", "match"),
    [
        ({"rejection_rate": 0.1, "open_acceptance_rate": 0.1}, None, "both given; set one"),
        ({"rejection_rate": 1.5}, None, "rejection_rate=1.5 is not a share"),
        ({"open_acceptance_rate": float("nan")}, None, "not a share"),
        ({"rejection_rate": "5%"}, None, "rejection_rate='5%' is not a share; use a number from 0 to 1"),
        ({"rejection_rate": 0.1}, "new", "rejection_rate is a share of known rows, but there are none; pass"),
        ({"open_acceptance_rate": 0.1}, "a", "open_acceptance_rate is a share of open rows, but there are none"),
    ],
)
def test_errors_are_sentences(data, fitted, rates, labels, match):
    X = data[0][:10]
    with pytest.raises(ValueError, match=match):
        set_operating_point(fitted, X, None if labels is None else [labels] * 10, **rates)
    assert fitted.offset_ == 0
    assert fitted.class_offsets_.tolist() == [0, 0]


def test_foreign_estimators_are_refused(data):
    X, y = data
    with pytest.raises(TypeError, match="LogisticRegression has no operating point"):
        set_operating_point(LogisticRegression().fit(X, y), X, y, rejection_rate=0.1)


QUICK = EllipsoidOpenSetClassifier(random_state=0)


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(500, 6, n_known=6, open_share=0.0, random_state=0)


@pytest.mark.parametrize("rates", [{}, {"rejection_rate": 0.2}, {"open_acceptance_rate": 0.1}])
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
    whole = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
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
    features = tuned.estimator_[:-1].transform(X)
    np.testing.assert_array_equal(tuned.predict_known(X), tuned.estimator_[-1].predict_known(features))
    np.testing.assert_array_equal(tuned.known_p_value(X), tuned.estimator_[-1].known_p_value(features))
    assert open_set_accuracy_scorer(tuned, X, names) == tuned.score(X, names)
    assert skellipsoid.explain(tuned, X[:3]).answer.tolist() == tuned.predict(X[:3]).tolist()
    classifier = TunedOperatingPointCV(QUICK, cv=2).fit(X, names).estimator_
    skellipsoid.save(classifier, tmp_path / "model")
    assert skellipsoid.load(tmp_path / "model").offset_ == classifier.offset_


def test_tuner_takes_real_open_rows_and_text(tiny_model, texts, labels, open_texts):
    model = make_pipeline(
        skellipsoid.SupConTextEncoder(tiny_model, finetune="none"),
        EllipsoidOpenSetClassifier(open_label="open", random_state=0),
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

    score_fold = _tuned._score_fold
    monkeypatch.setattr(_tuned, "_score_fold", recorded)
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

    monkeypatch.setattr("skellipsoid._traffic.operating_point.tuned.fit_with_groups", interrupt_the_last)
    with pytest.raises(KeyboardInterrupt):
        tuned.fit(3 * X, y)
    assert tuned.offset_ == before[0]
    np.testing.assert_array_equal(tuned.predict(X), before[1])


def test_a_second_fit_forgets_the_names_of_the_first_and_nothing_of_the_user(blobs):
    X, y = blobs
    frame = pd.DataFrame(X).add_prefix("x")
    tuned = TunedOperatingPointCV(QUICK, rejection_rate=0.2, cv=OpenSetKFold(3))
    tuned.note, tuned._note = "mine", 1
    assert tuned.fit(frame, y).feature_names_in_[0] == "x0"
    assert vars(tuned.fit(X, y)).keys() == vars(clone(tuned).fit(X, y)).keys() | {"note", "_note"}


def test_tuned_offset_is_live(blobs):
    X, y = blobs
    tuned = TunedOperatingPointCV(QUICK, rejection_rate=0.2, cv=3)
    assert not hasattr(tuned, "offset_")
    chosen = tuned.fit(X, y).offset_
    assert chosen == np.median(tuned.cv_results_["offset"])
    assert tuned.class_offsets_.tolist() == [0] * 6
    set_operating_point(tuned, X, y, rejection_rate=0.5)
    assert tuned.offset_ == tuned.estimator_.offset_ != chosen
    tuned.estimator_.class_offsets_[0] = -0.1
    assert tuned.class_offsets_[0] == -0.1
    assert set_operating_point(tuned).offset_ == 0


def test_tuner_says_that_folds_have_few_rows(blobs):
    X, y = blobs
    with pytest.warns(UserWarning, match=r"rejection_rate=0.005 \(of .* known rows, 199 are needed;") as caught:
        TunedOperatingPointCV(QUICK, rejection_rate=0.005, cv=3).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("groups", [None, np.arange(500) // 2])
def test_tuner_around_a_search_and_inside_one(blobs, groups):
    X, y = blobs
    search = GridSearchCV(
        make_pipeline(StandardScaler(), QUICK),
        {"ellipsoidopensetclassifier__beta": [0.1, 0.5]},
        cv=OpenSetKFold(2),
        scoring=open_set_f1_scorer,
    )
    tuned = TunedOperatingPointCV(search, rejection_rate=0.2, cv=3).fit(X, y, groups=groups)
    best = tuned.estimator_.best_estimator_
    assert groups is None or len(np.unique(best[-1].groups_)) == 250  # the search passes them on, too
    assert tuned.offset_ == best[-1].offset_ == np.median(tuned.cv_results_["offset"]) != 0
    np.testing.assert_array_equal(tuned.predict(X), best.predict(X))
    np.testing.assert_array_equal(tuned.predict_known(X), best[-1].predict_known(best[:-1].transform(X)))
    assert tuned.score(X, y) == np.mean(tuned.predict(X) == y)  # accuracy, not what the search was scored by
    assert tuned.n_features_in_ == 6
    assert skellipsoid.explain(tuned, X[:3]).answer.tolist() == tuned.predict(X[:3]).tolist()
    if groups is None:
        around = GridSearchCV(
            TunedOperatingPointCV(make_pipeline(StandardScaler(), QUICK), cv=3),
            {"estimator__ellipsoidopensetclassifier__beta": [0.1, 0.5], "rejection_rate": [0.1, 0.3]},
            cv=OpenSetKFold(2, shuffle=True, random_state=0),
            scoring=open_set_f1_scorer,
        ).fit(X, y)
        assert around.best_estimator_.offset_ != 0
        assert set_operating_point(around).best_estimator_.offset_ == 0


def test_groups_reach_a_classifier_in_a_pipeline_in_a_pipeline(blobs):
    X, y = blobs
    groups = np.arange(500) // 2
    estimator = make_pipeline("passthrough", make_pipeline(StandardScaler(), QUICK))
    tuned = TunedOperatingPointCV(estimator, rejection_rate=0.2, cv=3).fit(X, y, groups=groups)
    assert len(np.unique(tuned.estimator_[-1][-1].groups_)) == 250


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
        tuned.fit(X, y, groups=np.arange(500) // 2)
    assert [str(warning.message) for warning in caught] == [message]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("routing", [False, True])
def test_groups_through_a_search_over_a_pipeline(blobs, routing):
    X, y = blobs
    groups = np.arange(500) // 2
    with sklearn.config_context(enable_metadata_routing=routing):
        clf = clone(QUICK).set_fit_request(groups=True) if routing else QUICK
        search = GridSearchCV(
            make_pipeline(StandardScaler(), clf),
            {"ellipsoidopensetclassifier__beta": [0.5]},
            cv=OpenSetKFold(2),
            scoring=open_set_f1_scorer,
        )
        search.fit(X, y, groups=groups, **({} if routing else {"ellipsoidopensetclassifier__groups": groups}))
        assert len(np.unique(search.best_estimator_[-1].groups_)) == 250
        search.fit(X, y, groups=groups)  # what reaches only the splitter without routing
        assert len(np.unique(search.best_estimator_[-1].groups_)) == (250 if routing else 500)


def test_tuner_takes_a_column_and_needs_labels(blobs):
    X, y = blobs
    tuned = TunedOperatingPointCV(QUICK, rejection_rate=0.2, cv=3)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        column = clone(tuned).fit(X, y[:, np.newaxis])
    np.testing.assert_array_equal(column.predict(X), tuned.fit(X, y).predict(X))
    with pytest.raises(ValueError, match="TunedOperatingPointCV requires y to be passed, but"):
        tuned.fit(X, None)


def test_tags_are_those_of_the_first_and_the_last_step():
    model = make_pipeline(skellipsoid.SupConTextEncoder(), QUICK)
    for estimator in (model, GridSearchCV(model, {})):
        tags = get_tags(TunedOperatingPointCV(estimator))
        assert tags.input_tags.string
        assert tags.input_tags.one_d_array
        assert not tags.input_tags.two_d_array
        assert tags.target_tags.required
    assert get_tags(TunedOperatingPointCV(QUICK)).input_tags.two_d_array


def test_a_frozen_classifier_has_an_operating_point(data, fitted):
    X, y = data
    frozen = FrozenEstimator(make_pipeline(StandardScaler().fit(X), fitted))
    set_operating_point(frozen, X, y, rejection_rate=0.1)
    assert fitted.offset_ != 0
    with pytest.raises(TypeError, match="BaggingClassifier has no operating point"):
        set_operating_point(BaggingClassifier(QUICK, n_estimators=2, random_state=0).fit(X, y), X, rejection_rate=0.1)


def test_labels_of_another_kind_are_refused_instead_of_read_as_open():
    X, y = make_open_blobs(200, open_share=0.0, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y.astype(str))
    with pytest.raises(ValueError, match=r"y holds numbers such as .* and classes_ holds strings"):
        set_operating_point(clf, X, y, rejection_rate=0.1)
    assert clf.offset_ == 0


# The share of open samples


@pytest.fixture(scope="module")
def traffic():
    X, y = make_open_blobs(4000, 6, n_known=6, open_share=0.3, random_state=1)
    train = (y != -1) & (np.arange(len(y)) < 2500)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train]), X[2500:], y[2500:]


def test_the_line_rises_with_the_open_share_and_with_its_cost(traffic):
    clf = traffic[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the fitted boundary stays
        by_share = [set_operating_point(clf, open_share=share).offset_ for share in (0, 0.02, 0.1, 0.6, 0.95, 1)]
        by_cost = [set_operating_point(clf, open_share=0.05, cost_open=cost).offset_ for cost in (0.02, 1, 50)]
    assert (np.diff(by_share) >= 0).all()
    assert by_share[0] < 0 <= by_share[-1]
    assert np.isfinite(by_share).all()
    assert (np.diff(by_cost) > 0).all()
    one = set_operating_point(clf, open_share=0.05, cost_open=0.02).offset_
    assert set_operating_point(clf, open_share=0.05, cost_open=0.1, cost_reject=5).offset_ == pytest.approx(one)
    assert set_operating_point(clf, open_share=0.05, cost_reject=50).offset_ == pytest.approx(one)
    assert set_operating_point(clf).offset_ == 0


def made_up(shift=0.0, share=0.1, place=2.4, width=0.6, n=400, n_classes=20, seed=0):
    """Held-out scores, and a log whose known messages lie ``shift`` standard deviations farther out."""
    rng = np.random.default_rng(seed)
    classes = np.arange(600) % n_classes
    known = 0.3 * rng.normal(size=600) + 0.4
    right = rng.random(600) < 0.98
    assigned = np.where(right, classes, (classes + 1) % n_classes)
    one = np.ones(600)
    held = HeldOutScores(known, assigned, classes, one, 0.3 * (0.6 * rng.normal(size=600) - 2.2) + 0.4, one)
    is_open = np.zeros(n, dtype=bool)
    is_open[rng.permutation(n)[: max(1, round(share * n))]] = True
    z = np.where(is_open, -place + width * rng.normal(size=n), rng.normal(size=n) - shift)
    truth = np.where(is_open, n_classes, rng.integers(n_classes, size=n))
    nearest = np.where(is_open, rng.integers(n_classes, size=n), truth)
    return held, 0.3 * z + 0.4, nearest, truth


def log_of(scores, nearest, truth, n_labelled, n_classes=20):
    """A log of which the first messages are labelled."""
    labelled = np.arange(len(scores)) < n_labelled
    is_open = truth[labelled] == n_classes
    labels = Labels.of(labelled, is_open, np.ones(n_labelled))
    return Log.unlabelled(scores, nearest)._replace(labels=labels, truth=truth[labelled])


def f1_of_line(offset, scores, nearest, truth, n_classes=20):
    answers = np.where(scores >= offset, nearest, n_classes)
    return 100 * open_set_f1_score(truth, answers, labels=range(n_classes), open_label=n_classes, zero_division=0)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.6, 1.2])
def test_thirty_labels_place_the_line_near_the_best_one(shift, share):
    found = []
    for seed in range(12):
        held, *log = made_up(shift, share, seed=seed)
        read = log_of(*log, n_labelled=30)
        line = place_line(held, read.fit(held), read.scores, 20)
        rest = made_up(shift, share, n=4000, seed=100 + seed)[1:]  # the traffic to come
        best = max(f1_of_line(offset, *rest) for offset in np.quantile(log[0], np.linspace(0, 1, 60)))
        found.append([f1_of_line(line.offset, *rest), f1_of_line(0.0, *rest), best])
    placed, fitted, best = np.array(found).T
    assert best.mean() - placed.mean() < 2
    assert (placed - fitted).min() > -4
    assert placed.mean() > fitted.mean() - 0.5


def test_a_wrong_share_is_tolerated_where_the_log_shows_the_gap():
    losses = {factor: [] for factor in (0.5, 1.0, 2.0)}
    for seed, share in itertools.product(range(6), (0.05, 0.2)):
        held, *log = made_up(0.6, share, place=2.8, seed=seed)
        best = max(f1_of_line(offset, *log) for offset in np.quantile(log[0], np.linspace(0, 1, 100)))
        for factor, lost in losses.items():
            read = log_of(*log, n_labelled=0)
            line = place_line(held, read.fit(held, factor * share), read.scores, 20)
            lost.append(best - f1_of_line(line.offset, *log))
    assert all(np.mean(lost) < 4 for lost in losses.values())


def test_the_share_from_labels_is_covered_and_none_of_thirty_is_not_zero():
    held = made_up()[0]
    for share in (0.05, 0.3):
        told = []
        for seed in range(40):
            read = log_of(*made_up(0.3, share, seed=seed)[1:], n_labelled=30)
            found = read.fit(held)
            told.append([*found.interval(), found.traffic()["open_share"]])
        low, high, mean = np.array(told).T
        assert np.mean((low <= share) & (share <= high)) >= 0.85
        assert abs(mean.mean() - share) < 0.05
    scores, nearest, truth = made_up(0.0, 0.0, n=200)[1:]
    of_known = truth < 20
    read = log_of(scores[of_known], nearest[of_known], truth[of_known], n_labelled=30)
    low, high = read.fit(held).interval()
    assert low < 0.01
    assert 0.01 < high < 0.2


def test_weights_undo_a_choice_by_the_score():
    """Half of the labels are chosen among the lowest tenth of the scores."""
    told = {"weighted": [], "plain": []}
    for seed in range(30):
        held, scores, nearest, truth = made_up(0.0, 0.1, n=1000, seed=seed)
        rng = np.random.default_rng(seed)
        is_low = scores < np.quantile(scores, 0.1)
        low, rest = (rng.permutation(np.flatnonzero(part))[:20] for part in (is_low, ~is_low))
        labelled = np.zeros(1000, dtype=bool)
        labelled[low] = labelled[rest] = True
        chances = np.where(is_low, 20 / is_low.sum(), 20 / (~is_low).sum())[labelled]
        is_open = truth[labelled] == 20
        for name, weights in (("weighted", 1 / chances), ("plain", np.ones(40))):
            log = Log.unlabelled(scores, nearest)._replace(labels=Labels.of(labelled, is_open, weights))
            told[name].append(log.fit(held).traffic()["open_share"])
    assert abs(np.mean(told["weighted"]) - 0.1) < 0.03
    assert np.mean(told["plain"]) > 0.17


def test_copies_in_a_log_are_no_evidence():
    held, *log = made_up(0.6, 0.3, n=30)
    once = log_of(*log, n_labelled=0).fit(held, (0.01, 0.9))
    thrice = log_of(*(np.repeat(column, 3) for column in log), n_labelled=0).fit(held, (0.01, 0.9))
    assert thrice.interval() == pytest.approx(once.interval(), abs=1e-9)


def test_a_log_and_labels_set_the_line_and_what_was_learned_stays(traffic, tmp_path):
    clf, X, y = traffic
    rng = np.random.default_rng(0)
    few = rng.permutation(np.flatnonzero((y != -1) | (np.cumsum(y == -1) <= 20)))  # 2 % of them open
    labels = np.where(np.arange(len(few)) < 40, y[few], np.nan)
    set_operating_point(clf, X[few], labels)
    assert clf.offset_ < 0  # where little is open, fewer known samples are rejected
    assert clf.traffic_["low"] <= clf.traffic_["open_share"] <= clf.traffic_["high"]
    assert abs(clf.traffic_["open_share"] - 0.02) < 0.04
    moved = open_set_f1_score(y[few], clf.predict(X[few]))
    skellipsoid.save(clf, tmp_path / "model")
    loaded = skellipsoid.load(tmp_path / "model")
    assert loaded.traffic_ == clf.traffic_
    expected = skellipsoid.predict_open_proba(clf, X[:50])
    np.testing.assert_array_equal(skellipsoid.predict_open_proba(loaded, X[:50]), expected)
    for as_given in (labels.astype(object), [None if value != value else int(value) for value in labels.tolist()]):
        assert set_operating_point(loaded, X[few], as_given).offset_ == clf.offset_
    weights = np.where(np.isnan(labels), np.nan, 2.0)
    assert set_operating_point(loaded, X[few], labels, sample_weight=weights).offset_ == clf.offset_
    set_operating_point(clf)
    assert clf.traffic_ is None
    assert moved >= open_set_f1_score(y[few], clf.predict(X[few]))
    again = set_operating_point(loaded, X[few], labels).fit(X, np.where(y == -1, 7, y))
    assert again.traffic_ is None


def test_known_messages_that_have_moved_are_told(traffic):
    clf, X, y = traffic
    set_operating_point(clf)
    known = X[y != -1][:200]
    centres = clf.centroids_[clf._encode(clf.predict_known(known))]
    farther = centres + 2.5 * (known - centres)
    labels = np.where(np.arange(200) < 60, clf.predict_known(farther), np.nan)
    rejected = 100 * np.mean(clf.predict(farther[:60]) == -1)
    with pytest.warns(UserWarning, match=rf"as fitted, {rejected:.0f} % of the 60 labelled known ones are rejected"):
        set_operating_point(clf, farther, labels)
    assert clf.traffic_["known_shift"] > 0.3
    own = np.where(np.arange(200) < 60, y[y != -1][:200], np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        set_operating_point(clf, known, own)
    assert not any("farther out" in str(warning.message) for warning in caught)
    set_operating_point(clf)


def test_the_fitted_boundary_stays_where_the_gain_is_within_its_error(traffic):
    clf = traffic[0]
    clf.offset_ = 0.3
    held = HeldOutScores.of(clf, "test")
    stays = [
        share
        for share in np.linspace(0.01, 0.99, 50)
        if not place_line(held, Log.empty().fit(held, share), np.zeros(0), 6).moves
    ]
    assert stays
    with pytest.warns(
        UserWarning, match=r"The limit is the fitted boundary: with \d+ to \d+ % open, another"
    ) as caught:
        set_operating_point(clf, open_share=stays[0])
    assert clf.offset_ == 0
    assert [warning.filename for warning in caught] == [__file__]
    # A boundary that rejects too much is left: scores as they are after 0.3 was subtracted from all of them.
    shifted = held._replace(known=held.known - 0.3)
    line = place_line(shifted, Log.empty().fit(shifted, 0.1), np.zeros(0), 6)
    assert line.offset < -0.2
    assert line.gain > line.error > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"open_share": 1.2}, "is not a share"),
        ({"open_share": "all"}, "is not a share"),
        ({"open_share": True}, "is not a share"),
        ({"open_share": (0.2, 0.1)}, "is not a share"),
        ({"open_share": (0.1, 0.2, 0.3)}, "is not a share"),
        ({"cost_open": 2}, "A cost needs traffic: pass a log as X with labels of some messages, or open_share"),
        ({"open_share": 0.2, "cost_open": -1}, "is not a cost; use a positive number"),
        (
            {"open_share": 0.2, "cost_open": 1e300},
            r"cost_open=1e\+300 is not a cost; use a positive number, of at least",
        ),
        ({"X": True}, "A log alone does not say where the limit goes"),
        ({"X": True, "y": [None] * 1500}, "y holds no label: label some rows, and leave the others None or NaN"),
        ({"X": True, "y": [0, None]}, "inconsistent numbers of samples"),
        ({"X": True, "y": ["a"] + [None] * 1499}, "y holds strings such as 'a' and classes_ holds numbers"),
        ({"y": True}, "y needs traffic"),
        ({"y": True, "open_share": 0.1}, "y belongs to the messages of a log, but there are none; pass X"),
        ({"X": True, "open_share": 0.1, "sample_weight": np.ones(1500)}, "weighs the labels of a log, but there are n"),
        ({"X": True, "y": True, "sample_weight": -np.ones(1500)}, "Negative values"),
        ({"X": True, "rejection_rate": 0.1, "open_share": 0.2}, "open_share and rejection_rate are both given"),
        ({"rejection_rate": 0.1}, "rejection_rate is a share of samples, but there are none; pass X"),
    ],
)
def test_options_of_a_share_that_do_not_fit_are_refused(traffic, options, message):
    clf, X, y = traffic
    own = {"X": X, "y": y}
    given = {name: own[name] if value is True and name in own else value for name, value in options.items()}
    with pytest.raises(ValueError, match=message):
        set_operating_point(clf, **given)
    assert clf.offset_ == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_samples_whose_scores_are_infinite_leave_the_limit_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6)).astype("f4") + 5 * np.repeat(np.eye(6)[:4], 40, axis=0).astype("f4")
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(np.arange(4), 40))
    log = np.concatenate([X[::2], np.full((30, 6), 3e25, dtype="f4")])
    assert np.isinf(clf.score_samples(log)).sum() == 30
    for options in ({"rejection_rate": 0.05}, {"open_acceptance_rate": 0.9}, {"open_share": 0.3}):
        set_operating_point(clf, log, **options)
        assert np.isfinite(clf.offset_)
        assert (clf.predict(log[-30:]) == -1).all()
    probabilities = predict_open_proba(clf, log)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
