"""Balls ‖x − c_k‖ ≤ Δ_k about the class means, each covering a proportion of its class."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .._core.fit_steps import warn_of_degenerate
from .._core.open_set_classifier import BoundaryOpenSetClassifier
from .._core.sklearn import Interval, StrOptions
from .._core.state_rules import CLASSIFIER, NUMBER, Rule, floats
from .._ellipsoid.math.geometry import class_spheres
from .._samples.samples import find_scale
from .._samples.training_samples import TrainingSamples
from ._shared_docs import shared_docs
from ._threshold import Floats, Integers

#: Added before rounding down: 0.29 · 100 is 28.999… in floating point.
_ROUNDING = 1e-9


class CentroidBallClassifier(BoundaryOpenSetClassifier):
    """Template: nearest class mean, then that class's ball. A subclass implements ``_find_radii``."""

    _state: ClassVar[dict[str, Rule]] = {
        **CLASSIFIER,
        "scale_": NUMBER,
        "centroids_": floats("n_classes", "n_features"),
        "radii_": floats("n_classes", least=0),
    }

    centroids_: Floats
    radii_: Floats

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        features = self._coordinates(samples.features)
        weights = samples.weights / samples.weights.sum()
        mean = weights @ features
        self.scale_ = find_scale(features.astype(samples.features.dtype, copy=False), mean, weights)
        standardized = replace(samples, features=(features - mean) / self.scale_)
        spheres = class_spheres(standardized.as_tensors(len(self.classes_), torch.device("cpu"))[0])
        degenerate = spheres.degenerate.numpy()
        self.centroids_ = self._coordinates(mean + self.scale_ * spheres.centroids.numpy())
        radii = self._find_radii(features, samples.classes, samples.weights)
        # A class without spread gets the median radius of the others.
        typical = np.median(radii[~degenerate]) if not degenerate.all() else self.scale_ * spheres.radii[0].item()
        self.radii_ = np.where(degenerate, typical, radii)
        warn_of_degenerate(self.classes_, degenerate)

    @abstractmethod
    def _find_radii(self, features: Floats, classes: Integers, weights: Floats) -> Floats:
        """Radius of each class in the units of X, (n_classes,); ``centroids_`` and ``scale_`` are set before."""

    def _coordinates(self, X: NDArray[Any]) -> Floats:
        """Coordinates of samples in double precision."""
        return X.astype(np.float64, copy=False)

    def _score_assigned(self, X: NDArray[Any]) -> tuple[Integers, NDArray[np.floating]]:
        distances = cdist(self._coordinates(X), self.centroids_)
        assigned = distances.argmin(axis=1)
        margins = 1 - distances[np.arange(len(X)), assigned] / self.radii_[assigned]
        return assigned, margins.astype(X.dtype, copy=False)

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        margins = 1 - cdist(self._coordinates(X), self.centroids_) / self.radii_
        return np.asarray(margins.astype(X.dtype, copy=False))


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class BallClassifier(CentroidBallClassifier):
    """Open-set classifier with a ball around each class that covers a given proportion of its samples.

    The simplest boundary, and the one that the EliDecide paper [1]_ compares its ellipsoids with in Table 2: Δ_k is the
    distance from the class mean c_k to the ⌊CF · n_k⌋-th nearest sample of class k (at least the first). A sample is
    assigned to the class with the nearest mean, and is open if it lies outside the ball of this class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    coverage : float in (0, 1], default=0.975
        Larger: accepts more. CF, the proportion of each class's samples (by weight) inside its ball. The paper tries
        0.8, 0.9, 0.95, 0.975, 0.9875 and 1. On CLINC150, 0.975 was best with a quarter of the classes known, and 1 with
        a half or more.

    {duplicates unused_open_label}

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means.

    radii_ : ndarray of shape (n_classes,)
        Δ_k, in the units of X. A class whose samples are all equal has the median radius of the other classes, with a
        warning.

    scale_ : float
        Root mean squared distance of the known samples to their mean.

    {offset unused_groups features}

    See Also
    --------
    skellipsoid_bench.literature.ADBClassifier : Balls whose radii are learned.
    skellipsoid.EllipsoidOpenSetClassifier : Ellipsoids. Their size follows from the data.

    References
    ----------
    .. [1] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026, Table 2.

    Examples
    --------
    >>> from skellipsoid.baselines import BallClassifier
    >>> clf = BallClassifier(coverage=1).fit([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]], [0, 0, 0, 1, 1, 1])
    >>> clf.radii_.round(6).tolist()
    [1.0, 1.0]
    >>> clf.predict([[0.5], [5.0], [10.5]]).tolist()
    [0, -1, 1]
    """

    coverage: float = 0.975
    duplicates: str = "once"
    open_label: int | str = -1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "coverage": [Interval(Real, 0, 1, closed="right")],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
    }

    def _find_radii(self, features: Floats, classes: Integers, weights: Floats) -> Floats:
        radii = np.empty(len(self.classes_))
        for k, centroid in enumerate(self.centroids_):
            own = classes == k
            distances = cdist(features[own], centroid[np.newaxis])[:, 0]  # rounded like those of new samples
            order = np.argsort(distances, kind="stable")
            covered = np.cumsum(weights[own][order])
            n_covered = int((covered <= self.coverage * covered[-1] * (1 + _ROUNDING)).sum())
            radii[k] = distances[order[max(n_covered, 1) - 1]]
        return radii
