"""Base of classifiers that pass sparse rows or texts on to a user's estimator."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._core.fit_steps import encode, gather_used
from .._core.fitted_state import fit_context
from .._core.labels import as_labels, check_given
from .._core.sklearn import count_rows, take_rows
from .._core.texts import texts_of
from .._core.validation import check_groups, number, read_relative_weights
from .._torch.threads import one_thread_each
from ._threshold import Integers, ThresholdedClassifier


class OwnRowsClassifier(ThresholdedClassifier):
    """Template of a classifier that fits an ``estimator`` to rows of any kind.

    The steps of the fit get the number of each row instead of its features; the estimator gets the rows. Equal rows are
    duplicates. Outliers are not dropped, and norms are not compared.
    """

    estimator: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            own, theirs = tags.input_tags, get_tags(self.estimator).input_tags
            own.sparse, own.string = theirs.sparse, theirs.string
            own.one_d_array, own.two_d_array = theirs.one_d_array, theirs.two_d_array
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    @one_thread_each()
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        rows = None if self.estimator is None else _own_rows(X)
        if rows is None:
            return super().fit(X, y, sample_weight=sample_weight, groups=groups)
        check_given(y, type(self).__name__)
        labels, n = np.asarray(as_labels(y, warn=True)), count_rows(rows)
        if len(labels) != n:
            raise ValueError(f"X has {n} rows, but y has {len(labels)} labels; pass one label for each row.")
        weights, given = read_relative_weights(sample_weight, n), check_groups(groups, n)
        used = np.flatnonzero(weights > 0)
        self.open_label_, self.classes_, codes = encode(labels, self.open_label, used)
        units = np.arange(n) if self.duplicates == "off" else _copies(rows, codes)
        if self.duplicates == "once":
            weights = weights / np.bincount(units[used], minlength=n)[units].clip(1)
        alike = units if given is None else number(zip(units.tolist(), given.tolist(), strict=True))
        _, firsts, of_first = np.unique(alike[used], return_index=True, return_inverse=True)
        firsts, total = used[firsts], np.zeros(n)
        total[firsts] = np.bincount(of_first, weights[used])
        numbers, order = np.arange(n, dtype=np.float64)[:, np.newaxis], np.sort(firsts)
        samples, found = gather_used(numbers, codes, total, given, order, self.classes_, "off")
        self.groups_ = np.full(n, -1)
        self.groups_[used] = found[firsts[of_first]]
        self._norm_range, self._zeros_are_none = None, False
        self.offset_, self.class_offsets_ = 0.0, np.zeros(len(self.classes_))
        self._rows = rows
        try:
            self._fit_boundaries(samples)
        finally:
            del self._rows  # not fitted state
        if issparse(rows):
            self.n_features_in_ = rows.shape[1]
        return self

    fit.__doc__ = ThresholdedClassifier.fit.__doc__

    def _unfitted_copy(self) -> Any:
        part = super()._unfitted_copy()
        if hasattr(self, "_rows"):
            part._rows = self._rows
        return part

    def _taken(self, X: Any) -> Any:
        """Rows for the estimator; during a fit, by their numbers."""
        return take_rows(self._rows, X[:, 0].astype(np.int64)) if hasattr(self, "_rows") else X

    def _validate_scored_data(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        rows = None if getattr(self, "logit_estimator_", None) is None else _own_rows(X)
        return super()._validate_scored_data(X) if rows is None else rows

    def _score_assigned(self, X: Any) -> tuple[Integers, NDArray[np.floating]]:
        if isinstance(X, np.ndarray):
            return super()._score_assigned(X)
        scored = self._score(X)
        return scored.assigned, scored.knownness - self.threshold_

    def _score_all(self, X: Any) -> NDArray[np.floating]:
        return super()._score_all(X) if isinstance(X, np.ndarray) else self._score(X).by_class


def _own_rows(X: Any) -> Any:
    """Return sparse rows or a list of texts; ``None`` for anything else."""
    return X.tocsr() if issparse(X) else texts_of(X)


def _copies(rows: Any, codes: Integers) -> Integers:
    """Give equal rows of a class the same number."""
    if not issparse(rows):
        return number(zip(codes.tolist(), rows, strict=True))
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    parts = zip(np.split(rows.indices, rows.indptr[1:-1]), np.split(rows.data, rows.indptr[1:-1]), strict=True)
    return number((code, *map(bytes, part)) for code, part in zip(codes.tolist(), parts, strict=True))
