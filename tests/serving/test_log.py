"""The log of answers: what it holds, who reads it, and what happens when it is large or cannot be written."""

import errno
import json
import os
import re
import resource
import shutil
import signal
from pathlib import Path

import pytest

from skellipsoid._text_files.read import read_texts
from skellipsoid.cli import main
from skellipsoid_runtime.serve import Settings
from skellipsoid_runtime.serve._log import AnswerLog


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_says_when_which_model_answered_what(serve, tmp_path, exported, texts):
    path = tmp_path / "answers.jsonl"
    with serve(exported, log=path) as server:
        answers = server.post({"texts": texts[:3]})[1]
        version = server.get("/model")[1]["version"]
    found = lines_of(path)
    for line, answer in zip(found, answers, strict=True):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
        assert line == {
            "model": version,
            "answer": answer["label"],
            **{name: answer[name] for name in ("nearest_class", "score", "p_value", "unread", "action", "candidates")},
        }
    assert path.stat().st_mode & 0o777 == 0o600
    assert texts[0] not in path.read_text()
    with pytest.raises(ValueError, match=r"is a log of skellipsoid-serve without texts; start .* with --log-texts"):
        read_texts(path)


def test_traffic_reads_it(serve, exported, saved, texts, open_texts, tmp_path, capsys):
    written = tmp_path / "answers.jsonl"
    with serve(exported, log=written, log_texts=True) as server:
        for _ in range(6):
            assert server.post({"texts": [*texts, *open_texts]})[0] == 200
    assert main(["traffic", "--model", str(saved), "--data", str(written), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("228 texts, 38 of them different\nOpen: at least ")
    n_open = sum(line["answer"] == "-1" for line in lines_of(written))
    assert f"rejects {n_open} of 228 texts" in out


def test_a_log_that_cannot_be_written_ends_no_request(serve, tmp_path, exported, texts):
    path = tmp_path / "volume" / "answers.jsonl"
    path.parent.mkdir()
    with serve(exported, log=path) as server:
        assert server.post({"text": texts[0]})[0] == 200
        shutil.rmtree(path.parent)
        assert {server.post({"text": text})[0] for text in texts[:5]} == {200}
        assert server.counter("log_errors_total") == 5
        assert server.output.count(os.strerror(errno.ENOENT)) == 1  # said once


def test_what_is_no_file_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody reads it: to open it would wait for ever
    kinds = {tmp_path / "pipe": "a device or a pipe", Path("/dev/null"): "a device or a pipe", tmp_path: "a folder"}
    for path, kind in kinds.items():
        with pytest.raises(OSError, match=rf"^'{path}' is {kind}, where a log is to be written; name a file\.$"):
            log_at(path)


def log_at(path, told=pytest.fail, **options):
    """A log of texts; ``told`` is called where it cannot be written."""
    return AnswerLog(path, Settings(log=path, log_texts=True, **options), told)


@pytest.fixture
def answer_log(tmp_path):
    """A log of texts, and how often it could not be written."""
    errors = []
    path = tmp_path / "answers.jsonl"
    log = log_at(path, lambda: errors.append(1))
    log.write(["first"], [{"label": "a"}], "m")
    yield path, log, errors
    log.close()


@pytest.mark.parametrize("change", ["moved", "cut"])
def test_another_program_may_rotate_it(answer_log, change):
    path, log, errors = answer_log
    moved = path.with_suffix(".old")
    if change == "cut":
        os.truncate(path, 0)
    else:
        path.rename(moved)
    log.write(["second"], [{"label": "b"}], "m")
    log.write(["third"], [{"label": "c"}], "m")
    assert [line["text"] for line in lines_of(path)] == ["second", "third"]
    if change == "moved":
        assert [line["text"] for line in lines_of(moved)] == ["first"]
    assert errors == []


def test_a_line_that_was_cut_is_ended_before_the_next(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"text": "fir')
    log = log_at(path)
    log.write(["second"], [{"label": "b"}], "m")
    log.close()
    torn, whole = path.read_text().splitlines()
    assert (torn, json.loads(whole)["text"]) == ('{"text": "fir', "second")


def test_what_a_full_disk_took_of_a_line_is_taken_back(answer_log):
    """A limit on the size of files ends a write in its middle, as a full disk does."""
    path, log, errors = answer_log
    before = path.read_bytes()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, usual[1]))
    try:
        for _ in range(3):
            log.write(["x" * 200], [{"label": "a"}], "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert len(errors) == 3
    log.write(["last"], [{"label": "a"}], "m")
    assert [line["text"] for line in lines_of(path)] == ["first", "last"]


def test_two_logs_of_one_file_lose_nothing_when_it_begins_anew(tmp_path):
    path = tmp_path / "answers.jsonl"
    logs = [log_at(path, log_bytes=500, log_files=50) for _ in range(2)]
    for number in range(60):
        logs[number % 2].write([str(number)], [{"label": "a"}], "m")
    for log in logs:
        log.close()
    found = [int(line["text"]) for file in tmp_path.iterdir() for line in lines_of(file)]
    assert sorted(found) == list(range(60))
