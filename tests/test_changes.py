"""Classes come and go: the result is that of a fit on the same samples, with shares and size given.

The judge is ``fit`` itself on the union, whose choices are replaced by those of the classifier that was changed. So
standardisation, duplicates, outliers and weights are computed anew there.
"""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from changes_helpers import classifier, digits, kept_of, texts_like, wide
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, add_classes, merge_classes, refresh, remove_classes
from skellipsoid._ellipsoid import methods as shell
from skellipsoid._ellipsoid.changes import rejecting
from skellipsoid.datasets import make_open_blobs


def literal_fit(chosen_by, X, y, weights=None, *, monkeypatch, groups=None, **parameters):
    """Fit with the shares and the size of another classifier; all else is computed as in any fit."""
    given, prepare = chosen_by._boundaries.chosen, shell.prepare
    with monkeypatch.context() as patch:
        patch.setattr(shell, "prepare", lambda samples, opened, seed, *_: prepare(samples, opened, seed, given))
        return classifier(**parameters).fit(X, y, sample_weight=weights, groups=groups)


def assert_same_model(found, wanted, X, *, rtol=2e-4):
    """Compare all that a model answers, and the scores that it keeps."""
    np.testing.assert_array_equal(found.classes_, wanted.classes_)
    np.testing.assert_allclose(found.class_margins(X), wanted.class_margins(X), rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    np.testing.assert_allclose(found.held_out_scores_, wanted.held_out_scores_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.known_p_value(X), wanted.known_p_value(X), atol=2 / len(wanted.held_out_scores_))
    for name in ("radii_", "centroids_", "centers_"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=rtol, atol=rtol * wanted.scale_)


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_default_classifier_changes_until_it_is_saved_without_its_samples(is_saved, tmp_path):
    X, y = digits()
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 8], y[y < 8])
    if is_saved:
        skellipsoid.save(clf, tmp_path / "own")
        clf = skellipsoid.load(tmp_path / "own")
    assert add_classes(clf, X[y == 8], y[y == 8]).classes_.tolist() == [*range(9)]
    skellipsoid.save(clf.set_params(keep_samples=False), tmp_path / "given")
    given = skellipsoid.load(tmp_path / "given")
    np.testing.assert_array_equal(given.score_samples(X), clf.score_samples(X))
    with pytest.raises(ValueError, match="has not kept its training samples"):
        add_classes(given, X[y == 8], y[y == 8])
    assert add_classes(clf, X[y == 8], y[y == 8]).classes_.tolist() == [*range(9)]  # of the one in memory none is lost


@pytest.mark.filterwarnings("ignore:Classes without spread", "ignore:.*of .* classes have fewer than")
class TestEqualToAFit:
    """Each change gives what a fit on the same samples gives, as long as nothing is chosen anew."""

    @pytest.fixture(autouse=True)
    def nothing_is_chosen_anew(self, monkeypatch):
        for name in ("MOST_REJECTED", "MOST_MORE", "MOST_MORE_OF_ALL"):
            monkeypatch.setattr(rejecting, name, 2.0)

    @pytest.mark.parametrize("data", [digits, wide, texts_like])
    def test_each_change(self, data, monkeypatch):
        X, y = data()
        names = np.unique(y)
        is_new, is_gone, is_more = np.isin(y, names[-2:]), np.isin(y, names[[1, 3]]), np.isin(y, names[:3])
        is_more &= np.arange(len(y)) % 3 == 0
        merged, every = np.where(np.isin(y, names[:2]), 77, y), classifier().fit(X, y)
        without_new, without_more = (classifier().fit(X[~left], y[~left]) for left in (is_new, is_more))
        for found, chosen_by, kept, labels in (
            (add_classes(without_new, X[is_new], y[is_new]), without_new, slice(None), y),
            (add_classes(without_more, X[is_more], y[is_more]), without_more, slice(None), y),
            (remove_classes(every, names[[3, 1]]), every, ~is_gone, y),
            (merge_classes(every, {77: names[:2]}), every, slice(None), merged),
        ):
            assert_same_model(found, literal_fit(chosen_by, X[kept], labels[kept], monkeypatch=monkeypatch), X)

    def test_groups_weights_and_real_open_samples(self, monkeypatch):
        X, y = digits()
        groups, labels = np.arange(len(y)) // 7, np.where(y == 9, -1, y)
        weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
        later = (y == 8) | ((y == 9) & (np.arange(len(y)) % 2 == 0))
        old = classifier().fit(X[~later], labels[~later], sample_weight=weights[~later], groups=groups[~later])
        # A new sample has the mean weight of the old ones.
        weights[later] = weights[~later & (labels >= 0)].mean()
        groups = groups + np.where(later, 1000, 0)
        wanted = literal_fit(old, X, labels, weights, monkeypatch=monkeypatch, groups=groups)
        found = add_classes(old, X[later], labels[later], groups=groups[later])
        assert_same_model(found, wanted, X[::5])
        assert found.held_out_.is_open.sum() == wanted.held_out_.is_open.sum()

    def test_copies_that_later_samples_show_to_be_equal_by_chance(self, monkeypatch):
        X, y = wide(4, 40, 6)
        X = np.round(16 * X)
        X[2] = X[0]
        later = np.random.default_rng(1).integers(4, size=(400, 6)).astype(float)
        old = classifier(outliers="keep").fit(X, y)
        assert kept_of(old).copies.max() == 2
        union, labels = np.concatenate([X, later]), np.append(y, np.zeros(400, dtype=int))
        found = add_classes(old, later, labels[len(y) :])
        assert kept_of(found).copies.max() == 1
        wanted = literal_fit(old, union, labels, monkeypatch=monkeypatch, outliers="keep")
        assert_same_model(found, wanted, X)

    @pytest.mark.parametrize("duplicates", ["once", "each"])
    @pytest.mark.parametrize("change", ["update", "merge"])
    def test_many_copies_take_no_memory(self, change, duplicates):
        X, y = wide(6, 30, 20)
        X, y = np.concatenate([X, np.repeat(X[:1], 20_000, axis=0)]), np.append(y, np.zeros(20_000, dtype=int))
        old = classifier(duplicates=duplicates).fit(X, y)
        tracemalloc.start()
        try:
            found = add_classes(old, X[:1] + 0.1, [0]) if change == "update" else merge_classes(old, {7: [0, 1]})
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert kept_of(found).copies.sum() == len(X) + (change == "update")
        assert most < X.astype(np.float32).nbytes / 2

    def test_a_feature_that_was_constant(self, monkeypatch):
        X, y = digits()
        X[y < 8, 5] = 3.0
        X[y >= 8, 5] += np.arange((y >= 8).sum()) % 7
        old = classifier().fit(X[y < 8], y[y < 8])
        found = add_classes(old, X[y >= 8], y[y >= 8])
        assert_same_model(found, literal_fit(old, X, y, monkeypatch=monkeypatch), X[::5])
        back = remove_classes(found, [8, 9])
        np.testing.assert_allclose(back.score_samples(X[::5]), old.score_samples(X[::5]), rtol=1e-4, atol=1e-5)


def apart(n_classes, n_features, spreads=1.0, n=60, seed=0):
    """Samples of classes, and new ones: the last class is open."""
    rng = np.random.default_rng(seed)
    means, spreads = 3 * rng.normal(size=(n_classes, n_features)) / n_features**0.5, np.broadcast_to(spreads, n_classes)
    y = np.repeat(np.arange(n_classes), n)

    def draw():
        return means[y] + rng.normal(size=(len(y), n_features)) * spreads[y, np.newaxis] / n_features**0.5

    return draw(), draw(), y


def figures(clf, X, y):
    """Shares of new known samples that are right, and of the others that are noticed."""
    is_known, found = np.isin(y, clf.classes_), clf.predict(X)
    return np.array([np.mean(found[is_known] == y[is_known]), np.mean(found[~is_known] == -1)])


class TestChosenAnew:
    """What was chosen for other classes is chosen anew where it does not suit those of now."""

    @pytest.mark.parametrize("n_left", [2, 1])
    def test_few_classes_left(self, n_left):
        X, y = make_open_blobs(720, 128, n_known=6, open_share=0, random_state=0)
        clf = classifier().fit(X[:360], y[:360])
        few, new, truth = remove_classes(clf, np.arange(6 - n_left)), X[360:], y[360:]
        assert figures(few, new, truth).min() > 0.9
        if n_left == 2:
            merged = merge_classes(clf, {9: [0, 1, 2, 3, 4]})
            assert np.mean(merged.predict(new) == np.where(truth < 5, 9, 5)) > 0.9

    @pytest.mark.parametrize("seed", [0, 3])
    def test_a_chain_of_changes_is_a_fit(self, seed):
        rng = np.random.default_rng(seed)
        X, new, y = apart(10, [8, 32, 128, 200][seed], seed=seed)
        clf, own = classifier().fit(X[y < 7], y[y < 7]), set(range(7))
        for what in rng.choice(["add", "remove", "merge", "refresh"], 4):
            if what == "add" and (left := sorted(set(range(9)) - own)):
                names = rng.choice(left, min(2, len(left)), replace=False)
                clf = add_classes(clf, X[np.isin(y, names)], y[np.isin(y, names)])
                own |= set(names.tolist())
            elif what == "remove" and len(own) > 3:
                names = rng.choice(sorted(own), len(own) - 3, replace=False)
                clf = remove_classes(clf, names)
                own -= set(names.tolist())
            elif what == "merge":
                one, other = rng.choice(sorted(own), 2, replace=False)
                clf = merge_classes(clf, {int(one): [int(one), int(other)]})
                y = np.where(y == other, one, y)
                own -= {int(other)}
            else:
                clf = refresh(clf)
        is_own = np.isin(y, sorted(own))
        wanted = classifier().fit(X[is_own], y[is_own])
        differences = figures(wanted, new, y) - figures(clf, new, y)
        assert np.abs(differences).max() < 0.05

    def test_a_limit_that_was_placed_for_another_choice_is_said(self):
        X, _, y = apart(5, 20)
        clf = skellipsoid.set_operating_point(classifier().fit(X, y), open_share=0.1)
        with pytest.warns(UserWarning, match="chosen anew.*the threshold was placed for the former ones: place it"):
            few = remove_classes(clf, [0, 1])
        assert few.offset_ == clf.offset_

    def test_a_class_that_rejects_more_than_the_others_is_named(self, monkeypatch):
        monkeypatch.setattr(rejecting, "MOST_REJECTED", 2.0)
        monkeypatch.setattr(rejecting, "MOST_MORE_OF_ALL", 2.0)
        X, _, y = apart(7, 50, [1.0] * 6 + [2.0], n=100)
        clf = classifier().fit(X[y < 6], y[y < 6])
        with pytest.warns(UserWarning, match=r"of the held-out samples of 6 are rejected.*refresh chooses them anew"):
            add_classes(clf, X[y == 6], y[y == 6])


class TestTheOldOne:
    """The classifier that is changed stays as it is, and the new one carries on."""

    def test_is_unchanged(self, old):
        X, y = digits()
        before = pickle.dumps(old)
        add_classes(old, X[y >= 8], y[y >= 8])
        remove_classes(old, 3)
        merge_classes(old, {3: [3, 4]})
        add_classes(old, X[:50][y[:50] < 8], y[:50][y[:50] < 8])
        refresh(old)
        assert pickle.dumps(old) == before

    def test_changes_are_noted(self, old):
        X, y = digits()
        new = refresh(merge_classes(remove_classes(add_classes(old, X[y == 8], y[y == 8]), [0]), {1: [1, 2]}))
        assert old.changes_ == []
        assert [change["what"] for change in new.changes_] == ["add", "remove", "merge", "refresh"]
        assert [change["n_samples"] for change in new.changes_[:2]] == [(y == 8).sum(), (y == 0).sum()]
        assert new.changes_[2]["classes"] == [1, 2]
        assert new.changes_[2]["into"] == 1

    @pytest.mark.filterwarnings("ignore:Shrinkage and size are chosen anew")
    def test_the_operating_point_stays(self, old):
        X, y = digits()
        old = copy.deepcopy(old)
        old.offset_, old.class_offsets_ = 0.1, np.arange(8) / 100
        more = merge_classes(remove_classes(add_classes(old, X[y == 8], y[y == 8]), [0]), {20: [3, 5]})
        assert more.offset_ == 0.1
        assert dict(zip(more.classes_.tolist(), more.class_offsets_.tolist(), strict=True)) == {
            1: 0.01, 2: 0.02, 4: 0.04, 6: 0.06, 7: 0.07, 8: 0.0, 20: 0.05
        }  # fmt: skip
        assert refresh(more).offset_ == 0


@pytest.fixture(name="old", scope="module")
def fixture_old():
    X, y = digits()
    return classifier().fit(X[y < 8], y[y < 8])


class TestBadInput:
    """One sentence for each, and the classifier stays."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda old, X: add_classes(old, X, ["a", "b"]), "strings"),
            (lambda old, X: add_classes(old, X[:, 1:], [8, 9]), "63 features"),
            (lambda old, X: add_classes(old, X, [8]), "1 labels"),
            (lambda old, X: remove_classes(old, [11]), "^11 is not a known class"),
            (lambda old, X: remove_classes(old, range(8)), "^All 8 known classes"),
            (lambda old, X: merge_classes(old, {4: [1, 2]}), "a class that stays"),
            (lambda old, X: merge_classes(old, {-1: [1, 2]}), "the open label"),
            (lambda old, X: merge_classes(old, {20: [1, 2], 21: [2, 3]}), "^2 is listed more than once"),
            (lambda old, X: merge_classes(old, {}), "mapping"),
        ],
    )
    def test_one_sentence(self, old, change, message):
        with pytest.raises(ValueError, match=message):
            change(old, np.ones((2, 64)))

    def test_outliers_and_single_samples(self):
        X, y = digits()
        old = classifier().fit(X[y < 8], y[y < 8])
        new, labels = X[y == 8].copy(), y[y == 8]
        new[3] *= 1e4
        with pytest.warns(UserWarning, match="outliers.*: row 3"):
            found = add_classes(old, new, labels)
        assert np.mean(found.predict(X[y == 8]) == 8) > 0.7
        with pytest.warns(UserWarning, match="Classes without spread.*: 8"):
            alone = add_classes(old, X[y == 8][:1], [8])
        assert alone.predict(X[y == 8][:1]).tolist() == [8]

    def test_without_samples(self):
        X, y = digits()
        with pytest.raises(ValueError, match="fit it again with keep_samples=True, the default"):
            remove_classes(EllipsoidOpenSetClassifier(keep_samples=False).fit(X, y), [0])
        with pytest.raises(NotFittedError):
            remove_classes(classifier(), [0])


class TestPipelines:
    """The functions take a Pipeline, and keep its transformers."""

    def test_add_and_remove(self):
        X, y = digits()
        old = make_pipeline(FunctionTransformer(np.sqrt), StandardScaler(), classifier()).fit(X[y < 8], y[y < 8])
        more = add_classes(old, X[y >= 8], y[y >= 8])
        assert more[1] is old[1]
        assert more.named_steps["ellipsoidopensetclassifier"].classes_.tolist() == list(range(10))
        assert len(old[-1].classes_) == 8
        assert np.mean(more.predict(X) == y) > 0.8
        fresh = refresh(more)
        assert fresh[-1].changes_[-1]["what"] == "refresh"
        assert fresh[-1].shared_share_ != more[-1].shared_share_

    def test_others_are_refused(self):
        for estimator in (StandardScaler(), make_pipeline(StandardScaler())):
            with pytest.raises(TypeError, match="StandardScaler"):
                remove_classes(estimator, [0])
