"""Warnings that point to the user's line."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any
from weakref import WeakSet

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


#: Searches that were warned; in a worker process, where no search is, the process.
_WARNED: "WeakSet[Any]" = WeakSet()


class _Worker:
    """Stands for a process that fits candidates of a search elsewhere."""


_WORKER = _Worker()


def warn_in_search(message: str) -> None:
    """Warn, once in a search of scikit-learn, and not outside of one."""
    frame: FrameType | None = sys._getframe(1)
    is_candidate, search = False, None
    while frame is not None and search is None:
        name, variables = frame.f_globals.get("__name__", ""), frame.f_locals
        if name == "sklearn.model_selection._validation" and variables.get("parameters"):
            is_candidate = True
        if name.startswith("sklearn.model_selection._search") and hasattr(variables.get("self"), "refit"):
            search = variables["self"]
        frame = frame.f_back
    key = _WORKER if search is None else search
    if is_candidate and key not in _WARNED:
        _WARNED.add(key)
        warn(message)


def scored_estimator() -> Any:
    """Estimator that a scorer of scikit-learn's ``make_scorer`` is scoring at this moment; ``None`` outside of one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.metrics._scorer" and frame.f_code.co_name == "_score":
            return frame.f_locals.get("estimator")
        frame = frame.f_back
    return None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through a Pipeline or a search."""
    if _SILENT.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] in _PASSED and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
