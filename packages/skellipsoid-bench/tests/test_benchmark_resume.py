"""A benchmark that is killed goes on where it was: no result is lost, and none is taken for another."""

import json
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from filelock import FileLock
from sklearn.naive_bayes import GaussianNB

from skellipsoid_bench import read_results, run


class Counting(GaussianNB):
    """Notes how many results the file holds when a fit begins."""

    path, found = None, []

    def fit(self, X, y):
        self.found.append(self.path.read_bytes().count(b"\n") if self.path.exists() else 0)
        return super().fit(X, y)


def test_a_result_is_in_the_file_before_the_next_run_begins(tmp_path, blobs_file, monkeypatch):
    monkeypatch.setattr(Counting, "path", tmp_path / "r.jsonl")
    monkeypatch.setattr(Counting, "found", [])
    run(tmp_path / "r.jsonl", data=[blobs_file], ratios=[0.5], seeds=[0, 1, 2], methods=[Counting()])
    assert Counting.found == [0, 1, 2]


def same(records):
    """Records without what another run of them has otherwise."""
    told = {"fit_seconds", "predict_seconds", "encode_seconds", "peak_memory_mb", "started"}
    return [{name: value for name, value in record.items() if name not in told} for record in records]


@pytest.mark.parametrize("position", [1, 40, -1, None])
def test_a_torn_last_line_is_cut_off_and_a_whole_one_is_kept(position, tmp_path, blobs_file):
    path = tmp_path / "r.jsonl"
    plan = {"data": [blobs_file], "ratios": [0.5], "methods": [{"name": "façade", "estimator": GaussianNB()}]}
    first, last = run(path, **plan, seeds=[0, 1])
    lines = path.read_bytes().splitlines()
    path.write_bytes(lines[0] + b"\n" + lines[1][:position])
    said = r"^The last line of '.*r\.jsonl' was not written to its end; it is left out, and its run counts as not done"
    with pytest.warns(UserWarning, match=said):
        assert read_results(path) == [first]  # as a table reads a file that is being written
    with pytest.warns(UserWarning, match=said) if position else nullcontext():
        found = run(path, **plan, seeds=[0, 1, 2])
    assert found[0] == first
    assert found[1] == last if position is None else same(found[1:2]) == same([last])
    assert read_results(path) == found


def test_a_line_that_is_no_result_is_never_dropped_silently(tmp_path, make_record, blobs_file):
    path = tmp_path / "r.jsonl"
    content = f'{json.dumps(make_record())}\n{{"data": "ba\n{json.dumps(make_record(seed=1))}\n'
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^Line 2 of '.*r.jsonl' is not a result of a benchmark; delete it or use"):
        read_results(path)
    with pytest.raises(ValueError, match=r"^Line 2 of"):
        run(path, data=[blobs_file])
    assert path.read_text(encoding="utf-8") == content


def test_two_benchmarks_do_not_write_one_file(tmp_path, blobs_file):
    path, plan = tmp_path / "r.jsonl", {"data": [blobs_file], "ratios": [0.5], "seeds": [0]}
    taken = r"^Another benchmark is writing '.*r.jsonl'; wait for it, or"
    with FileLock(f"{path}.lock"), pytest.raises(OSError, match=taken):
        run(path, **plan)
    assert len(run(path, **plan, methods=[GaussianNB()])) == 1  # the lock went with its owner


class Own(GaussianNB):
    """A method of a user."""


def test_results_of_other_answers_are_said_and_replaced_on_request(monkeypatch, tmp_path, blobs_file):
    path, plan = tmp_path / "r.jsonl", {"data": [blobs_file], "ratios": [0.5], "seeds": [0, 1], "methods": [Own()]}
    first = run(path, **plan)
    assert "answers_version" not in first[0]
    assert run(path, **plan, rerun=True) == first
    monkeypatch.setattr(Own, "answers_version", 2, raising=False)
    monkeypatch.setattr(Own, "predict", lambda method, X: GaussianNB.predict(method, 0 * X))
    said = r"^Results of another answers_version than that of today: 2, of Own; pass rerun=True"
    with pytest.warns(UserWarning, match=said):
        assert run(path, **plan) == first
    second = run(path, **plan, rerun=True)
    assert second[0]["f1"] < first[0]["f1"]
    assert list(second[0]["answers_version"].values()) == [2]
    assert read_results(path) == run(path, **plan) == run(path, **plan, rerun=True) == second


def test_other_source_of_own_code_is_said_and_makes_features_anew(tmp_path, monkeypatch, intents_folder):
    code = """
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.naive_bayes import GaussianNB

LETTERS = "aeiou"

class Count(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.array([[text.count(letter) for letter in LETTERS] for text in X], dtype=float)

class Bayes(GaussianNB):
    pass
"""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    plan = {"data": [{"path": intents_folder, "open_label": "oos"}], "ratios": [0.5], "seeds": [0]}
    plan |= {"encoders": ["own_code:Count"], "methods": ["own_code:Bayes"], "cache": tmp_path / "cache"}
    said = pytest.warns(UserWarning, match="^Results by other source code than that of today: 1, of Bayes; pass rerun")
    versions = {code: nullcontext(), code.replace("LETTERS =", "# a remark\nLETTERS ="): nullcontext()}
    for written, expected in (versions | {code.replace("aeiou", "aeiour"): said}).items():
        (tmp_path / "own_code.py").write_text(written, encoding="utf-8")
        sys.modules.pop("own_code", None)
        with expected:
            (record,) = run(tmp_path / "r.jsonl", **plan)
        assert len(list((tmp_path / "cache").iterdir())) == 1
    (again,) = run(tmp_path / "r.jsonl", **plan, rerun=True)
    sys.modules.pop("own_code", None)
    assert [*again["sources"]] == ["own_code:Bayes", "own_code:Count"] == [*record["sources"]]
    assert again["sources"] != record["sources"]
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_parameter_that_is_newer_than_a_result_must_have_its_default(tmp_path, blobs_file):
    path, plan = tmp_path / "r.jsonl", {"data": [blobs_file], "ratios": [0.5], "seeds": [0]}
    (first,) = run(path, **plan, methods=[GaussianNB()])
    del first["params"]["var_smoothing"]
    path.write_text(json.dumps(first) + "\n", encoding="utf-8")
    assert run(path, **plan, methods=[GaussianNB()]) == [first]
    with pytest.raises(ValueError, match="but of other parameters of the method"):
        run(path, **plan, methods=[GaussianNB(var_smoothing=0.5)])


def test_the_same_run_twice_is_refused(tmp_path, make_record):
    path = tmp_path / "r.jsonl"
    path.write_text(f"{json.dumps(make_record())}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^There are two results of banking 25% known, seed 0, head, ellipsoid; pass"):
        read_results(path, path)
    with pytest.raises(OSError, match=r"none\.jsonl' cannot be read \(.*\); pass a file that skell"):
        read_results(tmp_path / "none.jsonl")


class Holder(GaussianNB):
    """Classifier that holds anything."""

    def __init__(self, held=None):
        super().__init__()
        self.held = held


class Opaque:
    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("not today")


def make_function(factor):
    def times(value):
        return factor * value

    return times


def test_a_name_that_stands_for_something_else_is_refused(blobs_plan, tmp_path, blobs_file):
    blobs_plan |= {"seeds": [0], "methods": [GaussianNB()]}
    run(tmp_path / "r.jsonl", **blobs_plan)
    with np.load(blobs_file) as stored:
        np.savez(tmp_path / "blobs.npz", **{**stored, "X_test": stored["X_test"] + 1})
    said = r"^The results hold blobs 50% known, seed 0, features, GaussianNB, but of other data than today"
    with pytest.raises(ValueError, match=said):
        run(tmp_path / "r.jsonl", **{**blobs_plan, "data": [tmp_path / "blobs.npz"]})


def test_parameters_are_told_apart_by_value(blobs_plan, tmp_path):
    blobs_plan["seeds"] = [0]
    zeros = np.zeros((40, 40))
    other = zeros.copy()
    other[20, 20] = 1
    functions = [make_function(factor) for factor in (2, 2, 3)]
    for name, (one, equal, another) in (("arrays", (zeros, zeros.copy(), other)), ("functions", functions)):
        path = tmp_path / f"{name}.jsonl"
        first = run(path, **blobs_plan, methods=[Holder(one)])
        assert run(path, **blobs_plan, methods=[Holder(equal)]) == first
        with pytest.raises(ValueError, match="but of other parameters of the method"):
            run(path, **blobs_plan, methods=[Holder(another)])
    with pytest.raises(ValueError, match=r"^A value of the type function cannot be stored"):
        run(path, **blobs_plan, methods=[Holder(lambda: 1)])
    with pytest.raises(ValueError, match=r"^A value of the type Opaque cannot be stored \(not today\), so that no"):
        run(path, **blobs_plan, methods=[Holder(Opaque())])
