"""Files that are there whole or not at all, also after a power failure, and files that one process at a time holds."""

import csv
import errno
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

#: Cells that spreadsheets run, and those that were guarded already.
_RUN = re.compile(r"'*[=+\-@\t\r]")
#: Control characters but tabs and line ends, and halves of surrogate pairs.
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
#: Files that are no text.
_NO_TEXT = {
    ".xlsx",
    ".xls",
    ".xlsm",
    ".ods",
    ".numbers",
    ".json",
    ".jsonl",
    ".ndjson",
    ".parquet",
    ".pq",
    ".gz",
    ".zip",
}
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

    If the writing fails, ``path`` stays as it was. A link stays, and so do the rights of the file that it leads to. A
    killed process leaves ``.NAME.XXXXXXXX.tmp`` beside it, which a later one removes.

    Raises
    ------
    OSError
        If ``path`` is a folder, a device or a pipe, whose place no file can take.
    """
    path = real_file(path)
    remove_stale(path.parent, f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.tmp")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield partial
        to_disk(partial)
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)
    except OSError as error:
        if error.filename in (None, str(partial)):  # of a full disk, or a name that nobody knows
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def real_file(path: Path) -> Path:
    """Give the file that a path leads to, which need not be there.

    Raises
    ------
    OSError
        If it is a folder, a device, a pipe, or a link to itself.
    """
    real = Path(os.path.realpath(path))
    # What the path leads to may have no name, as a pipe that is standard output.
    if (path.exists() and not path.is_file()) or (os.path.lexists(real) and not real.is_file()):
        kind = "a folder" if path.is_dir() else "a link to itself" if real.is_symlink() else "a device or a pipe"
        raise OSError(f"{str(path)!r} is {kind}, where a file is to be written; name a file.")
    return real


def check_spreadsheet(path: Path) -> None:
    """Refuse a name that ``write_spreadsheet`` does not write to.

    Raises
    ------
    OSError
        If it is a folder, a device or a pipe, or in no folder.
    ValueError
        If it ends like the name of a file that is no table of text.
    """
    if path.suffix.lower() in _NO_TEXT:
        raise ValueError(
            f"{str(path)!r} names a {path.suffix} file, but a table of text is written; name a .tsv or .csv."
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file that is in no folder, or a name that is no file's."""
    if not real_file(path).parent.is_dir():
        message = f"There is no folder {str(path.parent)!r} for this file; create it, or use another"
        raise FileNotFoundError(errno.ENOENT, message, str(path))


def write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = "\t") -> None:
    """Write a table of text for programs, the names of its columns first."""
    _write(path, names, rows, delimiter, "utf-8")


def write_spreadsheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table of text for people, the names of its columns first: commas in ``.csv``, tabs in all others.

    Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@``: one that is no number gets an apostrophe before
    it, which ``unguarded`` takes off. Control characters, such as NUL, which no reader takes, are left out.
    """
    check_spreadsheet(path)
    is_csv = path.suffix.lower() == ".csv"
    cells = ([guarded(_CONTROL.sub("", str(cell))) for cell in row] for row in rows)
    # Excel takes a .csv for UTF-8 by the mark alone.
    _write(path, names, cells, "," if is_csv else "\t", "utf-8-sig" if is_csv else "utf-8")


def _write(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str, encoding: str) -> None:
    with replacing(path) as partial, partial.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def members_path(path: Path) -> Path:
    """Name the file of members beside a file of groups."""
    return path.with_name(f"{path.stem}-members{'.csv' if path.suffix.lower() == '.csv' else '.tsv'}")


def guarded(cell: str) -> str:
    """Give a cell that no spreadsheet runs."""
    return f"'{cell}" if _RUN.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Give a cell as it was before ``guarded``."""
    return cell[1:] if cell.startswith("'") and _RUN.match(cell) else cell


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
