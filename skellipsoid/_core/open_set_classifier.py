"""Base class of all open-set classifiers: y = argmax class if its score is at least offset + class offset, else open.

``fit`` runs the steps of ``fit_steps``. A subclass implements ``_fit_boundaries`` (or a ``fit`` of its own) and the two
scoring methods; the public methods are here. The scores of a ``BoundaryOpenSetClassifier`` are margins, 1 − distance /
radius; those of others have their own meaning.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from .._samples.training_samples import TrainingSamples
from .._torch.threads import one_thread_each
from .fit_steps import encode, gather_used, read_training, without_outliers
from .fitted_state import fit_context, of_one_fit
from .labels import as_kind_of, as_labels, positions
from .norms import are_zeros, less_excess, norms, usual_norms, warn_of_unlike_norms, zeros_are_none
from .state_rules import CLASSIFIER, Record, Rule
from .validation import (
    check_equal,
    is_plain,
    naming_rows,
    read_features,
    select_rows,
    unmasked,
)
from .warn import warn_in_search


class Predictions(NamedTuple):
    """Assigned class and score of each sample, from which ``predict`` makes labels."""

    assigned: NDArray[np.int64]
    scores: NDArray[np.floating]
    norms: NDArray[Any] | None  # Euclidean; ``None`` if they are not compared with those in training
    unread: NDArray[np.bool_]  # rows of zeros: texts that the encoder cannot read


def without_nan(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Replace NaN scores, ∞ − ∞ of samples far from all others, by −∞: such samples are open."""
    return np.where(np.isnan(scores), -np.inf, scores).astype(scores.dtype, copy=False)


def raised(decision: NDArray[np.floating], first: NDArray[np.int64]) -> NDArray[np.floating]:
    """Raise the scores of the ``first`` classes, (n_samples, n_first), above all others, in their order; in place."""
    numbers = np.arange(len(decision))
    others = decision.copy()
    others[numbers[:, np.newaxis], first] = -np.inf
    least = others.max(axis=1)
    for column in first.T[::-1]:
        # argmax takes the first of equal columns, so an equal score becomes the next larger float.
        own = decision[numbers, column]
        least = np.where(own > least, own, np.nextafter(least, np.inf, dtype=least.dtype))
        decision[numbers, column] = least
    return decision


class BaseOpenSetClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of a classifier of K known classes that predicts *open* for everything else."""

    open_label: Any = -1
    duplicates: str = "once"
    #: Fitted attributes, and the rule for each in a saved model.
    _state: ClassVar[Mapping[str, Rule | Record]] = CLASSIFIER
    # Whether outliers are dropped before the fit: ``"drop"`` or ``"keep"``.
    outliers: str = "drop"
    #: Whether sample weights may differ.
    _takes_weights: ClassVar[bool] = True
    #: Whether a row of zeros is a text that the encoder cannot read, and so open. False in models saved before this
    #: rule existed.
    _zeros_are_none: bool = False
    #: Allowed values of the parameters; those not named here are not checked.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @property
    def predict_proba(self) -> Any:
        """Not defined: probabilities of the known classes alone would be wrong for open samples."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba, since open samples have no class; use skellipsoid."
            "predict_open_proba(clf, X), or for cleanlab a LogisticRegression on the features (the guide, Recipes)."
        )

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
        """Fit the boundaries of the classes in ``y``.

        A fit that fails or is interrupted leaves the classifier as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: NumPy, pandas, polars, Arrow, or a torch tensor on any device, dense, finite, not masked, without
            dates. A column that holds vectors of one length is read as a matrix.
        y : array-like of shape (n_samples,)
            Labels. Samples labelled ``open_label`` are real open samples: they never become a class. Some methods use
            them to choose the boundaries or the threshold.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, on any scale; ``None`` is 1 for all. Samples of weight 0 are not used. The weight of
            duplicates depends on ``duplicates``. All real open samples of positive weight count the same.
        groups : array-like of shape (n_samples,), default=None
            Group of each sample: conversation, author, template. Samples of one group are held out together. ``None``:
            the duplicates that are found are the groups. Read more in the :ref:`User Guide <repeated>`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If ``X`` is sparse, empty, not finite, masked, or holds dates or values whose squares overflow, if the
            lengths differ, if labels are missing, mix numbers and strings or are continuous, if weights are negative
            or all 0, or differ where the method has no weights, if groups are missing, or if every sample is open.
        TypeError
            If ``X`` or the weights hold what is no number, such as a dict.

        Warns
        -----
        UserWarning
            If -1 may be a class: only the classes 0 and 1, or fewer than two, remain beside open samples. If outliers
            are dropped, or if a class is a single group.
        """
        X, y, weights, numbers, used = read_training(self, X, y, sample_weight, groups)
        if not self._takes_weights:
            check_equal(weights[used], type(self).__name__)
        self.open_label_, self.classes_, codes = encode(y, self.open_label, used)
        if self.outliers == "drop":
            used = without_outliers(X, codes, used, len(self.classes_))
        # Some methods have a parameter that makes every norm 1.
        is_normalized = getattr(self, "normalize", False)
        self._norm_range = None if is_normalized else usual_norms(select_rows(X, used), codes[used])
        self._zeros_are_none = zeros_are_none(select_rows(X, used[codes[used] < len(self.classes_)]))
        samples, self.groups_ = gather_used(X, codes, weights, numbers, used, self.classes_, self.duplicates)
        self.offset_, self.class_offsets_ = 0.0, np.zeros(len(self.classes_))
        self._fit_boundaries(samples)
        return self

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        """Fit to distinct samples of the known classes 0 … K − 1 and to real open samples, in the precision of X."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _fit_boundaries, or its own fit.")

    @of_one_fit
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each sample with a known class, or with ``open_label_`` if its score is too low.

        The threshold is ``offset_`` plus the entry of ``class_offsets_`` for the assigned class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)

        Warns
        -----
        UserWarning
            Once for each fit, if nearly all of at least 20 new samples, in one call or several, have norms unlike those
            in training: then the preprocessing may differ from that of training. With fewer than 10 features there is
            no warning. Read more in the :ref:`User Guide <unlike_norms>`.
        """
        assigned, scores, found, _ = self._score_checked(X, with_norms=True)
        warn_of_unlike_norms(self, found)
        least = (self.offset_ + self.class_offsets_[assigned]).astype(scores.dtype)
        return self._possible_labels()[np.where(scores >= least, assigned, len(self.classes_))]

    @of_one_fit
    def predict_known(self, X: ArrayLike) -> NDArray[Any]:
        """Label each sample with its assigned known class, never open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The closed-set prediction.
        """
        assigned = self._score_checked(X).assigned
        return np.asarray(self.classes_[assigned])

    @of_one_fit
    def score_samples(self, X: ArrayLike) -> NDArray[np.floating]:
        """Knownness of each sample (how likely it is known): the score of its assigned class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Higher is more known. ``predict`` returns open if the score is below ``offset_`` plus the entry of
            ``class_offsets_`` for the assigned class. A row of zeros, which a text encoder returns for a text that it
            cannot read, gets a score below all held-out scores, unless some training sample is nearly zero, too, or
            there are fewer than 10 features.
        """
        return self._score_checked(X).scores

    @of_one_fit
    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
        """Score of each class in scikit-learn's shape; it ignores ``offset_`` and has no column for open.

        Its argmax is the prediction of ``predict_known``, never open. To detect open samples use ``predict``, or
        ``score_samples`` for the knownness of a sample. Read more in the :ref:`User Guide <wrappers>`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        decision : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The scores of all classes. The score of the assigned class is raised to the largest score of the sample; in
            an :class:`~skellipsoid.EllipsoidOpenSetClassifier` those of the three nearest classes are raised, in order
            of distance. For two classes, the difference of the two columns, positive for ``classes_[1]``.
        """
        decision = raised(*self._decide(X))
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    def _in_order(self, X: ArrayLike, n_first: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Check samples; return their first classes by ``decision_function``, and the values that order them.

        Both are (n_samples, n_first), or as wide as there are classes; the values ascend.
        """
        scores, first = self._decide(X)
        order = np.argsort(-raised(scores.copy(), first), axis=1, kind="stable")[:, :n_first]
        numbers = np.arange(len(order))[:, np.newaxis]
        return order, self._compared(scores[numbers, order].astype(np.float64), order)

    @of_one_fit
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of ``predict``, with every label outside ``classes_`` read as open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels; a class that was not in training is open for this classifier.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            If ``y`` holds numbers and ``classes_`` strings or the reverse, if labels are missing, or if the lengths
            differ.

        Warns
        -----
        UserWarning
            Once in a search, such as ``GridSearchCV``, whose folds hold no open sample.
        """
        predictions, truth = self.predict(X), as_kind_of(as_labels(y), self.classes_, "y", "classes_")
        weights, codes = unmasked(sample_weight, "sample_weight"), self._encode(truth)
        if (codes < len(self.classes_)).all():
            warn_in_search(
                "The folds of this search hold no open sample, so that it prefers the model that rejects least; pass "
                "cv=OpenSetKFold() of skellipsoid.model_selection, and scoring=open_set_f1_scorer of its metrics."
            )
        return float(accuracy_score(codes, self._encode(predictions), sample_weight=weights))

    def _encode(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Index in ``classes_`` of each label, and the number of classes for every other label."""
        return positions(labels, self.classes_)

    @one_thread_each()
    def _score_checked(self, X: ArrayLike, *, with_norms: bool = False) -> Predictions:
        """Check samples, and score each for its assigned class."""
        X = self._validate_scored_data(X)
        judged = with_norms and getattr(self, "_norm_range", None) is not None
        assigned, scores = self._score_assigned(X)
        return self._predictions(assigned, without_nan(scores), self._unread(X), norms(X) if judged else None)

    @one_thread_each()
    def _score_all_checked(self, X: ArrayLike) -> NDArray[np.floating]:
        """Check samples, and return their scores for all classes."""
        return self._score_all_of(self._validate_scored_data(X))

    @one_thread_each()
    def _decide(self, X: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """Check samples, and return their scores for all classes, and the assigned class in a column."""
        X = self._validate_scored_data(X)
        return self._score_all_of(X), self._score_assigned(X)[0][:, np.newaxis]

    def _score_all_of(self, X: NDArray[Any]) -> NDArray[np.floating]:
        """Scores of checked samples for all classes."""
        scores = without_nan(self._score_all(X))
        if (unread := self._unread(X)).any():
            scores[unread] = self._less_unread(scores[unread], self._score_assigned(X[unread])[0])
        return scores

    def _unread(self, X: Any, norms: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """Rows of zeros: texts that the encoder cannot read, (n_samples,); of a tensor its ``norms`` say it."""
        if norms is not None:
            return np.asarray(self._zeros_are_none & (norms == 0))
        if not self._zeros_are_none or not isinstance(X, np.ndarray):  # samples in a container of a subclass
            return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X), dtype=bool)
        return np.asarray(are_zeros(X))

    @property
    def _unread_score(self) -> float:
        """Score of an unreadable text: below the boundary, and below all held-out known samples."""
        held_out: Any = getattr(self, "_held_out", None)
        known = np.zeros(0) if held_out is None else held_out.known.scores
        return float(known.min(initial=0.0)) - 1.0

    def _predictions(
        self,
        assigned: NDArray[np.int64],
        scores: NDArray[np.floating],
        unread: NDArray[np.bool_],
        norms: NDArray[Any] | None,
    ) -> Predictions:
        """Collect the predictions, with the score of unreadable texts lowered."""
        if unread.any():
            scores[unread] = scores[unread].clip(max=self._unread_score)
        return Predictions(assigned, scores, norms, unread)

    def _less_unread(self, scores: NDArray[np.floating], assigned: NDArray[np.int64]) -> NDArray[np.floating]:
        """Lower the scores of unreadable texts for all classes."""
        of_assigned = np.take_along_axis(scores, assigned[:, np.newaxis], axis=1)
        return np.asarray(less_excess(scores, of_assigned, self._unread_score))

    def _compared(self, scores: NDArray[np.float64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the values by which the first classes are ordered, ascending, (n_samples, n_first)."""
        return -scores

    @abstractmethod
    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        """Return the assigned class index of each sample and its score, in the precision of X; 0 is the boundary."""

    @abstractmethod
    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        """Scores of all classes, (n_samples, n_classes), a new array in the precision of X."""

    def _validate_scored_data(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        if is_plain(X, self):
            return np.asarray(X)
        X = read_features(X)
        with naming_rows(X):
            return np.asarray(validate_data(self, X, dtype=(np.float64, np.float32), reset=False))

    def _possible_labels(self) -> NDArray[Any]:
        """All classes and the open label in one array of a common type."""
        classes = self.classes_.astype(np.int64) if self.classes_.dtype.kind in "bu" else self.classes_
        return np.append(classes, self.open_label_)


class BoundaryOpenSetClassifier(BaseOpenSetClassifier):
    """Template of a classifier with a ball or an ellipsoid around each class: its scores are margins."""

    @of_one_fit
    def class_margins(self, X: ArrayLike) -> NDArray[np.floating]:
        """Margin of each sample for each class: 1 − distance / radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        margins : ndarray of shape (n_samples, n_classes)
            1 at a class's centre, 0 on its boundary, negative outside.
        """
        return self._score_all_checked(X)
