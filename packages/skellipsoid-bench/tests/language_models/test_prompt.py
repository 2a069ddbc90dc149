"""Promise: a language model behind a server answers with a known label or open, and no failure loses an answer."""

import pickle
import socket
import sqlite3
import sys
import time
import warnings

import numpy as np
import pytest
from container_helpers import KINDS
from prompt_helpers import ANSWERS, LABELS, NEW, TRAIN, fitted, many
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from skellipsoid_bench.language_models import PromptOpenSetClassifier

pytest.importorskip("openai")


def test_it_answers_with_a_class_or_with_open(serve):
    server = serve()
    clf = fitted(server)
    assert clf.classes_.tolist() == ["alarm", "light"]
    assert not server.requests  # a fit asks nothing
    assert clf.predict(NEW).tolist() == ANSWERS
    assert clf.last_call_ == {
        "n_texts": 5,
        "n_empty": 0,
        "n_requests": 5,
        "n_from_cache": 0,
        "n_retries": 0,
        "n_no_label": 0,
        "no_label": [],
        "prompt_tokens": 5 * 20,
        "completion_tokens": 15,
        "cached_tokens": 35,
        "constraint": "json_schema",
    }
    assert clf.score(NEW, ["alarm", "light", "weather", "light", "light"]) == 0.8
    assert clf.score(NEW, ANSWERS) == 1


def test_few_shot_shows_the_nearest_training_texts_nearest_last(serve):
    server = serve()
    encoder = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3))
    clf = fitted(server, n_examples=2, encoder=encoder, constraint="none")
    assert not hasattr(encoder, "vocabulary_")  # it is cloned
    assert clf.predict(["dim the lamps", "tell me a joke"]).tolist() == ["light", "-1"]
    first, second = sorted((body["messages"] for body in server.requests), key=lambda found: found[-1]["content"])
    assert [message["role"] for message in first] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert first[-3]["content"] == "Message: dim the lamp"
    assert first[-2]["content"] == "light"
    # A real open text is shown as open.
    shown = [message["content"] for message in second[-3:]]
    assert shown == ["Message: tell a joke", "none of these", "Message: tell me a joke"]
    assert len(first[1:-1]) == 2 * 2
    fitted(server, n_examples=99, encoder=encoder).predict(["x lamp"])
    assert len(server.requests[-1]["messages"]) == 2 + 2 * 5
    assert server.requests[-1]["messages"][2]["content"].startswith('{"label": ')


@pytest.mark.parametrize(
    ("knows", "constraint"), [(("json_schema", "grammar"), "json_schema"), (("grammar",), "grammar"), ((), "none")]
)
def test_auto_takes_the_strictest_format_that_the_server_knows(serve, short_waits, knows, constraint):
    server = serve(knows=knows)
    clf = fitted(server, max_retries=9)
    assert clf.predict(NEW).tolist() == ANSWERS
    assert clf.last_call_["constraint"] == constraint
    # The formats that it does not know are tried once for all texts.
    n_refused = {"json_schema": 0, "grammar": 2, "none": 3}[constraint]  # an error of 500 may pass, so it is met twice
    assert len(server.requests) == len(NEW) + n_refused
    assert clf.last_call_["n_requests"] == len(NEW)


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("  Alarm.\n", "alarm"),
        ("The class is: alarm", "alarm"),
        ("alarm\nbecause of the word", "alarm"),
        ('{"label": "alarm"}', "alarm"),
        ('```json\n{"label": "alarm"}\n```', "alarm"),
        ("<think>a lamp? no</think>\nalarm", "alarm"),
        ("card_arrival", "card arrival"),
        ("NONE OF THESE", "-1"),
        ("I think it is alarm or light", None),
        ("", None),
        (None, None),
        ('{"other": "alarm"}', None),
        ("[" * 100_000, None),
    ],
)
def test_what_an_answer_means(serve, said, label):
    server = serve(lambda text: said)
    clf = PromptOpenSetClassifier(base_url=server.url, constraint="none")
    clf.fit(["a", "b", "c"], ["alarm", "light", "card arrival"])
    answers = clf.predict(["x", "y", "x"])
    assert answers.tolist() == [label or "-1"] * 3
    assert clf.last_call_["n_no_label"] == (3 if label is None else 0)
    assert clf.last_call_["no_label"] == ([] if label else [(said or "")[:200]])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["alarm", " \u200b"], r"cannot say the label ' \S*', which has no visible letter"),
        (["alarm", "two\nlines"], r"cannot say the label 'two\\nlines', which holds a line break"),
        (["alarm", "a\x07"], r"holds a line break, a control character"),
        (["alarm", "half \ud83d"], r"half of a character"),
        (["alarm", "None of These"], r"is what the language model is told to answer for open; pass another open_word"),
        (["big  lamp", "big lamp"], r"look the same to a language model; rename one"),
    ],
)
def test_a_label_that_cannot_be_said(serve, labels, message):
    server = serve()
    clf = fitted(server)
    with pytest.raises(ValueError, match=message) as caught:
        clf.fit(["x", "y"], labels)
    assert str(caught.value).count(". ") == 0
    assert clf.predict(NEW).tolist() == ANSWERS  # the fit before is still there


def test_empty_texts_are_open_and_are_not_sent(serve):
    server = serve()
    clf = fitted(server)
    with pytest.warns(UserWarning, match=r"^X has empty texts in rows 1, 3, which are answered open without a request"):
        answers = clf.predict(["wake me", "", "dim the lamp", " \u200b\n"])
    assert answers.tolist() == ["alarm", "-1", "light", "-1"]
    assert clf.last_call_["n_empty"] == 2
    assert len(server.requests) == 2
    with pytest.warns(UserWarning, match=r"row 0"):
        assert clf.predict([""]).tolist() == ["-1"]
    assert clf.last_call_["constraint"] is None
    with pytest.warns(UserWarning, match=r"^X has empty texts in row 1, which cannot be examples"):
        fitted(server, n_examples=1, encoder=TfidfVectorizer()).fit(["a lamp", " "], ["light", "light"])


def test_errors_that_pass_are_retried(serve, short_waits):
    server = serve()
    failures = {2: (429, {"Retry-After": "0"}), 3: (500, {}), 5: (503, {})}

    def fail(handler, body, number):
        if number in failures:
            status, headers = failures[number]
            handler.answer(status, {"error": {"message": "busy"}}, headers)
        return number in failures

    server.before = fail
    clf = fitted(server, n_concurrent=1)
    assert clf.predict(NEW).tolist() == ANSWERS
    assert clf.last_call_["n_retries"] == 3
    assert len(server.requests) == len(NEW) + 3


def test_retries_end(serve, short_waits):
    server = serve()
    server.before = lambda handler, body, number: handler.answer(429, {"error": {"message": "busy"}}) or True
    said = r"^The language model did not answer: HTTP 429: busy; try again later; fewer requests at once"
    with pytest.raises(ConnectionError, match=said):
        fitted(server).predict(NEW)
    assert len(server.requests) == 3  # max_retries=2
    with pytest.raises(ConnectionError):
        fitted(server, max_retries=0).predict(NEW)
    assert len(server.requests) == 4


def test_a_wrong_address(serve, monkeypatch):
    server = serve()
    with pytest.raises(ValueError, match=r"HTTP 404: Not Found; check base_url, which often ends in /v1"):
        fitted(server, base_url=server.url.removesuffix("/v1")).predict(NEW)
    server.before = lambda handler, body, number: handler.answer(200, b"<html>Welcome</html>") or True
    with pytest.raises(ConnectionError, match=r"an answer that is not of OpenAI's protocol.*check base_url"):
        fitted(server).predict(NEW)
    tried, connect = [], socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda *a, **more: (tried.append(a), connect(*a, **more))[1])
    closed = serve()
    closed.http.server_close()
    with pytest.raises(ConnectionError, match=r"^The language model did not answer: no connection: .*check base_url"):
        fitted(closed, max_retries=9).predict(NEW)
    with pytest.raises(ConnectionError, match="no connection"):
        fitted(server, base_url="http://no-such-host.invalid/v1", max_retries=9).predict(NEW)
    assert len(tried) == 2  # an address that never answered is not tried again


def test_a_slow_answer(serve, short_waits):
    server = serve()
    server.before = lambda handler, body, number: number == 1 and time.sleep(0.6)
    assert fitted(server, timeout=0.3).predict(["wake"]).tolist() == ["alarm"]
    server.delay = 0.6
    with pytest.raises(ConnectionError, match=r"no answer within timeout=0.3 seconds; .*or pass a larger timeout"):
        fitted(server, timeout=0.3).predict(NEW)


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_server_that_dies_half_way_loses_nothing(serve, short_waits, tmp_path, on_disk):
    server = serve()
    cache = tmp_path / "answers.sqlite" if on_disk else None

    def die(handler, body, number):
        if number > 6:
            handler.hang_up()
        return number > 6

    server.before = die
    texts = many(20)
    clf = fitted(server, cache=cache)
    where = r"in the cache '.*answers\.sqlite'" if on_disk else "in memory"
    with pytest.raises(ConnectionError, match=rf"no connection: .* 6 of 20 answers are kept {where}, and the same"):
        clf.predict(texts)
    assert not hasattr(clf, "last_call_")
    server.before, n_before = None, len(server.requests)
    if on_disk:
        clf = fitted(server, cache=cache)
    for n_from_cache in (6, 20):
        assert clf.predict(texts).tolist() == ["light", "alarm"] * 10
        assert (clf.last_call_["n_from_cache"], clf.last_call_["n_requests"]) == (n_from_cache, 20 - n_from_cache)
        assert len(server.requests) - n_before == 14


def test_a_file_of_something_else_and_a_missing_folder_are_no_cache(serve, tmp_path):
    damaged, other = tmp_path / "damaged.sqlite", tmp_path / "other.db"
    damaged.write_bytes(b"SQLite format 3\x00 damaged" * 50)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE answers (x)")
    connection.close()
    for path, message in ((damaged, "; pass the path of a file that"), (other, "it belongs to another program")):
        before = path.read_bytes()
        with pytest.raises(OSError, match=rf"^The cache '.*' cannot be used \(.*{message}"):
            fitted(serve(), cache=path).predict(NEW)
        assert path.read_bytes() == before
    with pytest.raises(OSError, match="unable to open database file"):
        fitted(serve(), cache=tmp_path / "no" / "folder.db").predict(NEW)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"base_url": "localhost:8000"}, r"base_url='localhost:8000' is no address of a server; it begins with http"),
        ({"base_url": "http://host/v1?key=secret"}, r"base_url holds a user name, a password or a query"),
        ({"request_options": {"messages": []}}, r"request_options holds 'messages', which the classifier sets itself"),
        ({"request_options": {"stop": "half \ud83d"}}, r"request_options, model or instruction holds half of a char"),
        ({"request_options": {"seed": {1}}}, r"request_options cannot be sent as JSON \(.*set.*\); use numbers"),
        ({"n_concurrent": 0}, "n_concurrent"),
        ({"open_word": " "}, r"cannot say open_word ' '"),
        ({"api_key_env": " OPENAI_API_KEY"}, r"never the key\.$"),
        ({"api_key_env": ""}, r"never the key\.$"),
    ],
)
def test_parameters_that_cannot_be_used(serve, params, message):
    with pytest.raises(ValueError, match=message) as caught:
        fitted(serve(), **params)
    assert "secret" not in str(caught.value)


def test_input_that_cannot_be_used():
    for X, y, message in (
        ([], [], "X is empty"),
        ("one text", ["a"], r"pass \[text\]"),
        (["a", "b"], None, "requires y to be passed"),
        (["a", "b"], ["x", 1], "mixes strings"),
        (["a", "b"], ["-1", "-1"], "All 2 texts have the open label '-1'"),
    ):
        with pytest.raises(ValueError, match=message):
            PromptOpenSetClassifier(base_url="http://nobody").fit(X, y)


def test_pickle_and_clone(serve):
    server = serve()
    clf = fitted(server, n_examples=1, encoder=TfidfVectorizer())
    clf.predict(NEW)
    again = pickle.loads(pickle.dumps(clf))
    assert again.predict(NEW).tolist() == ANSWERS
    assert again.last_call_["n_requests"] == 5  # answers in memory are not part of a pickle
    assert not hasattr(clone(clf), "classes_")
    assert clone(clf).get_params()["base_url"] == server.url


def test_the_package_is_asked_for_when_it_is_missing(serve, monkeypatch):
    clf = fitted(serve())
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ImportError, match=r"pip install 'skellipsoid-bench\[llm\]'"):
        clf.predict(NEW)


def test_predict_before_fit_and_bad_texts(serve):
    server = serve()
    with pytest.raises(NotFittedError):
        PromptOpenSetClassifier().predict(["a"])
    clf = fitted(server)
    for X, message in (([5], r"X\[0\] is 5"), ([], "is empty")):
        with pytest.raises(ValueError, match=message):
            clf.predict(X)
    with pytest.raises(ValueError, match="y holds numbers"):
        clf.score(NEW, [1, 2, 3, 4, 5])
    assert not server.requests


@pytest.mark.parametrize("kind", KINDS[::9], ids=str)
def test_texts_and_labels_of_every_container(serve, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)  # a column as labels
        clf = PromptOpenSetClassifier(base_url=serve().url).fit(kind.texts(TRAIN), kind.labels(np.array(LABELS)))
    assert clf.classes_.tolist() == ["alarm", "light"]
    assert clf.predict(kind.texts(NEW)).tolist() == ANSWERS
    weights = np.array([1.0, 1.0, 1.0, 1.0, 6.0])
    truth = kind.labels(np.array([*ANSWERS[:4], "alarm"]))
    assert clf.score(kind.texts(NEW), truth, sample_weight=kind.numbers(weights)) == 0.4
