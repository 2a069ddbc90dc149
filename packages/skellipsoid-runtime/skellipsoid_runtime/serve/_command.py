"""The command ``skellipsoid-serve``: its options and exit codes."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._install import how_to_install
from .._version import __version__

if TYPE_CHECKING:
    from ._settings import Settings

#: Set before libraries that compute are imported: a request is computed by one thread, and requests beside each other.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        ``None``: those of the process.

    Returns
    -------
    exit_code : int
        0 after SIGTERM, 2 after an error, 130 after an interrupt.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        with _noted_hangups() as hangups:
            return _serve(_parser().parse_args(arguments), hangups)
    except (ImportError, OSError, ValueError) as error:
        print(f"skellipsoid-serve: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130


@contextmanager
def _noted_hangups() -> Iterator[list[int]]:
    """Note SIGHUP, which would end the process as long as no model is loaded."""
    noted: list[int] = []
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGHUP, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGHUP, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skellipsoid-serve", description="Serve the predictions of a model over HTTP."
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--model", type=Path, required=True, help="folder of a saved or exported model, or a file with the path of one"
    )
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 answers other machines (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="0 chooses a free one (default: 8000)")
    parser.add_argument("--log", type=Path, help="write one line of JSON per answer to this file, without the text")
    parser.add_argument(
        "--log-texts",
        action="store_true",
        help="write the texts, too, which review, traffic and monitor need: they may be personal data",
    )
    numbers = {
        "log-bytes": (int, 10 * 2**20, "bytes after which the log begins a new file"),
        "log-files": (int, 5, "earlier files of the log that are kept"),
        "wait-ms": (float, 5.0, "milliseconds that a request waits for others to share its batch"),
        "max-batch": (int, 64, "texts of a batch"),
        "max-queue": (int, 1024, "texts that may wait; then the HTTP status is 429"),
        "max-connections": (int, 512, "connections at a time"),
        "max-body": (int, 2**20, "bytes of a request"),
        "max-texts": (int, 256, "texts of a request"),
        "max-text": (int, 2000, "characters of a text"),
        "max-characters": (int, 20_000, "characters of all texts of a request"),
        "body-seconds": (float, 30.0, "seconds for the head of a request, for its body, and to read the answer"),
        "keep-alive-seconds": (float, 75.0, "how long a connection is kept; longer than a proxy in front keeps it"),
        "n-threads": (int, 0, "batches at a time; 0: one for each core"),
        "watch-seconds": (float, 1.0, "how often to look for a new model; 0: at SIGHUP alone"),
        "drain-seconds": (float, 1.0, "how long to answer after SIGTERM, while /ready says 503"),
    }
    for name, (kind, value, text) in numbers.items():
        parser.add_argument(f"--{name}", type=kind, default=value, help=f"{text} (default: {value})")
    return parser


def _serve(options: argparse.Namespace, hangups: list[int]) -> int:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"skellipsoid-serve needs FastAPI, uvicorn and prometheus-client ({error}); run "
            f"{how_to_install('skellipsoid-runtime[serve]')}."
        ) from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    from ._app import create_app
    from ._network import make_server, reserve

    settings = _settings(options)
    with reserve(options.host, options.port) as sockets:  # before the model is loaded, which takes seconds
        app = create_app(options.model, settings)
        service = app.state.service
        if hangups:
            service.reload()
        make_server(app, service, options.drain_seconds).run(sockets)
    return 0


def _settings(options: argparse.Namespace) -> "Settings":
    from dataclasses import fields

    from ._settings import Settings

    given: dict[str, Any] = vars(options)
    return Settings(**{field.name: given[field.name] for field in fields(Settings) if field.name in given})
