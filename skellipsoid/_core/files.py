"""Files that are there whole or not at all, also after a power failure, and files that one process at a time holds."""

import csv
import glob
import os
import secrets
import shutil
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

#: Seconds after which what a killed process has left is removed; until then another one may be writing it.
_STALE = 3600.0


def remove_stale(folder: Path, pattern: str) -> None:
    """Remove what killed processes have left in a folder, where names match a pattern; nothing that is written now."""
    for left in folder.glob(pattern) if folder.is_dir() else ():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name under which a file is to be written; once it is complete, it takes the place of ``path``.

    If the writing fails, ``path`` stays as it was. A killed process leaves ``.NAME.XXXXXXXX.tmp`` beside it, which a
    later one removes.
    """
    remove_stale(path.parent, f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.tmp")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield partial
        to_disk(partial)
        partial.replace(path)
    except OSError as error:
        if error.filename in (None, str(partial)):  # of a full disk, or a name that nobody knows
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = "\t") -> None:
    """Write a table of text, the names of its columns first."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def to_disk(path: Path, *, below: bool = True) -> None:
    """Flush a file, or a folder with all ``below`` it, so that it outlasts a power failure."""
    for each in [path, *(path.rglob("*") if below else ())]:
        if each.is_file() or os.name != "nt":  # Windows does not open folders
            handle = os.open(each, os.O_RDWR if each.is_file() else os.O_RDONLY)  # Windows flushes what it may write
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextmanager
def holding(path: Path, *, waits: bool) -> Iterator[bool]:
    """Hold a file, which is made for this and removed afterwards; says whether it is held.

    The lock ends with the process that holds it, however that ends. If another holds it, ``waits`` says whether to wait
    until that one lets go.

    Raises
    ------
    OSError, NotImplementedError
        If the file cannot be made, or if its file system has no locks.
    """
    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(timeout=-1 if waits else 0)
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked:
            # While it is held: whoever opened it meanwhile notices that it is gone, and tries again.
            with suppress(OSError):
                path.unlink()
            lock.release()


def unused_name(name: str, taken: Container[str]) -> str:
    """Give a column a name that no other has: with a number after it where it is taken."""
    return next(each for each in chain([name], (f"{name}_{i}" for i in count(2))) if each not in taken)
