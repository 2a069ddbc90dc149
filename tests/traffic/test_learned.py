"""Messages that were learned: not offered again, counted once, and no part of what scores are to tell."""

import copy
import re

import numpy as np
import pytest

import skellipsoid
from skellipsoid import OpenShareMonitor, estimate_open_share, learn_from_traffic, remove_classes, set_operating_point

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 240


@pytest.fixture(scope="module")
def world():
    """A fitted model, a log whose known messages are worded in a second way, its labels, and thirty chosen ones."""
    rng = np.random.default_rng(0)
    means, apart = 4 * rng.normal(size=(12, 6)), 1.5 * rng.normal(size=(12, 6))

    def draw(classes, both):
        other = (rng.random(len(classes)) < 0.6) & both
        return means[classes] + other[:, np.newaxis] * apart[classes] + rng.normal(size=(len(classes), 6))

    y = np.repeat(np.arange(8), 15)
    clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(draw(y, False), y)
    truth = np.where(rng.random(N) < 0.2, rng.integers(8, 12, size=N), rng.integers(8, size=N))
    log = draw(truth, True)
    return clf, log, np.where(truth >= 8, -1, truth), skellipsoid.choose_to_label(clf, log, 30)


def sheet(truth, rows):
    labels = np.full(N, None, dtype=object)
    labels[rows] = truth[rows]
    return labels


def n_learned(model, log):
    """How many messages of a log were learned."""
    return int(re.search(r"labels that were learned, (\d+) of them", estimate_open_share(model, log).note)[1])


@pytest.fixture(scope="module")
def taught(world):
    """The model after one sheet, and its labels and weights."""
    clf, log, truth, chosen = world
    weights = np.ones(N)
    weights[chosen.rows] = chosen.weights
    labels = sheet(truth, chosen.rows)
    return learn_from_traffic(clf, log, labels, sample_weight=weights), labels, weights


def test_labels_that_are_given_again_are_said_once_and_left_out_of_the_figures(world, taught):
    _, log, truth, chosen = world
    rows = np.append(chosen.rows, np.setdiff1d(np.arange(N), chosen.rows)[:10])
    with pytest.warns(UserWarning, match=r"^30 of the 40 labelled messages were learned before; they count once\.$"):
        both = learn_from_traffic(taught[0], log, sheet(truth, rows)).changes_[-1]
    alone = learn_from_traffic(taught[0], log, sheet(truth, rows[30:])).changes_[-1]
    assert {**both, "when": None} == {**alone, "when": None}


def test_another_label_takes_the_place_of_the_first(world, taught):
    clf, log, truth, chosen = world
    wrong = truth.copy()
    wrong[chosen.rows[:5]] = (np.maximum(truth[chosen.rows[:5]], 0) + 1) % 8
    model = learn_from_traffic(clf, log, sheet(wrong, chosen.rows), sample_weight=taught[2])
    model = learn_from_traffic(model, log, taught[1], sample_weight=taught[2])
    assert model.changes_[-1]["n_samples"] == 5
    np.testing.assert_allclose(model.score_samples(log), taught[0].score_samples(log), atol=1e-4)


def test_a_limit_that_is_set_starts_from_what_was_learned_and_goes_back_to_it(world, taught, tmp_path):
    clf, log, truth, _ = world
    model = copy.deepcopy(taught[0])
    learned = model.offset_, model.traffic_, model.asking_
    wide = estimate_open_share(clf, log)
    set_operating_point(model, open_share=(wide.low, wide.high))  # tells nothing that the labels do not tell better
    assert model.traffic_["known_shift"] == pytest.approx(learned[1]["known_shift"], abs=0.25)
    told = model.traffic_
    set_operating_point(model, log[truth != -1], rejection_rate=0.1)
    assert model.traffic_ == told  # a rate tells nothing of the traffic
    skellipsoid.save(model, tmp_path / "model")
    for each in (model, skellipsoid.load(tmp_path / "model")):
        set_operating_point(each)
        assert (each.offset_, each.traffic_, each.asking_) == learned
    assert set_operating_point(skellipsoid.refresh(model)).offset_ == 0  # chosen anew


def test_the_monitor_leaves_learned_messages_out(world, taught):
    model, log = taught[0], world[1]
    watching = OpenShareMonitor(model).fit(log)
    assert watching.n_reference_ == N - 30
    learned = log[world[3].rows]
    assert watching.update(learned).n_seen_ == 0
    with pytest.raises(ValueError, match="were learned before; pass others"):
        OpenShareMonitor(model).fit(learned)


def test_what_was_learned_is_saved_and_follows_the_classes(world, taught, tmp_path):
    _, log, truth, chosen = world
    skellipsoid.save(taught[0], tmp_path / "model")
    loaded = skellipsoid.load(tmp_path / "model")
    assert n_learned(loaded, log) == 30
    assert estimate_open_share(loaded, log).share == estimate_open_share(taught[0], log).share
    n_left = int(np.sum(truth[chosen.rows] != 3))
    fewer = remove_classes(loaded, 3)
    assert n_learned(fewer, log) == n_left
    assert n_learned(skellipsoid.merge_classes(loaded, {3: [3, 4]}), log) == 30
    more = np.setdiff1d(np.arange(N), chosen.rows)[:8]
    again = learn_from_traffic(fewer, log[more], np.where(truth[more] == 3, -1, truth[more]))
    assert n_learned(again, log) > n_left


def test_another_log_may_have_another_share(world, taught):
    _, log, truth, chosen = world
    rest = np.setdiff1d(np.arange(N), chosen.rows)
    opened = rest[truth[rest] == -1]
    much = np.concatenate([opened, rest[truth[rest] != -1][: len(opened)]])
    found = estimate_open_share(taught[0], log[much])
    assert found.low < 0.5 < found.high
    assert "none of this log" in found.note
