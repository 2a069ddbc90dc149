"""Requests that arrive together are computed together, and each gets its own answers."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from machines import COMBINED

from skellipsoid_runtime import OnnxPipeline
from skellipsoid_runtime.serve._batcher import Batcher, QueueFullError


class Lengths:
    """Answers the length of each text, and keeps the sizes of the batches; fails for a text ``bad``."""

    def __init__(self):
        self.sizes = []
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self, texts):
        self.may_go.wait(10)
        self.sizes.append(len(texts))
        if "bad" in texts:
            raise ValueError("a bad text")
        return [{"length": len(text)} for text in texts]


def batcher_of(answer, **options):
    return Batcher(
        answer, **{"wait": 0.05, "most_texts": 8, "most_waiting": 100, "most_open": 50, "n_threads": 1, **options}
    )


def outcomes(found):
    """How requests ended: ``"answered"``, ``"full"`` where too much waited, or the name of another error."""
    names = {list: "answered", QueueFullError: "full"}
    return [names.get(type(each), type(each).__name__) for each in found]


def run(answer, requests, **options):
    """Answers or errors of requests that arrive at the same time."""

    async def main():
        batcher = batcher_of(answer, **options)
        found = await asyncio.gather(*map(batcher.ask, requests), return_exceptions=True)
        batcher.close()
        return found

    return asyncio.run(main())


def test_a_full_batch_does_not_wait_and_a_large_request_is_a_batch_of_its_own():
    answer = Lengths()
    found = run(answer, [["x"] * 3, ["x"] * 5, ["x"] * 20, ["x"]], wait=0.5)
    assert answer.sizes == [8, 20, 1]
    assert [len(answers) for answers in found] == [3, 5, 20, 1]


def test_a_request_that_fails_harms_no_other_of_its_batch():
    answer = Lengths()
    found = run(answer, [["a"], ["bad"], ["ccc", "dd"]])
    assert answer.sizes[0] == 4
    assert found[0] == [{"length": 1}]
    assert found[2] == [{"length": 3}, {"length": 2}]
    assert isinstance(found[1], ValueError)


def test_many_requests_of_many_texts_are_answered_each_with_its_own(serve, exported, texts, open_texts):
    queries = [*texts, *open_texts]
    expected = dict(zip(queries, OnnxPipeline(exported).predict(queries).tolist(), strict=True))
    asked = [queries[i % 30 : i % 30 + 1 + i % 7] for i in range(60)]
    with serve(exported) as server, ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda some: server.post({"texts": some}), asked))
        n_texts = sum(map(len, asked))
        n_open = sum(expected[text] == "-1" for some in asked for text in some)
        assert server.counter("texts_total") == n_texts
        assert server.counter("open_texts_total") == n_open
        assert server.counter("p_value_count") == n_texts
        assert server.counter('requests_total{status="200"}') == len(asked)
        assert server.counter("request_seconds_count") == len(asked)
    for some, (status, answers) in zip(asked, found, strict=True):
        assert status == 200
        assert [answer["label"] for answer in answers] == [expected[text] for text in some]


@pytest.mark.parametrize("machine", COMBINED[:2], indirect=True)
def test_a_server_answers_as_its_model_on_every_machine(machine, serve, exported):
    """Of one core or many, with any locale, without a home to write into."""
    given = ["wake me at six", "ünïcödé 左", "1,5", "tell a joke"]
    expected = OnnxPipeline(exported).answers(given)
    with serve(exported) as server:
        status, answers = server.post({"texts": given})
        assert status == 200
        assert [answer["label"] for answer in answers] == expected["label"].tolist()
        assert [answer["score"] for answer in answers] == pytest.approx(expected["score"].tolist(), abs=1e-5)
        assert server.get("/ready")[0] == 200
        assert "telemetry" not in server.output


class Clients:
    """Requests of several clients at a batcher whose only thread is held; keeps the order of the answers."""

    def __init__(self, **options):
        self.answer, self.order = Lengths(), []
        self.answer.may_go.clear()
        self.batcher = batcher_of(self.answer, wait=0, **options)

    async def ask(self, client, *requests):
        asked = [asyncio.create_task(self.one(client, texts)) for texts in requests]
        await asyncio.sleep(0.02)
        return asked

    async def one(self, client, texts):
        found = await self.batcher.ask(texts, client)
        self.order.append(client)
        return found

    async def finish(self, *tasks):
        self.answer.may_go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert self.batcher.n_waiting == 0
        assert not self.batcher._queues
        assert not self.batcher._open
        self.batcher.close()
        return found


def test_clients_are_served_in_turn():
    async def main():
        clients = Clients(most_texts=1)
        many = await clients.ask("many", *[["x"]] * 8)
        few = await clients.ask("few", ["x"], ["x"])
        await clients.finish(*many, *few)
        return clients.order

    assert asyncio.run(main()) == ["many", "many", "few", "many", "few", *["many"] * 5]


def test_a_client_with_few_texts_takes_the_place_of_one_with_many():
    async def main():
        clients = Clients(most_texts=4, most_waiting=20)
        many = await clients.ask("many", *[["x"] * 4] * 9)
        few = await clients.ask("few", ["x"], ["x"])
        greedy = await clients.ask("greedy", ["x"] * 30)
        last = await clients.ask("few", ["x"])
        found = await clients.finish(*many, *few, *greedy, *last)
        return outcomes(found)

    # Of the first nine one is computed, five wait, and three are refused; then the last that waits gives way, and in
    # the end the request that filled the queue above its size.
    expected = [*["answered"] * 5, *["full"] * 4, "answered", "answered", "full", "answered"]
    assert asyncio.run(main()) == expected


def test_so_many_requests_may_be_open_and_no_more():
    async def main():
        clients = Clients(most_texts=4, most_open=6)
        many = await clients.ask("many", *[["x"]] * 8)
        few = await clients.ask("few", ["x"])
        return outcomes(await clients.finish(*many, *few))

    assert asyncio.run(main()) == ["answered"] * 5 + ["full"] * 3 + ["answered"]


def test_a_timer_of_a_loop_that_has_ended_holds_nobody():
    answer = Lengths()
    batcher = batcher_of(answer, wait=0.3, most_texts=2)

    async def together():
        return await asyncio.gather(batcher.ask(["a"]), batcher.ask(["b"]))

    async def alone():
        return await asyncio.wait_for(batcher.ask(["c"]), 5)

    asyncio.run(together())  # full before its time, so that the timer has not run
    assert asyncio.run(alone()) == [{"length": 1}]
    batcher.close()
