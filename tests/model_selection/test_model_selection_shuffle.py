"""OpenSetShuffleSplit by its definition, and KnownClassSplit against the literature."""

import csv
import json
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import GroupShuffleSplit

from skellipsoid.model_selection import KnownClassSplit, OpenSetShuffleSplit

DATA = Path(os.environ.get("SKELLIPSOID_DATA") or Path(__file__).parents[3] / "shared" / "data")
KNOWN_CLASSES = DATA / "known_classes.json"


class TestOpenSetShuffleSplit:
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

    def test_groups_are_stratified(self):
        y = np.repeat(np.arange(5), 40)
        groups = np.random.RandomState(0).randint(50, size=len(y))

        def unevenness(splitter):
            return np.mean([np.abs(np.bincount(y[test]) / 40 - 0.2).mean() for _, test in splitter.split(y, y, groups)])

        plain = GroupShuffleSplit(30, test_size=0.2, random_state=0)
        assert unevenness(OpenSetShuffleSplit(30, random_state=0)) < 0.7 * unevenness(plain)

    @pytest.mark.parametrize(
        ("y", "options", "message"),
        [
            ([0, 0, 1, 1, 2, 2], {"known_ratio": 0.25}, "keeps 1 known, but at least 2"),
            ([0, 0, 1, 1, 2, 2], {"known_ratio": 1.0}, "No test sample is open with 3 of 3 classes known"),
            ([0, 0, 1, 1, 2], {}, "Too few samples of the classes 2, because a class needs one for training"),
            ([0, 0, 1, 1, 2, 2], {"test_size": 6}, "test_size=6 leaves no training sample among 6"),
        ],
    )
    def test_errors(self, y, options, message):
        with pytest.raises(ValueError, match=message):
            list(OpenSetShuffleSplit(2, random_state=0, **options).split(y, y))

    def test_one_group_for_each_class_is_an_error(self):
        y = np.repeat(np.arange(3), 4)
        with pytest.raises(ValueError, match=r"No group fits into a test part|No test sample is open"):
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

    @pytest.mark.parametrize("as_mask", [True, False])
    def test_given_test_rows(self, as_mask):
        y = np.array(list("aabbccdd") + ["oos"] * 2 + list("abcd") + ["oos"])
        rows = np.arange(10, 15)
        given = np.isin(np.arange(15), rows) if as_mask else rows
        splitter = KnownClassSplit(0.5, 3, test_rows=given, open_label="oos")
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
            ([-1], "row numbers from 0 to 7"),
            (np.arange(7), "No training sample is left for the known classes"),
        ],
    )
    def test_bad_test_rows(self, test_rows, message):
        y = np.repeat(np.arange(4), 2)
        with pytest.raises(ValueError, match=message):
            list(KnownClassSplit(0.5, 0, test_rows=test_rows).split(y, y))

    @pytest.mark.parametrize("random_state", [None, -1, 0.5, np.random.RandomState(0)])
    def test_the_seed_must_be_an_integer(self, random_state):
        with pytest.raises(ValueError, match=r"random_state=.* must be an integer of at least 0"):
            KnownClassSplit(0.5, random_state)
