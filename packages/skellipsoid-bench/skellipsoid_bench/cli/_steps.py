"""The commands run, table and plot."""

import argparse
import os
import sys
import traceback
from typing import Any

from .. import BenchmarkError, make_table, plot_confusion, plot_ranks, plot_stability, read_results, run
from .._drawing import require_matplotlib, save_picture

#: Options that choose results, and the key of a result that each compares.
_FILTERS = {"data": "data", "ratios": "ratio", "seeds": "seed", "encoders": "encoder", "methods": "method"}


def run_plan(options: argparse.Namespace) -> None:
    """Run what has no result yet."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # where a user's module:Class is
    chosen = {name: getattr(options, name) for name in _FILTERS}
    try:
        records = run(
            options.results,
            plan=options.plan,
            **chosen,
            data_home=options.data_home,
            cache=options.cache,
            n_jobs=options.jobs,
            device=options.device,
            rerun=options.rerun,
            save_predictions=options.save_predictions,
            debug=options.debug,
            verbose=0 if options.quiet else 2,
        )
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        if not isinstance(error, BenchmarkError):
            raise
        raise ValueError(str(error)) from error
    command = f"skellipsoid-bench table --results {options.results}"
    found = "1 result is" if len(records) == 1 else f"{len(records)} results are"
    print(f"{found} in {options.results}; see {'it' if len(records) == 1 else 'them'} with: {command}")


def table(options: argparse.Namespace) -> None:
    """Print and save a table."""
    made = make_table(_chosen(options), reference=options.reference)
    writers = {".md": made.to_markdown, ".rst": made.to_rst, ".csv": made.to_csv, ".tex": made.to_latex}
    for path in options.save:
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")
    print(made.to_markdown(), end="")


def plot(options: argparse.Namespace) -> None:
    """Save a picture."""
    if (options.kind == "stability") != (options.parameter is not None):
        raise ValueError(
            "--parameter goes with plot stability, which needs it; name the parameter there and nowhere else."
        )
    records = _chosen(options)
    require_matplotlib("plot")
    save_picture(options.save, lambda: _draw(options, records))
    print(f"The picture is in {options.save}")


def _chosen(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Read the results, and keep those that the options name."""
    records = read_results(*options.results)
    for option, key in _FILTERS.items():
        wanted = getattr(options, option)
        records = [record for record in records if wanted is None or record[key] in wanted]
    return records


def _draw(options: argparse.Namespace, records: list[dict[str, Any]]) -> Any:
    """Draw the figure of the kind that is asked for."""
    if options.kind == "ranks":
        return plot_ranks(records, metric=options.metric, over=options.over).figure_
    if options.kind == "stability":
        return plot_stability(records, options.parameter, metric=options.metric).figure
    return plot_confusion(records)
