"""Splits a fitted Pipeline or search into transformers and classifier, and reads its scores and predictions."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._samples.duplicates import find_duplicates
from .fitted_state import present
from .labels import cast_open_label
from .sklearn import BaseSearchCV
from .texts import equal_texts, texts_of
from .validation import check_squares, read_features

#: Number of entries of each array that a fingerprint reads.
_HEAD = 1000


def split_estimator(estimator: Any) -> tuple[list[Any], Any]:
    """Split a Pipeline into its transformers and the classifier that it ends in.

    Parameters
    ----------
    estimator : classifier, Pipeline, search or tuned operating point
        A Pipeline may end in another one; of a fitted search the best estimator is taken, of a tuned operating point
        the one fitted on all rows, of a frozen estimator the one inside.

    Returns
    -------
    transformers : list
        In the order of the data; none for a classifier alone. The samplers of an imbalanced-learn Pipeline, which act
        in its fit alone, are left out.
    classifier : estimator
    """
    estimator = _unwrap(estimator)
    if not isinstance(estimator, Pipeline):
        return [], estimator
    *steps, last = [step for _, step in estimator.steps]
    inner, classifier = split_estimator(last)
    return [_unwrap(step) for step in steps if is_acting(step)] + inner, classifier


def is_acting(step: Any) -> bool:
    """Whether a step of a fitted Pipeline transforms samples; samplers of imbalanced-learn act in its fit alone."""
    return step not in (None, "passthrough") and not hasattr(step, "fit_resample")


def is_search(estimator: Any) -> bool:
    """Whether an estimator is a search over parameters, of scikit-learn or with its attributes."""
    return isinstance(estimator, BaseSearchCV) or (
        hasattr(estimator, "estimator") and hasattr(type(estimator), "best_params_")
    )


def check_refits(estimator: Any) -> None:
    """Raise an error if an estimator is a search that keeps no fitted estimator."""
    if is_search(estimator) and getattr(estimator, "refit", True) is False:
        raise NotFittedError(
            f"This {type(estimator).__name__} has refit=False, so that its fit keeps no fitted estimator; fit it with "
            "refit=True, or pass an estimator that is fitted with its best_params_."
        )


def _unwrap(estimator: Any) -> Any:
    """Unwrap searches, tuned operating points and frozen estimators; return the fitted estimator if there is one."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif is_search(estimator):
            check_refits(estimator)
            estimator = estimator.estimator
        elif hasattr(estimator, "open_label_") and hasattr(estimator, "estimator_"):
            estimator = estimator.estimator_
        else:
            return estimator


def fingerprint(estimator: Any) -> str:
    """Hash the arrays that a fit has stored: it changes with a fit, and not with the operating point."""
    steps, last = split_estimator(estimator)
    digest = sha256()
    for step in (*steps, last):
        for name, value in sorted(vars(step).items()):
            if name in ("class_offsets_", "_held_out", "_kept", "_learned"):  # what a fit kept beside adds nothing
                continue
            for array in _arrays(value):
                head = array.flat[:_HEAD]
                content = head.tobytes() if array.dtype.kind in "biuf" else repr(head.tolist()).encode()
                digest.update(f"{name}{array.shape}".encode() + content)
    return digest.hexdigest()


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Arrays of an attribute, also of a tuple or dataclass."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value):
        for column in fields(value):
            yield from _arrays(getattr(value, column.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)


def read_estimator(estimator: Any, X: Any, members: Sequence[str], caller: str, remedy: str = "") -> tuple[Any, Any]:
    """Take the fitted classifier out of an estimator, and transform samples to its features.

    Samples are transformed once, however many methods of the classifier are called then: embedding texts is slow.

    Parameters
    ----------
    estimator : classifier, Pipeline or search
    X : array-like
        What the estimator predicts on.
    members : sequence of str
        Methods and attributes of the classifier that the caller needs.
    caller : str
        Name of the caller, for the error.
    remedy : str
        What else can be done, for the error.

    Returns
    -------
    classifier : estimator
    features : array-like of shape (n_samples, n_features)

    Raises
    ------
    TypeError
        If the classifier lacks a member.
    NotFittedError
        If it is not fitted.
    ValueError
        If there are no samples.
    """
    check_samples(X, caller)
    transformers, classifier = split_estimator(estimator)
    missing = [name for name in members if not (name.endswith("_") or hasattr(classifier, name))]
    if not missing:
        check_is_fitted(classifier)
        missing = [name for name in members if not hasattr(classifier, name)]
    if missing:
        raise TypeError(
            f"{caller} needs {missing[0]}, which {type(classifier).__name__} does not have: pass an open-set "
            f"classifier that has it, such as EllipsoidOpenSetClassifier, or a Pipeline that ends in one{remedy}."
        )
    for transformer in transformers:
        X = transformer.transform(X)
    return present(classifier), X


def with_names(X: NDArray[Any], step: Any) -> Any:
    """Return features as a table with the names that a step was fitted with, as ``set_output`` does, or as an array."""
    names = getattr(step, "feature_names_in_", None)
    if names is None:
        return X
    library = import_module("pandas" if "pandas" in sys.modules else "polars")
    return library.DataFrame(dict(zip(names.tolist(), X.T, strict=True)))


def check_samples(X: Any, caller: str) -> None:
    """Raise an error if X is None."""
    if X is None:
        raise ValueError(f"{caller} needs samples, but X is None; pass features, or texts for a text Pipeline.")


def less_class_offsets(classifier: Any, score: NDArray[np.floating], assigned: NDArray[Any]) -> NDArray[np.floating]:
    """Subtract the class offsets from scores, so that open is predicted exactly below ``offset_``."""
    class_offsets = classifier.class_offsets_[np.searchsorted(classifier.classes_, assigned)]
    offset, relative = classifier.offset_, score - class_offsets
    # predict compares with the sum, which rounds differently from this difference.
    is_below = score < (offset + class_offsets).astype(score.dtype)
    below, least = np.minimum(relative, np.nextafter(offset, -np.inf)), np.maximum(relative, offset)
    return np.asarray(np.where(is_below, below, least))


def fit_parameters(estimator: Any, groups: Any, weights: Any) -> dict[str, Any]:
    """Fit parameters that pass groups to every step that takes them, and weights to the last one.

    Metadata routing does the same where it is enabled.
    """
    passed = {} if groups is None else dict.fromkeys(_group_parameters(estimator), groups)
    if weights is not None:
        passed[_weight_parameter(estimator)] = weights
    return passed


def _weight_parameter(estimator: Any) -> str:
    """Name of the parameter of ``fit`` by which weights reach the classifier."""
    inner, name = estimator, "sample_weight"
    while isinstance(inner, Pipeline) or is_search(inner):
        if isinstance(inner, Pipeline):
            name, inner = f"{inner.steps[-1][0]}__{name}", inner.steps[-1][1]
        else:
            inner = inner.estimator
    return name


def _group_parameters(estimator: Any, prefix: str = "") -> Iterator[str]:
    """Names of the parameters of ``fit`` by which groups reach the splitters and estimators inside."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield from _group_parameters(step, f"{prefix}{name}__")
    elif is_search(estimator):  # its own parameter is for the splitter, the others for the estimator
        yield f"{prefix}groups"
        if isinstance(estimator.estimator, Pipeline):
            yield from _group_parameters(estimator.estimator, prefix)
    elif has_fit_parameter(estimator, "groups"):
        yield f"{prefix}groups"


def describe_lost_groups(estimator: Any) -> str | None:
    """Describe in one sentence where an estimator has a search that cannot pass groups to its classifier."""
    if get_config()["enable_metadata_routing"]:
        return None
    if isinstance(estimator, Pipeline):
        found = [describe_lost_groups(step) for _, step in estimator.steps]
        return next(filter(None, found), None)
    if not is_search(estimator):
        return None
    inner = estimator.estimator
    if isinstance(inner, Pipeline) or not has_fit_parameter(inner, "groups"):
        return describe_lost_groups(inner)
    return (
        f"{type(estimator).__name__} passes groups to its splitter only, so {type(inner).__name__} is fitted without "
        f"them; search over make_pipeline({type(inner).__name__}(...)) instead, or use metadata routing and "
        "set_fit_request(groups=True)."
    )


def duplicate_groups(X: Any, y: NDArray[Any]) -> NDArray[np.int64] | None:
    """Group the duplicates among texts or numeric samples; ``None`` if there are none or they cannot be found."""
    classes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    texts = texts_of(X)
    if texts is not None:
        groups = equal_texts(texts, classes)
    else:
        try:
            table = check_array(read_features(X), dtype=np.float64)
            check_squares(table)
        except (TypeError, ValueError):  # not samples of a classifier
            return None
        groups = find_duplicates(table, classes)
    return groups if len(np.unique(groups)) < len(y) else None


def known_classes(estimator: Any) -> NDArray[Any]:
    """Classes that a fitted estimator knows, the open label not among them.

    Raises
    ------
    TypeError
        If the estimator has no ``classes_``.
    """
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise TypeError(f"{type(estimator).__name__} has no classes_; an open-set scorer needs a fitted classifier.")
    classes = np.asarray(classes)
    return np.asarray(classes[classes != cast_open_label(open_label_of(estimator), classes)])


def open_label_of(estimator: Any) -> Any:
    """Label that an estimator predicts for open: its ``open_label_``, or −1 for estimators that have none."""
    return getattr(split_estimator(estimator)[1], "open_label_", -1)


def knownness(estimator: Any, X: ArrayLike) -> NDArray[np.floating]:
    """Knownness of each sample: higher is more known, (n_samples,)."""
    if hasattr(estimator, "score_samples"):
        return np.asarray(estimator.score_samples(X))
    columns = _columns(estimator, X)
    return np.abs(columns) if columns.ndim == 1 else np.asarray(columns.max(axis=1))


def closed_set_prediction(estimator: Any, X: ArrayLike) -> NDArray[Any]:
    """Closed-set prediction: the known class of each sample, (n_samples,)."""
    columns = _columns(estimator, X)
    best = (columns > 0).astype(np.intp) if columns.ndim == 1 else columns.argmax(axis=1)
    return np.asarray(np.asarray(estimator.classes_)[best])


def _columns(estimator: Any, X: ArrayLike) -> NDArray[np.floating]:
    for name in ("decision_function", "predict_proba"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name)(X))
    raise TypeError(
        f"{type(estimator).__name__} has neither score_samples, decision_function nor predict_proba to rank samples by."
    )
