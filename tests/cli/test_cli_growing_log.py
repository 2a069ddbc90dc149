"""Promise: the monitor reads each text of a log once, however the log grows, is rotated, or is given again."""

import itertools
import json
import os
import random

import pytest
from command_helpers import done
from file_helpers import write

from skellipsoid.cli import main


@pytest.fixture
def watch(folder, tmp_path, texts, monkeypatch, capsys):
    """Give a log to the monitor: ``watch(path)``; how many texts it has read since the reference, and its notes."""
    monkeypatch.chdir(tmp_path)
    done(capsys, "monitor", "--model", "model", "--data", write(tmp_path, "\n".join([*texts, ""]), "first.txt"))

    def call(path):
        capsys.readouterr()
        status, (_, notes) = main(["monitor", "--model", "model", "--data", str(path)]), capsys.readouterr()
        assert status in (0, 3), notes
        with open("model.monitor.json", encoding="utf-8") as file:
            state = json.load(file)["state"]
        n_read = len(state["_scores"]["values"]) - state["n_reference_"]
        return n_read, notes

    return call


@pytest.mark.parametrize("name", ["answers.jsonl", "app.log"])
def test_each_text_is_read_once_however_a_log_is_cut(watch, name):
    """A property: any lengths of days, a line that is being written, rotations between two calls, and gaps."""
    rng = random.Random(0)
    is_json = name.endswith("l")
    numbers = itertools.count()

    def line():
        text = f"wake me at {next(numbers)}"
        return json.dumps({"time": f"2026-01-01T00:00:{len(text):02}", "text": text}) if is_json else text

    n_written, content = 0, ""
    for turn in range(12):
        n_files = rng.choice([0, 0, 1, 2]) if turn else 0
        for number in range(n_files + 1):
            new = [line() for _ in range(rng.randint(1, 4))]
            content += "".join(f"{each}\n" for each in new)
            n_written += len(new)
            if number < n_files:  # as skellipsoid-serve, or as logrotate
                names = "answers.{}.jsonl" if is_json else "app.log.{}"
                for i in range(9, 0, -1):
                    if os.path.exists(names.format(i)):
                        os.replace(names.format(i), names.format(i + 1))
                with open(names.format(1), "w", encoding="utf-8") as file:
                    file.write(content)
                content = ""
        half = rng.choice(["", line()[:-3]])
        with open(name, "w", encoding="utf-8") as file:
            file.write(content + half)
        n_read, notes = watch(name)
        assert n_read == n_written
        assert ("has no end yet" in notes) == bool(half)
        assert ("was rotated" in notes) == bool(n_files)
        assert "is missing" not in notes


def test_a_gap_is_said_and_a_state_of_before_is_read(watch, tmp_path):
    log = write(tmp_path, "wake me\nat six\n", "day.txt")
    assert watch(log) == (2, "")
    log.write_text("wake me\nat six\nand at nine\n", encoding="utf-8")
    n_read, notes = watch(log)
    assert (n_read, notes.count("its 1 further text")) == (3, 1)
    assert watch(log)[1].count("given at the last call already") == 1
    state = tmp_path / "model.monitor.json"
    stored = json.loads(state.read_text(encoding="utf-8"))
    log.write_text("at ten\nat eleven\n", encoding="utf-8")
    n_read, notes = watch(log)
    assert n_read == 5
    assert "if it is a log that was rotated, what was written between is missing." in notes
    (tmp_path / "other.txt").write_text("at noon\n", encoding="utf-8")
    assert watch("other.txt") == (6, "")  # another log
    for name in ("n_texts", "path"):  # of an earlier version
        del stored[f"last_log_{name}"]
    state.write_text(json.dumps(stored), encoding="utf-8")
    log.write_text("wake me\nat six\nand at nine\n", encoding="utf-8")
    assert watch(log)[0] == 3
    log.write_text("wake me\nat six\nand at nine\nat ten\n", encoding="utf-8")
    assert watch(log) == (7, "")  # nothing says how long the last one was


@pytest.mark.parametrize(("times", "falls"), [([3, 2, 1], True), ([1, 2, 3], False), ([1, 3, 2, 4], False)])
def test_times_that_fall_are_said(watch, tmp_path, times, falls):
    for name, written in (("sent", "2026-01-0{}T10:00:00Z"), ("timestamp", "176000000{}"), ("id", "{}")):
        rows = [f"{written.format(time)},wake me at {time}" for time in times]
        write(tmp_path, "\n".join([f"{name},text", *rows, ""]), "log.csv")
        notes = watch("log.csv")[1]
        assert (f"The times in the column {name!r} of 'log.csv' fall" in notes) == (falls and name != "id")
