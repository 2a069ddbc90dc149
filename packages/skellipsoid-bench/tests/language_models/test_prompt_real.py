"""Promise: all of it works with a real language model behind a real server, where both are installed."""

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from skellipsoid_bench.language_models import PromptOpenSetClassifier

pytest.importorskip("openai")
#: Not imported here: llama_cpp opens files that it does not close.
MISSING = [name for name in ("llama_cpp", "sse_starlette") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"llama-cpp-python[server] is not installed ({MISSING})"),
]

TRAIN = ["wake me at six", "alarm for noon", "dim the lamp", "lights off"]
LABELS = ["alarm", "alarm", "light", "light"]
NEW = ["set an alarm for seven", "😀"]


@pytest.fixture(scope="module")
def server(smollm):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(smollm), "--n_ctx", "512", "--n_threads", "1"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--n_threads_batch", "1", "--verbose", "False"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                    break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "the server of llama-cpp-python did not start"
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", process
    finally:
        process.kill()
        process.wait()


def fitted(server, **params):
    return PromptOpenSetClassifier(base_url=server[0], timeout=300, **params).fit(TRAIN, LABELS)


def test_every_answer_is_a_label(server):
    clf = fitted(server)
    answers = clf.predict(NEW)
    assert {*answers} <= {"alarm", "light", "-1"}
    assert clf.last_call_["n_no_label"] == 0
    # This server refuses a schema, and knows grammars.
    assert clf.last_call_["constraint"] == "grammar"
    assert clf.last_call_["prompt_tokens"] > 2 * 50
    assert 2 <= clf.last_call_["completion_tokens"] <= 2 * 8


def test_a_text_that_is_too_long_is_one_sentence_and_loses_nothing(server, tmp_path):
    clf = fitted(server, constraint="grammar", max_retries=0, n_concurrent=1, cache=tmp_path / "answers.sqlite")
    with pytest.raises((ValueError, ConnectionError), match=r"HTTP (400|500): .*; 1 of 2 answers are kept|are kept"):
        clf.predict(["wake me", "lamp " * 600])
    assert clf.predict(["wake me"]).shape == (1,)
    assert clf.last_call_["n_from_cache"] == 1
