"""OpenSetKFold and RealOpenKFold, with groups and without: what folds must hold, against brute force."""

import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

from skellipsoid._base import check_groups
from skellipsoid.model_selection import OpenSetKFold, RealOpenKFold


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


seeds = st.none() | st.integers(0, 2**32 - 1)


class TestOpenSetKFold:
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

    @given(kfold_problems(), seeds)
    def test_shares_differ_in_rows_by_at_most_the_largest_class(self, problem, seed):
        y, n_splits = problem
        classes, counts = np.unique(y[y != open_label_of(y)], return_counts=True)
        splits = splitter_of(OpenSetKFold, n_splits, seed).split(y, y)
        rows = [counts[~np.isin(classes, y[train])].sum() for train, _ in splits]
        assert max(rows) - min(rows) <= counts.max()

    def test_shuffling_does_not_tie_a_class_to_a_fold(self):
        y = np.repeat(np.arange(4), [9, 8, 7, 6])
        splits = [OpenSetKFold(4, shuffle=True, random_state=seed).split(y, y) for seed in range(40)]
        assert {i for folds in splits for i, (train, _) in enumerate(folds) if 0 not in y[train]} == {0, 1, 2, 3}

    @pytest.mark.parametrize(
        ("sizes", "n_splits", "message"),
        [
            ([6, 6], 2, "holds 2 known classes, but at least 3"),
            ([6, 6, 6], 5, r"3 known classes, fewer than n_splits=5.*use n_splits=3 at most"),
            ([6, 6, 6], 2, r"n_splits=2 leaves 1 of 3 classes known.*use n_splits=3\."),
            ([6, 6, 2, 1], 3, r"Too few samples of the classes 2, 3 \(the smallest has 1\).*n_splits=3"),
        ],
    )
    def test_too_little_data(self, sizes, n_splits, message):
        y = np.repeat(np.arange(len(sizes)), sizes)
        with pytest.raises(ValueError, match=message):
            list(OpenSetKFold(n_splits).split(y, y))


class TestGroups:
    @pytest.mark.parametrize("shuffled", [False, True])
    @given(data=st.data())
    def test_open_folds_against_brute_force(self, data, shuffled):
        n_classes = data.draw(st.integers(3, 6))
        n_splits = data.draw(st.integers(2, min(n_classes, 4)).filter(lambda n: n_classes - -(-n_classes // n) > 1))
        cells = st.lists(st.integers(0, 2), min_size=n_splits, max_size=n_splits).filter(any)
        counts = n_splits * np.array(data.draw(st.lists(cells, min_size=n_classes, max_size=n_classes)))
        assume(counts.any(axis=0).all())
        y = np.repeat(np.arange(n_classes), counts.sum(axis=1))
        groups = np.concatenate([np.repeat(np.arange(n_splits), own) for own in counts])  # each is a fold
        options = {"shuffle": shuffled, "random_state": 0 if shuffled else None}
        # Shuffled, scikit-learn may put two groups into one fold, and leave another one empty.
        parts = [groups[test] for _, test in StratifiedGroupKFold(n_splits, **options).split(y, y, groups)]
        assume(all(len(np.unique(part)) == 1 for part in parts))
        possible = any((counts[list(p), range(n_splits)] > 0).all() for p in permutations(range(n_classes), n_splits))

        opened = []
        try:
            for train, test in OpenSetKFold(n_splits, **options).split(y, y, groups):
                opened.append(np.setdiff1d(y, y[train]).tolist())
                assert set(opened[-1]) <= {*y[test].tolist()}
        except ValueError as error:
            shares = [int(n) for n in re.search(r"leave out \[(.+)\] of", str(error))[1].split(",")]
            assert all(shares) == possible
            assert not all(shares) or n_classes - max(shares) < 2
            return
        assert possible
        assert all(opened)
        assert sorted(k for each in opened for k in each) == list(range(n_classes))

    def test_errors(self):
        y = np.repeat(np.arange(4), 6)
        with pytest.raises(ValueError, match=r"groups holds 2 groups, fewer than n_splits=4"):
            list(OpenSetKFold(4).split(y, y, y % 2))
        z = np.repeat(np.arange(3), 6)
        with pytest.raises(ValueError, match=r"Groups hold the classes together.*leave out \[2, 0, 1\] of 3 classes"):
            list(OpenSetKFold(3).split(z, z, np.repeat([0, 1, 2], [13, 3, 2])))
        # A split without an open class, though every split keeps two known ones; and a split that keeps a single one.
        z = np.repeat([0, 1, 2, 3, -1], 6)
        with pytest.raises(ValueError, match=r"leave out \[2, 2, 0\] of 4 classes"):
            list(OpenSetKFold(3).split(z, z, np.repeat([0, 1, 2], [12, 12, 6])))
        with pytest.raises(ValueError, match=r"leave out \[3, 1\] of 4 classes"):
            list(OpenSetKFold(2).split(y, y, y // 3))
        with pytest.raises(ValueError, match=r"groups has the shape \(3,\), but must hold one .* the 24 rows"):
            list(OpenSetKFold(4).split(y, y, [1, 2, 3]))
        for missing in (np.nan, None):
            groups = [missing, *range(22), missing]
            with pytest.raises(ValueError, match=r"^groups has missing values in rows 0, 23; give each row"):
                list(OpenSetKFold(4).split(y, y, groups))
        z = np.repeat([-1, 0, 1], 6)
        with pytest.raises(ValueError, match="Groups hold all samples of the classes 1 in one test part"):
            list(RealOpenKFold(3).split(z, z, np.where(z == 1, 9, np.arange(18))))
        with pytest.raises(ValueError, match="Groups leave 2 of 3 test parts without an open sample"):
            list(RealOpenKFold(3).split(z, z, np.where(z == -1, 99, np.arange(18))))


class TestRealOpenKFold:
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

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 0, 1, 1], r"No sample carries the open label \(open_label=-1\)"),
            ([0, 0, 1, 1, -1], "holds 1 open samples, fewer than n_splits=2"),
            ([0, 0, -1, -1], "holds 1 known classes beside the open label"),
            ([0, 0, 1, -1, -1], "Too few samples of the classes 1"),
        ],
    )
    def test_errors(self, y, message):
        with pytest.raises(ValueError, match=message):
            list(RealOpenKFold(2).split(y, y))


@pytest.mark.parametrize("make", [list, lambda values: np.array(values, dtype=object)])
def test_a_number_and_its_text_are_two_groups_as_in_a_fit(make):
    y = np.repeat(np.arange(6), 8)
    mixed, written = make([1, "1", 2, "2"] * 12), [1, 2, 3, 4] * 12

    def folds(groups):
        return [(train.tolist(), test.tolist()) for train, test in OpenSetKFold(3).split(y, y, groups)]

    assert len(np.unique(check_groups(mixed, 48))) == 4
    assert folds(mixed) == folds(written)
