"""The numbers of a table of results: means over the seeds, the paper's figures, the best two of a column."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ._notes import notes
from ._paper import paper_figures, paper_row
from ._store import Record, grouped
from ._summary import METRICS, compare, summarize


class Cell(NamedTuple):
    """One figure of a table, in percent.

    Attributes
    ----------
    mean : float
        Mean over the seeds. In the average column, the mean over the ratios.
    std : float or None
        Standard deviation over the seeds (n − 1); ``None`` for one seed and for averages.
    n_seeds : int
    paper : float or None
        The figure of this method in Table 1 of the paper.
    rank : int
        1 for the best of the column, 2 for the second best, else 0.
    """

    mean: float
    std: float | None
    n_seeds: int
    paper: float | None
    rank: int


#: A column: a ratio, or ``None`` for the average over the ratios; and the metric.
Column = tuple[float | None, str]
#: Where a cell is: encoder, data set, method, and its column.
Place = tuple[str, str, str, float | None, str]


class TableNumbers:
    """What the layouts of a table write. :class:`BenchmarkTable` adds the layouts."""

    def __init__(self, records: Sequence[Record], reference: str) -> None:
        self.encoders, self.data, self.methods = (
            [value for (value,) in grouped(records, name)] for name in ("encoder", "data", "method")
        )
        self.ratios: list[float] = sorted({record["ratio"] for record in records})
        self.reference = reference
        self.cells = _cells(records, self.ratios)
        self.summaries = summarize(records)
        self.comparisons = compare(records, reference)
        self.notes = {encoder: notes(rows) for (encoder,), rows in grouped(records, "encoder").items()}

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
