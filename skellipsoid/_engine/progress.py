"""Progress bars."""

import sys
from typing import TextIO

from tqdm.std import tqdm


def progress_bar(total: int, label: str, unit: str, verbose: int | bool) -> tqdm:
    """Make a bar on standard error, only if that is a terminal or a notebook.

    A bar redraws itself with carriage returns, which would fill a log file. It is text in notebooks too: tqdm's
    notebook bar warns if ipywidgets is missing.
    """
    return tqdm(total=total, desc=label, unit=unit, disable=not (verbose and _is_watched()))


def close_early(progress: tqdm) -> None:
    """End a bar at 100 % if training ends before the total."""
    progress.total = progress.n
    progress.refresh()


def _is_watched() -> bool:
    stream: TextIO | None = sys.stderr
    if stream is None:  # a program without a console
        return False
    return type(stream).__module__.startswith("ipykernel.") or stream.isatty()
