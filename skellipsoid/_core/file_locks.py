"""Files that one process or thread at a time holds."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


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
