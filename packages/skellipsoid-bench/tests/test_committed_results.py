"""Promise: every committed row of results is known to its plan, so that resuming a plan runs none of them again."""

import json
import re
import shlex
from pathlib import Path

import pytest

from skellipsoid_bench import _encoders, read_results
from skellipsoid_bench._plan import make_plan
from skellipsoid_bench._runner import _wanted
from skellipsoid_bench.cli._options import build_parser

FOLDER = Path(__file__).parents[1]
DATA = FOLDER.parents[2] / "shared" / "data"
#: Plans and results of the commands in README.md, with the encoders that are named there.
PLANS = [
    ("methods", "methods", ["none", "none, layers", "head"]),
    ("methods", "tuned", ["full"]),
    ("methods", "elidecide", ["none", "head"]),
    ("mpnet", "mpnet", None),
    ("mpnet", "elidecide", None),
    ("stability", "stability", None),
    ("stability", "elidecide", None),
    ("ablations", "ablations", ["head"]),
    ("ablations", "elidecide", ["none"]),
    ("encoder_ablations", "ablations", None),
    ("full", "full", None),
    ("full", "full_h100", None),
    ("literature", "literature", None),
]
#: Classes whose rows have other settings than today's: the paper's trainer, before its patience was counted in steps,
#: and methods of a logistic regression, before scikit-learn fitted it.
LOGITS = {"SoftmaxOpenSetClassifier", "MaxLogitClassifier", "EnergyClassifier", "DOCClassifier", "OpenMaxClassifier"}
CLOSED_FORM = {"EllipsoidOpenSetClassifier"}
OTHER_SETTINGS = dict.fromkeys(("elidecide", "full", "full_h100"), CLOSED_FORM)
OTHER_SETTINGS |= dict.fromkeys(("methods", "tuned", "mpnet"), LOGITS)


@pytest.fixture
def mpnet(monkeypatch):
    """The identity of the files of MPNet, which few machines have."""
    row = json.loads((FOLDER / "results" / "mpnet.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    known = _encoders.model_identity

    def identity(name):
        return row["encoder_params"]["model_sha256"] if name.endswith("mpnet") else known(name)

    monkeypatch.setattr(_encoders, "model_identity", identity)


@pytest.mark.slow
@pytest.mark.usefixtures("mpnet", "minilm")
@pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not beside the repository")
@pytest.mark.parametrize(("plan", "results", "encoders"), PLANS)
def test_no_committed_row_is_run_again(plan, results, encoders, tmp_path):
    made = make_plan(
        FOLDER / "plans" / f"{plan}.toml", data_home=DATA, encoders=encoders, ratios=[0.25, 0.5, 0.75], seeds=range(5)
    )
    wanted = {run.name: run for run in _wanted(made, str(tmp_path), "cpu", None)}
    rows = {
        tuple(row[key] for key in ("data", "ratio", "seed", "encoder", "method")): row
        for row in read_results(FOLDER / "results" / f"{results}.jsonl")
    }
    known = wanted.keys() & rows.keys()
    assert known
    again = {name for name in known if wanted[name].difference(rows[name])}
    assert {rows[name]["estimator"] for name in again} <= OTHER_SETTINGS.get(results, set())
    assert "ellipsoid" not in {name[-1] for name in again}  # its settings have not changed


@pytest.mark.parametrize("page", ["packages/skellipsoid-bench/README.md", "docs/guide/benchmarks.rst"])
def test_commands_that_take_hours_name_what_their_plans_have(page, monkeypatch):
    monkeypatch.chdir(FOLDER)
    text = re.sub(r"\\\n *", "", (FOLDER.parents[1] / page).read_text(encoding="utf-8"))
    # A loop of the shell is left out.
    commands = [line for line in re.findall(r"^ *(?:\$ )?skellipsoid-bench (run .+)", text, re.M) if "$" not in line]
    assert len(commands) > 1
    for command in commands:
        options = build_parser().parse_args(shlex.split(command))
        chosen = {name: getattr(options, name) for name in ("data", "ratios", "seeds", "encoders", "methods")}
        listed, made = make_plan(options.plan), make_plan(options.plan, **chosen)
        assert {each.name for each in made.methods} <= {each.name for each in listed.methods}, command
        more = {each.name for each in made.encoders} - {each.name for each in listed.encoders}
        assert more <= {"none", "full"}, command
