"""The log of answers, one line of JSON each, which ``skellipsoid traffic``, ``review`` and ``monitor`` read."""

import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
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
        self._file.emit(logging.LogRecord("", logging.INFO, "", 0, "\n".join(lines), None, None))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _PrivateFile(RotatingFileHandler):
    """A file that its owner alone can read: ``answers.jsonl``, and ``answers.1.jsonl`` for the one before."""

    def __init__(self, path: Path, most_bytes: int, n_files: int, on_error: Callable[[], object]) -> None:
        self._on_error, self._is_broken = on_error, False
        super().__init__(path, maxBytes=most_bytes, backupCount=n_files, encoding="utf-8")
        self.namer = _numbered

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=private)  # type: ignore[return-value]

    def emit(self, record: logging.LogRecord) -> None:
        with self.lock:  # type: ignore[union-attr]
            self._has_failed = False
            super().emit(record)
            self._is_broken = self._has_failed

    def handleError(self, record: logging.LogRecord) -> None:
        self._has_failed = True
        self._on_error()
        # What could not be written is given up: it would be tried again at each write, and grow.
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()
        if not self._is_broken:  # said once, not for each batch
            reason = sys.exc_info()[1]
            _LOGGER.error("answers cannot be written to %s, but are given: %s", self.baseFilename, reason)


def _numbered(name: str) -> str:
    """Put the number of an earlier file before the end of its name, by which programs know what it holds."""
    path, _, number = name.rpartition(".")
    stem, suffix = os.path.splitext(path)
    return f"{stem}.{number}{suffix}"
