"""The HTML report of ``train`` and ``evaluate``: the printed figures with a histogram, from the same functions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._traffic.forecast import Forecast
from .._traffic_model.threshold import Figure
from ..metrics._reading import read_closed_set_rows, trade_off_at
from ._intents import Intent, advice_on, held_out_intents, rows_of_intents
from ._pages.page import write_page
from ._trade_off import operating_points

#: Bars of the histogram, points of the curve that the slider follows, and pairs of classes.
_N_BARS, _N_POINTS, _MOST_PAIRS = 40, 101, 20


class Judged(NamedTuple):
    """The model and the texts of a report."""

    classifier: Any
    #: Labels, predictions and scores, as ``held_out_rows`` gives them; ``None`` without known and open texts.
    rows: Mapping[str, Any] | None
    #: Test texts, the label of each, the open one where it is of no class, and the prediction; none without a test.
    texts: NDArray[Any]
    truth: NDArray[Any]
    predicted: NDArray[Any]


def save_report(
    path: Path,
    title: str,
    facts: Sequence[tuple[str, str]],
    judged: Judged,
    expected: Mapping[str, Forecast] | None = None,
    findings: Sequence[str] = (),
) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
    title : str
    facts : sequence of (name, value)
        What the report is on.
    judged : Judged
    expected : mapping of Forecast, default=None
        The forecast for users' messages.
    findings : sequence of str, default=()
        What the check of the texts found.
    """
    data = {
        "title": title,
        "facts": [[name, value] for name, value in facts],
        "tested": len(judged.texts),
        "forecasts": [_forecast(name, row) for name, row in (expected or {}).items()],
        "threshold": None if judged.rows is None else _threshold(judged.rows),
        "classes": _classes(judged),
        "opened": _opened(judged),
        "pairs": _pairs(judged),
        "findings": list(findings),
    }
    write_page(path, "report", title, data)


def _forecast(name: str, row: Forecast) -> dict[str, Any]:
    names = ("right", "wrong", "handed over", "detected", "known asked", "open asked")
    return {"name": name, "figures": dict(zip(names, map(_figure, row.figures.values()), strict=True))}


def _figure(figure: Figure) -> list[int]:
    return [round(100 * proportion) for proportion in (figure.mean, figure.low, figure.high)]


def _threshold(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Give the histogram of the scores, and what each threshold does."""
    offset = float(rows["offset"])
    read = read_closed_set_rows(**{name: value for name, value in rows.items() if name != "offset"})
    scores, weights, known = read.score, read.problem.weight, read.is_known
    low, high = np.quantile(scores, [0.005, 0.995])
    low, high = min(float(low), offset), max(float(high), offset)
    edges = np.linspace(low, high if high > low else low + 1, _N_BARS + 1)
    within = np.clip(scores, edges[0], edges[-1])
    points = np.unique(np.append(np.linspace(edges[0], edges[-1], _N_POINTS), offset))
    rejected, detected, wrong = trade_off_at(read, points)
    curve = np.stack([points, 100 * (1 - wrong - rejected), 100 * wrong, 100 * rejected, 100 * detected], axis=1)
    bars = [np.histogram(within[part], edges, weights=weights[part])[0] for part in (known, ~known)]
    return {
        "edges": _plain(edges),
        "known": _plain(bars[0] / max(bars[0].sum(), 1e-300)),
        "open": _plain(bars[1] / max(bars[1].sum(), 1e-300)),
        "offset": offset,
        "curve": [_plain(point) for point in curve],
        "rows": [row._asdict() for row in operating_points(rows)],
    }


def _plain(values: NDArray[np.float64]) -> list[float]:
    """Round to what a picture shows."""
    found: list[float] = np.round(values, 5).tolist()
    return found


def _codes(judged: Judged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the codes of the classes of known test texts, and those of the predictions for them."""
    classes = judged.classifier.classes_
    known = np.isin(judged.truth, classes)
    is_known = np.isin(judged.predicted, classes)
    predictions = np.where(is_known, np.searchsorted(classes, judged.predicted), len(classes))
    return np.searchsorted(classes, judged.truth[known]), predictions[known]


def _classes(judged: Judged) -> list[dict[str, Any]]:
    """Give the classes, the worst first, each with its test texts that go wrong."""
    if len(judged.texts):
        own, predictions = _codes(judged)
        found: list[Intent] = rows_of_intents(judged.classifier.classes_, own, predictions, np.ones(len(own)), fewest=2)
        found = [row for row in found if row.n_texts]
    else:
        found = held_out_intents(judged.classifier) or []
    missed: dict[Any, list[list[str]]] = {row.label: [] for row in found}
    for text, label, predicted in zip(judged.texts, judged.truth.tolist(), judged.predicted.tolist(), strict=True):
        if label != predicted and label in missed:
            missed[label].append([str(text), str(predicted)])
    return [
        {
            "name": str(row.label),
            "texts": row.n_texts,
            **{name: round(100 * getattr(row, name)) for name in ("right", "wrong", "rejected")},
            "advice": "; ".join(advice_on(row, is_tested=len(judged.texts) > 0)),
            "missed": missed[row.label],
        }
        for row in found
    ]


def _opened(judged: Judged) -> dict[str, Any] | None:
    """Count the open test texts, and give those for which a known class is predicted."""
    is_open = judged.truth == judged.classifier.open_label_
    if not is_open.any():
        return None
    mistaken = np.flatnonzero(is_open & (judged.predicted != judged.truth)).tolist()
    missed = [[str(judged.texts[row]), str(judged.predicted[row])] for row in mistaken]
    return {"texts": int(is_open.sum()), "detected": int(is_open.sum()) - len(mistaken), "missed": missed}


def _pairs(judged: Judged) -> list[list[Any]]:
    """Give the pairs of classes that are taken for each other, the most frequent first: two names and a number."""
    if len(judged.texts):
        known = np.isin(judged.truth, judged.classifier.classes_)
        own, predictions = judged.truth[known], judged.predicted[known]
    elif (held := getattr(judged.classifier, "held_out_", None)) is not None:
        known = ~held.is_open & (held.score >= judged.classifier.offset_)
        own, predictions = held.label[known], held.nearest_class[known]
    else:
        return []
    opened = judged.classifier.open_label_
    pairs = Counter(
        (str(label), str(predicted))
        for label, predicted in zip(own.tolist(), predictions.tolist(), strict=True)
        if predicted not in (label, opened)
    )
    return [[*pair, count] for pair, count in pairs.most_common(_MOST_PAIRS)]
