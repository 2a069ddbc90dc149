"""Promise: no server, no cache and no other process makes a wrong answer, and no key and no text goes elsewhere."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import joblib
import numpy as np
import pytest
from prompt_helpers import ANSWERS, KEY, LABELS, NEW, TRAIN, fitted, many
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skellipsoid
from skellipsoid_bench.language_models import PromptOpenSetClassifier

pytest.importorskip("openai")


@pytest.mark.slow
def test_what_a_killed_process_asked_is_asked_again(serve, tmp_path):
    server = serve()
    server.delay = 30
    cache = tmp_path / "answers.sqlite"
    script = (
        "from skellipsoid_bench.language_models import PromptOpenSetClassifier\n"
        f"clf = PromptOpenSetClassifier(base_url={server.url!r}, cache={str(cache)!r})\n"
        f"clf.fit({TRAIN!r}, {LABELS!r}).predict({NEW!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    answers = []
    try:
        while not server.requests:
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.02)
        server.delay = 0.0
        thread = threading.Thread(target=lambda: answers.extend(fitted(server, cache=cache).predict(NEW)))
        thread.start()
        time.sleep(0.5)
        assert len(server.requests) == 5  # four others are answered, and the first is awaited
        assert thread.is_alive()
    finally:
        process.kill()
        process.communicate()
    thread.join(20)
    assert answers == ANSWERS
    assert len(server.requests) == 6
    assert [path.name for path in tmp_path.iterdir()] == [cache.name]


def damage(path, rng):
    content = bytearray(path.read_bytes())
    place = int(rng.integers(len(content)))
    if rng.random() < 0.5:
        content[place] ^= 1 << int(rng.integers(8))
    else:
        content[place : place + 40] = rng.bytes(len(content[place : place + 40]))
    path.write_bytes(content)


def test_a_damaged_cache_never_answers_differently(serve, tmp_path):
    server = serve()
    cache, copy = tmp_path / "answers.sqlite", tmp_path / "copy.sqlite"
    texts, answers = many(40), ["light", "alarm"] * 20
    fitted(server, cache=cache).predict(texts)
    rng, n_again, n_refused = np.random.default_rng(0), 0, 0
    for _ in range(40):
        shutil.copy(cache, copy)
        damage(copy, rng)
        clf = fitted(server, cache=copy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                assert clf.predict(texts).tolist() == answers
            except OSError as error:
                assert re.match(r"The cache '.*' cannot be used \(.*\); pass the path", str(error))  # noqa: PT017
                n_refused += 1
            else:
                n_again += clf.last_call_["n_requests"] > 0
    assert n_again > 3, (n_again, n_refused)


def test_the_key_is_sent_and_kept_nowhere(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    server = serve(lambda text: f"my key is {KEY}" if "echo" in text else "alarm")
    cache = tmp_path / "answers.sqlite"
    clf = fitted(server, api_key_env="MY_KEY", cache=cache, constraint="none")
    clf.predict([*NEW, "echo"])
    assert set(server.authorizations) == {f"Bearer {KEY}"}
    assert clf.last_call_["no_label"] == ["my key is ***"]
    with pytest.raises(TypeError) as refused:  # so there is no model card
        skellipsoid.save(make_pipeline(clf), tmp_path / "model")
    with suppress(UnicodeDecodeError):  # scikit-learn reads a file of its own in the encoding of the locale
        assert KEY not in clf._repr_html_()
    shown = [repr(clf), str(clf.get_params()), str(vars(clf)), str(refused.value)]
    shown += [repr(clone(clf)), str(vars(clone(clf))), repr(make_pipeline(clf))]
    joblib.dump(clf, tmp_path / "model.joblib")
    stored = [pickle.dumps(clf), *(path.read_bytes() for path in tmp_path.iterdir())]
    assert not [text for text in shown if KEY in text]
    assert not [content for content in stored if KEY.encode() in content]
    told = {"error": {"message": f"Incorrect API key provided: {KEY}."}}
    server.before = lambda handler, body, number: handler.answer(401, told) or True
    with pytest.raises(PermissionError, match=r"Incorrect API key provided: \*\*\*; put a valid key") as caught:
        clf.predict(["something new"])
    assert KEY not in "".join(traceback.format_exception(caught.value))


def endless():
    found = {"password": "0123secret"}
    found["self"] = [found]
    return found


SECRET = r"in which a key or a password would be shown, pickled and saved .*put it into an environment variable"


@pytest.mark.parametrize(
    "params",
    [
        {"request_options": {"api_key": "0123secret"}},
        {"request_options": {"options": [{"Access-Token": "0123secret"}]}},
        {"request_options": {"extra_headers": {"api-key": "0123secret"}}},
        {"request_options": {"user": f"me, {KEY}"}},
        {"request_options": {KEY: 1}},
        {"request_options": endless()},
        {"request_options": {"note": "my 0123secret"}},  # the value of the variable
        {"model": KEY},
        {"base_url": f"http://127.0.0.1:9/{KEY}/v1"},
        {"base_url": "http://me:0123secret@host/v1"},
        {"api_key_env": KEY},
    ],
)
def test_a_secret_in_a_parameter_is_refused_and_not_stored(serve, tmp_path, monkeypatch, params):
    monkeypatch.setenv("MY_KEY", "0123secret")
    given = {"api_key_env": "MY_KEY", **params}
    clf = PromptOpenSetClassifier(**given)
    sentence = r"never the key\.$" if "api_key_env" in params else "holds a user name" if "@" in str(params) else SECRET
    before = fitted(serve(), api_key_env="MY_KEY").set_params(**given)
    for act in (
        lambda: clf.fit(TRAIN, LABELS),
        lambda: before.predict(NEW),
        lambda: pickle.dumps(clf),
        lambda: pickle.dumps(before),
        lambda: joblib.dump(before, tmp_path / "model.joblib"),
    ):
        with pytest.raises(ValueError, match=sentence) as caught:
            act()
        assert not re.search(f"0123secret|{re.escape(KEY)}", str(caught.value))
        assert str(caught.value).count(". ") == 0
    assert b"0123secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_what_the_environment_holds_is_not_sent(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: 0123secret\nAuthorization: Bearer 0123secret")
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "0123secret")
    server, seen = serve(), []
    server.before = lambda handler, body, number: seen.append(dict(handler.headers.items()))
    fitted(server).predict(["wake"])
    monkeypatch.setenv("MY_KEY", KEY)
    fitted(server, api_key_env="MY_KEY").predict(["wake"])
    assert "0123secret" not in str(seen)
    assert server.authorizations == ["Bearer none", f"Bearer {KEY}"]


@pytest.mark.parametrize("status", [302, 307])
def test_no_redirect_leaves_the_origin(serve, short_waits, monkeypatch, status):
    monkeypatch.setenv("MY_KEY", KEY)
    server, other = serve(), serve()
    to = {"Location": f"{other.url}/chat/completions?a=0123secret"}
    server.before = lambda handler, body, number: handler.answer(status, b"", to) or True
    said = r"sends requests on to another origin, 'http://127\.0\.0\.1:\d+'; pass that as base_url, if"
    with pytest.raises(ConnectionError, match=said) as caught:
        fitted(server, api_key_env="MY_KEY").predict(NEW)
    assert "0123secret" not in "".join(traceback.format_exception(caught.value))
    assert str(caught.value).count(". ") == 0
    assert len(server.requests) == 1  # it is not asked again
    assert not other.requests
    # Another name of the same machine is another origin.
    to["Location"] = server.url.replace("127.0.0.1", "localhost")
    with pytest.raises(ConnectionError, match="another origin, 'http://localhost"):
        fitted(server).predict(NEW)


def stream(handler, content, status=200, headers=()):
    """Answer in chunks, without a length."""
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", "Transfer-Encoding": "chunked", **dict(headers)}.items():
        handler.send_header(name, value)
    handler.end_headers()
    try:
        for start in range(0, len(content), 1 << 16):
            part = content[start : start + (1 << 16)]
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\n\r\n")
    except OSError:
        handler.close_connection = True  # the client had enough
    return True


def chat(content, **usage):
    return json.dumps({"choices": [{"message": {"content": content}}], "usage": usage}).encode()


@pytest.mark.parametrize(("status", "chunked"), [(200, True), (500, False)])
def test_a_huge_answer_is_not_read(serve, short_waits, status, chunked):
    server = serve()
    huge = chat("alarm" * 10_000_000)

    def answer(handler, body, number):
        if chunked:
            return stream(handler, huge, status)
        with suppress(OSError):
            handler.answer(status, huge)
        return True

    server.before = answer
    clf = fitted(server)
    tracemalloc.start()
    try:
        with pytest.raises(ConnectionError, match=r"an answer of more than 4 MiB; check base_url, and that") as caught:
            clf.predict(NEW)
        # The server is in this process, and holds nothing new.
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()
    assert str(caught.value).count(". ") == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (chat("alarm", prompt_tokens=10**400), ConnectionError, r"usage that counts 1000000\S* tokens"),
        (chat("alarm", prompt_tokens=-1), ConnectionError, r"usage that counts -1 tokens"),
        (b"\xff\xfe", ConnectionError, r"an answer that is not of OpenAI's protocol"),
        (chat("alarm", prompt_tokens=float("nan")), ConnectionError, r"usage that counts nan tokens"),
        (b"[" * 300_000, ConnectionError, r"an answer that is not of OpenAI's protocol"),
        (b'{"choices": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}", ConnectionError, r"not of OpenAI's protocol"),
        (chat("half \ud83d"), ValueError, r"X\[0\]: an answer with half of a character \(a lone surrogate\); leave"),
    ],
)
@pytest.mark.parametrize("on_disk", [True, False])
def test_an_answer_that_cannot_be_kept(serve, short_waits, tmp_path, content, kind, message, on_disk):
    server = serve()
    cache = tmp_path / "answers.sqlite" if on_disk else None
    server.before = lambda handler, body, number: handler.answer(200, content) or True
    clf = fitted(server, cache=cache)
    with pytest.raises(kind, match=message) as caught:
        clf.predict(NEW)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert len(server.requests) == 1
    server.before = None
    assert clf.predict(NEW).tolist() == ANSWERS


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-é", "two words", None])
def test_a_variable_that_holds_no_key_is_not_repeated(serve, monkeypatch, key):
    monkeypatch.delenv("MY_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("MY_KEY", os.fsdecode(key.encode()))  # letters that the locale may not have
    server, what = serve(), "is not set; put the key into it" if key is None else "holds blanks, line breaks or"
    with pytest.raises(PermissionError, match=f"the environment variable MY_KEY {what}") as caught:
        fitted(server, api_key_env="MY_KEY").predict(NEW)
    assert not server.requests
    assert key is None or key.split()[-1] not in str(caught.value)


def test_another_process_is_not_awaited_for_ever(serve, tmp_path, short_waits):
    server = serve()
    cache = tmp_path / "answers.sqlite"
    clf, other = (fitted(server, cache=cache, timeout=timeout, max_retries=1) for timeout in (0.1, 60))
    asked, ends = threading.Event(), threading.Event()
    server.before = lambda handler, body, number: asked.set() or not ends.wait(60)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(other.predict, ["wake"])
        assert asked.wait(60)
        with pytest.raises(OSError, match=r"another process that uses this cache .*; wait for it, or end it"):
            clf.predict(["wake"])
        ends.set()
        assert answer.result().tolist() == ["alarm"]
    assert clf.predict(["wake"]).tolist() == ["alarm"]
    assert len(server.requests) == 1
