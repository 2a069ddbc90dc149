"""What is too much, or is no request, is refused; the server goes on."""

import asyncio
import json
import random
import re
import socket
import time
from contextlib import ExitStack, closing

import pytest
import serve_helpers
from hostile_clients import HEAD, connect
from serve_helpers import JSON, ask

from skellipsoid_runtime._machine import count_cores
from skellipsoid_runtime.serve import Settings
from skellipsoid_runtime.serve._limits import Bodies, _Body


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"texts": ["x" * 51] * 4}, "more than 200 characters"),
        ({"texts": ["x"] * 9}, "at most 8 items"),
        ({"text": "x" * 61}, "at most 60 characters"),
        ({"text": "x", "y": "y" * 1000}, "more than 1000 bytes"),
    ],
)
def test_what_is_too_long_gets_413(small, body, detail):
    status, answer = small.post(body)
    assert status == 413
    assert detail in json.dumps(answer)
    assert "xxx" not in json.dumps(answer)


@pytest.fixture(scope="module")
def small(exported, tmp_path_factory, fresh_environment):
    """A server with low limits."""
    limits = {"max_characters": 200, "max_texts": 8, "max_text": 60, "max_body": 1000, "max_queue": 8}
    folder = tmp_path_factory.mktemp("small")
    with serve_helpers.running(exported, folder, fresh_environment(), wait_ms=100, n_threads=1, **limits) as server:
        yield server


def test_the_retry_is_told_in_seconds(exported, texts, serve):
    with serve(exported, wait_ms=1000, max_queue=5) as server, ExitStack() as stack:
        first, second = (stack.enter_context(closing(server.connect())) for _ in range(2))
        for connection in (first, second):
            connection.request("POST", "/predict", json.dumps({"texts": texts[:5]}), JSON)
            time.sleep(0.2)
        response = second.getresponse()
        assert (response.status, response.headers["retry-after"]) == (429, "1")
        response.read()
        with first.getresponse() as response:
            assert response.status == 200


def damaged(rng, content):
    """Change up to eight bytes."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def malformed(rng, n_bodies):
    """Bodies that are damaged at random, of the kinds that clients send."""
    good = json.dumps({"texts": ["wake me at six", "größer \U0001f600", "x" * 50]}).encode()
    values = ["null", "1e999", "NaN", "-1", "true", '"\\ud800"', "[]", "{}", '"x"', "[[", '"\\u0000"', "9" * 400, '""']
    for number in range(n_bodies):
        kind = number % 5
        if kind == 0:  # bytes changed
            yield damaged(rng, good)
        elif kind == 1:  # cut off
            yield good[: rng.randrange(len(good))]
        elif kind == 2:  # noise
            yield rng.randbytes(rng.randint(0, 300))
        elif kind == 3:  # values of other types
            texts = ", ".join(rng.choices(values, k=rng.randint(0, 4)))
            yield f'{{"{rng.choice(["texts", "text", "x"])}": [{texts}]}}'.encode()
        else:  # deep
            yield b'{"texts": ' + rng.choice([b"[", b'{"a":', b"[["]) * rng.randint(1, 20_000)


def test_malformed_bodies_end_nothing(serve, exported, texts):
    with serve(exported, wait_ms=0) as server:
        statuses = []
        with closing(server.connect()) as connection:  # one connection: none of them closes it
            for body in malformed(random.Random(0), 400):
                status, answer = ask(connection, "POST", "/predict", body)
                statuses.append(status)
                assert len(json.dumps(answer)) < 2000
            assert ask(connection, "POST", "/predict", {"text": texts[0]})[0] == 200
        # A changed byte of a text, and a text that is a zero byte, are texts all the same.
        assert {*statuses} <= {200, 400, 413, 422}
        assert statuses.count(422) > 320
        assert server.counter('requests_total{status="500"}') is None


def test_damaged_requests_of_http_end_nothing(small, texts):
    rng = random.Random(0)
    good = HEAD + b'content-length: 15\r\n\r\n{"text": "wake"'
    for _ in range(100):
        with connect(small) as opened:
            opened.sendall(damaged(rng, good))
            opened.shutdown(socket.SHUT_WR)
            answer = opened.recv(12)
        assert re.fullmatch(rb"HTTP/1.1 (200|4\d\d)", answer) or answer == b""
    assert small.post({"text": texts[0]})[0] == 200


def test_the_quota_of_a_container_counts(tmp_path):
    quota = tmp_path / "cpu.max"
    every = count_cores(quota)
    assert every >= 1
    for written, expected in (("max 100000", every), ("100000 100000", 1), ("50000 100000", 1), ("0", every)):
        quota.write_text(f"{written}\n")
        assert count_cores(quota) == expected
    assert Settings().threads == count_cores()
    assert Settings(n_threads=3).threads == 3


def test_a_body_whose_time_is_over_may_be_the_one_that_has_to_make_room():
    """The loop has said so, and its task has not run yet."""
    bodies = Bodies(150_000)

    def body(client, seconds):
        return _Body(client, asyncio.timeout(seconds), bytearray(100_000))

    async def waits(old):
        async with old.deadline:
            bodies.grow(old)
            await asyncio.sleep(60)

    async def grows():
        old, new = body("old", 60), body("new", None)
        waiting = asyncio.create_task(waits(old))
        await asyncio.sleep(0)
        old.deadline.reschedule(0)
        asyncio.get_running_loop().call_soon(bodies.grow, new)  # in the same turn of the loop
        with pytest.raises(TimeoutError):
            await waiting
        assert (old.is_ended, new.is_ended) == (True, False)
        bodies.grow(new)

    failures = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda _, context: failures.append(context))
        runner.run(grows())
    assert not failures
