"""Figures of one run: the oracle, the coarse confusion matrix."""

import numpy as np
import pytest

from skellipsoid.metrics import open_set_f1_score
from skellipsoid_bench._judge import judge, oracle_f1, read_answers


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_is_the_best_of_all_thresholds(seed, ties):
    rng = np.random.default_rng(seed)
    known = np.array(["a", "b", "c"])
    truth = rng.choice(["a", "b", "c", "-1"], 40)
    nearest = np.where(rng.random(40) < 0.7, np.where(truth == "-1", "b", truth), rng.choice(known, 40))
    score = rng.normal(size=40) + (truth != "-1")
    score = score.round(0) if ties else score
    by_hand = [
        open_set_f1_score(truth, np.where(score >= t, nearest, "-1"), labels=known, zero_division=0)
        for t in [*np.unique(score), np.inf]
    ]
    assert oracle_f1(truth, nearest, score, known) == pytest.approx(max(by_hand))


class Answers:
    """A fitted classifier of one's own, with another open label."""

    classes_ = np.array(["a", "b", "none of these"])
    open_label_ = "none of these"

    def score_samples(self, X):
        return X[:, 0]

    def predict_known(self, X):
        return np.where(X[:, 1] > 0, "a", "b")


def figures_of(classifier, X, predicted, truth, classes=("a", "b"), **changes):
    """Figures of the answers of a classifier."""
    classes = np.array(classes)
    answers = read_answers(classifier, np.asarray(X), predicted, classes)
    return judge(answers._replace(**changes), np.asarray(truth), classes)


class ScoreAlone(Answers):
    """A classifier that only says how known a sample looks."""

    predict_known = property()


def test_a_score_alone_gives_the_figures_of_a_score():
    given = ScoreAlone(), [[3.0], [2.0], [1.0], [2.5]], ["a", "b", "a", "a"], ["a", "b", "-1", "-1"]
    figures = figures_of(*given)
    assert figures["auroc"] == 75.0
    assert figures["fpr95"] == 50.0
    assert (figures["oscr"], figures["oracle_f1"]) == (None, None)
    figures = figures_of(*given, score=None)
    assert {name for name, value in figures.items() if value is None} == {
        *("auroc", "aupr_known", "aupr_open", "fpr95", "oscr", "oracle_f1")
    }


class Raising(Answers):
    def score_samples(self, X):
        raise TypeError("unsupported operand")


class Codes(Answers):
    classes_ = np.array([0, 1])


@pytest.mark.parametrize(
    ("classifier", "predicted", "message"),
    [
        (Answers(), ["a", "-1"], r"^Answers predicts '-1' for 1 of 2 .* open label 'none of these'; let predict give"),
        (Answers(), [["a"], ["b"]], r"^predict of Answers has the shape \(2, 1\), but needs one entry for each of 2"),
        (Codes(), ["a", "b"], r"^classes_ of Codes holds '0', which is no label of y; keep the labels that fit is"),
        (Raising(), ["a", "b"], r"^unsupported operand$"),
    ],
)
def test_answers_that_cannot_be_judged_are_refused(classifier, predicted, message):
    with pytest.raises((ValueError, TypeError), match=message):
        figures_of(classifier, np.zeros((2, 2)), predicted, ["a", "b"])
