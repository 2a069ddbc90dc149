"""Batches requests that arrive together: a fair queue in the event loop, and threads that compute."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

Answer = dict[str, Any]


#: Seconds that a request waits after one that was alone: what arrives at the same moment still shares a batch.
_ALONE = 0.001


class QueueFullError(Exception):
    """More texts wait than may."""


@dataclass(frozen=True, eq=False)
class _Request:
    texts: list[str]
    answers: "asyncio.Future[list[Answer]]"
    arrived: float


class _Queue(deque[_Request]):
    """Requests of one client that wait."""

    n_texts = 0


class Batcher:
    """Collects requests and gives them to a function in batches.

    A batch begins when a thread is free, and its first request has waited ``wait`` seconds or enough texts are there.
    So it grows while all threads compute. After a batch of a single request nobody is expected, and the wait is short.

    Clients are served in turn. Where too many texts wait, a client with fewer takes the place of the last request of
    the one with the most. A request whose task is cancelled is not computed.

    Parameters
    ----------
    answer : callable
        Takes texts, and gives an answer for each; several threads call it at a time.
    wait : float
        Seconds that a request waits for others.
    most_texts : int
        Texts of a batch.
    most_waiting : int
        With this number of waiting texts no request is taken.
    most_open : int
        Requests at a time, those that are computed among them.
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
        most_open: int,
        n_threads: int,
    ) -> None:
        self._answer = answer
        self._wait, self._most_texts, self._most_waiting, self._most_open = wait, most_texts, most_waiting, most_open
        #: Those of clients that wait, in the order of their turns.
        self._queues: dict[str, _Queue] = {}
        self._open: set[_Request] = set()
        self.n_waiting = 0
        self._n_free = n_threads
        self._was_alone = False
        self._timer: asyncio.TimerHandle | None = None
        self._pool = ThreadPoolExecutor(n_threads, "batch", _one_thread_of_torch)

    @property
    def is_full(self) -> bool:
        """Whether a request is taken only in place of another one, or not at all."""
        return self.n_waiting >= self._most_waiting or len(self._open) >= self._most_open

    async def ask(self, texts: list[str], client: str = "") -> list[Answer]:
        """Give an answer for each text.

        Parameters
        ----------
        texts : list of str
        client : str, default=""
            Who asks.

        Raises
        ------
        QueueFullError
            If too many texts wait, and no client has more of them.
        """
        while self.is_full:
            self._drop_one(client, len(texts))
        loop = asyncio.get_running_loop()
        request = _Request(texts, loop.create_future(), loop.time())
        queue = self._queues.setdefault(client, _Queue())
        queue.append(request)
        self._count(queue, len(texts))
        self._open.add(request)
        try:
            self._send()
            return await request.answers
        finally:
            self._open.discard(request)
            if request.answers.cancelled() and request in queue:  # nobody has dropped it
                self._forget(client, queue, request)

    def close(self) -> None:
        """Wait for the batches that are computed."""
        self._pool.shutdown()

    def _drop_one(self, client: str, n_texts: int) -> None:
        """Refuse the last request of the client that has the most texts; if the one that asks would have, refuse it."""
        own = self._queues.get(client, _Queue()).n_texts
        name, fullest = max(self._queues.items(), key=lambda item: item[1].n_texts, default=(client, _Queue()))
        if fullest.n_texts <= own + n_texts:
            raise QueueFullError
        last = fullest[-1]
        self._forget(name, fullest, last)
        self._open.discard(last)
        if not last.answers.done():  # its client has gone, and its task does not know yet
            last.answers.set_exception(QueueFullError())

    def _forget(self, client: str, queue: _Queue, request: _Request) -> None:
        queue.remove(request)
        self._count(queue, -len(request.texts))
        if not queue:
            del self._queues[client]

    def _count(self, queue: _Queue, n_texts: int) -> None:
        queue.n_texts += n_texts
        self.n_waiting += n_texts

    def _send(self) -> None:
        """Give batches that are due, or have enough texts, to threads that are free."""
        loop = asyncio.get_running_loop()
        while self._queues and self._n_free:
            due = min(queue[0].arrived for queue in self._queues.values())
            due += min(self._wait, _ALONE) if self._was_alone else self._wait
            if self.n_waiting < self._most_texts and loop.time() + 0.0005 < due:
                if self._timer is None:
                    self._timer = loop.call_at(due, self._on_time)
                return
            self._n_free -= 1
            loop.run_in_executor(self._pool, self._compute, self._take()).add_done_callback(self._give)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        self._send()

    def _take(self) -> list[_Request]:
        """Take the first request, and those after it that fit into a batch, of each client in turn."""
        batch: list[_Request] = []
        n_texts = 0
        is_last_round = False
        while not is_last_round:
            is_last_round = True
            for client, queue in list(self._queues.items()):
                if batch and n_texts + len(queue[0].texts) > self._most_texts:
                    continue
                is_last_round = False
                batch.append(queue.popleft())
                n_texts += len(batch[-1].texts)
                self._count(queue, -len(batch[-1].texts))
                del self._queues[client]
                if queue:
                    self._queues[client] = queue  # its next turn is after all others
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
