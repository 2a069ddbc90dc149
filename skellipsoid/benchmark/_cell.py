"""One figure of a table of results, and where it stands."""

from typing import NamedTuple

#: Figures of the table, with their headings.
METRICS = {"f1": "F1", "accuracy": "ACC"}


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
