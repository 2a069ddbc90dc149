"""Labelled messages of a log: which to label, and what a classifier learns from them."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share, learn_from_traffic, set_operating_point
from skellipsoid.metrics import open_set_f1_score

N_CLASSES, WIDTH = 12, 8


@pytest.fixture(scope="module")
def world():
    """Classes of two clusters each. Training samples are of the first; users write both."""
    rng = np.random.default_rng(0)
    means = 4 * rng.normal(size=(N_CLASSES + 8, WIDTH))
    apart = 1.5 * rng.normal(size=(N_CLASSES + 8, WIDTH))

    def draw(classes, seed, both):
        rng = np.random.default_rng(seed)
        other = (rng.random(len(classes)) < 0.6) & both
        return means[classes] + other[:, np.newaxis] * apart[classes] + rng.normal(size=(len(classes), WIDTH))

    y = np.repeat(np.arange(N_CLASSES), 25)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(draw(y, 0, False), y)

    def log(n, share, seed):
        rng = np.random.default_rng([seed, n])
        is_open = rng.random(n) < share
        classes = np.where(is_open, N_CLASSES + rng.integers(8, size=n), rng.integers(N_CLASSES, size=n))
        return draw(classes, seed + 1, True), np.where(is_open, -1, classes)

    return clf, log


def with_labels(y, n):
    """Labels of the first n messages."""
    return [label if i < n else None for i, label in enumerate(y.tolist())]


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def f1(clf, X, y):
    return 100 * open_set_f1_score(y, clf.predict(X), labels=np.arange(N_CLASSES), zero_division=0)


def test_learning_beats_the_line_alone_and_comes_near_the_best_line(world):
    base, log = world
    found = []
    for seed in range(4):
        X, y = log(400, 0.3, seed)
        later, truth = log(1500, 0.3, 100 + seed)
        labels = with_labels(y, 60)
        learned = quietly(learn_from_traffic, base, X, labels)
        of_learned, placed = f1(learned, later, truth), quietly(set_operating_point, base, X, labels)
        assert placed.offset_ <= 0
        of_placed, best = f1(placed, later, truth), 0
        for offset in np.quantile(learned.score_samples(later), np.linspace(0, 0.7, 30)):
            learned.offset_ = offset
            best = max(best, f1(learned, later, truth))
        found.append([f1(set_operating_point(base), later, truth), of_placed, of_learned, best])
    fitted, placed, learned, best = np.mean(found, axis=0)
    assert learned > fitted + 5
    assert learned > placed + 1
    assert learned > best - 2.5


def test_what_is_forecast_comes(world):
    """Shares of fresh messages, whose labels nobody knew: all that is told, before and after."""
    base, log = world
    off, covered = [], []
    for seed in range(5):
        X, y = log(400, 0.15, seed)
        later, truth = log(2000, 0.15, 200 + seed)
        told = (learned := quietly(learn_from_traffic, base, X, with_labels(y, 60))).changes_[-1]
        for name, model in (("before", base), ("after", learned)):
            answers, is_known = model.predict(later), truth != -1
            asked = skellipsoid.predict_set(model, later).action == "ask"
            found = {
                "right": np.mean((answers == truth)[is_known]),
                "wrong": np.mean(((answers != truth) & (answers != -1))[is_known]),
                "rejected": np.mean(answers[is_known] == -1),
                "noticed": np.mean(answers[~is_known] == -1),
                "asked": np.mean(asked[is_known]),
                "open_asked": np.mean(asked[~is_known]),
            }
            assert told[name].keys() == found.keys()
            for key, share in found.items():
                off.append(abs(told[name][key][0] - share))
                covered.append(off[-1] <= 2 * told[name][key][1])
    assert np.mean(off) < 0.05
    assert np.mean(covered) >= 0.7


def test_new_names_become_classes_where_messages_are_enough(world):
    base, log = world
    X, y = log(400, 0.4, 13)
    opened = np.flatnonzero(y == -1)
    near = opened[np.argsort(np.linalg.norm(X[opened] - X[opened[0]], axis=1))]
    labels = np.full(400, None, dtype=object)
    labels[:20], labels[near[:8]], labels[near[20:23]] = y[:20], 77, 88
    with pytest.warns(UserWarning, match="^88 has fewer than 5 different messages, too few for a class"):
        learned = learn_from_traffic(base, X, labels)
    assert learned.classes_.tolist() == [*range(N_CLASSES), 77]
    assert learned.changes_[-1]["classes"] == [77]
    assert (learned.predict_known(X[near[:8]]) == 77).mean() > 0.8
    copies = np.full(400, None, dtype=object)
    X[near[:8]] = X[near[0]]
    copies[near[:8]] = 77
    with pytest.warns(UserWarning, match="^77 has fewer than 5 different messages"):
        assert 77 not in learn_from_traffic(base, X, copies).classes_


def test_labelled_messages_are_scored_without_themselves(world, monkeypatch):
    base, log = world
    X, y = log(300, 0.2, 14)
    number, without = {row.round(4).tobytes(): i for i, row in enumerate(X)}, {}
    original = EllipsoidOpenSetClassifier.score_samples

    def watched(classifier, rows):
        scores = original(classifier, rows)
        if len(rows) < 60:  # of a part of the labelled ones
            numbers = [number[row.round(4).tobytes()] for row in rows]
            assert not set(numbers) & without.keys()
            without.update(zip(numbers, scores, strict=True))
        return scores

    monkeypatch.setattr(EllipsoidOpenSetClassifier, "score_samples", watched)
    learned = quietly(learn_from_traffic, base, X, with_labels(y, 60))
    monkeypatch.undo()
    assert sorted(without) == list(range(60))
    known = np.flatnonzero(y[:60] != -1)
    # A sample lies nearer to a mean that it is a part of.
    assert (np.array([without[i] for i in known]) < learned.score_samples(X[known])).mean() > 0.7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, None]}, "inconsistent numbers"),
        ({"estimator": skellipsoid.baselines.MahalanobisClassifier(threshold="auto")}, "cannot change after a fit"),
    ],
)
def test_bad_input_is_one_sentence(world, change, message):
    base, log = world
    X, y = log(300, 0.2, 16)
    given = {"estimator": base, "X": X, "y": with_labels(y, 30)} | change
    if given["estimator"] is not base:
        given["estimator"].fit(*log(300, 0.0, 17))
    with pytest.raises((ValueError, TypeError), match=message):
        learn_from_traffic(**given)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_learning_in_threads_leaves_the_filters_of_warnings(world):
    base, log = world
    X, y = log(120, 0.2, 15)
    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: learn_from_traffic(base, X, with_labels(y, 20)), range(2)))
    assert warnings.filters == before


# Which to label


def test_chosen_messages_stand_for_the_log(world):
    base, log = world
    off = {"chosen": [], "random": []}
    for seed, n in itertools.product(range(8), (30, 60)):
        X, y = log(400, 0.2, seed)
        chosen = skellipsoid.choose_to_label(base, X, n, random_state=seed)
        assert len(chosen.rows) == n
        assert chosen.weights.sum() == pytest.approx(400, rel=0.15)
        rows = {"chosen": chosen.rows, "random": np.random.default_rng(seed).permutation(400)[:n]}
        for way, weights in (("chosen", chosen.weights), ("random", np.ones(n))):
            labels, given = np.full(400, None, dtype=object), np.ones(400)
            labels[rows[way]], given[rows[way]] = y[rows[way]], weights
            told = estimate_open_share(base, X, labels, sample_weight=given).share
            off[way].append(told - np.mean(y == -1))
    # Known messages of this world spread over two deviations, which the model of a log does not foresee.
    assert abs(np.mean(off["chosen"])) < 0.08
    assert np.mean(np.abs(off["chosen"])) <= np.mean(np.abs(off["random"])) + 0.01


def test_one_message_far_out_makes_no_other_one_learned(world):
    base, log = world
    X, y = log(200, 0.2, 40)
    learned = quietly(learn_from_traffic, base, X, with_labels(y, 40))
    for scale in (1e6, 1e100):
        more = np.concatenate([X, scale * X[100:101]])
        assert skellipsoid.choose_to_label(learned, more, 500).rows.tolist() == list(range(40, 201))
    with pytest.raises(ValueError, match="All 40 messages were learned before"):
        skellipsoid.choose_to_label(learned, X[:40])


@pytest.mark.parametrize("scale", [1e20, 1e100])
@pytest.mark.parametrize("change", [learn_from_traffic, skellipsoid.add_classes])
def test_what_single_precision_cannot_keep_is_not_learned(world, change, scale):
    base, log = world
    X, y = log(60, 0.2, 41)
    X[7] *= scale
    y[7] = -1
    with pytest.raises(ValueError, match=r"^X has values in row 7 that are more than 1e\+15 times as far from"):
        quietly(change, base, X, y)


@pytest.mark.parametrize("use", [estimate_open_share, set_operating_point, learn_from_traffic])
def test_a_log_whose_squares_overflow_is_one_sentence(world, use):
    base, log = world
    X, y = log(60, 0.2, 42)
    with pytest.raises(ValueError, match=r"whose squares overflow|check the units of X, or drop"):
        quietly(use, base, 1e155 * X, y)


@pytest.mark.parametrize("use", [estimate_open_share, set_operating_point, learn_from_traffic])
@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (np.nan, "contains NaN in row 3; pass a finite number"),
        (-1.0, "Negative values in data passed to `sample_weight` in row 3; pass a finite number"),
        (0.0, "sample_weight is zero for all 1 rows"),
    ],
)
def test_what_is_no_weight_is_named_by_its_row(world, use, weight, sentence):
    base, log = world
    X, y = log(60, 0.2, 43)
    labels = [label if i == 3 else None for i, label in enumerate(y.tolist())]
    weights = np.full(60, np.nan)  # of messages that nobody labelled
    weights[3] = weight
    with pytest.raises(ValueError, match=sentence):
        quietly(use, base, X, labels, sample_weight=weights)


def test_trainers_learn_too(world):
    _, log = world
    X, y = log(120, 0.2, 15)
    clf = EllipsoidOpenSetClassifier(trainer=skellipsoid.EliDecide(max_iter=2), random_state=0)
    known = log(200, 0.0, 17)
    clf.fit(known[0][:100], known[1][:100])
    few = np.where(np.isin(y, clf.classes_), y, -1)
    learned = quietly(learn_from_traffic, clf, X, with_labels(few, 20))
    assert np.isfinite(learned.offset_)
