"""A person at a terminal, against a pipe: the same answers, each as soon as its line is typed."""

import os
import threading

import pytest

from skellipsoid import load

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

RUN = "import sys; from skellipsoid.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def type_lines(warm_server):
    """Type lines at a terminal, each when the one before is answered: ``type_lines(lines, *words)``; what it shows."""

    def run(lines, *words):
        person, terminal = pty.openpty()
        settings = termios.tcgetattr(terminal)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        with os.fdopen(terminal, "r+b", buffering=0) as file:
            process = warm_server.start(RUN, words, [file, file, file])
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        shown = b""
        try:
            for line in lines:
                os.write(person, f"{line}\n".encode())
                while not shown.endswith(f"\t{line}\r\n".encode()):
                    shown += os.read(person, 65536)
            os.write(person, b"\x04")
            assert process.wait() == 0
        finally:
            watchdog.cancel()
            os.close(person)
        return shown.decode().replace("\r\n", "\n")

    return run


def test_a_terminal_gets_the_answers_of_a_pipe_line_by_line(saved, texts, open_texts, type_lines, warm_python):
    lines = [*texts[:5], *open_texts[:2]]
    piped = warm_python(RUN, "predict", "--model", saved, stdin="\n".join(lines))
    assert (piped.returncode, piped.stderr) == (0, "")
    assert type_lines(lines, "predict", "--model", saved) == piped.stdout
    assert [line.partition("\t")[0] for line in piped.stdout.splitlines()] == load(saved).predict(lines).tolist()
