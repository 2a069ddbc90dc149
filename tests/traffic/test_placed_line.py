"""The model of the scores of a log, and the line between known and open that is placed by it."""

import numpy as np
import pytest
from scipy.stats import norm

from skellipsoid import EllipsoidOpenSetClassifier, set_operating_point
from skellipsoid._held_out.table import KNOWN, OF_OTHER_CLASS, HeldOutTable
from skellipsoid._traffic.log import Log
from skellipsoid._traffic_model.normal_scores import NormalScores
from skellipsoid._traffic_model.posterior import Labels, fit_traffic_model
from skellipsoid._traffic_model.threshold import forecast_of, place_threshold
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_f1_score

# The model


def held_out(known, assigned, classes, opened):
    """Scores of samples of weight 1, each of whose classes is the first, and all gaps are 1."""
    n, none = len(known) + len(opened), np.zeros(len(opened), dtype=np.int64)
    kinds = np.repeat([KNOWN, OF_OTHER_CLASS], [len(known), len(opened)])
    codes = np.append(assigned, none), np.append(classes, none)
    columns = kinds, -np.append(known, opened), *codes, np.ones(n), np.arange(n), 20
    return HeldOutTable(*columns, ranks=(kinds == KNOWN).astype(np.int64), gaps=np.ones(n))


def scored(n=500, seed=0, known=None):
    """Held-out scores that are uniform: no normal distribution; or given ones of known samples alone."""
    rng = np.random.default_rng(seed)
    opened = np.zeros(0) if known is not None else rng.random(n) - 0.8
    known = rng.random(n) if known is None else known
    codes = np.zeros(len(known), dtype=np.int64)
    return held_out(known, codes, codes, opened)


def test_normal_scores_are_normal_whatever_the_scores_are_and_go_back():
    held = scored()
    normal = NormalScores.of(held)
    z = normal(scored(seed=1).known.scores)
    assert abs(z.mean()) < 0.15
    assert z.std() == pytest.approx(1, abs=0.15)
    far = np.array([-30.0, -2.0, 0.2, 0.9])
    np.testing.assert_allclose(normal.inverse(normal(far)[1:]), far[1:])
    assert (np.diff(normal(far)) > 0).all()


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_picks_tell_the_share_where_open_messages_are_asked_about_more_often_than_held_out_gaps_say(share):
    known, n_known = np.random.default_rng(0).normal(size=1000), round(400 * (1 - share))
    codes = np.zeros(1000, dtype=np.int64)
    held = held_out(known, codes, codes, known[:200] * 0.9 - 2.1)
    is_open, levels = np.arange(400) >= n_known, [(np.arange(n) + 0.5) / n for n in (n_known, 400 - n_known)]
    scores = np.append(norm.ppf(levels[0]), 0.9 * norm.ppf(levels[1]) - 2.1)
    unsure = (scores > -1.6) & (scores < -0.8)
    asked = unsure & (is_open | (np.cumsum(unsure) % 3 == 0))  # open ones three times as often
    one, nothing = np.ones(asked.sum()), np.zeros(asked.sum())  # and gaps that tell nothing
    labels = Labels(asked, is_open[asked], ~is_open[asked], one, one, nothing)
    found = fit_traffic_model(held, scores, np.arange(400), labels)
    low, high = found.interval()
    assert low + 0.02 < share < high - 0.02


# The line


def made_up(shift=0.0, share=0.1, place=2.4, width=0.6, n=400, n_classes=20, seed=0):
    """Held-out scores, and a log whose known messages lie ``shift`` standard deviations farther out."""
    rng = np.random.default_rng(seed)
    classes = np.arange(600) % n_classes
    known = 0.3 * rng.normal(size=600) + 0.4
    right = rng.random(600) < 0.98
    assigned = np.where(right, classes, (classes + 1) % n_classes)
    held = held_out(known, assigned, classes, 0.3 * (0.6 * rng.normal(size=600) - 2.2) + 0.4)
    is_open = np.zeros(n, dtype=bool)
    is_open[rng.permutation(n)[: max(1, round(share * n))]] = True
    z = np.where(is_open, -place + width * rng.normal(size=n), rng.normal(size=n) - shift)
    truth = np.where(is_open, n_classes, rng.integers(n_classes, size=n))
    nearest = np.where(is_open, rng.integers(n_classes, size=n), truth)
    return held, 0.3 * z + 0.4, nearest, truth


def log_of(scores, nearest, truth, n_labelled):
    """A log of which the first messages are labelled."""
    first = np.arange(len(scores)) < n_labelled
    return Log.unlabelled(scores, nearest).labelled(first, truth[first], np.ones(n_labelled), 20)


def f1_of_line(offset, scores, nearest, truth):
    answers = np.where(scores >= offset, nearest, 20)
    return 100 * open_set_f1_score(truth, answers, labels=range(20), open_label=20, zero_division=0)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.6, 1.2])
def test_thirty_labels_place_the_line_near_the_best_one(shift, share):
    found = []
    for seed in range(8):
        held, *log = made_up(shift, share, seed=seed)
        labelled = log_of(*log, n_labelled=30)
        line = place_threshold(held, labelled.fit(held), labelled.scores, 20)
        rest = made_up(shift, share, n=2000, seed=100 + seed)[1:]  # the traffic to come
        best = max(f1_of_line(offset, *rest) for offset in np.quantile(log[0], np.linspace(0, 1, 60)))
        found.append([f1_of_line(line, *rest), f1_of_line(0.0, *rest), best])
    placed, fitted, best = np.array(found).T
    assert best.mean() - placed.mean() < 2
    assert (placed - fitted).min() > -4
    assert placed.mean() > fitted.mean() - 0.5


def test_no_open_one_of_thirty_labels_is_not_zero():
    held, scores, nearest, truth = made_up(0.0, 0.0, n=200)
    of_known = truth < 20
    read = log_of(scores[of_known], nearest[of_known], truth[of_known], n_labelled=30)
    low, high = read.fit(held).interval()
    assert low < 0.01
    assert 0.01 < high < 0.2


def test_a_share_moves_the_limit_of_the_fit_and_nothing_moves_it_back():
    X, y = make_open_blobs(4000, 6, n_known=6, open_share=0.3, random_state=1)
    train = (y != -1) & (np.arange(len(y)) < 2500)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    offsets = [set_operating_point(clf, open_share=share).offset_ for share in (0.01, 0.1, 0.5, 0.9)]
    assert offsets == sorted(offsets)
    assert offsets[0] < 0 < offsets[-1]
    assert set_operating_point(clf).offset_ == 0
    assert clf.traffic_ is None


@pytest.mark.parametrize("parameters", [{}, {"open_share": 0.3}, {"known_shift": 0}, {"beta": 2.0}, {"alpha": 3.0}])
def test_what_the_constructor_expects_is_the_limit_of_the_fit(parameters):
    """The limit that the model places by what is expected alone is 0 in the scores of the fit."""
    X, y = make_open_blobs(1200, 6, n_known=6, open_share=0.0, random_state=1)
    clf = EllipsoidOpenSetClassifier(random_state=0, **parameters).fit(X, y)
    share = parameters.get("open_share", (0.08, 0.7))
    assert set_operating_point(clf, open_share=share).offset_ == pytest.approx(0, abs=1e-4)
    if parameters:
        plain = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
        assert abs(clf.radii_[0] / plain.radii_[0] - 1) > 1e-4


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
def test_a_forecast_holds_in_its_interval(shift):
    """Of traffic that the prior foresees, with and without labels."""
    for n_labelled, widest in ((0, 0.7), (60, 0.45)):
        holds, widths, off = [], [], []
        for seed in range(8):
            held, *log = made_up(shift, 0.3, seed=seed)
            read = log_of(*log, n_labelled=n_labelled)
            found = read.fit(held, None if n_labelled else (0.1, 0.75))
            told = forecast_of(held, found, 0.0)
            scores, nearest, truth = made_up(shift, 0.3, n=4000, seed=100 + seed)[1:]
            is_known, accepted = truth < 20, scores >= 0
            right, wrong = (accepted & part for part in (nearest == truth, nearest != truth))
            true = [part[is_known].mean() for part in (right, wrong, ~accepted)] + [np.mean(~accepted[~is_known])]
            holds += [figure.low <= value <= figure.high for figure, value in zip(told.values(), true, strict=True)]
            widths += [figure.high - figure.low for figure in told.values()]
            off.append(told["rejected"].mean - true[2])
        assert np.mean(holds) >= 0.8
        assert np.mean(widths) < widest
        if n_labelled:
            assert abs(np.mean(off)) < 0.04
