"""The log of answers, one line of JSON each, which ``skellipsoid traffic``, ``review`` and ``monitor`` read."""

import errno
import json
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ._settings import Settings

_LOGGER = logging.getLogger("skellipsoid_runtime.serve")


class AnswerLog:
    """Writes answers to a file that begins anew when it is large.

    Parameters
    ----------
    path : Path
    settings : Settings
    on_error : callable
        Called for each batch that could not be written.
    """

    def __init__(self, path: Path, settings: Settings, on_error: Callable[[], object]) -> None:
        self._has_texts = settings.log_texts
        self._file = _PrivateFile(path, settings.log_bytes, settings.log_files, on_error)

    def write(self, texts: list[str], answers: list[dict[str, Any]], model: str) -> None:
        """Write a line for each answer; an error of the disk ends no request."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = []
        for text, answer in zip(texts, answers, strict=True):
            line = {"time": now, "model": model, "answer": answer["label"]}
            line |= {name: value for name, value in answer.items() if name != "label"}
            lines.append(json.dumps(line | ({"text": text} if self._has_texts else {}), ensure_ascii=False))
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _PrivateFile:
    """A file that its owner alone can read: ``answers.jsonl``, and ``answers.1.jsonl`` for the one before.

    Other programs may move, remove or cut it; what is written goes to the file that has its name then. Of a link that
    is the file where it leads, and earlier files lie beside that.

    Raises
    ------
    OSError
        If the file cannot be opened, or is a folder, a device or a pipe, which is not waited for.
    """

    def __init__(self, path: Path, most_bytes: int, n_files: int, on_error: Callable[[], object]) -> None:
        self._path, self._most_bytes, self._n_files, self._on_error = path, most_bytes, n_files, on_error
        self._lock = threading.Lock()
        self._is_broken = False
        self._file: int | None = None
        self._opened()

    def write(self, content: bytes) -> None:
        """Write whole lines, or nothing."""
        with self._lock:
            try:
                self._write(content)
            except OSError as error:
                self._on_error()
                if not self._is_broken:  # said once, not for each batch
                    _LOGGER.error("answers are given, but not written to %s: %s", self._path, error)  # noqa: TRY400
                self._is_broken = True
                self.close()
            else:
                self._is_broken = False

    def close(self) -> None:
        """Close the file; it is opened again where something is written."""
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):
                os.close(file)

    def _write(self, content: bytes) -> None:
        file = self._opened()
        n_bytes = os.fstat(file).st_size
        if n_bytes and n_bytes + len(content) > self._most_bytes:
            self.close()
            self._shift()
            file = self._opened()
        n_written = os.write(file, content)
        if n_written < len(content):
            self._take_back(file, n_written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _opened(self) -> int:
        """Give the file that has the name, which another program may have moved; a line that was cut is ended."""
        if self._file is not None:
            with suppress(OSError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                    return self._file
            self.close()
        if self._path.exists() and not self._path.is_file():
            kind = "a folder" if self._path.is_dir() else "a device or a pipe"
            raise OSError(f"{str(self._path)!r} is {kind}, where a log is to be written; name a file.")
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if os.fstat(self._file).st_size and not self._ends_with_a_line():
            os.write(self._file, b"\n")
        return self._file

    def _ends_with_a_line(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"

    def _shift(self) -> None:
        """Give each file the name of the one before, and drop the last."""
        path = Path(os.path.realpath(self._path))
        numbered = [path, *(_earlier(path, number) for number in range(1, self._n_files + 1))]
        for newer, older in reversed(list(pairwise(numbered))):
            with suppress(FileNotFoundError):
                newer.replace(older)

    def _take_back(self, file: int, n_written: int) -> None:
        """Remove the part of a line that a full disk took, unless another server has written after it."""
        with suppress(OSError):
            end = os.lseek(file, 0, os.SEEK_CUR)
            if os.fstat(file).st_size == end:
                os.ftruncate(file, end - n_written)


def _earlier(path: Path, number: int) -> Path:
    """Put the number of an earlier file before the end of its name, by which programs know what it holds."""
    return path.with_name(f"{path.stem}.{number}{path.suffix}")
