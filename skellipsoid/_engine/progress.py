"""The progress bar of everything that takes long."""

import sys
from typing import TextIO

from tqdm.std import tqdm


def progress_bar(total: int, label: str, unit: str, verbose: int | bool) -> tqdm:
    """Make a bar on standard error, which stays silent unless a person is watching.

    A bar draws itself anew with carriage returns, which a terminal and a notebook show as one line, and a log file as
    hundreds. tqdm's own choice for notebooks warns where ipywidgets is missing, so that the bar is text everywhere.
    """
    return tqdm(total=total, desc=label, unit=unit, disable=not (verbose and _is_watched()))


def close_early(progress: tqdm) -> None:
    """End a bar at 100 % where the work was done before the total was reached."""
    progress.total = progress.n
    progress.refresh()


def _is_watched() -> bool:
    stream: TextIO | None = sys.stderr
    if stream is None:  # a program without a console
        return False
    return type(stream).__module__.startswith("ipykernel.") or stream.isatty()
