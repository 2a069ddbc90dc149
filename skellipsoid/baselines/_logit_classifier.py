"""Base of methods on logits f_k(x), one for each class, of a logistic regression or of a user's classifier."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from .._core.sklearn import HasMethods
from .._core.state_rules import ESTIMATOR, Rule, Sizes, floats, optional, or_none, refuse, require
from .._held_out.state import THRESHOLDED
from .._samples.samples import find_scale
from .._samples.training_samples import TrainingSamples
from ._own_rows import OwnRowsClassifier
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier

#: Probabilities are clipped to this distance from 0 and 1, so that logits stay finite.
SMALLEST_PROBABILITY = 1e-15
#: The logistic regression of ``estimator=None``, for features whose root mean squared distance to their mean is 1.
#: ``studies/logits.py``: with C = 1, 3, 10, 30, 100 the best macro F1 of softmax is 84.6, 84.7, 83.9, 83.1, 82.2,
#: and of the largest logit 84.7, 85.1, 85.0, 84.3, 83.3.
_LOGISTIC = {"C": 3.0, "max_iter": 1000}


@dataclass(kw_only=True, eq=False, repr=False)
class LogitClassifier(OwnRowsClassifier):
    """Template: one logit for each class, linear or of a user's classifier. A subclass implements ``_from_logits``."""

    estimator: Any = field(default=None, kw_only=False)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ThresholdedClassifier._parameter_constraints,
        "estimator": [
            HasMethods(["fit", "predict", "decision_function"]),
            HasMethods(["fit", "predict", "predict_proba"]),
            None,
        ],
    }

    _state: ClassVar[dict[str, Rule]] = {
        **THRESHOLDED,
        "logit_estimator_": or_none(ESTIMATOR),
        "coef_": or_none(floats("n_classes", "n_features")),
        "intercept_": or_none(floats("n_classes")),
        "_mean": optional(floats("n_features")),  # only of the logistic regression
    }

    def _check_state(self, sizes: Sizes) -> None:
        inner = self.logit_estimator_
        if inner is None:
            require(self, "_mean", "coef_", "intercept_")
            return
        scores = hasattr(inner, "decision_function") or hasattr(inner, "predict_proba")
        is_alike = scores and list(getattr(inner, "classes_", [])) == list(self.classes_)
        found = type(inner).__name__
        refuse(not is_alike, f"logit_estimator_ is a {found}, but must be a classifier of the same classes_")
        n_features = getattr(inner, "n_features_in_", sizes["n_features"])
        refuse(n_features != sizes["n_features"], f"logit_estimator_ takes {n_features} features")

    @abstractmethod
    def _from_logits(self, logits: Floats) -> Scored:
        """Score samples by their logits, (n_samples, n_classes)."""

    def _can_refit(self) -> bool:
        return not isinstance(self.estimator, FrozenEstimator)

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        if self.threshold == "auto" and not self._can_refit() and not len(samples.open_features):
            raise ValueError(
                "threshold='auto' fits without some of the classes, which a FrozenEstimator cannot; pass the estimator "
                f"itself, samples labelled {self.open_label_!r}, or another threshold."
            )
        super()._fit_boundaries(samples)

    def _fit_scores(self, samples: TrainingSamples) -> None:
        X, classes, weights = samples.features, samples.classes, samples.weights
        if self.estimator is None:
            self._fit_linear(X, classes, weights)
        else:
            self._fit_estimator(X, classes, weights)

    def _fit_linear(self, X: Floats, classes: Integers, weights: Floats) -> None:
        shares = weights / weights.sum()
        self._mean = shares @ X
        unit = find_scale(X, self._mean, shares)
        coef, intercept = self._logistic_regression((X - self._mean) / unit, classes, weights)
        self.logit_estimator_: Any = None
        self.coef_: Any = coef / unit
        self.intercept_: Any = intercept

    def _logistic_regression(self, features: Floats, classes: Integers, weights: Floats) -> tuple[Floats, Floats]:
        """Weights and intercepts of the logits, one row for each class."""
        if len(self.classes_) == 1:  # scikit-learn needs two
            return np.zeros((1, features.shape[1])), np.zeros(1)
        coef, intercept = self._fitted_regression(features, classes, weights)
        if len(self.classes_) == 2:
            return self._pair(coef[0]), self._pair(intercept[0])
        return coef, intercept

    @staticmethod
    def _fitted_regression(features: Floats, targets: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
        model = LogisticRegression(**_LOGISTIC).fit(features, targets, weights)
        return model.coef_, model.intercept_

    def _pair(self, one: Floats) -> Floats:
        """Logits of two classes from the single logit of the second class, along a new first axis."""
        return np.stack([-one, one]) * 0.5

    def _of_probabilities(self, shares: Floats) -> Floats:
        """Logits of these class probabilities."""
        return np.asarray(np.log(shares))

    def _fit_estimator(self, X: Floats, classes: Integers, weights: Floats) -> None:
        estimator = clone(self.estimator)
        # A Pipeline passes weights to the named step.
        step, last = estimator.steps[-1] if isinstance(estimator, Pipeline) else ("", estimator)
        name = f"{step}__sample_weight" if step else "sample_weight"
        weighted = {name: weights} if has_fit_parameter(last, "sample_weight") else {}
        self.logit_estimator_ = estimator.fit(self._taken(X), self.classes_[classes], **weighted)
        found = np.asarray(self.logit_estimator_.classes_)
        if found.tolist() != self.classes_.tolist():
            raise ValueError(
                f"estimator knows the classes {found.tolist()}, but y holds {self.classes_.tolist()}: fit it on the "
                "same classes."
            )
        self.coef_ = self.intercept_ = None
        self._logits(X[:1])  # refuses other columns than one for each class

    def _logits(self, X: Floats) -> Floats:
        """Logits of samples, (n_samples, n_classes)."""
        if self.logit_estimator_ is None:
            return np.asarray((X - self._mean) @ self.coef_.T + self.intercept_)
        if not hasattr(self.logit_estimator_, "decision_function"):
            shares = np.asarray(self.logit_estimator_.predict_proba(self._taken(X)), dtype=np.float64)
            return self._of_probabilities(shares.clip(SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY))
        logits = np.asarray(self.logit_estimator_.decision_function(self._taken(X)), dtype=np.float64)
        if logits.ndim == 1:  # two classes
            logits = self._pair(logits).T
        if logits.shape[1] != len(self.classes_):
            raise ValueError(
                f"decision_function of {type(self.logit_estimator_).__name__} has {logits.shape[1]} columns for "
                f"{len(self.classes_)} classes; it must have one for each (decision_function_shape='ovr')."
            )
        return logits

    def _score(self, X: Floats) -> Scored:
        return self._from_logits(self._logits(X))


def centred(logits: Floats) -> Floats:
    """Logits whose sum over the classes is 0: cross-entropy leaves a common shift of a sample's logits free."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))
