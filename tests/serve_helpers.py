"""A server in a process of its own, and what asks it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

JSON = {"content-type": "application/json"}
RUNTIME = Path(__file__).parents[1] / "packages" / "skellipsoid-runtime"


class Server:
    """A server in a process of its own, which says at which port it answers."""

    def __init__(self, command, output, **options):
        self.file_of_output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, **options)
        self.port = int(self.wait_for(r" (?:at|on) http://[\d.]+:(\d+)", 90)[1])

    @property
    def output(self):
        """What the server has written."""
        return self.file_of_output.read_text(encoding="utf-8")

    def wait_for(self, pattern, seconds=20):
        """Wait until the server has written something."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < end, self.output
            time.sleep(0.02)
        return found

    def connect(self):
        """Open a connection, which is kept alive."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path):
        """Status and content of an address."""
        with closing(self.connect()) as connection:
            return ask(connection, "GET", path)

    def post(self, body):
        """Status and answer of a request."""
        with closing(self.connect()) as connection:
            return ask(connection, "POST", "/predict", body)

    def counter(self, name):
        """Value of a counter."""
        found = re.search(rf"^skellipsoid_{re.escape(name)} (\S+)$", self.get("/metrics")[1], re.M)
        return float(found[1]) if found else None

    def end(self, sent=signal.SIGTERM):
        """Tell the server to end, and give its status."""
        self.process.send_signal(sent)
        return self.process.wait(timeout=30)


def ask(connection, method, path, body=None):
    """Status and content of a request over a connection."""
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, content, JSON if content is not None else {})
    response = connection.getresponse()
    text = response.read().decode()
    with suppress(ValueError):
        return response.status, json.loads(text)
    return response.status, text


@contextmanager
def started(command, output, **options):
    """Start a server; it must not have stopped, nor written a traceback, when the block ends."""
    server = Server(command, output, **options)
    try:
        yield server
        if server.process.poll() is None:
            assert server.end() == 0, server.output
        assert "Traceback" not in server.output, server.output
    finally:
        server.process.kill()
        server.process.wait()


def running(model, folder, environment, handles=None, **options):
    """Start the command ``skellipsoid-serve`` with some options, on a port that is free, as ``started`` does."""
    options = {"model": model, "port": 0, "drain_seconds": 0, **options}
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", *_written(value))]
    command = [sys.executable, "-m", "skellipsoid_runtime.serve", *words]
    if handles is not None:
        command = ["sh", "-c", f'ulimit -n {handles}; exec "$@"', "sh", *command]
    paths = os.pathsep.join([str(RUNTIME), environment["PYTHONPATH"]])
    return started(command, folder / "server.txt", env=environment | {"PYTHONPATH": paths})


def _written(value):
    return [] if value is True else [str(value)]
