"""Warnings that point to the user's line."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages through which a call of the user comes here.
_PASSED = {"skellipsoid", "skellipsoid_bench", "sklearn", "contextlib", "joblib"}


#: Whether warnings of this package are dropped in this thread; the filters of warnings are those of all threads.
_SILENT = ContextVar("silent", default=False)


class LossWarning(UserWarning):
    """Something that a user gave is left out; the option ``--quiet`` of the command does not hide this."""


@contextmanager
def silenced() -> Iterator[None]:
    """Drop the warnings of this package inside the block."""
    before = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(before)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through a Pipeline or a search."""
    if _SILENT.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] in _PASSED and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
