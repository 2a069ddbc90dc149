"""Promise: scorers give scikit-learn's searches the metrics' values, and refuse what loses the open answer."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, metrics
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import make_open_set_scorer
from skellipsoid.model_selection import OpenSetKFold

SCORERS = {
    "open_f1": make_open_set_scorer(metrics.open_f1_score),
    "auroc": make_open_set_scorer(metrics.open_set_auroc, response="score"),
    "fpr": make_open_set_scorer(metrics.fpr_at_tpr, response="score", greater_is_better=False),
    "oscr": make_open_set_scorer(metrics.oscr_score, response="known_and_score"),
}


@pytest.fixture(scope="module")
def blobs():
    X, codes = make_blobs(240, n_features=4, centers=6, cluster_std=1.0, random_state=0)
    return X, np.array(["a", "b", "c", "d", "e", "f"])[codes]


@pytest.fixture(scope="module")
def fitted(blobs):
    X, y = blobs
    known = ~np.isin(y, ["e", "f"])
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[known], y[known])


def test_unknown_classes_are_read_as_open(blobs, fitted):
    X, y = blobs
    truth = np.where(np.isin(y, ["e", "f"]), "-1", y)
    predicted = fitted.predict(X)
    assert metrics.open_set_accuracy_scorer(fitted, X, y) == np.mean(truth == predicted)
    assert metrics.open_set_f1_scorer(fitted, X, y) == metrics.open_set_f1_score(truth, predicted)
    scores = fitted.score_samples(X)
    assert SCORERS["auroc"](fitted, X, y) == metrics.open_set_auroc(truth, scores)
    assert SCORERS["fpr"](fitted, X, y) == -metrics.fpr_at_tpr(truth, scores)
    assert SCORERS["oscr"](fitted, X, y) == metrics.oscr_score(truth, fitted.predict_known(X), scores)


def test_errors_are_sentences(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="'proba' is unknown; use"):
        make_open_set_scorer(metrics.open_f1_score, response="proba")
    with pytest.raises(TypeError, match="StandardScaler has no classes_"):
        SCORERS["open_f1"](StandardScaler().fit(X), X, y)


WEIGHTED = {
    **dict.fromkeys(["open_set_f1_score", "known_f1_score", "open_f1_score"], ((0, 1), {"zero_division": 0})),
    "open_set_accuracy": ((0, 1), {}),
    "open_set_auroc": ((0, 2), {}),
    "open_set_aupr": ((0, 2), {"positive": "open"}),
    "fpr_at_tpr": ((0, 2), {"tpr": 0.8}),
    "oscr_score": ((0, 3, 2), {}),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_integer_weights_are_repetitions(name):
    metric, (which, options) = getattr(metrics, name), WEIGHTED[name]
    n_different = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        true, answer, known = rng.integers(-1, 3, 40), rng.integers(-1, 3, 40), rng.integers(3, size=40)
        columns = true, answer, rng.integers(8, size=40) / 8, known
        weights = rng.integers(4, size=40)
        arguments = [columns[i] for i in which]
        options = {**options, "labels": [0, 1, 2]}
        repeated = metric(*(np.repeat(column, weights) for column in arguments), **options)
        assert metric(*arguments, sample_weight=weights, **options) == pytest.approx(repeated, abs=1e-12)
        assert metric(*arguments, sample_weight=0.3 * weights, **options) == pytest.approx(repeated, abs=1e-12)
        assert metric(*arguments, sample_weight=np.ones(40), **options) == metric(*arguments, **options)
        n_different += metric(*arguments, **options) != pytest.approx(repeated, abs=1e-6)
    assert n_different >= 5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "sample_weight"),
        ([0] * 5, "sample_weight is zero for all|at least one non-zero"),
        ([-1, 1, 1, 1, 1], "(?i)negative"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    for metric, columns in ((metrics.open_set_f1_score, [0, 0, 1, 1, -1]), (metrics.open_set_auroc, np.arange(5.0))):
        with pytest.raises(ValueError, match=message):
            metric([0, 0, 1, -1, -1], columns, sample_weight=weights)


def test_scorers_take_part_in_metadata_routing(blobs):
    X, y = blobs
    weights = np.random.default_rng(0).integers(1, 9, size=len(y))
    model, folds = EllipsoidOpenSetClassifier(beta=1000.0, random_state=0), OpenSetKFold(3)
    ready = metrics.open_set_f1_scorer
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        ready.set_score_request(sample_weight=True)
    with config_context(enable_metadata_routing=True):
        asking = ready.set_score_request(sample_weight=True)
        assert ready.weight_request is None
        unweighted = model.set_fit_request(sample_weight=False)
        options = {"cv": folds, "params": {"sample_weight": weights}, "error_score": "raise"}
        # params: scikit-learn 1.6.0 does not take None with routing.
        two = {"one": asking, "two": SCORERS["auroc"]}
        found = cross_validate(unweighted, X, y, scoring=two, cv=folds, params={})
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(unweighted, X, y, scoring=ready, **options)
        off = ready.set_score_request(sample_weight=False)
        weighted = cross_validate(unweighted, X, y, scoring={"one": asking, "two": off}, **options)
        alone = cross_validate(unweighted, X, y, scoring=pickle.loads(pickle.dumps(asking)), **options)
        named = ready.set_score_request(sample_weight="w")
        renamed = cross_validate(unweighted, X, y, scoring=named, cv=folds, params={"w": weights})
    splits = folds.split(X, y)
    wanted = [ready(model.fit(X[train], y[train]), X[test], y[test], weights[test]) for train, test in splits]
    for scores in (weighted["test_one"], alone["test_score"], renamed["test_score"]):
        np.testing.assert_allclose(scores, wanted)
    np.testing.assert_array_equal(weighted["test_two"], found["test_one"])
    assert np.abs(found["test_one"] - wanted).max() > 1e-3


def test_scorers_warn_where_the_open_answer_is_lost(blobs):
    X, y = blobs
    classifier = EllipsoidOpenSetClassifier(random_state=0)
    for wrapper in (
        make_pipeline(StandardScaler(), CalibratedClassifierCV(classifier, cv=2)),
        StackingClassifier([("open", make_pipeline(classifier)), ("closed", LogisticRegression())]),
    ):
        with pytest.warns(UserWarning, match="does not pass on the open predictions of the EllipsoidOpenSetCl"):
            metrics.open_set_accuracy_scorer(wrapper.fit(X, y), X, y)
    for fine in (  # warnings are errors here
        FrozenEstimator(classifier.fit(X, y)),
        GridSearchCV(make_pipeline(classifier), {}, cv=OpenSetKFold(2), scoring=metrics.open_set_f1_scorer).fit(X, y),
        TunedOperatingPointCV(make_pipeline(classifier), rejection_rate=0.2, cv=2).fit(X, y),
    ):
        assert metrics.open_set_accuracy_scorer(fine, X, y) > 0


def test_sklearns_own_scorer_reads_unknown_classes_as_open_and_says_so():
    X, y = make_open_blobs(180, 4, n_known=6, open_share=0.0, class_sep=3.0, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 4], y[y < 4])
    said = r"^y_true holds 4, which the estimator does not know: .*make_open_set_scorer\(metric\), not with sklearn's"
    columns = {"response_method": "decision_function"}
    of_metrics = {metric: {} for metric in (metrics.open_set_f1_score, metrics.known_f1_score, metrics.open_f1_score)}
    for metric, how in (of_metrics | {metrics.open_set_auroc: columns, metrics.fpr_at_tpr: columns}).items():
        for truth in (y, np.where(y == 5, -1, y)):
            with pytest.warns(UserWarning, match=said):
                found = make_scorer(metric, **how)(clf, X, truth)
            # decision_function and score_samples order nearly all rows alike
            assert found == pytest.approx(metrics.make_open_set_scorer(metric)(clf, X, truth), abs=0.03 if how else 0)
    known = y < 4
    make_scorer(metrics.open_set_accuracy)(clf, X[known], y[known])  # no warning: every label is known or open
    with pytest.raises(ValueError, match="must be one-dimensional"):
        metrics.open_set_auroc(y, clf.decision_function(X), labels=clf.classes_)


def test_a_search_whose_folds_hold_no_open_sample_says_so_once():
    X, y = make_open_blobs(180, 4, n_known=3, open_share=0.0, class_sep=3.0, random_state=0)
    clf, grid = EllipsoidOpenSetClassifier(random_state=0), {"beta": [0.25, 0.5]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(clf, grid, cv=3).fit(X, y)
        clf.fit(X, y).score(X, y)
        GridSearchCV(clf, grid, cv=OpenSetKFold(3), scoring=metrics.open_set_f1_scorer).fit(X, y)
    (said,) = [each for each in caught if "hold no open sample" in str(each.message)]
    assert "cv=OpenSetKFold()" in str(said.message)
    assert said.filename == __file__
