"""Which messages of a log are equal, and one label for each different one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._core.characters import printable
from .._core.norms import FEWEST_FEATURES, are_zeros
from .._core.sklearn import take_rows
from .._core.texts import texts_of
from .._core.validation import name_rows, number, shortened_repr
from .._held_out.table import Floats, Integers

#: Features are equal within this proportion of their usual distance from the mean; sample size of its estimate.
_ROUNDING, _TYPICAL = 1e-5, 4096
#: Number of others that each message is compared with, and of columns that are compared first.
_NEXT, _FIRST = 4, 8


def equal_messages(features: NDArray[Any], rounding: float | None = None) -> Integers:
    """Assign messages of equal features the same number; in two and more features, equal up to ``rounding``.

    An embedding model rounds otherwise in another batch. ``None`` is a proportion of how far the messages lie from
    their middle. Messages are compared with the next few ones along one direction.
    """
    if not len(features):
        return np.zeros(0, dtype=np.int64)
    if features.shape[1] == 1:
        rounding = 0.0
    if rounding is None:
        typical = features[:: max(1, len(features) // _TYPICAL)]
        width = np.abs(typical - np.median(typical, axis=0)).max(axis=1)
        rounding = _ROUNDING * float(np.median(width))
    direction = np.random.default_rng(0).normal(size=features.shape[1])
    parts = np.array_split(features, -(-len(features) // _TYPICAL))
    order = np.argsort(np.concatenate([part.astype(np.float64) @ direction for part in parts]), kind="stable")
    pairs = np.concatenate([np.stack([order[:-step], order[step:]]) for step in range(1, _NEXT + 1)], axis=1)
    for columns in (features[:, :_FIRST], features):  # the first columns tell nearly all that differ
        parts = np.array_split(pairs, len(parts), axis=1)
        is_equal = [np.abs(columns[one] - columns[other]).max(axis=1) <= rounding for one, other in parts]
        pairs = pairs[:, np.concatenate(is_equal)]
    graph = coo_array((np.ones(pairs.shape[1], dtype=bool), pairs), shape=(len(order), len(order)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def apart(messages: Integers, X: Any, features: NDArray[Any]) -> Integers:
    """Assign messages whose features are zeros the numbers of their texts, (n_messages,); without texts each its own.

    No token of such a text is known, so that equal features do not say that two of them are equal.
    """
    if not isinstance(features, np.ndarray) or features.shape[1] < FEWEST_FEATURES:
        return messages
    unread = np.flatnonzero(are_zeros(features))
    if not len(unread):
        return messages
    texts, numbers = texts_of(X), messages.copy()
    own = np.arange(len(unread)) if texts is None else number(texts[row] for row in unread)
    numbers[unread] = messages.max() + 1 + own
    return numbers


def first_of_each(messages: Integers) -> tuple[Integers, Integers]:
    """Return the place of the first label of each message, ascending, and of each label which of these messages it has.

    ``messages`` are the numbers of the labelled messages, equal ones for copies.
    """
    _, first, which = np.unique(messages, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[which.ravel()]


def draws_of_each(messages: Integers, labelled: NDArray[np.bool_]) -> Floats:
    """Weight of each message that has a label, in the order of the first ones, where nobody gave weights.

    It is the expected number of its copies in a random sample of the log that has it, as large as the number of labels:
    1 if there are no copies, all that the log has if all are labelled.
    """
    of_labels = messages[labelled]
    share = len(of_labels) / len(messages)
    counts = np.bincount(messages)[of_labels[first_of_each(of_labels)[0]]]
    with np.errstate(divide="ignore"):
        return np.asarray(counts * share / -np.expm1(counts * np.log1p(-share)))


def contradicted(messages: Integers, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark labels whose message has another one, too, (n_labelled,)."""
    first, which = first_of_each(messages)
    is_other = labels != labels[first][which]
    return np.asarray(np.bincount(which, is_other)[which] > 0)


def said_of_contradictions(X: Any, rows: Integers, messages: Integers, labels: NDArray[Any]) -> str:
    """Name the first message that has several labels, two of these, and the number of other such messages."""
    is_contradicted = contradicted(messages, labels)
    one = int(is_contradicted.argmax())
    other = int(((messages == messages[one]) & (labels != labels[one])).argmax())
    both = rows[[one, other]]
    texts = [np.asarray(take_rows(X, both[[i]]), dtype=object).ravel()[0] for i in (0, 1)]
    if not all(isinstance(text, str) for text in texts):
        named = f"The message of {name_rows(both)} has"
    elif texts[0] == texts[1]:
        named = f"{printable(shortened_repr(texts[0]))} has"
    else:
        named = f"{' and '.join(printable(shortened_repr(text)) for text in texts)} have equal features, but"
    pair = " and ".join(printable(shortened_repr(labels[[row]].tolist()[0])) for row in (one, other))
    n_more = len(np.unique(messages[is_contradicted])) - 1
    return f"{named} the labels {pair}{f', and {n_more} more messages have several' if n_more else ''}"


def refuse_contradictions(X: Any, rows: Integers, messages: Integers, labels: NDArray[Any]) -> None:
    """Raise one sentence if equal messages, those of one number, have different labels."""
    if contradicted(messages, labels).any():
        raise ValueError(f"{said_of_contradictions(X, rows, messages, labels)}; give each message one label.")
