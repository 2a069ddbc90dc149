"""Base class of the splitters, with scikit-learn's interface."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

from skellipsoid_runtime._containers import only_column

from .._core.validation import check_groups
from ._labels import Indices, Labels, Mask, read_labels


class OpenSetSplitter(BaseCrossValidator):
    """Base of the splitters: reads ``X``, ``y`` and ``groups``; a subclass divides the samples."""

    # Under metadata routing scikit-learn does not pass groups to a splitter by default; these splitters request them.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    n_splits: int
    open_label: Any

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Not used; present for scikit-learn's interface.

        Returns
        -------
        n_splits : int
            Number of (train, test) pairs that ``split`` generates.
        """
        return self.n_splits

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Generate indices that split the samples into a training and a test part.

        Parameters
        ----------
        X : sequence or array-like of length n_samples
            Features or texts; only their number is used. ``None`` takes the number from ``y``.
        y : array-like of shape (n_samples,)
            Labels, all numbers or all strings. Samples with the open label are in no training part.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group are never in both parts of a split.

        Yields
        ------
        train : ndarray of shape (n_train,)
            Row numbers of the training part, ascending; without open samples.
        test : ndarray of shape (n_test,)
            Row numbers of the test part, ascending.

        Raises
        ------
        ValueError
            If ``y``, a label in it or a group is missing, if labels are continuous or mix numbers and strings, if the
            lengths differ, or if classes or groups are too few or too small for this splitter.
        """
        labels = read_labels(X, y, self.open_label, type(self).__name__)
        for train, test in self._split_rows(labels, _read_groups(groups, len(labels.codes))):
            yield np.flatnonzero(train), np.flatnonzero(test)

    @abstractmethod
    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        """Generate a training and a test mask over the samples for each split."""


def check_count(name: str, value: Any, minimum: int) -> None:
    """Raise an error unless ``value`` is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < minimum:
        raise ValueError(f"{name}={value!r} must be an integer of at least {minimum}.")


def _read_groups(groups: ArrayLike | None, n_samples: int) -> Indices | None:
    """Read groups as integers from 0, in ascending order of the groups if they have one."""
    codes = check_groups(groups, n_samples)
    if codes is not None:
        first = np.unique(codes, return_index=True)[1]
        with suppress(TypeError):  # numbers beside strings have no order
            order = np.argsort(np.asarray(only_column(groups, "groups"))[first], kind="stable")
            codes = np.argsort(order)[codes]
    return codes
