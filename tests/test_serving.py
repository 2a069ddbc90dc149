"""The guide's server: the command that the guide shows, answering real HTTP requests."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, export_onnx, save

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guide/serving.rst").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pipeline(tiny_model, texts, labels):
    encoder = SupConTextEncoder(tiny_model, finetune="head", max_iter=4, temperature=0.3, random_state=0)
    return Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(texts, labels)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def shown_command():
    """The words of the page's command, and the variables that it sets."""
    (command,) = re.findall(r"^   \$ (.* uvicorn .*)$", PAGE.replace("\\\n", ""), re.M)
    words = command.split()
    program = words.index("uvicorn")
    return dict(word.split("=") for word in words[:program]), words[program:]


def start(folder, port, environment):
    variables, words = shown_command()
    assert variables == {"OMP_NUM_THREADS": "1", "SKELLIPSOID_MODEL": "assistant"}
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
    """Address of a server of a saved model."""
    folder = tmp_path_factory.mktemp("serving") / "model"
    save(pipeline, folder)
    with running(folder, fresh_environment()) as address:
        yield address


@pytest.fixture(scope="module")
def light_server(pipeline, tmp_path_factory, fresh_environment, one_registry):
    """Address of a server of an exported model, which can import neither torch nor the package."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("exported")
    export_onnx(pipeline, folder / "model")
    for name in ("torch", "sklearn", "transformers", "skellipsoid"):
        (folder / f"{name}.py").write_text(f"raise ImportError({name!r})")
    paths = os.pathsep.join([str(folder), str(ROOT / "packages" / "skellipsoid-runtime")])
    with running(folder / "model", {**fresh_environment(), "PYTHONPATH": paths}) as address:
        yield address


@contextmanager
def running(folder, environment):
    """Start a server and give its address; when it is told to end, it ends in peace."""
    port = free_port()
    process = start(folder, port, environment)
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


def get(address):
    with urllib.request.urlopen(address, timeout=30) as response:
        return json.load(response)


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


def test_an_exported_model_gives_the_same_answers_without_torch(light_server, pipeline, texts, open_texts):
    queries = [*texts, *open_texts, "größer, 左 \U0001f600"]
    status, answers = post(light_server, {"texts": queries})
    assert status == 200
    scores = pipeline.score_samples(queries)
    np.testing.assert_allclose([answer["score"] for answer in answers], scores, atol=1e-4)
    clear = np.abs(scores) > 1e-4
    labels = np.array([answer["label"] for answer in answers])
    np.testing.assert_array_equal(labels[clear], pipeline.predict(queries)[clear])
    assert {"-1"} < {*labels}


def test_the_container_holds_the_runtime_and_the_model_alone_and_has_no_rights():
    lines = (ROOT / "examples/Containerfile").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    copied = [line[1] for line in words if line[0] == "COPY" and not line[1].startswith("--")]
    assert copied == ["packages/skellipsoid-runtime", "${MODEL}"]
    assert (ROOT / copied[0]).exists()
    (user,) = [line[1] for line in words if line[0] == "USER"]
    assert user.split(":")[0] not in ("0", "root")


def test_the_request_that_the_page_shows_is_answered_as_it_says(server):
    (body,) = re.findall(r"-d '(.*?)'", PAGE)
    status, answers = post(server, body.encode())
    assert status == 200
    (shown,) = re.findall(r"^   (\[\{.*\}\])$", PAGE, re.M)
    for answer, example in zip(answers, json.loads(shown), strict=True):
        assert example.keys() <= answer.keys()
    assert [answer["text"] for answer in answers] == [answer["text"] for answer in json.loads(shown)]


def test_the_page_of_the_server_describes_the_request(server):
    with urllib.request.urlopen(f"{server}/openapi.json", timeout=5) as response:
        described = json.load(response)["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    kinds = described["schema"]["properties"]["texts"]["anyOf"]
    assert [kind.get("maxItems") for kind in kinds] == [256, None]  # or null


#: Loads a model, forks, and answers in the new process, which has none of torch's threads.
FORKING = """
import os, sys, time
os.environ["OMP_NUM_THREADS"] = "2"
import skellipsoid
model = skellipsoid.load(sys.argv[1])
child = os.fork()
if child == 0:
    print(len(model.predict(["wake me at six please"] * 64)), flush=True)
    os._exit(0)
for _ in range(300):
    found, status = os.waitpid(child, os.WNOHANG)
    if found:
        sys.exit(status)
    time.sleep(0.1)
os.kill(child, 9)
sys.exit("the process that was forked hangs")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_is_forked_after_load_answers(minilm, texts, labels, tmp_path, fresh_python):
    encoder = SupConTextEncoder(minilm, finetune="none")
    pipeline = Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(texts, labels)
    save(pipeline, tmp_path / "model")
    answer = fresh_python(FORKING, tmp_path / "model")
    assert (answer.returncode, answer.stdout) == (0, "64\n"), answer.stderr
