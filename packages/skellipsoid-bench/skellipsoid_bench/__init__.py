"""Compare open-set methods by the literature's protocol.

A *case* is one data set, known-class ratio and seed. A *run* is one case with one encoder and one method. ``run`` does
all runs that have no result yet. ``make_table`` makes tables of the results, with the figures of the paper. The
``plot_`` functions draw them. The command ``skellipsoid-bench`` does the same.
"""

from . import datasets, language_models, literature
from ._cells import Cell
from ._critical_difference import CriticalDifferenceDisplay
from ._methods import short_names
from ._paper import PaperFigure, paper_figures
from ._pictures import plot_confusion, plot_ranks, plot_stability
from ._runner import BenchmarkError, run
from ._statistics import PairedTest, holm, paired_test
from ._store import read_results
from ._summary import Comparison, Summary
from ._table import BenchmarkTable, make_table
from ._version import __version__

__all__ = [
    "BenchmarkError",
    "BenchmarkTable",
    "Cell",
    "Comparison",
    "CriticalDifferenceDisplay",
    "PairedTest",
    "PaperFigure",
    "Summary",
    "__version__",
    "datasets",
    "holm",
    "language_models",
    "literature",
    "make_table",
    "paired_test",
    "paper_figures",
    "plot_confusion",
    "plot_ranks",
    "plot_stability",
    "read_results",
    "run",
    "short_names",
]
