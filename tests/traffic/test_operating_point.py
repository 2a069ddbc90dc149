"""An operating point that is set: by a rate, by labels of a log, or by a share of open samples."""

import warnings
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_helpers import matrices_of

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, ScoreOpenSetClassifier, predict_open_proba, set_operating_point
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_f1_score

RATES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.07, 0.29, 0.5, 1.0]))
SCORE = st.sampled_from([-2.0, -0.5, 0.1, 0.25, 0.9, 1.0]) | st.floats(-5, 1, width=32)
SCORES = st.lists(SCORE, min_size=1, max_size=40)


class Ranked(ScoreOpenSetClassifier):
    """Its score is the only feature, in the precision of it."""

    def fit_scores(self, X, classes, sample_weight):
        pass

    def class_scores(self, X):
        return np.repeat(X, 2, axis=1)

    def score_samples(self, X):
        return np.asarray(X)[:, 0]


RANKED = Ranked().fit(np.linspace(0, 1, 20)[:, np.newaxis], [0, 1] * 10)


def offset_of(scores, **rate):
    """Offset for a rate of samples with these scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few samples
        return set_operating_point(RANKED, scores[:, np.newaxis], **rate).offset_


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + np.repeat([[0], [6], [-6]], 100, axis=0)
    y = np.repeat(["a", "b", "-1"], 100)
    return X, y


@pytest.fixture
def fitted(data):
    X, y = data
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[y != "-1"][::2], y[y != "-1"][::2])


@pytest.mark.parametrize("kind", ["rejection_rate", "open_acceptance_rate"])
@given(scores=SCORES, rate=RATES, single=st.booleans())
def test_an_offset_keeps_the_rate_for_a_row_that_is_left_out(kind, scores, rate, single):
    # Each of n + 1 scores once is the new one: this is the mean that the rate is about, without any chance.
    scores = np.array([*scores, 0.3], dtype=np.float32 if single else np.float64)
    offsets = np.array([offset_of(np.delete(scores, i), **{kind: rate}) for i in range(len(scores))])
    beyond = scores < offsets if kind == "rejection_rate" else scores >= offsets
    assert np.mean(beyond) <= max(rate, 1 / len(scores))
    if len(np.unique(scores)) == len(scores):
        assert np.mean(beyond) > rate - 1 / len(scores)


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.29, 0.5, 0.99])
def test_the_rows_that_are_needed_are_the_fewest(rate):
    fewest = max(1, ceil(1 / Fraction(str(rate))) - 1)  # of n + 1 rows, one is 1 / (n + 1)
    rows = np.zeros((fewest, 1))
    set_operating_point(RANKED, rows, rejection_rate=rate)  # warnings are errors here
    if fewest > 1:
        with pytest.warns(UserWarning, match=f"known samples, {fewest} are needed; {fewest - 1} can keep"):
            set_operating_point(RANKED, rows[1:], rejection_rate=rate)


def test_moving_the_offset_is_scaling_every_radius(data, fitted):
    X, y = data
    set_operating_point(fitted, X, y, rejection_rate=0.3)
    moved = fitted.predict(X)
    known = fitted.predict_known(X)
    places = np.searchsorted(fitted.classes_, known)
    offsets = X - fitted.centers_[places]
    norms = np.linalg.norm(np.einsum("nij,nj->ni", matrices_of(fitted)[places], offsets), axis=1)
    is_open = norms > fitted.radii_[places] * (1 - fitted.offset_)
    assert np.mean(np.where(is_open, "-1", known) == moved) > 0.99  # the row on the boundary may round to either side
    assert set_operating_point(fitted).offset_ == 0


@pytest.mark.parametrize(
    ("rates", "labels", "match"),
    [
        ({"rejection_rate": 0.1, "open_acceptance_rate": 0.1}, None, "both given; set one"),
        ({"rejection_rate": "5%"}, None, "rejection_rate='5%' is not a proportion; use a number from 0 to 1"),
        ({"rejection_rate": 0.1}, "-1", "rejection_rate is a proportion of known samples, but there are none; pass"),
        ({"open_acceptance_rate": 0.1}, "a", "open_acceptance_rate is a proportion of open samples, but there are"),
    ],
)
def test_errors_are_sentences(data, fitted, rates, labels, match):
    X = data[0][:10]
    with pytest.raises(ValueError, match=match):
        set_operating_point(fitted, X, None if labels is None else [labels] * 10, **rates)
    assert fitted.offset_ == 0
    assert fitted.class_offsets_.tolist() == [0, 0]


# The share of open samples


@pytest.fixture(scope="module")
def traffic():
    X, y = make_open_blobs(4000, 6, n_known=6, open_share=0.3, random_state=1)
    train = (y != -1) & (np.arange(len(y)) < 2500)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train]), X[2500:], y[2500:]


def test_a_log_and_labels_set_the_line_and_what_was_learned_stays(traffic, tmp_path):
    clf, X, y = traffic
    rng = np.random.default_rng(0)
    few = rng.permutation(np.flatnonzero((y != -1) | (np.cumsum(y == -1) <= 20)))  # 2 % of them open
    labels = np.where(np.arange(len(few)) < 40, y[few], np.nan)
    set_operating_point(clf, X[few], labels)
    assert clf.offset_ < 0  # where little is open, fewer known samples are rejected
    assert clf.traffic_["low"] <= clf.traffic_["open_share"] <= clf.traffic_["high"]
    assert abs(clf.traffic_["open_share"] - 0.02) < 0.04
    moved = open_set_f1_score(y[few], clf.predict(X[few]))
    skellipsoid.save(clf, tmp_path / "model")
    loaded = skellipsoid.load(tmp_path / "model")
    assert loaded.traffic_ == clf.traffic_
    expected = skellipsoid.predict_open_proba(clf, X[:50])
    np.testing.assert_array_equal(skellipsoid.predict_open_proba(loaded, X[:50]), expected)
    weights = np.where(np.isnan(labels), np.nan, 2.0)
    assert set_operating_point(loaded, X[few], labels, sample_weight=weights).offset_ == clf.offset_
    set_operating_point(clf)
    assert clf.traffic_ is None
    assert moved > open_set_f1_score(y[few], clf.predict(X[few])) - 0.01  # the limit of the fit is good here
    again = set_operating_point(loaded, X[few], labels).fit(X, np.where(y == -1, 7, y))
    assert again.traffic_ is None


def test_known_messages_that_have_moved_are_told(traffic):
    clf, X, y = traffic
    set_operating_point(clf)
    known = X[y != -1][:200]
    centres = clf.centroids_[clf._encode(clf.predict_known(known))]
    farther = centres + 2.5 * (known - centres)
    labels = np.where(np.arange(200) < 60, clf.predict_known(farther), np.nan)
    rejected = 100 * np.mean(clf.predict(farther[:60]) == -1)
    with pytest.warns(UserWarning, match=rf"as fitted, {rejected:.0f} % of the 60 labelled known ones are rejected"):
        set_operating_point(clf, farther, labels)
    assert clf.traffic_["known_shift"] > 0.3
    own = np.where(np.arange(200) < 60, y[y != -1][:200], np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        set_operating_point(clf, known, own)
    assert not any("farther out" in str(warning.message) for warning in caught)
    set_operating_point(clf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"open_share": (0.2, 0.1)}, "is not a proportion"),
        ({"cost_open": 2}, "A cost needs traffic: pass a log as X with labels of some messages, or open_share"),
        ({"open_share": 0.2, "cost_open": -1}, "is not a cost; use a positive number"),
        ({"X": True}, "A log alone does not say where the threshold goes"),
        ({"X": True, "y": [None] * 1500}, "y holds no label: label some rows, and leave the others None or NaN"),
        ({"X": True, "y": ["a"] + [None] * 1499}, "y holds strings such as 'a' and classes_ holds numbers"),
        ({"y": True}, "y needs traffic"),
        ({"y": True, "open_share": 0.1}, "y belongs to the messages of a log, but there are none; pass X"),
        ({"X": True, "open_share": 0.1, "sample_weight": np.ones(1500)}, "weighs the labels of a log, but there are n"),
        ({"X": True, "rejection_rate": 0.1, "open_share": 0.2}, "open_share and rejection_rate are both given"),
        ({"rejection_rate": 0.1}, "rejection_rate is a proportion of samples, but there are none; pass X"),
    ],
)
def test_options_of_a_share_that_do_not_fit_are_refused(traffic, options, message):
    clf, X, y = traffic
    own = {"X": X, "y": y}
    given = {name: own[name] if value is True and name in own else value for name, value in options.items()}
    with pytest.raises(ValueError, match=message):
        set_operating_point(clf, **given)
    assert clf.offset_ == 0


def test_a_limit_that_rejects_or_accepts_everything_is_told(traffic):
    clf, log, truth = traffic[:3]
    with pytest.warns(UserWarning, match=r"^A rejection rate of 1 rejects every sample: all predictions are open"):
        assert (set_operating_point(clf, log, truth, rejection_rate=1.0).predict(log) == -1).all()
    with pytest.warns(UserWarning, match=r"^An acceptance rate of 1 accepts every sample: no prediction is open"):
        assert (set_operating_point(clf, log, truth, open_acceptance_rate=1.0).predict(log) != -1).all()
    with pytest.warns(UserWarning, match=r"^The threshold rejects \d\d % of the known samples that the fit held out"):
        set_operating_point(clf, open_share=0.2, cost_open=1e9)
    set_operating_point(clf)


def test_labels_of_another_kind_are_refused_instead_of_read_as_open():
    X, y = make_open_blobs(200, open_share=0.0, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y.astype(str))
    with pytest.raises(ValueError, match=r"y holds numbers such as .* and classes_ holds strings"):
        set_operating_point(clf, X, y, rejection_rate=0.1)
    assert clf.offset_ == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_samples_whose_scores_are_infinite_leave_the_limit_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6)).astype("f4") + 5 * np.repeat(np.eye(6)[:4], 40, axis=0).astype("f4")
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(np.arange(4), 40))
    log = np.concatenate([X[::2], np.full((30, 6), 3e25, dtype="f4")])
    assert np.isinf(clf.score_samples(log)).sum() == 30
    for options in ({"rejection_rate": 0.05}, {"open_acceptance_rate": 0.9}, {"open_share": 0.3}):
        set_operating_point(clf, log, **options)
        assert np.isfinite(clf.offset_)
        assert (clf.predict(log[-30:]) == -1).all()
    probabilities = predict_open_proba(clf, log)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
