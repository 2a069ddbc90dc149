"""Label metrics against brute force and scikit-learn."""

import ast
import warnings
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from skellipsoid import metrics
from skellipsoid.metrics import (
    known_f1_score,
    open_f1_score,
    open_set_accuracy,
    open_set_f1_score,
    open_set_report,
)

KNOWN = [2, 0, 1]
FUNCTIONS = [open_set_f1_score, known_f1_score, open_f1_score, open_set_accuracy, open_set_report]
F1_FUNCTIONS = [open_set_f1_score, known_f1_score, open_f1_score]

# 3 and 4 are classes outside KNOWN.
label = st.sampled_from([-1, 0, 1, 2, 3, 4])
answers = st.lists(st.tuples(label, label), min_size=1, max_size=30)


def brute_force(y_true, y_pred, known, undefined):
    """Count by loops: F1 by class, the two rates and the accuracy, with `undefined` for 0 / 0."""
    truth = [t if t in known else "open" for t in y_true]
    answer = ["open" if p == -1 else p if p in known else "stranger" for p in y_pred]
    f1 = {}
    for name in [*known, "open"]:
        hits = sum(t == p == name for t, p in zip(truth, answer, strict=True))
        false_alarms = sum(p == name != t for t, p in zip(truth, answer, strict=True))
        misses = sum(t == name != p for t, p in zip(truth, answer, strict=True))
        total = 2 * hits + false_alarms + misses
        f1[name] = 2 * hits / total if total else undefined
    n_open = truth.count("open")
    if not n_open:
        f1["open"] = undefined
    refused = [t for t, p in zip(truth, answer, strict=True) if p == "open"]
    n_known = len(truth) - n_open
    return {
        "f1": f1,
        "accuracy": np.mean([t == p for t, p in zip(truth, answer, strict=True)]),
        "open_rejection_rate": refused.count("open") / n_open if n_open else undefined,
        "false_rejection_rate": (len(refused) - refused.count("open")) / n_known if n_known else undefined,
    }


def mean_of_numbers(values):
    numbers = [value for value in values if not isnan(value)]
    return sum(numbers) / len(numbers) if numbers else nan


@given(answers, st.sampled_from([0, 1, nan]))
def test_all_label_metrics_against_brute_force(pairs, undefined):
    y_true, y_pred = zip(*pairs, strict=True)
    expected = brute_force(y_true, y_pred, KNOWN, undefined)
    by_class = list(expected["f1"].values())
    options = {"labels": KNOWN, "zero_division": undefined}
    assert open_set_f1_score(y_true, y_pred, **options) == pytest.approx(mean_of_numbers(by_class), nan_ok=True)
    assert known_f1_score(y_true, y_pred, **options) == pytest.approx(mean_of_numbers(by_class[:-1]), nan_ok=True)
    assert open_f1_score(y_true, y_pred, **options) == pytest.approx(by_class[-1], nan_ok=True)
    assert open_set_accuracy(y_true, y_pred, labels=KNOWN) == pytest.approx(expected["accuracy"])

    report = open_set_report(y_true, y_pred, output_dict=True, **options)
    assert list(report["classes"]) == ["2", "0", "1", "-1"]
    assert [scores["f1-score"] for scores in report["classes"].values()] == pytest.approx(by_class, nan_ok=True)
    assert report["accuracy"] == pytest.approx(expected["accuracy"])
    for rate in ("open_rejection_rate", "false_rejection_rate"):
        assert report[rate] == pytest.approx(expected[rate], nan_ok=True)


@given(answers)
def test_known_classes_default_to_those_that_occur(pairs):
    y_true, y_pred = zip(*pairs, strict=True)
    occurring = sorted({*y_true, *y_pred} - {-1})
    expected = brute_force(y_true, y_pred, occurring, 0.0)
    by_class = list(expected["f1"].values())
    assert open_set_f1_score(y_true, y_pred, zero_division=0) == pytest.approx(np.mean(by_class))
    assert known_f1_score(y_true, y_pred, zero_division=0) == pytest.approx(
        np.sum(by_class[:-1]) / max(1, len(occurring))
    )
    assert open_set_accuracy(y_true, y_pred) == accuracy_score(y_true, y_pred)


@given(answers, st.sampled_from([0, 1, nan]))
def test_equal_to_scikit_learn_when_a_row_is_open(pairs, undefined):
    y_true, y_pred = map(np.array, zip(*pairs, (-1, 0), strict=True))
    coded = np.where(np.isin(y_true, KNOWN), y_true, -1)
    options = {"labels": [*KNOWN, -1], "zero_division": undefined}
    ours = open_set_f1_score(y_true, y_pred, labels=KNOWN, zero_division=undefined)
    assert ours == pytest.approx(f1_score(coded, y_pred, average="macro", **options))
    report = open_set_report(y_true, y_pred, labels=KNOWN, zero_division=undefined, output_dict=True)
    theirs = np.array(precision_recall_fscore_support(coded, y_pred, **options))  # (4, n_classes + 1)
    reported = [list(scores.values()) for scores in report["classes"].values()]
    np.testing.assert_allclose(reported, theirs.T)
    means = precision_recall_fscore_support(coded, y_pred, average="macro", **options)[:3]
    np.testing.assert_allclose(list(report["macro avg"].values())[:3], means)


@given(answers)
def test_strings_and_numbers_give_the_same(pairs):
    y_true, y_pred = (np.array(column) for column in zip(*pairs, strict=True))
    numbers = open_set_report(y_true, y_pred, labels=KNOWN, zero_division=0, output_dict=True)
    texts = open_set_report(
        y_true.astype(str), y_pred.astype(str), labels=[str(k) for k in KNOWN], zero_division=0, output_dict=True
    )
    assert texts == numbers


@given(answers, st.randoms(use_true_random=False))
def test_order_of_rows_and_classes_does_not_matter(pairs, random):
    y_true, y_pred = zip(*pairs, strict=True)
    shuffled, known = list(pairs), list(KNOWN)
    random.shuffle(shuffled)
    random.shuffle(known)
    expected = open_set_f1_score(y_true, y_pred, labels=KNOWN, zero_division=0)
    y_true, y_pred = zip(*shuffled, strict=True)
    assert open_set_f1_score(y_true, y_pred, labels=known, zero_division=0) == pytest.approx(expected)


def test_report_agrees_with_the_functions_of_the_same_names():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(-1, 6, 200), rng.integers(-1, 6, 200)
    report = open_set_report(y_true, y_pred, labels=[0, 1, 2], output_dict=True)
    assert report["open_set_f1"] == open_set_f1_score(y_true, y_pred, labels=[0, 1, 2])
    assert report["known_f1"] == known_f1_score(y_true, y_pred, labels=[0, 1, 2])
    assert report["open_f1"] == open_f1_score(y_true, y_pred, labels=[0, 1, 2])
    assert report["accuracy"] == open_set_accuracy(y_true, y_pred, labels=[0, 1, 2])
    assert report["macro avg"]["support"] == 200
    assert report["known avg"]["support"] == np.isin(y_true, [0, 1, 2]).sum()


def test_open_weighs_as_much_as_one_class():
    y_true = [0] * 10 + [1] * 10 + [-1] * 1000
    y_pred = [0] * 10 + [1] * 10 + [0] * 1000
    assert open_set_f1_score(y_true, y_pred) == pytest.approx(np.mean([20 / (20 + 1000), 1, 0]))
    assert known_f1_score(y_true, y_pred) == pytest.approx(np.mean([20 / (20 + 1000), 1]))
    assert open_f1_score(y_true, y_pred) == 0


def test_answer_outside_the_known_classes_is_wrong_for_known_and_open_rows():
    # The third row's own class is unknown, so that naming it is not the answer open.
    y_true, y_pred = ["a", "b", "c", "c"], ["c", "b", "c", "-1"]
    assert open_set_accuracy(y_true, y_pred, labels=["a", "b"]) == 0.5
    assert open_f1_score(y_true, y_pred, labels=["a", "b"]) == pytest.approx(2 / 3)
    report = open_set_report(y_true, y_pred, labels=["a", "b"], output_dict=True, zero_division=0)
    assert report["open_rejection_rate"] == 0.5
    assert report["false_rejection_rate"] == 0
    assert report["classes"]["b"]["precision"] == 1


@pytest.mark.parametrize("function", F1_FUNCTIONS)
def test_one_class_works(function):
    assert function(["a", "a", "-1"], ["a", "a", "-1"]) == 1


@pytest.mark.parametrize("open_label", ["open", "none of these"])
def test_another_open_label(open_label):
    y_true, y_pred = ["a", "b", "elsewhere"], ["a", open_label, open_label]
    report = open_set_report(
        y_true, y_pred, labels=["a", "b"], open_label=open_label, output_dict=True, zero_division=0
    )
    assert report["open_rejection_rate"] == 1
    assert report["false_rejection_rate"] == 0.5
    text = open_set_report(y_true, y_pred, labels=["a", "b"], open_label=open_label, zero_division=0)
    assert ("open (" in text) == (open_label != "open")
    assert open_f1_score(y_true, y_pred, labels=["a", "b"], open_label=open_label) == pytest.approx(2 / 3)


def test_report_text_prints_the_dictionary():
    rng = np.random.default_rng(1)
    classes = ["a class with a name that is longer than any row", "b", "c"]
    y_true, y_pred = rng.choice([*classes, "open"], 100), rng.choice([*classes, "open"], 100)
    report = open_set_report(y_true, y_pred, open_label="open", output_dict=True)
    for digits in (0, 3, 12):
        text = open_set_report(y_true, y_pred, open_label="open", digits=digits)
        lines = [line for line in text.splitlines() if line]
        assert len({len(line) for line in lines}) == 1
        for name, scores in [*report["classes"].items(), ("macro avg", report["macro avg"])]:
            cells = [f"{scores[key]:.{digits}f}" for key in ("precision", "recall", "f1-score")]
            (line,) = [line for line in lines[1:-3] if line.rsplit(maxsplit=4)[0].strip() == name]
            assert line.split()[-4:] == [*cells, str(scores["support"])]
        assert lines[-3].split() == ["accuracy", f"{report['accuracy']:.{digits}f}", "100"]
        assert lines[-2].split()[-2] == f"{report['open_rejection_rate']:.{digits}f}"
        assert lines[-1].split()[-2] == f"{report['false_rejection_rate']:.{digits}f}"


@pytest.mark.parametrize(
    "container",
    [list, tuple, np.array, pd.Series, pd.Categorical, pl.Series, lambda v: np.array(v, dtype=object),
     lambda v: np.array(v)[:, np.newaxis]],
)  # fmt: skip
@pytest.mark.parametrize("kind", [int, str])
def test_containers(container, kind):
    y_true, y_pred = [[kind(k) for k in labels] for labels in ([0, 0, 1, -1, -1], [0, -1, 1, 1, -1])]
    assert open_set_f1_score(container(y_true), container(y_pred)) == pytest.approx(11 / 18)
    known = container([kind(0), kind(1)])
    assert open_set_accuracy(container(y_true), y_pred, labels=known) == pytest.approx(0.6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, bool])
def test_number_types(dtype):
    # y_true comes from a container that cannot hold -1, the answers from predict.
    y_true = np.array([0, 0, 1, 1], dtype=dtype)
    assert open_set_accuracy(y_true, [0, -1, 1, -1]) == 0.5
    assert open_set_accuracy(y_true, [0.0, -1.0, 1.0, 1.0], labels=np.array([1], dtype=dtype)) == 0.75


def test_pandas_strings_and_longer_answers_are_not_cut():
    y_true = pd.Series(["ab", "ab", "-1"], dtype="string")
    assert open_set_accuracy(y_true, np.array(["abc", "ab", "-1"])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("function", F1_FUNCTIONS)
@pytest.mark.parametrize("y_pred", [[0, 0, 1], [0, -1, 1]])
def test_f1_without_an_open_row(function, y_pred):
    y_true = [0, 0, 1]
    if function is known_f1_score:
        assert function(y_true, y_pred) == pytest.approx(f1_score(y_true, y_pred, labels=[0, 1], average="macro"))
        return
    message = r"^F1 of open is undefined and set to 0\.0, since y_true has no open sample: control this"
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        value = function(y_true, y_pred)
    assert caught[0].filename == __file__
    known = known_f1_score(y_true, y_pred)
    assert value == pytest.approx(0 if function is open_f1_score else known * 2 / 3)
    assert function(y_true, y_pred, zero_division=0) == value
    with_one = function(y_true, y_pred, zero_division=1)
    assert with_one == pytest.approx(1 if function is open_f1_score else (known * 2 + 1) / 3)
    left_out = function(y_true, y_pred, zero_division=nan)
    assert left_out == pytest.approx(nan if function is open_f1_score else known, nan_ok=True)


@pytest.mark.parametrize("function", [open_set_f1_score, known_f1_score])
def test_known_class_that_does_not_occur(function):
    y_true, y_pred, labels = ["a", "-1"], ["a", "-1"], ["a", *"bcdefgh"]
    message = r"^F1 is undefined and set to 0\.0, since y_true and y_pred have no 'b', 'c', 'd', 'e', 'f' and 2 more: "
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        value = function(y_true, y_pred, labels=labels)
    assert caught[0].filename == __file__
    assert value == pytest.approx(2 / 9 if function is open_set_f1_score else 1 / 8)
    assert function(y_true, y_pred, labels=labels, zero_division=nan) == 1


def test_class_that_is_never_answered_counts_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_set_f1_score([0, 1, -1], [0, -1, -1]) == pytest.approx((1 + 0 + 2 / 3) / 3)


def test_no_known_class_at_all():
    assert open_set_f1_score([-1, -1], [-1, -1]) == 1
    assert open_set_accuracy([-1, -1], [-1, -1]) == 1
    message = r"^F1 over the known classes is undefined and set to 0\.0, since y_true and y_pred have no known class"
    with pytest.warns(UndefinedMetricWarning, match=message):
        assert known_f1_score([-1, -1], [-1, -1]) == 0
    report = open_set_report([-1, -1], [-1, -1], output_dict=True, zero_division=nan)
    assert isnan(report["known_f1"])
    assert report["open_set_f1"] == 1
    assert "nan" in open_set_report([-1, -1], [-1, -1], zero_division=nan)


def test_report_says_what_is_undefined():
    with pytest.warns(UndefinedMetricWarning) as caught:
        report = open_set_report([0, 1], [0, 0], labels=[0, 1], output_dict=True)
    messages = sorted(str(warning.message).split(":")[0] for warning in caught)
    assert messages == [
        "F1 is undefined and set to 0.0, since y_true has no open sample",
        "Precision is undefined and set to 0.0, since y_pred has no 1, open sample",
        "Recall is undefined and set to 0.0, since y_true has no open sample",
    ]
    assert {warning.filename for warning in caught} == {__file__}
    assert report["open_rejection_rate"] == 0
    with pytest.warns(UndefinedMetricWarning) as caught:
        open_set_report([-1, -1], [0, -1], labels=[0])
    assert {str(warning.message).split(":")[0] for warning in caught} == {
        "False rejection rate is undefined and set to 0.0, since y_true has no known sample",
        "Recall is undefined and set to 0.0, since y_true has no 0",
    }
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([0, 1, -1], ["0", "1", "-1"], "y_true holds numbers such as 0 and y_pred holds strings such as '0', but"),
        ([0, 1], [0], "y_true has 2 rows and y_pred has 1: pass"),
        # Beyond 2**53 floats skip whole numbers, so that different labels would be one.
        ([0, 1e17], [0, 1], r"y_true holds 1e\+17 \(float64\), which is no exact label: pass"),
        ([0, 1], [0, -1e17], r"y_pred holds -1e\+17 \(float64\), which is no exact label: pass"),
        (np.array([2**63], dtype=np.uint64), [0], r"y_true holds 9223372036854775808 \(uint64\), which is no exact"),
    ],
)
def test_bad_labels(function, y_true, y_pred, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        function(y_true, y_pred)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0, 1, -1]}, "labels lists the open label -1 among the known classes: leave it out"),
        ({"labels": [0, 1, 0]}, "labels lists 0 more than once: name each"),
        ({"labels": ["a"]}, "y_true holds numbers such as 0 and labels holds strings such as 'a', but"),
        ({"labels": []}, "labels is empty: pass at least one label"),
        ({"open_label": "open"}, "The open label 'open' is a string, but the labels are numbers"),
        ({"open_label": 0.5}, "The open label 0.5 is no whole number"),
    ],
)
def test_bad_options(function, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        function([0, 1], [0, 1], **options)


@pytest.mark.parametrize("function", [*F1_FUNCTIONS, open_set_report])
@pytest.mark.parametrize("zero_division", ["error", 2, None, 0.5])
def test_bad_zero_division(function, zero_division):
    with pytest.raises(ValueError, match="is not allowed: pass 'warn', 0, 1 or nan"):
        function([0, -1], [0, -1], zero_division=zero_division)


def test_public_list_is_sorted_and_complete():
    assert metrics.__all__ == sorted(metrics.__all__)
    assert all(getattr(metrics, name).__doc__ for name in metrics.__all__)


def test_metrics_need_neither_torch_nor_an_estimator():
    allowed = {"__future__", "collections", "math", "numbers", "numpy", "scipy", "sklearn", "typing", "warnings"}
    files = sorted(Path(metrics.__file__).parent.glob("_[a-z]*.py"))
    assert len(files) > 5
    for file in files:
        if file.name == "_scorers.py":  # scorers call estimators, by their nature
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, file.name
            elif isinstance(node, ast.ImportFrom):
                # Labels and weights as everywhere; warnings.
                shared = node.level == 2 and node.module in {"_core.labels", "_core.validation", "_core.warn"}
                assert node.level == 1 or shared or node.module.split(".")[0] in allowed, file.name
