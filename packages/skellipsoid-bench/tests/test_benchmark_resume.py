"""A benchmark that is killed, at any moment, goes on where it was: nothing is lost and nothing is run twice."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
from filelock import FileLock
from sklearn.naive_bayes import GaussianNB

from skellipsoid_bench import read_results, run

#: A user's estimator that says in a file when it is fitted, and takes its time.
SLOW = """
import os, time
from sklearn.naive_bayes import GaussianNB

class Slow(GaussianNB):
    def fit(self, X, y):
        with open(os.environ["FITS"], "a") as file:
            file.write(f"{os.getpid()} {','.join(map(str, sorted(set(y))))}\\n")
        time.sleep(0.03)
        return super().fit(X, y)
"""
SEEDS = list(range(30))


@pytest.fixture
def start(tmp_path, blobs_file, fresh_environment):
    """Start the command on thirty seeds: ``start(*more)``; gives the process."""
    (tmp_path / "mine.py").write_text(SLOW, encoding="utf-8")
    environment = {**fresh_environment(), "FITS": str(tmp_path / "fits.txt")}
    command = [sys.executable, "-m", "skellipsoid_bench", "run", "--quiet", "--results", "r.jsonl"]
    command += ["--data", str(blobs_file), "--ratios", "0.5", "--methods", "mine:Slow", "--cache", "cache"]

    def begin(*more):
        return subprocess.Popen(
            [*command, "--seeds", *map(str, SEEDS), *more],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


def lines_of(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(condition, process=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL elsewhere")
def test_nothing_is_lost_and_nothing_is_run_twice_after_kills(start, tmp_path):
    rng = random.Random(0)
    results, fits = tmp_path / "r.jsonl", tmp_path / "fits.txt"
    kept, n_kills = [], 2
    for _ in range(n_kills):
        process = start()
        wanted = lines_of(results) + rng.randint(2, 9)
        wait_for(lambda wanted=wanted: lines_of(results) >= wanted, process)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
        # A kill in the midst of writing, which takes too little time to be hit: what is left is torn.
        whole = results.read_bytes()
        assert whole.startswith(b"".join(kept))
        kept = whole.splitlines(keepends=True)[: whole.count(b"\n")]
        last = json.dumps({**json.loads(kept[-1]), "seed": 99}).encode()
        results.write_bytes(b"".join(kept) + last[: rng.randrange(1, len(last))])
    done = start().communicate(timeout=60)
    assert done[1] == ""
    assert results.read_bytes().startswith(b"".join(kept))
    records = read_results(results)
    assert sorted(record["seed"] for record in records) == SEEDS
    # Only what was under way when it was killed was fitted again.
    assert len(SEEDS) <= lines_of(fits) <= len(SEEDS) + n_kills


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def same(records):
    """Records without what another run of them has otherwise."""
    told = {"fit_seconds", "predict_seconds", "encode_seconds", "peak_memory_mb", "started"}
    return [{name: value for name, value in record.items() if name not in told} for record in records]


@pytest.mark.parametrize("position", [1, 2, 10, 40, -10, -2, -1, None])
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


#: A user's module, and the one beside it that it takes a number from.
class Own(GaussianNB):
    """A method of a user."""


@pytest.fixture
def changed_answers(monkeypatch):
    """Let the method answer otherwise, and say so: ``changed_answers(answer)``."""

    def change(answer):
        monkeypatch.setattr(Own, "answers_version", 2, raising=False)
        monkeypatch.setattr(Own, "predict", answer, raising=False)

    return change


def nearly_constant(method, X):
    return GaussianNB.predict(method, 0 * X)


def test_results_of_other_answers_are_said_and_replaced_on_request(changed_answers, tmp_path, blobs_file):
    path, plan = tmp_path / "r.jsonl", {"data": [blobs_file], "ratios": [0.5], "seeds": [0, 1], "methods": [Own()]}
    first = run(path, **plan)
    assert "answers_version" not in first[0]
    assert run(path, **plan, rerun=True) == first
    changed_answers(nearly_constant)
    said = r"^Results of another answers_version than that of today: 2, of Own; pass rerun=True"
    with pytest.warns(UserWarning, match=said):
        assert run(path, **plan) == first
    second = run(path, **plan, rerun=True)
    assert second[0]["f1"] < first[0]["f1"]
    assert list(second[0]["answers_version"].values()) == [2]
    assert read_results(path) == second
    assert run(path, **plan) == second
    assert run(path, **plan, rerun=True) == second


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


class Another(GaussianNB):
    """While it is fitted, another benchmark would write the same file."""

    path, data = None, None

    def fit(self, X, y):
        with pytest.raises(OSError, match="Another benchmark is writing"):
            run(self.path, data=[self.data])
        return super().fit(X, y)


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
