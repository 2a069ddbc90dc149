"""The command ``skellipsoid``: train on your own file, evaluate it, label lines, read a log, change classes.

Besides: a demo, a comparison of models, and an export for ``predict`` and for machines without torch.

Each command imports its slow dependencies itself.
"""

import argparse
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any

from .._core.warn import LossWarning
from ._options import build_parser
from ._values import Commands, plot_file, seed, with_suffix

#: What the command of another package uses.
__all__ = ["Commands", "main", "plot_file", "run_program", "seed", "with_suffix"]

#: Exit code of an alarm.
_ALARM = 3
#: Modules of the commands that are not named as they are.
_MODULE_OF = {
    **dict.fromkeys(("add", "remove", "merge"), "change"),
    "review": "learn",
    "set_threshold": "threshold",
}
#: Commands that show how far they are with the texts of a file.
_SHOW_BARS = {"add", "evaluate", "learn", "merge", "remove", "review", "set_threshold", "traffic"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``skellipsoid``; ``None`` takes them from the command line.

    Returns
    -------
    exit_code : int
        0; 2 after an error, which is one sentence on standard error; 3 after an alarm of ``monitor``; 130 after an
        interrupt; 143 if it was terminated.
    """
    return run_program(build_parser(), _run, arguments)


def run_program(
    parser: argparse.ArgumentParser, do: Callable[[argparse.Namespace], int], arguments: Sequence[str] | None
) -> int:
    """Run a command line; its errors and notes are one sentence each.

    Parameters
    ----------
    parser : ArgumentParser
        Has the option ``quiet``.
    do : callable
        Takes the options, and gives the exit code.
    arguments : sequence of str or None

    Returns
    -------
    exit_code : int
    """
    from ._output import OutputError, all_output, check_output

    exit_code = 0
    with all_output():
        options = parser.parse_args(arguments)
        try:
            with _notes(parser.prog, quiet=options.quiet), _tidy_termination():
                exit_code = do(options)
            sys.stdout.flush()
            check_output()
        except (OSError, ValueError, TypeError, MemoryError, ImportError) as error:
            if isinstance(error, OutputError) and error.is_closed:  # its reader has enough
                return exit_code
            _say(parser.prog, str(error) or type(error).__name__)
            return 2
        except _Terminated:
            return 143
        except KeyboardInterrupt:
            return 130
        return exit_code


def _say(program: str, message: str) -> None:
    """Print an error or a note as one line."""
    from .._core.characters import printable

    print(f"{program}: {printable(' '.join(message.split(chr(10))))}", file=sys.stderr)


class _Terminated(KeyboardInterrupt):
    """Another program ended this one."""


@contextmanager
def _tidy_termination() -> Iterator[None]:
    """Let a SIGTERM end the command as an interrupt does, so that a save that is half done is removed."""
    if threading.current_thread() is not threading.main_thread():  # only there handlers can be set
        yield
        return

    def terminate(*_: Any) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(options: argparse.Namespace) -> int:
    from ._ahead import check_ahead  # numpy, which no --help needs

    check_ahead(options)
    name = options.command.replace("-", "_")
    command = getattr(import_module(f"._{_MODULE_OF.get(name, name)}", __name__), name)
    with _bars_shown() if name in _SHOW_BARS and not options.quiet else nullcontext():
        return _ALARM if command(options) else 0  # monitor alone returns whether there is an alarm


def _bars_shown() -> AbstractContextManager[None]:
    from .._torch.progress import all_bars_shown

    return all_bars_shown()


@contextmanager
def _notes(program: str, *, quiet: bool) -> Iterator[None]:
    """Show warnings that are meant for the user as one sentence each, and once, or not at all."""
    show, shown = warnings.showwarning, set[str]()

    def show_note(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, UserWarning):
            if str(message) not in shown:
                _say(program, str(message))
            shown.add(str(message))
        else:
            show(message, category, *place, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "default", UserWarning)
        warnings.simplefilter("default", LossWarning)
        warnings.showwarning = show_note
        yield
