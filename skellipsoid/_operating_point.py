"""The operating point: how much a boundary rejects, set by given rows or chosen by cross-validation."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._base import BaseOpenSetClassifier
from ._labels import as_labels
from ._pipelines import duplicate_groups, fit_with_groups, read_estimator, split_estimator
from .metrics import open_set_f1_score
from .model_selection import OpenSetKFold

#: Offsets that each fold tries when it looks for the best F1.
_N_OFFSETS = 201


def set_operating_point(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    rejection_rate: float | None = None,
    open_acceptance_rate: float | None = None,
) -> Any:
    """Set how much a fitted classifier rejects.

    Moves ``offset_``, the score below which ``predict`` answers open; moving it to o is multiplying every radius by
    1 − o. Nothing else changes. Use rows that took no part in training.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted. It is changed in place; a later ``fit`` resets it.
    X : array-like
        What the estimator predicts on: features, or texts for a text Pipeline.
    y : array-like of shape (n_samples,), default=None
        Labels of the rows; those outside ``classes_`` are open. ``None``: every row is known for ``rejection_rate``,
        every row is open for ``open_acceptance_rate``.
    rejection_rate : float in [0, 1], default=None
        Take the largest offset that rejects at most this share of the rows not labelled open.
    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this share of the open rows.

    Returns
    -------
    estimator : object
        The same estimator. With both rates ``None`` its offset is 0 again: the learned boundary itself.

    Raises
    ------
    ValueError
        If both rates are given, if a rate is outside [0, 1], or if no row of the wanted kind is there.
    TypeError
        If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 2)) + np.repeat([[0], [9]], 200, axis=0), np.repeat([0, 1], 200)
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X[::2], y[::2])
    >>> clf = skellipsoid.set_operating_point(clf, X[1::2], rejection_rate=0.05)
    >>> float((clf.predict(X[1::2]) == -1).mean())
    0.05
    """
    classifier = _open_set_classifier(estimator)
    check_is_fitted(classifier)
    _check_one_rate(rejection_rate, open_acceptance_rate)
    if rejection_rate is None and open_acceptance_rate is None:
        classifier.offset_ = 0.0
        return estimator
    scores = np.asarray(estimator.score_samples(X))
    is_known = np.full(len(scores), rejection_rate is not None)
    if y is not None:
        labels = as_labels(y)
        check_consistent_length(scores, labels)
        is_known = np.isin(labels, classifier.classes_)
    classifier.offset_ = _offset_for_rate(scores, is_known, rejection_rate, open_acceptance_rate)
    return estimator


def _open_set_classifier(estimator: Any) -> BaseOpenSetClassifier:
    classifier = split_estimator(estimator)[1]
    if not isinstance(classifier, BaseOpenSetClassifier):
        msg = (
            f"{type(classifier).__name__} has no operating point to set; pass an open-set classifier of this package "
            "or a Pipeline that ends in one."
        )
        raise TypeError(msg)
    return classifier


def _check_one_rate(rejection_rate: float | None, open_acceptance_rate: float | None) -> None:
    if rejection_rate is not None and open_acceptance_rate is not None:
        msg = "rejection_rate and open_acceptance_rate are both given; set one of them and leave the other None."
        raise ValueError(msg)
    for name, rate in (("rejection_rate", rejection_rate), ("open_acceptance_rate", open_acceptance_rate)):
        if rate is not None and not 0 <= rate <= 1:
            msg = f"{name}={rate!r} is no share; use a number from 0 to 1."
            raise ValueError(msg)


def _offset_for_rate(
    scores: NDArray[np.floating],
    is_known: NDArray[np.bool_],
    rejection_rate: float | None,
    open_acceptance_rate: float | None,
) -> float:
    """Offset for whichever of the two rates is given."""
    if open_acceptance_rate is not None:
        return _smallest_offset(_rows(scores, is_known, want_known=False), open_acceptance_rate)
    return _largest_offset(_rows(scores, is_known, want_known=True), float(rejection_rate or 0))


def _rows(scores: NDArray[np.floating], is_known: NDArray[np.bool_], *, want_known: bool) -> NDArray[np.floating]:
    scores = scores[is_known == want_known]
    if not len(scores):
        kind, others = ("known", "open") if want_known else ("open", "known")
        msg = f"Every row of y is {others}, but the rate is one of {kind} rows; pass at least one {kind} row."
        raise ValueError(msg)
    return scores


def _most(n_rows: int, rate: float) -> int:
    """Largest number of rows that is at most the share ``rate`` of them; quotients, because 0.29 · 100 < 29."""
    return int(np.searchsorted(np.arange(n_rows + 1) / n_rows, rate, side="right")) - 1


def _largest_offset(scores: NDArray[np.floating], rate: float) -> float:
    most = _most(len(scores), rate)
    return float(np.sort(scores)[most]) if most < len(scores) else np.inf


def _smallest_offset(scores: NDArray[np.floating], rate: float) -> float:
    most = _most(len(scores), rate)
    # The offset itself is accepted: it must lie a hair above the first score that is not, in the scores' precision.
    return (
        float(np.nextafter(np.sort(scores)[::-1][most], scores.dtype.type(np.inf))) if most < len(scores) else -np.inf
    )


class TunedOperatingPointCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Open-set classifier whose operating point is chosen by cross-validation.

    What :class:`~sklearn.model_selection.TunedThresholdClassifierCV` is to a binary classifier: in every fold the
    estimator is fitted on the training part and scores the test part, whose classes that were left out of training are
    open. Each fold gives one offset; their median is set on the estimator that is fitted on all rows
    (:func:`set_operating_point`). How far the folds disagree is reported, and is often more telling than the median.

    Parameters
    ----------
    estimator : open-set classifier of this package or Pipeline that ends in one
        Cloned and fitted in each fold, and once on all rows.

    rejection_rate : float in [0, 1], default=None
        Take the largest offset that rejects at most this share of a fold's known rows.

    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this share of a fold's open rows. With both rates ``None``, take
        the offset at which the fold's macro F1 over known classes and open is best.

    cv : cross-validation splitter, iterable of (train, test) or int, default=None
        An integer is the number of folds of ``OpenSetKFold(cv, shuffle=True, random_state=0)`` with the estimator's
        open label; ``None`` is 5. Folds of ordinary splitters hold no open rows unless some are labelled so.

    n_jobs : int, default=None
        Folds to fit at the same time, as everywhere in scikit-learn.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows, its offset set.

    offset_ : float
        The median of the folds' offsets.

    cv_results_ : dict of ndarray of shape (n_folds,)
        For each fold: ``"offset"``, its own; and what the chosen ``offset_`` does there: ``"rejection_rate"``, share of
        known rows rejected; ``"open_acceptance_rate"``, share of open rows accepted (NaN without open rows);
        ``"open_set_f1"``. ``pandas.DataFrame(tuned.cv_results_)`` is a table.

    classes_ : ndarray of shape (n_classes,)

    open_label_ : int, float or str

    n_features_in_ : int
        Only where ``estimator_`` has it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where ``estimator_`` has it.

    See Also
    --------
    set_operating_point : The same from given rows, without fitting anything.

    Notes
    -----
    The chosen offset makes up for what the folds see, which is not quite the final fit: fewer rows, and fewer classes.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(600, 8, n_known=6, open_share=0.0, random_state=0)
    >>> tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=3).fit(X, y)
    >>> tuned.cv_results_["offset"].shape
    (3,)
    >>> tuned.estimator_.offset_ == tuned.offset_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "rejection_rate": [Interval(Real, 0, 1, closed="both"), None],
        "open_acceptance_rate": [Interval(Real, 0, 1, closed="both"), None],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        rejection_rate: float | None = None,
        open_acceptance_rate: float | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.rejection_rate = rejection_rate
        self.open_acceptance_rate = open_acceptance_rate
        self.cv = cv
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose the offset by cross-validation, then fit on all rows.

        Parameters
        ----------
        X : array-like of length n_samples
            What the estimator learns from: features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            Labels; rows with the open label of the estimator are open.
        groups : array-like of shape (n_samples,), default=None
            Group of each row. The default folds keep groups together, and so does every splitter that takes groups; the
            estimator, or the steps of a Pipeline that take groups, get them too. ``None``: the default folds keep equal
            texts, and duplicate rows of numbers, together.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If both rates are given, if a fold lacks the rows that its rate is about, or if the splitter cannot split.
        TypeError
            If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one.
        """
        _check_one_rate(self.rejection_rate, self.open_acceptance_rate)
        open_label = _open_set_classifier(self.estimator).open_label
        X, labels, groups = indexable(X, as_labels(y), groups)
        cv = 5 if self.cv is None else self.cv
        is_own = isinstance(cv, Integral)
        if isinstance(cv, Integral):
            cv = OpenSetKFold(int(cv), shuffle=True, random_state=0, open_label=open_label)
        # Splitters of the user's own get what the user gives.
        together = duplicate_groups(X, labels) if groups is None and is_own else groups
        parts = check_cv(cv, labels, classifier=True).split(X, labels, together)
        folds: list[_Fold] = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_fold)(clone(self.estimator), X, labels, groups, train, test) for train, test in parts
        )
        offsets = np.array([self._offset_of(fold) for fold in folds])
        offset = float(np.median(offsets))
        estimator = fit_with_groups(clone(self.estimator), X, labels, groups)
        # Nothing is set before everything is there.
        self.offset_, self.estimator_ = offset, estimator
        self.cv_results_ = {
            "offset": offsets,
            "rejection_rate": np.array([1 - fold.share_accepted(offset, known=True) for fold in folds]),
            "open_acceptance_rate": np.array([fold.share_accepted(offset, known=False) for fold in folds]),
            "open_set_f1": np.array([fold.f1(offset) for fold in folds]),
        }
        fitted = _open_set_classifier(estimator)
        fitted.offset_ = offset
        self.classes_, self.open_label_ = fitted.classes_, fitted.open_label_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _offset_of(self, fold: "_Fold") -> float:
        if self.rejection_rate is None and self.open_acceptance_rate is None:
            return fold.best_offset()
        return _offset_for_rate(fold.scores, fold.is_known, self.rejection_rate, self.open_acceptance_rate)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each row with a known class, or with ``open_label_`` where its score is below ``offset_``.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._fitted().predict(X))

    def score_samples(self, X: ArrayLike) -> NDArray[np.floating]:
        """Knownness of each row, as the estimator gives it.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return np.asarray(self._fitted().score_samples(X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
        """Confidence of each class, as the estimator gives it.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        decision : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return np.asarray(self._fitted().decision_function(X))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of ``predict``, every label outside ``classes_`` being read as open.

        Parameters
        ----------
        X : array-like of length n_samples
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._fitted().score(X, y, **weighted))

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_


@dataclass(frozen=True)
class _Fold:
    """How a fold's test rows were scored: classes as codes, ``n_classes`` standing for open."""

    true: NDArray[np.int64]
    nearest: NDArray[np.int64]
    scores: NDArray[np.floating]
    n_classes: int

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return self.true < self.n_classes

    def share_accepted(self, offset: float, *, known: bool) -> float:
        scores = self.scores[self.is_known == known]
        return float(np.mean(scores >= offset)) if len(scores) else float("nan")

    def f1(self, offset: float) -> float:
        answers = np.where(self.scores >= offset, self.nearest, self.n_classes)
        classes = np.arange(self.n_classes)
        return open_set_f1_score(self.true, answers, labels=classes, open_label=self.n_classes, zero_division=0)

    def best_offset(self) -> float:
        """Offset with the best F1; of equals the one that moves the boundary least."""
        if self.is_known.all():
            msg = (
                "A fold holds no open row, so that its F1 only falls with rejection; use a splitter that leaves "
                "classes out, such as OpenSetKFold, or set rejection_rate."
            )
            raise ValueError(msg)
        found = np.quantile(self.scores, np.linspace(0, 1, _N_OFFSETS), method="closest_observation")
        offsets = np.unique(np.append(found.astype(float), 0.0))
        f1 = np.array([self.f1(offset) for offset in offsets])
        best = offsets[f1 == f1.max()]
        return float(best[np.abs(best).argmin()])


def _score_fold(estimator: Any, X: Any, labels: NDArray[Any], groups: Any, train: Any, test: Any) -> _Fold:
    of_train = None if groups is None else _safe_indexing(groups, train)
    fit_with_groups(estimator, _safe_indexing(X, train), labels[train], of_train)
    classifier, features = read_estimator(
        estimator, _safe_indexing(X, test), ("score_samples", "predict_known"), "TunedOperatingPointCV"
    )
    return _Fold(
        true=classifier._encode(labels[test]),
        nearest=classifier._encode(classifier.predict_known(features)),
        scores=classifier.score_samples(features),
        n_classes=len(classifier.classes_),
    )
