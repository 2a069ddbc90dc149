"""Results as a table: the layout of the paper's Table 1, the paper's own number beside each, paired tests."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..metrics import holm, paired_test
from ._paper import paper_figures, paper_row
from ._store import Record

#: Figures of the table, with their headings.
METRICS = {"f1": "F1", "accuracy": "ACC"}
_DATA_NAMES = {"banking": "Banking", "oos": "OOS", "stackoverflow": "StackOverflow"}
_BEST, _SECOND = 1, 2


class Cell(NamedTuple):
    """One figure of a table, in percent.

    Attributes
    ----------
    mean : float
        Over the seeds; in the average column over the ratios.
    std : float or None
        Standard deviation over the seeds (n − 1); ``None`` for one seed and for averages.
    n_seeds : int
    paper : float or None
        What the paper's Table 1 says of this method.
    rank : int
        1 for the best of the column, 2 for the second best, else 0.
    """

    mean: float
    std: float | None
    n_seeds: int
    paper: float | None
    rank: int


class Comparison(NamedTuple):
    """A method against the reference, over all cases that both have.

    Attributes
    ----------
    encoder, method : str
    metric : str
        ``"f1"`` or ``"accuracy"``.
    n_cases : int
    difference : float
        Mean of reference − method, in points of a percent.
    t_statistic, p_value : float
        Of the paired t-test.
    holm : float
        The p-value after Holm's correction over the methods of this encoder and metric.
    """

    encoder: str
    method: str
    metric: str
    n_cases: int
    difference: float
    t_statistic: float
    p_value: float
    holm: float


#: A column: a ratio, or ``None`` for the average over the ratios; and the metric.
Column = tuple[float | None, str]


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
    comparisons : list of Comparison

    See Also
    --------
    make_table : Makes it.
    """

    def __init__(self, records: Sequence[Record], reference: str) -> None:
        self.encoders, self.data, self.methods = (
            list(dict.fromkeys(record[name] for record in records)) for name in ("encoder", "data", "method")
        )
        self.ratios: list[float] = sorted({record["ratio"] for record in records})
        self.reference = reference
        self.cells = _cells(records, self.ratios)
        self.comparisons = _comparisons(records, reference)

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
            A cell is ``None`` where there is not a result.
        """
        found = []
        for data in self.data:
            for method in self.methods:
                cells = [self.cells.get((encoder, data, method, *column)) for column in self.columns]
                if any(cells):
                    found.append((data, method, cells))
        return found

    def to_markdown(self) -> str:
        """Write the table and the tests as Markdown.

        Returns
        -------
        text : str
            Mean ± standard deviation over the seeds, the paper's number in brackets; the best of a column is bold, the
            second best underlined.
        """
        parts = [_LEGEND.format("bold", "underlined")]
        for encoder in self.encoders:
            heading = ["Data", "Method", *(_heading(column) for column in self.columns)]
            lines = [
                [_data_name(data), method, *(_markdown(cell, self._most_seeds) for cell in cells)]
                for data, method, cells in self.rows(encoder)
            ]
            parts += [f"### Encoder: {encoder}", _pipes(heading, lines)]
        if self.comparisons:
            heading = ["Encoder", "Method", "Metric", "Cases", "Difference", "t", "p", "p (Holm)"]
            lines = [[test.encoder, test.method, METRICS[test.metric], *_numbers(test)] for test in self.comparisons]
            parts += [f"### {self.reference} minus each other method, paired t-test", _pipes(heading, lines)]
        return "\n\n".join(parts) + "\n"

    def to_csv(self) -> str:
        """Write the table as comma-separated values, each number in a column of its own.

        Returns
        -------
        text : str
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        kinds = ("mean", "std", "seeds", "paper", "rank")
        names = [f"{_heading(column)} {kind}" for column in self.columns for kind in kinds]
        writer.writerow(["encoder", "data", "method", *names])
        for encoder in self.encoders:
            for data, method, cells in self.rows(encoder):
                numbers = [value for cell in cells for value in (cell or [None] * len(kinds))]
                texts = [f"{value:.4f}" if isinstance(value, float) else value for value in numbers]
                writer.writerow([encoder, data, method, *texts])
        return stream.getvalue()

    def to_latex(self) -> str:
        r"""Write one ``table*`` for each encoder, with the packages ``booktabs`` and ``multirow``.

        Returns
        -------
        text : str
        """
        return "\n".join(self._latex(encoder) for encoder in self.encoders)

    @property
    def _most_seeds(self) -> int:
        return max(cell.n_seeds for cell in self.cells.values())

    def _latex(self, encoder: str) -> str:
        columns, width = self.columns, len(METRICS)
        groups = [columns[i][0] for i in range(0, len(columns), width)]
        tops = ["Average" if ratio is None else rf"KCR={ratio:.0%}".replace("%", r"\%") for ratio in groups]
        lines = [
            r"\begin{table*}",
            r"\centering\footnotesize",
            rf"\begin{{tabular}}{{ll{'c' * len(columns)}}}",
            r"\toprule",
            " & ".join(["", "", *(rf"\multicolumn{{{width}}}{{c}}{{{top}}}" for top in tops)]) + r" \\",
            " & ".join(["Datasets", "Methods", *(METRICS[metric] for _, metric in columns)]) + r" \\",
        ]
        before = None
        rows = self.rows(encoder)
        for data, method, cells in rows:
            first = ""
            if data != before:
                n_rows = sum(row[0] == data for row in rows)
                first, before = rf"\multirow{{{n_rows}}}{{*}}{{{_escape(_data_name(data))}}}", data
                lines.append(r"\midrule")
            texts = [_latex_cell(cell, self._most_seeds) for cell in cells]
            lines.append(" & ".join([first, _escape(method), *texts]) + r" \\")
        legend = _escape(_LEGEND.format("bold", "underlined"))
        caption = rf"\caption{{Encoder: {_escape(encoder)}. {legend}}}"
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", caption, r"\end{table*}", ""])


_LEGEND = (
    "Test samples, in percent: mean ± standard deviation over the seeds, in brackets the paper's mean (BERT-base, "
    "tuned as a whole). The best of a column is {}, the second best {}."
)


def make_table(records: Iterable[Record], *, reference: str | None = None) -> BenchmarkTable:
    """Lay results out as the paper's Table 1.

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
        If there is not a result, or none of the reference.

    See Also
    --------
    skellipsoid.metrics.paired_test : The test, which takes cases for independent. Seeds share test samples.

    Examples
    --------
    >>> from skellipsoid.benchmark import make_table, read_results
    >>> table = make_table(read_results("results.jsonl"))  # doctest: +SKIP
    >>> print(table.to_markdown())  # doctest: +SKIP
    """
    records = list(records)
    if not records:
        msg = "There is no result to make a table of; run the benchmark first."
        raise ValueError(msg)
    methods = list(dict.fromkeys(record["method"] for record in records))
    if reference is None:
        reference = "ellipsoid" if "ellipsoid" in methods else methods[0]
    if reference not in methods:
        msg = f"reference={reference!r} has no result; the methods are {', '.join(methods)}."
        raise ValueError(msg)
    return BenchmarkTable(records, reference)


def _cells(records: Sequence[Record], ratios: Sequence[float]) -> dict[tuple[str, str, str, float | None, str], Cell]:
    values: dict[tuple[str, str, str, float, str], list[float]] = {}
    kinds: dict[str, str] = {}
    for record in records:
        kinds.setdefault(record["method"], record["estimator"])
        for metric in METRICS:
            key = (record["encoder"], record["data"], record["method"], record["ratio"], metric)
            values.setdefault(key, []).append(record[metric])
    paper = {(row.data, row.method, row.ratio): row for row in paper_figures()}
    cells: dict[tuple[str, str, str, float | None, str], Cell] = {}
    for (encoder, data, method, ratio, metric), found in values.items():
        row = paper.get((data, paper_row(kinds[method]) or "", ratio))
        std = float(np.std(found, ddof=1)) if len(found) > 1 else None
        theirs = None if row is None else float(getattr(row, metric))
        cells[encoder, data, method, ratio, metric] = Cell(float(np.mean(found)), std, len(found), theirs, 0)
    for encoder, data, method, metric in dict.fromkeys((*key[:3], key[4]) for key in values):
        across = [cells.get((encoder, data, method, ratio, metric)) for ratio in ratios]
        if len(ratios) > 1 and all(across):
            there = [cell for cell in across if cell is not None]
            papers = [cell.paper for cell in there if cell.paper is not None]
            mean = float(np.mean([cell.mean for cell in there]))
            average = float(np.mean(papers)) if len(papers) == len(there) else None
            cells[encoder, data, method, None, metric] = Cell(mean, None, min(c.n_seeds for c in there), average, 0)
    return _ranked(cells)


def _ranked(
    cells: dict[tuple[str, str, str, float | None, str], Cell],
) -> dict[tuple[str, str, str, float | None, str], Cell]:
    """Mark the best and the second best of each column, as they are printed: equal ones share a mark."""
    columns: dict[tuple[str, str, float | None, str], list[float]] = {}
    for (encoder, data, _, ratio, metric), cell in cells.items():
        columns.setdefault((encoder, data, ratio, metric), []).append(round(cell.mean, 2))
    ranked = {}
    for (encoder, data, method, ratio, metric), cell in cells.items():
        means = columns[encoder, data, ratio, metric]
        place = sorted({*means}, reverse=True).index(round(cell.mean, 2)) + 1
        rank = place if len(means) > 1 and place <= _SECOND else 0
        ranked[encoder, data, method, ratio, metric] = cell._replace(rank=rank)
    return ranked


def _comparisons(records: Sequence[Record], reference: str) -> list[Comparison]:
    found: dict[tuple[str, str], dict[tuple[str, float, int], Record]] = {}
    for record in records:
        case = record["data"], record["ratio"], record["seed"]
        found.setdefault((record["encoder"], record["method"]), {})[case] = record
    comparisons = []
    for encoder in dict.fromkeys(encoder for encoder, _ in found):
        ours = found.get((encoder, reference), {})
        pairs = {
            method: sorted(ours.keys() & theirs.keys())
            for (other, method), theirs in found.items()
            if other == encoder and method != reference
        }
        pairs = {method: cases for method, cases in pairs.items() if len(cases) > 1}
        for metric in METRICS:
            tests = [
                paired_test(*([source[case][metric] for case in cases] for source in (ours, found[encoder, method])))
                for method, cases in pairs.items()
            ]
            corrected = holm([test.t_pvalue for test in tests]).tolist() if tests else []
            for method, test, p_value in zip(pairs, tests, corrected, strict=True):
                numbers = test.mean_difference, test.t_statistic, test.t_pvalue, p_value
                comparisons.append(Comparison(encoder, method, metric, test.n_pairs, *numbers))
    return comparisons


def _heading(column: Column) -> str:
    ratio, metric = column
    return f"Average {METRICS[metric]}" if ratio is None else f"{ratio:.0%} {METRICS[metric]}"


def _data_name(data: str) -> str:
    return _DATA_NAMES.get(data, data)


def _figure(cell: Cell, most_seeds: int, plus_minus: str) -> tuple[str, str]:
    """Write mean and spread, and what follows: the seeds where some are missing, the paper's number."""
    number = f"{cell.mean:.2f}" + ("" if cell.std is None else f" {plus_minus} {cell.std:.2f}")
    missing = "" if cell.n_seeds == most_seeds else f" [{cell.n_seeds} of {most_seeds} seeds]"
    return number, missing + ("" if cell.paper is None else f" ({cell.paper:.2f})")


def _markdown(cell: Cell | None, most_seeds: int) -> str:
    if cell is None:
        return ""
    number, rest = _figure(cell, most_seeds, "±")
    marked = {_BEST: f"**{number}**", _SECOND: f"<u>{number}</u>"}.get(cell.rank, number)
    return marked + rest


def _latex_cell(cell: Cell | None, most_seeds: int) -> str:
    if cell is None:
        return ""
    number, rest = _figure(cell, most_seeds, r"$\pm$")
    marked = {_BEST: rf"\textbf{{{number}}}", _SECOND: rf"\underline{{{number}}}"}.get(cell.rank, number)
    return marked + rest


def _numbers(test: Comparison) -> list[str]:
    p_values = [f"{p_value:.1e}" for p_value in (test.p_value, test.holm)]
    return [str(test.n_cases), f"{test.difference:+.2f}", f"{test.t_statistic:.2f}", *p_values]


def _pipes(heading: list[str], lines: list[list[str]]) -> str:
    rows = [heading, ["---"] * len(heading), *([text.replace("|", r"\|") for text in line] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _escape(text: str) -> str:
    for special in ("\\", "&", "%", "$", "#", "_", "{", "}"):
        text = text.replace(special, r"\textbackslash " if special == "\\" else f"\\{special}")
    return text.replace("±", r"$\pm$")
