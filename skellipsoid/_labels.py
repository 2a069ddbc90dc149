"""Labels of any container, and the open label in their kind: the rules that every part of the package shares."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What labels may be, in the errors about labels of another kind.
_KINDS = "all numbers or all strings"


def as_labels(y: Any) -> NDArray[Any]:
    """Turn labels of any container into an array.

    Raises
    ------
    ValueError
        If strings and other things are mixed, of which NumPy would make strings without a word, or if the labels are
        neither strings nor numbers.
    """
    if not hasattr(y, "__array__"):
        check_one_kind(np.asarray(y, dtype=object))
    labels: NDArray[Any] = np.asarray(y)
    if labels.dtype == object:
        check_one_kind(labels)
        if labels.size and not isinstance(labels.flat[0], str):  # numbers, as pandas hands on its nullable ones
            labels = np.asarray(labels.tolist())
    check_label_type(labels)
    return labels


def check_one_kind(labels: NDArray[np.object_]) -> None:
    """Raise one sentence if an object array mixes strings with other things."""
    strings = [isinstance(label, str) for label in labels.ravel()]
    if any(strings) and not all(strings):
        other = labels.ravel()[strings.index(False)]
        text = labels.ravel()[strings.index(True)]
        msg = (
            f"Labels mix strings such as {text!r} with other values such as {other!r} "
            f"({type(other).__name__}), but must be {_KINDS}; convert them, for instance with y.astype(str)."
        )
        raise ValueError(msg)


def check_label_type(labels: NDArray[Any]) -> None:
    """Raise one sentence if an array holds neither numbers nor strings but, for instance, dates."""
    is_text = labels.dtype == object and isinstance(labels.flat[0], str) if labels.size else True
    if is_text or labels.dtype.kind in "biufcUS":  # of complex numbers and bytes scikit-learn speaks
        return
    values = labels.ravel().tolist()
    found = next((value for value in values if not isinstance(value, Real)), values[0])
    msg = (
        f"Unknown label type: the labels are an array of type {labels.dtype} with values such as {found!r}, but must "
        f"be {_KINDS}; convert them, for instance with y.astype(str)."
    )
    raise ValueError(msg)


def cast_open_label(open_label: Any, labels: NDArray[Any]) -> Any:
    """Cast an open label to the kind of ``labels``: −1 for numbers, ``"-1"`` for strings.

    Parameters
    ----------
    open_label : int or str
    labels : ndarray
        The labels that it will stand beside.

    Raises
    ------
    ValueError
        If the labels are numbers and the open label is a string or no whole number.
    """
    if labels.dtype.kind in "USOT":
        return str(open_label)
    if not isinstance(open_label, str):
        if not float(open_label).is_integer():
            msg = (
                f"open_label={open_label!r} is no whole number, but the labels are numbers ({labels.dtype}), which "
                "must be whole; use a whole number that is no class, such as -1."
            )
            raise ValueError(msg)
        return float(open_label) if labels.dtype.kind == "f" else int(open_label)
    msg = (
        f"open_label={open_label!r} is a string, but the labels are numbers ({labels.dtype}); "
        "use a number that is no class, such as -1, or string labels."
    )
    raise ValueError(msg)
