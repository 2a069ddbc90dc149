"""What the monitor of traffic promises: few false alarms, an alarm after a change, any batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor, load, save, set_operating_point
from skellipsoid.datasets import make_open_blobs
from skellipsoid.plotting import MonitorDisplay

N_CLASSES = 4


@pytest.fixture(scope="module")
def traffic():
    """A fitted classifier, and a function that draws traffic with a share of open samples."""
    X, y = make_open_blobs(20_000, 4, n_known=N_CLASSES, open_share=0.3, random_state=0)
    known, new = X[y != -1], X[y == -1]
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(known[:400], y[y != -1][:400])

    def draw(rng, n, open_share):
        is_open = rng.random(n) < open_share
        return np.where(is_open[:, None], new[rng.integers(len(new), size=n)], known[rng.integers(400, len(known), n)])

    return clf, draw


@pytest.fixture
def seeded(traffic):
    return *traffic, np.random.default_rng(0)


def streams(traffic, n_streams, *parts):
    clf, draw = traffic
    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        monitor = OpenShareMonitor(clf, false_alarm_rate=0.2, random_state=seed).fit(draw(rng, 300, 0.1))
        yield monitor.update(np.concatenate([draw(rng, n, share) for n, share in parts]))


def test_unchanged_traffic_raises_no_more_alarms_than_stated(traffic):
    alarms = [monitor.alarm_ for monitor in streams(traffic, 100, (600, 0.1))]
    # At the stated rate of 0.2, 100 streams have more than 32 alarms with a chance of 0.2 %.
    assert sum(alarms) <= 32


@pytest.mark.parametrize(("share", "delay"), [(0.2, 600), (0.3, 200), (0.5, 80)])
def test_new_traffic_raises_an_alarm_soon(traffic, share, delay):
    at = [monitor.alarm_at_ or np.inf for monitor in streams(traffic, 20, (1000, 0.1), (800, share))]
    assert np.median(at) < 1000 + delay


def test_an_alarm_names_the_class_that_new_samples_come_to(seeded):
    clf, draw, rng = seeded
    monitor = OpenShareMonitor(clf).fit(draw(rng, 2000, 0.0))
    far = clf.centers_[2] + 3 * (clf.centers_[2] - clf.centers_.mean(axis=0))
    mixed = draw(rng, 400, 0.0)
    mixed[::8] = far + rng.normal(size=mixed[::8].shape)
    monitor.update(mixed)
    assert monitor.alarm_
    assert clf.predict_known([far]) == clf.classes_[2]
    assert [*monitor.class_alarm_at_] == [clf.classes_[2]]
    assert 0 < monitor.class_alarm_at_[clf.classes_[2]] <= 400


def test_a_saved_monitor_goes_on_where_it_was(seeded, tmp_path):
    clf, draw, rng = seeded
    monitor = OpenShareMonitor(clf).fit(draw(rng, 200, 0.1))
    save(monitor, tmp_path / "new")
    assert load(tmp_path / "new").update(draw(rng, 5, 0.5)).n_seen_ == 5
    save(monitor.update(draw(rng, 60, 0.5)), tmp_path / "seen")
    found, rows = load(tmp_path / "seen"), draw(rng, 100, 0.5)
    np.testing.assert_array_equal(found.update(rows).history_, monitor.update(rows).history_)
    assert found.alarm_at_ == monitor.alarm_at_
    assert found.class_alarm_at_ == monitor.class_alarm_at_


def test_an_estimator_that_was_fitted_again_needs_a_new_reference(seeded):
    clf, draw, rng = seeded
    own = EllipsoidOpenSetClassifier(random_state=0).fit(rows := draw(rng, 60, 0.0), clf.predict_known(rows))
    monitor = OpenShareMonitor(own).fit(draw(rng, 100, 0.0))
    own.fit(rows, np.where(clf.predict_known(rows) == clf.classes_[0], clf.classes_[1], clf.predict_known(rows)))
    with pytest.raises(ValueError, match="call fit with a new reference"):
        monitor.update(rows)
    assert monitor.n_seen_ == 0
    # The same classes, from other samples; another operating point is no other fit.
    monitor.fit(rows)
    set_operating_point(own, rows, rejection_rate=0.1)
    assert monitor.update(rows).n_seen_ == len(rows)
    own.fit(other := draw(rng, 60, 0.0), clf.predict_known(other))
    with pytest.raises(ValueError, match="was fitted again"):
        monitor.update(rows)
    # The same samples, under other names in the same order.
    names = np.array([f"class {label}" for label in range(N_CLASSES)])
    monitor = OpenShareMonitor(own.fit(other, names[clf.predict_known(other)])).fit(rows)
    own.fit(other, np.char.add(names, " renamed")[clf.predict_known(other)])
    with pytest.raises(ValueError, match="was fitted again"):
        monitor.update(rows)


def test_bad_input_changes_nothing(seeded):
    clf, draw, rng = seeded
    with pytest.raises(NotFittedError):
        OpenShareMonitor(clf).update(draw(rng, 5, 0.0))
    with pytest.raises(NotFittedError):
        OpenShareMonitor(EllipsoidOpenSetClassifier()).fit(draw(rng, 5, 0.0))
    with pytest.raises(TypeError, match="score_samples"):
        OpenShareMonitor(StandardScaler().fit(draw(rng, 5, 0.0))).fit(draw(rng, 5, 0.0))
    for settings in ({"false_alarm_rate": 0}, {"random_state": -1}):
        with pytest.raises(ValueError, match="is not allowed: pass"):
            OpenShareMonitor(clf, **settings).fit(draw(rng, 100, 0.0))
    with pytest.warns(UserWarning, match="The reference has 1 samples"):
        monitor = OpenShareMonitor(clf).fit(draw(rng, 1, 0.0))
    monitor.update(draw(rng, 1, 0.0))
    before = monitor.log10_evidence_
    for wrong in (np.zeros((0, 4)), np.full((2, 4), np.nan), np.zeros((2, 3)), ["a text"]):
        with pytest.raises(ValueError, match=r"\w"):
            monitor.update(wrong)
    assert (monitor.n_seen_, monitor.log10_evidence_) == (1, before)


def test_the_picture_shows_the_history(seeded):
    clf, draw, rng = seeded
    monitor = OpenShareMonitor(clf).fit(draw(rng, 200, 0.1))
    with pytest.raises(ValueError, match="never updated"):
        MonitorDisplay.from_monitor(monitor)
    for _ in range(10):
        monitor.update(draw(rng, 20, 0.6))
    display = MonitorDisplay.from_monitor(monitor)
    np.testing.assert_array_equal(display.n_seen, np.arange(20, 201, 20))
    assert_allclose((display.open_share * 20).sum(), monitor.open_share_ * 200)
    assert display.line_.get_ydata()[-1] == monitor.log10_evidence_
    assert display.alarm_line_.get_xdata()[0] == monitor.alarm_at_
