"""What all splitters share: labels of every kind, seeds, errors, and their use by scikit-learn."""

import copy
import pickle
import random

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.datasets import make_blobs
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold

ALL = [OpenSetKFold(3), OpenSetShuffleSplit(3), KnownClassSplit(0.5, 0), RealOpenKFold(3)]


def equal_splits(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b) for one, two in zip(first, second, strict=True) for a, b in zip(one, two, strict=True)
    )


class TestInterface:
    y = np.repeat(["-1", "a", "b", "c", "d"], 6)

    @pytest.mark.parametrize("splitter", ALL, ids=repr)
    def test_number_of_splits(self, splitter):
        assert splitter.get_n_splits() == len(list(splitter.split(self.y, self.y)))

    @pytest.mark.parametrize(
        ("splitter", "expected"),
        [
            (OpenSetKFold(4), "OpenSetKFold(n_splits=4, open_label=-1, random_state=None, shuffle=False)"),
            (
                RealOpenKFold(shuffle=True, random_state=1, open_label="oos"),
                "RealOpenKFold(n_splits=5, open_label='oos', random_state=1, shuffle=True)",
            ),
            (
                OpenSetShuffleSplit(2),
                "OpenSetShuffleSplit(known_ratio=0.75, n_splits=2, open_label=-1, random_state=None,\n"
                "          test_size=0.2)",
            ),
            (
                KnownClassSplit(0.25, 3),
                "KnownClassSplit(known_ratio=0.25, open_label=-1, random_state=3, test_rows=None,\n"
                "        test_size=0.2)",
            ),
        ],
    )
    def test_repr(self, splitter, expected):
        assert " ".join(repr(splitter).split()) == " ".join(expected.split())

    @pytest.mark.parametrize("kind", [OpenSetKFold, RealOpenKFold, OpenSetShuffleSplit])
    def test_random_state(self, kind):
        def split(random_state):
            options = {} if kind is OpenSetShuffleSplit else {"shuffle": True}
            return list(kind(3, random_state=random_state, **options).split(self.y, self.y))

        assert equal_splits(split(7), split(7))
        assert equal_splits(split(7), split(np.random.RandomState(7)))
        assert not equal_splits(split(7), split(8))
        assert not equal_splits(split(None), split(None))

    @pytest.mark.parametrize("splitter", [OpenSetKFold(3, shuffle=True), OpenSetShuffleSplit(3)], ids=repr)
    def test_without_a_seed_one_number_is_drawn_from_numpy(self, splitter):
        np.random.seed(5)  # noqa: NPY002
        first = list(splitter.split(self.y, self.y))
        following = np.random.random()  # noqa: NPY002
        np.random.seed(5)  # noqa: NPY002
        assert equal_splits(list(splitter.split(self.y, self.y)), first)
        np.random.seed(5)  # noqa: NPY002
        np.random.randint(2**31 - 1)  # noqa: NPY002
        assert np.random.random() == following  # noqa: NPY002

    @pytest.mark.parametrize("splitter", [OpenSetKFold(3, shuffle=True), OpenSetShuffleSplit(3)], ids=repr)
    def test_a_seed_leaves_every_global_generator_alone(self, splitter):
        before = np.random.get_state(), torch.get_rng_state().tolist(), random.getstate()  # noqa: NPY002
        seeded = copy.copy(splitter)
        seeded.random_state = 0
        list(seeded.split(self.y, self.y))
        after = np.random.get_state(), torch.get_rng_state().tolist(), random.getstate()  # noqa: NPY002
        assert repr(after) == repr(before)
        assert after[0][2] == before[0][2]

    @pytest.mark.parametrize("splitter", ALL, ids=repr)
    def test_copies_split_alike(self, splitter):
        splitter = KnownClassSplit(0.5, 1) if isinstance(splitter, KnownClassSplit) else copy.copy(splitter)
        splitter.random_state = 3
        if hasattr(splitter, "shuffle"):
            splitter.shuffle = True
        expected = list(splitter.split(self.y, self.y))
        for twin in (pickle.loads(pickle.dumps(splitter)), copy.deepcopy(splitter)):
            assert equal_splits(list(twin.split(self.y, self.y)), expected)

    @pytest.mark.parametrize("kind", ["int64", "uint8", "float32", "bool", "object"])
    def test_any_kind_of_numbers(self, kind):
        y = np.tile([0, 1], 6) if kind == "bool" else np.tile([0, 1, 2, 3], 6)
        expected = list(StratifiedKFold(2).split(y, y))
        if kind == "bool":
            with pytest.raises(ValueError, match="holds 2 known classes"):
                list(OpenSetKFold(2).split(y, y.astype(bool)))
        else:
            splits = list(OpenSetKFold(2).split(y, y.astype(kind)))
            assert equal_splits([s[1:] for s in splits], [s[1:] for s in expected])

    @pytest.mark.parametrize("splitter", ALL, ids=lambda splitter: type(splitter).__name__)
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 1], "X has 3 rows and y has 2"),
            ([7, 7, 7], "holds 1 known|1 classes keeps|No sample carries the open label|0 known"),
        ],
    )
    def test_bad_labels(self, splitter, y, message):
        with pytest.raises(ValueError, match=message) as error:
            list(splitter.split(["x", "y", "z"], y))
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: OpenSetKFold(1), "n_splits=1 must be an integer of at least 2"),
            (lambda: OpenSetKFold(2.0), "n_splits=2.0 must be an integer"),
            (lambda: OpenSetKFold(True), "n_splits=True must be an integer"),
            (lambda: OpenSetKFold(3, shuffle=1), "shuffle=1 must be True or False"),
            (lambda: RealOpenKFold(3, random_state=0), "random_state=0 has no effect while shuffle=False"),
            (lambda: OpenSetShuffleSplit(0), "n_splits=0 must be an integer of at least 1"),
            (lambda: OpenSetShuffleSplit(known_ratio=0), "known_ratio=0 must be a number above 0"),
            (lambda: OpenSetShuffleSplit(known_ratio=25), "known_ratio=25 must be a number above 0"),
            (lambda: OpenSetShuffleSplit(test_size=1.0), "test_size=1.0 must be a share between 0 and 1"),
            (lambda: OpenSetShuffleSplit(test_size=0), "test_size=0 must be a share"),
            (lambda: KnownClassSplit("a quarter", 0), "known_ratio='a quarter' must be a number"),
        ],
    )
    def test_bad_parameters(self, make, message):
        with pytest.raises((ValueError, TypeError), match=message):
            make()


class TestWithScikitLearn:
    X, y = make_blobs(120, centers=6, cluster_std=0.3, random_state=0)

    def test_cross_val_predict(self):
        cv = OpenSetKFold(3)
        predicted = cross_val_predict(KNeighborsClassifier(3), self.X, self.y, cv=cv)
        for train, test in cv.split(self.X, self.y):
            expected = KNeighborsClassifier(3).fit(self.X[train], self.y[train]).predict(self.X[test])
            np.testing.assert_array_equal(predicted[test], expected)
        # A third of the classes is unknown where it is tested, and all others are found.
        assert np.isclose(np.mean(predicted == self.y), 2 / 3, atol=0.05)

    def test_cross_val_predict_on_texts_with_open_rows(self):
        words = {"card": "lost my card", "loan": "a loan please", "-1": "tell me a joke"}
        y = np.repeat(list(words), 6)
        texts = [f"{words[name]} {i}" for i, name in enumerate(y)]
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        predicted = cross_val_predict(model, texts, y, cv=RealOpenKFold(3))
        assert set(predicted) == {"card", "loan"}
        np.testing.assert_array_equal(predicted[y != "-1"], y[y != "-1"])

    @pytest.mark.parametrize(
        "cv",
        [
            OpenSetKFold(3, shuffle=True, random_state=0),
            OpenSetShuffleSplit(3, random_state=0),
            KnownClassSplit(0.5, 0),
        ],
        ids=lambda cv: type(cv).__name__,
    )
    def test_grid_search(self, cv):
        search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=cv).fit(self.X, self.y)
        assert search.n_splits_ == cv.get_n_splits()
        scores = [search.cv_results_[f"split{i}_test_score"] for i in range(search.n_splits_)]
        for (train, test), found in zip(cv.split(self.X, self.y), scores, strict=True):
            model = KNeighborsClassifier(1).fit(self.X[train], self.y[train])
            assert found[0] == model.score(self.X[test], self.y[test])
            assert found[0] < 1  # the open rows are errors for a classifier that never answers open

    def test_plain_stratified_folds_hide_the_open_rows(self):
        y = np.where(self.y > 3, -1, self.y)
        model = KNeighborsClassifier(3)
        assert cross_val_score(model, self.X, y, cv=StratifiedKFold(3)).min() > 0.9
        assert np.allclose(cross_val_score(model, self.X, y, cv=RealOpenKFold(3)), 2 / 3, atol=0.1)

    @pytest.mark.parametrize("routing", [False, True])
    def test_groups_reach_the_splitter(self, routing):
        seen = []

        class Recorder(KNeighborsClassifier):
            def fit(self, X, y):
                seen.append({tuple(row) for row in X})
                return super().fit(X, y)

        groups = np.random.RandomState(0).randint(30, size=len(self.y))
        cv = OpenSetKFold(3)
        with config_context(enable_metadata_routing=routing):
            passed = {"params": {"groups": groups}} if routing else {"groups": groups}
            cross_val_score(Recorder(), self.X, self.y, cv=cv, **passed)
        expected = [{tuple(row) for row in self.X[train]} for train, _ in cv.split(self.X, self.y, groups)]
        assert seen == expected
