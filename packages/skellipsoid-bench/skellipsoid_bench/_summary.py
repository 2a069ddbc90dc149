"""Each method over all cases: means, costs, and its difference from the reference method."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._paper import paper_figures
from ._statistics import PairedTest, holm, paired_test
from ._store import Record, grouped

#: Figures of the table, with their headings.
METRICS = {"f1": "F1", "accuracy": "ACC"}
#: The paper's own method, with which the cells of every method are compared.
_PAPER_METHOD = "EliDecide"
#: What is compared: the reference's figure, and that of the other method.
COMPARED = {"f1": "f1", "accuracy": "accuracy", "oracle_f1": "f1"}
#: What tells a cell of the paper's table.
_CELL = ("data", "ratio")
_Pair = tuple[float, ...]


class Summary(NamedTuple):
    """A method with one encoder, over all its cases; figures in percent.

    Attributes
    ----------
    encoder, method : str
    n_cases : int
    f1, accuracy : float
        Means.
    f1_std, accuracy_std : float or None
        Standard deviation (n − 1) over the seeds, of the mean over data sets and ratios; ``None`` for one seed, or if
        the seeds do not have the same cases.
    auroc, oracle_f1 : float or None
        Means; F1 at the threshold that is best on the test samples. ``None`` if a case has none.
    aupr_known, aupr_open, fpr95, oscr : float or None
        Means: average precision with known and with open as the positive class, proportion of open samples that are
        accepted where 95 % of the known ones are, area under the OSCR curve. ``None`` if a case has none.
    f1_variance, accuracy_variance : float or None
        Mean over data sets and ratios of the variance over the seeds (n − 1); ``None`` if one has a single seed.
    false_rejection_rate, open_rejection_rate : float or None
        Mean proportions of the known and of the open test samples that are rejected. ``None`` if a case has no
        such samples.
    n_reached, n_compared : int
        Cells of data set, ratio and metric whose mean is at or above that of EliDecide in the paper's Table 1, and
        cells that the paper has.
    fit_seconds : float
        Median.
    predict_seconds : float
        Median for 1,000 samples.
    memory_mb : float or None
        Largest peak memory.
    """

    encoder: str
    method: str
    n_cases: int
    f1: float
    f1_std: float | None
    accuracy: float
    accuracy_std: float | None
    auroc: float | None
    oracle_f1: float | None
    aupr_known: float | None
    aupr_open: float | None
    fpr95: float | None
    oscr: float | None
    f1_variance: float | None
    accuracy_variance: float | None
    false_rejection_rate: float | None
    open_rejection_rate: float | None
    n_reached: int
    n_compared: int
    fit_seconds: float
    predict_seconds: float
    memory_mb: float | None


class Comparison(NamedTuple):
    """A method against the reference, over all cases that both have.

    Attributes
    ----------
    encoder, method : str
    metric : str
        ``"f1"``, ``"accuracy"``, or ``"oracle_f1"``: F1 of the reference as fitted, minus F1 of the method at the
        threshold that is best on the test samples.
    n_cases : int
    difference : float
        Mean of reference − method, in percentage points.
    t_statistic, p_value : float
        Of the paired t-test.
    holm : float
        The p-value after Holm's correction over the methods of this encoder and metric.
    cell_holm : float or None
        Likewise, of the test on the means over the seeds: seeds share test samples, so that cases of several seeds are
        not independent. ``None`` with fewer than two cells of data set and ratio.
    """

    encoder: str
    method: str
    metric: str
    n_cases: int
    difference: float
    t_statistic: float
    p_value: float
    holm: float
    cell_holm: float | None


def summarize(records: Sequence[Record]) -> list[Summary]:
    """Summarize each method with each encoder, those with the highest F1 first."""
    encoders = [encoder for (encoder,) in grouped(records, "encoder")]
    groups = grouped(records, "encoder", "method").items()
    found = [_summary(encoder, method, rows) for (encoder, method), rows in groups]
    return sorted(found, key=lambda row: (encoders.index(row.encoder), -row.f1))


def _summary(encoder: str, method: str, records: Sequence[Record]) -> Summary:
    n_reached, n_compared = _reached(records)
    ranking = ("auroc", "oracle_f1", "aupr_known", "aupr_open", "fpr95", "oscr")
    return Summary(
        encoder=encoder,
        method=method,
        n_cases=len(records),
        f1=float(np.mean([record["f1"] for record in records])),
        f1_std=_spread(records, "f1"),
        accuracy=float(np.mean([record["accuracy"] for record in records])),
        accuracy_std=_spread(records, "accuracy"),
        **{name: _over(records, name, np.mean) for name in ranking},
        f1_variance=_variance(records, "f1"),
        accuracy_variance=_variance(records, "accuracy"),
        false_rejection_rate=_rejected(records, is_open=False),
        open_rejection_rate=_rejected(records, is_open=True),
        n_reached=n_reached,
        n_compared=n_compared,
        fit_seconds=float(np.median([record["fit_seconds"] for record in records])),
        predict_seconds=float(np.median([1000 * record["predict_seconds"] / record["n_test"] for record in records])),
        memory_mb=_over(records, "peak_memory_mb", np.max),
    )


def _rejected(records: Sequence[Record], *, is_open: bool) -> float | None:
    counts = np.array([record["coarse"][is_open] for record in records])
    totals = counts.sum(axis=1)
    return 100 * float(np.mean(counts[:, -1] / totals)) if totals.all() else None


def _over(records: Sequence[Record], name: str, function: Callable[[Any], Any]) -> float | None:
    values = [record.get(name) for record in records]
    return None if None in values else float(function(values))


def _spread(records: Sequence[Record], metric: str) -> float | None:
    """Give the standard deviation over the seeds of the mean over the cases of a seed."""
    seeds = list(grouped(records, "seed").values())
    cells = [grouped(rows, *_CELL).keys() for rows in seeds]
    if len(seeds) < 2 or any(found != cells[0] for found in cells):
        return None
    return float(np.std([np.mean([record[metric] for record in rows]) for rows in seeds], ddof=1))


def _variance(records: Sequence[Record], metric: str) -> float | None:
    cells = grouped(records, *_CELL).values()
    if any(len(rows) < 2 for rows in cells):
        return None
    return float(np.mean([np.var([record[metric] for record in rows], ddof=1) for rows in cells]))


def _reached(records: Sequence[Record]) -> tuple[int, int]:
    paper = {(row.data, row.ratio): row for row in paper_figures() if row.method == _PAPER_METHOD}
    reached = [
        np.mean([record[metric] for record in rows]) >= getattr(paper[cell], metric)
        for cell, rows in grouped(records, *_CELL).items()
        if cell in paper
        for metric in METRICS
    ]
    return int(np.sum(reached)), len(reached)


def compare(records: Sequence[Record], reference: str) -> list[Comparison]:
    """Compare the reference with every other method, for each encoder and metric."""
    comparisons = []
    for (encoder,), of_encoder in grouped(records, "encoder").items():
        others = {
            method: {case: rows[-1] for case, rows in grouped(of_method, *_CELL, "seed").items()}
            for (method,), of_method in grouped(of_encoder, "method").items()
        }
        ours = others.pop(reference, {})
        for metric, our_metric in COMPARED.items():
            pairs = {
                method: {
                    case: (ours[case][our_metric], theirs[case][metric])
                    for case in sorted(ours.keys() & theirs.keys())
                    if theirs[case][metric] is not None
                }
                for method, theirs in others.items()
            }
            tests, corrected = _tests(pairs)
            _, by_cell = _tests({method: _over_seeds(each) for method, each in pairs.items()})
            for method, test in tests.items():
                numbers = test.mean_difference, test.t_statistic, test.t_pvalue, corrected[method], by_cell.get(method)
                comparisons.append(Comparison(encoder, method, metric, test.n_pairs, *numbers))
    return comparisons


def _over_seeds(pairs: Mapping[tuple[Any, ...], _Pair]) -> dict[tuple[Any, ...], _Pair]:
    """Mean over the seeds of each data set and ratio."""
    cells: dict[tuple[Any, ...], list[_Pair]] = {}
    for (*cell, _), pair in pairs.items():
        cells.setdefault(tuple(cell), []).append(pair)
    return {cell: tuple(np.mean(found, axis=0).tolist()) for cell, found in cells.items()}


def _tests(pairs: Mapping[str, Mapping[Any, _Pair]]) -> tuple[dict[str, PairedTest], dict[str, float]]:
    """Test each method that has two pairs, and correct the p-values for their number."""
    tests = {method: paired_test(*zip(*each.values(), strict=True)) for method, each in pairs.items() if len(each) > 1}
    corrected = holm([test.t_pvalue for test in tests.values()]).tolist() if tests else []
    return tests, dict(zip(tests, corrected, strict=True))
