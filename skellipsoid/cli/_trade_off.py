"""Tables of operating points: what each threshold does with known and open texts, tested, held out or forecast."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.pipelines import less_class_offsets
from .._held_out.kept import held_out_of, held_out_rows
from .._held_out.table import HeldOutTable
from .._traffic.forecast import FEWEST_HELD_OUT, Forecast, forecast_as_fitted, forecast_as_set, forecast_placed
from .._traffic_model.threshold import Figure
from ..metrics._reading import read_closed_set_rows, trade_off_at

#: Proportions of known texts that the rows of the table reject at most.
_RATES = (0.02, 0.05, 0.1, 0.2)
#: Proportions of open messages that are forecast.
_PROPORTIONS = (0.05, 0.2, 0.5)
#: Figures of the two tables of forecasts.
_PREDICTED, _ASKED = ("right", "wrong", "rejected", "noticed"), ("asked", "open_asked")
#: Methods and attributes of a classifier that a test uses.
MEMBERS = ("predict", "predict_known", "score_samples", "offset_", "class_offsets_")
_HEADER = (
    "                         of 100 known texts          of 100 open ones",
    "                     right   wrong   handed over    detected",
)


def held_out_trade_off(classifier: Any) -> str | None:
    """Estimate what other thresholds of a fitted classifier do; ``None`` if no class was held out."""
    try:
        rows = held_out_rows(classifier, "train")
    except ValueError:  # a single intent, or one text of each
        return None
    return (
        "Other thresholds, estimated with held-out texts and held-out intents (--rejection-rate sets the threshold):\n"
        f"\n{_table(rows)}"
    )


def too_few(held: HeldOutTable) -> str | None:
    """Say that too few texts were held out for a forecast; ``None`` if there are enough."""
    n = len(held.known)
    if n >= FEWEST_HELD_OUT:
        return None
    return (
        f"There is no forecast for users' messages: the training held out {n} texts, and a forecast needs "
        f"{FEWEST_HELD_OUT}; add texts to each intent, or label 30 messages (see review --help)."
    )


def forecasts(classifier: Any) -> dict[str, Forecast]:
    """Forecast the results on users' messages: as fitted, and with thresholds for usual proportions of open ones."""
    held = held_out_of(classifier, "train")
    if too_few(held):
        return {}
    # --rejection-rate has set it
    rows = {"as set": forecast_as_set(classifier, held)} if classifier.offset_ else {}
    rows["as fitted"] = forecast_as_fitted(classifier, held)
    placed = {
        f"threshold for {100 * proportion:.0f} % open": forecast_placed(classifier, held, proportion)
        for proportion in _PROPORTIONS
    }
    return rows | placed


def traffic_forecast(classifier: Any) -> str:
    """Write the forecast for users' messages as two tables."""
    rows = forecasts(classifier)
    if not rows:
        return str(too_few(held_out_of(classifier, "train")))
    return "\n".join(
        [
            "What to expect of users' messages, each with an interval of 90 %. It is a forecast, not a test: users",
            "word their messages otherwise than training texts, and 30 labels tell how much (see review --help).",
            "",
            f"{'':24}{'of 100 known messages':>36}{'of 100 open ones':>20}",
            f"{'':24}{'right':>14}{'wrong':>14}{'handed over':>14}{'detected':>14}",
            *_lines(rows, _PREDICTED),
            "",
            f"{'predict --ask, of 100:':24}{'known asked':>14}{'open asked':>14}",
            *_lines(rows, _ASKED),
        ]
    )


def _lines(rows: Mapping[str, Forecast], figures: Sequence[str]) -> list[str]:
    """Write some figures of each forecast."""
    return [
        f"{name:24}" + "".join(f"{written(row.figures[figure]):>14}" for figure in figures)
        for name, row in rows.items()
    ]


def forecast_sentence(classifier: Any) -> str | None:
    """Say in two sentences what to expect of users' messages; ``None`` if nothing was held out."""
    try:
        held = held_out_of(classifier, "demo")
    except ValueError:
        return None
    if (sentence := too_few(held)) is not None:
        return sentence
    figures = forecast_as_set(classifier, held).figures
    right, wrong, rejected, detected, asked, open_asked = (_interval(figures[name]) for name in (*_PREDICTED, *_ASKED))
    return (
        f"Of 100 known messages of users, expect {right} right, {wrong} wrong, {rejected} handed over; of 100 open "
        f"ones {detected} detected.\nA bot that asks back (predict --ask) asks about {asked} of 100 known messages and "
        f"{open_asked} of 100 open ones."
    )


def _interval(figure: Figure) -> str:
    return f"{100 * figure.low:.0f} to {100 * figure.high:.0f}"


def before_and_after(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> str:
    """Write the forecasts of two thresholds side by side, each figure with its standard deviation."""

    def both(name: str) -> str:
        was, now = (f"{100 * found[name][0]:.0f} ± {100 * found[name][1]:.0f}" for found in (before, after))
        return f"{was} before, {now} now"

    return (
        f"Of 100 known messages to come (± a standard deviation), right: {both('right')}; wrong: {both('wrong')}; "
        f"handed over: {both('rejected')}. Of 100 open ones, detected: {both('noticed')}.\n"
        f"With predict --ask, known asked: {both('asked')}; open asked: {both('open_asked')}."
    )


def written(figure: Figure) -> str:
    """Write a forecast proportion in percent, with its interval."""
    return f"{100 * figure.mean:.0f} ({100 * figure.low:.0f}-{100 * figure.high:.0f})"


def tested_trade_off(classifier: Any, features: Any, y_true: Any, advice: str) -> str | None:
    """Write what other thresholds do with test texts; ``None`` unless some are known and some open."""
    rows = tested_rows(classifier, features, y_true)
    return None if rows is None else f"Other thresholds on these texts ({advice}):\n\n{_table(rows)}"


def tested_rows(classifier: Any, features: Any, y_true: Any) -> dict[str, Any] | None:
    """Give labels, predictions and scores of test texts as ``held_out_rows`` does; ``None`` as above."""
    is_open = y_true == classifier.open_label_
    if is_open.all() or not is_open.any():
        return None
    nearest = classifier.predict_known(features)
    return {
        "y_true": y_true,
        "y_pred_known": nearest,
        "score": less_class_offsets(classifier, classifier.score_samples(features), nearest),
        "offset": classifier.offset_,
        "open_label": classifier.open_label_,
        "labels": classifier.classes_,
    }


class OperatingPoint(NamedTuple):
    """What one threshold does, of 100 known and of 100 open texts."""

    name: str
    right: int
    wrong: int
    rejected: int
    detected: int
    #: Whether it is that of the model.
    is_of_model: bool


def operating_points(rows: Mapping[str, Any]) -> list[OperatingPoint]:
    """Give the thresholds of a few rates, the fitted one, and the present one if it was moved, in ascending order."""
    offset = float(rows["offset"])
    read = read_closed_set_rows(**{name: value for name, value in rows.items() if name != "offset"})
    offsets = np.unique([*read.score, np.inf, offset, 0.0])
    rejected, detected, wrong = trade_off_at(read, offsets)
    lines = [(f"reject at most {100 * rate:2.0f} %", int((rejected <= rate + 1e-12).sum()) - 1) for rate in _RATES]
    lines.append(("as fitted", int(np.searchsorted(offsets, 0.0))))
    if offset != 0:
        lines.append(("as set", int(np.searchsorted(offsets, offset))))
    found = []
    for name, at in sorted(lines, key=lambda line: line[1]):
        known = of_hundred(np.round(1e6 * np.array([1 - wrong[at] - rejected[at], wrong[at], rejected[at]])).tolist())
        is_of_model = name == ("as fitted" if offset == 0 else "as set")
        found.append(OperatingPoint(name, known[0], known[1], known[2], round(100 * float(detected[at])), is_of_model))
    return found


def _table(rows: Mapping[str, Any]) -> str:
    """Lay out the table of operating points."""
    return "\n".join(
        [
            *_HEADER,
            *(
                f"{row.name:19}{row.right:7}{row.wrong:8}{row.rejected:14}{row.detected:12}"
                f"{'   <- this model' if row.is_of_model else ''}"
                for row in operating_points(rows)
            ),
        ]
    )


def of_hundred(counts: Sequence[float]) -> list[int]:
    """Scale counts to a sum of 100, if it is larger; the largest remainders are rounded up."""
    total = sum(counts)
    if total <= 100:
        return [int(count) for count in counts]
    scaled = [divmod(100 * int(count), int(total)) for count in counts]
    missing = 100 - sum(whole for whole, _ in scaled)
    raised = sorted(range(len(counts)), key=lambda i: -scaled[i][1])[:missing]
    return [whole + (i in raised) for i, (whole, _) in enumerate(scaled)]
