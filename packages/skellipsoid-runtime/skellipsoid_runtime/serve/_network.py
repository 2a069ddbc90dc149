"""Connections: limits on what clients keep open, send ahead and leave unread, and the end of the server."""

import asyncio
import errno
import logging
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from ._app import Service

_LOGGER = logging.getLogger("skellipsoid_runtime.serve")
#: Of connections only errors are told: who sends what is no HTTP must not fill the log.
_ERRORS = logging.getLogger("skellipsoid_runtime.serve.connections")
_ERRORS.setLevel(logging.ERROR)
#: Seconds in which requests that were taken must be answered at the end: less than Kubernetes' 30.
_LONGEST_END = 25
#: Seconds that a client has at the end for what it has not sent or read.
_LAST_WAIT = 2.0
#: Bytes of a next request that may arrive before the one before is answered.
_MOST_AHEAD = 16 * 2**10
#: Connections whose handles wait for ``accept``.
_BACKLOG = 128
#: Seconds between two lines of the log about handles.
_SAID_AGAIN = 60.0


class _Flow(FlowControl):
    """Reads nothing more from a client that has sent the beginning of its next request already."""

    def __init__(self, transport: asyncio.Transport, conn: h11.Connection) -> None:
        super().__init__(transport)
        self._conn = conn

    def resume_reading(self) -> None:
        is_answering = self._conn.their_state is h11.DONE and self._conn.our_state is not h11.DONE
        if not (is_answering and self._conn.trailing_data[0]):
            super().resume_reading()


class Connection(H11Protocol):
    """A connection that ends when its client does not go on, or when another one needs its handle.

    Parameters
    ----------
    most : int
        Connections at a time.
    """

    def __init__(self, *, most: int, **options: Any) -> None:
        super().__init__(**options)
        self.logger = _ERRORS
        self._most = most
        self._seen: tuple[int, str] = (0, "")
        self._since = 0.0
        self._n_answered = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self.conn)
        self.age(time.monotonic())
        if len(self.connections) > self._most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) > _MOST_AHEAD:
            self.end()

    def on_response_complete(self) -> None:
        self._n_answered += 1
        super().on_response_complete()

    @property
    def phase(self) -> str:
        """What is waited for: ``head``, ``body``, ``rest`` of a body that nobody needs, ``next`` request, ``client``.

        ``client`` is waited for where it has not read what was sent. All but ``answer`` is up to the client.
        """
        answered = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return "client"
        if self.conn.their_state is h11.IDLE:
            return "head" if self.cycle is None or self.conn.trailing_data[0] else "next"
        if self.conn.their_state is h11.SEND_BODY:
            return "rest" if answered else "body"
        return "next" if answered else "answer"

    def age(self, now: float) -> float:
        """Give the seconds since the present phase began."""
        seen = self._n_answered, self.phase
        if seen != self._seen:
            self._seen, self._since = seen, now
        return now - self._since

    def end(self) -> None:
        """Close the connection, whatever has not been sent."""
        self.connections.discard(self)
        self.transport.abort()

    def _make_room(self) -> None:
        """End the connection that has waited longest for its client, of the address with the most connections."""
        now = time.monotonic()
        every: list[Connection] = [each for each in self.connections if isinstance(each, Connection)]
        counts = Counter(each._address for each in every)
        idle = [each for each in every if each.phase != "answer"]
        max(idle, key=lambda each: (counts[each._address], each.age(now)), default=self).end()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""


class Server(uvicorn.Server):
    """Ends connections whose clients do not go on, and answers for some seconds after SIGTERM.

    So a balancer finds another server first.
    """

    def __init__(self, config: uvicorn.Config, service: "Service", drain_seconds: float) -> None:
        super().__init__(config)
        self._service, self._drain_seconds = service, drain_seconds
        self._ends: float | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        asyncio.get_running_loop().set_exception_handler(_Complaints())
        await super().startup(sockets)
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            _LOGGER.info("answering at http://%s:%d", f"[{host}]" if ":" in host else host, port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal."""
        if sig != signal.SIGTERM or self._ends is not None:
            super().handle_exit(sig, frame)
            return
        self._service.is_ending = True
        self._ends = time.monotonic() + self._drain_seconds

    async def on_tick(self, counter: int) -> bool:
        """Say whether to end; called each tenth of a second."""
        if counter % 5 == 0:
            self.end_overdue(self._service.settings.body_seconds)
        if self._ends is not None and time.monotonic() >= self._ends:
            self.should_exit = True
        return await super().on_tick(counter)

    def end_overdue(self, most: float, *, is_last: bool = False) -> None:
        """End connections whose clients have not gone on for ``most`` seconds; a body has its own limit before the end.

        Parameters
        ----------
        most : float
        is_last : bool, default=False
            Whether no request is waited for any more.
        """
        phases = {"head", "rest", "client"} | ({"body", "next"} if is_last else set())
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.age(now) > most and connection.phase in phases:
                connection.end()

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer what was taken, and wait for no other client for long."""

        async def sweep() -> None:
            while True:
                self.end_overdue(min(_LAST_WAIT, self._service.settings.body_seconds), is_last=True)
                await asyncio.sleep(0.2)

        sweeping = asyncio.create_task(sweep())
        try:
            await super().shutdown(sockets)
        finally:
            sweeping.cancel()


class _Complaints:
    """Handler of the loop's errors: a line each minute where handles run out, instead of thousands of tracebacks."""

    def __init__(self) -> None:
        self._said = -_SAID_AGAIN

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        lacks = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
        if not isinstance(error, OSError) or error.errno not in lacks:
            loop.default_exception_handler(dict(context))
        elif time.monotonic() - self._said >= _SAID_AGAIN:
            self._said = time.monotonic()
            _LOGGER.error("no connection can be accepted (%s); allow more open files, or fewer connections", error)


@contextmanager
def reserve(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Hold a port of each address of a host inside the block: nobody else can have it, or connect to it yet.

    Parameters
    ----------
    host : str
        Empty: all addresses of this machine.
    port : int
        0 chooses a free one.

    Raises
    ------
    ValueError
        If there is no such port.
    OSError
        If the port is taken or not allowed, or if the host is unknown.
    """
    if not 0 <= port < 2**16:
        raise ValueError(f"port={port} does not exist; use a number from 1 to 65535, or 0 for a free one.")
    with ExitStack() as stack:
        try:
            sockets = [stack.enter_context(closing(each)) for each in _bound(host, port)]
        except OSError as error:
            raise OSError(
                f"Nothing can listen at port {port} of {host!r} ({(error.strerror or str(error)).lower()}); choose "
                "another --port, or correct --host."
            ) from error
        yield sockets


def _bound(host: str, port: int) -> Iterator[socket.socket]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, (name, _, *rest) in dict.fromkeys(found):
        opened = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # elsewhere two servers could share a port then
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind((name, port, *rest))
        except OSError:
            opened.close()
            raise
        port = opened.getsockname()[1]
        yield opened


def make_server(app: Any, service: "Service", drain_seconds: float) -> Server:
    """Make a server of an application.

    Parameters
    ----------
    app : fastapi.FastAPI
    service : Service
        That of the application.
    drain_seconds : float
        Seconds after SIGTERM in which requests are still taken.
    """
    settings = service.settings

    def protocol(**options: Any) -> Connection:
        return Connection(most=settings.connections, **options)

    config = uvicorn.Config(
        app,
        http=protocol,  # type: ignore[arg-type]
        ws="none",
        access_log=False,
        log_config=None,
        # Connections that a turn of the loop accepts; there must be handles for some turns.
        backlog=min(_BACKLOG, max(1, settings.connections // 4)),
        timeout_keep_alive=settings.keep_alive_seconds,  # type: ignore[arg-type]
        timeout_graceful_shutdown=_LONGEST_END,
    )
    return Server(config, service, drain_seconds)
