"""Promise: commands that leave a model as it is take one from the hub, those that change one do not."""

import pytest
from hub_helpers import TOKEN, client_of, running_hub

from skellipsoid.cli import main

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
    assert main([command, "--model", NAME, *words]) == 2
    assert capsys.readouterr().err == f"skellipsoid: There is no folder {NAME!r}; check the path of the saved model.\n"
    assert hub.requests == []


def test_errors_name_options(hub, saved, capsys):
    hub.add(NAME, saved, closed="gated")
    assert main(["predict", "--model", NAME]) == 2
    message = capsys.readouterr().err
    assert message.endswith("on the page of the model, and log in with `hf auth login` or set HF_TOKEN.\n")
    assert TOKEN not in message
    assert main(["predict", "--model", str(saved), "--revision", "main"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("skellipsoid: revision='main' is one of a repository on the hub, but ")
    assert "; leave revision out, or pass a name" in message


@pytest.mark.parametrize("command", ["evaluate", "traffic", "review", "compare"])
def test_other_commands_that_read(hub, saved, table, tmp_path, command, capsys):
    hub.add(NAME, saved)
    words = {
        "evaluate": ["--model", NAME],
        "traffic": ["--model", NAME, "--revision", "main"],
        "review": ["--model", NAME, "--save", "labels.tsv", "-n", "3"],
        "compare": ["--before", saved, "--after", NAME],
    }[command]
    assert main([command, "--quiet", "--data", str(table), *map(str, words)]) == 0, capsys.readouterr().err
    assert hub.downloaded()
