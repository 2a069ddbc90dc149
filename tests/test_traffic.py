"""The open share of unlabelled traffic, and probabilities with a column for open."""

from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share, predict_open_proba
from skellipsoid._traffic._held import EDGES, bins, sharpened
from skellipsoid._traffic._mixture import fit_mixture
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


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_interval_covers_the_share(fitted, blobs, share):
    found = [estimate_open_share(fitted, mixed(blobs, share, seed=seed)) for seed in range(20)]
    assert np.mean([bunch.reason is None for bunch in found]) >= 0.8
    told = [bunch for bunch in found if bunch.reason is None]
    assert np.mean([bunch.low <= share <= bunch.high for bunch in told]) >= 0.85
    assert np.mean([bunch.high - bunch.low for bunch in told]) < 0.2
    for bunch in told:
        assert bunch.low <= bunch.share <= bunch.high
        assert bunch.class_shares.sum() == pytest.approx(1 - bunch.share)


def test_share_of_classes_follows_the_traffic(fitted, blobs):
    X = mixed(blobs, 0.2)
    told = estimate_open_share(fitted, X)
    most = told.class_shares.argmax()
    of_class = X[fitted.predict(X) == fitted.classes_[most]]
    more = estimate_open_share(fitted, np.concatenate([X, of_class]))
    assert more.class_shares[most] > told.class_shares[most]
    assert more.share < told.share


def test_share_grows_with_open_samples(fitted, blobs):
    shares = [estimate_open_share(fitted, mixed(blobs, share)).share for share in (0.0, 0.1, 0.3, 0.5, 0.7)]
    assert (np.diff(shares) > 0).all()


def test_copies_widen_the_interval_and_do_not_move_it(fitted, blobs):
    X = mixed(blobs, 0.3)
    once, thrice = estimate_open_share(fitted, X), estimate_open_share(fitted, np.repeat(X, 3, axis=0))
    other = estimate_open_share(fitted, mixed(blobs, 0.3, n=1800))
    assert thrice.share == pytest.approx(once.share, abs=0.01)
    assert thrice.high - thrice.low == pytest.approx(once.high - once.low, abs=0.02)
    assert other.high - other.low < thrice.high - thrice.low


@pytest.mark.parametrize("size", [0.4, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["noise", "shift"])
def test_declines_if_the_known_part_has_moved(fitted, blobs, kind, size):
    moves = np.random.default_rng(0).normal(scale=size * blobs[0].std(), size=(600, 6))
    found = estimate_open_share(fitted, mixed(blobs, 0.0) + (moves if kind == "noise" else moves[:1]))
    if size > 0.5:
        assert found.reason is not None
    if found.reason is None:
        assert found.low == 0
    else:
        assert np.isnan([found.share, found.low, found.high, *found.class_shares]).all()


def test_declines_if_the_traffic_lies_at_the_class_means(fitted, blobs):
    X = mixed(blobs, 0.0)
    means = fitted.centroids_[fitted._encode(fitted.predict_known(X))]
    assert "nearer to the class centres" in estimate_open_share(fitted, (X + means) / 2).reason


def test_declines_for_few_samples_and_for_only_new_ones(fitted, blobs):
    for X in (blobs[2][:1], blobs[3][:1], mixed(blobs, 0.5)[::60]):
        found = estimate_open_share(fitted, X)
        assert found.reason.startswith(f"{len(X)} samples are too few")
    assert "Hardly any sample" in estimate_open_share(fitted, blobs[3]).reason


def test_takes_pipelines_and_baselines(blobs):
    X, y = blobs[:2]
    traffic = mixed(blobs, 0.3)
    plain = EllipsoidOpenSetClassifier(random_state=0)
    pipe = make_pipeline(StandardScaler(), plain).fit(X, y)
    assert estimate_open_share(pipe, traffic).share == estimate_open_share(pipe[-1], pipe[0].transform(traffic)).share
    assert abs(estimate_open_share(MahalanobisClassifier(threshold="auto").fit(X, y), traffic).share - 0.3) < 0.15


@pytest.mark.parametrize("function", [estimate_open_share, predict_open_proba])
def test_errors_are_one_sentence(function, fitted, blobs):
    X, y = blobs[:2]
    with pytest.raises(NotFittedError):
        function(EllipsoidOpenSetClassifier(), X)
    with pytest.raises(TypeError, match="reads held_out_, which this MahalanobisClassifier does not have"):
        function(MahalanobisClassifier(threshold=0.5).fit(X, y), X)
    one = y == y[0]
    with pytest.raises(ValueError, match="held out no class; fit with at least two"):
        function(EllipsoidOpenSetClassifier(random_state=0).fit(X[one], y[one]), X)
    untested = copy(fitted)
    untested._held_out = None
    with pytest.raises(ValueError, match="held out no sample"):
        function(untested, X)
    for wrong, message in [(X[:0], "0 sample"), (X[:, :3], "3 features"), (np.full_like(X, np.nan), "NaN")]:
        with pytest.raises(ValueError, match=message):
            function(fitted, wrong)


# The mixture


def test_every_p_value_has_a_bin():
    assert bins(np.array([1e-9, 0.05, 0.0501, 0.95, 1.0])).tolist() == [0, 0, 1, 10, 10]


def test_sharpening_moves_mass_to_the_dense_bins():
    shares = np.diff(EDGES**0.5)
    np.testing.assert_allclose(sharpened(shares, 1.0), shares)
    assert sharpened(shares, 2.0)[0] > shares[0]
    assert sharpened(shares, 2.0).sum() == pytest.approx(1)


def test_uniform_p_values_are_known_and_not_tilted():
    n = 2000
    found = fit_mixture((np.arange(n) + 0.5) / n, np.arange(n), np.diff(EDGES**0.3), 10_000)
    assert found.low == 0
    assert found.share < 0.05
    assert abs(found.tilt) < 0.2
    assert found.misfit < 1


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


def test_estimated_share_is_that_of_the_traffic(fitted, blobs):
    X = mixed(blobs, 0.3)
    share = estimate_open_share(fitted, X).share
    np.testing.assert_array_equal(predict_open_proba(fitted, X, "auto"), predict_open_proba(fitted, X, share))
    with pytest.warns(UserWarning, match="The open share is taken to be 0.5. 3 samples are too few"):
        found = predict_open_proba(fitted, X[:3], "auto")
    np.testing.assert_array_equal(found, predict_open_proba(fitted, X[:3]))


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half", True])
def test_a_share_that_is_none_is_refused(fitted, blobs, wrong):
    with pytest.raises(ValueError, match="is not a share"):
        predict_open_proba(fitted, blobs[2][:5], wrong)


@pytest.mark.parametrize("function", [estimate_open_share, predict_open_proba])
def test_scores_on_another_scale_than_held_out_ones_are_refused(function):
    X, y = make_open_blobs(300, 4, n_known=4, open_share=0.0, random_state=0)
    with pytest.raises(TypeError, match="on another scale for a SoftmaxOpenSetClassifier"):
        function(SoftmaxOpenSetClassifier(threshold="auto").fit(X, y), X)
