"""The command: how it begins, what it says of itself, and how it ends."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from serve_helpers import JSON, ask

from skellipsoid_runtime.serve._command import main


def test_sigterm_answers_all_that_was_taken(serve, exported, texts):
    with serve(exported, max_batch=1, n_threads=1, drain_seconds=0) as server, ThreadPoolExecutor(20) as pool:
        asked = {"texts": ["wake me at six please " * 20] * 40}
        waiting = [pool.submit(server.post, asked) for _ in range(20)]
        while not server.counter("waiting_texts"):
            time.sleep(0.01)
        assert not all(each.done() for each in waiting)
        assert server.end(signal.SIGTERM) == 0
        assert {each.result()[0] for each in waiting} == {200}


def test_after_sigterm_it_is_not_ready_and_goes_on_for_a_while(serve, exported, texts):
    with serve(exported, drain_seconds=1.5) as server, closing(server.connect()) as kept:
        assert ask(kept, "POST", "/predict", {"text": texts[0]})[0] == 200
        server.process.send_signal(signal.SIGTERM)
        while server.get("/ready") != (503, {"status": "ending"}):
            time.sleep(0.02)
        kept.request("POST", "/predict", json.dumps({"text": texts[0]}), JSON)
        with kept.getresponse() as response:
            assert (response.status, response.headers["connection"]) == (200, "close")
        assert server.process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "nothing"], "There is no folder"),
        (["--model", "."], "holds no model: neither skellipsoid.json nor skellipsoid_onnx.json"),
        (["--model", ".", "--max-batch", "0"], "max_batch=0 is too small; use a number from 1 on."),
        (["--model", ".", "--wait-ms", "-1"], "wait_ms=-1.0 is too small; use a number from 0 on."),
        (["--model", ".", "--log-texts"], "log_texts=True needs a file to write to"),
        (["--model", "nothing", "--port", "99999"], "port=99999 does not exist; use a number from 1 to 65535"),
        (["--model", "nothing", "--host", "256.0.0.1"], "Nothing can listen at port 0 of '256.0.0.1'"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--port", "0", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("skellipsoid-serve: ")
    assert sentence in error
    assert error.count("\n") == 1


def test_without_its_libraries_it_names_the_extra(tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('uvicorn')")
    command = [sys.executable, "-m", "skellipsoid_runtime.serve", "--model", "x"]
    environment = {"PYTHONPATH": ":".join([str(tmp_path), *sys.path])}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 2
    how = "pip install 'skellipsoid-runtime[serve]', or in a clone pip install './packages/skellipsoid-runtime[serve]'."
    assert found.stderr.endswith(f"{how}\n")
    assert found.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_sentence_before_the_model_is_loaded(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["--model", "nothing", "--port", str(taken.getsockname()[1])]) == 2
    error = capsys.readouterr().err
    assert os.strerror(errno.EADDRINUSE).lower() in error
    assert error.count("\n") == 1
