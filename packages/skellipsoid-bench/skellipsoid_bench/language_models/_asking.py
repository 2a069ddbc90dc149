"""All requests of a call: those that have no answer yet are sent, several at once, and each answer is kept at once."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skellipsoid._torch.progress import progress_bar

from ._answer_cache import Answer, FileCache, MemoryCache
from ._server import RequestError, Server
from ._words import Message

#: Seconds between looks for an answer that another process asks for.
_PAUSE = 0.05


class Request(NamedTuple):
    """What is asked about a text."""

    key: bytes  # of the cache
    row: int  # of the first text that it is about
    messages: Callable[[bool], list[Message]]  # by whether the answer is JSON


class Answers(NamedTuple):
    """Answers by the keys of their requests, and how they came about."""

    by_key: Mapping[bytes, Answer]
    asked: list[bytes]  # the others were in the cache
    n_retries: int
    constraint: str | None  # None if nothing was asked


def ask_all(
    requests: Sequence[Request],
    cache: FileCache | MemoryCache,
    connect: Callable[[threading.Event], Server],
    constraint: str,
    n_concurrent: int,
    kept: str,
    verbose: int | bool,
) -> Answers:
    """Answer every request, from the cache if it has the answer.

    Parameters
    ----------
    requests : sequence of Request
        Keys are different.
    cache : FileCache or MemoryCache
    connect : callable
        Makes the server; only called if there is something to ask.
    constraint : str
        ``"auto"`` takes the strictest that the server knows, by the first request.
    n_concurrent : int
        Requests at once.
    kept : str
        Where answers are kept, for messages.
    verbose : int or bool

    Raises
    ------
    ConnectionError, PermissionError, ValueError, OSError
        One sentence; answers until then are kept.
    """
    found = cache.get(request.key for request in requests)
    waiting = [request for request in requests if request.key not in found]
    if not waiting:
        return Answers(found, [], 0, None)
    stop, shows = threading.Event(), verbose and len(requests) > 1
    try:
        with closing(connect(stop)) as server, progress_bar(len(requests), "asking", "text", shows) as progress:
            progress.update(len(found))
            call = _Call(cache, server, constraint, n_concurrent, stop, found, progress)
            call.ask_all(waiting)
            return Answers(found, call.asked, server.n_retries, call.way)
    except RequestError as error:
        failed = error
    # Outside of the except clause: what the client says of an error may hold the key.
    raise _sentence(failed, len(found), len(requests), kept)


@dataclass
class _Call:
    """What the requests of a call share."""

    cache: FileCache | MemoryCache
    server: Server
    constraint: str
    n_concurrent: int
    stop: threading.Event
    found: dict[bytes, Answer]
    progress: Any
    way: str | None = None
    asked: list[bytes] = field(default_factory=list)

    def ask_all(self, waiting: Sequence[Request]) -> None:
        """Ask what no other process is asking; then wait for the others, and ask what they left."""
        start, patience = time.monotonic(), self.server.patience
        while waiting:
            n_before, waiting = len(waiting), self._ask_free(waiting)
            if len(waiting) < n_before:
                start = time.monotonic()
            elif time.monotonic() - start > patience:
                what = f"another process that uses this cache has had no answer for {patience:g} seconds"
                raise RequestError(OSError, what, "wait for it, or end it")
            if waiting:
                time.sleep(_PAUSE)

    def _ask_free(self, waiting: Sequence[Request]) -> list[Request]:
        """Ask once what no other process asks for now; gives the rest."""
        busy, n_alone = [], 0
        while self.way is None and n_alone < len(waiting):  # one request chooses the format of answers for all
            if not self._settle(waiting[n_alone]):
                busy.append(waiting[n_alone])
            n_alone += 1
        pool = ThreadPoolExecutor(self.n_concurrent, thread_name_prefix="skellipsoid-prompt")
        try:
            futures = {pool.submit(self._settle, request): request for request in waiting[n_alone:]}
            busy += [futures[future] for future in as_completed(futures) if not future.result()]
        except BaseException:
            # A request that failed, or Ctrl-C: what is under way is awaited, and kept.
            self.stop.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return busy

    def _settle(self, request: Request) -> bool:
        """Get an answer and keep it, unless another process asks for it now."""
        with self.cache.claim(request.key) as is_free:
            if not is_free:
                return False
            answer = self.cache.get([request.key]).get(request.key)  # another process may have been faster
            if answer is None:
                try:
                    answer = self._ask(request)
                except RequestError as error:
                    error.row = request.row
                    raise
                self.cache.put(request.key, answer)
                self.asked.append(request.key)
            self.found[request.key] = answer
        self.progress.update(1)
        return True

    def _ask(self, request: Request) -> Answer:
        if self.way is not None:
            return self.server.ask(self.way, request.messages)
        self.way, answer = self.server.find_constraint(self.constraint, request.messages)
        return answer


def _sentence(error: RequestError, n_found: int, n_requests: int, kept: str) -> Exception:
    so_far = ""
    if n_found:
        so_far = f" {n_found} of {n_requests} answers are kept {kept}, and the same call goes on from there."
    about = f"X[{error.row}]: " if error.kind is ValueError and error.row is not None else ""
    msg = f"The language model did not answer: {about}{error.reason}; {error.remedy}."
    return error.kind(msg + so_far)
