"""What every splitter shares: reading labels and groups, and the split interface over what was read."""

import math
import numbers
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._labels import cast_open_label

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
RandomState = int | np.random.RandomState | None

#: Stands in ``Labels.codes`` for a row that carries the open label.
OPEN = -1

_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}


@dataclass(frozen=True)
class Labels:
    """The labels of a data set as a splitter sees them.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes without the open label, sorted.
    codes : ndarray of int of shape (n_samples,)
        Index in ``classes`` of each row's class, ``OPEN`` for rows that carry the open label.
    """

    classes: NDArray[Any]
    codes: Indices

    @property
    def counts(self) -> Indices:
        """Number of rows of each class, of shape (n_classes,)."""
        return np.bincount(self.codes[self.codes != OPEN], minlength=len(self.classes))

    def names(self, which: Indices | Mask, limit: int = 5) -> str:
        """Classes as a text for an error, at most ``limit`` of them."""
        found = self.classes[which].tolist()
        more = f" and {len(found) - limit} more" if len(found) > limit else ""
        return ", ".join(repr(name) for name in found[:limit]) + more


class OpenSetSplitter(BaseCrossValidator):
    """Base of the splitters: reads ``X``, ``y`` and ``groups`` once, a member decides about rows."""

    # By default scikit-learn's metadata routing keeps groups from a splitter; these use them where they are given.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    n_splits: int
    open_label: Any

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Not used, there for scikit-learn's interface.

        Returns
        -------
        n_splits : int
            Number of (train, test) pairs that ``split`` generates.
        """
        return self.n_splits

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Generate indices that split the rows into a training and a test part.

        Parameters
        ----------
        X : sequence or array-like of length n_samples
            Features or texts, of which only the number matters; ``None`` takes the number from ``y``.
        y : array-like of shape (n_samples,)
            Labels, all numbers or all strings. Rows that carry the open label never train.
        groups : array-like of shape (n_samples,), default=None
            Rows of one group never stand in both parts of a split.

        Yields
        ------
        train : ndarray of shape (n_train,)
            Row numbers of the training part, ascending; it never holds an open row.
        test : ndarray of shape (n_test,)
            Row numbers of the test part, ascending.

        Raises
        ------
        ValueError
            If ``y`` is missing, continuous, of mixed kinds or of another length than ``X``, or if classes or groups
            are too few or too small for this splitter.
        """
        labels = read_labels(X, y, self.open_label)
        for train, test in self._split_rows(labels, read_groups(groups, len(labels.codes))):
            yield np.flatnonzero(train), np.flatnonzero(test)

    @abstractmethod
    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        """Generate a training and a test mask over the rows for each split."""


def read_labels(X: Any, y: ArrayLike | None, open_label: Any) -> Labels:
    """Read labels into sorted classes and one code per row, apart from the open label.

    Parameters
    ----------
    X : sequence, array-like or None
        Must have as many rows as ``y`` unless it is None.
    y : array-like of shape (n_samples,)
    open_label : int or str
        Cast to the kind of ``y`` by the package's rule.

    Raises
    ------
    ValueError
        If ``y`` is missing, continuous, of mixed kinds or of another length than ``X``.
    """
    if y is None:
        raise ValueError("y is None, but an open-set splitter holds out whole classes: pass one label for each row.")
    values = _read_label_array(y)
    if X is not None and _num_samples(X) != len(values):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(values)}: pass one label for each row.")
    found, codes = np.unique(values, return_inverse=True)
    is_open = found == cast_open_label(open_label, values)
    new_codes = np.where(is_open, OPEN, np.cumsum(~is_open) - 1)
    return Labels(found[~is_open], new_codes[codes])


def read_groups(groups: ArrayLike | None, n_samples: int) -> Indices | None:
    """Read groups into one code from 0 on per row."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (n_samples,):
        raise ValueError(
            f"groups has the shape {values.shape} and y has {n_samples} rows: pass one group for each row."
        )
    codes: Indices = np.unique(values, return_inverse=True)[1]
    return codes


def check_count(name: str, value: Any, minimum: int) -> None:
    """Raise one sentence unless ``value`` is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < minimum:
        raise ValueError(f"{name}={value!r} must be an integer of at least {minimum}.")


def resolve_random_state(random_state: RandomState) -> np.random.RandomState:
    """Turn ``random_state`` into a generator; for None its seed is one draw from NumPy's global generator."""
    generator: np.random.RandomState = check_random_state(random_state)
    return np.random.RandomState(generator.randint(2**31 - 1)) if random_state is None else generator


def _read_label_array(y: ArrayLike) -> NDArray[Any]:
    # NumPy turns [1, "a"] into strings without a word, so lists are looked at before they are converted.
    values = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y has the shape {values.shape}: pass one label for each row, of shape (n_samples,).")
    if values.dtype.kind in "OT":
        values = _unify(values)
    if values.dtype.kind == "f":
        _check_discrete(values)
    elif values.dtype.kind not in "biuU":
        raise ValueError(f"y holds labels of the type {values.dtype}: labels must be all numbers or all strings.")
    return values


def _unify(values: NDArray[Any]) -> NDArray[Any]:
    """Turn an array of Python objects into one of numbers or of strings."""
    labels = values.tolist()
    first = {type(label): row for row, label in reversed(list(enumerate(labels)))}
    for kind, row in first.items():
        if kind.__name__ in _MISSING_TYPES or (issubclass(kind, float) and math.isnan(labels[row])):
            raise ValueError(f"y has a missing label ({labels[row]!r}) in row {row}: drop the row or give it a label.")
    strings = [row for kind, row in first.items() if issubclass(kind, str)]
    others = [row for kind, row in first.items() if not issubclass(kind, str)]
    if strings and others:
        text, other = labels[min(strings)], labels[min(others)]
        raise ValueError(
            f"y mixes strings such as {text!r} with {other!r} ({type(other).__name__}), but labels must be all numbers "
            "or all strings: convert them, for instance with y.astype(str)."
        )
    odd = [type(labels[row]).__name__ for row in others if not isinstance(labels[row], numbers.Real | np.bool_)]
    if odd:
        raise ValueError(f"y holds labels of the type {odd[0]}: labels must be all numbers or all strings.")
    return np.array(labels, dtype=np.str_ if strings else None)


def _check_discrete(values: NDArray[np.floating]) -> None:
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"y has the label {values[row]} in row {row}: drop the row or give it a finite label.")
    fractions = values[values != np.floor(values)]
    if len(fractions):
        raise ValueError(
            f"y holds continuous values such as {fractions[0]}, but an open-set splitter needs classes: bin the values."
        )
