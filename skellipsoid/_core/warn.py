"""Warnings that point to the user's line."""

import sys
import warnings

#: Packages through which a call of the user comes here.
_PASSED = {"skellipsoid", "skellipsoid_bench", "sklearn", "contextlib", "joblib"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through a Pipeline or a search."""
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] in _PASSED and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
