"""Promise: no sample chooses its own threshold, and every method beats a constant answer."""

import numpy as np
import pytest

from skellipsoid import ScoreOpenSetClassifier, baselines
from skellipsoid.baselines import KNNOpenSetClassifier, MahalanobisClassifier
from skellipsoid.metrics import open_set_f1_score


def ring(rows=40, seed=0, n_classes=6):
    """Classes on a circle, and open rows inside of it."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    centres = 10 * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles])
    y = np.repeat(np.arange(n_classes), rows)
    known = centres[y] + rng.normal(size=(len(y), 4))
    return known, y, 1.5 * rng.normal(size=(2 * rows, 4))


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_method_is_far_better_than_a_constant_answer(name):
    X, y, _ = ring()
    new, truth, opened = ring(seed=1)
    rows, truth = np.append(new, opened, axis=0), np.append(truth, np.full(len(opened), -1))
    options = {"random_state": 0} if "random_state" in getattr(baselines, name)().get_params() else {}
    if "normalize" in getattr(baselines, name)().get_params():
        options["normalize"] = False  # these features are no directions
    clf = getattr(baselines, name)(**options).fit(X, y)
    found = open_set_f1_score(truth, clf.predict(rows), labels=clf.classes_)
    constant = open_set_f1_score(truth, np.full(len(rows), -1), labels=clf.classes_)
    assert found > constant + 0.4
    assert found > 0.6
    assert (clf.predict(opened) == -1).mean() > 0.6
    assert (clf.predict(new) == truth[: len(new)]).mean() > 0.4


def test_no_row_is_scored_by_a_fit_that_saw_it_or_its_group():
    X, y, _ = ring(rows=12)
    seen = []

    class Spy(KNNOpenSetClassifier):
        def _fit_scores(self, samples):
            self.fitted = {row.tobytes() for row in samples.features}
            super()._fit_scores(samples)

        def _score(self, rows):
            seen.append((self.fitted, {row.tobytes() for row in rows}))
            return super()._score(rows)

    groups = np.arange(len(X)) // 3
    group_of = {row.tobytes(): group for row, group in zip(X, groups, strict=True)}
    Spy(threshold="auto", normalize=False).fit(X, y, groups=groups)
    scored = set()
    for fitted, tested in seen:
        assert not {group_of[row] for row in fitted} & {group_of[row] for row in tested}
        scored |= tested
    assert len(scored) == len(X)
    assert min(len(fitted) for fitted, _ in seen) < 0.7 * len(X)  # classes are left out, too


def test_held_out_distances_of_more_columns_than_rows_are_like_those_of_new_rows(monkeypatch):
    """A covariance of fewer rows is shrunk more, so that its distances are shorter: known rows were rejected."""
    monkeypatch.setattr("skellipsoid.baselines._threshold.MOST_DRAWS", 1)
    rng, y = np.random.default_rng(0), np.repeat(np.arange(13), 40)
    X = (rng.normal(0, 0.8, (13, 600))[y] + rng.normal(size=(len(y), 600))) / np.sqrt(np.arange(1, 601))
    clf = MahalanobisClassifier(threshold="auto").fit(X[::2], y[::2])
    new, held_out = clf.score_samples(X[1::2]), clf.held_out_["score"][~clf.held_out_["is_open"]]
    assert abs(np.median(held_out) - np.median(new)) < 0.4 * new.std()


class Given(ScoreOpenSetClassifier):
    """Its score is the first feature, whatever it was fitted on."""

    def fit_scores(self, X, classes, sample_weight):
        pass

    def class_scores(self, X):
        return np.repeat(X[:, :1], len(self.classes_), axis=1)


def given(threshold, scores, y, **more):
    return Given(threshold=threshold, duplicates="off", open_label=-9).fit(scores[:, np.newaxis], y, **more).threshold_


def test_quantile_is_the_largest_score_with_at_most_the_share_below():
    scores, y = np.arange(100.0)[::-1], np.arange(100) % 2
    assert given("quantile", scores, y) == 5.0
    assert given("quantile", scores, y, sample_weight=np.where(scores < 10, 0.5, 1.0)) == 9.0
    assert given("quantile", scores[:10], y[:10]) == 90.0


def test_best_threshold_is_where_the_expected_f1_is_best():
    scores, y = np.append(np.linspace(2, 3, 200), np.linspace(0, 1, 50)), np.append(np.arange(200) % 2, [-9] * 50)
    assert 1 < given("auto", scores, y) < 2.1
    # A monotone map of the scores takes the threshold along.
    assert given("auto", 10 * scores - 50, y) == pytest.approx(10 * given("auto", scores, y) - 50)


def test_a_class_in_one_group_stays_in_every_fit():
    X, y, _ = ring()
    groups = np.where(y == 0, -1, np.arange(len(y)))
    with pytest.warns(UserWarning, match="are a single group"):
        clf = MahalanobisClassifier().fit(X, y, groups=groups)
    assert (clf.predict(X[y > 0]) == y[y > 0]).mean() > 0.9
