"""What the commands write and answer, of an export and its 8-bit form too, is the same on every machine."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from export_helpers import MANIFEST, run
from machines import COMBINED

RUN = "import sys; from skellipsoid.cli import main; sys.exit(main(sys.argv[1:]))"
LINES = ["wake me at six", "what is my balance", "ünïcödé 左", "", "tell a joke", "1,5"]


def answers(capsys, give_input, folder, *options):
    """What a pipe gets of a model."""
    give_input("\n".join(LINES))
    status, out, err = run(capsys, "predict", "--model", folder, *options)
    assert (status, err.count("\n")) == (0, 1)
    return out


@pytest.fixture(scope="module")
def seen():
    """Answers of the machines so far."""
    return {}


@pytest.mark.parametrize("machine", COMBINED, indirect=True)
def test_commands_do_the_same_on_every_machine(machine, model, alone, seen, tmp_path, give_input, capsys, fresh_python):
    status, _, err = run(capsys, "export", "--model", model, "--quantize", "--out", tmp_path / "int8")
    assert (status, err) == (0, "")
    written = datetime.fromisoformat(json.loads((tmp_path / "int8" / MANIFEST).read_bytes())["exported"])
    assert abs(written - datetime.now(UTC)) < timedelta(minutes=10)
    found = answers(capsys, give_input, alone)
    assert answers(capsys, give_input, model) == found
    assert seen.setdefault("answers", found) == found
    scores = answers(capsys, give_input, alone, "--scores", "--json")
    assert seen.setdefault("scores", scores) == scores
    # A process that begins there, with its locale and instructions.
    done = fresh_python(RUN, "predict", "--model", model, stdin="\n".join(LINES), encoding="utf-8")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (0, 1, found)  # two lines hold no known word
