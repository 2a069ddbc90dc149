"""Labels as they come: one reader, so that every part of the package takes and refuses the same."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
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
    assert_refused(read, y, f"{name} has missing labels in rows 2, 7; drop them.")


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
            "SupConTextEncoder with finetune='head'",
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
