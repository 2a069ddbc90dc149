"""Label metrics against brute force and scikit-learn."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import f1_score

from skellipsoid.metrics import known_f1_score, open_f1_score, open_set_accuracy, open_set_f1_score, open_set_report

KNOWN = [2, 0, 1]
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


def test_f1_without_an_open_row():
    y_true, y_pred = [0, 0, 1], [0, -1, 1]
    known = known_f1_score(y_true, y_pred)
    assert known == pytest.approx(f1_score(y_true, y_pred, labels=[0, 1], average="macro"))
    message = r"^F1 of open is undefined and set to 0\.0, since y_true has no open sample: control this"
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        assert open_set_f1_score(y_true, y_pred) == pytest.approx(known * 2 / 3)
    assert caught[0].filename == __file__
    with pytest.warns(UndefinedMetricWarning, match=message):
        assert open_f1_score(y_true, y_pred) == 0


def test_report_says_what_is_undefined():
    for y_true, y_pred, said in (
        ([0, 1], [0, 0], ["F1", "Precision", "Recall"]),
        ([-1, -1], [0, -1], ["False rejection rate", "Recall"]),
    ):
        with pytest.warns(UndefinedMetricWarning) as caught:
            open_set_report(y_true, y_pred, labels=[0, 1][: len(set(y_true))])
        assert sorted(str(warning.message).partition(" is undefined")[0] for warning in caught) == said
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([0, 1, -1], ["0", "1", "-1"], "y_true holds numbers such as 0 and y_pred holds strings such as '0', but"),
        ([0, 1], [0], "y_true has 2 rows and y_pred has 1: pass"),
    ],
)
def test_bad_labels(y_true, y_pred, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        open_set_accuracy(y_true, y_pred)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0, 1, -1]}, "labels lists the open label -1 among the known classes: leave it out"),
        ({"labels": [0, 1, 0]}, "labels lists 0 more than once: name each"),
        ({"labels": ["a"]}, "y_true holds numbers such as 0 and labels holds strings such as 'a', but"),
        ({"labels": []}, "labels is empty: pass at least one label"),
        ({"open_label": "open"}, "The open label 'open' is a string, but the labels are numbers"),
        ({"open_label": 0.5}, "The open label 0.5 is no whole number"),
        ({"zero_division": 0.5}, ".* is not allowed: pass 'warn', 0, 1 or nan"),
    ],
)
def test_bad_options(options, message):
    for function in (open_set_f1_score, known_f1_score, open_f1_score, open_set_report):
        with pytest.raises(ValueError, match=f"^{message}"):
            function([0, 1], [0, 1], **options)


def test_no_known_class_at_all():
    assert open_set_f1_score([-1, -1], [-1, -1]) == 1
    assert open_set_accuracy([-1, -1], [-1, -1]) == 1
    message = r"^F1 over the known classes is undefined and set to 0\.0, since y_true and y_pred have no known class"
    with pytest.warns(UndefinedMetricWarning, match=message):
        assert known_f1_score([-1, -1], [-1, -1]) == 0
    assert "nan" in open_set_report([-1, -1], [-1, -1], zero_division=nan)
