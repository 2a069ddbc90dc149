"""The command ``skellipsoid-bench``: run a plan, make tables and pictures of the results."""

import argparse
from collections.abc import Sequence

from skellipsoid.cli import run_program

from ._options import build_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``skellipsoid-bench``; ``None`` takes them from the command line.

    Returns
    -------
    status : int
        0; 2 after an error, which is one sentence on standard error; 130 after an interrupt; 143 if it was terminated.
    """
    return run_program(build_parser(), _do, arguments)


def _do(options: argparse.Namespace) -> int:
    from . import _steps  # takes seconds

    {"run": _steps.run_plan, "table": _steps.table, "plot": _steps.plot}[options.command](options)
    return 0
