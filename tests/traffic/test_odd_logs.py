"""Logs that hold training samples, and logs unlike any traffic: the model stays finite, and no limit rejects all."""

import copy

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label, estimate_open_share, learn_from_traffic
from skellipsoid._ellipsoid.changes.learned import find_trained
from skellipsoid._held_out.kept import held_out_of
from skellipsoid._traffic.log import Log
from skellipsoid._traffic.predict_set import forecast_by_name, zones_placed
from skellipsoid._traffic_model.threshold import place_threshold
from skellipsoid.datasets import make_open_blobs

N_CLASSES = 4


@pytest.fixture(scope="module", name="fitted")
def fixture_fitted():
    """A classifier, its training samples with some open ones, and as many new ones."""
    X, y = make_open_blobs(1000, 12, n_known=N_CLASSES, open_share=0.1, random_state=0)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[:500], y[:500]), (X[:500], y[:500]), (X[500:], y[500:])


def labels_of(y, rows):
    labels = np.full(len(y), None, dtype=object)
    labels[rows] = y[rows]
    return labels


POINTS = st.sampled_from([-np.inf, -1e300, -50.0, -1.0, -0.2, 0.0, 0.3, 0.9, 1.0, 1e300, np.nan])


@given(
    parts=st.lists(st.tuples(POINTS, st.sampled_from([0.0, 1e-9, 0.1]), st.integers(1, 60)), min_size=1, max_size=3),
    n_labels=st.integers(0, 30),
    power=st.sampled_from([0.0, 308.0, -308.0]),
    share=st.sampled_from([None, 0.0, 0.05, 1.0, (0.02, 0.2)]),
    seed=st.integers(0, 99),
)
@example([(1.0, 0.0, 10**5)], 0, 0.0, None, 0)
@example([(1.0, 1e-9, 200)], 0, 0.0, 0.1, 0)
def test_the_model_of_every_log_is_finite(fitted, parts, n_labels, power, share, seed):
    clf, rng = fitted[0], np.random.default_rng(seed)
    held_out = held_out_of(clf, "test")
    scores = np.concatenate([np.full(n, point) + spread * rng.normal(size=n) for point, spread, n in parts])
    rows = np.zeros(len(scores), dtype=bool)
    rows[rng.permutation(len(scores))[:n_labels]] = True
    truth = rng.integers(N_CLASSES + 1, size=rows.sum())
    weights = 10.0 ** (power * rng.random(len(truth)))
    assigned, features = rng.integers(N_CLASSES, size=len(scores)), np.nan_to_num(scores).clip(-1e300, 1e300)
    log = Log.unlabelled(scores, assigned, features[:, np.newaxis])
    log = log.labelled(rows, truth, weights, N_CLASSES)
    found = log.fit(held_out, share)
    offset = place_threshold(held_out, found, log.own_scores, N_CLASSES)
    traffic = found.traffic()
    assert np.isfinite([offset, *traffic.values()]).all()
    assert 0 < traffic["low"] <= traffic["open_share"] <= traffic["high"] < 1
    other = copy.copy(clf)
    other.offset_ = offset
    zones = zones_placed(other, found, log.own_scores, None, None)
    assert np.isfinite([*zones.values(), *np.ravel([*forecast_by_name(other, held_out, found, scores).values()])]).all()


def test_training_samples_in_a_log_are_what_they_are_labelled(fitted):
    clf, (X, y), _ = fitted
    found = estimate_open_share(clf, X)
    assert found.low == found.share == found.high == np.mean(y == -1)
    assert found.class_shares == pytest.approx([np.mean(y == label) for label in clf.classes_])
    assert found.n_trained == len(X)
    assert found.note.startswith("All 500 messages are training samples")
    limits = [skellipsoid.set_operating_point(copy.deepcopy(clf), log, open_share=0.1).offset_ for log in (X, None)]
    assert limits[0] == limits[1]  # they tell nothing
    with pytest.raises(ValueError, match=r"^All 30 labelled messages are training samples.*label about 30 other"):
        skellipsoid.set_operating_point(copy.deepcopy(clf), X, labels_of(y, range(30)))
    with pytest.raises(ValueError, match=r"^All 500 messages were learned before or are training samples"):
        choose_to_label(clf, X)


def test_training_samples_tell_nothing_of_the_other_messages(fitted):
    clf, (X, y), (new, truth) = fitted
    log = np.concatenate([X[:300], new])
    alone, both = estimate_open_share(clf, new), estimate_open_share(clf, log)
    n_open = np.sum(y[:300] == -1)
    for name in ("low", "share", "high"):
        assert both[name] == pytest.approx((500 * alone[name] + n_open) / 800)
    assert both.class_shares.sum() == pytest.approx(1 - both.share)
    assert both.note.startswith("300 of 800 messages are training samples")
    drawn = choose_to_label(clf, log, 30).rows
    assert drawn.min() >= 300
    np.testing.assert_array_equal(drawn - 300, choose_to_label(clf, new, 30).rows)
    truth = np.append(y[:300], truth)
    learned = learn_from_traffic(clf, log, labels_of(truth, [*range(20), *drawn]))
    assert learned.changes_[-1]["n_trained"] == 300
    wanted = learn_from_traffic(clf, new, labels_of(truth[300:], drawn - 300))
    assert learned.offset_ == pytest.approx(wanted.offset_, abs=0.02)
    only = learn_from_traffic(clf, X, labels_of(y, range(30)))
    assert np.isfinite(only.offset_)
    assert np.mean(only.predict(new)[truth[300:] >= 0] == -1) < 0.1


@pytest.mark.parametrize("distance", [10.0, 1e4])
def test_equal_up_to_rounding_on_the_scale_of_a_class(distance):
    rng = np.random.default_rng(0)
    means, y = distance * rng.normal(size=(3, 20)), np.repeat(np.arange(3), 40)
    X, new = (means[y] + rng.normal(size=(120, 20)) for _ in range(2))
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    rounded = X * (1 + 1e-8 * rng.normal(size=X.shape))
    np.testing.assert_array_equal(find_trained(clf, rounded[::-1]), y[::-1])
    assert (find_trained(clf, new) == -1).all()


def test_what_is_no_copy_of_a_training_sample(fitted):
    clf, (X, y), (new, truth) = fitted
    known = truth >= 0
    validated = EllipsoidOpenSetClassifier(random_state=0).fit(X, y, X_val=new[known], y_val=truth[known])
    assert (find_trained(validated, new) == -1).all()  # scored by boundaries without them
    assert (find_trained(validated, X) >= 0).all()
    without = EllipsoidOpenSetClassifier(random_state=0, keep_samples=False).fit(X, y)
    assert estimate_open_share(without, new).share == estimate_open_share(clf, new).share
    assert estimate_open_share(without, X).n_trained == 0
    # In columns of a few whole numbers many samples are equal by chance.
    whole = np.random.default_rng(0).integers(8, size=(400, 3)) + 9 * (np.arange(400)[:, np.newaxis] % 2)
    counted = EllipsoidOpenSetClassifier(random_state=0).fit(whole, np.arange(400) % 2)
    assert (find_trained(counted, whole) == -1).all()


def test_a_log_of_lines_with_times_is_said(tiny_model, texts, labels):
    pipe = make_pipeline(
        skellipsoid.SupConTextEncoder(tiny_model, finetune="none"), EllipsoidOpenSetClassifier(random_state=0)
    )
    pipe.fit(texts, labels)
    with pytest.warns(UserWarning, match="Each message begins with a time, which is read as a part of it"):
        estimate_open_share(pipe, [f"2026-11-02 10:00:0{i % 10} {text}" for i, text in enumerate(texts)])
