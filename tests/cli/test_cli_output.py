"""Promise: any console prints what a command says, and a write that fails stops no work."""

import errno
import io
import os
import shutil
import sys

import pytest

from skellipsoid import load
from skellipsoid.cli import main


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
        for stream, content in ((sys.stdout, written), (sys.stderr, said)):
            assert (stream.encoding, stream.errors) == (
                encoding,
                "strict" if content is written else "backslashreplace",
            )
            stream.flush()
        return status, written.getvalue(), said.getvalue().decode(encoding)

    return run


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_any_console_prints_any_letter(encoding, run, saved, tmp_path):
    log = tmp_path / "журнал.txt"
    log.write_text("привет, 左\tсвет\n", encoding="utf-8")
    for words in (["predict", "--scores"], ["predict", "--json"], ["evaluate"]):
        status, written, said = run([*words, "--model", str(saved), "--data", str(log)], encoding)
        assert status == 0, said
        assert "Traceback" not in said
        result = written.decode("utf-8")  # not as the locale says
        assert ("свет" if words == ["evaluate"] else "привет, 左") in result
        assert "\\u0" not in result


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
def test_output_that_cannot_be_written_stops_no_work(number, run, saved, tmp_path):
    """A full disk is one sentence behind the work, and a closed pipe none; what streams ends."""
    folder = shutil.copytree(saved, tmp_path / "модель")
    sentence = (
        "skellipsoid: The output cannot be written (No space left on device), which undoes nothing that was saved; "
        "free some space, or send it elsewhere.\n"
    )
    expected = (2, sentence) if number == errno.ENOSPC else (0, "")
    words = ["remove", "--model", str(folder), "--labels", "light", "--quiet"]
    assert run(words, "ascii", Failing(number))[::2] == expected
    assert "light" not in load(folder).classes_
    (tmp_path / "log.txt").write_text("wake me at six\n" * 5000, encoding="utf-8")
    words = ["predict", "--model", str(folder), "--data", str(tmp_path / "log.txt")]
    assert run(words, "ascii", Failing(number))[::2] == expected
