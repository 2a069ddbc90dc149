"""Promise: a question is asked where it helps; what is answered is what ``predict`` says; a rate of misses is kept."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from asking_helpers import drawn, fitted, missed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skellipsoid import predict_set, set_operating_point
from skellipsoid.baselines import BallClassifier, MahalanobisClassifier, SoftmaxOpenSetClassifier


@pytest.fixture(scope="module")
def case():
    X, y, X_new, truth = drawn(12, 30, 0)
    return fitted(X, y, known_shift=0, open_share=0.2), X_new, truth


@pytest.fixture
def clf(case):
    return deepcopy(case[0])


class TestTheThreeAnswers:
    def test_what_is_answered_is_what_predict_says_and_open_is_open_there(self, clf, case):
        assert [*predict_set(clf, case[1])] == ["action", "classes", "probability"]
        assert {*predict_set(clf, case[1]).action} == {"answer", "ask", "open"}
        for offset in (clf.offset_, -1.0, 0.5, 0.9):  # a threshold that moves later moves what is answered
            clf.offset_ = offset
            found, answers = predict_set(clf, case[1]), clf.predict(case[1])
            is_answered, is_open = found.action == "answer", found.action == "open"
            assert (found.classes[is_answered, 0] == answers[is_answered]).all()
            assert (answers[is_open] == -1).all()
            assert (found.classes[is_answered, 1:] == -1).all()
            assert (found.classes[is_open] == -1).all()

    def test_the_probability_is_how_often_it_is_right(self, clf, case):
        found = predict_set(clf, case[1])
        is_open, among = case[2] == -1, (found.classes == case[2][:, np.newaxis]).any(axis=1)
        is_right = np.where(found.action == "open", is_open, among & ~is_open)
        assert 0 <= found.probability.min() <= found.probability.max() <= 1
        for action in ("answer", "ask", "open"):
            chosen = found.action == action
            assert abs(found.probability[chosen].mean() - is_right[chosen].mean()) < 0.15

    def test_baselines(self):
        X, y, X_new, truth = drawn(6, 30, 4)
        clf = MahalanobisClassifier(threshold="auto").fit(X, y)
        found = predict_set(clf, X_new)
        assert missed(found, truth) < np.mean(clf.predict(X_new)[truth != -1] != truth[truth != -1])
        for other in (BallClassifier(), SoftmaxOpenSetClassifier(threshold="auto")):
            with pytest.raises(TypeError, match="predict_set"):
                predict_set(other.fit(X, y), X_new)

    @pytest.mark.parametrize("value", [0, 4, True, 2.0, None, "2"])
    def test_other_numbers_of_classes_are_refused(self, clf, case, value):
        with pytest.raises(ValueError, match=r"^max_classes=.* is not possible; use 1, 2 or 3\.$"):
            predict_set(clf, case[1][:2], max_classes=value)


class TestHeldOutRanks:
    def test_a_rank_is_the_place_in_a_fit_without_the_sample(self):
        X, y, *_ = drawn(5, 8, 6, spread=1.0)
        clf = fitted(X, y, duplicates="off")
        kept = clf.held_out_
        assert {*kept["rank"][~kept.is_open]} >= {1, 2}
        assert (kept["rank"][kept.is_open] == 0).all()
        assert ((kept["rank"] == 1) == (kept.label == kept.nearest_class))[~kept.is_open].all()
        assert (kept["gap"] >= 0).all()


class TestTheRate:
    @settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    @given(st.sampled_from([(2, 100), (2, 8), (5, 5), (10, 30), (40, 8)]), st.sampled_from([0.02, 0.05, 0.1, 0.2]))
    def test_it_is_kept_on_fresh_samples(self, size, rate):
        means = []
        for seed in range(3):
            X, y, X_new, truth = drawn(*size, seed)
            clf = fitted(X, y, known_shift=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that three classes cannot keep it
                set_operating_point(clf, miss_rate=rate)
            means.append(missed(predict_set(clf, X_new), truth) - max(rate, clf.asking_["missed"]))
        # The rate of new samples varies with the training samples.
        assert np.mean(means) < 0.02 + 0.3 / (size[0] * size[1]) ** 0.5

    def test_what_three_classes_cannot_keep_is_said_in_one_sentence(self):
        X, y, X_new, truth = drawn(10, 20, 3, spread=0.5)
        clf = fitted(X, y, known_shift=0)
        with pytest.warns(UserWarning, match=r"^Three classes cannot keep miss_rate=0\.05: .* are still expected"):
            set_operating_point(clf, miss_rate=0.05)
        found = predict_set(clf, X_new)
        assert {*found.action} == {"ask"}
        assert missed(found, truth) == pytest.approx(clf.asking_["missed"], abs=0.05)

    @pytest.mark.parametrize(
        ("given", "msg"),
        [
            ({"miss_rate": 1.5}, r"^miss_rate=1\.5 is not a proportion; use a number from 0 to 1\.$"),
            ({"miss_rate": 0.1, "ask_costs": {"wrong": 2}}, "^miss_rate and ask_costs are both given"),
            ({"ask_costs": {"wrongs": 2}}, "^ask_costs=.* is no mapping of costs; use the names"),
            ({"ask_costs": {"person": 0}}, "^The cost 'person' of ask_costs is 0; use a positive number"),
        ],
    )
    def test_what_is_no_rate_and_no_cost_is_refused(self, clf, given, msg):
        before = clf.offset_, clf.asking_
        with pytest.raises(ValueError, match=msg):
            set_operating_point(clf, **given)
        assert (clf.offset_, clf.asking_) == before
