"""Classes come and go after a fit, also of a Pipeline: its transformers stay, its classifier changes."""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from .._ellipsoid.changes import ChangesClasses


def add_classes(estimator: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None, *, refresh: bool = False) -> Any:
    """Add new classes to a fitted Pipeline: its transformers stay, its classifier gets the classes.

    Read more in the :ref:`User Guide <changing_classes>`.

    Parameters
    ----------
    estimator : classifier or Pipeline
        Ends in an :class:`EllipsoidOpenSetClassifier` that kept its samples, as it does by default.
    X : array-like
        Samples of the new classes, as ``estimator.predict`` takes them: texts, if the Pipeline begins with an encoder.
    y : array-like of shape (n_samples,)
        Labels. Samples labelled ``open_label`` join the open samples.
    groups : array-like of shape (n_samples,), default=None
        Group of each sample, as in ``fit``.
    refresh : bool, default=False
        Whether to choose the shares and the size of the boundaries anew, too.

    Returns
    -------
    estimator : object
        A new estimator with the same fitted transformers. The given one is unchanged.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier whose classes can change.
    ValueError
        As :meth:`EllipsoidOpenSetClassifier.add_classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skellipsoid import EllipsoidOpenSetClassifier, add_classes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), clf).fit(X[:200], y[:200])
    >>> add_classes(pipe, X[200:], y[200:]).predict([[0, 9]]).tolist()
    ['c']
    """
    return _changed(estimator, "add_classes", X, y, groups, refresh=refresh)


def update_classes(
    estimator: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None, *, refresh: bool = False
) -> Any:
    """Add samples of known classes to a fitted Pipeline: as :func:`add_classes`, for labels that are known.

    Parameters
    ----------
    estimator : classifier or Pipeline
    X : array-like
        As ``estimator.predict`` takes it.
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), default=None
    refresh : bool, default=False
        Whether to choose the shares and the size of the boundaries anew, too.

    Returns
    -------
    estimator : object
        A new estimator with the same fitted transformers.
    """
    return _changed(estimator, "update_classes", X, y, groups, refresh=refresh)


def remove_classes(estimator: Any, labels: ArrayLike, *, refresh: bool = False) -> Any:
    """Remove classes from a fitted Pipeline; its transformers stay.

    Parameters
    ----------
    estimator : classifier or Pipeline
    labels : array-like of shape (n_labels,)
        Known classes.
    refresh : bool, default=False
        Whether to choose the shares and the size of the boundaries anew, too.

    Returns
    -------
    estimator : object
        A new estimator with the same fitted transformers.
    """
    return _changed(estimator, "remove_classes", labels, refresh=refresh)


def merge_classes(estimator: Any, merged: Mapping[Any, Sequence[Any]], *, refresh: bool = False) -> Any:
    """Merge classes of a fitted Pipeline, or rename them; its transformers stay.

    Parameters
    ----------
    estimator : classifier or Pipeline
    merged : mapping
        The new label, and the known classes that become this class: ``{"new": ["a", "b"]}``.
    refresh : bool, default=False
        Whether to choose the shares and the size of the boundaries anew, too.

    Returns
    -------
    estimator : object
        A new estimator with the same fitted transformers.
    """
    return _changed(estimator, "merge_classes", merged, refresh=refresh)


def _changed(estimator: Any, method: str, *arguments: Any, refresh: bool) -> Any:
    if isinstance(estimator, Pipeline):
        *steps, (name, last) = estimator.steps
        if method in ("add_classes", "update_classes"):
            X, *others = arguments
            arguments = (estimator[:-1].transform(X) if steps else X, *others)
        changed = copy(estimator)
        changed.steps = [*steps, (name, _changed(last, method, *arguments, refresh=refresh))]
        return changed
    if not isinstance(estimator, ChangesClasses):
        raise TypeError(
            f"The classes of {type(estimator).__name__} cannot change after a fit: fit a new one on all samples, which "
            "takes about as long as a change, or use an EllipsoidOpenSetClassifier, or a Pipeline that ends in one."
        )
    change = getattr(estimator, method)
    if not refresh:
        return change(*arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*; call refresh", category=UserWarning)  # that is what follows
        changed = change(*arguments)
    return changed.refresh()
