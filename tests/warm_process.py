"""A Python process that has imported the package already, and forks one for each test that needs a process of its own.

Importing takes most of the time of such a test. Tests of what is imported, or of the environment in which Python
begins, need one that begins anew: ``fresh_python``. As a command, ``python warm_process.py SOCKET MODULE ARGUMENTS``,
it is ``python -m MODULE ARGUMENTS``, run by the process that listens at the socket; with ``-c SCRIPT`` it is a script.
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback

#: Be the module that the first argument names.
MODULE = """
import os, runpy, sys

sys.path[0] = os.getcwd()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


class WarmPython:
    """Start processes that have imported the package: ``warm.start(script, arguments, [stdin, stdout, stderr])``."""

    def __init__(self, connection):
        self._socket = connection
        self._replies = connection.makefile("r", encoding="utf-8")

    def start(self, script, arguments, files):
        """Begin a process; it must end before the next begins."""
        message = {"script": script, "arguments": [*map(str, arguments)], "folder": os.getcwd()}
        content = json.dumps(message).encode()
        socket.send_fds(self._socket, [len(content).to_bytes(8, "big")], [file.fileno() for file in files])
        self._socket.sendall(content)
        return WarmProcess(int(self._replies.readline()), self._replies)

    def close(self):
        """Ask for no more."""
        self._socket.close()
        self._replies.close()


class WarmProcess:
    """A process of the server."""

    def __init__(self, pid, replies):
        self.pid, self._replies, self._status = pid, replies, None

    def kill(self):
        """End it at once, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        """Wait for its end; gives its status."""
        if self._status is None:
            self._status = int(self._replies.readline())
        return self._status


@contextlib.contextmanager
def warm(environment):
    """Begin a process that has imported the package, and end it."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        server = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
    python = WarmPython(ours)
    try:
        yield python
    finally:
        python.close()
        server.wait(timeout=30)


@contextlib.contextmanager
def listening(environment):
    """Begin a process that has imported the package and runs commands; give the path of its socket, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/warm"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            command = [sys.executable, __file__, str(listener.fileno())]
            server = subprocess.Popen(command, pass_fds=[listener.fileno()], env=environment)
        try:
            yield path
        finally:
            server.kill()
            server.wait(timeout=30)


def _import():
    """Import what takes long, of what a model needs that is loaded."""
    skellipsoid = importlib.import_module("skellipsoid")
    for name in skellipsoid.__all__:
        getattr(skellipsoid, name)
    for name in ("persistence._load", "cli._predict", "_encoders.torch.model_lookup"):
        importlib.import_module(f"skellipsoid.{name}")
    importlib.import_module("transformers.models.bert.modeling_bert")


def _serve(connection):
    """Fork a process for each message; say its number, and when it has ended its status."""
    while (found := socket.recv_fds(connection, 8, 3))[0]:
        head, files = found[:2]
        left, content = int.from_bytes(head, "big"), b""
        while len(content) < left:
            content += connection.recv(left - len(content))
        pid = os.fork()
        if pid == 0:
            connection.close()
            os._exit(_run(json.loads(content), files))
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(b"%d\n" % status)


def _run(message, files):
    """Be a process that runs a script, as ``python -c`` runs it; gives its status."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(message["folder"])
    sys.argv = ["-c", *message["arguments"]]
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    status = 0
    try:
        exec(compile(message["script"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            sys.stderr.write(f"{status}\n")
            status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        status = 120
    return status


def _main(where, *arguments):
    """Serve one process, or all that come; or be a command that does so."""
    if arguments:
        script, *arguments = arguments[1:] if arguments[0] == "-c" else (MODULE, *arguments)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(where)
            process = WarmPython(connection).start(script, arguments, [open(i, closefd=False) for i in range(3)])  # noqa: SIM115
            return process.wait()
    _import()
    given = socket.socket(fileno=int(where))
    if not given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return _serve(given)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that serve
    while True:
        with given.accept()[0] as connection:
            if os.fork() == 0:
                given.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _serve(connection)
                os._exit(0)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
