"""One logit for each class, by a linear head that is trained here or by a user's classifier."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import has_fit_parameter

from .._engine.boundary.heads import HeadSettings, train_head
from .._engine.common.devices import resolve_device, resolve_seed
from .._engine.common.samples import Gathered, Samples, find_scale
from .._engine.common.training import auto_batch_size
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier

#: Probabilities nearer to 0 or 1 count as this near: their logits stay finite.
_SMALLEST_PROBABILITY = 1e-15


class LogitClassifier(ThresholdedClassifier):
    """Template: one logit for each class, by a linear head or a user's classifier. A member writes ``_from_logits``."""

    #: How the head is trained, and what the logits mean.
    _loss: ClassVar[str] = "softmax"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict", "decision_function"]),
            HasMethods(["fit", "predict", "predict_proba"]),
            None,
        ],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    logit_estimator_: Any
    coef_: Any
    intercept_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: str | float = "quantile",
        learning_rate: float = 0.002,
        max_iter: int = 200,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.duplicates = duplicates
        self.open_label = open_label
        self.device = device
        self.random_state = random_state

    @abstractmethod
    def _from_logits(self, logits: Floats) -> Scored:
        """Score rows by their logits, (n_samples, n_classes)."""

    def _after_logits(self, logits: Floats, classes: Integers, weights: Floats) -> None:
        """Fit what the score needs beside the logits of the training rows."""

    def _can_refit(self) -> bool:
        return not isinstance(self.estimator, FrozenEstimator)

    def _part_parameters(self) -> dict[str, Any]:
        return {"random_state": self._seed}

    def _fit_boundaries(self, X: NDArray[Any], classes: Integers, real_open: NDArray[Any], gathered: Gathered) -> None:
        if self.threshold == "auto" and not self._can_refit() and not len(real_open):
            msg = (
                "threshold='auto' fits without some of the classes, which a FrozenEstimator cannot; pass the estimator "
                f"itself, rows labelled {self.open_label_!r}, or another threshold."
            )
            raise ValueError(msg)
        super()._fit_boundaries(X, classes, real_open, gathered)

    def _fit_scores(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        if self.estimator is None:
            self._seed = resolve_seed(self.random_state)
            self._fit_head(X, classes, gathered)
        else:
            self._seed = 0
            self._fit_estimator(X, classes, gathered.weights)
        self._after_logits(self._logits(X), classes, gathered.weights)

    def _fit_head(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        device = resolve_device(self.device)
        weights = gathered.weights / gathered.weights.sum()
        self._mean = weights @ X
        # Features have unit variance on average, and keep their directions.
        unit = find_scale(X, self._mean, weights) / np.sqrt(X.shape[1])
        samples = Samples.of(
            torch.from_numpy(((X - self._mean) / unit).astype(np.float32)).to(device),
            torch.from_numpy(classes).to(device),
            len(self.classes_),
            gathered.weights,
            gathered.units,
            gathered.groups,
        )
        settings = HeadSettings(self._loss, self.learning_rate, auto_batch_size(len(X)), self.max_iter)
        head = train_head(samples, settings, self._seed)
        self.logit_estimator_ = None
        self.coef_ = head.weights.double().cpu().numpy() / unit
        self.intercept_ = head.bias.double().cpu().numpy()
        self.n_iter_, self.loss_curve_ = head.history.n_iter, head.history.losses

    def _fit_estimator(self, X: Floats, classes: Integers, weights: Floats) -> None:
        estimator = clone(self.estimator)
        weighted = {"sample_weight": weights} if has_fit_parameter(estimator, "sample_weight") else {}
        self.logit_estimator_ = estimator.fit(X, self.classes_[classes], **weighted)
        found = np.asarray(self.logit_estimator_.classes_)
        if found.tolist() != self.classes_.tolist():
            msg = (
                f"estimator knows the classes {found.tolist()}, but y holds {self.classes_.tolist()}: fit it on the "
                "same classes."
            )
            raise ValueError(msg)
        self.coef_ = self.intercept_ = None
        self.n_iter_, self.loss_curve_ = 0, []

    def _logits(self, X: Floats) -> Floats:
        """Logits of rows, (n_samples, n_classes)."""
        if self.logit_estimator_ is None:
            return np.asarray((X - self._mean) @ self.coef_.T + self.intercept_)
        if not hasattr(self.logit_estimator_, "decision_function"):
            shares = np.asarray(self.logit_estimator_.predict_proba(X), dtype=np.float64)
            shares = shares.clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
            return np.asarray(np.log(shares) if self._loss == "softmax" else logit(shares))
        logits = np.asarray(self.logit_estimator_.decision_function(X), dtype=np.float64)
        if logits.ndim == 1:  # two classes
            logits = np.column_stack([-logits, logits]) * (0.5 if self._loss == "softmax" else 1.0)
        if logits.shape[1] != len(self.classes_):
            msg = (
                f"decision_function of {type(self.logit_estimator_).__name__} has {logits.shape[1]} columns for "
                f"{len(self.classes_)} classes; it must have one for each (decision_function_shape='ovr')."
            )
            raise ValueError(msg)
        return logits

    def _score(self, X: Floats) -> Scored:
        return self._from_logits(self._logits(X))


def centred(logits: Floats) -> Floats:
    """Logits whose sum over the classes is 0: cross-entropy leaves a common shift of a row's logits free."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))
