"""Promise: a score of one's own gets its threshold as all others do, and a wrong score is refused by name."""

import sys
from pathlib import Path

import numpy as np
import pytest

from skellipsoid import ScoreOpenSetClassifier
from skellipsoid.baselines import MahalanobisClassifier
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_f1_score

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


class Nearest(ScoreOpenSetClassifier):
    """Minus the distance to the weighted class mean; it has the parameters of its base."""

    def fit_scores(self, X, classes, sample_weight):
        parts = [classes == k for k in range(classes.max() + 1)]
        self.means_ = [np.average(X[part], axis=0, weights=sample_weight[part]) for part in parts]

    def class_scores(self, X):
        return -np.column_stack([np.linalg.norm(X - mean, axis=1) for mean in self.means_])


@pytest.fixture
def blobs():
    X, y = make_open_blobs(600, 4, n_known=6, open_share=0.3, random_state=0)
    is_train = (np.arange(len(X)) % 2 == 0) & (y != -1)
    return X[is_train], y[is_train], X[1::2], y[1::2]


class Counting(Nearest):
    """Has an attribute of its own that is no parameter."""

    def __init__(self, *, threshold="auto"):
        self.threshold, self._n_fits = threshold, 0

    def fit_scores(self, X, classes, sample_weight):
        super().fit_scores(X, classes, sample_weight)
        self._n_fits += 1


def test_what_a_subclass_keeps_stays_and_what_a_fit_stored_goes(blobs):
    X, y, *_ = blobs
    clf = Counting().fit(X, y)
    assert len(clf.held_out_.score)
    clf.set_params(threshold=-1.0).fit(X, y)
    assert clf._n_fits == 2
    assert not hasattr(clf, "held_out_")
    stored = vars(clf).copy()
    with pytest.raises(ValueError, match="open label"):
        clf.fit(X, np.full(len(X), -1))
    assert vars(clf).keys() == stored.keys()  # a fit that fails changes nothing
    assert clf.threshold_ == stored["threshold_"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: scores[:, :1], r"has the shape \(\d+, 1\); return numbers of the shape \(\d+, \d\)\.$"),
        (lambda scores: np.nan * scores, "holds NaN; return numbers of the shape"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(change, message, blobs, monkeypatch):
    right = Nearest.class_scores
    monkeypatch.setattr(Nearest, "class_scores", lambda self, X: change(right(self, X)))
    with pytest.raises(ValueError, match=f"^class_scores of Nearest {message}"):
        Nearest().fit(*blobs[:2])


def test_the_mixture_of_the_guide_is_short_and_near_the_density_of_the_package(blobs, monkeypatch):
    monkeypatch.syspath_prepend(GUIDE)
    from mixture import Mixture

    X, y, test, truth = blobs
    ours = MahalanobisClassifier(covariance="class", threshold="auto").fit(X, y).predict(test)
    theirs = Mixture(random_state=0).fit(X, y).predict(test)
    f1 = [open_set_f1_score(truth, answers, labels=np.unique(y)) for answers in (ours, theirs)]
    assert f1[1] > f1[0] - 0.1
    assert Mixture(random_state=0).fit(X[y < 3][:7], y[y < 3][:7]).predict(X[:1])[0] in {-1, *y}
    sys.modules.pop("mixture")
