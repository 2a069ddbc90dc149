"""Atomic writes that survive a power failure, tables as CSV or TSV, and file locks."""

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

#: Cells that a spreadsheet runs as a formula, and those that were escaped already.
_RUN = re.compile(r"'*[=+\-@\t\r]")
#: Control characters except tabs and line ends, and lone surrogates.
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
#: Suffixes of files that are not text.
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
#: Seconds after which a temporary file of a killed process is removed; a younger one may still be written to.
_STALE = 3600.0


def remove_stale(folder: Path, pattern: str) -> None:
    """Remove temporary files that killed processes left in a folder, by a pattern of names; young ones stay."""
    for left in folder.glob(pattern) if folder.is_dir() else ():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it replaces ``path`` in one step.

    If the writing fails, ``path`` stays as it was. A symbolic link stays a link, and the target keeps its permissions.
    A killed process leaves ``.NAME.XXXXXXXX.tmp`` in the folder, which a later call removes.

    Raises
    ------
    OSError
        If ``path`` is a folder, a device or a pipe, which no file can replace.
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
        if error.filename in (None, str(partial)):  # a full disk, or an error about the temporary name
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def real_file(path: Path) -> Path:
    """Return the file that a path leads to; it need not exist.

    Raises
    ------
    OSError
        If it is a folder, a device, a pipe, or a link to itself.
    """
    real = Path(os.path.realpath(path))
    # The target may have no name, such as a pipe that is standard output.
    if (path.exists() and not path.is_file()) or (os.path.lexists(real) and not real.is_file()):
        kind = "a folder" if path.is_dir() else "a link to itself" if real.is_symlink() else "a device or a pipe"
        raise OSError(f"{str(path)!r} is {kind}, where a file is to be written; name a file.")
    return real


def check_spreadsheet(path: Path) -> None:
    """Raise an error for a name that ``write_spreadsheet`` does not write to.

    Raises
    ------
    OSError
        If it is a folder, a device or a pipe, or its folder does not exist.
    ValueError
        If its suffix is that of a file that is not a text table.
    """
    if path.suffix.lower() in _NO_TEXT:
        raise ValueError(
            f"{str(path)!r} is a {path.suffix} file, but the table is written as text; use a name that ends in .tsv or "
            ".csv."
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise an error if a file's folder does not exist, or if the path cannot be a file."""
    if not real_file(path).parent.is_dir():
        message = f"There is no folder {str(path.parent)!r} for this file; create it, or use another"
        raise FileNotFoundError(errno.ENOENT, message, str(path))


def write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = "\t") -> None:
    """Write a text table for programs, with a header of column names."""
    _write(path, names, rows, delimiter, "utf-8")


def write_spreadsheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a text table for spreadsheets, with a header: commas in ``.csv``, tabs in all others.

    Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@`` as formulas. Such a cell, unless it is a number,
    gets an apostrophe, which ``unguarded`` removes. Control characters such as NUL, which readers refuse, are removed.
    """
    check_spreadsheet(path)
    is_csv = path.suffix.lower() == ".csv"
    cells = ([guarded(_CONTROL.sub("", str(cell))) for cell in row] for row in rows)
    # Excel reads a .csv as UTF-8 only with a byte order mark.
    _write(path, names, cells, "," if is_csv else "\t", "utf-8-sig" if is_csv else "utf-8")


def _write(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str, encoding: str) -> None:
    with replacing(path) as partial, partial.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def members_path(path: Path) -> Path:
    """Path of the file of members that is written beside a file of groups."""
    return path.with_name(f"{path.stem}-members{'.csv' if path.suffix.lower() == '.csv' else '.tsv'}")


def guarded(cell: str) -> str:
    """Escape a cell that a spreadsheet would run as a formula."""
    return f"'{cell}" if _RUN.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Undo ``guarded``."""
    return cell[1:] if cell.startswith("'") and _RUN.match(cell) else cell


def to_disk(path: Path, *, below: bool = True) -> None:
    """Flush a file, or a folder with all ``below`` it, to the disk."""
    for each in [path, *(path.rglob("*") if below else ())]:
        if each.is_file() or os.name != "nt":  # Windows does not open folders
            handle = os.open(each, os.O_RDWR if each.is_file() else os.O_RDONLY)  # Windows needs write access to flush
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextmanager
def holding(path: Path, *, waits: bool) -> Iterator[bool]:
    """Hold a lock file, which is created and removed again; yields whether the lock was obtained.

    The lock ends with the process, also if that is killed. ``waits``: whether to wait for another holder.

    Raises
    ------
    OSError, NotImplementedError
        If the file cannot be created, or if its file system has no locks.
    """
    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(timeout=-1 if waits else 0)
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked:
            # Removed while locked: a process that opened it meanwhile sees that it is gone, and tries again.
            with suppress(OSError):
                path.unlink()
            lock.release()


def unused_name(name: str, taken: Container[str]) -> str:
    """Make a column name unique: a number is appended if the name is taken."""
    return next(each for each in chain([name], (f"{name}_{i}" for i in count(2))) if each not in taken)
