"""The model of the scores of a log, and the line between known and open that is placed by it."""

import itertools

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, set_operating_point
from skellipsoid._held_out.line import place_line
from skellipsoid._held_out.log_model import Labels, NormalScores
from skellipsoid._held_out.scores import HeldOutScores
from skellipsoid._traffic.log import Log
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_f1_score

# The model


def scored(n=500, shift=0.0, seed=0):
    """Held-out scores that are uniform: no normal distribution."""
    rng = np.random.default_rng(seed)
    codes, one = np.zeros(n, dtype=np.int64), np.ones(n)
    return HeldOutScores(rng.random(n) - shift, codes, codes, one, rng.random(n) - 0.8, one)


def test_normal_scores_are_normal_whatever_the_scores_are_and_go_back():
    held = scored()
    normal = NormalScores(held)
    z = normal(scored(seed=1).known)
    assert abs(z.mean()) < 0.15
    assert z.std() == pytest.approx(1, abs=0.15)
    far = np.array([-30.0, -2.0, 0.2, 0.9])
    np.testing.assert_allclose(normal.inverse(normal(far)[1:]), far[1:])
    assert (np.diff(normal(far)) > 0).all()


@pytest.mark.parametrize("known", [[0.5], [0.5, 0.5, 0.5], [0.1, 0.7]])
def test_few_or_equal_held_out_scores_are_no_error(known):
    one, codes = np.ones(len(known)), np.zeros(len(known), dtype=np.int64)
    held = HeldOutScores(np.array(known), codes, codes, one, np.zeros(0), np.zeros(0))
    found = Log.unlabelled(np.linspace(-1, 1, 20), np.zeros(20, dtype=np.int64)).fit(held)
    assert np.isfinite([*found.traffic().values()]).all()


def test_weights_of_held_out_samples_are_copies():
    held = scored(40)
    weights = np.random.default_rng(0).integers(1, 4, size=40)
    rows = np.repeat(np.arange(40), weights)
    weighted = NormalScores(held._replace(weights=weights.astype(float)))
    repeated = NormalScores(HeldOutScores(*(column[rows] for column in held)))
    grid = np.linspace(0.1, 0.9, 30)
    np.testing.assert_allclose(weighted(grid), repeated(grid), atol=0.12)


# The line


def made_up(shift=0.0, share=0.1, place=2.4, width=0.6, n=400, n_classes=20, seed=0):
    """Held-out scores, and a log whose known messages lie ``shift`` standard deviations farther out."""
    rng = np.random.default_rng(seed)
    classes = np.arange(600) % n_classes
    known = 0.3 * rng.normal(size=600) + 0.4
    right = rng.random(600) < 0.98
    assigned = np.where(right, classes, (classes + 1) % n_classes)
    one = np.ones(600)
    held = HeldOutScores(known, assigned, classes, one, 0.3 * (0.6 * rng.normal(size=600) - 2.2) + 0.4, one)
    is_open = np.zeros(n, dtype=bool)
    is_open[rng.permutation(n)[: max(1, round(share * n))]] = True
    z = np.where(is_open, -place + width * rng.normal(size=n), rng.normal(size=n) - shift)
    truth = np.where(is_open, n_classes, rng.integers(n_classes, size=n))
    nearest = np.where(is_open, rng.integers(n_classes, size=n), truth)
    return held, 0.3 * z + 0.4, nearest, truth


def log_of(scores, nearest, truth, n_labelled, n_classes=20):
    """A log of which the first messages are labelled."""
    labelled = np.arange(len(scores)) < n_labelled
    is_open = truth[labelled] == n_classes
    labels = Labels.of(labelled, is_open, np.ones(n_labelled))
    return Log.unlabelled(scores, nearest)._replace(labels=labels, truth=truth[labelled])


def f1_of_line(offset, scores, nearest, truth, n_classes=20):
    answers = np.where(scores >= offset, nearest, n_classes)
    return 100 * open_set_f1_score(truth, answers, labels=range(n_classes), open_label=n_classes, zero_division=0)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.6, 1.2])
def test_thirty_labels_place_the_line_near_the_best_one(shift, share):
    found = []
    for seed in range(12):
        held, *log = made_up(shift, share, seed=seed)
        read = log_of(*log, n_labelled=30)
        line = place_line(held, read.fit(held), read.scores, 20)
        rest = made_up(shift, share, n=4000, seed=100 + seed)[1:]  # the traffic to come
        best = max(f1_of_line(offset, *rest) for offset in np.quantile(log[0], np.linspace(0, 1, 60)))
        found.append([f1_of_line(line.offset, *rest), f1_of_line(0.0, *rest), best])
    placed, fitted, best = np.array(found).T
    assert best.mean() - placed.mean() < 2
    assert (placed - fitted).min() > -4
    assert placed.mean() > fitted.mean() - 0.5


def test_a_wrong_share_is_tolerated_where_the_log_shows_the_gap():
    losses = {factor: [] for factor in (0.5, 1.0, 2.0)}
    for seed, share in itertools.product(range(6), (0.05, 0.2)):
        held, *log = made_up(0.6, share, place=2.8, seed=seed)
        best = max(f1_of_line(offset, *log) for offset in np.quantile(log[0], np.linspace(0, 1, 100)))
        for factor, lost in losses.items():
            read = log_of(*log, n_labelled=0)
            line = place_line(held, read.fit(held, factor * share), read.scores, 20)
            lost.append(best - f1_of_line(line.offset, *log))
    assert all(np.mean(lost) < 4 for lost in losses.values())


def test_the_share_from_labels_is_covered_and_none_of_thirty_is_not_zero():
    held = made_up()[0]
    for share in (0.05, 0.3):
        told = []
        for seed in range(40):
            read = log_of(*made_up(0.3, share, seed=seed)[1:], n_labelled=30)
            found = read.fit(held)
            told.append([*found.interval(), found.traffic()["open_share"]])
        low, high, mean = np.array(told).T
        assert np.mean((low <= share) & (share <= high)) >= 0.85
        assert abs(mean.mean() - share) < 0.05
    scores, nearest, truth = made_up(0.0, 0.0, n=200)[1:]
    of_known = truth < 20
    read = log_of(scores[of_known], nearest[of_known], truth[of_known], n_labelled=30)
    low, high = read.fit(held).interval()
    assert low < 0.01
    assert 0.01 < high < 0.2


def test_weights_undo_a_choice_by_the_score():
    """Half of the labels are chosen among the lowest tenth of the scores."""
    told = {"weighted": [], "plain": []}
    for seed in range(30):
        held, scores, nearest, truth = made_up(0.0, 0.1, n=1000, seed=seed)
        rng = np.random.default_rng(seed)
        is_low = scores < np.quantile(scores, 0.1)
        low, rest = (rng.permutation(np.flatnonzero(part))[:20] for part in (is_low, ~is_low))
        labelled = np.zeros(1000, dtype=bool)
        labelled[low] = labelled[rest] = True
        chances = np.where(is_low, 20 / is_low.sum(), 20 / (~is_low).sum())[labelled]
        is_open = truth[labelled] == 20
        for name, weights in (("weighted", 1 / chances), ("plain", np.ones(40))):
            log = Log.unlabelled(scores, nearest)._replace(labels=Labels.of(labelled, is_open, weights))
            told[name].append(log.fit(held).traffic()["open_share"])
    assert abs(np.mean(told["weighted"]) - 0.1) < 0.03
    assert np.mean(told["plain"]) > 0.17


def test_copies_in_a_log_are_no_evidence():
    held, *log = made_up(0.6, 0.3, n=30)
    once = log_of(*log, n_labelled=0).fit(held, (0.01, 0.9))
    thrice = log_of(*(np.repeat(column, 3) for column in log), n_labelled=0).fit(held, (0.01, 0.9))
    assert thrice.interval() == pytest.approx(once.interval(), abs=1e-9)


def test_the_fitted_boundary_stays_where_the_gain_is_within_its_error():
    X, y = make_open_blobs(4000, 6, n_known=6, open_share=0.3, random_state=1)
    train = (y != -1) & (np.arange(len(y)) < 2500)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    clf.offset_ = 0.3
    held = HeldOutScores.of(clf, "test")
    stays = [
        share
        for share in np.linspace(0.01, 0.99, 50)
        if not place_line(held, Log.empty().fit(held, share), np.zeros(0), 6).moves
    ]
    assert stays
    with pytest.warns(
        UserWarning, match=r"The limit is the fitted boundary: with \d+ to \d+ % open, another"
    ) as caught:
        set_operating_point(clf, open_share=stays[0])
    assert clf.offset_ == 0
    assert [warning.filename for warning in caught] == [__file__]
    # A boundary that rejects too much is left: scores as they are after 0.3 was subtracted from all of them.
    shifted = held._replace(known=held.known - 0.3)
    line = place_line(shifted, Log.empty().fit(shifted, 0.1), np.zeros(0), 6)
    assert line.offset < -0.2
    assert line.gain > line.error > 0
