import copy
import csv
import json
import os
import pickle
from functools import lru_cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import make_blobs
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold
from skellipsoid.model_selection._kfold import _assign_open_folds

DATA = Path(os.environ.get("SKELLIPSOID_DATA") or Path(__file__).parents[2] / "shared" / "data")
KNOWN_CLASSES = DATA / "known_classes.json"
ALL = [OpenSetKFold(3), OpenSetShuffleSplit(3), KnownClassSplit(0.5, 0), RealOpenKFold(3)]

fast = settings(deadline=None, max_examples=60)


@st.composite
def kfold_problems(draw, min_open=0):
    """Labels with 3 to 9 classes in any order, a possible ``n_splits``, perhaps rows labelled open."""
    n_classes = draw(st.integers(3, 9))
    n_splits = draw(st.integers(2 if n_classes > 3 else 3, min(n_classes, 5)))
    sizes = draw(st.lists(st.integers(n_splits, 12), min_size=n_classes, max_size=n_classes))
    n_open = draw(st.integers(min_open and n_splits, 8))
    order = np.random.RandomState(draw(st.integers(0, 99))).permutation(sum(sizes) + n_open)
    y = np.repeat([-1, *range(n_classes)], [n_open, *sizes])[order]
    if draw(st.booleans()):
        y = np.where(y == -1, "-1", np.char.add("c", y.astype(str)))
    return y, n_splits


def open_label_of(y):
    return "-1" if y.dtype.kind == "U" else -1


def splitter_of(kind, n_splits, seed):
    return kind(n_splits, shuffle=seed is not None, random_state=seed)


def equal_splits(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b) for one, two in zip(first, second, strict=True) for a, b in zip(one, two, strict=True)
    )


seeds = st.none() | st.integers(0, 2**32 - 1)


class TestOpenSetKFold:
    @fast
    @given(kfold_problems(), seeds)
    def test_the_definition_holds(self, problem, seed):
        y, n_splits = problem
        label = open_label_of(y)
        classes = np.setdiff1d(y, [label])
        splits = list(splitter_of(OpenSetKFold, n_splits, seed).split(y, y))

        assert len(splits) == n_splits
        assert sorted(np.concatenate([test for _, test in splits])) == list(range(len(y)))
        times_open = dict.fromkeys(classes.tolist(), 0)
        for train, test in splits:
            known = np.unique(y[train])
            left_out = np.setdiff1d(classes, known)
            assert not np.intersect1d(train, test).size
            assert label not in known
            assert len(known) >= 2
            assert len(left_out) in {len(classes) // n_splits, -(-len(classes) // n_splits)}
            # Nothing else is lost: each row is tested, or trains, or is of a class left out, or labelled open.
            absent = np.setdiff1d(np.arange(len(y)), np.concatenate([train, test]))
            assert set(y[absent].tolist()) <= {*left_out.tolist(), label}
            for name in np.intersect1d(left_out, y[test]).tolist():
                times_open[name] += 1
        assert set(times_open.values()) == {1}

    @fast
    @given(kfold_problems(), seeds)
    def test_shares_differ_in_rows_by_at_most_the_largest_class(self, problem, seed):
        y, n_splits = problem
        classes, counts = np.unique(y[y != open_label_of(y)], return_counts=True)
        rows = [
            counts[~np.isin(classes, y[train])].sum()
            for train, _ in splitter_of(OpenSetKFold, n_splits, seed).split(y, y)
        ]
        assert max(rows) - min(rows) <= counts.max()

    def test_large_and_small_classes_are_spread_without_shuffling(self):
        y = np.repeat(np.arange(6), [50, 40, 30, 30, 20, 10])
        left_out = [np.setdiff1d(y, y[train]).tolist() for train, _ in OpenSetKFold(3).split(y, y)]
        assert left_out == [[0, 5], [1, 4], [2, 3]]  # 60 rows each

    def test_shuffling_draws_other_shares(self):
        y = np.repeat(np.arange(12), 6)
        shares = {
            tuple(
                tuple(np.setdiff1d(y, y[train]))
                for train, _ in OpenSetKFold(3, shuffle=True, random_state=s).split(y, y)
            )
            for s in range(8)
        }
        assert len(shares) == 8

    def test_shuffling_does_not_tie_a_class_to_a_fold(self):
        y = np.repeat(np.arange(4), [9, 8, 7, 6])
        folds = [
            next(
                i
                for i, (train, _) in enumerate(OpenSetKFold(4, shuffle=True, random_state=s).split(y, y))
                if 0 not in y[train]
            )
            for s in range(40)
        ]
        assert set(folds) == {0, 1, 2, 3}

    @fast
    @given(kfold_problems(min_open=1), seeds, st.sampled_from([OpenSetKFold, RealOpenKFold]))
    def test_test_parts_are_those_of_stratified_kfold(self, problem, seed, kind):
        y, n_splits = problem
        plain = StratifiedKFold(n_splits, shuffle=seed is not None, random_state=seed).split(y, y)
        for (_, test), (_, expected) in zip(splitter_of(kind, n_splits, seed).split(y, y), plain, strict=True):
            np.testing.assert_array_equal(test, expected)

    @fast
    @given(kfold_problems(min_open=1), seeds, st.sampled_from([OpenSetKFold, RealOpenKFold]))
    def test_test_parts_are_stratified_within_one_row(self, problem, seed, kind):
        y, n_splits = problem
        tests = [test for _, test in splitter_of(kind, n_splits, seed).split(y, y)]
        counts = np.array([[np.sum(y[test] == name) for name in np.unique(y)] for test in tests])
        assert np.ptp(counts, axis=0).max() <= 1

    def test_few_open_rows_need_not_reach_every_part(self):
        y = np.repeat([-1, 0, 1, 2, 3], [1, 5, 5, 5, 5])
        splits = list(OpenSetKFold(4).split(y, y))
        assert sum(0 in test for _, test in splits) == 1
        assert not any(0 in train for train, _ in splits)

    def test_another_open_label_leaves_minus_one_a_class(self):
        y = np.repeat([-1, 0, 1, 9], 3)
        for train, _ in OpenSetKFold(3, open_label=9).split(y, y):
            assert 9 not in y[train]
        assert any(-1 in y[train] for train, _ in OpenSetKFold(3, open_label=9).split(y, y))

    @pytest.mark.parametrize(
        ("sizes", "n_splits", "message"),
        [
            ([6, 6], 2, "holds 2 known classes, but at least 3"),
            ([6, 6, 6], 5, r"3 known classes, fewer than n_splits=5.*use n_splits=3 at most"),
            ([6, 6, 6], 2, r"n_splits=2 leaves 1 of 3 classes known.*use n_splits=3\."),
            ([6, 6, 2, 1], 3, r"Too few rows of the classes 2, 3 \(the smallest has 1\).*n_splits=3"),
        ],
    )
    def test_too_little_data(self, sizes, n_splits, message):
        y = np.repeat(np.arange(len(sizes)), sizes)
        with pytest.raises(ValueError, match=message):
            list(OpenSetKFold(n_splits).split(y, y))

    def test_an_error_names_at_most_five_classes(self):
        y = np.concatenate([np.arange(9), np.repeat(np.arange(9, 12), 4)])
        with pytest.raises(ValueError, match=r"classes 0, 1, 2, 3, 4 and 4 more \("):
            list(OpenSetKFold(3).split(y, y))

    @pytest.mark.parametrize("n_splits", [3, 4])
    def test_the_smallest_possible_problem(self, n_splits):
        y = np.repeat(np.arange(n_splits), n_splits)
        for train, test in OpenSetKFold(n_splits).split(y, y):
            assert len(np.unique(y[train])) == n_splits - 1
            assert len(np.setdiff1d(y[test], y[train])) == 1


class TestGroups:
    @fast
    @given(kfold_problems(min_open=1), seeds, st.integers(0, 99), st.sampled_from([OpenSetKFold, RealOpenKFold]))
    def test_no_group_stands_in_both_parts(self, problem, seed, group_seed, kind):
        y, n_splits = problem
        groups = np.random.RandomState(group_seed).permutation(np.arange(len(y)) // 2)
        try:
            splits = list(splitter_of(kind, n_splits, seed).split(y, y, groups))
        except ValueError as error:
            assert str(error).startswith("Groups ")  # noqa: PT017
            assume(False)
        label = open_label_of(y)
        plain = StratifiedGroupKFold(n_splits, shuffle=seed is not None, random_state=seed).split(y, y, groups)
        times_open = dict.fromkeys(np.setdiff1d(y, [label]).tolist(), 0)
        for (train, test), (_, expected) in zip(splits, plain, strict=True):
            np.testing.assert_array_equal(test, expected)
            assert not np.intersect1d(groups[train], groups[test]).size
            assert label not in y[train]
            assert len(np.unique(y[train])) >= 2
            for name in np.setdiff1d(y[test], [*y[train], label]).tolist():
                times_open[name] += 1
        assert set(times_open.values()) == ({1} if kind is OpenSetKFold else {0})

    def test_a_class_within_one_group_is_open_where_that_group_is_tested(self):
        y = np.repeat(np.arange(6), 6)
        groups = np.where(y == 0, 100, np.tile([0, 1, 2], 12))
        for train, test in OpenSetKFold(3).split(y, y, groups):
            assert (0 in y[train]) == (0 not in y[test])

    @pytest.mark.parametrize("shuffled", [False, True])
    @settings(deadline=None, max_examples=400)
    @given(data=st.data())
    def test_open_folds_against_brute_force(self, data, shuffled):
        n_classes = data.draw(st.integers(2, 6))
        n_splits = data.draw(st.integers(2, min(n_classes, 4)))
        cells = st.lists(st.integers(0, 2), min_size=n_splits, max_size=n_splits).filter(any)
        counts = np.array(data.draw(st.lists(cells, min_size=n_classes, max_size=n_classes)))
        open_in = _assign_open_folds(counts, np.random.RandomState(0) if shuffled else None)

        assert (counts[np.arange(n_classes), open_in] > 0).all()
        possible = any((counts[list(p), range(n_splits)] > 0).all() for p in permutations(range(n_classes), n_splits))
        assert (len(np.unique(open_in)) == n_splits) == possible

    def test_errors(self):
        y = np.repeat(np.arange(4), 6)
        with pytest.raises(ValueError, match=r"groups holds 2 groups, fewer than n_splits=4"):
            list(OpenSetKFold(4).split(y, y, y % 2))
        z = np.repeat(np.arange(3), 6)
        with pytest.raises(ValueError, match=r"Groups hold the classes together.*leave out \[2, 0, 1\] of 3 classes"):
            list(OpenSetKFold(3).split(z, z, np.repeat([0, 1, 2], [13, 3, 2])))
        with pytest.raises(ValueError, match=r"groups has the shape \(3,\) and y has 24 rows"):
            list(OpenSetKFold(4).split(y, y, [1, 2, 3]))
        z = np.repeat([-1, 0, 1], 6)
        with pytest.raises(ValueError, match="Groups hold all rows of the classes 1 in one test part"):
            list(RealOpenKFold(3).split(z, z, np.where(z == 1, 9, np.arange(18))))
        with pytest.raises(ValueError, match="Groups leave 2 of 3 test parts without an open row"):
            list(RealOpenKFold(3).split(z, z, np.where(z == -1, 99, np.arange(18))))


class TestRealOpenKFold:
    @fast
    @given(kfold_problems(min_open=1), seeds)
    def test_open_rows_never_train_and_test_once(self, problem, seed):
        y, n_splits = problem
        label = open_label_of(y)
        splits = list(splitter_of(RealOpenKFold, n_splits, seed).split(y, y))
        assert sorted(np.concatenate([test for _, test in splits])) == list(range(len(y)))
        for train, test in splits:
            assert label in y[test]
            rest = np.setdiff1d(np.arange(len(y)), test)
            np.testing.assert_array_equal(train, rest[y[rest] != label])

    def test_two_classes_are_enough(self):
        y = np.repeat([-1, 0, 1], 4)
        assert len(list(RealOpenKFold(4).split(y, y))) == 4

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 0, 1, 1], r"No row of y carries the open label \(open_label=-1\)"),
            ([0, 0, 1, 1, -1], "holds 1 open rows, fewer than n_splits=2"),
            ([0, 0, -1, -1], "holds 1 known classes beside the open label"),
            ([0, 0, 1, -1, -1], "Too few rows of the classes 1"),
        ],
    )
    def test_errors(self, y, message):
        with pytest.raises(ValueError, match=message):
            list(RealOpenKFold(2).split(y, y))


class TestOpenSetShuffleSplit:
    @fast
    @given(
        st.lists(st.integers(2, 15), min_size=3, max_size=9),
        st.integers(0, 6),
        st.floats(0.05, 0.9),
        st.floats(0.4, 0.8),
        st.integers(0, 2**32 - 1),
    )
    def test_the_definition_holds(self, sizes, n_open, test_size, ratio, seed):
        assume(2 <= round(len(sizes) * ratio) < len(sizes))
        y = np.repeat([-1, *range(len(sizes))], [n_open, *sizes])
        n_test = int(np.ceil(test_size * len(y)))
        assume(n_test < len(y))
        splits = list(OpenSetShuffleSplit(3, test_size=test_size, known_ratio=ratio, random_state=seed).split(y, y))
        assert len(splits) == 3
        for train, test in splits:
            known = np.unique(y[train])
            assert -1 not in known
            assert len(known) == round(len(sizes) * ratio)
            rest = np.setdiff1d(np.arange(len(y)), test)
            np.testing.assert_array_equal(train, rest[np.isin(y[rest], known)])
            taken = np.bincount(y[test] + 1, minlength=len(sizes) + 1)[1:]
            share = np.array(sizes) * n_test / len(y)
            assert (np.abs(taken - share) < 1).all()
            assert (taken >= 1).all()
            assert (taken < sizes).all()

    def test_the_number_of_test_rows_is_exact_when_classes_are_large_enough(self):
        y = np.repeat([-1, 0, 1, 2, 3], [7, 11, 23, 31, 13])
        for test_size, expected in [(0.2, 17), (0.5, 43), (20, 20), (1 / 3, 29)]:
            for _, test in OpenSetShuffleSplit(4, test_size=test_size, random_state=0).split(y, y):
                assert len(test) == expected

    def test_spare_rows_go_to_the_largest_remainders(self):
        y = np.repeat(np.arange(4), [11, 23, 31, 14])
        for _, test in OpenSetShuffleSplit(5, test_size=20, random_state=0).split(y, y):
            # 2.78, 5.82, 7.85 and 3.54 rows: three spare rows beside the floors.
            assert np.bincount(y[test]).tolist() == [3, 6, 8, 3]

    def test_every_row_and_every_class_gets_its_turn(self):
        y = np.repeat(np.arange(4), 10)
        splits = list(OpenSetShuffleSplit(200, known_ratio=0.5, random_state=0).split(y, y))
        tested = np.bincount(np.concatenate([test for _, test in splits]), minlength=40) / 200
        known = np.bincount(np.concatenate([np.unique(y[train]) for train, _ in splits])) / 200
        assert np.abs(tested - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 200)
        assert np.abs(known - 0.5).max() < 5 * np.sqrt(0.5 * 0.5 / 200)

    @fast
    @given(st.integers(0, 99), st.integers(0, 2**32 - 1))
    def test_groups(self, group_seed, seed):
        y = np.repeat([-1, 0, 1, 2, 3, 4], 30)
        groups = np.random.RandomState(group_seed).randint(40, size=len(y))
        for train, test in OpenSetShuffleSplit(3, known_ratio=0.6, random_state=seed).split(y, y, groups):
            assert not np.intersect1d(groups[train], groups[test]).size
            assert len(test) < 36 + np.bincount(groups).max()
            assert len(np.unique(y[train])) == 3
            assert -1 not in y[train]

    def test_groups_leave_each_known_class_a_training_row(self):
        y = np.tile(np.arange(-1, 20), 5)
        groups = np.where(y == 0, 0, np.arange(105) // 21)  # the first group holds all rows of one class
        for train, _ in OpenSetShuffleSplit(30, known_ratio=1, random_state=0).split(y, y, groups):
            assert len(np.unique(y[train])) == 20

    def test_groups_are_stratified(self):
        y = np.repeat(np.arange(5), 40)
        groups = np.random.RandomState(0).randint(50, size=len(y))

        def unevenness(splitter):
            return np.mean([np.abs(np.bincount(y[test]) / 40 - 0.2).mean() for _, test in splitter.split(y, y, groups)])

        plain = GroupShuffleSplit(30, test_size=0.2, random_state=0)
        assert unevenness(OpenSetShuffleSplit(30, random_state=0)) < 0.7 * unevenness(plain)

    def test_all_classes_may_be_known_beside_open_rows(self):
        y = np.repeat([-1, 0, 1], 5)
        for train, test in OpenSetShuffleSplit(2, known_ratio=1, random_state=0).split(y, y):
            assert set(y[train]) == {0, 1}
            assert -1 in y[test]

    @pytest.mark.parametrize(
        ("y", "options", "message"),
        [
            ([0, 0, 1, 1, 2, 2], {"known_ratio": 0.25}, "keeps 1 known, but at least 2"),
            ([0, 0, 1, 1, 2, 2], {"known_ratio": 1.0}, "No test row is open with 3 of 3 classes known"),
            ([0, 0, 1, 1, 2], {}, "Too few rows of the classes 2, because a class needs one row for training"),
            ([0, 0, 1, 1, 2, 2], {"test_size": 6}, "test_size=6 leaves no training row among 6 rows"),
        ],
    )
    def test_errors(self, y, options, message):
        with pytest.raises(ValueError, match=message):
            list(OpenSetShuffleSplit(2, random_state=0, **options).split(y, y))

    def test_one_group_for_each_class_is_an_error(self):
        y = np.repeat(np.arange(3), 4)
        with pytest.raises(ValueError, match=r"No group fits into a test part|No test row is open"):
            list(OpenSetShuffleSplit(4, known_ratio=0.7, random_state=0).split(y, y, y))


@lru_cache
def read_official_labels(dataset, part):
    with (DATA / dataset / f"{part}.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[1] for row in rows[1:] if len(row) == 2]


class TestKnownClassSplit:
    @pytest.mark.skipif(
        not KNOWN_CLASSES.exists(), reason="known_classes.json is absent: name its folder in SKELLIPSOID_DATA"
    )
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("ratio", [0.25, 0.5, 0.75])
    @pytest.mark.parametrize("dataset", ["banking", "oos", "stackoverflow"])
    def test_equals_the_literature(self, dataset, ratio, seed):
        expected = json.loads(KNOWN_CLASSES.read_text(encoding="utf-8"))[dataset][str(ratio)][str(seed)]
        protocol = KnownClassSplit(ratio, seed, open_label="oos")
        assert protocol.known_classes(read_official_labels(dataset, "train")).tolist() == expected
        assert protocol.known_classes(read_official_labels(dataset, "test")).tolist() == expected

    @pytest.mark.parametrize("n_classes", [20, 77, 150])
    @pytest.mark.parametrize("ratio", [0.25, 0.5, 0.75])
    def test_equals_the_formula(self, n_classes, ratio):
        labels = [f"intent {i}" for i in range(n_classes)]
        for seed in range(3):
            rng = np.random.RandomState(seed)
            expected = rng.choice(np.array(sorted(labels)), round(n_classes * ratio), replace=False)
            assert KnownClassSplit(ratio, seed).known_classes(labels[::-1]).tolist() == expected.tolist()

    def test_halves_go_to_the_even_number(self):
        assert len(KnownClassSplit(0.5, 0).known_classes(np.arange(77))) == 38
        assert len(KnownClassSplit(0.75, 0).known_classes(np.arange(150))) == 112

    @pytest.mark.parametrize("as_mask", [True, False])
    def test_given_test_rows(self, as_mask):
        y = np.array(list("aabbccdd") + ["oos"] * 2 + list("abcd") + ["oos"])
        rows = np.arange(10, 15)
        splitter = KnownClassSplit(
            0.5, 3, test_rows=np.isin(np.arange(15), rows) if as_mask else rows, open_label="oos"
        )
        ((train, test),) = splitter.split(y, y)
        known = splitter.known_classes(y)
        np.testing.assert_array_equal(test, rows)
        np.testing.assert_array_equal(train, np.flatnonzero(np.isin(y[:10], known)))

    def test_training_rows_that_share_a_group_with_a_given_test_row_are_left_out(self):
        y = np.array(list("aabbccddabcd"))
        groups = np.array([0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 2, 1])
        ((train, test),) = KnownClassSplit(0.5, 0, test_rows=np.arange(8, 12)).split(y, y, groups)
        assert not np.intersect1d(groups[train], groups[test]).size
        assert len(train) == 2

    @fast
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.25, 0.5, 0.75]), st.booleans())
    def test_a_drawn_test_part(self, seed, ratio, grouped):
        y = np.repeat(np.arange(8), 10)
        groups = np.arange(len(y)) % 16 if grouped else None
        splitter = KnownClassSplit(ratio, seed)
        ((train, test),) = splitter.split(y, y, groups)
        assert sorted(splitter.known_classes(y)) == np.unique(y[train]).tolist()
        assert not np.intersect1d(train, test).size
        if grouped:
            assert not np.intersect1d(groups[train], groups[test]).size
        else:
            assert np.bincount(y[test]).tolist() == [2] * 8

    @pytest.mark.parametrize(
        ("test_rows", "message"),
        [
            ([True, False], r"test_rows has the type bool and the shape \(2,\), but must be a mask over the 8 rows"),
            ([8], "row numbers from 0 to 7"),
            ([-1], "row numbers from 0 to 7"),
            ([], "row numbers from 0 to 7"),
            ([0.5], "row numbers from 0 to 7"),
            (np.arange(7), "No training row is left for the known classes"),
        ],
    )
    def test_bad_test_rows(self, test_rows, message):
        y = np.repeat(np.arange(4), 2)
        with pytest.raises(ValueError, match=message):
            list(KnownClassSplit(0.5, 0, test_rows=test_rows).split(y, y))

    def test_a_test_part_without_open_rows(self):
        y = np.repeat(np.arange(4), 2)
        known = KnownClassSplit(0.5, 0).known_classes(y)
        with pytest.raises(ValueError, match="No test row is open with 2 of 4 classes known"):
            list(KnownClassSplit(0.5, 0, test_rows=[2 * known[0]]).split(y, y))

    @pytest.mark.parametrize("random_state", [None, -1, 0.5, np.random.RandomState(0)])
    def test_the_seed_must_be_an_integer(self, random_state):
        with pytest.raises(ValueError, match=r"random_state=.* must be an integer of at least 0"):
            KnownClassSplit(0.5, random_state)


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
    def test_nobodys_random_state_is_read_or_moved(self, splitter):
        state = np.random.get_state()  # noqa: NPY002
        first = list(splitter.split(self.y, self.y))
        np.random.set_state(state)  # noqa: NPY002
        assert not equal_splits(list(splitter.split(self.y, self.y)), first)
        np.testing.assert_array_equal(state[1], np.random.get_state()[1])  # noqa: NPY002

    @pytest.mark.parametrize("splitter", ALL, ids=repr)
    def test_copies_split_alike(self, splitter):
        splitter = KnownClassSplit(0.5, 1) if isinstance(splitter, KnownClassSplit) else copy.copy(splitter)
        splitter.random_state = 3
        if hasattr(splitter, "shuffle"):
            splitter.shuffle = True
        expected = list(splitter.split(self.y, self.y))
        for twin in (pickle.loads(pickle.dumps(splitter)), copy.deepcopy(splitter)):
            assert equal_splits(list(twin.split(self.y, self.y)), expected)

    @pytest.mark.parametrize("splitter", [OpenSetKFold(3), RealOpenKFold(3), KnownClassSplit(0.5, 0)], ids=repr)
    @pytest.mark.parametrize(
        "convert",
        [list, tuple, pd.Series, pd.Categorical, pl.Series, lambda y: y.astype(object), lambda y: y[:, np.newaxis]],
        ids=["list", "tuple", "pandas", "categorical", "polars", "object", "column"],
    )
    def test_any_container_of_labels(self, splitter, convert):
        expected = list(splitter.split(None, self.y))
        texts = [f"text {i}" for i in range(len(self.y))]
        assert equal_splits(list(splitter.split(texts, convert(self.y))), expected)

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
            (None, "y is None, but an open-set splitter holds out whole classes"),
            ([0, "a", 1], r"y mixes strings such as 'a' with 0 \(int\)"),
            (np.array(["a", "b", -1], dtype=object), r"y mixes strings such as 'a' with -1 \(int\)"),
            ([0.5, 1.0, 2.0], "continuous values such as 0.5"),
            ([0.0, np.nan, 2.0], "the label nan in row 1"),
            (["a", None, "b"], r"missing label \(None\) in row 1"),
            (["a", "b", np.nan], r"missing label \(nan\) in row 2"),
            (pd.Series([1, pd.NA, 2], dtype="Int64"), r"the label nan in row 1|missing label \(<NA>\) in row 1"),
            (pd.Series(["a", pd.NA, "b"], dtype=object), r"missing label \(<NA>\) in row 1"),
            ([b"a", b"b", b"c"], "labels of the type bytes"),
            (np.array([b"a", b"b", b"c"]), r"labels of the type \|S1"),
            (np.zeros((3, 2)), r"y has the shape \(3, 2\)"),
            ([0, 1], "X has 3 rows and y has 2"),
            ([7, 7, 7], "holds 1 known|1 classes keeps|No row of y carries the open label|0 known"),
            ([], "X has 3 rows and y has 0"),
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
