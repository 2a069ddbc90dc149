"""The threshold by cross-validation: pooled scores of samples and classes that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skellipsoid_runtime._containers import in_memory, only_column

from ..._core.fitted_state import fit_context
from ..._core.labels import as_labels, cast_open_label, check_given
from ..._core.pipelines import describe_lost_groups, duplicate_groups, fit_parameters, read_estimator, split_estimator
from ..._core.sklearn import HasMethods, Interval
from ..._core.state_rules import CLASSES, ESTIMATOR, LABEL, N_FEATURES, Rule, Sizes, optional
from ..._core.warn import warn
from ..._samples.projections import projection_left_out
from ...model_selection import OpenSetKFold
from .offsets import Fold, check_rates, offsets_of
from .set import open_set_classifier
from .tuned_folds import are_discriminants, deal, keep, score_fold


class TunedOperatingPointCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Open-set classifier whose threshold is chosen by cross-validation.

    The counterpart of :class:`~sklearn.model_selection.TunedThresholdClassifierCV` for open-set classifiers. In every
    fold the estimator is fitted on the training part and scores the test part; classes that are only in the test part
    are open. Each fold gives one offset; their median is set on the estimator that is fitted on all samples
    (:func:`set_operating_point`). The results of the folds are reported: they show how much the offset varies.

    Parameters
    ----------
    estimator : open-set classifier of this package, or Pipeline or search that ends in one
        Cloned and fitted in each fold, and once on all samples. A search (``GridSearchCV``) chooses its parameters in
        each fold anew.

    rejection_rate : float in [0, 1], default=None
        Take the offset that rejects at most this rate of new known samples, computed from the known samples of a
        fold's test part as in :func:`set_operating_point`.

    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this rate of new open samples, computed from a fold's open
        samples as in :func:`set_operating_point`. With both rates ``None``, take the offset at which the fold's macro
        F1 over known classes and open is best.

    cv : cross-validation splitter, iterable of (train, test) or int, default=None
        An integer is the number of folds of ``OpenSetKFold(cv, shuffle=True, random_state=0)`` with the estimator's
        open label. ``None`` is five folds of this kind from two classes on, in which a class of a single group always
        trains. Folds of ordinary splitters have no open samples, unless some samples have the open label.

    n_jobs : int, default=None
        Number of folds to fit in parallel, as in scikit-learn.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all samples, its offset set. ``held_out_`` of the classifier, and so its p-values and forecasts, are
        of the folds, if the classifier keeps held-out samples.

    offset_ : float
        The offset of the classifier in ``estimator_``. After ``fit`` it is the median of the folds' offsets; at least 0
        behind a linear discriminant analysis. :func:`set_operating_point` changes it.

    class_offsets_ : ndarray of shape (n_classes,)
        Added to ``offset_`` for each class; zeros after ``fit``.

    cv_results_ : dict of ndarray of shape (n_folds,)
        ``"offset"`` is the offset of each fold. The other entries are results of the median offset in each fold:
        ``"rejection_rate"``, of known samples; ``"open_acceptance_rate"``, of open ones (NaN without any);
        ``"open_set_f1"``. ``pandas.DataFrame(tuned.cv_results_)`` is a table.

    classes_ : ndarray of shape (n_classes,)

    open_label_ : int, float or str

    n_features_in_ : int
        Only if ``estimator_`` has it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if ``estimator_`` has it.

    See Also
    --------
    set_operating_point : The offset from given samples, without a fit.

    Notes
    -----
    The offset is chosen for the models of the folds. They are trained on fewer samples and classes than the final one.

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

    #: Fitted attributes, and what each must be to be loaded.
    _state: ClassVar[dict[str, Rule]] = {
        "estimator_": ESTIMATOR,
        "classes_": CLASSES,
        "open_label_": LABEL,
        "cv_results_": Rule("a mapping of arrays", lambda value: isinstance(value, Mapping)),
        "n_features_in_": optional(N_FEATURES),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],  # a search with refit=False has no predict, and gets an error of its own
        "rejection_rate": [Interval(Real, 0, 1, closed="both"), None],
        "open_acceptance_rate": [Interval(Real, 0, 1, closed="both"), None],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    # ``fit`` passes them on, and so is not asked whether it requests them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED, "sample_weight": UNUSED}

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

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Choose the offset by cross-validation, then fit on all samples.

        Parameters
        ----------
        X : array-like of length n_samples
            Training samples: features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            Labels; samples with the open label of the estimator are open.
        groups : array-like of shape (n_samples,), default=None
            Group of each sample. The default folds keep groups together, and so does every splitter that takes groups.
            The groups are also passed to the estimator, or to the steps of a Pipeline that take groups, also of a
            Pipeline in a search. A search over a classifier that is in no Pipeline passes them to its splitter only.
            ``None``: the default folds keep equal texts, and duplicate samples of numbers, together.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the fits of the classifier. Test samples of the folds count the same.
        **params : dict
            Further metadata, with scikit-learn's metadata routing alone. With it, all metadata, also groups and
            weights, reach the estimator and the splitter that request them, as in
            :class:`~sklearn.model_selection.TunedThresholdClassifierCV`. What has a row for each sample is divided
            with the samples.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If both rates are given, if a fold has no samples of the kind that the rate needs, if the splitter cannot
            split, or if there are ``params`` without metadata routing.
        TypeError
            If the estimator is not an open-set classifier of this package, or a Pipeline or search that ends in one, or
            if nothing takes a metadatum.
        sklearn.exceptions.UnsetMetadataPassedError
            If the estimator does not say whether it requests a metadatum, with metadata routing.

        Warns
        -----
        UserWarning
            If a fold has fewer known (or open) samples than the rate needs, 1 / rate − 1; or if groups are given that
            a search cannot pass to its classifier.
        """
        check_rates(self.rejection_rate, self.open_acceptance_rate)
        open_label = open_set_classifier(self.estimator).open_label
        check_given(y, type(self).__name__)
        X, labels = in_memory(X, "X"), as_labels(y, warn=True)
        X, labels, groups, weights = indexable(X, labels, only_column(groups, "groups"), sample_weight)
        weights = None if weights is None else np.asarray(weights)
        groups, passed = self._passed(groups, weights, params)
        parts = self._parts(X, labels, groups, open_label)
        folds: list[Fold] = Parallel(n_jobs=self.n_jobs)(
            delayed(score_fold)(clone(self.estimator), X, labels, passed, train, test) for train, test in parts
        )
        offsets = offsets_of(folds, self.rejection_rate, self.open_acceptance_rate)
        with projection_left_out(bool(split_estimator(self.estimator)[0])):
            estimator = clone(self.estimator).fit(X, labels, **passed)
        offset, fitted = float(np.median(offsets)), open_set_classifier(estimator)
        if self.rejection_rate is None and self.open_acceptance_rate is None and are_discriminants(fitted, folds):
            offset = max(offset, 0.0)
        self.estimator_ = estimator
        self.cv_results_ = {
            "offset": offsets,
            "rejection_rate": np.array([1 - fold.acceptance_rate(offset, known=True) for fold in folds]),
            "open_acceptance_rate": np.array([fold.acceptance_rate(offset, known=False) for fold in folds]),
            "open_set_f1": np.array([fold.f1(offset) for fold in folds]),
        }
        fitted.offset_ = offset
        keep(fitted, folds)
        self.classes_, self.open_label_ = fitted.classes_, fitted.open_label_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _passed(self, groups: Any, weights: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return groups for the splitter, and what the ``fit`` of the estimator is passed."""
        if not get_config()["enable_metadata_routing"]:
            if params:
                raise ValueError(
                    f"{type(self).__name__}.fit passes {', '.join(sorted(params))} on under metadata routing alone; "
                    "enable it with sklearn.set_config(enable_metadata_routing=True), and request them with "
                    "set_fit_request."
                )
            if groups is not None and (warning := describe_lost_groups(self.estimator)) is not None:
                warn(warning)
            return groups, fit_parameters(self.estimator, groups, weights)
        given = {name: value for name, value in (("groups", groups), ("sample_weight", weights)) if value is not None}
        routed = process_routing(self, "fit", **given, **params)
        return routed.splitter.split.get("groups"), dict(routed.estimator.fit)

    def get_metadata_routing(self) -> MetadataRouter:
        """Get metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What ``fit`` passes to the ``fit`` of the estimator, and to the ``split`` of the splitter.
        """
        splitter = OpenSetKFold() if self.cv is None or isinstance(self.cv, Integral) else self.cv
        of_fit = MethodMapping().add(caller="fit", callee="fit")
        of_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=of_fit).add(
            splitter=splitter, method_mapping=of_split
        )

    def _parts(self, X: Any, labels: NDArray[Any], groups: Any, open_label: Any) -> Iterable[tuple[Any, Any]]:
        """Rows to train on and to test, for each fold."""
        if not (self.cv is None or isinstance(self.cv, Integral)):  # a splitter of the user: with groups of the user
            parts: Iterable[tuple[Any, Any]] = check_cv(self.cv, labels, classifier=True).split(X, labels, groups)
            return parts
        together = duplicate_groups(X, labels) if groups is None else groups
        if self.cv is None:
            return deal(labels, cast_open_label(open_label, labels), together)
        return OpenSetKFold(int(self.cv), shuffle=True, random_state=0, open_label=open_label).split(
            X, labels, together
        )

    @property
    def offset_(self) -> float:
        """Offset of the fitted classifier."""
        return float(open_set_classifier(self._fitted()).offset_)

    @property
    def class_offsets_(self) -> NDArray[np.float64]:
        """Class offsets of the fitted classifier."""
        return open_set_classifier(self._fitted()).class_offsets_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each sample with a known class, or with ``open_label_`` where its score is too low.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._fitted().predict(X))

    def predict_known(self, X: ArrayLike) -> NDArray[Any]:
        """Label each sample with the known class that it is assigned to, never open.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._ask("predict_known", X))

    def known_p_value(self, X: ArrayLike) -> NDArray[np.float64]:
        """Conformal p-value of the hypothesis that a sample is of a known class, as the classifier gives it.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        p_values : ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If the classifier has no held-out scores.
        """
        return np.asarray(self._ask("known_p_value", X))

    def score_samples(self, X: ArrayLike) -> NDArray[np.floating]:
        """Knownness of each sample, as the estimator gives it.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return np.asarray(self._fitted().score_samples(X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
        """Confidence of each class, as the estimator gives it; it ignores ``offset_`` and never predicts open.

        Parameters
        ----------
        X : array-like of length n_samples

        Returns
        -------
        decision : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return np.asarray(self._fitted().decision_function(X))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of ``predict``, with every label outside ``classes_`` read as open.

        Parameters
        ----------
        X : array-like of length n_samples
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        return float(self._ask("score", X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Take the samples of the first step (texts, for an encoder) and the labels of the last one."""
        tags, (steps, last) = super().__sklearn_tags__(), split_estimator(self.estimator)
        inner = get_tags(last)
        tags.input_tags = get_tags(steps[0]).input_tags if steps else inner.input_tags
        tags.target_tags, tags.non_deterministic = inner.target_tags, inner.non_deterministic
        tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
        return tags

    def _ask(self, method: str, X: ArrayLike, *arguments: Any) -> Any:
        """Call a method of the classifier, which a Pipeline or search around it does not pass on or calls otherwise."""
        classifier, features = read_estimator(self._fitted(), X, (method,), type(self).__name__)
        return getattr(classifier, method)(features, *arguments)

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _check_state(self, sizes: Sizes) -> None:
        """Raise an error for what no rule of ``_state`` says."""
        inner = self.estimator_
        if not hasattr(inner, "score_samples") or list(getattr(inner, "classes_", [])) != list(self.classes_):
            raise ValueError(
                f"estimator_ is a {type(inner).__name__}, but must be an open-set classifier of the same classes_"
            )
