import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skellipsoid import EllipsoidOpenSetClassifier, metrics
from skellipsoid.metrics import make_open_set_scorer
from skellipsoid.model_selection import OpenSetKFold

SCORERS = {
    "open_set_f1": metrics.open_set_f1_scorer,
    "known_f1": metrics.known_f1_scorer,
    "open_f1": metrics.open_f1_scorer,
    "accuracy": metrics.open_set_accuracy_scorer,
    "auroc": metrics.auroc_scorer,
    "aupr": metrics.aupr_scorer,
    "fpr": metrics.neg_fpr_at_tpr_scorer,
    "oscr": metrics.oscr_scorer,
}


@pytest.fixture(scope="module")
def blobs():
    X, codes = make_blobs(240, n_features=4, centers=6, cluster_std=1.0, random_state=0)
    return X, np.array(["a", "b", "c", "d", "e", "f"])[codes]


@pytest.fixture(scope="module")
def fitted(blobs):
    X, y = blobs
    known = ~np.isin(y, ["e", "f"])
    return EllipsoidOpenSetClassifier(max_iter=5, random_state=0).fit(X[known], y[known])


def test_unknown_classes_are_read_as_open(blobs, fitted):
    X, y = blobs
    truth = np.where(np.isin(y, ["e", "f"]), "-1", y)
    predicted = fitted.predict(X)
    assert metrics.open_set_accuracy_scorer(fitted, X, y) == np.mean(truth == predicted)
    assert metrics.open_set_f1_scorer(fitted, X, y) == metrics.open_set_f1_score(truth, predicted)
    scores = fitted.score_samples(X)
    assert metrics.auroc_scorer(fitted, X, y) == metrics.open_set_auroc(truth, scores)
    assert metrics.neg_fpr_at_tpr_scorer(fitted, X, y) == -metrics.fpr_at_tpr(truth, scores)
    assert metrics.oscr_scorer(fitted, X, y) == metrics.oscr_score(truth, fitted.predict_known(X), scores)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_work_in_cross_validation_and_survive_pickle(name, blobs):
    X, y = blobs
    scorer = pickle.loads(pickle.dumps(SCORERS[name]))
    model = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(max_iter=3, random_state=0))
    scores = cross_val_score(model, X, y, cv=OpenSetKFold(3), scoring=scorer, error_score="raise")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("classifier", [LogisticRegression(), LinearSVC()], ids=["proba", "decision"])
def test_scorers_take_any_classifier_with_classes(classifier, blobs):
    X, y = blobs
    found = cross_validate(classifier, X, y, cv=OpenSetKFold(3), scoring=SCORERS, error_score="raise")
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in SCORERS)
    assert (found["test_open_f1"] == 0).all()  # it never answers open


def test_two_classes_rank_by_the_distance_to_the_border():
    X = np.array([[-3.0], [-2.0], [2.0], [3.0], [0.1]])
    classifier = LogisticRegression().fit(X[:4], [0, 0, 1, 1])
    assert metrics.auroc_scorer(classifier, X, [0, 0, 1, 1, 7]) == 1.0
    assert metrics.oscr_scorer(classifier, X, [0, 0, 1, 1, 7]) == 1.0


def test_multi_metric_search_refits_by_an_open_set_scorer(blobs):
    X, y = blobs
    search = GridSearchCV(
        EllipsoidOpenSetClassifier(max_iter=3, random_state=0),
        {"beta": [0.1, 0.5], "alpha": [0.6]},
        cv=OpenSetKFold(3),
        scoring=SCORERS,
        refit="open_set_f1",
        error_score="raise",
    ).fit(X, y)
    for i, beta in enumerate((0.1, 0.5)):
        model = EllipsoidOpenSetClassifier(beta=beta, random_state=0)
        for fold, (train, test) in enumerate(OpenSetKFold(3).split(X, y)):
            answers = model.fit(X[train], y[train]).predict(X[test])
            truth = np.where(np.isin(y[test], model.classes_), y[test], "-1")
            for name, metric in (("open_set_f1", metrics.open_set_f1_score), ("known_f1", metrics.known_f1_score)):
                expected = metric(truth, answers, labels=model.classes_)
                assert search.cv_results_[f"split{fold}_test_{name}"][i] == expected
    means = search.cv_results_["mean_test_open_set_f1"]
    assert means[0] != means[1]
    assert search.best_index_ == means.argmax()


def test_a_class_of_another_name_is_open_for_a_fitted_search(blobs):
    X, y = blobs
    search = GridSearchCV(
        EllipsoidOpenSetClassifier(random_state=0),
        {"beta": [0.5]},
        cv=OpenSetKFold(3),
        scoring=metrics.open_set_f1_scorer,
        error_score="raise",
    ).fit(X, y)
    renamed = np.where(y == "a", "zzz", y)
    found = metrics.open_set_f1_scorer(search, X, renamed)
    expected = metrics.open_set_f1_score(np.where(y == "a", "-1", y), search.predict(X), labels=search.classes_)
    assert found == expected < metrics.open_set_f1_score(y, search.predict(X), labels=search.classes_, zero_division=1)


def test_scorer_says_what_it_is():
    scorer = make_open_set_scorer(metrics.fpr_at_tpr, response="score", greater_is_better=False, tpr=0.9)
    assert "fpr_at_tpr" in repr(scorer)
    assert "tpr=0.9" in repr(scorer)


def test_errors_are_sentences(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="'proba' is unknown; use"):
        make_open_set_scorer(metrics.open_f1_score, response="proba")
    with pytest.raises(TypeError, match="StandardScaler has no classes_"):
        metrics.open_f1_scorer(StandardScaler().fit(X), X, y)
