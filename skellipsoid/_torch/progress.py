"""Progress bars: the package's own, and those of the libraries."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from tqdm.std import tqdm

from . import machine
from .threads import counting

#: Seconds of a fit from which on a bar is shown.
LONG_FIT = 10

#: For each block of ``quiet_libraries`` that runs, what restores the settings from before the first of them.
_QUIET: list[Callable[[], None]] = []
_QUIET_LOCK = threading.Lock()
#: Whether every bar is shown in this thread: a command shows what takes long, also where a model predicts.
_SHOWN = ContextVar("shown", default=False)


@contextmanager
def all_bars_shown() -> Iterator[None]:
    """Show the bars of predictions, too, inside the block."""
    before = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(before)


def progress_bar(total: int, label: str, unit: str, verbose: int | bool, *, least: int = 1) -> tqdm:
    """Make a bar on standard error, only if that is a terminal or a notebook, and of the ``least`` total.

    A bar redraws itself with carriage returns, which would fill a log file. It is text in notebooks too: tqdm's
    notebook bar warns if ipywidgets is missing.
    """
    is_wanted = (verbose or _SHOWN.get()) and total >= least
    return tqdm(total=total, desc=label, unit=unit, disable=not (is_wanted and _is_watched()))


@contextmanager
def fit_progress(verbose: int | bool) -> Iterator[None]:
    """Show how many parts of a fit are computed, and since when, once it has taken ``LONG_FIT`` seconds."""
    if not ((verbose or _SHOWN.get()) and _is_watched()):
        yield
        return
    with tqdm(desc="Fitting", unit="part", delay=LONG_FIT) as bar, counting(bar.update):
        yield


def progress_line(line: str, verbose: int | bool) -> None:
    """Say on standard error what is done next, where a bar would be shown."""
    if (verbose or _SHOWN.get()) and _is_watched():
        tqdm.write(line, file=sys.stderr)


def _is_watched() -> bool:
    stream: TextIO | None = sys.stderr
    if stream is None:  # a program without a console
        return False
    return type(stream).__module__.startswith("ipykernel.") or machine.is_terminal(stream)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence progress bars and messages of transformers; the last of all threads restores the user's settings."""
    with _QUIET_LOCK:
        _QUIET.append(_QUIET[0] if _QUIET else _silence())
    try:
        yield
    finally:
        with _QUIET_LOCK:
            restore = _QUIET.pop()
            if not _QUIET:
                restore()


def _silence() -> Callable[[], None]:
    """Silence the libraries, and give what restores their settings."""
    from huggingface_hub import constants
    from huggingface_hub import utils as hub_utils
    from transformers.utils import logging as transformers_logging

    library: Any = transformers_logging  # its functions carry no types
    hub: Any = hub_utils
    library.get_verbosity()  # its first call sets the library's default level
    level = logging.getLogger("transformers").level
    # If the environment variable enables bars, disabling them only warns.
    hides_bars = library.is_progress_bar_enabled() and constants.HF_HUB_DISABLE_PROGRESS_BARS is not False
    hub_hides_bars = hub.are_progress_bars_disabled()
    library.set_verbosity_error()
    if hides_bars:
        library.disable_progress_bar()

    def restore() -> None:
        library.set_verbosity(level)
        if hides_bars:
            library.enable_progress_bar()  # the hub's bars too
            if hub_hides_bars:
                hub.disable_progress_bars()

    return restore
