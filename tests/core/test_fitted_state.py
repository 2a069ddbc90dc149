"""Promise: answers depend on what a fit stored, on nothing that is set later, and on one fit alone."""

import pickle
import threading
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone

from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor, load, predict_open_proba, predict_set, save
from skellipsoid._base import BoundaryOpenSetClassifier
from skellipsoid.baselines import MahalanobisClassifier, PLDAClassifier
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def blobs():
    X, y = make_open_blobs(1200, 6, n_known=6, open_share=0.1, random_state=0)
    train = (y != -1) & (np.arange(1200) < 700)
    return X[train], y[train], X[700:1100]


def test_parameters_that_are_set_after_the_fit_change_no_answer(blobs, tmp_path):
    X, y, log = blobs
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    answers, shares = predict_set(clf, log), predict_open_proba(clf, log)
    other = deepcopy(clf)
    predict_set(other, log[:3])
    other.set_params(open_share=0.01, known_shift=0.0, beta=0.1)
    save(other, tmp_path / "model")
    for same in (other, deepcopy(other), pickle.loads(pickle.dumps(other)), load(tmp_path / "model")):
        assert (predict_set(same, log).action == answers.action).all()
        np.testing.assert_array_equal(predict_open_proba(same, log), shares)
    assert (predict_set(other.fit(X, y), log).action != answers.action).any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "classifier",
    [MahalanobisClassifier(covariance="relative"), PLDAClassifier(), EllipsoidOpenSetClassifier(random_state=0)],
)
def test_a_score_that_is_no_number_is_open(classifier, blobs):
    X, y, _ = blobs
    far = np.full((3, 6), 1e155) * [[1], [2], [-1]]
    classifier = clone(classifier).fit(X, y)
    assert (classifier.predict(far) == -1).all()
    assert (classifier.score_samples(far) == -np.inf).all()


def test_a_classifier_that_another_thread_fits_is_the_old_or_the_new_one(blobs):
    X, y, log = blobs
    fits = [(X, y), (X[y < 3], y[y < 3] + 10)]
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(*fits[1])
    wanted = {tuple(clone(clf).fit(*fit).predict(log[:50]).tolist()) for fit in fits}
    thread = threading.Thread(target=lambda: [clf.fit(*fit) for fit in fits * 2])
    thread.start()
    found = set()
    while thread.is_alive():
        found |= {tuple(each.predict(log[:50]).tolist()) for each in (clf, pickle.loads(pickle.dumps(clf)))}
    assert found <= wanted


def test_a_monitor_is_cloned_with_its_fitted_estimator_and_a_refused_fit_changes_nothing(blobs):
    X, y, log = blobs
    monitor = OpenShareMonitor(EllipsoidOpenSetClassifier(random_state=0).fit(X, y)).fit(log)
    assert clone(monitor).fit(log).reference_open_share_ == monitor.reference_open_share_
    state = dict(vars(monitor))
    with pytest.raises(ValueError, match="NaN"):
        monitor.fit(np.full_like(log, np.nan))
    assert vars(monitor) == state


class _Balls(BoundaryOpenSetClassifier):
    def _fit_boundaries(self, samples):
        self.means_ = np.array([samples.features[samples.classes == k].mean(axis=0) for k in range(len(self.classes_))])

    def _score_all(self, X):
        return 5 - np.linalg.norm(X[:, None] - self.means_, axis=2)

    def _score_assigned(self, X):
        scores = self._score_all(X)
        return scores.argmax(axis=1), scores.max(axis=1)


def test_a_method_of_ones_own_needs_what_the_page_of_the_base_says(blobs):
    X, y, _ = blobs
    assert _Balls().fit(X, y).score(X, y) > 0.9
