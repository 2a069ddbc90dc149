"""Nearest-neighbour methods: the distance to the k-th nearest sample, and the local outlier factor."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.sklearn import Interval, StrOptions
from .._core.state_rules import CLASSIFIER, COUNT, POSITIVE, Rule, Sizes, floats, integers, refuse, rises
from .._held_out.state import THRESHOLDED
from .._samples.samples import find_scale, of_unit_length
from .._samples.training_samples import TrainingSamples
from ._covariance import class_means
from ._shared_docs import shared_docs
from ._threshold import AUTO_THRESHOLD_VERSION, Floats, Integers, Scored, ThresholdedClassifier

#: LOF of a sample beyond which ``contamination="auto"`` takes it for an outlier, as in scikit-learn.
_AUTO_FACTOR = 1.5
#: As in scikit-learn, but in units of ``scale_``: a density stays finite where neighbours are equal.
_SMALLEST_REACH = 1e-10


def _representatives(samples: TrainingSamples, duplicates: str) -> Integers:
    """Numbers of the samples to keep: one of each set of duplicates, in their order."""
    if duplicates == "off":
        return np.arange(len(samples))
    return np.sort(np.unique(samples.units, return_index=True)[1])


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class KNNOpenSetClassifier(ThresholdedClassifier):
    """Open-set classifier by the distance to the k-th nearest training sample.

    All samples are divided by their length: z = x / ‖x‖. The score [1]_ is minus the distance from z to the k-th
    nearest training sample. A sample is assigned to the most frequent class of its k neighbours (if several are equally
    frequent, to the one with the nearest neighbour). It is open if the score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    n_neighbors : int, default=10
        k; at most the number of samples of the smallest class. The publication's experiments use 50, and 1,000 for 1.3
        million samples.

    normalize : bool, default=True
        Whether samples are divided by their length. Use ``False`` for features whose origin has no meaning, such as raw
        measurements.

    threshold : {"quantile", "auto"} or float, default="quantile"
        ``"quantile"`` is the setting of the publication. A number is minus the largest accepted distance.
        {chosen_threshold}

    duplicates : {"once", "off"}, default="once"
        ``"once"``: of exact and near duplicates of a sample within its class, one is kept. ``"off"``: duplicates are
        not searched. Read more in the :ref:`User Guide <repeated>`. This method has no weights: a ``sample_weight`` of
        0 leaves a sample out, and all others count the same.

    {open_label random_state}

    Attributes
    ----------
    {classes}

    n_neighbors_ : int
        k as used.

    {threshold offset groups features}

    See Also
    --------
    LOFOpenSetClassifier : Compares the density around a sample with that around its neighbours.

    References
    ----------
    .. [1] Sun, Y., Ming, Y., Zhu, X., Li, Y. "Out-of-Distribution Detection with Deep Nearest Neighbors." ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import KNNOpenSetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in ((0, 9), (9, 0))])
    >>> clf = KNNOpenSetClassifier().fit(X, np.repeat(["up", "right"], 100))
    >>> clf.predict([[0, 9], [9, 0], [-5, -5]]).tolist()
    ['up', 'right', '-1']
    """

    answers_version: ClassVar[int] = AUTO_THRESHOLD_VERSION
    n_neighbors: int = 10
    normalize: bool = True

    _takes_weights = False
    _state: ClassVar[dict[str, Rule]] = {
        **THRESHOLDED,
        "_rows": floats("n_rows", "n_features"),
        "_row_classes": integers("n_rows", below="n_classes"),
        "n_neighbors_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ThresholdedClassifier._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalize": ["boolean"],
        "duplicates": [StrOptions({"once", "off"})],
    }

    def _check_state(self, sizes: Sizes) -> None:
        refuse(self.n_neighbors_ > sizes["n_rows"], f"n_neighbors_ is above the number of rows, {sizes['n_rows']}")

    def _fit_scores(self, samples: TrainingSamples) -> None:
        chosen = _representatives(samples, self.duplicates)
        self._rows, self._row_classes = self._coordinates(samples.features[chosen]), samples.classes[chosen]
        self.n_neighbors_ = min(self.n_neighbors, int(np.bincount(self._row_classes).min()))

    def _coordinates(self, X: Floats) -> Floats:
        return of_unit_length(X) if self.normalize else X

    def _score(self, X: Floats) -> Scored:
        distances, neighbors = nearest(self._rows, self._coordinates(X), self.n_neighbors_)
        votes = np.zeros((len(X), len(self.classes_)))
        labels = self._row_classes[neighbors]
        for column in range(self.n_neighbors_):
            votes[np.arange(len(X)), labels[:, column]] += 1
        most = votes.max(axis=1, keepdims=True)
        wins = np.take_along_axis(votes, labels, axis=1) == most  # (n_samples, n_neighbors), nearest first
        assigned = labels[np.arange(len(X)), wins.argmax(axis=1)]
        return Scored(assigned, -distances[:, -1], votes / self.n_neighbors_)


def nearest(features: Floats, X: Floats | None, n_neighbors: int) -> tuple[Floats, Integers]:
    """Distances and numbers of the nearest samples, nearest first, (n_samples, n_neighbors); without X, of the others.

    Distances are norms of differences: by a matrix product, small distances would be rounding errors.
    """
    search = NearestNeighbors(n_neighbors=int(n_neighbors)).fit(features)
    _, neighbors = search.kneighbors(X)
    points = features if X is None else X
    distances = np.linalg.norm(points[:, np.newaxis] - features[neighbors], axis=2)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(neighbors, order, axis=1)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class LOFOpenSetClassifier(BaseOpenSetClassifier):
    r"""Open-set classifier by the local outlier factor.

    A sample is assigned to the class with the nearest mean. Its density is compared with that of its neighbours [1]_,
    within this class or among all training samples (``scope``). With the distance :math:`d_k(o)` of a sample o to its
    k-th neighbour,

    .. math:: \mathrm{reach}(x, o) = \max(d_k(o), \|x - o\|), \quad
       \mathrm{lrd}(x) = 1 / \mathrm{mean}_{o} \mathrm{reach}(x, o), \quad
       \mathrm{LOF}(x) = \mathrm{mean}_{o} \mathrm{lrd}(o) / \mathrm{lrd}(x)

    over the k nearest neighbours o. A sample with a LOF of about 1 is as near to its neighbours as they are to theirs;
    outliers have large values. For open intents LOF was first used by [2]_. The EliDecide paper [3]_ compares its
    ellipsoids with LOF in Table 7.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    n_neighbors : int, default=20
        k; in a class with fewer samples, all its other samples. The EliDecide paper does not give k. 20 is the default
        of scikit-learn, and of the code that the paper used for its comparisons.

    scope : {"class", "all"}, default="class"
        ``"class"``: neighbours are samples of the assigned class, and each class has its own threshold. ``"all"``:
        neighbours are samples of any class, and all classes have the same threshold. This is the LOF of the platform
        TEXTOIR [4]_, with which the EliDecide paper made its comparisons.

    contamination : "auto" or float in (0, 0.5], default=0.05
        Larger: rejects more. Proportion of the training samples, of each class or of all, that are outliers by the
        threshold. A training sample is not its own neighbour. The EliDecide paper tries 0.05 to 0.3; 0.05 was best.
        With ``"auto"``, samples with LOF > 1.5 are outliers, as in scikit-learn.

    duplicates : {"once", "off"}, default="once"
        ``"once"``: of exact and near duplicates of a sample within its class, one is kept. ``"off"``: duplicates are
        not searched; then more than k copies of a sample make the density infinite. Read more in the :ref:`User Guide
        <repeated>`. This method has no weights: a ``sample_weight`` of 0 leaves a sample out, and all others count the
        same.

    {unused_open_label}

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        The class means, which decide the label.

    thresholds_ : ndarray of shape (n_classes,)
        A sample is open if −LOF is below the threshold of its class; ``score_samples`` is −LOF minus the threshold.
        All are equal with ``scope="all"``.

    scale_ : float
        Root mean squared distance of the known samples to their mean. Densities are in its units.

    {offset unused_groups features}

    See Also
    --------
    KNNOpenSetClassifier : The distance to the k-th neighbour alone.
    sklearn.neighbors.LocalOutlierFactor : Outliers alone, without classes.

    Notes
    -----
    The LOF of the samples in a class of two is always 1, and a single sample has no LOF. If a class has a single
    distinct sample, LOF is replaced by the distance to this sample, in units of the median distance of the other
    classes' samples to their nearest neighbour. The threshold is the median threshold of the other classes.

    The platform takes the label from a softmax classifier that was trained with the encoder. This class takes the
    nearest mean with either ``scope``, so that it needs features only.

    References
    ----------
    .. [1] Breunig, M. M., Kriegel, H.-P., Ng, R. T., Sander, J. "LOF: Identifying Density-Based Local Outliers."
       SIGMOD 2000.
    .. [2] Lin, T.-E., Xu, H. "Deep Unknown Intent Detection with Margin Loss." ACL 2019.
    .. [3] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026, Table 7.
    .. [4] Zhang, H., Li, X., Xu, H., Zhang, P., Zhao, K., Gao, K. "TEXTOIR: An Integrated and Visualized Platform for
       Text Open Intent Recognition." ACL 2021, demonstrations. Its method LOF.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import LOFOpenSetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> clf = LOFOpenSetClassifier().fit(X, np.repeat(["left", "right"], 100))
    >>> clf.predict([[0, 0], [10, 10], [0, 10]]).tolist()
    ['left', 'right', '-1']
    """

    n_neighbors: int = 20
    scope: str = "class"
    contamination: str | float = 0.05
    duplicates: str = "once"
    open_label: int | str = -1

    _takes_weights = False
    _state: ClassVar[dict[str, Rule]] = {
        **CLASSIFIER,
        "centroids_": floats("n_classes", "n_features"),
        "scale_": POSITIVE,
        "_rows": floats("n_rows", "n_features"),
        "_starts": integers("n_starts", rises_to="n_rows"),
        "_reaches": floats("n_rows"),
        "_densities": floats("n_rows"),
        "thresholds_": floats("n_classes"),
        "_unit": POSITIVE,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "scope": [StrOptions({"class", "all"})],
        "contamination": [Interval(Real, 0, 0.5, closed="right"), StrOptions({"auto"})],
        "duplicates": [StrOptions({"once", "off"})],
        "open_label": [Real, str],
    }

    def _check_state(self, sizes: Sizes) -> None:
        n_parts = 1 if self.scope == "all" else sizes["n_classes"]
        refuse(len(self._starts) != n_parts + 1, f"_starts must hold {n_parts + 1} numbers")
        refuse(not rises(self._starts, sizes["n_rows"], smallest=1), "_starts holds a part without rows")

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        chosen = _representatives(samples, self.duplicates)
        chosen = chosen[np.argsort(samples.classes[chosen], kind="stable")]
        given, classes = samples.features[chosen], samples.classes[chosen]
        X = given.astype(np.float64, copy=False)
        n_classes = len(self.classes_)
        counts = np.array([len(X)]) if self.scope == "all" else np.bincount(classes)
        shares = np.full(len(X), 1 / len(X))
        self.scale_ = find_scale(given, shares @ X, shares)
        self._rows, self._starts = X / self.scale_, np.cumsum([0, *counts])
        self.centroids_, _ = class_means(X, classes, np.ones(len(X)), n_classes)
        self._reaches, self._densities = np.zeros(len(X)), np.zeros(len(X))
        fitted = {part: self._fit_part(part) for part in np.flatnonzero(counts > 1).tolist()}
        gaps, thresholds = [gap for gap, _ in fitted.values()], [threshold for _, threshold in fitted.values()]
        self._unit = float(np.median(gaps)) if gaps else self._typical_gap()
        found = np.full(len(counts), np.median(thresholds) if gaps else -_AUTO_FACTOR)  # of parts of a single sample
        found[list(fitted)] = thresholds
        self.thresholds_ = np.broadcast_to(found, n_classes).copy()

    def _fit_part(self, part: int) -> tuple[float, float]:
        """Compute the densities of a part; return its typical distance between neighbours, and its threshold.

        A part is a class, or all samples with ``scope="all"``.
        """
        own = slice(self._starts[part], self._starts[part + 1])
        mine = self._rows[own]
        distances, neighbors = nearest(mine, None, min(self.n_neighbors, len(mine) - 1))
        self._reaches[own] = distances[:, -1]
        factors, self._densities[own] = self._factors(part, distances, neighbors, None)
        share = self.contamination
        threshold = -_AUTO_FACTOR if isinstance(share, str) else np.percentile(-factors, 100 * share)
        return float(np.median(distances[:, 0])), float(threshold)

    def _factors(
        self, part: int, distances: Floats, neighbors: Integers, densities: Floats | None
    ) -> tuple[Floats, Floats]:
        """LOF of samples with these neighbours in a part, and their densities, which are the part's own if None."""
        own = slice(self._starts[part], self._starts[part + 1])
        found = 1 / (np.maximum(distances, self._reaches[own][neighbors]).mean(axis=1) + _SMALLEST_REACH)
        known = found if densities is None else densities
        return known[neighbors].mean(axis=1) / found, found

    def _typical_gap(self) -> float:
        """Half the smallest distance between samples if every class has a single one; 1 for fewer than two samples."""
        distances = cdist(self._rows, self._rows)
        distances = distances[distances > 0]
        return float(distances.min()) / 2 if len(distances) else 1.0

    def _outlier_factors(self, part: int, X: Floats) -> Floats:
        """LOF of new samples in a part."""
        own = slice(self._starts[part], self._starts[part + 1])
        mine, X = self._rows[own], X / self.scale_
        if len(mine) == 1:
            return np.asarray(np.linalg.norm(X - mine, axis=1) / self._unit)
        distances, neighbors = nearest(mine, X, min(self.n_neighbors, len(mine) - 1))
        return self._factors(part, distances, neighbors, self._densities[own])[0]

    def _score_assigned(self, X: NDArray[Any]) -> tuple[Integers, NDArray[np.floating]]:
        features = X.astype(np.float64, copy=False)
        assigned = cdist(features, self.centroids_).argmin(axis=1)
        parts = np.zeros_like(assigned) if self.scope == "all" else assigned
        scores = np.empty(len(X))
        for part in np.unique(parts):
            mine = parts == part
            scores[mine] = -self._outlier_factors(part, features[mine])
        return assigned, (scores - self.thresholds_[assigned]).astype(X.dtype, copy=False)

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        """Minus the distance to each class mean, which decides the label."""
        return np.asarray(-cdist(X.astype(np.float64, copy=False), self.centroids_).astype(X.dtype))
