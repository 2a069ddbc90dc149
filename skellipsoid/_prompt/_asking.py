"""All requests of a call: those that have no answer yet are sent, several at once, and each answer is kept at once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from .._engine.common.progress import progress_bar
from ._cache import Answer, FileCache, MemoryCache
from ._server import RequestError, Server
from ._words import Message


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
    ConnectionError, PermissionError, ValueError
        One sentence; answers until then are kept.
    """
    found = cache.get(request.key for request in requests)
    waiting = [request for request in requests if request.key not in found]
    if not waiting:
        return Answers(found, [], 0, None)
    stop = threading.Event()
    failed: tuple[Request, RequestError] | None = None
    n_before, server, way = len(found), None, None
    try:
        server = connect(stop)
        with progress_bar(len(requests), "asking", "text", verbose and len(requests) > 1) as progress:
            progress.update(n_before)
            way, answer = server.find_constraint(constraint, waiting[0].messages)
            _keep(waiting[0], answer, cache, found, progress)
            failed = _ask_rest(waiting[1:], cache, server, way, n_concurrent, stop, found, progress)
    except RequestError as error:
        failed = (waiting[0], error)
    finally:
        if server is not None:
            server.close()
    if failed is not None:
        # Outside of the except clause: what the client says of an error may hold the key.
        raise _sentence(*failed, len(found), len(requests), kept)
    return Answers(found, [request.key for request in waiting], 0 if server is None else server.n_retries, way)


def _ask_rest(
    waiting: Sequence[Request],
    cache: FileCache | MemoryCache,
    server: Server,
    way: str,
    n_concurrent: int,
    stop: threading.Event,
    found: dict[bytes, Answer],
    progress: Any,
) -> tuple[Request, RequestError] | None:
    """Ask several at once; the first error ends it, after the requests under way."""
    failed = None
    futures: dict[Future[Answer], Request] = {}
    pool = ThreadPoolExecutor(n_concurrent, thread_name_prefix="skellipsoid-prompt")
    try:
        futures = {pool.submit(server.ask, way, request.messages): request for request in waiting}
        for future in as_completed(futures):
            if future.cancelled():
                continue
            try:
                answer = future.result()
            except RequestError as error:
                if failed is None:
                    failed = (futures[future], error)
                    stop.set()
                    for other in futures:
                        other.cancel()
            else:
                _keep(futures[future], answer, cache, found, progress)
    except BaseException:
        # Ctrl-C, for instance: what is under way is awaited, and kept.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        for future, request in futures.items():
            if future.done() and not future.cancelled() and future.exception() is None and request.key not in found:
                cache.put(request.key, future.result())
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _keep(
    request: Request, answer: Answer, cache: FileCache | MemoryCache, found: dict[bytes, Answer], progress: Any
) -> None:
    cache.put(request.key, answer)
    found[request.key] = answer
    progress.update(1)


def _sentence(request: Request, error: RequestError, n_found: int, n_requests: int, kept: str) -> Exception:
    so_far = ""
    if n_found:
        so_far = f" {n_found} of {n_requests} answers are kept {kept}, and the same call goes on from there."
    about = f"X[{request.row}]: " if error.kind is ValueError else ""
    msg = f"The language model did not answer: {about}{error.reason}; {error.remedy}."
    return error.kind(msg + so_far)
