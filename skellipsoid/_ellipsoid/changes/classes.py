"""Classes come and go after a fit, also of a Pipeline: its transformers stay, its classifier changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from ..._core.pipelines import check_samples, is_acting
from ..classifier import EllipsoidOpenSetClassifier
from .refit import refreshed, with_merged, with_samples, without_classes


def add_classes(estimator: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Any:
    """Add samples of new and of known classes; shrinkage and size stay where they suit them.

    The result is that of a fit on all samples, old and new, with a, b, ρ, the radius scale and e of the given
    classifier. Means, covariances, shapes and held-out scores are computed anew. Duplicates are searched
    among all samples of the classes in ``y``. For labelled messages of a log see :func:`learn_from_traffic`. Read more
    in the :ref:`User Guide <changing_classes>`.

    Shrinkage and size are chosen anew, as by :func:`refresh`, where those of before do not suit the classes of now:
    where there were fewer than four classes and are more, or the other way, which have no covariance between classes;
    where a class rejects half of its held-out samples; or where all classes reject 5 % more of them than before (and
    more than by chance). The threshold stays as it was. Call :func:`refresh` after many changes.

    With ``trainer=EliDecide()`` the matrices of classes that are not in ``y`` stay. Those in ``y`` are trained, on all
    samples: in the losses, the matrix of a class does not act on those of the others. A part of the new samples
    are validation samples.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted :class:`EllipsoidOpenSetClassifier` that kept its samples, as it does by default, or a Pipeline that
        ends in one.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Samples, as ``estimator.predict`` takes them: texts, if the Pipeline begins with an encoder.
        A sample has the mean weight of the old samples.
    y : array-like of shape (n_samples,)
        Labels. Samples labelled ``open_label`` join the open samples.
    groups : array-like of shape (n_samples,), default=None
        Group of each sample, as in ``fit``. They are other groups than those of earlier samples.

    Returns
    -------
    estimator : object
        A new estimator, with the same fitted transformers. The given one is unchanged, so that it can serve meanwhile.
        Messages that were labelled open before, and that the classes in ``y`` accept now, are forgotten;
        ``changes_[-1]["forgotten"]`` is their number, if there are any.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier whose classes can change.
    ValueError
        If labels are of another kind, if a label is a class or the open label in another spelling (case, blanks,
        hyphens, quotes, brackets), if the number of features differs, or if the classifier has not kept its samples.

    Warns
    -----
    UserWarning
        If outliers are dropped, or if a new class has no spread. If shrinkage and size are chosen anew, and a threshold
        was placed for the former ones. If a class rejects many more of its held-out samples than the others did before.

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
    >>> pipe.predict([[0, 9]]).tolist()
    ['-1']
    >>> add_classes(pipe, X[200:], y[200:]).predict([[0, 9]]).tolist()
    ['c']
    """
    check_samples(X, "add_classes")
    return changed(estimator, lambda clf, rows: with_samples(clf, rows, y, groups), X)


def remove_classes(estimator: Any, labels: ArrayLike) -> Any:
    """Remove classes and their samples; otherwise as :func:`add_classes`. A trainer trains nothing.

    Parameters
    ----------
    estimator : classifier or Pipeline
    labels : array-like of shape (n_labels,)
        Known classes.

    Returns
    -------
    estimator : object
        A new estimator; the given one is unchanged. Samples of the removed classes become open where no other class
        takes them.

    Raises
    ------
    ValueError
        If a label is not a known class, if none would remain, or if the classifier has not kept its samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, remove_classes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["a", "b", "c"], 100))
    >>> fewer = remove_classes(clf, ["c"])
    >>> fewer.classes_.tolist(), fewer.predict([[0, 9]]).tolist()
    (['a', 'b'], ['-1'])
    """
    return changed(estimator, lambda clf: without_classes(clf, labels))


def merge_classes(estimator: Any, merged: Mapping[Any, Sequence[Any]]) -> Any:
    """Merge classes into one, or rename a class; otherwise as :func:`add_classes`.

    A trainer trains the matrices of merged classes, and keeps that of a renamed one.

    Parameters
    ----------
    estimator : classifier or Pipeline
    merged : mapping
        The new label, and the known classes that become this class: ``{"new": ["a", "b"]}``.

    Returns
    -------
    estimator : object
        A new estimator; the given one is unchanged. Of different ``class_offsets_`` a merged class takes the largest.

    Raises
    ------
    ValueError
        If a label is not a known class or is listed twice, if the new label is a class that stays, in any spelling, or
        if the classifier has not kept its samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, merge_classes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["a", "b", "c"], 100))
    >>> merge_classes(clf, {"bc": ["b", "c"], "first": ["a"]}).classes_.tolist()
    ['bc', 'first']
    """
    return changed(estimator, lambda clf: with_merged(clf, merged))


def refresh(estimator: Any) -> Any:
    """Choose shrinkage and size anew, from the samples that are kept; a trainer trains all matrices anew.

    Parameters
    ----------
    estimator : classifier or Pipeline

    Returns
    -------
    estimator : object
        A new estimator; the given one is unchanged. Its ``offset_`` and ``class_offsets_`` are 0.

    Raises
    ------
    ValueError
        If the classifier has not kept its samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, refresh, remove_classes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["a", "b", "c"], 100))
    >>> fresh = refresh(remove_classes(clf, ["c"]))
    >>> [change["what"] for change in fresh.changes_]
    ['remove', 'refresh']
    """
    return changed(estimator, refreshed)


def check_can_change(estimator: Any) -> None:
    """Raise an error unless an estimator ends in a classifier whose classes can change, in Pipelines alone."""
    if isinstance(estimator, Pipeline):
        return check_can_change(estimator.steps[-1][1])
    if not isinstance(estimator, EllipsoidOpenSetClassifier):
        inner = next((name for name in ("best_estimator_", "estimator_") if hasattr(estimator, name)), None)
        raise TypeError(
            f"The classes of {type(estimator).__name__} cannot change after a fit: fit a new one on all samples, which "
            "takes about as long as a change, or use an EllipsoidOpenSetClassifier, or a Pipeline that ends in one"
            f"{'.' if inner is None else f', such as its {inner}.'}"
        )
    return None


def changed(estimator: Any, change: Callable[..., Any], *samples: Any) -> Any:
    """Change the classifier that an estimator ends in; samples pass the transformers before it."""
    check_can_change(estimator)  # before texts are embedded
    if isinstance(estimator, Pipeline):
        *steps, (name, last) = estimator.steps
        for step in (step for _, step in steps if is_acting(step)):
            samples = tuple(map(step.transform, samples))
        other = copy(estimator)
        other.steps = [*steps, (name, changed(last, change, *samples))]
        return other
    return change(estimator, *samples)
