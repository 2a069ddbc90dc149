"""Compare open-set methods by the literature's protocol: data set, known-class ratio, seed, encoder, method.

``run`` runs what has no result yet, ``make_table`` lays the results out beside the paper's, and the ``plot_`` functions
draw them. The command ``skellipsoid bench`` does the same.
"""

from ._figures import plot_confusion, plot_ranks, plot_stability
from ._methods import short_names
from ._paper import PaperFigure, paper_figures
from ._runner import BenchmarkError, run
from ._store import read_results
from ._summary import Comparison, Summary
from ._table import BenchmarkTable, Cell, make_table

__all__ = [
    "BenchmarkError",
    "BenchmarkTable",
    "Cell",
    "Comparison",
    "PaperFigure",
    "Summary",
    "make_table",
    "paper_figures",
    "plot_confusion",
    "plot_ranks",
    "plot_stability",
    "read_results",
    "run",
    "short_names",
]
