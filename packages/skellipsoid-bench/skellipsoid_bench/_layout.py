"""Tables of results as Markdown, reStructuredText, comma-separated values and LaTeX."""

import csv
import io
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from ._cells import Cell, Column, TableNumbers
from ._summary import COMPARED, METRICS, Summary

_DATA_NAMES = {"banking": "Banking", "oos": "OOS", "stackoverflow": "StackOverflow"}
_CELLS = (
    "Test samples, in percent: mean ± standard deviation over the seeds, in brackets the paper's mean (BERT-base, "
    "tuned as a whole). The best of a column is {}, the second best {}."
)
_SUMMARY = (
    "Means over all cases ± standard deviation over the seeds, in percent. *Best threshold*: F1 at the threshold that "
    "is best on the test samples, which nobody knows in practice. *Rejected*: proportions of the known and of the open "
    "test samples that are rejected. *Reached*: cells whose mean is at or above that of EliDecide in the paper. Median "
    "seconds of fit, median milliseconds of predict for 1,000 samples, largest peak memory."
)
_COMPARISONS = (
    "{} minus each other method, in points: mean over all cases, and p-value of the paired t-test after Holm's "
    "correction. The last column compares {} as fitted with the other method at its best threshold."
)
_RANKING = (
    "How the scores rank known and open samples, in percent: means over all cases. *AUPR*: average precision with "
    "known or open samples as the positive class. *FPR at 95 %*: open samples that are accepted where 95 % of the "
    "known ones are; the less, the better. *OSCR*: a known sample gets the right class and a higher score than an open "
    "one."
)
_STATISTICS = (
    "The same tests as the paper reports them, and as they should be read. *t* and *p*: paired t-test over all cases, "
    "without a correction for the number of methods. Seeds share test samples, so this p is too small. *p over cells*: "
    "the test over data sets and ratios, each a mean over the seeds, after Holm's correction. *Variance*: mean over "
    "data sets and ratios of the variance over the seeds."
)
_STATISTICS_HEADING = (
    *("Method", "F1 t", "F1 p", "F1 p over cells", "F1 variance"),
    *("ACC t", "ACC p", "ACC p over cells", "ACC variance"),
)
_COMPARISON_HEADING = ("Method", "F1", "ACC", "F1, other at best threshold")


def _pipes(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [heading, ["---"] * len(heading), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class Style(NamedTuple):
    """How a format writes a text, the best two numbers of a column, a heading and a table."""

    escape: Callable[[str], str]
    best: str
    second: str
    legend: tuple[str, str] = ("bold", "underlined")
    heading: str = "### {}"
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], str] = _pipes
    plus_minus: str = "±"


def _simple_table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Write a simple table of reStructuredText; an empty first cell would continue the row above."""
    rows = [heading, *([line[0] or r"\ ", *line[1:]] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    texts = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([rule, texts[0], rule, *texts[1:], rule])


def _escaper(special: str) -> Callable[[str], str]:
    return lambda text: "".join(f"\\{letter}" if letter in special else letter for letter in text)


#: What LaTeX does not print as it is.
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {"α": r"$\alpha$", "β": r"$\beta$", "≤": r"$\leq$", "≥": r"$\geq$", "−": "$-$", "×": r"$\times$"}
)
#: Columns of two tables after the method, and what each writes of a summary.
_SUMMARY_COLUMNS: dict[str, Callable[[Summary], str]] = {
    "F1": lambda row: _with_spread(row.f1, row.f1_std),
    "ACC": lambda row: _with_spread(row.accuracy, row.accuracy_std),
    "AUROC": lambda row: _optional(row.auroc, ".2f"),
    "Best threshold F1": lambda row: _optional(row.oracle_f1, ".2f"),
    "Rejected, known / open": lambda row: (
        f"{_optional(row.false_rejection_rate, '.1f', '–')} / {_optional(row.open_rejection_rate, '.1f', '–')}"
    ),
    "Reached": lambda row: f"{row.n_reached} of {row.n_compared}" if row.n_compared else "",
    "Fit, s": lambda row: _two_digits(row.fit_seconds),
    "Predict, ms": lambda row: _two_digits(1000 * row.predict_seconds),
    "Memory, MiB": lambda row: _optional(row.memory_mb, ".0f"),
    "Cases": lambda row: str(row.n_cases),
}
_RANKING_COLUMNS: dict[str, Callable[[Summary], str]] = {
    "AUROC": lambda row: _optional(row.auroc, ".2f"),
    "AUPR known": lambda row: _optional(row.aupr_known, ".2f"),
    "AUPR open": lambda row: _optional(row.aupr_open, ".2f"),
    "FPR at 95 %": lambda row: _optional(row.fpr95, ".2f"),
    "OSCR": lambda row: _optional(row.oscr, ".2f"),
    "Cases": lambda row: str(row.n_cases),
}
MARKDOWN = Style(_escaper("|"), "**{}**", "<u>{}</u>")
RST = Style(_escaper("\\*`|_"), "**{}**", "*{}*", ("bold", "italic"), "**{}**", _simple_table)
_LATEX = Style(lambda text: text.translate(_SPECIAL), r"\textbf{{{}}}", r"\underline{{{}}}", plus_minus=r"$\pm$")


def to_text(table: TableNumbers, style: Style) -> str:
    """Write all tables, without section headings, so that any page can include them."""
    sections = (
        (_SUMMARY, ["Method", *_SUMMARY_COLUMNS], _summary_lines),
        (_RANKING, ["Method", *_RANKING_COLUMNS], _ranking_lines),
        (_COMPARISONS.format(table.reference, table.reference), _COMPARISON_HEADING, _comparison_lines),
        (_STATISTICS, _STATISTICS_HEADING, _statistics_lines),
        (_CELLS.format(*style.legend), ["Data", "Method", *map(_heading, table.columns)], _cell_lines),
    )
    parts: list[str] = []
    for text, heading, lines_of in sections:
        found = {encoder: lines for encoder in table.encoders if (lines := lines_of(table, encoder, style))}
        parts += [text] if found else []
        for encoder, lines in found.items():
            parts += [style.heading.format(f"Encoder: {style.escape(encoder)}"), style.table(heading, lines)]
            if lines_of in (_summary_lines, _comparison_lines):
                parts += map(style.escape, table.notes[encoder])
    return "\n\n".join(parts) + "\n"


def _cell_lines(table: TableNumbers, encoder: str, style: Style) -> list[list[str]]:
    most_seeds = max(cell.n_seeds for cell in table.cells.values())
    return [
        [
            style.escape(_DATA_NAMES.get(data, data)),
            style.escape(method),
            *("" if cell is None else _marked(cell, most_seeds, style) for cell in cells),
        ]
        for data, method, cells in table.rows(encoder)
    ]


def _marked(cell: Cell, most_seeds: int, style: Style) -> str:
    """Write mean and spread, and what follows: the seeds where some are missing, the paper's number."""
    number = f"{cell.mean:.2f}" + ("" if cell.std is None else f" {style.plus_minus} {cell.std:.2f}")
    missing = "" if cell.n_seeds == most_seeds else f" [{cell.n_seeds} of {most_seeds} seeds]"
    paper = "" if cell.paper is None else f" ({cell.paper:.2f})"
    return {1: style.best, 2: style.second}.get(cell.rank, "{}").format(number) + missing + paper


def _summaries(table: TableNumbers, encoder: str) -> list[Summary]:
    return [row for row in table.summaries if row.encoder == encoder]


def _ranking_lines(table: TableNumbers, encoder: str, style: Style) -> list[list[str]]:
    """Write nothing as long as results of an earlier version are among them, which have the AUROC alone."""
    rows = _summaries(table, encoder)
    if any(row.auroc is not None and row.fpr95 is None for row in rows):
        return []
    return _lines_of([row for row in rows if row.fpr95 is not None], style, _RANKING_COLUMNS)


def _statistics_lines(table: TableNumbers, encoder: str, style: Style) -> list[list[str]]:
    """Write nothing where each cell has one seed: there both readings are the same."""
    tests = {(test.method, test.metric): test for test in table.comparisons if test.encoder == encoder}
    rows = {row.method: row for row in _summaries(table, encoder) if row.f1_variance is not None}
    lines = []
    for method, row in rows.items():
        if (method, "f1") not in tests:
            continue
        line = [style.escape(method)]
        for metric, variance in (("f1", row.f1_variance), ("accuracy", row.accuracy_variance)):
            test = tests[method, metric]
            numbers = (test.t_statistic, ".2f"), (test.p_value, ".1g"), (test.cell_holm, ".1g"), (variance, ".2f")
            line += [_optional(value, form) for value, form in numbers]
        lines.append(line)
    return lines


def _summary_lines(table: TableNumbers, encoder: str, style: Style) -> list[list[str]]:
    return _lines_of(_summaries(table, encoder), style, _SUMMARY_COLUMNS)


def _lines_of(rows: list[Summary], style: Style, columns: dict[str, Callable[[Summary], str]]) -> list[list[str]]:
    return [[style.escape(row.method), *(write(row) for write in columns.values())] for row in rows]


def _comparison_lines(table: TableNumbers, encoder: str, style: Style) -> list[list[str]]:
    found = {(test.method, test.metric): test for test in table.comparisons if test.encoder == encoder}
    lines = []
    for method in dict.fromkeys(method for method, _ in found):
        tests = [found.get((method, metric)) for metric in COMPARED]
        texts = ["" if test is None else f"{test.difference:+.2f} (p = {test.holm:.1g})" for test in tests]
        lines.append([style.escape(method), *texts])
    return lines


def _with_spread(mean: float, std: float | None) -> str:
    return f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def _two_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _optional(value: float | None, form: str, without: str = "") -> str:
    return without if value is None else format(value, form)


def to_csv(table: TableNumbers) -> str:
    """Write the cells as comma-separated values, each number in a column of its own."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    kinds = ("mean", "std", "seeds", "paper", "rank")
    names = [f"{_heading(column)} {kind}" for column in table.columns for kind in kinds]
    writer.writerow(["encoder", "data", "method", *names])
    for encoder in table.encoders:
        for data, method, cells in table.rows(encoder):
            numbers = [value for cell in cells for value in (cell or [None] * len(kinds))]
            texts = [f"{value:.4f}" if isinstance(value, float) else value for value in numbers]
            writer.writerow([encoder, data, method, *texts])
    return stream.getvalue()


def to_latex(table: TableNumbers) -> str:
    """Write one ``table*`` for each encoder, with the packages ``booktabs`` and ``multirow``."""
    return "\n".join(_latex(table, encoder) for encoder in table.encoders)


def _latex(table: TableNumbers, encoder: str) -> str:
    columns, width = table.columns, len(METRICS)
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
    for data, group in groupby(_cell_lines(table, encoder, _LATEX), key=lambda line: line[0]):
        rows = [texts for _, *texts in group]
        names = [rf"\multirow{{{len(rows)}}}{{*}}{{{data}}}", *[""] * (len(rows) - 1)]
        lines.append(r"\midrule")
        lines += [" & ".join([name, *texts]) + r" \\" for name, texts in zip(names, rows, strict=True)]
    legend = _LATEX.escape(_CELLS.format(*_LATEX.legend))
    legend = " ".join([legend, *map(_LATEX.escape, table.notes[encoder])])
    caption = rf"\caption{{Encoder: {_LATEX.escape(encoder)}. {legend}}}"
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", caption, r"\end{table*}", ""])


def _heading(column: Column) -> str:
    ratio, metric = column
    return f"Average {METRICS[metric]}" if ratio is None else f"{ratio:.0%} {METRICS[metric]}"
