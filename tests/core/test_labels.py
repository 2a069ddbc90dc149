"""Labels as they come: one reader, so that every part of the package takes and refuses the same."""

import copy
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    add_classes,
    load,
    merge_classes,
    remove_classes,
    save,
    set_operating_point,
)
from skellipsoid.metrics import open_set_accuracy
from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold

ROWS = np.random.default_rng(0).normal(size=(12, 3)) + 9 * np.repeat(np.eye(3), 4, axis=0)
NAMES = np.repeat(["a", "b", "c"], 4)
NUMBERS = np.repeat([3, 5, 8], 4)


def fit_encoder(y):
    # Labels are refused before a text model is looked for.
    SupConTextEncoder("no-such-model").fit(["text"] * 12, y)


#: Everything that reads labels of the user's, and what it calls them.
READERS = {
    "fit": (lambda y: EllipsoidOpenSetClassifier().fit(ROWS, y), "y"),
    "score": (lambda y: EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, NAMES).score(ROWS, y), "y"),
    "encoder": (fit_encoder, "y"),
    "splitter": (lambda y: list(OpenSetKFold(3).split(None, y)), "y"),
    "known_classes": (lambda y: KnownClassSplit(0.7, 0).known_classes(y), "y"),
    "y_true": (lambda y: open_set_accuracy(y, NAMES), "y_true"),
    "y_pred": (lambda y: open_set_accuracy(NAMES, y), "y_pred"),
    "labels": (lambda y: open_set_accuracy(NAMES, NAMES, labels=y), "labels"),
}
reading = pytest.mark.parametrize(("read", "name"), READERS.values(), ids=READERS)


def assert_refused(read, y, message):
    with pytest.raises(ValueError, match=f"^{message}$") as error:
        read(y)
    assert "\n" not in str(error.value)


@reading
@pytest.mark.parametrize("kind", [list, np.array, lambda y: np.array(y).astype(">U4"), lambda y: np.array(y, object)])
def test_half_a_character_is_refused(read, name, kind):
    y = kind([*NAMES[:7], "b\ud83d", *NAMES[8:]])
    assert_refused(read, y, rf"{name} holds 'b\\ud83d' in row 7, with half of a character, .* by a whole one\.")


def test_whole_characters_are_labels():
    names = np.where(NAMES == "a", "\U0001f600", NAMES)
    assert EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, names).classes_.tolist() == ["b", "c", "\U0001f600"]


def test_a_long_label_is_shortened_in_errors():
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, np.where(NAMES == "a", "a" * 10**6, NAMES))
    with pytest.raises(ValueError, match=r"'aaa.*… is not a known class|'z' is not a known class") as error:
        remove_classes(clf, ["z"])
    assert len(str(error.value)) < 400


@reading
@pytest.mark.parametrize(
    "y",
    [
        [None if i in (2, 7) else label for i, label in enumerate(NAMES)],
        [float("nan") if i in (2, 7) else label for i, label in enumerate(NAMES.tolist())],
        [pd.NaT if i == 2 else pd.NA if i == 7 else label for i, label in enumerate(NAMES)],
        np.where(np.isin(np.arange(12), [2, 7]), None, NAMES),
        pd.Series(NAMES, dtype="string").mask(np.isin(np.arange(12), [2, 7])),
        pd.Series(NAMES, dtype="category").mask(np.isin(np.arange(12), [2, 7])),
        pl.Series([None if i in (2, 7) else str(label) for i, label in enumerate(NAMES)]),
        np.array(
            [None if i in (2, 7) else label for i, label in enumerate(NAMES.tolist())],
            dtype=np.dtypes.StringDType(na_object=None),
        ),
        np.where(np.isin(np.arange(12), [2, 7]), np.nan, NUMBERS),
        [float("nan") if i in (2, 7) else label for i, label in enumerate(NUMBERS.tolist())],
        pd.Series(NUMBERS, dtype="Int64").mask(np.isin(np.arange(12), [2, 7])),
        pl.Series([None if i in (2, 7) else int(label) for i, label in enumerate(NUMBERS)]),
        pa.array([None if i in (2, 7) else str(label) for i, label in enumerate(NAMES)]),
        pa.chunked_array([[None if i in (2, 7) else int(label) for i, label in enumerate(NUMBERS)]]),
        torch.where(torch.isin(torch.arange(12), torch.tensor([2, 7])), torch.nan, torch.from_numpy(NUMBERS)),
        np.ma.array(NUMBERS, mask=np.isin(np.arange(12), [2, 7])),
        np.ma.array(NAMES[:, np.newaxis], mask=np.isin(np.arange(12), [2, 7])),
        list(np.ma.array(NAMES, mask=np.isin(np.arange(12), [2, 7]))),
    ],
    ids=[
        *("None in a list", "NaN in a list", "NaT and NA in a list", "objects", "string", "category", "polars text"),
        *(
            "StringDType",
            "floats",
            "NaN among numbers",
            "Int64",
            "polars numbers",
            "arrow text",
            "arrow numbers",
            "tensor",
        ),
        *("masked numbers", "a masked column", "masked in a list"),
    ],
)
def test_missing_labels_are_named_by_row(read, name, y):
    assert_refused(read, y, rf"{name} has missing labels in rows 2, 7; drop them(, or read the file .*)?\.")


@reading
def test_what_pandas_reads_as_missing_is_told_with_the_remedy(read, name):
    remedy = ", or read the file with keep_default_na=False if pandas made it of labels such as 'None' or 'NA'"
    file = "text,label\nwake me,alarm\nno,None\n" + "up,alarm\n" * 10
    y = pd.read_csv(io.StringIO(file))["label"]
    assert_refused(read, y, rf"{name} has missing labels in row 1; drop them{remedy}\.")
    assert pd.read_csv(io.StringIO(file), keep_default_na=False)["label"][1] == "None"
    numbers = pd.Series([0.0, np.nan] * 6)
    assert_refused(read, numbers, rf"{name} has missing labels in rows .*; drop them\.")


def test_of_many_missing_labels_ten_are_named():
    y = [None] * 12 + ["a", "b"]
    rows = "rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    assert_refused(lambda y: open_set_accuracy(y, y), y, f"y_true has missing labels in {rows}; drop them.")
    assert_refused(lambda y: open_set_accuracy(y, y), [None, "a"], "y_true has missing labels in row 0; drop them.")


@reading
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1, *NAMES[2:]], r"{} mixes strings such as 'a' with numbers such as 1, but .*: convert them.*"),
        (np.array([True, *NAMES[1:]], dtype=object), "{} mixes strings such as 'a' with numbers such as True, but .*"),
        ([b"a", *NAMES[1:]], r"Unknown label type: {} holds b'a' \(bytes\), but labels must be all numbers or all .*"),
        (NAMES.astype("S"), r"Unknown label type: {} holds b'a' \(\|S1\), but .*"),
        (NUMBERS.astype("M8[D]"), r"Unknown label type: {} holds 1970-01-04 \(datetime64\[D\]\), but .*"),
        ([1j, *NUMBERS[1:]], r"Complex data not supported: {} holds 1j \(complex\), but .*"),
        (NUMBERS.astype(complex), r"Complex data not supported: {} holds \(3\+0j\) \(complex128\), but .*"),
        ([1, 2, 2**70] * 4, r"Unknown label type: {} holds 1180591620717411303424 \(object\), but .*"),
        ([[0], [1, 2]], r"Unknown label type: {} holds \[0\] \(list\), but .*"),
        (NUMBERS + 0.5, "Unknown label type: {} holds 3.5 in row 0, which is no whole number, but .*bin continuous.*"),
        ([3, np.inf, *NUMBERS[2:]], "Unknown label type: {} holds inf in row 1, which is no whole number, but .*"),
        (np.zeros((12, 2)), r"{} has shape \(12, 2\), but must be one-dimensional: pass one label for each row."),
        ("abc", r"{} has shape \(\), but must be one-dimensional: pass one label for each row."),
        ([], "{} is empty: pass at least one label."),
    ],
)
def test_what_is_no_label_is_refused_alike(read, name, y, message):
    assert_refused(read, y, message.format(name))


@pytest.mark.parametrize(
    ("use", "owner", "alternative"),
    [
        (lambda: EllipsoidOpenSetClassifier().fit(ROWS), "EllipsoidOpenSetClassifier", ""),
        (lambda: EllipsoidOpenSetClassifier().fit(ROWS, None), "EllipsoidOpenSetClassifier", ""),
        (
            lambda: SupConTextEncoder("no-such-model").fit(["a", "b"]),
            "SupConTextEncoder with finetune='auto'",
            ", or finetune='none'",
        ),
        (lambda: list(OpenSetKFold().split(ROWS)), "OpenSetKFold", ""),
        (lambda: list(RealOpenKFold().split(ROWS)), "RealOpenKFold", ""),
        (lambda: list(OpenSetShuffleSplit().split(ROWS)), "OpenSetShuffleSplit", ""),
        (lambda: list(KnownClassSplit(0.5, 0).split(ROWS)), "KnownClassSplit", ""),
        (lambda: KnownClassSplit(0.5, 0).known_classes(None), "KnownClassSplit", ""),
    ],
)
def test_without_labels_all_say_the_same(use, owner, alternative):
    message = f"{owner} requires y to be passed, but the target y is None: pass one label for each row{alternative}."
    assert_refused(lambda _: use(), None, message)


@pytest.mark.parametrize(
    "y",
    [
        NUMBERS.tolist(),
        NUMBERS.astype(object),
        NUMBERS.astype(np.uint8),
        NUMBERS.astype(np.float32),
        pd.Series(NUMBERS, dtype="Int64"),
        pl.Series(NUMBERS),
        pa.array(NUMBERS),
        torch.from_numpy(NUMBERS),
        torch.from_numpy(NUMBERS).float().requires_grad_(),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_numbers_of_any_container(y):
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, y)
    assert clf.classes_.tolist() == [3, 5, 8]
    assert clf.score(ROWS, y) == open_set_accuracy(y, clf.predict(ROWS)) == np.mean(clf.predict(ROWS) == NUMBERS)
    assert len(list(OpenSetKFold(3).split(None, y))) == 3


@pytest.mark.parametrize(("trained", "asked"), [(NAMES, NUMBERS), (NUMBERS, NAMES), (NUMBERS, NAMES.astype(object))])
def test_score_refuses_labels_of_another_kind_as_the_metrics_do(trained, asked):
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, trained)
    kinds = {str: "strings such as 'a'", int: "numbers such as 3"}
    one, other = (kinds[type(labels[:1].tolist()[0])] for labels in (asked, trained))
    rest = "but labels must be all numbers or all strings: convert one of them, for instance with astype.str.."
    assert_refused(lambda y: clf.score(ROWS, y), asked, f"y holds {one} and classes_ holds {other}, {rest}")
    answers = f"y_true holds {one} and y_pred holds {other}, {rest}"
    assert_refused(lambda y: open_set_accuracy(y, trained), asked, answers)


# Whole numbers that floats cannot tell apart

LARGE = 2**60 + NUMBERS
NEW_ROWS = ROWS[:4] - 9
INEXACT = "which is no exact label: pass whole numbers of int64, or strings."


@pytest.fixture(scope="module")
def large():
    """A classifier whose classes are one if they become floats."""
    return EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, LARGE)


@reading
@pytest.mark.parametrize(
    ("y", "found"),
    [
        (LARGE.astype(float), r"1\.152921504606847e\+18 \(float64\)"),
        ([2.0**53, *NUMBERS[1:]], r"9007199254740992\.0 \(float64\)"),
        (-LARGE.astype(float), r"-1\.152921504606847e\+18 \(float64\)"),
        (NUMBERS.astype(np.float32) + 2**24, r"167772\d\d\.0 \(float32\)"),
        (torch.from_numpy(LARGE).float(), r"1\.152921504606847e\+18 \(float32\)"),
        ([*LARGE[1:].tolist(), 1.0], r"1152921504606846979 \(beside floats or negative numbers\)"),
        ([1.0, *LARGE[1:]], r"1152921504606846979 \(beside floats or negative numbers\)"),
        (pd.Series([1.0, *LARGE[1:].tolist()], dtype=object), r"1152921504606846979 \(beside floats or negative .*\)"),
        ([2**63 + 5, -1, *NUMBERS[2:].tolist()], r"9223372036854775813 \(beside floats or negative numbers\)"),
        (2**63 + NUMBERS.astype(np.uint64), r"9223372036854775811 \(uint64\)"),
        ([2**63 + 5, *range(2**63, 2**63 + 11)], r"9223372036854775813 \(uint64\)"),
        (pd.Series(2**63 + NUMBERS.astype(np.uint64), dtype="UInt64"), r"9223372036854775811 \(uint64\)"),
        (pl.Series(2**63 + NUMBERS.astype(np.uint64)), r"9223372036854775811 \(uint64\)"),
    ],
)
def test_numbers_that_are_rounded_are_no_labels(read, name, y, found):
    assert_refused(read, y, f"{name} holds {found}, {INEXACT}")


@pytest.mark.filterwarnings("ignore:.* until they are refreshed")
@pytest.mark.parametrize(
    "as_given",
    [np.asarray, lambda y: y.astype(np.uint64), list, lambda y: pd.Series(y, dtype="UInt64"), pl.Series],
    ids=["int64", "uint64", "list", "UInt64", "polars"],
)
def test_large_numbers_stay_exact(as_given, large, tmp_path):
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, as_given(LARGE))
    assert clf.classes_.tolist() == large.classes_.tolist() == [2**60 + 3, 2**60 + 5, 2**60 + 8]
    answers = clf.predict(ROWS)
    share = np.mean(answers == LARGE)
    assert share > 0.5
    assert clf.score(ROWS, as_given(LARGE)) == share == open_set_accuracy(as_given(LARGE), answers)
    assert clf.score(ROWS, as_given(LARGE + 1)) < 0.5  # other classes, which are open
    assert open_set_accuracy(as_given(LARGE), answers, labels=as_given(clf.classes_)) == share
    parts = list(OpenSetKFold(3).split(None, as_given(LARGE)))
    for found, wanted in zip(parts, OpenSetKFold(3).split(None, NUMBERS), strict=True):
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(wanted))
    moved = set_operating_point(clf, ROWS, as_given(LARGE), rejection_rate=0.3)
    assert moved.offset_ == set_operating_point(clf, ROWS, LARGE, rejection_rate=0.3).offset_
    grown = add_classes(large, NEW_ROWS, as_given(LARGE[:4] + 1))
    assert grown.classes_.tolist() == [2**60 + 3, 2**60 + 4, 2**60 + 5, 2**60 + 8]
    merged = merge_classes(
        add_classes(grown, NEW_ROWS + 0.1, as_given(LARGE[:4] + 1)), {2**60 + 9: as_given(grown.classes_[2:])}
    )
    assert merged.classes_.tolist() == [2**60 + 3, 2**60 + 4, 2**60 + 9]
    save(remove_classes(merged, as_given(LARGE[:1])), tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == [2**60 + 4, 2**60 + 9]


@pytest.mark.filterwarnings("ignore:.* until they are refreshed")
def test_small_floats_join_large_integers_as_integers(large):
    assert add_classes(large, NEW_ROWS, [7.0] * 4).classes_.tolist() == [7, *large.classes_.tolist()]
    assert add_classes(large, NEW_ROWS, [7.0] * 4).classes_.dtype == np.int64
    assert merge_classes(large, {7.0: LARGE[[0, 4]]}).classes_.tolist() == [7, 2**60 + 8]
    assert large.score(ROWS, NUMBERS.astype(float)) == np.mean(large.predict(ROWS) == -1)
    of_floats = EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, NUMBERS.astype(float))
    assert add_classes(of_floats, NEW_ROWS, [7] * 4).classes_.tolist() == [3.0, 5.0, 7.0, 8.0]
    for use in (lambda y: add_classes(of_floats, NEW_ROWS, y), lambda y: of_floats.score(NEW_ROWS, y)):
        assert_refused(use, [2**60] * 4, rf"y holds 1152921504606846976 \(classes_ is float64\), {INEXACT}")
    for change in (lambda y: remove_classes(large, y), lambda y: merge_classes(large, {1: y})):
        assert_refused(change, [2.0**60], rf"labels holds 1\.152921504606847e\+18 \(float64\), {INEXACT}")


def test_validation_samples_of_large_labels_are_those_of_their_class():
    X_val = np.repeat(ROWS + 0.5, 3, axis=0)
    fits = [
        EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, y, X_val=X_val, y_val=np.repeat(y, 3).astype(kind))
        for y, kind in ((NUMBERS, np.int64), (LARGE, np.uint64))
    ]
    np.testing.assert_array_equal(fits[0].held_out_scores_, fits[1].held_out_scores_)


@pytest.mark.parametrize(
    ("open_label", "y", "limit"),
    [(2**63, LARGE, 2**63), (2**2000, LARGE, 2**63), (2**60 + 1, NUMBERS.astype(float), 2**53)],
)
def test_an_open_label_that_is_no_number_of_the_labels_is_refused(open_label, y, limit):
    message = (
        rf"The open label {open_label} is no whole number below {limit}, but the labels are numbers .*; use a whole .*"
    )
    assert_refused(lambda y: EllipsoidOpenSetClassifier(open_label=open_label).fit(ROWS, y), y, message)


def test_a_large_open_label_is_answered_as_it_is():
    clf = EllipsoidOpenSetClassifier(open_label=2**60, random_state=0).fit(ROWS, LARGE)
    assert clf.predict([[99.0, 0.0, 0.0]]).tolist() == [2**60]


def test_a_saved_model_whose_classes_were_rounded_is_refused(large, tmp_path):
    for number, classes in enumerate(
        (LARGE[[0, 0, 0]] + 1024.0 * np.arange(3), 2**63 + NUMBERS[::4].astype(np.uint64))
    ):
        other = copy.copy(large)
        other.classes_ = classes
        with pytest.raises(
            ValueError, match=r"classes_ .* is an array of .*, but must be an array of different, exact"
        ):
            save(other, tmp_path / str(number))
