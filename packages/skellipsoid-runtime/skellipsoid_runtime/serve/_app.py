"""The FastAPI application: the addresses of the server and what they answer."""

import asyncio
import logging
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from ._batcher import Answer, Batcher, QueueFullError
from ._limits import OneLength, Reader
from ._log import AnswerLog
from ._metrics import CONTENT_TYPE, Metrics
from ._models import Loaded, Models
from ._settings import Settings

_LOGGER = logging.getLogger("skellipsoid_runtime.serve")
#: Seconds after which a client may try again where too many texts wait.
_RETRY = {"retry-after": "1"}
#: Status of requests whose client has gone, in the counters: nginx counts them so.
_GONE = 499

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Service:
    """The state that all addresses share: the model, the queue before it, the log and the counters.

    Parameters
    ----------
    model : Path
    settings : Settings
    """

    def __init__(self, model: Path, settings: Settings) -> None:
        self.settings, self.metrics, self.reader = settings, Metrics(), Reader(settings)
        self.models = Models(model, self._changed)
        self.metrics.set_model(self.models.current)
        self.log = None if settings.log is None else AnswerLog(settings.log, settings, self.metrics.log_errors.inc)
        self.is_ending = False
        self.batcher = Batcher(
            self._answer,
            wait=self.settings.wait_ms / 1000,
            most_texts=self.settings.max_batch,
            most_waiting=self.settings.max_queue,
            # Other connections remain for /health, and for clients whose turn it is.
            most_open=max(1, self.settings.connections * 3 // 4),
            n_threads=self.settings.threads,
        )
        self.metrics.waiting.set_function(lambda: self.batcher.n_waiting)
        self._hangup = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for new models from now on, also where a mounted application has no lifespan."""
        if self._watching is None or self._watching.done():
            if self._watching is not None:  # of a loop that has ended
                self._hangup = asyncio.Event()
            self._watching = asyncio.create_task(self._watch(self._hangup))

    def reload(self) -> None:
        """Load the model again, as at SIGHUP."""
        self._hangup.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer inside the block; every request that was taken is answered before its end."""
        self.start()
        try:
            with _on_hangup(self.reload):
                yield
        finally:
            if self._watching is not None:
                self._watching.cancel()
            self.batcher.close()
            if self.log is not None:
                self.log.close()

    async def _watch(self, hangup: asyncio.Event) -> None:
        """Look for a new model from time to time, and at each SIGHUP; no error ends this."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(hangup.wait(), self.settings.watch_seconds or None)
            is_forced = hangup.is_set()
            hangup.clear()
            try:
                await asyncio.to_thread(self.models.refresh, is_forced=is_forced)
            except Exception:
                _LOGGER.exception("the model could not be looked at")
                await asyncio.sleep(1)

    def _changed(self, result: str, model: Loaded) -> None:
        self.metrics.changes.labels(result).inc()
        self.metrics.set_model(model)

    def _answer(self, texts: list[str]) -> list[Answer]:
        """Answer a batch, in a thread."""
        model, found = self.models.answers(texts)
        columns = {name: values.tolist() for name, values in found.items()}
        answers = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        self.metrics.batch.observe(len(texts))
        self.metrics.texts.inc(len(texts))
        self.metrics.open_texts.inc(columns["label"].count(model.open_label))
        for action, count in Counter(columns.get("action", ())).items():
            self.metrics.actions.labels(action).inc(count)
        for p_value in columns.get("p_value", ()):
            self.metrics.p_values.observe(p_value)
        if self.log is not None:
            self.log.write(texts, answers, model.version)
        return answers

    async def predict(self, request: Request) -> Response:
        """Read a request, and answer it."""
        self.start()
        begin, status = time.perf_counter(), 500
        try:
            query = await self.reader.read(request)
            texts = query.asked()
            client = request.client.host if request.client else ""
            answers = await _while_connected(self.batcher.ask(texts, client), request)
            given = [{"text": text} | answer for text, answer in zip(texts, answers, strict=True)]
            status = 200
        except ClientDisconnect:
            status = _GONE
            return Response(status_code=status)  # nobody reads it
        except QueueFullError:
            status = 429
            raise HTTPException(429, f"{self.batcher.n_waiting} texts wait already; try again", _RETRY) from None
        except HTTPException as error:
            status = error.status_code
            raise
        except Exception:
            _LOGGER.exception("a request could not be answered")
            raise HTTPException(500, "the model failed; the log of the server has the reason") from None
        finally:
            self.metrics.requests.labels(status).inc()
            self.metrics.seconds.observe(time.perf_counter() - begin)
        # A client that is told so opens its next connection to another server.
        headers = {"connection": "close"} if self.is_ending else None
        return JSONResponse(given if query.text is None else given[0], headers=headers)


def create_app(model: str | Path, settings: Settings | None = None) -> FastAPI:
    """Make a FastAPI application that answers texts with a model.

    Parameters
    ----------
    model : str or Path
        Folder of a model that :func:`skellipsoid.save` or :func:`skellipsoid.export_onnx` wrote, or a file that holds
        the path of such a folder. It is loaded here.
    settings : Settings, default=None
        ``None`` is all defaults.

    Returns
    -------
    app : fastapi.FastAPI
        ``POST /predict``, ``GET`` and ``HEAD`` of ``/health``, ``/ready``, ``/model`` and ``/metrics``.
        ``app.state.service`` is what they have in common.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it holds no model, a damaged one, or one that takes no texts.

    Examples
    --------
    >>> from skellipsoid_runtime.serve import create_app
    >>> app = create_app("my-model-onnx")  # doctest: +SKIP
    """
    service = Service(Path(model), settings or Settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(title="skellipsoid", lifespan=lifespan)
    app.state.service = service
    app.add_middleware(OneLength)
    described = {"requestBody": {"content": {"application/json": {"schema": service.reader.schema}}}}

    @app.post("/predict", openapi_extra=described)
    async def predict(request: Request) -> Response:
        """Answer one text (``text``) or several (``texts``)."""
        return await service.predict(request)

    @_getting(app, "/health")
    async def health() -> dict[str, str]:
        """Say that the process answers, also while all threads compute."""
        return {"status": "ok"}

    @_getting(app, "/ready")
    async def ready() -> Response:
        """Say whether requests are welcome: not when the server ends, or too many texts wait."""
        reason = "ending" if service.is_ending else "busy" if service.batcher.is_full else "ready"
        return JSONResponse({"status": reason}, 200 if reason == "ready" else 503)

    @_getting(app, "/model")
    async def present() -> dict[str, Any]:
        """Describe the model that answers."""
        found = service.models.current
        return {
            "version": found.version,
            "folder": found.folder.name,
            "program": found.program,
            "loaded": found.loaded.isoformat(timespec="seconds"),
            "classes": found.classes,
            "open_label": found.open_label,
            "error": service.models.error,
        }

    @_getting(app, "/metrics")
    async def metrics() -> Response:
        """Give the counters in the format of Prometheus."""
        return Response(service.metrics.written(), media_type=CONTENT_TYPE)

    return app


def _getting(app: FastAPI, path: str) -> Callable[[_Endpoint], _Endpoint]:
    """Answer GET by a function, and HEAD, by which monitors ask, without the content."""

    def added(answer: _Endpoint) -> _Endpoint:
        app.head(path, include_in_schema=False)(answer)
        return app.get(path)(answer)

    return added


async def _while_connected(answering: Coroutine[Any, Any, list[Answer]], request: Request) -> list[Answer]:
    """Wait for answers as long as the client does.

    Raises
    ------
    ClientDisconnect
        If it has gone, or has closed its side of the connection: the two look alike.
    """

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer, leaves = asyncio.ensure_future(answering), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((answer, leaves), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()
        leaves.cancel()


@contextmanager
def _on_hangup(call: Callable[[], None]) -> Iterator[None]:
    """Call a function at each SIGHUP, where there are signals: on Windows there are none, nor in other threads."""
    loop = asyncio.get_running_loop()
    try:
        before = signal.getsignal(signal.SIGHUP)
        loop.add_signal_handler(signal.SIGHUP, call)
    except (AttributeError, NotImplementedError, RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, before)  # while it ends, too, SIGHUP is no reason to die
