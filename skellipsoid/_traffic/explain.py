"""Explanation of predictions: nearest class, margin, and the axes that contribute most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skellipsoid_runtime._containers import check_texts

from .._core.pipelines import read_estimator, split_estimator
from .._core.results import Result
from .._core.warn import warn
from .._ellipsoid.axes import decompose
from .._ellipsoid.scoring import deductions
from .._encoders.text_features import TextFeatures
from ..baselines._neighbors import nearest
from .predict_set import first_classes, predict_set, zones_of

_MEMBERS = ("predict", "predict_known", "class_margins", "shared_axes")
#: Smallest proportion of the squared distance for which the shared axes explain the predictions.
_READABLE = 0.05


def explain(
    estimator: Any, X: ArrayLike, *, n_axes: int = 3, n_neighbors: int = 0, reference: ArrayLike | None = None
) -> Bunch:
    """Explain why samples were accepted or rejected.

    The squared distance (1 − margin)² of a sample to the centre of its nearest class is the sum of three parts:

    1. the contributions of the shared axes, which all classes have in common and along which class means differ;
    2. the contribution of the class's own covariance in other directions;
    3. the rest, in directions in which neither the class means nor the samples of this class vary.

    A shared axis is named by its two poles, the classes whose means are farthest apart along it. The sample is outside
    the ellipsoid if the sum is above 1. A single contribution can be negative if the class's covariance correlates
    several axes.

    Parameters
    ----------
    estimator : EllipsoidOpenSetClassifier or Pipeline that ends in one
        Fitted. The best estimator of a fitted search is used.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Features, or texts for a text Pipeline.
    n_axes : int, default=3
        Number of axes to name for each sample, the largest contribution first. There are at most n_classes − 1 shared
        axes. With a trainer they are the axes of the class's own ellipsoid, one per feature.
    n_neighbors : int, default=0
        Number of nearest samples of ``reference`` to name for each sample.
    reference : array-like, default=None
        Samples in which neighbours are searched, such as the training samples, in the form of ``X``. ``None``: the
        training texts, if the encoder has kept them (``keep_texts=True``). A classifier does not store its training
        samples.

    Returns
    -------
    explanation : :class:`~sklearn.utils.Bunch`
        One-dimensional arrays of shape (n_samples,), so that ``pandas.DataFrame(explanation)`` is a table:

        - ``text``: as given; for a Pipeline that takes texts.
        - ``answer``: the label that ``predict`` returns.
        - ``nearest_class``: the class that the sample is assigned to, also if it is open (``predict_known``).
        - ``margin``: its margin, 1 at the centre, 0 on the boundary, negative outside.
        - ``p_value``: ``known_p_value``; if the classifier has held-out scores.
        - ``action``: ``"answer"``, ``"ask"`` or ``"open"``, as :func:`predict_set` says; if the classifier can ask.
        - ``unread``: whether the encoder reads nothing of the text, so that it is open: its features are zeros, and no
          training sample is nearly as short; for a Pipeline that takes texts. The columns below say where zeros lie.
        - ``near_open``: what ``margin`` has lost, since the sample lies nearer to messages that were labelled open than
          to its class and to messages that were labelled with a class; if such messages are remembered
          (:func:`learn_from_traffic`).
        - ``runner_up``, ``runner_up_margin``: the second class in the order of ``decision_function``, and its margin;
          with a single known class, this class.
        - ``shared_share``, ``own_share``, ``other_share``: proportions of the three parts in (1 − margin)², of the
          margin before ``near_open``; their sum is 1.
        - ``from_1``, ``to_1``: poles of the shared axis with the largest contribution; ``from_2``, … of the next ones.
        - ``share_1``, …: their proportions of (1 − margin)²; 0 at the centre itself.
        - ``deviation_1``, …: distance of the sample from the centre along these axes, positive towards ``to``. The unit
          is the distance at which a sample that deviates along this axis alone is on the boundary.
        - ``neighbor_1``, …: the nearest rows of ``reference`` (Euclidean, in features): the texts, or row numbers for
          features.
        - ``neighbor_label_1``, …: their labels; if the encoder has kept the texts.
        - ``neighbor_distance_1``, …: their distances, in the units of the features.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier with ellipsoids.
    ValueError
        If ``n_axes`` or ``n_neighbors`` is negative or too large, or if ``n_neighbors`` is set without ``reference``
        and without kept texts.

    Warns
    -----
    UserWarning
        If for half of the samples less than 5 % of the squared distance is along the shared axes, so that these explain
        little.

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
    checked = classifier._validate_scored_data(features)
    of_texts = takes_texts(estimator)
    found: dict[str, NDArray[Any]] = {"text": np.array(check_texts(X), dtype=object)} if of_texts else {}
    found["answer"], found["nearest_class"] = classifier.predict(features), classifier.predict_known(features)
    found["margin"] = classifier.score_samples(features)
    if getattr(classifier, "held_out_scores_", None) is not None:
        found["p_value"] = classifier.known_p_value(features)
    if zones_of(classifier) is not None:
        found["action"] = predict_set(classifier, features).action
    if of_texts:
        found["unread"] = classifier._unread(checked)
    found |= _runner_up(classifier, features, found["nearest_class"], found["margin"])
    within = classifier._score_assigned(checked)[1]
    if classifier._boundaries.memory is not None:
        found["near_open"] = deductions(classifier._boundaries, checked)
        within = within + found["near_open"]
    found |= _shares(classifier, checked, found["nearest_class"], within, n_axes)
    if n_neighbors:
        columns, candidates = _candidates(estimator, reference, n_neighbors, takes_texts=of_texts)
        found |= _neighbors(checked, classifier._validate_scored_data(candidates), columns, n_neighbors)
    return Result(**found)


def nearest_of_classes(estimator: Any, texts: Sequence[str], labels: NDArray[Any]) -> NDArray[np.object_]:
    """Return the nearest training text of each of some classes, (n_texts, n_labels), if a Pipeline keeps its texts.

    It is empty where no text of the class was kept.
    """
    features = read_estimator(estimator, texts, _MEMBERS, "explain")[1]
    classifier = split_estimator(estimator)[1]
    columns, candidates = _candidates(estimator, None, 1, takes_texts=True)
    features, candidates = map(classifier._validate_scored_data, (features, candidates))
    found = np.full(labels.shape, "", dtype=object)
    of_candidates = columns.get("neighbor_label", np.full(len(candidates), None))
    for label in np.unique(labels):
        own = np.flatnonzero(of_candidates == label)
        rows, places = np.nonzero(labels == label)
        if len(own):
            named = _neighbors(features[rows], candidates[own], {"neighbor": columns["neighbor"][own]}, 1)
            found[rows, places] = named["neighbor_1"]
    return found


def takes_texts(estimator: Any) -> bool:
    """Whether an estimator begins with a text encoder."""
    steps = split_estimator(estimator)[0]
    return bool(steps) and isinstance(steps[0], TextFeatures)


def _check_count(count: Any, name: str, most: int | None = None, what: str = "") -> None:
    if (
        not isinstance(count, int | np.integer)
        or isinstance(count, bool)
        or count < 0
        or (most is not None and count > most)
    ):
        limit = "0 on" if most is None else f"0 to {most}, the number of {what}"
        raise ValueError(f"{name}={count!r} is not possible; use a whole number from {limit}.")


def _runner_up(
    classifier: Any, features: NDArray[Any], nearest: NDArray[Any], margin: NDArray[np.floating]
) -> dict[str, NDArray[Any]]:
    if len(classifier.classes_) == 1:
        return {"runner_up": nearest.copy(), "runner_up_margin": margin.copy()}
    first, margins = first_classes(classifier, features)[0][:, :2], classifier.class_margins(features)
    second = np.where(classifier.classes_[first[:, 1]] == nearest, first[:, 0], first[:, 1])  # where rounding decides
    return {"runner_up": classifier.classes_[second], "runner_up_margin": margins[np.arange(len(margins)), second]}


def _shares(
    classifier: Any, features: NDArray[Any], nearest: NDArray[Any], margin: NDArray[np.floating], n_axes: int
) -> dict[str, NDArray[Any]]:
    """Shares of the squared distance, and the ``n_axes`` shared axes with the largest contributions."""
    found = decompose(classifier._boundaries, features, np.searchsorted(classifier.classes_, nearest))
    total = (1 - margin.astype(np.float64)) ** 2

    def share(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.divide(values, total, out=np.zeros(len(values)), where=total > 0))

    shared = share(found.contributions.sum(axis=1))
    columns = {"shared_share": shared, "own_share": share(found.own)}
    columns["other_share"] = np.where(total > 0, 1 - shared - columns["own_share"], 0)
    if n_axes and len(shared) and np.median(shared) < _READABLE:
        warn(
            f"Half of the samples have less than {_READABLE:.0%} of their squared distance along the axes that the "
            "classes share: these explain little; read own_share and other_share, or look at neighbours."
        )
    order = np.argsort(-found.contributions, axis=1, kind="stable")[:, :n_axes]
    numbers = np.arange(len(features))
    for i, axes in enumerate(order.T, start=1):
        for name, pole in zip(("from", "to"), found.poles[numbers, axes].T, strict=True):
            columns[f"{name}_{i}"] = classifier.classes_[pole]
        columns[f"share_{i}"] = share(found.contributions[numbers, axes])
        columns[f"deviation_{i}"] = found.deviations[numbers, axes]
    return columns


def _candidates(
    estimator: Any, reference: Any, n_neighbors: int, *, takes_texts: bool
) -> tuple[dict[str, NDArray[Any]], Any]:
    """Return what names each candidate for a neighbour, and the features of the candidates."""
    steps, classifier = split_estimator(estimator)
    if reference is not None:
        features = read_estimator(estimator, reference, _MEMBERS, "explain")[1]
        names = np.array(check_texts(reference), dtype=object) if takes_texts else np.arange(len(features))
        return {"neighbor": names}, features
    if not (takes_texts and hasattr(steps[0], "training_texts_")):
        raise ValueError(
            f"n_neighbors={n_neighbors} needs samples to look in; pass reference, for instance the training samples, "
            "or fit the encoder with keep_texts=True."
        )
    encoder, *others = steps
    columns = {"neighbor": encoder.training_texts_}
    if encoder.training_labels_ is not None:
        columns["neighbor_label"] = encoder.training_labels_
    features = encoder.training_features_
    if any(hasattr(step, "feature_names_in_") for step in [*others, classifier]):
        features = encoder.transform(encoder.training_texts_)  # with the names that these steps look for
    for step in others:
        features = step.transform(features)
    return columns, features


def _neighbors(
    features: NDArray[Any], candidates: NDArray[Any], columns: dict[str, NDArray[Any]], n_neighbors: int
) -> dict[str, NDArray[Any]]:
    _check_count(n_neighbors, "n_neighbors", len(candidates), "samples to look in")
    # Differences from the median: distances are found by squares, which are rounding alone far from 0.
    centre = np.median(candidates.astype(np.float64), axis=0)
    distances, numbers = nearest(candidates - centre, features - centre, n_neighbors)
    found = {name: values[numbers] for name, values in columns.items()} | {"neighbor_distance": distances}
    return {f"{name}_{i + 1}": values[:, i] for name, values in found.items() for i in range(n_neighbors)}
