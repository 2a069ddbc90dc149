"""Results as a table: means of every method, tests, and the layout of the paper's Table 1 with the paper's numbers."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from . import _layout
from ._cell import METRICS, Cell, Column, Place
from ._paper import paper_figures, paper_row
from ._store import Record, grouped
from ._summary import compare, summarize


class BenchmarkTable:
    """Results in the layout of the paper's Table 1. Made by :func:`make_table`.

    Attributes
    ----------
    encoders, data, methods : list of str
        In the order of the results.
    ratios : list of float
        Rising.
    cells : dict
        :class:`Cell` by ``(encoder, data, method, ratio, metric)``; the ratio ``None`` is the average.
    reference : str
        The method that the others are tested against.
    summaries : list of Summary
        Every method over all its cases.
    comparisons : list of Comparison
        The reference against every other method.

    See Also
    --------
    make_table : Makes it.
    """

    def __init__(self, records: Sequence[Record], reference: str) -> None:
        self.encoders, self.data, self.methods = (
            [value for (value,) in grouped(records, name)] for name in ("encoder", "data", "method")
        )
        self.ratios: list[float] = sorted({record["ratio"] for record in records})
        self.reference = reference
        self.cells = _cells(records, self.ratios)
        self.summaries = summarize(records)
        self.comparisons = compare(records, reference)

    @property
    def columns(self) -> list[Column]:
        """Ratios, each with its metrics, then the average if there is more than one ratio."""
        ratios: list[float | None] = [*self.ratios, *([None] if len(self.ratios) > 1 else [])]
        return [(ratio, metric) for ratio in ratios for metric in METRICS]

    def rows(self, encoder: str) -> list[tuple[str, str, list[Cell | None]]]:
        """Give data set, method and cells of each row.

        Parameters
        ----------
        encoder : str

        Returns
        -------
        rows : list of (str, str, list)
            A cell without a result is ``None``.
        """
        found = []
        for data in self.data:
            for method in self.methods:
                cells = [self.cells.get((encoder, data, method, *column)) for column in self.columns]
                if any(cells):
                    found.append((data, method, cells))
        return found

    def to_markdown(self) -> str:
        """Write the summaries, the tests and the cells as Markdown.

        Returns
        -------
        text : str
            In the cells: mean ± standard deviation over the seeds, the paper's number in brackets; the best of a column
            is bold, the second best underlined.
        """
        return _layout.to_text(self, _layout.MARKDOWN)

    def to_rst(self) -> str:
        """Write what ``to_markdown`` writes as reStructuredText.

        Returns
        -------
        text : str
            Without section headings, so that any page can include it. The second best of a column is italic.
        """
        return _layout.to_text(self, _layout.RST)

    def to_csv(self) -> str:
        """Write the cells as comma-separated values, each number in a column of its own.

        Returns
        -------
        text : str
        """
        return _layout.to_csv(self)

    def to_latex(self) -> str:
        r"""Write the cells as one ``table*`` for each encoder, with the packages ``booktabs`` and ``multirow``.

        Returns
        -------
        text : str
        """
        return _layout.to_latex(self)


def make_table(records: Iterable[Record], *, reference: str | None = None) -> BenchmarkTable:
    """Make tables of results: means, tests, and the layout of the paper's Table 1.

    Parameters
    ----------
    records : iterable of dict
        What ``run`` or ``read_results`` gave.
    reference : str, default=None
        The method that every other one is tested against. ``None``: ``"ellipsoid"`` if it is there, else the first.

    Returns
    -------
    table : BenchmarkTable

    Raises
    ------
    ValueError
        If there are no results, or none of the reference.

    See Also
    --------
    skellipsoid.metrics.paired_test : The test. It assumes independent cases, but the seeds share test samples.

    Examples
    --------
    >>> from skellipsoid.benchmark import make_table, read_results
    >>> table = make_table(read_results("results.jsonl"))  # doctest: +SKIP
    >>> print(table.to_markdown())  # doctest: +SKIP
    """
    records = list(records)
    if not records:
        raise ValueError("There is no result to make a table of; run the benchmark first, or choose others.")
    methods = list(dict.fromkeys(record["method"] for record in records))
    if reference is None:
        reference = "ellipsoid" if "ellipsoid" in methods else methods[0]
    if reference not in methods:
        raise ValueError(f"reference={reference!r} has no result; the methods are {', '.join(methods)}.")
    return BenchmarkTable(records, reference)


def _cells(records: Sequence[Record], ratios: Sequence[float]) -> dict[Place, Cell]:
    kinds = {method: rows[0]["estimator"] for (method,), rows in grouped(records, "method").items()}
    paper = {(row.data, row.method, row.ratio): row for row in paper_figures()}
    cells: dict[Place, Cell] = {}
    for (encoder, data, method, ratio), rows in grouped(records, "encoder", "data", "method", "ratio").items():
        row = paper.get((data, paper_row(kinds[method]) or "", ratio))
        for metric in METRICS:
            found = [record[metric] for record in rows]
            std = float(np.std(found, ddof=1)) if len(found) > 1 else None
            theirs = None if row is None else float(getattr(row, metric))
            cells[encoder, data, method, ratio, metric] = Cell(float(np.mean(found)), std, len(found), theirs, 0)
    for names, metric in product(grouped(records, "encoder", "data", "method"), METRICS):
        encoder, data, method = names
        across = [cells.get((encoder, data, method, ratio, metric)) for ratio in ratios]
        there = [cell for cell in across if cell is not None]
        if len(there) == len(ratios) > 1:
            papers = [cell.paper for cell in there if cell.paper is not None]
            mean = float(np.mean([cell.mean for cell in there]))
            average = float(np.mean(papers)) if len(papers) == len(there) else None
            cells[encoder, data, method, None, metric] = Cell(mean, None, min(c.n_seeds for c in there), average, 0)
    return _ranked(cells)


def _ranked(cells: dict[Place, Cell]) -> dict[Place, Cell]:
    """Mark the best and the second best of each column, as they are printed: equal ones share a mark."""
    columns: dict[tuple[Any, ...], list[float]] = {}
    for (encoder, data, _, *column), cell in cells.items():
        columns.setdefault((encoder, data, *column), []).append(round(cell.mean, 2))
    ranked = {}
    for place, cell in cells.items():
        encoder, data, _, *column = place
        means = columns[encoder, data, *column]
        rank = sorted({*means}, reverse=True).index(round(cell.mean, 2)) + 1
        ranked[place] = cell._replace(rank=rank if len(means) > 1 and rank <= 2 else 0)
    return ranked
