"""Labels of a sheet that are to be learned: one for each different message that was not learned before."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from skellipsoid_runtime._containers import only_column

from .._core.labels import as_kind_of, as_partial_labels
from .._core.validation import check_weights, name_rows, read_relative_weights, read_weights
from .._core.warn import warn
from .._ellipsoid.changes.learned import UNWEIGHTED, Learned, comparable, find_learned, learned_of
from .._held_out.table import Floats, Integers
from .equal import (
    apart,
    contradicted,
    draws_of_each,
    equal_messages,
    first_of_each,
    refuse_contradictions,
    said_of_contradictions,
)

#: Larger weights are mistakes; a few of them would overflow.
LARGEST_WEIGHT = 1e150
#: A sheet goes on if its weights are those of before in one unit, up to this share.
_SAME_UNIT = 1e-6


class Given(NamedTuple):
    """Labels of a log, and their weights."""

    labels: NDArray[Any]  # (n_labelled,)
    labelled: NDArray[np.bool_]  # (n_messages,) which messages have one
    weights: Floats | None  # (n_labelled,) positive

    def where(self, chosen: NDArray[np.bool_]) -> "Given":
        """Select labels."""
        labelled = self.labelled.copy()
        labelled[np.flatnonzero(labelled)[~chosen]] = False
        return Given(self.labels[chosen], labelled, None if self.weights is None else self.weights[chosen])


def read_given(n_messages: int, y: ArrayLike, sample_weight: Any, classes: NDArray[Any]) -> Given:
    """Read labels of some messages and their weights; a label that weighs nothing is none.

    Raises
    ------
    ValueError
        If labels or weights have another length than the log, labels are of another kind than the classes, or a weight
        is none, or absurdly large.
    """
    labels, labelled = as_partial_labels(y)
    check_consistent_length(np.empty(n_messages), labelled)
    given = Given(as_kind_of(labels, classes, "y", "classes_"), labelled, None)
    if sample_weight is None:
        return given
    weights, rows = only_column(sample_weight, "sample_weight"), np.flatnonzero(labelled)
    check_consistent_length(labelled, weights)
    check_weights(weights, rows)
    of_labels = np.asarray(weights)[labelled]
    read = read_weights(of_labels, len(rows))
    if (are_large := read > LARGEST_WEIGHT).any():
        raise ValueError(
            f"sample_weight is above {LARGEST_WEIGHT:.0e} in {name_rows(rows[are_large])}; pass one over the chance of "
            "being labelled, in any unit below that."
        )
    return given._replace(weights=read).where(read_relative_weights(of_labels, len(rows)) > 0)


class Sheet(NamedTuple):
    """What is to be learned of a log."""

    earlier: Learned | None  # what was learned and stays
    rows: Integers  # (n_rows,) numbers of the messages, without those of before and without copies in the sheet
    y: NDArray[np.object_]  # (n_rows,) their labels, None of those without
    weights: Floats  # (n_rows,) of the labels, in the unit of the sheet
    number: int  # of the sheet

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each message has a label, (n_rows,)."""
        return np.asarray(self.y != None)  # noqa: E711

    def of_all(self, given: Learned) -> Learned:
        """Append what is ``given`` now to what was learned and stays."""
        return given if self.earlier is None else self.earlier.and_also(given)


def read_sheet(
    classifier: Any, X: Any, features: NDArray[Any], y: ArrayLike, sample_weight: Any, *, picked: bool
) -> Sheet:
    """Read what is to be learned of a log; a message with another label than before is learned anew.

    Raises
    ------
    ValueError
        As ``read_given``; if a message has several labels, unless users picked them; if all were learned before.
    """
    given = read_given(len(features), y, sample_weight, classifier.classes_)
    messages = apart(equal_messages(*comparable(classifier, features)), X, features)
    if picked:
        given = _without_contradictions(X, given, messages)
    rows = np.flatnonzero(given.labelled)
    refuse_contradictions(X, rows, messages[rows], given.labels)
    first, which = first_of_each(messages[rows])
    # How often a sheet has a message does not say how often the log has it.
    stays = ~given.labelled
    stays[rows[first]] = True
    labels, weights = np.full(len(features), None, dtype=object), np.zeros(len(features))
    labels[rows[first]] = given.labels[first]
    if given.weights is None:
        weights[rows[first]] = draws_of_each(messages[stays], given.labelled[stays])
    else:
        weights[rows[first]] = np.bincount(which, given.weights) / np.bincount(which)
    earlier, again = _again(classifier, features, rows[first], given.labels[first])
    number = UNWEIGHTED
    if given.weights is not None:
        number, unit = _unit_of(learned_of(classifier), again[rows[first]], weights[rows[first]])
        weights /= unit
    kept = np.flatnonzero(stays & (again < 0))
    return Sheet(earlier, kept, labels[kept], weights[kept], number)


def _without_contradictions(X: Any, given: Given, messages: Integers) -> Given:
    """Leave out what users picked for one message, where they did not pick the same."""
    rows = np.flatnonzero(given.labelled)
    if not (is_contradicted := contradicted(messages[rows], given.labels)).any():
        return given
    said = said_of_contradictions(X, rows, messages[rows], given.labels)
    if is_contradicted.all():
        raise ValueError(f"{said}, and no other message has a label; pass picks that do not contradict each other.")
    warn(f"{said}; users picked both, so that these messages count as those that nobody was asked about.")
    return given.where(~is_contradicted)


def _again(
    classifier: Any, features: NDArray[Any], rows: Integers, labels: NDArray[Any]
) -> tuple[Learned | None, Integers]:
    """Return what was learned and stays, and which of it each message is equal to, (n_messages,); −1: none.

    A message whose label is now another one is none of them.
    """
    learned, found = learned_of(classifier), find_learned(classifier, features)
    if learned is None:
        return None, found
    is_other = (found[rows] >= 0) & (labels != learned.labels[found[rows]])
    stays = ~np.isin(np.arange(len(learned)), found[rows[is_other]])
    found[np.isin(found, np.flatnonzero(~stays))] = -1
    n_again = int((found[rows] >= 0).sum())
    if n_again == len(rows):
        raise ValueError(
            f"All {len(rows)} labelled messages were learned before, so that they say nothing about messages to "
            "come; label others, which choose_to_label and skellipsoid review name."
        )
    if n_again:
        warn(f"{n_again} of the {len(rows)} labelled messages were learned before; they count once.")
    return learned.where(stays) if stays.any() else None, found


def _unit_of(learned: Learned | None, again: Integers, weights: Floats) -> tuple[int, float]:
    """Return the number of a sheet with weights, and the weight that is 1 in it: of a new sheet the mean one.

    A sheet goes on if what was learned of it has the same weights, in one unit.
    """
    mean = float(weights.mean())
    if learned is None:
        return UNWEIGHTED + 1, mean
    before = again[again >= 0]
    if len(before):
        units = weights[again >= 0] / learned.weights[before]
        sheets = np.unique(learned.sheets[before])
        if len(sheets) == 1 and sheets[0] != UNWEIGHTED and np.ptp(units) <= _SAME_UNIT * units.max():
            return int(sheets[0]), float(units.mean())
    return int(learned.sheets.max()) + 1, mean
