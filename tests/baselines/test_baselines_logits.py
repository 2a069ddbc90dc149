"""Promise: scores of logits are the formulas', whatever classifier the logits come from; weights are respected."""

import pickle

import numpy as np
import pytest
from logit_helpers import Given
from scipy.sparse import coo_array, csr_array, vstack
from scipy.special import softmax
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import get_tags

from skellipsoid import choose_to_label
from skellipsoid.baselines import EnergyClassifier, MaxLogitClassifier, SoftmaxOpenSetClassifier

ALL = [SoftmaxOpenSetClassifier, MaxLogitClassifier, EnergyClassifier]


def from_logits(classifier, rows=None, y=None):
    rows = 4 * np.eye(3) if rows is None else rows
    return classifier.set_params(estimator=Given()).fit(rows, np.arange(3) if y is None else y)


def knownness(classifier, X):
    return classifier.score_samples(X) + classifier.threshold_


def three_clusters(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["a", "b", "c"], rows))
    centres = {"a": (0, 6), "b": (5, -3), "c": (-5, -3)}
    return np.array([centres[label] for label in y]) + rng.normal(size=(len(y), 2)), y


def test_energy_of_three_logits():
    clf = from_logits(EnergyClassifier(threshold=0.0))
    # Of the logits 2, 1, 0 it is 2.4076; their mean is 1.
    found = knownness(clf, [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.5, 1.5, 1.5]])
    np.testing.assert_allclose(found, [2.4076 - 1, 1.8620 - 2 / 3, np.log(3)], atol=1e-4)
    rows = np.random.default_rng(0).normal(size=(100, 3))
    largest = (rows - rows.mean(axis=1, keepdims=True)).max(axis=1)
    energies = knownness(clf, rows)
    assert ((largest <= energies) & (energies <= largest + np.log(3))).all()
    np.testing.assert_allclose(largest - energies, np.log(softmax(rows, axis=1).max(axis=1)))
    cold = from_logits(EnergyClassifier(threshold=0.0, temperature=1e-3))
    np.testing.assert_allclose(knownness(cold, rows), largest, atol=2e-3)


@pytest.mark.parametrize("classifier", ALL)
@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), OneVsRestClassifier(LogisticRegression()), GaussianNB(), KNeighborsClassifier(15), SVC()],
    ids=lambda each: type(each).__name__,
)
def test_any_classifier_gives_the_logits(classifier, estimator):
    X, y = three_clusters()
    clf = classifier(estimator).fit(X, y)
    assert clf.coef_ is None
    assert clf.logit_estimator_ is not estimator
    theirs = type(estimator)(**estimator.get_params(deep=False)).fit(X, y).predict(X)
    assert (clf.predict_known(X) == theirs).mean() > 0.98
    assert (clf.predict(X) == y).mean() > (0.5 if isinstance(estimator, SVC) else 0.8)  # votes are small for logits


@pytest.mark.parametrize("classifier", ALL)
def test_a_frozen_classifier_is_used_as_it_is(classifier):
    X, y = three_clusters()
    new, truth = three_clusters(seed=1)
    fitted = LogisticRegression().fit(X, y)
    clf = classifier(FrozenEstimator(fitted)).fit(new, truth)
    np.testing.assert_array_equal(clf.logit_estimator_.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ValueError, match=r"threshold='auto' fits without .* FrozenEstimator cannot"):
        classifier(FrozenEstimator(fitted), threshold="auto").fit(new, truth)
    with_open, labels = np.append(new, np.zeros((30, 2)), axis=0), np.append(truth, np.full(30, "-1"))
    clf = classifier(FrozenEstimator(fitted), threshold="auto").fit(with_open, labels)
    assert clf.score(new, truth) > 0.9
    with pytest.raises(ValueError, match=r"estimator knows the classes \['a', 'b', 'c'\], but y holds \['a', 'b'\]"):
        classifier(FrozenEstimator(fitted)).fit(new[truth != "c"], truth[truth != "c"])


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_by_default_the_logits_are_scikit_learns_with_the_weights_of_the_samples(classes):
    X, y = three_clusters()
    X, y = X[np.isin(y, list(classes))], y[np.isin(y, list(classes))]
    weights = np.random.default_rng(0).uniform(0.1, 5, size=len(y))
    weights *= len(y) / weights.sum()
    clf = SoftmaxOpenSetClassifier(threshold=0.0, duplicates="off").fit(X, y, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    Z = (X - mean) / np.sqrt(np.average(np.square(X - mean).sum(axis=1), weights=weights))
    expected = LogisticRegression(C=3, max_iter=1000).fit(Z, y, weights).predict_proba(Z).max(axis=1)
    np.testing.assert_allclose(knownness(clf, X), expected, rtol=1e-3)
    unweighted = SoftmaxOpenSetClassifier(threshold=0.0, duplicates="off").fit(X, y)
    assert abs(unweighted.coef_ - clf.coef_).max() > 1e-3


def counts(rows=90, seed=0):
    """Sparse counts of words of three topics."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(3, size=rows)
    rates = np.full((3, 30), 0.05) + np.kron(np.eye(3), np.full((1, 10), 0.8))
    return csr_array(rng.poisson(rates[topics]).astype(float)), np.array(["a", "b", "c"])[topics]


def as_texts(X):
    return [" ".join(f"w{column} " * int(n) for column, n in enumerate(row)) for row in X.toarray()]


@pytest.mark.parametrize(("classifier", "threshold"), [*zip(ALL, ["quantile", "auto", 0.1], strict=True)])
def test_sparse_rows_and_texts_are_read_as_their_dense_form(classifier, threshold, monkeypatch):
    monkeypatch.setattr("skellipsoid.baselines._threshold.MOST_DRAWS", 1)
    (X, y), (new, _) = counts(), counts(seed=1)
    dense = classifier(LogisticRegression(), threshold=threshold, duplicates="off").fit(X.toarray(), y)
    sparse = clone(dense).fit(coo_array(X), y)
    words = CountVectorizer(vocabulary=[f"w{column}" for column in range(30)])
    text = clone(dense).set_params(estimator=make_pipeline(words, LogisticRegression())).fit(as_texts(X), y)
    text = pickle.loads(pickle.dumps(text))
    for other, rows in ((sparse, new), (sparse, new.toarray()), (text, as_texts(new))):
        assert other.threshold_ == pytest.approx(dense.threshold_)
        np.testing.assert_allclose(other.score_samples(rows), dense.score_samples(new.toarray()), atol=1e-6)
        np.testing.assert_array_equal(other.predict(rows), dense.predict(new.toarray()))
        np.testing.assert_allclose(other.decision_function(rows), dense.decision_function(new.toarray()), atol=1e-6)
    assert not hasattr(text, "_rows")
    # Copies count once, and are held out together.
    once = clone(sparse).set_params(duplicates="once").fit(X, y)
    twice = clone(once).fit(vstack([X, X]).tocsr(), [*y, *y])
    np.testing.assert_allclose(twice.score_samples(new), once.score_samples(new), atol=1e-9)
    assert twice.groups_[: len(y)].tolist() == twice.groups_[len(y) :].tolist()


def test_what_is_taken_is_what_the_estimator_takes():
    X, y = counts()
    # scikit-learn 1.6 says of few classifiers that they take sparse rows.
    theirs = get_tags(LogisticRegression()).input_tags.sparse
    assert get_tags(SoftmaxOpenSetClassifier(LogisticRegression())).input_tags.sparse == theirs
    assert not get_tags(SoftmaxOpenSetClassifier(GaussianNB())).input_tags.sparse
    with pytest.raises(ValueError, match=r"X is sparse, of shape \(90, 30\), but must be dense"):
        SoftmaxOpenSetClassifier().fit(X, y)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        SoftmaxOpenSetClassifier(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match="X has 90 rows, but y has 89 labels"):
        SoftmaxOpenSetClassifier(LogisticRegression()).fit(X, y[1:])
    fitted = SoftmaxOpenSetClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="X is sparse"):
        choose_to_label(fitted, X)
    with pytest.raises(ValueError, match="X holds the text 'hello', but features must be numbers"):
        choose_to_label(fitted, ["hello"])


def test_columns_for_pairs_of_classes_are_refused():
    X, y = three_clusters()
    X, y = np.append(X, X + 30, axis=0), np.append(y, np.where(y == "a", "d", "e"))
    with pytest.raises(ValueError, match="decision_function of SVC has 10 columns for 5 classes"):
        SoftmaxOpenSetClassifier(SVC(decision_function_shape="ovo")).fit(X, y)
