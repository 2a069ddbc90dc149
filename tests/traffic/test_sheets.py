"""Promise: each different message counts once, in whatever sheets, in whatever order and with what weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share, learn_from_traffic, save, set_operating_point
from skellipsoid._traffic.equal import equal_messages
from skellipsoid.datasets import make_open_blobs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 60


@pytest.fixture(scope="module")
def world():
    """A classifier, a log and its labels."""
    X, y = make_open_blobs(800, 6, n_known=6, open_share=0.1, random_state=0)
    train = (y != -1) & (np.arange(800) < 300)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train]), X[300:], y[300:]


@pytest.fixture(scope="module")
def once(world):
    clf, log, truth = world
    return learn_from_traffic(clf, log[:N], truth[:N])


def assert_alike(found, wanted, log):
    assert len(found._learned) == len(wanted._learned)
    assert found.offset_ == pytest.approx(wanted.offset_, abs=1e-3)
    np.testing.assert_allclose(list(found.traffic_.values()), list(wanted.traffic_.values()), atol=2e-3)
    np.testing.assert_allclose(found.score_samples(log), wanted.score_samples(log), atol=1e-4)


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_learned_again_in_parts_with_copies_and_in_another_order_counts_once(world, once, seed):
    clf, log, truth = world
    rng, model = np.random.default_rng(seed), clf
    for rows in (rng.permutation(N)[:40], rng.permutation(np.repeat(np.arange(N), 3))):
        model = learn_from_traffic(model, log[rows], truth[rows])
    assert_alike(model, once, log)
    again = rng.permutation(N)
    with pytest.raises(ValueError, match=r"^All 60 labelled messages were learned before"):
        learn_from_traffic(model, log[again], truth[again])


def test_a_sheet_counts_by_its_own_weights_and_in_no_unit(world, tmp_path):
    clf, log, truth = world
    opened, known = np.flatnonzero(truth == -1)[-40:], np.flatnonzero(truth != -1)[-40:-20]
    rows, weights = np.append(opened, known), np.random.default_rng(0).uniform(0.5, 2, size=60)
    found = []
    for unit in (1.0, 1e150 / 2):
        model = learn_from_traffic(clf, log[:N], truth[:N], sample_weight=weights / unit)
        save(model, tmp_path / f"{unit}")
        loaded = skellipsoid.load(tmp_path / f"{unit}")
        found.append(learn_from_traffic(loaded, log[rows], truth[rows], sample_weight=unit * weights))
    assert_alike(*found, log)
    # Sixty labels each: neither sheet is nothing beside the other.
    assert 0.25 < found[0].traffic_["open_share"] < 0.5
    uneven = np.append(1e9, np.full(59, 1.0))  # worth one label, and not all of both sheets
    model = learn_from_traffic(clf, log[:N], truth[:N])
    both = learn_from_traffic(model, log[rows], truth[rows], sample_weight=uneven)
    assert both.traffic_["open_share"] < 0.15
    with pytest.raises(ValueError, match=r"^sample_weight is above 1e\+150 in row 3; pass one over the chance"):
        learn_from_traffic(clf, log[:N], truth[:N], sample_weight=np.where(np.arange(N) == 3, 1e200, 1.0))


def test_one_message_with_two_labels_is_refused_by_its_text_and_both_labels(world):
    clf, log, truth = world
    texts = np.array([f"message {i}" for i in range(N)], dtype=object)
    pipe = make_pipeline(FunctionTransformer(lambda given: log[[int(text.split()[1]) for text in given]]), clf)
    rows, labels = [*range(N), 5, 7, 7], truth[:N].tolist()
    labels += [(labels[5] + 2) % 6, labels[7], (labels[7] + 1) % 6]
    said = rf"^'message 5' has the labels {labels[5]} and {labels[N]}, and 1 more messages have several"
    for use in (learn_from_traffic, estimate_open_share, set_operating_point):
        with pytest.raises(ValueError, match=rf"{said}; give each message one label\.$"):
            use(pipe, texts[rows], labels)
    with pytest.raises(ValueError, match=r"^The message of rows 5, 60 has the labels"):
        learn_from_traffic(clf, log[rows], labels)
    with pytest.warns(UserWarning, match=rf"{said}; users picked both, so that these"):
        picked = learn_from_traffic(pipe, texts[rows], labels, picked=True)
    assert len(picked[-1]._learned) == N - 2


def test_texts_of_unknown_tokens_are_not_equal():
    X, y = make_open_blobs(400, 12, n_known=4, open_share=0.1, random_state=0)
    X = {**{f"message {i}": row for i, row in enumerate(X)}, "😭": np.zeros(12), "😀": np.zeros(12)}
    embed = FunctionTransformer(lambda texts: np.array([X[text] for text in texts]))
    pipe = make_pipeline(embed, EllipsoidOpenSetClassifier(random_state=0))
    texts = np.array(list(X), dtype=object)
    pipe.fit(texts[:300][y[:300] != -1], y[:300][y[:300] != -1])
    log, labels = texts[300:], [*y[300:], 0, 1]
    for use in (learn_from_traffic, estimate_open_share, set_operating_point):
        use(pipe, log, labels)
        with pytest.raises(ValueError, match=r"^'😭' has the labels 0 and 1; give each message one label"):
            use(pipe, [*log, "😭"], [*labels, 1])
    assert len(learn_from_traffic(pipe, log, labels)[-1]._learned) == 102
    use(pipe[-1], pipe[0].transform(log), labels)


def test_copies_of_a_log_are_evidence(world):
    clf, log, truth = world
    flood = np.flatnonzero(truth == -1)[-1]
    # A log that has one open message in two of five rows, of which a tenth are labelled.
    rows = np.append(np.arange(180), np.repeat(flood, 120))
    wanted, shares = np.mean(truth[rows] == -1), []
    for seed in range(3):
        drawn = np.random.default_rng(seed).permutation(300)[:30]
        labels = np.full(300, None, dtype=object)
        labels[drawn] = truth[rows[drawn]]
        shares.append(learn_from_traffic(clf, log[rows], labels).traffic_["open_share"])
        told = estimate_open_share(clf, log[rows], labels)
        assert told.low < wanted < told.high, seed
    assert np.mean(shares) == pytest.approx(wanted, abs=0.1)


def test_what_an_older_version_saved_has_one_sheet(once):
    older = {name: value for name, value in vars(once._learned).items() if name != "sheets"}
    older["weights"] = np.append(0.0, np.full(N - 1, 2000.0))  # of the first nobody had said it
    found = type(once._learned)(**older)
    assert (found.weights == 1).all()
    assert (found.sheets == 0).all()
    assert clone(once).get_params() == once.get_params()


def test_a_sheet_without_known_messages_does_not_forecast_the_end_of_a_good_model():
    rng = np.random.default_rng(3)
    means, y = rng.normal(size=(8, 6)) * 3, np.repeat(np.arange(6), 40)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(means[y] + rng.normal(size=(240, 6)), y)
    model = learn_from_traffic(clf, means[6] + 1e-2 * rng.normal(size=(8, 6)), [-1] * 8)
    truth = rng.integers(6, size=2000)
    new = means[truth] + rng.normal(size=(2000, 6))
    for when, each in (("before", clf), ("after", model)):
        right, error = model.changes_[-1][when]["right"]
        assert abs(right - np.mean(each.predict(new) == truth)) < 2 * error
        assert 0.03 < error < 0.3


def test_one_weight_beside_which_others_are_nothing_is_told(world):
    clf, log, truth = world
    weights = np.where(np.arange(N) == 3, 1e100, 1.0)
    with pytest.warns(UserWarning, match=r"^59 of 60 positive weights are less than 1e-12 of the largest, 1e\+100"):
        found = estimate_open_share(clf, log[:N], truth[:N], sample_weight=weights)
    assert np.isfinite(found.share)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3), st.integers(0, 10**6))
def test_equal_messages_are_found_in_any_order_and_beside_an_outlier(n, n_features, n_copies, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, n_features)).astype(np.float32)
    features[0] = rng.choice([1e25, 1e-25])
    which = np.concatenate([np.arange(n), rng.integers(n, size=n_copies * n)])
    rows = rng.permutation(which)
    found = equal_messages(features[rows])
    assert (found[:, np.newaxis] == found).tolist() == (rows[:, np.newaxis] == rows).tolist()


def test_different_messages_of_far_classes_are_not_equal():
    rng = np.random.default_rng(0)
    means, y = 1e5 * rng.normal(size=(6, 8)), np.repeat(np.arange(6), 40)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(means[y] + rng.normal(size=(240, 8)), y)
    of = rng.integers(6, size=140)
    log = means[of] + rng.normal(size=(140, 8))
    model = learn_from_traffic(learn_from_traffic(clf, log[:70], of[:70]), log[70:], of[70:])
    assert len(model._learned) == 140
    new = learn_from_traffic(clf, means[0] + 40 + rng.normal(size=(10, 8)), [99] * 10)
    assert 99 in new.classes_
    rounded = log * (1 + 1e-9 * rng.normal(size=log.shape))
    with pytest.raises(ValueError, match="All 140 labelled messages were learned before"):
        learn_from_traffic(model, rounded, of)
