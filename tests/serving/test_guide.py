"""The guide's server: the command that the guide shows, answering real HTTP requests."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import serve_helpers
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, save

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/serving.rst").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=["saved", "exported"])
def server(request, tmp_path_factory, fresh_environment):
    """A server of a saved model, and one of an exported model, which can import neither torch nor the package."""
    (command,) = re.findall(r"^   \$ (.* uvicorn .*)$", PAGE.replace("\\\n", ""), re.M)
    given, _, words = command.partition("uvicorn ")
    variables = dict(word.split("=") for word in given.split())
    assert variables == {"OMP_NUM_THREADS": "1", "SKELLIPSOID_MODEL": "assistant"}
    folder = tmp_path_factory.mktemp("guide")
    environment = fresh_environment() | variables | {"SKELLIPSOID_MODEL": str(request.getfixturevalue(request.param))}
    if request.param == "exported":
        for name in ("torch", "sklearn", "transformers", "skellipsoid"):
            (folder / f"{name}.py").write_text(f"raise ImportError({name!r})")
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(serve_helpers.RUNTIME)])
    command = [sys.executable, "-m", "uvicorn", *words.split(), "--port", "0"]
    with serve_helpers.started(command, folder / "server.txt", env=environment, cwd=ROOT) as server:
        yield server
        server.end(signal.SIGINT)
        assert "Application shutdown complete." in server.output


def test_the_server_answers_as_the_pipeline_does(server, request, pipeline, texts, open_texts):
    queries = [*texts, *open_texts, "größer, 左 \U0001f600"]
    status, answers = server.post({"texts": queries})
    assert status == 200
    assert [answer["text"] for answer in answers] == queries
    scores = pipeline.score_samples(queries)
    is_saved = request.node.callspec.params["server"] == "saved"  # a graph rounds otherwise
    np.testing.assert_allclose([answer["score"] for answer in answers], scores, atol=1e-5 if is_saved else 1e-4)
    clear = is_saved | (np.abs(scores) > 1e-4)
    labels = np.array([answer["label"] for answer in answers])
    np.testing.assert_array_equal(labels[clear], pipeline.predict(queries)[clear])
    assert {"-1"} < {*labels}


def test_the_request_that_the_page_shows_is_answered_as_it_says(server):
    (body,) = re.findall(r"-d '(.*?)'", PAGE)
    status, answers = server.post(body.encode())
    assert status == 200
    (shown,) = re.findall(r"^   (\[\{.*\}\])$", PAGE, re.M)
    for answer, example in zip(answers, json.loads(shown), strict=True):
        assert example.keys() <= answer.keys()
        assert answer["text"] == example["text"]


def test_the_page_of_the_server_describes_the_request(server):
    described = server.get("/openapi.json")[1]["paths"]["/predict"]["post"]["requestBody"]["content"]
    kinds = described["application/json"]["schema"]["properties"]["texts"]["anyOf"]
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
