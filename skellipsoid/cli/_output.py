"""Standard output and error of a command: any letter can be printed, and a failed write stops no work."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from .._torch import machine


class Output:
    """A text stream that notes the first write that fails, and drops all later ones."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        if self.error is None:
            try:
                self._stream.write(text)
            except OSError as error:
                self._drop(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.error = error
        # At exit Python flushes the stream again, which would raise another error.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


@contextmanager
def all_output() -> Iterator[None]:
    """Let standard output and standard error take any letter, inside the block.

    What a terminal, or standard error, lacks is escaped; standard output that goes to a file or a pipe is UTF-8, which
    whoever reads it expects, whatever the locale says. A stream that is closed takes everything.
    """
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            stack.callback(setattr, sys, name, stream)
            if stream is None:
                stream = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            if isinstance(stream, io.TextIOWrapper):  # not that of a notebook
                stack.callback(_reconfigure, stream, stream.encoding, stream.errors)
                is_utf_8 = name == "stdout" and not machine.is_terminal(stream)
                _reconfigure(stream, "utf-8" if is_utf_8 else stream.encoding, "backslashreplace")
                setattr(sys, name, Output(stream))
        yield


def _reconfigure(stream: io.TextIOWrapper, encoding: str, errors: str | None) -> None:
    with suppress(OSError, ValueError):  # it is closed, or nobody reads it
        stream.reconfigure(encoding=encoding, errors=errors)


def check_output() -> None:
    """Raise the error of a write to standard output that failed: nobody reads what would follow."""
    if isinstance(sys.stdout, Output) and sys.stdout.error is not None:
        raise OutputError(sys.stdout.error)


class OutputError(OSError):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"The output cannot be written ({error.strerror}), which undoes nothing that was saved; free some space, "
            "or send it elsewhere."
        )
        self.is_closed = isinstance(error, BrokenPipeError)
