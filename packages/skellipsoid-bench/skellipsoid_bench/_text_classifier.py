"""Base class of open-set classifiers of texts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from skellipsoid._base import as_kind_of, as_labels, check_texts
from skellipsoid._core.labels import positions
from skellipsoid._core.text_estimators import TakesTexts
from skellipsoid._core.validation import unmasked


class TextOpenSetClassifier(TakesTexts, ClassifierMixin, BaseEstimator):
    """Template of an open-set classifier of texts. A member writes ``fit`` and ``predict``."""

    classes_: NDArray[Any]
    open_label_: Any

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of ``predict``, with every label outside ``classes_`` read as open.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            If ``y`` holds numbers and ``classes_`` strings or the reverse, if labels are missing, or if the lengths
            differ.
        """
        check_is_fitted(self)
        texts, truth = check_texts(X), as_kind_of(as_labels(y), self.classes_, "y", "classes_")
        if len(texts) != len(truth):
            raise ValueError(f"X has {len(texts)} texts, but y has {len(truth)} labels; pass one label for each text.")
        codes = [positions(labels, self.classes_) for labels in (truth, self.predict(texts))]
        return float(accuracy_score(*codes, sample_weight=unmasked(sample_weight, "sample_weight")))

    def _possible_labels(self) -> NDArray[Any]:
        """All classes and the open label in one array of a common type."""
        classes = self.classes_.astype(np.int64) if self.classes_.dtype.kind in "bu" else self.classes_
        return np.append(classes, self.open_label_)
