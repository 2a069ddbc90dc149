"""What every open-set classifier shares: validation, label codec, the score-to-label rule.

A member writes ``_fit_boundaries`` and the two scoring methods; everything a user sees is here.
"""

from abc import ABCMeta, abstractmethod
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ._engine.devices import to_numpy
from ._labels import as_labels, cast_open_label


class BaseOpenSetClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Template of a classifier that knows K classes and answers *open* for everything else."""

    open_label: Any

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the boundaries of the classes in ``y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: NumPy, pandas, polars, or a torch tensor on any device. Dense and finite.
        y : array-like of shape (n_samples,)
            Labels. Rows labelled ``open_label`` are real open samples: they never become a class, they join the
            negatives.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If ``X`` is sparse, empty or not finite, if the lengths differ, if labels are of mixed kinds or
            continuous, or if every row is open.

        Warns
        -----
        UserWarning
            If fewer than two classes remain beside rows that were read as open.
        """
        X, y = self._validate_training_data(X, y)
        self.open_label_ = cast_open_label(self.open_label, y)
        is_open = y == self.open_label_
        self.classes_, known_classes = np.unique(y[~is_open], return_inverse=True)
        if not len(self.classes_):
            msg = (
                f"Every one of the {len(y)} rows has the open label {self.open_label_!r}: y must hold at least one "
                "known class; pass another open_label if this label is a class of yours."
            )
            raise ValueError(msg)
        if len(self.classes_) < 2 and is_open.any():
            warn(
                f"{is_open.sum()} rows with the label {self.open_label_!r} were read as open, which leaves the single "
                f"class {self.classes_[:1].tolist()[0]!r}; pass another open_label if that label is a class of yours.",
                stacklevel=3,
            )
        self.offset_ = 0.0
        self._fit_boundaries(X[~is_open], known_classes.astype(np.int64), X[is_open])
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each row with a known class, or with ``open_label_`` where its score is below ``offset_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        X = self._validate_scored_data(X)
        assigned, scores = self._score_assigned(X)
        return self._possible_answers()[np.where(scores < self.offset_, len(self.classes_), assigned)]

    def predict_known(self, X: ArrayLike) -> NDArray[Any]:
        """Label each row with the known class that it is assigned to, never open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The closed-set answer.
        """
        X = self._validate_scored_data(X)
        return np.asarray(self.classes_[self._score_assigned(X)[0]])

    def score_samples(self, X: ArrayLike) -> NDArray[np.floating]:
        """Knownness of each row: the margin of the class that it is assigned to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Higher is more known; ``predict`` answers open exactly where this is below ``offset_``.
        """
        X = self._validate_scored_data(X)
        return self._score_assigned(X)[1]

    def class_margins(self, X: ArrayLike) -> NDArray[np.floating]:
        """Margin of each row for each class, without units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        margins : ndarray of shape (n_samples, n_classes)
            1 at a class's centre, 0 on its boundary, negative outside.
        """
        return self._score_all(self._validate_scored_data(X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
        """Confidence of each class in scikit-learn's shape; its argmax is always ``predict_known``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        decision : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The class margins, the assigned class's column raised to the row's maximum; for two classes the
            difference of the two columns, positive for ``classes_[1]``.
        """
        X = self._validate_scored_data(X)
        decision = self._score_all(X)
        assigned = self._score_assigned(X)[0]
        best = decision.max(axis=1)
        # Ties go to the first column, so that an assigned class further right must lie a hair above.
        raised = np.where(decision.argmax(axis=1) == assigned, best, np.nextafter(best, np.inf, dtype=best.dtype))
        decision[np.arange(len(decision)), assigned] = raised
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of ``predict``, every label outside ``classes_`` being read as open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels; a class that was not in training is open for this classifier.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        truth, answers = self._encode(column_or_1d(as_labels(to_numpy(y)))), self._encode(self.predict(X))
        return float(accuracy_score(truth, answers, sample_weight=sample_weight))

    def _encode(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Index in ``classes_`` of each label, and the number of classes for every other label."""
        known = np.isin(labels, self.classes_)
        codes = np.full(len(labels), len(self.classes_), dtype=np.int64)
        codes[known] = np.searchsorted(self.classes_, labels[known])
        return codes

    @abstractmethod
    def _fit_boundaries(self, X: NDArray[Any], classes: NDArray[np.int64], real_open: NDArray[Any]) -> None:
        """Learn from known rows, their classes 0 … K − 1, and rows that are really open."""

    @abstractmethod
    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        """Give the assigned class index of each row and the margin of that class."""

    @abstractmethod
    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        """Margins of all classes, (n_samples, n_classes), a new array."""

    def _validate_training_data(self, X: ArrayLike, y: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
        if y is None:
            msg = (
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None: "
                "pass one label for each row of X."
            )
            raise ValueError(msg)
        y = as_labels(to_numpy(y))
        X, y = validate_data(self, to_numpy(X), y, dtype=(np.float64, np.float32), ensure_min_samples=1)
        check_classification_targets(y)
        return np.asarray(X), np.asarray(y)

    def _validate_scored_data(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(validate_data(self, to_numpy(X), dtype=(np.float64, np.float32), reset=False))

    def _possible_answers(self) -> NDArray[Any]:
        """Every class, then the open label, in one array whose type holds them all."""
        classes = self.classes_.astype(np.int64) if self.classes_.dtype.kind in "bu" else self.classes_
        return np.append(classes, self.open_label_)
