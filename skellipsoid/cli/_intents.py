"""Per-class results: the proportion of the texts of each intent that is right, wrong or predicted open."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.messages import shortened
from .._held_out.table import FEWEST_OF_CLASS

#: An intent that is predicted for a larger proportion of another one's texts is named.
_CONFUSED = 0.1


class Intent(NamedTuple):
    """The results of one intent; rates of 0 to 1."""

    label: Any
    n_texts: int
    right: float
    wrong: float
    rejected: float
    #: The class that is often predicted for its texts; ``None`` if there is none.
    other: Any


def intents(classifier: Any) -> str | None:
    """Write the results of each intent, the worst first, by the texts that the fit held out; ``None`` without any."""
    found = held_out_intents(classifier)
    if found is None:
        return None
    rows = [f"{'':32}{'texts':>6}{'right':>8}{'wrong':>7}{'handed over':>13}"]
    for row in found:
        name = shortened(printable(row.label), 30)
        if not row.n_texts:
            rows.append(f"{name:32}     0  (none could be left out: add texts)")
            continue
        numbers = [f"{100 * rate:.0f}" for rate in (row.right, row.wrong, row.rejected)]
        said = f"   {'; '.join(advice)}" if (advice := advice_on(row)) else ""
        rows.append(f"{name:32}{row.n_texts:6}{numbers[0]:>8}{numbers[1]:>7}{numbers[2]:>13}{said}")
    return "\n".join(["Intents, the worst first, by training texts that were left out (of 100 of each):", "", *rows])


def advice_on(row: Intent, *, is_tested: bool = False) -> list[str]:
    """Say what to do about an intent; the number of its test texts says nothing of those that train it."""
    advice = [f"add texts, {FEWEST_OF_CLASS} or more"] if row.n_texts < FEWEST_OF_CLASS and not is_tested else []
    if row.other is not None:
        advice.append(f"often taken for {shortened(printable(row.other), 30)}")
    return advice


def held_out_intents(classifier: Any) -> list[Intent] | None:
    """Count the predictions for the texts that the fit held out.

    Every known intent is there, also those that the test held out as open.
    """
    held = getattr(classifier, "held_out_", None)
    if held is None:
        return None
    known, n_classes = ~held.is_open, len(classifier.classes_)
    own, nearest = (classifier._encode(column[known]) for column in (held.label, held.nearest_class))
    predictions = np.where(
        held.score[known] < classifier.offset_ + classifier.class_offsets_[nearest], n_classes, nearest
    )
    return rows_of_intents(classifier.classes_, own, predictions, held.weight[known])


def rows_of_intents(
    classes: NDArray[Any],
    own: NDArray[np.int64],
    predictions: NDArray[np.int64],
    weights: NDArray[np.float64],
    fewest: float = 0.0,
) -> list[Intent]:
    """Give the intents, the worst first, by the codes of the labels and predictions; ``len(classes)`` is open.

    An intent is often taken for another if that is predicted for a tenth of its texts, and for at least ``fewest``.
    """
    counts = np.zeros((len(classes), len(classes) + 1))
    np.add.at(counts, (own, predictions), weights)
    totals = counts.sum(axis=1)
    rates = counts / np.maximum(totals, 1e-300)[:, np.newaxis]
    right, rejected = rates.diagonal(), rates[:, -1]
    confused = rates[:, :-1] - np.diag(right)
    wrong = confused.sum(axis=1)  # never below 0, as a difference of sums may be
    rows = []
    for k in np.argsort(right, kind="stable"):
        other = int(confused[k].argmax())
        n_texts = int((own == k).sum()) if totals[k] else 0
        taken_for = classes[other] if confused[k, other] >= max(_CONFUSED, fewest / max(totals[k], 1.0)) else None
        rows.append(Intent(classes[k], n_texts, right[k], wrong[k], rejected[k], taken_for))
    return rows
