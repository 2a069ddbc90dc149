"""Warnings that point to the line of the user's code, once for each search."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

#: Packages whose frames are skipped to find the user's line.
_PASSED = {"skellipsoid", "skellipsoid_bench", "sklearn", "contextlib", "joblib"}


#: Whether warnings of this package are dropped in this thread; Python's filters would act on all threads.
_SILENT = ContextVar("silent", default=False)


class LossWarning(UserWarning):
    """Warning that some input is left out; the option ``--quiet`` of the command does not hide it."""


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress the warnings of this package inside the block."""
    before = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(before)


class _Worker:
    """Represents a worker process that fits candidates of a search."""


_WORKER = _Worker()
#: Places in this package that have warned, for each search; in a worker process, for the process.
_WARNED: "WeakKeyDictionary[Any, set[tuple[str, int]]]" = WeakKeyDictionary()


class _Place(NamedTuple):
    """The search of scikit-learn, if any, in which a warning is raised."""

    #: The search, or the worker process; ``None`` outside of candidates.
    search: Any
    is_fit: bool

    @classmethod
    def now(cls) -> "_Place":
        frame: FrameType | None = sys._getframe(1)
        is_candidate, is_fit, search = False, False, None
        while frame is not None and search is None:
            name = frame.f_globals.get("__name__", "")
            if not is_candidate:
                is_fit |= frame.f_code.co_name == "fit"
                is_candidate = name == "sklearn.model_selection._validation" and bool(frame.f_locals.get("parameters"))
            if name.startswith("sklearn.model_selection._search") and hasattr(frame.f_locals.get("self"), "refit"):
                search = frame.f_locals["self"]
            frame = frame.f_back
        return cls((_WORKER if search is None else search) if is_candidate else None, is_fit)

    def is_first(self, caller: FrameType) -> bool:
        """Whether this is the first warning of this place in this search."""
        kinds, kind = _WARNED.setdefault(self.search, set()), (caller.f_code.co_filename, caller.f_lineno)
        is_new = kind not in kinds
        kinds.add(kind)
        return is_new


def warn_in_search(message: str) -> None:
    """Warn, once in a search of scikit-learn, and not outside of one."""
    place = _Place.now()
    if place.search is not None and not _SILENT.get() and place.is_first(sys._getframe(1)):
        _warn(message, UserWarning)


def scored_estimator() -> Any:
    """Estimator that a scorer of scikit-learn's ``make_scorer`` is scoring at this moment; ``None`` outside of one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.metrics._scorer" and frame.f_code.co_name == "_score":
            return frame.f_locals.get("estimator")
        frame = frame.f_back
    return None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through a Pipeline or a search.

    In a search each place warns once, because the fits of candidates on parts of the samples repeat the warnings.
    """
    if _SILENT.get():
        return
    place = _Place.now()
    is_repeated = place.search is not None and (
        (place.is_fit and bool(getattr(place.search, "refit", False))) or not place.is_first(sys._getframe(1))
    )
    if not is_repeated:
        _warn(message, category)


def _warn(message: str, category: type[Warning]) -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] in _PASSED and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
