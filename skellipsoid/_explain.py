"""Why a row got its answer: the class that it is nearest to, by how much, along which axes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Bunch

from ._encoder import SupConTextEncoder
from ._pipelines import read_estimator, split_estimator
from ._texts import check_texts

_MEMBERS = ("predict", "predict_known", "class_margins", "ellipsoid_axes", "centroids_")


def explain(
    estimator: Any, X: ArrayLike, *, n_axes: int = 3, n_neighbors: int = 0, reference: ArrayLike | None = None
) -> Bunch:
    """Explain why rows were taken for known, or rejected.

    With the semi-axes v_i and their lengths l_i of the ellipsoid that a row x is judged by,
    (1 − margin)² = Σ_i (⟨v_i, x − c⟩ / l_i)². Each term is what one axis contributes, and the row is outside where
    the sum is above 1.

    Parameters
    ----------
    estimator : EllipsoidOpenSetClassifier or Pipeline that ends in one
        Fitted. Of a fitted search the best estimator is taken.
    X : array-like
        What the estimator predicts on: features, or texts for a text Pipeline.
    n_axes : int, default=3
        How many axes to name for each row, the largest contribution first.
    n_neighbors : int, default=0
        How many of the nearest rows of ``reference`` to name for each row. A classifier does not keep its training
        rows.
    reference : array-like, default=None
        Rows to look for neighbours in, for instance the training rows, in the form of ``X``.

    Returns
    -------
    explanation : :class:`~sklearn.utils.Bunch`
        One-dimensional arrays of shape (n_samples,), so that ``pandas.DataFrame(explanation)`` is a table:

        - ``text``: as given; for a Pipeline that takes texts.
        - ``answer``: what ``predict`` answers.
        - ``nearest_class``: the class that the row is assigned to, known or not (``predict_known``).
        - ``margin``: its margin, 1 at the centre, 0 on the boundary, negative outside.
        - ``p_value``: ``known_p_value``; for a classifier that held rows out.
        - ``runner_up``, ``runner_up_margin``: the other class with the largest margin; the same where there is none.
        - ``axis_1``, ``axis_2``, …: the axes of the nearest class that contribute most, as row numbers of
          ``ellipsoid_axes(nearest_class)``.
        - ``share_1``, …: their shares of (1 − margin)²; 0 at the centre itself.
        - ``deviation_1``, …: how far the row lies along them, in units of their half length and with the direction's
          sign: ±1 is the end of the axis.
        - ``neighbor_1``, …: the nearest rows of ``reference`` (Euclidean, in features): the texts, or row numbers for
          features.
        - ``neighbor_distance_1``, …: their distances, in the units of the features.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier with ellipsoids.
    ValueError
        If ``n_axes`` or ``n_neighbors`` is no count that there is, or if neighbours are wanted without ``reference``.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
    >>> why = skellipsoid.explain(clf, [[0.1, 0.0], [0.0, 9.0]], n_axes=2)
    >>> why.answer.tolist(), why.nearest_class.tolist(), why.runner_up.tolist()
    (['left', '-1'], ['left', 'left'], ['right', 'right'])
    >>> (why.share_1 + why.share_2).round(6).tolist()
    [1.0, 1.0]
    """
    classifier, features = read_estimator(estimator, X, _MEMBERS, "explain")
    rows = classifier._validate_scored_data(features)
    _check_count(n_axes, "n_axes", rows.shape[1], "features")
    steps = split_estimator(estimator)[0]
    takes_texts = bool(steps) and isinstance(steps[0], SupConTextEncoder)
    found: dict[str, NDArray[Any]] = {"text": np.array(check_texts(X), dtype=object)} if takes_texts else {}
    found["answer"], found["nearest_class"] = classifier.predict(features), classifier.predict_known(features)
    found["margin"] = classifier.score_samples(features)
    if getattr(classifier, "held_out_scores_", None) is not None:
        found["p_value"] = classifier.known_p_value(features)
    found |= _runner_up(classifier, features, found["nearest_class"], found["margin"])
    found |= _largest_axes(classifier, rows, found["nearest_class"], n_axes)
    if n_neighbors:
        found |= _neighbors(estimator, rows, n_neighbors, reference, takes_texts=takes_texts)
    return Bunch(**found)


def _check_count(count: Any, name: str, most: int, what: str) -> None:
    if not isinstance(count, int | np.integer) or not 0 <= count <= most:
        msg = f"{name}={count!r} is not possible; use a whole number from 0 to {most}, the number of {what}."
        raise ValueError(msg)


def _runner_up(
    classifier: Any, features: NDArray[Any], nearest: NDArray[Any], margin: NDArray[np.floating]
) -> dict[str, NDArray[Any]]:
    if len(classifier.classes_) == 1:
        return {"runner_up": nearest.copy(), "runner_up_margin": margin.copy()}
    margins = classifier.class_margins(features)
    rows = np.arange(len(margins))
    margins[rows, np.searchsorted(classifier.classes_, nearest)] = -np.inf
    best = margins.argmax(axis=1)
    return {"runner_up": classifier.classes_[best], "runner_up_margin": margins[rows, best]}


def _largest_axes(
    classifier: Any, features: NDArray[Any], nearest: NDArray[Any], n_axes: int
) -> dict[str, NDArray[Any]]:
    """Axes, shares and deviations, each (n_samples,) for each of ``n_axes``."""
    axes = np.zeros((len(features), n_axes), dtype=np.int64)
    shares, deviations = np.zeros(axes.shape), np.zeros(axes.shape)
    for label in np.unique(nearest):
        mine = np.flatnonzero(nearest == label)
        directions, lengths = classifier.ellipsoid_axes(label)
        centre = classifier.centroids_[classifier.classes_ == label]
        along = (features[mine] - centre) @ directions.T / lengths
        order = np.argsort(-(along**2), axis=1, kind="stable")[:, :n_axes]
        total = (along**2).sum(axis=1, keepdims=True)
        axes[mine], deviations[mine] = order, np.take_along_axis(along, order, axis=1)
        shares[mine] = np.divide(deviations[mine] ** 2, total, out=np.zeros((len(mine), n_axes)), where=total > 0)
    columns = {"axis": axes, "share": shares, "deviation": deviations}
    return {f"{name}_{i + 1}": values[:, i] for name, values in columns.items() for i in range(n_axes)}


def _neighbors(
    estimator: Any, features: NDArray[Any], n_neighbors: int, reference: Any, *, takes_texts: bool
) -> dict[str, NDArray[Any]]:
    if reference is None:
        msg = f"n_neighbors={n_neighbors} needs rows to look in; pass reference, for instance the training rows."
        raise ValueError(msg)
    classifier, reference_features = read_estimator(estimator, reference, _MEMBERS, "explain")
    reference_features = classifier._validate_scored_data(reference_features)
    _check_count(n_neighbors, "n_neighbors", len(reference_features), "rows of reference")
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(reference_features)
    distances, rows = search.kneighbors(features.astype(reference_features.dtype, copy=False))
    names = np.array(check_texts(reference), dtype=object)[rows] if takes_texts else rows
    columns = {"neighbor": names, "neighbor_distance": distances}
    return {f"{name}_{i + 1}": values[:, i] for name, values in columns.items() for i in range(n_neighbors)}
