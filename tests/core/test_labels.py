"""Labels as they come: one reader, so that every part of the package takes and refuses the same."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, load, merge_classes, remove_classes, save, set_operating_point
from skellipsoid.metrics import open_set_accuracy
from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold

ROWS = np.random.default_rng(0).normal(size=(12, 3)) + 9 * np.repeat(np.eye(3), 4, axis=0)
NAMES = np.repeat(["a", "b", "c"], 4)
NUMBERS = np.repeat([3, 5, 8], 4)


#: Everything that reads labels of the user's, and what it calls them.
READERS = {
    "fit": (lambda y: EllipsoidOpenSetClassifier().fit(ROWS, y), "y"),
    "score": (lambda y: EllipsoidOpenSetClassifier(random_state=0).fit(ROWS, NAMES).score(ROWS, y), "y"),
    # Labels are refused before a text model is looked for.
    "encoder": (lambda y: skellipsoid.SupConTextEncoder("no-such-model").fit(["text"] * 12, y), "y"),
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
    said = r"in row 7, which holds half of a character \(a lone surrogate\), .* by a whole one\."
    assert_refused(read, y, rf"{name} holds 'b\\ud83d' {said}")


@reading
def test_what_pandas_reads_as_missing_is_told_with_the_remedy(read, name):
    remedy = ", or read the file with keep_default_na=False if pandas made it of labels such as 'None' or 'NA'"
    file = "text,label\nwake me,alarm\nno,None\n" + "up,alarm\n" * 10
    y = pd.read_csv(io.StringIO(file))["label"]
    assert_refused(read, y, rf"{name} has missing labels in row 1; drop them{remedy}\.")
    assert pd.read_csv(io.StringIO(file), keep_default_na=False)["label"][1] == "None"
    numbers = pd.Series([0.0, np.nan] * 6)
    assert_refused(read, numbers, rf"{name} has missing labels in rows .*; drop them\.")


@reading
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1, *NAMES[2:]], r"{} mixes strings such as 'a' with numbers such as 1, but .*: convert them.*"),
        ([b"a", *NAMES[1:]], r"Unknown label type: {} holds b'a' \(bytes\), but labels must be all numbers or all .*"),
        (NUMBERS.astype("M8[D]"), r"Unknown label type: {} holds 1970-01-04 \(datetime64\[D\]\), but .*"),
        (NUMBERS.astype(complex), r"Complex data not supported: {} holds \(3\+0j\) \(complex128\), but .*"),
        ([1, 2, 2**70] * 4, r"Unknown label type: {} holds 1180591620717411303424 \(object\), but .*"),
        (NUMBERS + 0.5, "Unknown label type: {} holds 3.5 in row 0, which is no whole number, but .*bin continuous.*"),
        (np.zeros((12, 2)), r"{} has shape \(12, 2\), but must be one-dimensional: pass one label for each row."),
        ("abc", r"{} has shape \(\), but must be one-dimensional: pass one label for each row."),
        ([], "{} is empty: pass at least one label."),
    ],
)
def test_what_is_no_label_is_refused_alike(read, name, y, message):
    assert_refused(read, y, message.format(name))


# Whole numbers that floats cannot tell apart

LARGE = 2**60 + NUMBERS
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
        (NUMBERS.astype(np.float32) + 2**24, r"167772\d\d\.0 \(float32\)"),
        ([*LARGE[1:].tolist(), 1.0], r"1152921504606846979 \(beside floats or negative numbers\)"),
        ([2**63 + 5, -1, *NUMBERS[2:].tolist()], r"9223372036854775813 \(beside floats or negative numbers\)"),
        (2**63 + NUMBERS.astype(np.uint64), r"9223372036854775811 \(uint64\)"),
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
    moved = set_operating_point(clf, ROWS, as_given(LARGE), rejection_rate=0.3)
    assert moved.offset_ == set_operating_point(clf, ROWS, LARGE, rejection_rate=0.3).offset_
    grown = skellipsoid.add_classes(large, ROWS[:4] - 9, as_given(LARGE[:4] + 1))
    assert grown.classes_.tolist() == [2**60 + 3, 2**60 + 4, 2**60 + 5, 2**60 + 8]
    merged = merge_classes(grown, {2**60 + 9: as_given(grown.classes_[2:])})
    assert merged.classes_.tolist() == [2**60 + 3, 2**60 + 4, 2**60 + 9]
    save(remove_classes(merged, as_given(LARGE[:1])), tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == [2**60 + 4, 2**60 + 9]


@pytest.mark.parametrize(
    ("open_label", "y", "limit"),
    [(2**63, LARGE, 2**63), (2**2000, LARGE, 2**63), (2**60 + 1, NUMBERS.astype(float), 2**53)],
)
def test_an_open_label_that_is_no_number_of_the_labels_is_refused(open_label, y, limit):
    message = rf"The open label {open_label} is no whole number below {limit}, but the labels are numbers .*"
    assert_refused(lambda y: EllipsoidOpenSetClassifier(open_label=open_label).fit(ROWS, y), y, message)


def test_of_many_missing_labels_ten_are_named():
    y = [None] * 12 + ["a", "b"]
    rows = "rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    assert_refused(lambda y: open_set_accuracy(y, y), y, f"y_true has missing labels in {rows}; drop them.")
