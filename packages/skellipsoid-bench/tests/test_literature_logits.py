"""Promise: scores of DOC and OpenMax are the formulas', whatever classifier the logits come from."""

import numpy as np
import pytest
from logit_helpers import Given
from scipy.special import softmax
from scipy.stats import gumbel_l
from sklearn.linear_model import LogisticRegression

from skellipsoid.baselines import SoftmaxOpenSetClassifier
from skellipsoid_bench.literature import DOCClassifier, OpenMaxClassifier


def from_logits(classifier, rows, y):
    return classifier.set_params(estimator=Given()).fit(rows, y)


def three_clusters(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["a", "b", "c"], rows))
    centres = {"a": (0, 6), "b": (5, -3), "c": (-5, -3)}
    return np.array([centres[label] for label in y]) + rng.normal(size=(len(y), 2)), y


# DOC


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_doc_has_a_logistic_regression_of_each_class_against_the_others(classes):
    X, y = three_clusters()
    X, y = X[np.isin(y, list(classes))], y[np.isin(y, list(classes))]
    weights = np.random.default_rng(0).uniform(0.1, 5, size=len(y))
    weights *= len(y) / weights.sum()
    clf = DOCClassifier(threshold=0.0, duplicates="off").fit(X, y, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    Z = (X - mean) / np.sqrt(np.average(np.square(X - mean).sum(axis=1), weights=weights))
    models = [LogisticRegression(C=3, max_iter=1000).fit(Z, y == k, weights) for k in classes]
    expected = np.max([model.predict_proba(Z)[:, 1] for model in models], axis=0)
    np.testing.assert_allclose(clf.score_samples(X), expected, rtol=1e-3)
    given = DOCClassifier(LogisticRegression(), threshold=0.0, duplicates="off").fit(X, y)
    if len(classes) == 2:  # one logit, for the second class
        theirs = LogisticRegression().fit(X, y).predict_proba(X).max(axis=1)
        np.testing.assert_allclose(given.score_samples(X), theirs)


def odds(p):
    return np.log(np.array(p) / (1 - np.array(p)))


def test_doc_thresholds_of_a_class():
    # σ = 0.1291, t = 1 − 3 σ; a divisor n − 1 would give 0.5757. The other class has σ = 0.4301 and the floor.
    own, y = odds([0.9, 0.8, 1 - 1e-9, 0.9, 0.4]), np.array([0, 0, 0, 1, 1])
    rows = np.where(y[:, np.newaxis] == [0, 1], own[:, np.newaxis], -9.0)
    for alpha, expected in ((3.0, [0.6127, 0.5]), (0.0, [1.0, 1.0])):
        found = from_logits(DOCClassifier(alpha=alpha, duplicates="off"), rows, y).thresholds_
        np.testing.assert_allclose(found, expected, atol=1e-4)


# OpenMax

#: Two directions among logits whose sum is 0.
PLANE = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])


def of_distances(*steps):
    """OpenMax whose class 0 has rows at these steps from its mean, in a plane."""
    rows = np.array(steps) @ PLANE + [9.0, -4.0, -5.0]
    return from_logits(
        OpenMaxClassifier(tail_size=len(steps), n_ranked=1, threshold=0.0, duplicates="off"),
        np.concatenate([rows, 9 * np.eye(3)[1:]]),
        [*[0] * len(steps), 1, 2],
    )


def beyond(classifier, distances):
    """Probability that rows so far from the mean of class 0 are beyond it, out of their probability of the class."""
    rows = np.add([9.0, -4.0, -5.0], np.multiply.outer(distances, PLANE[1]))
    shares = classifier.decision_function(rows)
    # With one class ranked, the logit a of class 0 is divided into a w of the unknown and a (1 − w).
    return 1 - (np.log(shares[:, 0] / shares[:, 1]) + rows[:, 1]) / rows[:, 0]


def test_tail_of_five_distances():
    side = (1 - 0.5625**2) ** 0.5  # 1 + 2 + 3, 4 and 5 are the sides of a triangle
    clf = of_distances([1, 0], [2, 0], [3, 0], [4 * -0.5625, 4 * side], [-3.75, -4 * side])
    assert clf.tail_locations_[0] == pytest.approx(3.7034, abs=1e-3)
    assert clf.tail_scales_[0] == pytest.approx(1.2667, abs=1e-3)
    np.testing.assert_allclose(beyond(clf, [0.0, 1.0, 3.0, 5.0, 7.0]), [0.0523, 0.1116, 0.4367, 0.9382, 1.0], atol=1e-3)


@pytest.mark.filterwarnings("ignore:OpenMax")  # of many ranked
@pytest.mark.parametrize("n_ranked", [1, 3, 10])
def test_logits_are_revised_by_their_rank(n_ranked):
    rng = np.random.default_rng(0)
    rows, y = 4 * np.eye(6)[np.arange(120) % 6] + rng.normal(size=(120, 6)), np.arange(120) % 6
    clf = from_logits(OpenMaxClassifier(n_ranked=n_ranked, threshold=0.0, duplicates="off"), rows, y)
    tails = gumbel_l(clf.tail_locations_, clf.tail_scales_)
    for given, found in zip(rows, clf.decision_function(rows), strict=True):
        logits = given - given.mean()
        outlying = tails.cdf(np.linalg.norm(logits - clf.mean_logits_, axis=1))
        revised, unknown = logits.copy(), 0.0
        for rank, k in enumerate(np.argsort(-logits)[:n_ranked]):
            moved = logits[k] * outlying[k] * (1 - rank / min(n_ranked, 6))
            revised[k] -= moved
            unknown += moved
        np.testing.assert_allclose(found, softmax([unknown, *revised])[1:], atol=1e-9)


def test_openmax_learns_from_rows_that_are_classified_correctly():
    rng = np.random.default_rng(0)
    rows, y = 4 * np.eye(3)[np.arange(90) % 3] + 0.3 * rng.normal(size=(90, 3)), np.arange(90) % 3
    clf = from_logits(OpenMaxClassifier(), rows, y)
    wrong = np.append(rows, [[0.0, 9.0, 0.0]], axis=0)
    # A row of class 0 with the logits of class 1 moves nothing.
    refitted = from_logits(OpenMaxClassifier(duplicates="off"), wrong, np.append(y, 0))
    np.testing.assert_allclose(refitted.mean_logits_, clf.mean_logits_, atol=1e-12)
    np.testing.assert_allclose(refitted.tail_scales_, clf.tail_scales_)


def test_openmax_that_calls_its_own_rows_unknown_says_so():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 30
    # The right logit is 3, those of nine other classes are 2, and of the rest -1.
    rows = 3.0 * np.eye(30)[y] + 0.1 * rng.normal(size=(300, 30))
    for shift in range(1, 10):
        rows[np.arange(300), (y + shift) % 30] = 2 + 0.1 * rng.normal(size=300)
    rows[rows < 1] -= 1
    with pytest.warns(UserWarning, match="OpenMax takes .*% of its own training .*unknown.*lower n_ranked") as caught:
        clf = OpenMaxClassifier(Given(), threshold=0.0).fit(rows, y)
    assert caught[0].filename == __file__
    assert (clf.predict(rows) == -1).mean() > 0.5
    few = from_logits(OpenMaxClassifier(threshold=0.0, n_ranked=1, tail_size=2), rows, y)
    assert (few.predict(rows) == y).mean() > 0.5


def test_openmax_without_a_tail_is_softmax():
    X, y = three_clusters()
    rows = 8 * np.random.default_rng(1).normal(size=(300, 2))
    plain = SoftmaxOpenSetClassifier().fit(X, y)
    same = OpenMaxClassifier(tail_size=0).fit(X, y)
    np.testing.assert_allclose(same.score_samples(rows), plain.score_samples(rows), atol=1e-12)
    np.testing.assert_array_equal(same.predict(rows), plain.predict(rows))
    other = OpenMaxClassifier(tail_size=20).fit(X, y)
    assert abs(other.score_samples(rows) - plain.score_samples(rows)).max() > 0.1
