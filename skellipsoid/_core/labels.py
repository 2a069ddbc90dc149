"""Reads labels from any container into integers or strings, and casts the open label to their type."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skellipsoid_runtime._containers import in_memory, is_missing, is_unicode, of_pandas

from .validation import masked_rows, name_rows

#: Allowed labels, for error messages.
_KINDS = "labels must be all numbers or all strings"
#: Whole numbers below are exact as floats; above, one float stands for several.
EXACT_FLOATS = 2**53


def as_labels(y: Any, name: str = "y", *, warn: bool = False) -> NDArray[Any]:
    """Read labels of any container into a one-dimensional array of whole numbers or of strings.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        NumPy, pandas, polars, Arrow, a torch tensor on any device, or a sequence.
    name : str
        Name of the labels in errors.
    warn : bool
        Whether a column gives a ``DataConversionWarning``, as in scikit-learn's classifiers.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Boolean, integer, float or text; an object array of strings stays one. Numbers are exact in ``int64``, too.

    Raises
    ------
    ValueError
        If there are no labels, if they are not one-dimensional, if some are missing, fractional or too large, if they
        mix strings and numbers, or are neither.
    """
    given = in_memory(y, name)
    _check_missing(masked_rows(given), name)
    # A plain list is converted to objects first, because NumPy turns [1, "a"] into two strings without a warning.
    labels = np.asarray(given) if hasattr(given, "__array__") else np.asarray(given, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=warn)
    if labels.ndim != 1:
        raise ValueError(f"{name} has shape {labels.shape}, but must be one-dimensional: pass one label for each row.")
    if not len(labels):
        raise ValueError(f"{name} is empty: pass at least one label.")
    if labels.dtype.kind in "OT":
        came_as_objects = labels.dtype.kind == "O" and hasattr(given, "__array__")
        labels = _unify(labels.astype(object), name)
        if is_text(labels) and not came_as_objects:
            labels = labels.astype(np.str_)
    if labels.dtype.kind == "f":
        _check_whole(labels, name)
    elif labels.dtype.kind not in "biuUO":
        _refuse_kind(name, labels[0], labels.dtype)
    elif labels.dtype == np.uint64:  # NumPy joins it with int64 to floats
        _refuse_inexact(name, labels[labels >= 2**63], labels.dtype)
        return labels.astype(np.int64)
    if labels.dtype.kind == "U" or is_text(labels):
        _check_letters(labels, name)
    return labels


def as_partial_labels(y: Any, name: str = "y") -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Read labels of which some are missing: ``None``, NaN or another missing value.

    Returns
    -------
    labels : ndarray of shape (n_labelled,)
        As ``as_labels`` gives them.
    labelled : ndarray of shape (n_samples,)
        Which samples have one.

    Raises
    ------
    ValueError
        If all are missing, and what ``as_labels`` raises.
    """
    given = in_memory(y, name)
    values = np.asarray(given) if hasattr(given, "__array__") else np.asarray(given, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}, but must be one-dimensional: pass one entry for each row.")
    labelled = np.array([isinstance(value, str) or not is_missing(value) for value in values.tolist()], dtype=bool)
    labelled[masked_rows(given)] = False
    if not labelled.any():
        raise ValueError(f"{name} holds no label: label some rows, and leave the others None or NaN.")
    return as_labels(values[labelled], name), labelled


def _check_letters(labels: NDArray[Any], name: str) -> None:
    """Raise an error if a string holds a lone surrogate, which cannot be written to a file."""
    if labels.dtype.kind == "U":
        letters = np.ascontiguousarray(labels, labels.dtype.newbyteorder("=")).view(np.uint32).reshape(len(labels), -1)
        halves = np.flatnonzero(((letters >= 0xD800) & (letters <= 0xDFFF)).any(axis=1))
    else:
        halves = np.flatnonzero([not is_unicode(label) for label in labels.tolist()])
    if len(halves):
        raise ValueError(
            f"{name} holds {ascii(str(labels[halves[0]]))[:80]} in {name_rows(halves)}, which holds half of a "
            "character (a lone surrogate), such as half an emoji; replace it by a whole one."
        )


def check_given(y: Any, owner: str, alternative: str = "") -> None:
    """Raise one sentence if there are no labels at all.

    Parameters
    ----------
    y : object
    owner : str
        Name of the caller.
    alternative : str
        What else the caller could do, for the message.
    """
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None: pass one label for each row{alternative}."
        )


def as_kind_of(labels: NDArray[Any], others: NDArray[Any], name: str, others_name: str) -> NDArray[Any]:
    """Cast labels to a type in which NumPy compares and joins them with others without rounding.

    Parameters
    ----------
    labels, others : ndarray
        As ``as_labels`` gives them.
    name, others_name : str
        Their names in errors.

    Raises
    ------
    ValueError
        If one holds numbers and the other strings, or if the others are floats and a label is too large for one.
    """
    if is_text(labels) != is_text(others):
        (one, first_label), (other, second_label) = (
            ("strings" if is_text(found) else "numbers", found[:1].tolist()[0]) for found in (labels, others)
        )
        raise ValueError(
            f"{name} holds {one} such as {first_label!r} and {others_name} holds {other} such as "
            f"{second_label!r}, but {_KINDS}: convert one of them, for instance with astype(str)."
        )
    if is_text(labels):
        return labels
    if labels.dtype.kind == "f" and others.dtype.kind != "f":
        labels = labels.astype(np.int64)
    if np.result_type(labels, others).kind == "f":
        _refuse_inexact(name, labels[np.abs(labels) >= EXACT_FLOATS], f"{others_name} is {others.dtype}")
    return labels


def positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Index of each label in ``classes``; the number of classes for a label that is not among them."""
    if not len(classes):
        return np.zeros(len(labels), dtype=np.int64)
    order = np.argsort(classes)
    ordered = classes[order]
    place = np.minimum(np.searchsorted(ordered, labels), len(classes) - 1)
    return np.where(ordered[place] == labels, order[place], len(classes)).astype(np.int64)


def is_text(labels: NDArray[Any]) -> bool:
    """Whether labels are strings."""
    return labels.dtype.kind in "USOT"


def cast_open_label(open_label: Any, labels: NDArray[Any]) -> Any:
    """Cast an open label to the kind of ``labels``: −1 for numbers, ``"-1"`` for strings.

    Parameters
    ----------
    open_label : int or str
    labels : ndarray
        Labels that it is used with.

    Raises
    ------
    ValueError
        If the labels are numbers and the open label is a string, no whole number, or too large for one of them.
    """
    if is_text(labels):
        return str(open_label)
    if not isinstance(open_label, str):
        kind, limit = (float, EXACT_FLOATS) if labels.dtype.kind == "f" else (int, 2**63)
        if not (-limit < open_label < limit and open_label == int(open_label)):
            raise ValueError(
                f"The open label {open_label!r} is no whole number below {limit}, but the labels are numbers "
                f"({labels.dtype}); use a whole number that is no class, such as -1."
            )
        return kind(open_label)
    raise ValueError(
        f"The open label {open_label!r} is a string, but the labels are numbers ({labels.dtype}); "
        "use a number that is no class, such as -1, or string labels."
    )


def _unify(labels: NDArray[np.object_], name: str) -> NDArray[Any]:
    """Convert objects that are all numbers to a numeric type; objects that are all strings stay."""
    values = labels.tolist()
    missing = np.flatnonzero([not isinstance(value, str) and is_missing(value) for value in values])
    are_names = len(missing) and any(isinstance(value, str) for value in values)
    _check_missing(missing, name, of_pandas(values[missing[0]], "labels") if are_names else "")
    example = {type(value): value for value in reversed(values)}  # the first of each kind
    for kind, value in example.items():
        if not issubclass(kind, str | Real | np.bool_):
            _refuse_kind(name, value, kind.__name__)
    strings, numbers = ([v for kind, v in example.items() if issubclass(kind, str) == text] for text in (True, False))
    if strings and numbers:
        raise ValueError(
            f"{name} mixes strings such as {str(strings[0])!r} with numbers such as {numbers[0]!r}, but {_KINDS}: "
            "convert them, for instance with astype(str)."
        )
    if strings:
        return labels
    found = np.array(values)
    if found.dtype.kind == "O":  # integers of more than 64 bits
        _refuse_kind(name, max(values, key=abs), "object")
    if found.dtype.kind == "f":
        pairs = zip(values, found.tolist(), strict=True)
        rounded = [int(given) for given, value in pairs if isinstance(given, Integral) and int(given) != value]
        _refuse_inexact(name, np.array(rounded), "beside floats or negative numbers")
    return found


def _check_missing(rows: NDArray[np.intp], name: str, remedy: str = "") -> None:
    if len(rows):
        raise ValueError(f"{name} has missing labels in {name_rows(rows)}; drop them{remedy}.")


def _check_whole(labels: NDArray[np.floating], name: str) -> None:
    _check_missing(np.flatnonzero(np.isnan(labels)), name)
    rows = np.flatnonzero(~(np.isfinite(labels) & (np.trunc(labels) == labels)))
    if len(rows):
        raise ValueError(
            f"Unknown label type: {name} holds {labels[rows[0]].item()!r} in row {rows[0]}, which is no whole number, "
            "but labels must be whole numbers or strings: bin continuous values, and pass scores where a score is "
            "taken."
        )
    exact = min(2 ** (np.finfo(labels.dtype).nmant + 1), EXACT_FLOATS)
    _refuse_inexact(name, labels[np.abs(labels) >= exact], labels.dtype)


def _refuse_inexact(name: str, labels: NDArray[Any], why: Any) -> None:
    """Raise an error if there are such labels, which a float would round."""
    if len(labels):
        raise ValueError(
            f"{name} holds {labels[:1].tolist()[0]!r} ({why}), which is no exact label: pass whole numbers of int64, "
            "or strings."
        )


def _refuse_kind(name: str, value: Any, kind: Any) -> None:
    # scikit-learn's own checks search for these words.
    problem = "Complex data not supported" if isinstance(value, complex) else "Unknown label type"
    raise ValueError(
        f"{problem}: {name} holds {value!s} ({kind}), but {_KINDS}: convert them, for instance with astype(str)."
    )
