"""Requests that arrive together are computed together: a queue of the event loop, and threads that compute."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

Answer = dict[str, Any]


#: Seconds that a request waits after one that was alone: what arrives at the same moment still shares a batch.
_ALONE = 0.001


class QueueFullError(Exception):
    """More texts wait than may."""


class _Request(NamedTuple):
    texts: list[str]
    answers: "asyncio.Future[list[Answer]]"
    arrived: float


class Batcher:
    """Collects requests and gives them to a function in batches.

    A batch begins when a thread is free, and its first request has waited ``wait`` seconds or enough texts are there.
    So it grows while all threads compute. After a batch of a single request nobody is expected, and the wait is short.

    Parameters
    ----------
    answer : callable
        Takes texts, and gives an answer for each; several threads call it at a time.
    wait : float
        Seconds that a request waits for others.
    most_texts : int
        Texts of a batch.
    most_waiting : int
        Texts that may wait.
    n_threads : int
        Batches that are computed at a time.
    """

    def __init__(
        self,
        answer: Callable[[list[str]], list[Answer]],
        *,
        wait: float,
        most_texts: int,
        most_waiting: int,
        n_threads: int,
    ) -> None:
        self._answer = answer
        self._wait, self._most_texts, self._most_waiting = wait, most_texts, most_waiting
        self._waiting: deque[_Request] = deque()
        self.n_waiting = 0
        self._n_free = n_threads
        self._was_alone = False
        self._timer: asyncio.TimerHandle | None = None
        self._pool = ThreadPoolExecutor(n_threads, "batch", _one_thread_of_torch)

    @property
    def is_full(self) -> bool:
        """Whether a request with a single text would be refused."""
        return self.n_waiting >= self._most_waiting

    async def ask(self, texts: list[str]) -> list[Answer]:
        """Give an answer for each text.

        Raises
        ------
        QueueFullError
            If too many texts wait already.
        """
        if self.n_waiting + len(texts) > self._most_waiting:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        request = _Request(texts, loop.create_future(), loop.time())
        self._waiting.append(request)
        self.n_waiting += len(texts)
        self._send()
        return await request.answers

    def close(self) -> None:
        """Wait for the batches that are computed."""
        self._pool.shutdown()

    def _send(self) -> None:
        """Give batches that are due, or have enough texts, to threads that are free."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._n_free:
            due = self._waiting[0].arrived + (min(self._wait, _ALONE) if self._was_alone else self._wait)
            if self.n_waiting < self._most_texts and loop.time() + 0.0005 < due:
                if self._timer is None:
                    self._timer = loop.call_at(due, self._on_time)
                return
            self._n_free -= 1
            loop.run_in_executor(self._pool, self._compute, self._take()).add_done_callback(self._give)

    def _on_time(self) -> None:
        self._timer = None
        self._send()

    def _take(self) -> list[_Request]:
        """Take the first request, and those after it that fit into a batch."""
        batch = [self._waiting.popleft()]
        n_texts = len(batch[0].texts)
        while self._waiting and n_texts + len(self._waiting[0].texts) <= self._most_texts:
            batch.append(self._waiting.popleft())
            n_texts += len(batch[-1].texts)
        self.n_waiting -= n_texts
        self._was_alone = len(batch) == 1
        return batch

    def _compute(self, batch: Sequence[_Request]) -> list[tuple[_Request, list[Answer] | Exception]]:
        """Answer a batch in a thread; if that fails, each request by itself, so that one harms no other."""
        try:
            answers = iter(self._answer([text for request in batch for text in request.texts]))
            return [(request, [next(answers) for _ in request.texts]) for request in batch]
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0], error)]
        return [found for request in batch for found in self._compute([request])]

    def _give(self, task: "asyncio.Future[list[tuple[_Request, list[Answer] | Exception]]]") -> None:
        self._n_free += 1
        for request, found in task.result():
            if request.answers.done():  # nobody waits any more
                continue
            if isinstance(found, Exception):
                request.answers.set_exception(found)
            else:
                request.answers.set_result(found)
        self._send()


def _one_thread_of_torch() -> None:
    """Let operators of torch use one thread: several wait actively for each other."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
