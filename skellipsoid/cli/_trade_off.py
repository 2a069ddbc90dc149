"""What operating points cost, in a table for those who decide."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core.answers import read_closed_set_rows, trade_off_at
from .._core.pipelines import less_class_offsets
from .._held_out.kept import held_out_rows
from .._held_out.line import place_line
from .._held_out.scores import HeldOutScores
from .._traffic.log import Log

#: Shares of known texts that the table's rows reject at most.
_RATES = (0.02, 0.05, 0.1, 0.2)
#: Shares of new texts that are forecast.
_SHARES = (0.02, 0.05, 0.2, 0.5)
#: What a test calls of a classifier.
MEMBERS = ("predict", "predict_known", "score_samples", "offset_", "class_offsets_")
_HEADER = (
    "                         of 100 known texts          of 100 unknown ones",
    "                     right   wrong   to a person     noticed",
)


def held_out_trade_off(classifier: Any) -> str | None:
    """Estimate what other operating points of a fitted classifier cost; ``None`` if no class was held out."""
    try:
        rows = held_out_rows(classifier, "train")
    except ValueError:  # a single intent, or one text of each
        return None
    return (
        "What other limits cost, estimated with held-out texts and held-out intents (--rejection-rate sets a limit):\n"
        f"\n{_table(rows)}"
    )


def share_forecast(classifier: Any) -> str:
    """Forecast F1 at the shares of new texts that operators have, as fitted and with the limit for the share."""
    held, log, n_classes = HeldOutScores.of(classifier, "train"), Log.empty(), len(classifier.classes_)
    lines = []
    for share in _SHARES:
        line = place_line(held, log.fit(held, share), log.scores, n_classes)
        known, f1, set_f1 = (100 * part for part in (line.rejected, line.f1_fitted, line.f1))
        lines.append(f"{100 * share:5.0f} %{f1:12.0f}{set_f1:15.0f}{known:15.0f}{100 * line.noticed:12.0f}")
    return "\n".join(
        [
            "What to expect of users' messages, by how many of them are new. It is a forecast, not a test: known ones",
            "may lie as far from the training texts as those of other bots did (30 labels tell, see review --help):",
            "",
            "                  F1              of 100 known  of 100 new",
            "    new   as fitted   limit for it   to a person     noticed",
            *lines,
        ]
    )


def tested_trade_off(classifier: Any, features: Any, y_true: Any, advice: str) -> str | None:
    """Tell what other operating points cost on test texts; ``None`` unless some are known and some open."""
    is_open = y_true == classifier.open_label_
    if is_open.all() or not is_open.any():
        return None
    nearest = classifier.predict_known(features)
    rows = {
        "y_true": y_true,
        "y_pred_known": nearest,
        "score": less_class_offsets(classifier, classifier.score_samples(features), nearest),
        "offset": classifier.offset_,
        "open_label": classifier.open_label_,
        "labels": classifier.classes_,
    }
    return f"What other limits cost on these texts ({advice}):\n\n{_table(rows)}"


def _table(rows: Mapping[str, Any]) -> str:
    """Lay the table out: a row for each rate, the fitted limit, and the present one if it was moved."""
    offset = float(rows["offset"])
    read = read_closed_set_rows(**{name: value for name, value in rows.items() if name != "offset"})
    offsets = np.unique([*read.score, np.inf, offset, 0.0])
    rejected, noticed, wrong = trade_off_at(read, offsets)
    lines = [(f"reject at most {100 * rate:2.0f} %", int((rejected <= rate + 1e-12).sum()) - 1) for rate in _RATES]
    lines.append(("as fitted", int(np.searchsorted(offsets, 0.0))))
    present = int(np.searchsorted(offsets, offset))
    if offset != 0:
        lines.append(("as set", present))
    written = []
    for name, at in sorted(lines, key=lambda line: line[1]):
        known = of_hundred(np.round(1e6 * np.array([1 - wrong[at] - rejected[at], wrong[at], rejected[at]])).tolist())
        mark = "   <- this model" if name == ("as fitted" if offset == 0 else "as set") else ""
        found = 100 * noticed[at]
        written.append(f"{name:19}{known[0]:7}{known[1]:8}{known[2]:14}{found:12.0f}{mark}")
    return "\n".join([*_HEADER, *written])


def of_hundred(counts: Sequence[float]) -> list[int]:
    """Scale counts to a sum of 100, if it is larger; the largest remainders are rounded up."""
    total = sum(counts)
    if total <= 100:
        return [int(count) for count in counts]
    scaled = [divmod(100 * int(count), int(total)) for count in counts]
    missing = 100 - sum(whole for whole, _ in scaled)
    raised = sorted(range(len(counts)), key=lambda i: -scaled[i][1])[:missing]
    return [whole + (i in raised) for i, (whole, _) in enumerate(scaled)]
