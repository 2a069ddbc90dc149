"""The command ``skellipsoid-bench``: from a plan to a table and pictures."""

import numpy as np
import pytest

from skellipsoid.datasets import make_open_blobs
from skellipsoid_bench import read_results
from skellipsoid_bench.cli import main

PLAN = """
data = ["blobs.npz"]
ratios = [0.5]
seeds = [0, 1]
methods = [
    "own_methods:Nearest",
    { name = "bayes", estimator = "sklearn.naive_bayes:GaussianNB", search = { var_smoothing = [1e-9, 1e-1] } },
    { name = "tree", estimator = "sklearn.tree:DecisionTreeClassifier" },
]
n_splits = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a user: features, a plan, an estimator."""
    X, y = make_open_blobs(240, 3, n_known=8, random_state=0)
    np.savez(tmp_path / "blobs.npz", X_train=X[::2], y_train=y[::2], X_test=X[1::2], y_test=y[1::2])
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    code = "from sklearn.neighbors import KNeighborsClassifier\n\n\nclass Nearest(KNeighborsClassifier):\n    pass\n"
    (tmp_path / "own_methods.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*words):
    return main([*map(str, words)])


def test_from_a_plan_to_a_table_and_pictures(folder, capsys):
    assert bench("run", "--plan", "plan.toml", "--results", "r.jsonl", "--cache", "cache") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("blobs 50% known, seed ") == 6
    assert out.endswith("6 results are in r.jsonl; see them with: skellipsoid-bench table --results r.jsonl\n")
    records = read_results("r.jsonl")
    assert {record["method"] for record in records} == {"Nearest", "bayes", "tree"}
    assert records[0]["estimator"] == "own_methods:Nearest"

    saved = ["t.md", "t.rst", "t.csv", "t.tex"]
    assert bench("table", "--results", "r.jsonl", "--reference", "tree", "--save", *saved) == 0
    out, _ = capsys.readouterr()
    assert (folder / "t.md").read_text(encoding="utf-8") == out
    assert "| blobs | bayes |" in out
    assert "tree minus each other method, in points: " in out
    assert "blobs  bayes" in (folder / "t.rst").read_text(encoding="utf-8")
    assert (folder / "t.csv").read_text(encoding="utf-8").startswith("encoder,data,method,50% F1 mean,")
    assert (folder / "t.tex").read_text(encoding="utf-8").startswith(r"\begin{table*}")

    assert bench("table", "--results", "r.jsonl", "--methods", "bayes", "tree", "--seeds", 0) == 0
    out, _ = capsys.readouterr()
    assert "| blobs | bayes |" in out
    assert "Nearest" not in out
    assert "±" not in out.partition("| blobs |")[2]

    of_parameter = ["stability", "--parameter", "var_smoothing"]
    for kind, *more in (["ranks", "--over", "cases"], of_parameter, ["confusion", "--seeds", 0]):
        assert bench("plot", kind, "--results", "r.jsonl", "--save", f"{kind}.png", *more) == 0
        assert capsys.readouterr().out == f"The picture is in {kind}.png\n"
        assert (folder / f"{kind}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--results", "r.jsonl", "--data", "nope"], "data has 'nope', which is not a data set"),
        (["run", "--results", "r.jsonl", "--plan", "no.toml"], "The plan 'no.toml' cannot be read ("),
        (["plot", "stability", "--results", "one.jsonl", "--save", "x.png"], "--parameter goes with plot stability"),
        (["plot", "ranks", "--parameter", "a", "--results", "one.jsonl", "--save", "x.png"], "--parameter goes with"),
        (
            ["run", "--results", "r.jsonl", "--data", "blobs.npz", "--ratios", "0.1", "--methods", "ellipsoid"],
            "5 of 5 runs failed, start again to try them anew; the first is blobs 10% known, seed 0, features, "
            "ellipsoid: ValueError: known_ratio=0.1 of 8 classes keeps 1 known",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, message, folder, capsys):
    (folder / "one.jsonl").write_text("", encoding="utf-8")
    assert bench(*words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("skellipsoid-bench: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: run | table | plot"),
        (["run"], "the following arguments are required: --results"),
        (["run", "--results", "r", "--seeds", "-1"], "'-1' is not a seed"),
        (["run", "--results", "r", "--jobs", "0"], "'0' is not a number of processes; use a whole number from 1 on"),
        (["table", "--results", "r", "--save", "t.txt"], "'t.txt' names no format; use a name that ends in .md, .rst"),
    ],
)
def test_words_that_cannot_be_used_are_refused(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        bench(*words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
