"""Promise: commands that leave a model as it is take one from the hub, those that change one do not."""

import pytest
from command_helpers import done, fails
from hub_helpers import TOKEN, client_of, running_hub

NAME = "user/intents"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with running_hub() as hub, client_of(hub, tmp_path / "cache", monkeypatch):
        monkeypatch.chdir(tmp_path)
        yield hub


@pytest.mark.parametrize("command", ["set-threshold", "remove"])
def test_commands_that_change_a_model_take_a_folder(hub, saved, command, capsys):
    hub.add(NAME, saved)
    words = {"set-threshold": ["--undo"], "remove": ["--labels", "alarm"]}[command]
    said = fails(capsys, command, "--model", NAME, *words)
    assert said == f"skellipsoid: There is no folder {NAME!r}; check the path of the saved model.\n"
    assert hub.requests == []


def test_errors_name_options(hub, saved, capsys):
    hub.add(NAME, saved, closed="gated")
    message = fails(capsys, "predict", "--model", NAME)
    assert message.endswith("on the page of the model, and log in with `hf auth login` or set HF_TOKEN.\n")
    assert TOKEN not in message
    message = fails(capsys, "predict", "--model", saved, "--revision", "main")
    assert message.startswith("skellipsoid: revision='main' is one of a repository on the hub, but ")
    assert "; leave revision out, or pass a name" in message


@pytest.mark.parametrize(
    "words",
    [
        f"evaluate --model {NAME}",
        f"traffic --model {NAME} --revision main",
        f"review --model {NAME} --save labels.tsv -n 3",
        f"compare --before {NAME} --after {NAME}",
    ],
)
def test_other_commands_that_read(hub, saved, table, words, capsys):
    hub.add(NAME, saved)
    done(capsys, *words.split(), "--quiet", "--data", table)
    assert hub.downloaded()
