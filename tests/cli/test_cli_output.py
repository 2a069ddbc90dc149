"""Promise: any console prints what a command says, and a write that fails stops no work."""

import argparse
import errno
import io
import os
import shutil
import sys

import pytest

from skellipsoid import SupConTextEncoder, load
from skellipsoid.cli import main
from skellipsoid.cli._options import build_parser

NAMES = {"alarm": "будильник", "balance": "баланс", "light": "свет", "weather": "погода"}
#: Each command with Cyrillic labels, texts and paths, in an order in which each finds what it needs.
COMMANDS = [
    "train --data тексты.csv --report --save модель",
    "demo хочу-такси --data тексты.csv",
    "evaluate --model модель --data тексты.csv",
    "predict --model модель --data журнал.txt --scores",
    "predict --model модель --data журнал.txt --json",
    "traffic --model модель --data журнал.txt --save группы.tsv",
    "review --model модель --data журнал.txt -n 8 --save лист.tsv",
    "set-threshold --model модель --open-share 0.2 --save другая",
    "compare --before модель --after другая --data журнал.txt",
    "learn --model модель --data размечено.csv",
    "monitor --model модель --data журнал.txt --state состояние.json",
    "add --model модель --data новое.csv",
    "merge --model модель --labels свет баланс --into свет-и-счёт",
    "remove --model модель --labels погода",
    "export --model модель --out выход",
]


class Failing(io.BytesIO):
    """A disk that is full, or a pipe that nobody reads."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, content):
        raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def run(monkeypatch):
    """Run a command with streams as Python makes them: ``run(words, encoding)``; its exit code and what was written."""

    def run(words, encoding, output=None):
        written, said = output or io.BytesIO(), io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(said, encoding=encoding, errors="backslashreplace"))
        status = main(words)
        for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
            assert (stream.encoding, stream.errors) == (encoding, errors)
            stream.flush()
        return status, written.getvalue(), said.getvalue().decode(encoding)

    return run


@pytest.fixture
def place(tiny_model, texts, labels, open_texts, tmp_path, monkeypatch):
    """A folder with files of Cyrillic names and content."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / SupConTextEncoder().model_name).parent.mkdir()
    (tmp_path / SupConTextEncoder().model_name).symlink_to(tiny_model)
    rows = [(f"{text} пожалуйста", NAMES[label]) for text, label in zip(texts, labels.tolist(), strict=True)]
    log = [text for text, _ in rows[::2]] + [f"{text} срочно" for text in open_texts]
    for name, lines in {
        "тексты.csv": ["text,label", *map(",".join, rows)],
        "журнал.txt": log,
        "размечено.csv": ["message,label", *(f"{text} срочно,-1" for text in open_texts[:4]), f"{rows[1][0]} да,свет"],
        "новое.csv": ["text,label", *(f"{text} поём,песни" for text in open_texts)],
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.usefixtures("place")
def test_every_command_prints_any_letter(encoding, run):
    (actions,) = [each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    assert {words.split()[0] for words in COMMANDS} == {*actions.choices}
    n_letters = 0
    for words in COMMANDS:
        status, written, said = run(words.split(), encoding)
        assert status == 0, (words, said)
        assert "Traceback" not in said
        result = written.decode("utf-8")  # not as the locale says
        assert result
        assert "\\u0" not in result
        n_letters += sum("а" <= letter <= "я" for letter in result)
    assert n_letters > 1000
    assert {*load("модель").classes_} == {"будильник", "свет-и-счёт", "песни"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
def test_output_that_cannot_be_written_stops_no_work(number, run, saved, tmp_path, monkeypatch):
    """A full disk is one sentence behind the work, and a closed pipe none; what streams ends."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "модель")
    found = "cannot be written (No space left on device), which undoes nothing that was saved"
    sentence = f"skellipsoid: The output {found}; free some space, or send it elsewhere.\n"
    expected = (2, sentence) if number == errno.ENOSPC else (0, "")
    words = ["remove", "--model", "модель", "--labels", "light", "--quiet"]
    assert run(words, "ascii", Failing(number))[::2] == expected
    assert "light" not in load("модель").classes_
    (tmp_path / "log.txt").write_text("wake me at six\n" * 3000, encoding="utf-8")
    words = ["predict", "--model", "модель", "--data", "log.txt"]
    assert run(words, "ascii", Failing(number))[::2] == expected
