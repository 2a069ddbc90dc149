"""Discover new classes: agglomerative grouping of the samples that a classifier rejects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import make_pipeline

from skellipsoid_runtime._containers import check_texts

from ..._core.characters import normalize_text
from ..._core.pipelines import read_estimator, split_estimator, with_names
from ..._core.texts import texts_of
from ..._core.validation import check_squares, number
from ..._ellipsoid.classifier import EllipsoidOpenSetClassifier
from ..._encoders.text_features import TextFeatures
from ..._samples.equal import equal_samples
from .groups import find_groups
from .likelihood import EmbeddedClasses, Floats, fit_coordinates, mean_ratios
from .result import DiscoveredClasses
from .words import telling_words

Integers = NDArray[np.int64]

#: Groups of less coherence are called mixed (skellipsoid-bench/results/mixed_groups.rst).
_LEAST_COHERENCE = 0.5
#: Words in a proposed name.
_WORDS_OF_NAME = 3


def discover_classes(
    estimator: Any,
    X: ArrayLike,
    *,
    texts: ArrayLike | None = None,
    min_size: int = 5,
    n_words: int = 8,
    n_representatives: int = 5,
) -> DiscoveredClasses:
    """Group the samples that a classifier rejects: the new classes in the traffic.

    The number of groups is not given. Two groups are merged if they more probably share a class than not, given how
    samples vary within the known classes and how far class means lie apart. This is the
    two-covariance model (probabilistic linear discriminant analysis) [1]_ [2]_ as a linkage. Samples that fit no group
    are noise.

    A trained head moves new classes together. So behind an encoder with ``finetune="head"`` the classifier decides
    which texts are open, and these are grouped by their embeddings before the head.

    Read more in the :ref:`User Guide <discovery>`.

    Parameters
    ----------
    estimator : EllipsoidOpenSetClassifier or Pipeline that ends in one
        Fitted. The best estimator of a fitted search is used.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Traffic: features, or texts for a text Pipeline. Known samples may be among it.
    texts : array-like of shape (n_samples,), of strings, default=None
        Texts of the samples, for names and words. ``None``: X itself, if it holds texts.
    min_size : int, default=5
        Smallest number of different samples of a group; at least 2. The samples of smaller groups are noise.
    n_words : int, default=8
        Number of most telling words of each group.
    n_representatives : int, default=5
        Number of most typical samples of each group.

    Returns
    -------
    found : DiscoveredClasses
        Without groups if no sample is open, or too few different ones.

    Raises
    ------
    TypeError
        If the estimator does not end in an EllipsoidOpenSetClassifier.
    ValueError
        If X has no rows, another number of features or missing values, if the number of texts differs, or if a
        parameter is too small.
    NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    DiscoveredClasses : The result, with ``to_tsv``.
    set_operating_point : Sets the threshold for the proportion of open samples in X.
    skellipsoid.plotting.DiscoveryDisplay : Draws the result.

    Notes
    -----
    Equal texts (after case folding and white space), or without texts equal features, count once for the groups.
    The order of X has no influence on the groups, up to their numbers if groups are equally large. Memory is bounded:
    more than 2,000 different samples are divided in halves along the widest axis, and the groups of the halves are
    merged. The largest effective number of samples of a group, 20, and the factor by which classes vary more than the
    known ones were chosen on development data.

    References
    ----------
    .. [1] Ioffe, S. "Probabilistic Linear Discriminant Analysis." ECCV 2006.
    .. [2] Brümmer, N., de Villiers, E. "The Speaker Partitioning Problem." Odyssey 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, discover_classes
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(0, 10, size=(12, 4))
    >>> X, y = rng.normal(size=(600, 4)) + np.repeat(centres, 50, axis=0), np.repeat(np.arange(12), 50)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 9], y[y < 9])
    >>> found = discover_classes(clf, X[y >= 7])  # two known classes and three new ones
    >>> found.n_groups, int(found.is_part.sum())
    (3, 0)
    """
    _check_count(min_size, "min_size", 2)
    _check_count(n_words, "n_words", 0)
    _check_count(n_representatives, "n_representatives", 1)
    return group_open(read_traffic(estimator, X, "discover_classes", texts), min_size, n_words, n_representatives)


class Space(NamedTuple):
    """Features of traffic, and what is known of the classes in such features."""

    features: Floats
    known: Any  # an EllipsoidOpenSetClassifier or EmbeddedClasses


class Traffic(NamedTuple):
    """What is grouped."""

    classifier: EllipsoidOpenSetClassifier
    features: Any  # as the classifier takes them
    spaces: list[Space]  # groups are formed in the first; only the last has the classes that were added later
    texts: NDArray[Any] | None


def group_open(traffic: Traffic, min_size: int = 5, n_words: int = 8, n_representatives: int = 5) -> DiscoveredClasses:
    """Group what the classifier rejects."""
    classifier, given, features = traffic.classifier, traffic.texts, traffic.spaces[0].features
    is_open = np.asarray(classifier.predict(traffic.features) == classifier.open_label_)
    first_rows = np.full(len(features), -1)
    opened = np.flatnonzero(is_open)
    first_rows[opened] = opened[_first_of_equal(features[opened], None if given is None else given[opened])]
    distinct = opened[first_rows[opened] == opened]
    if len(distinct):  # by their values, so that rounding and ties do not depend on the order in which they came
        distinct = distinct[np.lexsort(features[distinct].T[::-1])]
    labels, scores = np.full(len(features), -1), np.full(len(features), np.nan)
    coherence, nearest, log_ratio = np.empty(0), np.empty(0, dtype=np.int64), np.empty(0)  # of each group
    if len(distinct) >= min_size:
        coordinates = fit_coordinates(traffic.spaces[0].known, features[distinct])
        placed = coordinates.of(features[distinct])
        copies = np.bincount(first_rows[opened], minlength=len(features))[distinct]
        found = _in_order(find_groups(placed, coordinates.variances, min_size), distinct, copies)
        labels[distinct] = found
        if found.max() >= 0:
            scores[distinct], coherence = _typical(placed, found)
            spaces = [space._replace(features=space.features[distinct]) for space in traffic.spaces]
            nearest, log_ratio = _nearest_classes(classifier.classes_, spaces, found)
    labels[opened], scores[opened] = labels[first_rows[opened]], scores[first_rows[opened]]
    ranked = distinct[np.lexsort((distinct, -scores[distinct]))]
    n_groups = len(coherence)
    words: list[list[str]] = [[] for _ in range(n_groups)]
    if given is not None and n_groups:
        known = np.flatnonzero(~is_open)  # the words of a group tell it from these classes, too
        of_known = n_groups + np.searchsorted(classifier.classes_, classifier.predict_known(traffic.features)[known])
        named = given[np.concatenate([distinct, known])].tolist()
        groups = np.concatenate([labels[distinct], of_known])
        words = telling_words(named, groups, max(n_words, _WORDS_OF_NAME), n_groups)
    return DiscoveredClasses(
        labels=labels,
        is_open=is_open,
        scores=scores,
        texts=given,
        names=_names(words),
        sizes=np.bincount(labels[labels >= 0], minlength=n_groups),
        distinct_sizes=np.bincount(labels[distinct][labels[distinct] >= 0], minlength=n_groups),
        coherence=coherence,
        words=[of_group[:n_words] for of_group in words],
        representatives=[ranked[labels[ranked] == group][:n_representatives] for group in range(n_groups)],
        nearest_class=classifier.classes_[nearest],
        log_ratio=log_ratio,
        is_part=log_ratio > 0,
        is_mixed=coherence < _LEAST_COHERENCE,
        first_rows=first_rows,
    )


def read_traffic(estimator: Any, X: Any, caller: str, texts: Any = None, members: Sequence[str] = ()) -> Traffic:
    """Check an estimator and traffic; texts are embedded once. ``members`` are what else the caller reads."""
    transformers, last = split_estimator(estimator)
    if not isinstance(last, EllipsoidOpenSetClassifier):
        raise TypeError(
            f"{caller} needs the covariances of an EllipsoidOpenSetClassifier, but {type(last).__name__} was "
            "given; pass one, or a Pipeline that ends in one."
        )
    texts = texts_of(X) if texts is None else check_texts(texts, "texts")
    spaces = []
    encoder = transformers[0] if transformers else None
    if isinstance(encoder, TextFeatures) and getattr(encoder, "_embedding_covariance", np.zeros(1)).any():
        X, embeddings = encoder._embed_both(check_texts(X))
        X = with_names(X, [*transformers[1:], last][0])
        known = EmbeddedClasses(encoder.classes_, encoder._embedding_means, encoder._embedding_covariance)
        spaces.append(Space(embeddings.astype(np.float64), known))
        estimator = make_pipeline(*transformers[1:], last)
    classifier, features = read_estimator(estimator, X, ("predict", *members), caller)
    checked = classifier._validate_scored_data(features).astype(np.float64)
    check_squares(checked)
    given = None if texts is None else np.array(texts, dtype=object)
    if given is not None and len(given) != len(checked):
        raise ValueError(f"X has {len(checked)} rows, but texts has {len(given)}; pass one text for each row.")
    return Traffic(classifier, features, [*spaces, Space(checked, classifier)], given)


def _first_of_equal(features: Floats, texts: NDArray[Any] | None) -> Integers:
    """Return for each sample the first one that is equal to it, in its text or else in its features."""
    if texts is not None:
        keys = number(normalize_text(text) for text in texts)
    else:
        keys = equal_samples(features, np.zeros(len(features), dtype=np.int64))
    return np.unique(keys, return_index=True)[1][keys]


def _in_order(labels: Integers, numbers: Integers, copies: Integers) -> Integers:
    """Assign numbers to groups: the largest first, copies counted, and equally large ones by their first row."""
    n_groups = int(labels.max(initial=-1)) + 1
    inside = labels >= 0
    first = np.full(n_groups, np.iinfo(np.int64).max)
    np.minimum.at(first, labels[inside], numbers[inside])
    ranks = np.empty(n_groups + 1, dtype=np.int64)
    ranks[np.lexsort((first, -np.bincount(labels[inside], copies[inside], n_groups)))] = np.arange(n_groups)
    ranks[-1] = -1  # noise
    return ranks[labels]


def _typical(placed: Floats, labels: Integers) -> tuple[Floats, Floats]:
    """Cosine of each sample with the mean of the others of its group, NaN for noise, and its mean in each group."""
    inside = np.flatnonzero(labels >= 0)
    mine, found = labels[inside], placed[inside]
    sums = np.zeros((int(mine.max()) + 1, found.shape[1]))
    np.add.at(sums, mine, found)
    others = sums[mine] - found
    lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(found, axis=1)
    cosines = np.divide((others * found).sum(axis=1), lengths, out=np.zeros(len(found)), where=lengths > 0)
    scores = np.full(len(placed), np.nan)
    scores[inside] = cosines
    return scores, np.bincount(mine, cosines) / np.bincount(mine)


def _nearest_classes(classes: NDArray[Any], spaces: list[Space], labels: Integers) -> tuple[Integers, Floats]:
    """Known class that each group is most likely a part of, and the ratio, in the first space that has the class."""
    inside = labels >= 0
    counts = np.bincount(labels[inside]).astype(np.float64)
    ratios = np.full((len(counts), len(classes)), -np.inf)
    for space in reversed(spaces):
        coordinates = fit_coordinates(space.known, space.features)
        means = np.zeros((len(counts), len(coordinates.variances)))
        np.add.at(means, labels[inside], coordinates.of(space.features[inside]))
        means /= counts[:, np.newaxis]
        remains = np.isin(space.known.classes_, classes)  # classes may have been removed, merged or added since
        columns = np.searchsorted(classes, space.known.classes_[remains])
        of_classes = coordinates.of(space.known.centroids_[remains])
        ratios[:, columns] = mean_ratios(means, counts, of_classes, coordinates.variances)
    nearest = ratios.argmax(axis=1)
    return nearest, ratios[np.arange(len(nearest)), nearest]


def _names(words: list[list[str]]) -> list[str]:
    """Propose a name for each group, no two the same."""
    names: list[str] = []
    for number_, of_group in enumerate(words, start=1):
        name = " ".join(of_group[:_WORDS_OF_NAME]) or f"group {number_}"
        names.append(name if name not in names else f"{name} ({number_})")
    return names


def _check_count(count: Any, name: str, least: int) -> None:
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < least:
        raise ValueError(f"{name}={count!r} is not possible; use a whole number from {least}.")
