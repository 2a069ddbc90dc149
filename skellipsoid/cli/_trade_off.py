"""What limits cost, in a table for those who decide."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.pipelines import less_class_offsets
from .._held_out.kept import held_out_rows
from .._held_out.line import Figure
from .._held_out.scores import ReferenceScores
from .._traffic.forecast import FEWEST_HELD_OUT, Forecast, forecast_as_fitted, forecast_as_set, forecast_placed
from ..metrics._reading import read_closed_set_rows, trade_off_at

#: Shares of known texts that the table's rows reject at most.
_RATES = (0.02, 0.05, 0.1, 0.2)
#: Shares of new messages that are forecast.
_SHARES = (0.05, 0.2, 0.5)
#: Figures of the two tables of forecasts.
_ANSWERED, _ASKED = ("right", "wrong", "rejected", "noticed"), ("asked", "open_asked")
#: What a test calls of a classifier.
MEMBERS = ("predict", "predict_known", "score_samples", "offset_", "class_offsets_")
_ASKED_OF = "asked (predict --ask), of 100: known ones      new ones"
_HEADER = (
    "                         of 100 known texts          of 100 unknown ones",
    "                     right   wrong   to a person     noticed",
)


def held_out_trade_off(classifier: Any) -> str | None:
    """Estimate what other limits of a fitted classifier cost; ``None`` if no class was held out."""
    try:
        rows = held_out_rows(classifier, "train")
    except ValueError:  # a single intent, or one text of each
        return None
    return (
        "What other limits cost, estimated with held-out texts and held-out intents (--rejection-rate sets a limit):\n"
        f"\n{_table(rows)}"
    )


def too_few(held: ReferenceScores) -> str | None:
    """Say that so few texts were held out that a forecast of them does not hold; ``None`` if they are enough."""
    n = len(held.known)
    if n >= FEWEST_HELD_OUT:
        return None
    return (
        f"What users will see is not forecast: the training held out {n} texts, and fewer than {FEWEST_HELD_OUT} do "
        "not tell it; add texts to each intent, or label 30 messages (see review --help)."
    )


def forecasts(classifier: Any) -> dict[str, Forecast]:
    """Foretell how users' messages are answered: as fitted, and with the limit for the shares that operators have."""
    held = ReferenceScores.of(classifier, "train")
    if too_few(held):
        return {}
    # --rejection-rate has set it
    rows = {"as set": forecast_as_set(classifier, held)} if classifier.offset_ else {}
    rows["as fitted"] = forecast_as_fitted(classifier, held)
    placed = {f"limit for {100 * share:.0f} % new": forecast_placed(classifier, held, share) for share in _SHARES}
    return rows | placed


def traffic_forecast(classifier: Any) -> str:
    """Write how users' messages are expected to be answered."""
    rows = forecasts(classifier)
    if not rows:
        return str(too_few(ReferenceScores.of(classifier, "train")))
    return "\n".join(
        [
            "What to expect of users' messages, each with an interval of 90 %. It is a forecast, not a test: users",
            "word their messages otherwise than training texts, and 30 labels tell how much (see review --help).",
            "",
            "                           of 100 known messages               of 100 new ones",
            "                        right        wrong     to a person         noticed",
            *_lines(rows, _ANSWERED),
            "",
            _ASKED_OF,
            *_lines(rows, _ASKED),
        ]
    )


def _lines(rows: Mapping[str, Forecast], names: Sequence[str]) -> list[str]:
    """Write some figures of each forecast."""
    return [
        f"{limit:18}" + "".join(f"{written(row.figures[name]):>14}" for name in names) for limit, row in rows.items()
    ]


def forecast_sentence(classifier: Any) -> str | None:
    """Say in one sentence how users' messages are answered; ``None`` if nothing was held out."""
    try:
        held = ReferenceScores.of(classifier, "demo")
    except ValueError:
        return None
    if (sentence := too_few(held)) is not None:
        return sentence
    figures = forecast_as_set(classifier, held).figures
    right, wrong, rejected, noticed, asked, open_asked = (_limits(figures[name]) for name in (*_ANSWERED, *_ASKED))
    return (
        f"Of 100 known messages of users, expect {right} to be answered right, {wrong} wrong, {rejected} to go to a "
        f"person; of 100 new ones {noticed} to be noticed.\nA bot that asks back (predict --ask) asks about {asked} of "
        f"100 known messages and about {open_asked} of 100 new ones."
    )


def _limits(figure: Figure) -> str:
    return f"{100 * figure.low:.0f} to {100 * figure.high:.0f}"


def before_and_after(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> str:
    """Tell what is foretold of messages to come, with its error: all sides of it, not the better one alone."""

    def both(name: str) -> str:
        was, now = (f"{100 * found[name][0]:.0f} ± {100 * found[name][1]:.0f}" for found in (before, after))
        return f"{was} before, {now} now"

    return (
        f"Of 100 known messages to come (± a standard deviation), right: {both('right')}; wrong: {both('wrong')}; "
        f"to a person: {both('rejected')}. Of 100 new ones, noticed: {both('noticed')}.\n"
        f"Asked about by predict --ask, of 100 known: {both('asked')}; of 100 new: {both('open_asked')}."
    )


def written(figure: Figure) -> str:
    """Write a foretold share in percent, with its interval."""
    return f"{100 * figure.mean:.0f} ({100 * figure.low:.0f}-{100 * figure.high:.0f})"


def tested_trade_off(classifier: Any, features: Any, y_true: Any, advice: str) -> str | None:
    """Tell what other limits cost on test texts; ``None`` unless some are known and some open."""
    rows = tested_rows(classifier, features, y_true)
    return None if rows is None else f"What other limits cost on these texts ({advice}):\n\n{_table(rows)}"


def tested_rows(classifier: Any, features: Any, y_true: Any) -> dict[str, Any] | None:
    """Give labels, answers and scores of test texts as ``held_out_rows`` does; ``None`` as above."""
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


class Limit(NamedTuple):
    """What one limit costs, of 100 texts."""

    name: str
    right: int
    wrong: int
    rejected: int
    noticed: int
    #: Whether it is that of the model.
    is_own: bool


def limits(rows: Mapping[str, Any]) -> list[Limit]:
    """Give the limits of a few rates, the fitted one, and the present one if it was moved, in ascending order."""
    offset = float(rows["offset"])
    read = read_closed_set_rows(**{name: value for name, value in rows.items() if name != "offset"})
    offsets = np.unique([*read.score, np.inf, offset, 0.0])
    rejected, noticed, wrong = trade_off_at(read, offsets)
    lines = [(f"reject at most {100 * rate:2.0f} %", int((rejected <= rate + 1e-12).sum()) - 1) for rate in _RATES]
    lines.append(("as fitted", int(np.searchsorted(offsets, 0.0))))
    if offset != 0:
        lines.append(("as set", int(np.searchsorted(offsets, offset))))
    found = []
    for name, at in sorted(lines, key=lambda line: line[1]):
        known = of_hundred(np.round(1e6 * np.array([1 - wrong[at] - rejected[at], wrong[at], rejected[at]])).tolist())
        is_own = name == ("as fitted" if offset == 0 else "as set")
        found.append(Limit(name, known[0], known[1], known[2], round(100 * float(noticed[at])), is_own))
    return found


def _table(rows: Mapping[str, Any]) -> str:
    """Lay the table of limits out."""
    return "\n".join(
        [
            *_HEADER,
            *(
                f"{row.name:19}{row.right:7}{row.wrong:8}{row.rejected:14}{row.noticed:12}"
                f"{'   <- this model' if row.is_own else ''}"
                for row in limits(rows)
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
