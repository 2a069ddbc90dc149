"""The one place that decides which labels and rows are known, and which are open.

Labels come in any container and leave as one of two kinds, ``int64`` or text, so that the rest of the package compares
them without a second thought. The rule for rows:

- a true label is *known* when it is one of the known classes, and *open* otherwise;
- a prediction is *open* only when it is the open label; any other label outside the known classes is a wrong answer.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import cast_open_label

#: Labels of either kind: ``int64`` or text.
LabelArray = NDArray[np.int64] | NDArray[np.str_]

_REMEDY = "pass whole numbers or strings"


class LabelProblem(NamedTuple):
    """True and predicted labels as positions among K known classes.

    Attributes
    ----------
    true : ndarray of shape (n_samples,)
        0 … K − 1 for a known class, K for open.
    predicted : ndarray of shape (n_samples,)
        0 … K − 1 for a known class, K for open, K + 1 for a label that is neither.
    classes : ndarray of shape (n_classes,)
        The known classes in the order of ``labels``, sorted by default.
    open_label : int or str
        The open label in the kind of the classes.
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    classes: LabelArray
    open_label: int | str


def read_label_problem(
    y_true: ArrayLike, y_pred: ArrayLike, *, open_label: Any, labels: ArrayLike | None, pred_name: str = "y_pred"
) -> LabelProblem:
    """Read true and predicted labels, and code them by the rule above.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
    open_label : int or str
    labels : array-like of shape (n_classes,) or None
        The known classes; None takes every label of either array but the open one.
    pred_name : str
        What error messages call the predictions.
    """
    true, predicted = read_labels(y_true, "y_true"), read_labels(y_pred, pred_name)
    check_same_length(len(true), predicted, pred_name)
    check_same_kind(true, predicted, "y_true", pred_name)
    open_label = cast_open_label(open_label, true)
    if labels is None:
        found = np.union1d(true, predicted)
        classes = found[found != open_label]
    else:
        classes = read_known_classes(labels, true, open_label)
    predicted_codes = _positions(predicted, classes)
    predicted_codes[(predicted_codes == len(classes)) & (predicted != open_label)] = len(classes) + 1
    return LabelProblem(_positions(true, classes), predicted_codes, classes, open_label)


def read_known_rows(y_true: ArrayLike, *, open_label: Any, labels: ArrayLike | None) -> NDArray[np.bool_]:
    """Mark the rows whose true label is a known class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    open_label : int or str
    labels : array-like of shape (n_classes,) or None
        The known classes; None takes every label but the open one.

    Returns
    -------
    is_known : ndarray of shape (n_samples,)
    """
    true = read_labels(y_true, "y_true")
    open_label = cast_open_label(open_label, true)
    if labels is None:
        return np.asarray(true != open_label)
    return np.isin(true, read_known_classes(labels, true, open_label))


def read_known_classes(labels: ArrayLike, true: LabelArray, open_label: int | str) -> LabelArray:
    """Read the list of known classes: of the kind of ``true``, no class twice, the open label not among them."""
    classes = read_labels(labels, "labels")
    check_same_kind(true, classes, "y_true", "labels")
    if open_label in classes:
        msg = (
            f"labels lists the open label {open_label!r} among the known classes: leave it out of labels, "
            "or pass another open_label."
        )
        raise ValueError(msg)
    distinct, counts = np.unique(classes, return_counts=True)
    if len(distinct) < len(classes):
        msg = f"labels lists {distinct[counts > 1][0].item()!r} more than once: name each known class once."
        raise ValueError(msg)
    return classes


def read_labels(values: ArrayLike, name: str) -> LabelArray:
    """Turn labels of any container into a one-dimensional array of ``int64`` or of text.

    Parameters
    ----------
    values : array-like of shape (n_samples,) or (n_samples, 1)
    name : str
        What error messages call the values.

    Raises
    ------
    ValueError
        If the labels are of mixed kinds, fractional, missing, none at all, or not one-dimensional.
    """
    # A plain list goes through objects, because NumPy would turn [1, "a"] into two strings without a word.
    array = np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        msg = f"{name} has shape {array.shape}, but must be one-dimensional: pass one label for each row."
        raise ValueError(msg)
    if not len(array):
        msg = f"{name} is empty: pass at least one label."
        raise ValueError(msg)
    if array.dtype.kind == "O":
        array = _read_objects(array, name)
    if array.dtype.kind in "UT":
        return np.asarray(array.astype(np.str_))
    return _read_numbers(array, name)


def check_same_length(n_rows: int, values: NDArray[Any], name: str) -> None:
    """Raise one sentence unless ``values`` has one entry for each true label."""
    if len(values) != n_rows:
        msg = f"y_true has {n_rows} rows and {name} has {len(values)}: pass one entry of each for every row."
        raise ValueError(msg)


def check_same_kind(first: LabelArray, second: LabelArray, first_name: str, second_name: str) -> None:
    """Raise one sentence unless both arrays hold numbers or both hold strings."""
    if first.dtype.kind != second.dtype.kind:
        msg = (
            f"{first_name} holds {_kind(first)} such as {first[0].item()!r} and {second_name} holds {_kind(second)} "
            f"such as {second[0].item()!r}, but labels must be all numbers or all strings: convert one of them, for "
            "instance with astype(str)."
        )
        raise ValueError(msg)


def _kind(labels: LabelArray) -> str:
    return "strings" if labels.dtype.kind == "U" else "numbers"


def _read_objects(array: NDArray[np.object_], name: str) -> NDArray[Any]:
    """Give an object array the kind that all its entries share."""
    example = {type(label): label for label in array}
    strings = [label for kind, label in example.items() if issubclass(kind, str)]
    numbers = [label for kind, label in example.items() if issubclass(kind, Real | np.bool_)]
    others = [label for kind, label in example.items() if not issubclass(kind, str | Real | np.bool_)]
    if others:
        msg = (
            f"{name} holds {others[0]!r} ({type(others[0]).__name__}), but labels must be all numbers or all "
            f"strings: {_REMEDY}."
        )
        raise ValueError(msg)
    if strings and numbers:
        msg = (
            f"{name} mixes strings such as {strings[0]!r} and numbers such as {numbers[0]!r}, but labels must be all "
            "numbers or all strings: convert them, for instance with astype(str)."
        )
        raise ValueError(msg)
    return np.array(array.tolist(), dtype=np.str_ if strings else None)


def _read_numbers(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Turn whole numbers of any type into ``int64``."""
    if array.dtype.kind not in "buif":
        msg = f"{name} is of type {array.dtype}, but labels must be all numbers or all strings: {_REMEDY}."
        raise ValueError(msg)
    # Floats beyond 2**53 and integers beyond int64 would merge or turn into other labels.
    limit = 2.0**53 if array.dtype.kind == "f" else np.iinfo(np.int64).max
    whole = (array <= limit) & (np.trunc(array) == array)
    if array.dtype.kind == "f":
        whole &= array >= -limit
    if not whole.all():
        msg = (
            f"{name} holds {array[~whole][0].item()!r}, which is no whole number of 64 bits: {_REMEDY} as labels; "
            "scores belong to the functions that take a score."
        )
        raise ValueError(msg)
    return array.astype(np.int64)


def _positions(values: LabelArray, classes: LabelArray) -> NDArray[np.int64]:
    """Position of each value among ``classes``, and their number for a value that is not among them."""
    if not len(classes):
        return np.zeros(len(values), dtype=np.int64)
    order = np.argsort(classes)
    ordered = classes[order]
    place = np.minimum(np.searchsorted(ordered, values), len(classes) - 1)
    return np.where(ordered[place] == values, order[place], len(classes)).astype(np.int64)
