"""Pictures of results: mean ranks, parameter stability, coarse confusion matrices. They need matplotlib."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skellipsoid.plotting import OpenSetConfusionMatrixDisplay

from ._critical_difference import CriticalDifferenceDisplay
from ._drawing import require_matplotlib
from ._store import Record, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "D", "v", "P")
#: Figures of a record that a picture can show, with their names.
FIGURES = {
    "f1": "F1",
    "accuracy": "accuracy",
    "f1_known": "F1 of known classes",
    "f1_open": "F1 of open",
    "auroc": "AUROC",
    "aupr_known": "AUPR of known",
    "aupr_open": "AUPR of open",
    "oscr": "OSCR",
    "oracle_f1": "oracle F1",
}
#: Largest value over smallest one, from which on a parameter's axis is logarithmic.
_LOGARITHMIC = 10
#: A logarithmic axis with at most this many values has a tick at each.
_MOST_TICKS = 8
_MOST_COLUMNS = 4


def plot_ranks(
    records: Iterable[Record],
    *,
    metric: str = "f1",
    over: str = "cells",
    alpha: float = 0.05,
    ax: "Axes | None" = None,
) -> CriticalDifferenceDisplay:
    """Draw the critical-difference diagram of all methods over what every one of them has.

    Parameters
    ----------
    records : iterable of dict
        If there are several encoders, each pair of method and encoder is ranked as one method.
    metric : str, default="f1"
        ``"f1"``, ``"accuracy"``, ``"f1_known"``, ``"f1_open"``, ``"auroc"``, ``"aupr_known"``, ``"aupr_open"``,
        ``"oscr"`` or ``"oracle_f1"``.
    over : {"cells", "cases"}, default="cells"
        What is ranked: means over the seeds of each data set and ratio, or every case. Seeds of one data set share test
        samples, so that cases are not independent, and differences look more significant than they are.
    alpha : float, default=0.05
        Level of the Nemenyi test.
    ax : matplotlib Axes, default=None
        Where to draw; ``None`` makes a new figure.

    Returns
    -------
    display : CriticalDifferenceDisplay

    Raises
    ------
    ValueError
        If there are fewer than three methods, or fewer than two cells or cases that all have.
    ImportError
        If matplotlib is not installed.
    """
    if over not in ("cells", "cases"):
        raise ValueError(f"over={over!r} is unknown; use 'cells' or 'cases'.")
    records = _read(records, metric)
    several = len(grouped(records, "encoder")) > 1
    scores: dict[str, dict[tuple[Any, ...], float]] = {}
    present = [record for record in records if record.get(metric) is not None]
    for (method, encoder), rows in grouped(present, "method", "encoder").items():
        found = {(record["data"], record["ratio"], record["seed"]): record[metric] for record in rows}
        scores[f"{method} ({encoder})" if several else method] = found
    cases = sorted(set.intersection(*(set(found) for found in scores.values()))) if scores else []
    table = np.array([[found[case] for found in scores.values()] for case in cases]).reshape(len(cases), len(scores))
    if over == "cells":
        cells = [case[:2] for case in cases]
        means = [table[[each == cell for each in cells]].mean(axis=0) for cell in dict.fromkeys(cells)]
        table = np.array(means).reshape(len(means), len(scores))
    return CriticalDifferenceDisplay.from_scores(table, list(scores), unit=over, alpha=alpha, ax=ax)


def plot_stability(
    records: Iterable[Record], parameter: str, *, metric: str = "f1", ax: "Axes | None" = None
) -> "Axes":
    """Draw a metric against a parameter, one line for each data set and known-class ratio.

    If the parameter was searched, F1 is that of the search (``OpenSetKFold`` on train and dev samples), with the chosen
    values of all other parameters. If not, methods or encoders that differ in this parameter only are compared on the
    test samples.

    Parameters
    ----------
    records : iterable of dict
    parameter : str
        Of methods or of encoders.
    metric : str, default="f1"
        As in :func:`plot_ranks`. A search has ``"f1"`` only; other metrics are compared on the test samples.
    ax : matplotlib Axes, default=None
        Where to draw; ``None`` makes a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Raises
    ------
    ValueError
        If no result has two values of the parameter.
    ImportError
        If matplotlib is not installed.
    """
    records = _read(records, metric)
    found, label = _searched(records, parameter), "F1 of held-out folds"
    if not found or metric != "f1":
        found, label = _compared(records, parameter, metric), f"{FIGURES[metric]} of test samples"
    found = {name: points for name, points in found.items() if len(points) > 1}
    if not found:
        raise ValueError(
            f"No result has two values of {parameter!r}; search it, or run methods that differ in it alone."
        )
    if ax is None:
        require_matplotlib("plot_stability")
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=(6.4, 4.6 + 0.2 * len(found)), layout="constrained")[1]
    values = sorted({value for points in found.values() for value in points}, key=_order)
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    for turn, (name, points) in enumerate(found.items()):
        ordered = sorted(points, key=_order)
        x = ordered if is_number else [values.index(value) for value in ordered]
        y = [np.mean(points[value]) for value in ordered]
        spread = [float(np.std(points[value], ddof=1)) if len(points[value]) > 1 else 0.0 for value in ordered]
        ax.errorbar(x, y, yerr=spread, marker=_MARKERS[turn % len(_MARKERS)], capsize=2, label=name)
    if not is_number:
        ax.set_xticks(range(len(values)), [str(value) for value in values])
    elif min(values) > 0 and max(values) >= _LOGARITHMIC * min(values):
        ax.set_xscale("log")
        if len(values) <= _MOST_TICKS:
            ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.minorticks_off()
    ax.set(xlabel=parameter, ylabel=f"{label}, in percent")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0, ncols=2, frameon=False)
    return ax


def plot_confusion(records: Iterable[Record]) -> "Figure":
    """Draw the coarse confusion matrix (known against open) of every method, summed over the given cases.

    Parameters
    ----------
    records : iterable of dict
        Results, preferably of one data set and ratio.

    Returns
    -------
    figure : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no results.
    ImportError
        If matplotlib is not installed.
    """
    records = _read(records, "f1")
    require_matplotlib("plot_confusion")
    from matplotlib import pyplot as plt

    runs = grouped(records, "method", "encoder")
    counts = {name: np.sum([record["coarse"] for record in rows], axis=0) for name, rows in runs.items()}
    columns = min(len(counts), _MOST_COLUMNS)
    rows = -(-len(counts) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.6 * columns, 3.0 * rows), layout="constrained", squeeze=False)
    for axes in grid.flat[len(counts) :]:
        axes.set_axis_off()
    for axes, ((method, encoder), coarse) in zip(grid.flat, counts.items(), strict=False):
        # A matrix of two known classes with these sums.
        matrix = np.array([coarse[0], [0, 0, 0], [coarse[1][1], 0, coarse[1][2]]])
        OpenSetConfusionMatrixDisplay(matrix).plot(ax=axes, coarse=True, colorbar=False)
        axes.set_title(f"{method}, {encoder}", fontsize=10)
    return figure


def _read(records: Iterable[Record], metric: str) -> list[Record]:
    if metric not in FIGURES:
        raise ValueError(f"metric={metric!r} is not a figure of a result; use {', '.join(FIGURES)}.")
    found = list(records)
    if not found:
        raise ValueError("There is no result to draw; run the benchmark first, or choose others.")
    return found


Lines = dict[str, dict[Any, list[float]]]


def _searched(records: Sequence[Record], parameter: str) -> Lines:
    lines: Lines = {}
    for record in records:
        search = record["search"]
        if not search or parameter not in search["chosen"]:
            continue
        others = {name: value for name, value in search["chosen"].items() if name != parameter}
        for score in search["scores"]:
            if all(score["params"][name] == value for name, value in others.items()):
                name = _line_name(records, record)
                lines.setdefault(name, {}).setdefault(_plain(score["params"][parameter]), []).append(score["f1"])
    return lines


def _compared(records: Sequence[Record], parameter: str, metric: str) -> Lines:
    """Group the results by everything but the parameter; a line has the name of its first result."""
    groups: dict[str, tuple[Record, dict[Any, list[float]]]] = {}
    for record in records:
        params = {"method": record["params"], "encoder": record["encoder_params"] or {}}
        rest = [{name: value for name, value in each.items() if name != parameter} for each in params.values()]
        for varied, kept in (("method", "encoder"), ("encoder", "method")):
            if parameter in params[varied] and record.get(metric) is not None:
                told = [record["data"], record["ratio"], record[kept], record["estimator"], rest]
                points = groups.setdefault(json.dumps(told, sort_keys=True), (record, {}))[1]
                points.setdefault(_plain(params[varied][parameter]), []).append(record[metric])
    drawn = [group for group in groups.values() if len(group[1]) > 1]
    first = [record for record, _ in drawn]
    lines: Lines = {}
    for record, points in drawn:
        name = _line_name(first, record)
        lines[name if name not in lines else f"{name} ({len(lines)})"] = points
    return lines


def _line_name(records: Sequence[Record], record: Record) -> str:
    """Name a line by what tells it from others."""
    several = [name for name in ("encoder", "method") if len({other[name] for other in records}) > 1]
    return ", ".join([f"{record['data']} {record['ratio']:.0%}", *(record[name] for name in several)])


def _plain(value: Any) -> int | float | str:
    """Give a value that can be a key."""
    return value if isinstance(value, int | float | str) else str(value)


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value
