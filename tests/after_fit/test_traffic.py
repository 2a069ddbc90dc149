"""The open share of unlabelled traffic, and probabilities with a column for open."""

from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share, predict_open_proba
from skellipsoid._after_fit.traffic.held import EDGES, HeldOutScores, bins, sharpened
from skellipsoid._after_fit.traffic.mixture import known_above
from skellipsoid._after_fit.traffic.share import open_share_of
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
    told = [estimate_open_share(fitted, mixed(blobs, share, seed=seed)) for seed in range(20)]
    assert np.mean([bunch.low <= share for bunch in told]) >= 0.95
    assert np.mean([bunch.high >= share for bunch in told]) >= 0.85
    assert np.mean([abs(bunch.share - share) for bunch in told]) < 0.05
    for bunch in told:
        assert bunch.reason is None
        assert 0 <= bunch.low <= bunch.share <= bunch.high <= 1
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
    assert thrice.low == pytest.approx(once.low, abs=0.01)
    assert thrice.high - thrice.low == pytest.approx(once.high - once.low, abs=0.02)
    assert other.high - other.low < thrice.high - thrice.low


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


# Exact p-values: those of known traffic are uniform, those of open traffic are near 0


def exact(n_classes=40, n_of_class=50, seed=0, *, spread=0.0, open_power=100.0):
    """Held-out scores: logarithms of uniform p-values, up to an offset of each class, and of small ones."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(n_classes), n_of_class)
    known = np.log(rng.random(len(classes))) + spread * rng.normal(size=n_classes)[classes]
    opened, ones = open_power * np.log(rng.random(len(classes))), np.ones(len(classes))
    none = np.zeros(0)
    return HeldOutScores(known, classes, classes, ones, opened, classes, classes, ones, none, none.astype(np.int64))


def stream(share, n, seed, open_power=100.0):
    rng = np.random.default_rng([7, seed])
    n_open = round(share * n)
    return np.log(rng.random(n)) * np.repeat([1.0, open_power], [n - n_open, n_open])


def told(held, scores, copies=1):
    scores = np.repeat(scores, copies)
    return open_share_of(held, scores, np.zeros(len(scores), dtype=np.int64), 40)


@pytest.mark.parametrize("n", [60, 300, 3000])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 0.98, 1.0])
def test_low_is_at_most_the_share_and_the_share_is_near(share, n):
    held = exact()
    found = [told(held, stream(share, n, seed)) for seed in range(20)]
    assert np.mean([bunch.low <= share for bunch in found]) >= 0.95
    assert np.mean([bunch.high >= share for bunch in found]) >= 0.9
    assert np.mean([bunch.share - share for bunch in found]) == pytest.approx(0, abs=0.02 + 0.5 / n**0.5)
    assert share == 1 or n < 300 or max(bunch.high - bunch.low for bunch in found) < 0.5


def test_low_holds_where_held_out_classes_are_few_and_unlike():
    lows = {}
    for n_classes in (4, 40):
        found = [
            told(exact(n_classes, 2000 // n_classes, seed, spread=0.2), stream(0.3, 1000, seed)) for seed in range(40)
        ]
        lows[n_classes] = np.array([bunch.low for bunch in found])
    assert np.mean(lows[40] <= 0.3) >= 0.95
    assert np.mean(lows[4]) < np.mean(lows[40])  # four classes tell less than forty of as many samples


def test_copies_are_no_evidence():
    held, scores = exact(), stream(0.4, 200, 0)
    once, often, many = told(held, scores), told(held, scores, copies=20), told(held, stream(0.4, 4000, 0))
    assert often.low == pytest.approx(once.low, abs=0.02)
    assert often.low < many.low - 0.02
    # One message that is frequent counts as often as it occurs, and makes the share unsure.
    spam = told(held, np.concatenate([scores, np.full(200, -0.01)]))
    assert spam.share < once.share / 1.5
    assert spam.low == 0 < often.low


def test_open_samples_that_look_known_make_low_smaller_and_not_larger():
    held = exact(open_power=1.5)
    assert all(told(held, stream(0.5, 1000, seed, open_power=1.5)).low < 0.5 for seed in range(20))


def test_few_different_samples_are_refused_and_no_others():
    held = exact()
    for scores, copies, message in (
        (np.log(np.linspace(0.01, 0.99, 49)), 1, "49 samples are too few; pass at least 50 different ones."),
        (
            np.log(np.linspace(0.01, 0.99, 49)),
            3,
            "147 samples, 49 of them different, are too few; pass at least 50 different ones.",
        ),
    ):
        found = told(held, scores, copies)
        assert found.reason == message
        assert np.isnan([found.share, found.low, found.high, *found.class_shares]).all()
    for share in (0.0, 0.5, 1.0):
        found = told(held, np.concatenate([np.log(np.linspace(0.01, 0.99, 50)), stream(share, 50, 0)]))
        assert found.reason is None
        assert 0 <= found.low <= found.share <= found.high <= 1


def test_sentences_are_there_where_they_are_true_and_nowhere_else():
    held, sure = exact(), stream(0.3, 3000, 0)
    assert told(held, sure).note is None
    # Known traffic farther out: exp(−p) in place of a uniform density.
    farther = np.concatenate([np.log(-np.log(1 - np.exp(sure[:2100]) * (1 - np.exp(-1)))), sure[2100:]])
    assert told(held, farther).note.startswith("Samples that look known lie farther out")
    like_known = np.concatenate([sure[:1500], np.log(np.random.default_rng(0).beta(2, 2, size=1500))])
    assert told(held, like_known).note.startswith("Samples that look known lie farther out")
    assert told(held, np.log(1 - np.exp(farther[:2100]))).note.startswith("Samples that look known lie nearer")
    nothing_known = stream(1.0, 3000, 0)
    assert told(held, nothing_known).note.startswith("Hardly any sample resembles")
    assert "Hardly" not in (told(held, stream(0.8, 3000, 0)).note or "")


@pytest.mark.parametrize("kind", ["noise", "shift"])
def test_known_traffic_that_has_moved_is_doubted(fitted, blobs, kind):
    moves = np.random.default_rng(0).normal(scale=blobs[0].std(), size=(600, 6))
    known = mixed(blobs, 0.0)
    assert estimate_open_share(fitted, known).note is None
    assert estimate_open_share(fitted, known + (moves if kind == "noise" else moves[:1])).note is not None


def test_training_rows_are_doubted(fitted, blobs):
    X = mixed(blobs, 0.0)
    means = fitted.centroids_[fitted._encode(fitted.predict_known(X))]
    assert "nearer to the class centres" in estimate_open_share(fitted, (X + means) / 2).note


# The mixture


def test_every_p_value_has_a_bin():
    assert bins(np.array([1e-9, 0.05, 0.0501, 0.95, 1.0])).tolist() == [0, 0, 1, 10, 10]


def test_sharpening_moves_mass_to_the_dense_bins():
    shares = np.diff(EDGES**0.5)
    np.testing.assert_allclose(sharpened(shares, 1.0), shares)
    assert sharpened(shares, 2.0)[0] > shares[0]
    assert sharpened(shares, 2.0).sum() == pytest.approx(1)


def test_the_mass_above_a_p_value_is_that_of_the_tilted_density():
    p = (np.arange(100_000) + 0.5) / 100_000
    for tilt in (-1.0, 0.0, 0.7):
        density = np.exp(-tilt * p)
        assert known_above(np.array(tilt), 0.4) == pytest.approx(density[p > 0.4].sum() / density.sum(), abs=1e-4)


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
