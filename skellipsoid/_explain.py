"""Why a row got its answer: the class that it is nearest to, by how much, along which axes."""

from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Bunch

from ._encoder import SupConTextEncoder
from ._pipelines import read_estimator, split_estimator
from ._texts import check_texts

_MEMBERS = ("predict", "predict_known", "class_margins", "_decompose")
#: Share of the squared distance that the shared axes carry at least, if they are worth reading.
_READABLE = 0.05


def explain(
    estimator: Any, X: ArrayLike, *, n_axes: int = 3, n_neighbors: int = 0, reference: ArrayLike | None = None
) -> Bunch:
    """Explain why rows were taken for known, or rejected.

    The squared distance (1 − margin)² of a row to the centre of its nearest class is a sum: of what each of the axes
    contributes that all classes share, along which class means differ; of what the class's own spread measures beside
    them; and of the rest, in directions in which neither class means nor this class's samples differ. A shared axis is
    named by its two poles, the classes whose means are farthest apart along it. The row is outside where the sum is
    above 1. Where a class's spread joins several axes, one of them may contribute less than nothing.

    Parameters
    ----------
    estimator : EllipsoidOpenSetClassifier or Pipeline that ends in one
        Fitted. Of a fitted search the best estimator is taken.
    X : array-like
        What the estimator predicts on: features, or texts for a text Pipeline.
    n_axes : int, default=3
        How many axes to name for each row, the largest contribution first. There are at most one less than classes.
        With ``init="identity"``, whose classes share no axes, those of the class's ellipsoid, one per feature.
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
        - ``shared_share``, ``own_share``, ``other_share``: shares of (1 − margin)² of all shared axes, of the class's
          own spread and of all other directions; together 1.
        - ``from_1``, ``to_1``: poles of the shared axis that contributes most; ``from_2``, … of the next ones.
        - ``share_1``, …: their shares of (1 − margin)²; 0 at the centre itself.
        - ``deviation_1``, …: how far the row lies from the centre along them, positive towards ``to``, in units of the
          distance at which a row that deviates along this axis alone is on the boundary.
        - ``neighbor_1``, …: the nearest rows of ``reference`` (Euclidean, in features): the texts, or row numbers for
          features.
        - ``neighbor_distance_1``, …: their distances, in the units of the features.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier with ellipsoids.
    ValueError
        If ``n_axes`` or ``n_neighbors`` is no count that there is, or if neighbours are wanted without ``reference``.

    Warns
    -----
    UserWarning
        If the shared axes carry less than 5 % of the squared distance of half of the rows, so that they explain little.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
    >>> why = skellipsoid.explain(clf, [[0.1, 0.0], [5.0, 5.5]], n_axes=1)
    >>> why.answer.tolist(), why.from_1.tolist(), why.to_1.tolist()
    (['left', '-1'], ['left', 'left'], ['right', 'right'])
    >>> (why.shared_share + why.own_share + why.other_share).round(6).tolist()
    [1.0, 1.0]
    """
    classifier, features = read_estimator(estimator, X, _MEMBERS, "explain")
    _check_count(n_axes, "n_axes")
    rows = classifier._validate_scored_data(features)
    steps = split_estimator(estimator)[0]
    takes_texts = bool(steps) and isinstance(steps[0], SupConTextEncoder)
    found: dict[str, NDArray[Any]] = {"text": np.array(check_texts(X), dtype=object)} if takes_texts else {}
    found["answer"], found["nearest_class"] = classifier.predict(features), classifier.predict_known(features)
    found["margin"] = classifier.score_samples(features)
    if getattr(classifier, "held_out_scores_", None) is not None:
        found["p_value"] = classifier.known_p_value(features)
    found |= _runner_up(classifier, features, found["nearest_class"], found["margin"])
    found |= _shares(classifier, rows, found["nearest_class"], found["margin"], n_axes)
    if n_neighbors:
        found |= _neighbors(estimator, rows, n_neighbors, reference, takes_texts=takes_texts)
    return Bunch(**found)


def _check_count(count: Any, name: str, most: int | None = None, what: str = "") -> None:
    if not isinstance(count, int | np.integer) or count < 0 or (most is not None and count > most):
        limit = "0 on" if most is None else f"0 to {most}, the number of {what}"
        msg = f"{name}={count!r} is not possible; use a whole number from {limit}."
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


def _shares(
    classifier: Any, features: NDArray[Any], nearest: NDArray[Any], margin: NDArray[np.floating], n_axes: int
) -> dict[str, NDArray[Any]]:
    """Shares of the squared distance, and the ``n_axes`` shared axes that contribute most to each row's."""
    found = classifier._decompose(features, np.searchsorted(classifier.classes_, nearest))
    total = (1 - margin.astype(np.float64)) ** 2

    def share(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.divide(values, total, out=np.zeros(len(values)), where=total > 0))

    shared = share(found.contributions.sum(axis=1))
    columns = {"shared_share": shared, "own_share": share(found.own)}
    columns["other_share"] = np.where(total > 0, 1 - shared - columns["own_share"], 0)
    if n_axes and len(shared) and np.median(shared) < _READABLE:
        warn(
            f"Half of the rows have less than {_READABLE:.0%} of their squared distance along the axes that the "
            "classes share: these explain little; read own_share and other_share, or look at neighbours.",
            stacklevel=3,
        )
    order = np.argsort(-found.contributions, axis=1, kind="stable")[:, :n_axes]
    rows = np.arange(len(features))
    for i, axes in enumerate(order.T, start=1):
        for name, pole in zip(("from", "to"), found.poles[rows, axes].T, strict=True):
            columns[f"{name}_{i}"] = classifier.classes_[pole]
        columns[f"share_{i}"] = share(found.contributions[rows, axes])
        columns[f"deviation_{i}"] = found.deviations[rows, axes]
    return columns


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
