"""Promise: held-out scores that a fit keeps are of samples and classes that the scoring fit did not see."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
from skellipsoid._held_out.kept import held_out_rows
from skellipsoid.baselines import BallClassifier, MahalanobisClassifier, MaxLogitClassifier, SoftmaxOpenSetClassifier
from skellipsoid.datasets import make_open_blobs
from skellipsoid.plotting import TradeOffDisplay


def blobs(n_samples=900, n_known=6):
    return make_open_blobs(n_samples, 6, n_known=n_known, open_share=0.0, class_sep=3.0, random_state=0)


@pytest.mark.parametrize("trainer", [None, EliDecide(max_iter=3, validation_fraction=0.5)])
def test_real_open_samples_are_open(trainer):
    X, y = blobs(300, 3)
    X, y = np.concatenate([X, np.full((4, 6), 40.0) + np.arange(4)[:, np.newaxis]]), np.append(y, [-1] * 4)
    clf = EllipsoidOpenSetClassifier(trainer=trainer, random_state=0).fit(X, y)
    rows = clf.held_out_
    assert 0 < np.sum(rows.label == -1) <= 4
    assert rows.is_open[rows.label == -1].all()
    assert (rows.label[~rows.is_open] >= 0).all()


def test_held_out_scores_of_a_baseline_are_of_each_sample_known_and_a_fifth_open():
    X, y = blobs()
    rows = MaxLogitClassifier(threshold="auto", duplicates="off").fit(X, y).held_out_
    known = ~rows.is_open
    np.testing.assert_array_equal(np.sort(rows.label[known]), y[np.argsort(y)])
    assert set(rows.label[rows.is_open]) == set(y)
    assert (rows.nearest_class[rows.is_open] != rows.label[rows.is_open]).all()
    assert (rows.nearest_class[known] == rows.label[known]).mean() > 0.8
    assert np.median(rows.score[rows.is_open]) < np.quantile(rows.score[known], 0.25)


def test_held_out_samples_and_classes_cost_what_new_ones_do():
    # As many classes are new as known, drawn alike.
    told, new = [], []
    for seed in range(4):
        X, y = make_open_blobs(3600, 12, n_known=24, open_share=0.0, class_sep=2.0, anisotropy=2.0, random_state=seed)
        known, train = y < 12, np.arange(len(y)) % 2 == 0
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[known & train], y[known & train])
        rows = clf.held_out_
        scores, nearest = clf.score_samples(X[~train]), clf.predict_known(X[~train])
        for offset in (-0.4, -0.2, 0.0):
            rejected = rows.score < offset
            wrong = ~rejected & (rows.nearest_class != rows.label)
            told.append([rejected[~rows.is_open].mean(), rejected[rows.is_open].mean(), wrong[~rows.is_open].mean()])
            rejected, is_known = scores < offset, known[~train]
            wrong = ~rejected & (nearest != y[~train])
            new.append([rejected[is_known].mean(), rejected[~is_known].mean(), wrong[is_known].mean()])
    told, new = (np.reshape(part, (4, 3, 3)).mean(axis=0) for part in (told, new))
    assert np.ptp(new[:, 1]) > 0.1
    np.testing.assert_allclose(told, new, atol=0.06)


@pytest.mark.parametrize("threshold", ["auto", "quantile", "paper", 0.5])
def test_methods_with_a_threshold_have_them_where_something_was_held_out(threshold, tmp_path):
    X, y = blobs()
    clf = SoftmaxOpenSetClassifier(threshold=threshold).fit(X, y)
    if threshold in ("paper", 0.5):
        assert not hasattr(clf, "held_out_")
        with pytest.raises(TypeError, match="reads held_out_, which this SoftmaxOpenSetClassifier does not have: pass"):
            TradeOffDisplay.from_estimator(clf)
        return
    rows = clf.held_out_
    assert (~rows.is_open).sum() == len(X)
    assert rows.is_open.any() == (threshold == "auto")
    assert (rows.nearest_class[rows.is_open] != rows.label[rows.is_open]).all()
    skellipsoid.save(clf, tmp_path / "model")
    np.testing.assert_array_equal(skellipsoid.load(tmp_path / "model").held_out_.label, rows.label)
    if threshold == "auto":
        display = TradeOffDisplay.from_estimator(make_pipeline(StandardScaler(), clf).fit(X, y))
        assert display.open_noticed[display.offsets == 0.0] > 0.3
        return
    with pytest.raises(ValueError, match="held out no class, so that nothing stands in for open samples: pass new"):
        TradeOffDisplay.from_estimator(clf)


def test_rows_that_the_fit_has_seen_are_not_called_held_out():
    X, y = blobs()
    frozen = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, y))
    assert SoftmaxOpenSetClassifier(frozen, threshold="quantile").fit(X, y).held_out_ is None
    with pytest.warns(UserWarning, match="threshold is chosen on the training samples"):
        clf = MahalanobisClassifier().fit([[0.0, 0.0], [5.0, 5.0]], [0, 1])
    with pytest.raises(ValueError, match="held out no sample"):
        TradeOffDisplay.from_estimator(clf)
    with pytest.raises(TypeError, match="this BallClassifier does not have"):
        TradeOffDisplay.from_estimator(BallClassifier().fit(X, y))


@pytest.mark.parametrize(
    ("name", "value"), [("assigned", 9), ("classes", 9), ("assigned", -1), ("distances", np.nan), ("weights", 0.0)]
)
def test_impossible_held_out_scores_are_not_saved(name, value, tmp_path):
    X, y = blobs(60, 2)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    getattr(clf._held_out, name)[0] = value
    with pytest.raises(ValueError, match=r"load would refuse it .*_held_out"):
        skellipsoid.save(clf, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unfitted_classifier_is_named_as_one():
    with pytest.raises(NotFittedError, match="This EllipsoidOpenSetClassifier instance is not fitted yet"):
        held_out_rows(EllipsoidOpenSetClassifier(), "train")
