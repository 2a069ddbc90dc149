"""Answers of a server, kept by the hash of their request."""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from skellipsoid._core.files import holding

#: We raise this number when a request of the same key means something else.
_FORMAT = 1
#: Marks a file as ours, in the place that SQLite has for it.
_APPLICATION = 0x736B656C
#: Seconds that another process may hold the file.
_PATIENCE = 60.0
#: Keys that are looked up at once.
_AT_ONCE = 500


class Answer(NamedTuple):
    """What a server answered, and the tokens that it counted; of them, those it had cached."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


def request_key(*parts: Any) -> bytes:
    """SHA-256 of everything that an answer depends on."""
    content = json.dumps([_FORMAT, *parts], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(content.encode()).digest()


class MemoryCache:
    """Answers in memory.

    Parameters
    ----------
    answers : mutable mapping
        Where they are kept.
    """

    def __init__(self, answers: MutableMapping[bytes, Answer]) -> None:
        self._answers = answers

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """Answers to those requests that have one."""
        return {key: self._answers[key] for key in keys if key in self._answers}

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer."""
        self._answers[key] = answer

    @contextmanager
    def claim(self, key: bytes) -> Iterator[bool]:
        """Whether nobody else asks for an answer now; nobody does."""
        yield True


class FileCache:
    """Answers in a file of SQLite: every answer is a transaction, so that an interruption loses none that was kept.

    A checksum stands before every answer. An answer that does not match it counts as none.

    Parameters
    ----------
    path : Path
        A file; it is made if it does not exist.

    Raises
    ------
    OSError
        If the file cannot be opened or written, or if it is no cache of this package.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            self._prepare(self._connection)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """Answers to those requests that have one."""
        wanted = list(keys)
        found: dict[bytes, Answer] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            rows = self._run(f"SELECT key, entry FROM checked WHERE key IN ({','.join('?' * len(part))})", part)
            found |= {key: answer for key, entry in rows if (answer := _unpack(key, entry)) is not None}
        return found

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer."""
        self._run("INSERT OR REPLACE INTO checked VALUES (?, ?)", (key, _pack(key, answer)))

    @contextmanager
    def claim(self, key: bytes) -> Iterator[bool]:
        """Whether no other process or thread asks for an answer now; inside, no other one will."""
        with ExitStack() as stack:
            try:
                is_free = stack.enter_context(holding(Path(f"{self._path}-{key.hex()[:32]}.lock"), waits=False))
            except OSError as error:
                raise self._unusable(error) from error
            yield is_free

    def _run(self, statement: str, values: Any) -> list[Any]:
        with self._lock:
            if self._connection is None:
                raise OSError(
                    f"The cache {str(self._path)!r} was closed while answers came; call predict again to go on."
                )
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        n_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if owner != _APPLICATION and (owner or n_tables):
            raise OSError("it belongs to another program")
        connection.execute("CREATE TABLE IF NOT EXISTS checked (key BLOB PRIMARY KEY, entry BLOB) WITHOUT ROWID")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute("COMMIT")

    def _unusable(self, error: BaseException) -> OSError:
        return OSError(
            f"The cache {str(self._path)!r} cannot be used ({error}); pass the path of a file that this package made, "
            "or of a new file in a folder that exists and can be written."
        )


def _pack(key: bytes, answer: Answer) -> bytes:
    """Write an answer behind a checksum of it and of its key."""
    content = json.dumps(answer).encode()
    return hashlib.sha256(key + content).digest() + content


def _unpack(key: bytes, entry: Any) -> Answer | None:
    """Read what ``_pack`` wrote; ``None`` if it was damaged."""
    if not isinstance(entry, bytes) or hashlib.sha256(key + entry[32:]).digest() != entry[:32]:
        return None
    return Answer(*json.loads(entry[32:]))
