"""The guide's server: the command that the guide shows, answering real HTTP requests."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, save

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guide/serving.rst").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pipeline(tiny_model, texts, labels):
    encoder = SupConTextEncoder(tiny_model, max_iter=4, temperature=0.3, random_state=0)
    return Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(texts, labels)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def shown_command():
    """The words of the page's command, and the variables that it sets."""
    (command,) = re.findall(r"^   \$ (.* uvicorn .*)$", PAGE, re.M)
    words = command.split()
    program = words.index("uvicorn")
    return dict(word.split("=") for word in words[:program]), words[program:]


def start(folder, port, environment):
    variables, words = shown_command()
    assert variables == {"OMP_NUM_THREADS": "1", "SKELLIPSOID_MODEL": "my-model"}
    return subprocess.Popen(
        [sys.executable, "-m", *words, "--port", str(port)],
        cwd=ROOT,
        env={**environment, **variables, "SKELLIPSOID_MODEL": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def server(pipeline, tmp_path_factory, fresh_environment):
    """Address of a running server; when it is told to end, it ends in peace."""
    folder = tmp_path_factory.mktemp("serving") / "model"
    save(pipeline, folder)
    port = free_port()
    process = start(folder, port, fresh_environment())
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 90
        while True:
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < end
            try:
                urllib.request.urlopen(f"{address}/openapi.json", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=30)[0]
        assert "Application shutdown complete." in output
        assert "Traceback" not in output
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def post(address, body):
    """Status and answer of a request."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/predict", content, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_server_answers_as_the_pipeline_does(server, pipeline, texts, open_texts):
    queries = [*texts, *open_texts, "größer, 左 \U0001f600"]
    status, answers = post(server, {"texts": queries})
    assert status == 200
    assert [answer["text"] for answer in answers] == queries
    assert [answer["label"] for answer in answers] == pipeline.predict(queries).tolist()
    assert "-1" in {answer["label"] for answer in answers}
    scores = [answer["score"] for answer in answers]
    np.testing.assert_allclose(scores, pipeline.score_samples(queries), atol=1e-5)


def test_the_request_that_the_page_shows_is_answered_as_it_says(server):
    (body,) = re.findall(r"-d '(.*?)'", PAGE)
    status, answers = post(server, body.encode())
    assert status == 200
    (shown,) = re.findall(r"^   (\[\{.*\}\])$", PAGE, re.M)
    assert [set(answer) for answer in answers] == [set(answer) for answer in json.loads(shown)]
    assert [answer["text"] for answer in answers] == [answer["text"] for answer in json.loads(shown)]


REFUSED = {
    "no JSON": b"{",
    "no UTF-8": b'{"texts": ["\xff"]}',
    "no texts": {"texts": []},
    "no field": {},
    "one text": {"texts": "wake me"},
    "a number": {"texts": [1]},
    "a null": {"texts": ["wake me", None]},
    "an empty text": {"texts": [""]},
    "a long text": {"texts": ["x" * 2001]},
    "many texts": {"texts": ["x"] * 257},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_list_of_texts_is_refused_and_the_server_goes_on(server, case):
    status, answer = post(server, REFUSED[case])
    assert status in (400, 422)
    assert answer["detail"]
    assert post(server, {"texts": ["wake me at six"]})[0] == 200


def test_many_requests_at_a_time_are_answered_each_with_its_own(server, pipeline, texts):
    expected = dict(zip(texts, pipeline.predict(texts).tolist(), strict=True))
    asked = [texts[i % len(texts) : i % len(texts) + 1 + i % 5] for i in range(120)]
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda some: post(server, {"texts": some}), asked))
    for some, (status, answers) in zip(asked, found, strict=True):
        assert status == 200
        assert {answer["text"]: answer["label"] for answer in answers} == {text: expected[text] for text in some}


def test_a_server_without_a_model_does_not_start(tmp_path, fresh_environment):
    process = start(tmp_path / "nothing", free_port(), fresh_environment())
    output = process.communicate(timeout=90)[0]
    assert process.returncode != 0
    assert "There is no folder" in output


def test_the_page_shows_the_example_in_30_lines():
    lines = (ROOT / "examples/serve_fastapi.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 30
    assert "literalinclude:: ../../examples/serve_fastapi.py" in PAGE
