"""How the texts of each intent fare."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.messages import shortened
from .._held_out.table import FEWEST_OF_CLASS

#: Share of an intent's texts that another intent takes, above which it is named.
_CONFUSED = 0.1


class Intent(NamedTuple):
    """How the texts of one intent fare; shares of 0 to 1."""

    label: Any
    n_texts: int
    right: float
    wrong: float
    rejected: float
    #: The class that often takes its texts; ``None`` if none does.
    other: Any


def intents(classifier: Any) -> str | None:
    """Tell how each intent fares, the worst first, by the texts that the fit held out; ``None`` if there are none."""
    found = held_out_intents(classifier)
    if found is None:
        return None
    rows = [f"{'':32}{'texts':>6}{'right':>8}{'wrong':>7}{'to a person':>13}"]
    for row in found:
        name = shortened(printable(row.label), 30)
        if not row.n_texts:
            rows.append(f"{name:32}     0  (none could be left out: add texts)")
            continue
        numbers = [f"{100 * share:.0f}" for share in (row.right, row.wrong, row.rejected)]
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
    """Count answers to the texts that the fit held out.

    Every known intent is there, also those that the test held out as open.
    """
    held = getattr(classifier, "held_out_", None)
    if held is None:
        return None
    known, n_classes = ~held.is_open, len(classifier.classes_)
    own, nearest = (classifier._encode(column[known]) for column in (held.label, held.nearest_class))
    answers = np.where(held.score[known] < classifier.offset_ + classifier.class_offsets_[nearest], n_classes, nearest)
    return rows_of_intents(classifier.classes_, own, answers, held.weight[known])


def rows_of_intents(
    classes: NDArray[Any],
    own: NDArray[np.int64],
    answers: NDArray[np.int64],
    weights: NDArray[np.float64],
    fewest: float = 0.0,
) -> list[Intent]:
    """Give the intents, the worst first, by the codes of known texts and of their answers, ``len(classes)`` is open.

    Another class often takes an intent's texts if it takes a tenth of them, and at least ``fewest``.
    """
    counts = np.zeros((len(classes), len(classes) + 1))
    np.add.at(counts, (own, answers), weights)
    totals = counts.sum(axis=1)
    shares = counts / np.maximum(totals, 1e-300)[:, np.newaxis]
    right, rejected = shares.diagonal(), shares[:, -1]
    confused = shares[:, :-1] - np.diag(right)
    wrong = confused.sum(axis=1)  # never below 0, as a difference of sums may be
    rows = []
    for k in np.argsort(right, kind="stable"):
        other = int(confused[k].argmax())
        n_texts = int((own == k).sum()) if totals[k] else 0
        taken_for = classes[other] if confused[k, other] >= max(_CONFUSED, fewest / max(totals[k], 1.0)) else None
        rows.append(Intent(classes[k], n_texts, right[k], wrong[k], rejected[k], taken_for))
    return rows
