"""Arguments of ``skellipsoid-bench``."""

import argparse
from pathlib import Path

from skellipsoid.cli import Commands, plot_file, seed, with_suffix

from .._version import __version__

_METRICS = (
    *("f1", "accuracy", "f1_known", "f1_open", "oracle_f1"),
    *("auroc", "aupr_known", "aupr_open", "oscr"),
)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="skellipsoid-bench", description="Compare methods of open-set classification."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | table | plot")
    _add_run(commands)
    _add_table(commands)
    _add_plot(commands)
    for command in commands.choices.values():
        command.add_argument("--quiet", action="store_true", help="no progress, only results")
    return parser


def _add_run(steps: Commands) -> None:
    run = steps.add_parser(
        "run",
        help="run what has no result yet",
        description="Run every method on every data set, known-class ratio, seed and encoder that has no result yet. "
        "A benchmark that was killed continues where it was. What is given here comes before what the plan says; data, "
        "encoders and methods can be chosen by their names in the plan.",
    )
    run.add_argument("--results", type=Path, required=True, metavar="FILE.jsonl", help="one line for each run")
    run.add_argument("--plan", type=Path, metavar="PLAN.toml", help="data, ratios, seeds, encoders and methods")
    run.add_argument(
        "--data",
        nargs="+",
        metavar="DATA",
        help="banking, oos, stackoverflow, assistant, a folder with train.tsv and test.tsv (text<TAB>label), a file of "
        "texts and labels (.csv, .tsv, .jsonl, .parquet, .xlsx), or a .npz file of features (default: the first three)",
    )
    run.add_argument("--ratios", nargs="+", type=float, metavar="RATIO", help="proportions of known classes")
    run.add_argument("--seeds", nargs="+", type=seed, metavar="SEED", help="each draws other known classes")
    run.add_argument(
        "--encoders",
        nargs="+",
        metavar="ENCODER",
        help="none, head or full, or head:MODEL for another text model; a folder of sentence-transformers; "
        "module:Class for one of your own",
    )
    run.add_argument(
        "--methods", nargs="+", metavar="METHOD", help="names of methods, or module:Class for one of your own"
    )
    run.add_argument("--data-home", metavar="FOLDER", help="folder of the public data sets")
    run.add_argument("--cache", metavar="FOLDER", help="folder of embeddings (default: ~/.cache/skellipsoid/benchmark)")
    run.add_argument("--jobs", type=_n_processes, default=1, metavar="NUMBER", help="processes (default: 1)")
    run.add_argument("--rerun", action="store_true", help="run anew the results of other code of a method")
    run.add_argument("--debug", action="store_true", help="end at the first error of a method, with its traceback")
    run.add_argument("--save-predictions", metavar="FOLDER", help="one CSV file per run: label, score, prediction")
    run.add_argument("--device", default="auto", help="where torch computes: auto, cpu, cuda (default: auto)")


def _add_table(steps: Commands) -> None:
    table = steps.add_parser("table", help="print results in the layout of the paper's Table 1, as Markdown")
    _add_results(table)
    table.add_argument("--reference", metavar="METHOD", help="what every other method is tested against")
    table.add_argument(
        "--save",
        nargs="+",
        type=_table_file,
        default=[],
        metavar="FILE",
        help="write it too; the ending says how: .md, .rst, .csv or .tex",
    )


def _add_plot(steps: Commands) -> None:
    plot = steps.add_parser("plot", help="draw results")
    plot.add_argument(
        "kind",
        choices=("ranks", "stability", "confusion"),
        help="critical-difference diagram; a figure against a parameter; coarse confusion matrices",
    )
    _add_results(plot)
    plot.add_argument("--save", type=plot_file, required=True, metavar="FILE.png", help="or .pdf, .svg")
    plot.add_argument("--parameter", metavar="NAME", help="of stability: what is on the x axis")
    plot.add_argument(
        "--over",
        choices=("cells", "cases"),
        default="cells",
        help="of ranks: means over the seeds of each data set and ratio, or every case (default: cells)",
    )
    plot.add_argument("--metric", choices=_METRICS, default="f1", help="of ranks and stability (default: f1)")


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, nargs="+", required=True, metavar="FILE.jsonl", help="what run wrote")
    command.add_argument("--data", nargs="+", metavar="NAME", help="only these")
    command.add_argument("--ratios", nargs="+", type=float, metavar="RATIO", help="only these")
    command.add_argument("--seeds", nargs="+", type=seed, metavar="SEED", help="only these")
    command.add_argument("--encoders", nargs="+", metavar="NAME", help="only these")
    command.add_argument("--methods", nargs="+", metavar="NAME", help="only these")


def _n_processes(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes; use a whole number from 1 on")
    return int(text)


def _table_file(text: str) -> Path:
    return with_suffix(text, (".md", ".rst", ".csv", ".tex"))
