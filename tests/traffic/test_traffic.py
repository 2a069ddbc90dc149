"""The open share of unlabelled traffic, and probabilities with a column for open."""

from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share, predict_open_proba, set_operating_point
from skellipsoid.baselines import MahalanobisClassifier, SoftmaxOpenSetClassifier
from skellipsoid.datasets import make_open_blobs

N_TRAIN = 1200


@pytest.fixture(scope="module")
def blobs():
    """Known samples to train on, more of them, and open ones."""
    X, y = make_open_blobs(6000, 6, n_known=6, open_share=0.3, random_state=0)
    known = np.flatnonzero(y != -1)
    train, rest = known[:N_TRAIN], known[N_TRAIN:]
    return X[train], y[train], X[rest], X[y == -1]


@pytest.fixture(scope="module")
def fitted(blobs):
    return EllipsoidOpenSetClassifier(random_state=0).fit(*blobs[:2])


def mixed(blobs, share, n=600, seed=0):
    rng = np.random.default_rng(seed)
    n_open = round(share * n)
    return np.concatenate([rng.permutation(blobs[2])[: n - n_open], rng.permutation(blobs[3])[:n_open]])


def labelled(blobs, share, n_labels, n=600, seed=0):
    """A log in random order, of which the first messages are labelled."""
    X = mixed(blobs, share, n, seed)
    is_open = np.arange(n) >= n - round(share * n)
    order = np.random.default_rng(seed).permutation(n)
    X, is_open = X[order], is_open[order]
    return X, is_open, [None if i >= n_labels else -1 if is_open[i] else 0 for i in range(n)]


@pytest.mark.parametrize("n_labels", [0, 30])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
def test_interval_covers_the_share(fitted, blobs, share, n_labels):
    told = []
    for seed in range(12):
        X, _, y = labelled(blobs, share, n_labels, seed=seed)
        told.append(estimate_open_share(fitted, X, y if n_labels else None))
    assert np.mean([bunch.low <= share for bunch in told]) >= 0.9
    assert np.mean([bunch.high >= share for bunch in told]) >= 0.9
    assert np.mean([abs(bunch.share - share) for bunch in told]) < 0.06
    for bunch in told:
        assert 0 <= bunch.low <= bunch.share <= bunch.high <= 1
        assert bunch.class_shares.sum() == pytest.approx(1 - bunch.share)


def test_what_the_limits_rest_on_is_always_said_without_labels(fitted, blobs):
    for share in (0.0, 0.3):
        note = estimate_open_share(fitted, mixed(blobs, share)).note
        assert note.startswith("Nothing without labels tells known messages that have moved from new ones")
        assert "Hardly" not in note
    assert "Hardly any sample resembles" in estimate_open_share(fitted, mixed(blobs, 0.0) + 100).note
    X, _, y = labelled(blobs, 0.3, 30)
    assert estimate_open_share(fitted, X, y).note is None


def test_copies_widen_the_interval_and_do_not_move_it(fitted, blobs):
    X = mixed(blobs, 0.3, n=40)
    once, thrice = estimate_open_share(fitted, X), estimate_open_share(fitted, np.repeat(X, 3, axis=0))
    other = estimate_open_share(fitted, mixed(blobs, 0.3, n=120))
    for name in ("share", "low", "high"):
        assert thrice[name] == pytest.approx(once[name], abs=1e-9)
    assert other.high - other.low < thrice.high - thrice.low


@pytest.mark.parametrize("function", [estimate_open_share, predict_open_proba])
def test_errors_are_one_sentence(function, fitted, blobs):
    X, y = blobs[:2]
    with pytest.raises(NotFittedError):
        function(EllipsoidOpenSetClassifier(), X)
    with pytest.raises(TypeError, match="reads held_out_, which this MahalanobisClassifier does not have"):
        function(MahalanobisClassifier(threshold=0.5).fit(X, y), X)
    with pytest.warns(UserWarning, match="Classes without spread"):
        untested = EllipsoidOpenSetClassifier(random_state=0).fit(np.repeat(X[:2], 3, axis=0), np.repeat([0, 1], 3))
    with pytest.raises(ValueError, match="held out none; fit with several"):
        function(untested, X)
    with pytest.raises(ValueError, match="3 features"):
        function(fitted, X[:, :3])
    with pytest.raises(TypeError, match="on another scale for a SoftmaxOpenSetClassifier"):
        function(SoftmaxOpenSetClassifier(threshold="auto").fit(X[:300], y[:300]), X)


# Probabilities


def test_rows_sum_to_one_and_open_grows_with_the_share(fitted, blobs):
    X = mixed(blobs, 0.5)
    few, half, many = (predict_open_proba(fitted, X, share) for share in (0.1, None, 0.9))
    assert few.shape == (len(X), len(fitted.classes_) + 1)
    for probabilities in (few, half, many):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert (probabilities >= 0).all()
    assert (few[:, -1] <= half[:, -1]).all()
    assert (half[:, -1] <= many[:, -1]).all()
    assert few[:, -1].mean() < half[:, -1].mean() < many[:, -1].mean()
    assert (fitted.classes_[half[:, :-1].argmax(axis=1)] == fitted.predict_known(X)).mean() > 0.9
    assert (half[:300, :-1].max(axis=1) > 0.5 * (1 - half[:300, -1])).mean() > 0.98


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_probability_of_open_is_calibrated(fitted, blobs, share):
    X = mixed(blobs, share)
    is_open = np.arange(len(X)) >= len(X) - round(share * len(X))
    told = predict_open_proba(fitted, X, share)[:, -1]
    assert told.mean() == pytest.approx(share, abs=0.08)
    assert told[is_open].mean() > 0.5 + told[~is_open].mean()


def test_what_the_line_learned_is_what_probabilities_use(fitted, blobs):
    X, is_open, y = labelled(blobs, 0.1, 40)
    before = predict_open_proba(fitted, X)[:, -1]
    clf = set_operating_point(copy(fitted), X, y)
    told = predict_open_proba(clf, X)[:, -1]
    assert told.mean() == pytest.approx(clf.traffic_["open_share"], abs=0.03)
    assert np.mean((told - is_open) ** 2) < np.mean((before - is_open) ** 2)
    assert (predict_open_proba(clf, X, 0.9)[:, -1] >= told).all()
    assert (predict_open_proba(set_operating_point(clf), X)[:, -1] == before).all()
