"""Labels of a data set for the splitters: sorted classes and one integer per sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from skellipsoid_runtime._containers import in_memory

from .._core.labels import as_labels, cast_open_label, check_given, is_text
from .._core.sklearn import count_rows

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
RandomState = int | np.random.RandomState | None

#: Code of the open label in ``Labels.codes``.
OPEN = -1


@dataclass(frozen=True)
class Labels:
    """Sorted classes, and the class index of each sample.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes without the open label, sorted.
    codes : ndarray of int of shape (n_samples,)
        Index in ``classes`` of each sample's class, ``OPEN`` for samples with the open label.
    """

    classes: NDArray[Any]
    codes: Indices

    @property
    def counts(self) -> Indices:
        """Number of samples of each class, of shape (n_classes,)."""
        return np.bincount(self.codes[self.codes != OPEN], minlength=len(self.classes))

    def names(self, which: Indices | Mask) -> str:
        """Classes as a text for an error, at most five of them."""
        found = self.classes[which].tolist()
        return ", ".join(map(repr, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")


def read_labels(X: Any, y: ArrayLike | None, open_label: Any, owner: str) -> Labels:
    """Read labels into sorted classes and one code per sample, apart from the open label.

    Parameters
    ----------
    X : sequence, array-like or None
        Must have as many samples as ``y`` unless it is None.
    y : array-like of shape (n_samples,)
    open_label : int or str
        Cast to the type of ``y``.
    owner : str
        Name of the caller, for errors.

    Raises
    ------
    ValueError
        If ``y`` or a label in it is missing, if labels are continuous or mix numbers and strings, or if ``X`` has
        another length.
    """
    check_given(y, owner)
    values = as_labels(y)
    if is_text(values):
        values = values.astype(np.str_)
    if X is not None and count_rows(in_memory(X, "X")) != len(values):
        raise ValueError(f"X has {count_rows(X)} rows and y has {len(values)}: pass one label for each row.")
    found, codes = np.unique(values, return_inverse=True)
    is_open = found == cast_open_label(open_label, values)
    new_codes = np.where(is_open, OPEN, np.cumsum(~is_open) - 1)
    return Labels(found[~is_open], new_codes[codes])


def resolve_random_state(random_state: RandomState) -> np.random.RandomState:
    """Turn ``random_state`` into a generator; ``None`` takes a seed from NumPy's global generator."""
    generator: np.random.RandomState = check_random_state(random_state)
    return np.random.RandomState(generator.randint(2**31 - 1)) if random_state is None else generator
