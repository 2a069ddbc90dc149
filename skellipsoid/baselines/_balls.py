"""One ball about the mean of each class: its radius is a share of the class's samples, or learned."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from .._core.base import BoundaryOpenSetClassifier
from .._core.fit_steps import warn_of_degenerate
from .._core.sklearn import Interval, StrOptions
from .._core.state_rules import CLASSIFIER, NUMBER, TRAINED, Rule, floats
from .._ellipsoid.math.geometry import class_spheres
from .._samples.samples import find_scale
from .._samples.training_samples import TrainingSamples
from .._torch.devices import resolve_device, resolve_seed
from .._torch.radii import Draw, RadiusSettings, learn_radii
from .._torch.training_loop import auto_batch_size
from ._shared_docs import shared_docs
from ._threshold import Floats, Integers

#: A quotient such as 0.29 · 100 = 28.999… is rounded down too far without it.
_ROUNDING = 1e-9


class CentroidBallClassifier(BoundaryOpenSetClassifier):
    """Template: nearest class mean in Euclidean distance, then that class's ball. A member writes ``_find_radii``."""

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
        spheres = class_spheres(standardized.as_tensors(len(self.classes_), torch.device("cpu")))
        degenerate = spheres.degenerate.numpy()
        self.centroids_ = self._coordinates(mean + self.scale_ * spheres.centroids.numpy())
        radii = self._find_radii(features, samples.classes, samples.weights)
        # A class that is one point is as large as the others typically are.
        typical = np.median(radii[~degenerate]) if not degenerate.all() else self.scale_ * spheres.radii[0].item()
        self.radii_ = np.where(degenerate, typical, radii)
        warn_of_degenerate(self.classes_, degenerate)

    @abstractmethod
    def _find_radii(self, features: Floats, classes: Integers, weights: Floats) -> Floats:
        """Radius of each class in the units of X, (n_classes,); ``centroids_`` and ``scale_`` are there."""

    def _coordinates(self, X: NDArray[Any]) -> Floats:
        """Where samples lie for the balls, in double precision."""
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
    """Open-set classifier with a ball around each class that covers a given share of its samples.

    The simplest boundary, and the one that the EliDecide paper [1]_ compares its ellipsoids with in Table 2: Δ_k is the
    distance from the class mean c_k to the ⌊CF · n_k⌋-th nearest sample of class k (at least the first). A sample is
    assigned to the class with the nearest mean, and is open if it lies outside the ball of this class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    coverage : float in (0, 1], default=0.975
        CF, the share of each class's samples (by weight) inside its ball. The paper tries 0.8, 0.9, 0.95, 0.975, 0.9875
        and 1. On CLINC150, 0.975 was best with a quarter of the classes known, and 1 with a half or more.

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
    ADBClassifier : Balls whose radii are learned.
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
            distances = cdist(features[own], centroid[np.newaxis])[:, 0]  # to the last digit as a new sample's
            order = np.argsort(distances, kind="stable")
            covered = np.cumsum(weights[own][order])
            n_covered = int((covered <= self.coverage * covered[-1] * (1 + _ROUNDING)).sum())
            radii[k] = distances[order[max(n_covered, 1) - 1]]
        return radii


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ADBClassifier(CentroidBallClassifier):
    r"""Open-set classifier with a ball of learned radius around each class (ADB).

    The boundary stage of ADB (adaptive decision boundary) [1]_. With the distance d_i of a sample to the mean of its
    class, the radii Δ_k minimise the loss L:

    .. math:: \Delta_k = \ln(1 + e^{\theta_k}), \qquad
       L = \frac{1}{N} \sum_i | d_i - \Delta_{y_i} |,

    Samples outside make the ball larger, and samples inside make it smaller. Only θ is learned. A sample is assigned to
    the class with the nearest mean, and is open if it lies outside the ball of this class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    learning_rate : float, default=0.05
        Step size of the Adam optimiser (the EliDecide paper's setting).

    max_iter : int, default=100
        Largest number of epochs. Training stops earlier if the loss does not improve for ten epochs.

    dropout : float in [0, 1), default=0.1
        q, the rate at which entries of the samples are set to 0 while radii are learned (not when samples are scored).
        The public code that the literature uses does this. It makes the balls larger, because the squared distance
        grows by ‖x‖² q / (1 − q) on average. So the origin of the features matters: centre features that lie far from
        it. With 0 the radius converges to the median distance of the class's samples, so that half of them lie outside.

    {duplicates unused_open_label}

    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the initial θ, the batches and the dropout.

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        The class means, in the units of X.

    radii_ : ndarray of shape (n_classes,)
        Δ_k, in the units of X. A class whose samples are all equal has the median radius of the other classes, with a
        warning.

    scale_ : float
        Root mean squared distance of the known samples to their mean. Radii are learned in this unit, since θ starts at
        N(0, 1) and moves by the learning rate in each step.

    {offset unused_groups}

    n_iter_ : int
        Number of epochs that ran.

    loss_curve_ : list of float
        Mean loss per sample after each epoch, in units of ``scale_``.

    {features}

    See Also
    --------
    skellipsoid_bench.literature.CLABClassifier : Learns the radii with samples of other classes, too.
    BallClassifier : The radius covers a given share of the samples.

    Notes
    -----
    This class follows the public code, with one exception. The code assigns a sample to the nearest mean and compares
    it with the ball of this class only. The publication probably rejects a sample only if it is outside all balls (its
    text was not available to the authors of this package). The exception: the code stops training by the macro F1 of
    validation samples. This F1 only grows with the radii, because no validation sample is open. Here each class keeps
    the radius with the smallest loss.

    References
    ----------
    .. [1] Zhang, H., Xu, H., Lin, T.-E. "Deep Open Intent Classification with Adaptive Decision Boundary." AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import ADBClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (-5, 5)])
    >>> clf = ADBClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
    >>> clf.predict([[-5, -5], [5, 5], [-5, 5]]).tolist()
    ['left', 'right', '-1']
    """

    learning_rate: float = 0.05
    max_iter: int = 100
    dropout: float = 0.1
    duplicates: str = "once"
    open_label: int | str = -1
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None

    _state: ClassVar[dict[str, Rule]] = {**CentroidBallClassifier._state, **TRAINED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    @property
    def _unit(self) -> float:
        """What radii are learned in units of."""
        return self.scale_

    def _radius_settings(self, batch_size: int) -> RadiusSettings:
        return RadiusSettings(self.learning_rate, batch_size, self.max_iter)

    def _find_radii(self, features: Floats, classes: Integers, weights: Floats) -> Floats:
        device = resolve_device(self.device)
        rng = np.random.default_rng(resolve_seed(self.random_state))
        draw = self._draw(features, classes, device, rng)
        settings = self._radius_settings(auto_batch_size(len(features)))
        of_samples = torch.from_numpy(classes).to(device), torch.from_numpy(weights).to(device)
        radii, history = learn_radii(draw, *of_samples, len(self.classes_), settings, rng)
        self.n_iter_, self.loss_curve_ = history.n_iter, history.losses
        return np.asarray(radii.cpu().numpy() * self._unit)

    def _draw(self, features: Floats, classes: Integers, device: torch.device, rng: np.random.Generator) -> Draw:
        """Give what draws the entries that are dropped in an epoch, and gives the distances in units of ``_unit``."""
        scaled = torch.from_numpy(features / self._unit).to(device)
        offsets = torch.from_numpy((features - self.centroids_[classes]) / self._unit).to(device)

        def draw() -> tuple[Tensor, None]:
            if not self.dropout:
                return torch.linalg.vector_norm(offsets, dim=1), None
            chosen = torch.from_numpy(rng.random(features.shape) >= self.dropout).to(device)
            # x̃ − c = (x − c) + (x̃ − x)
            dropped = offsets + scaled * (chosen / (1 - self.dropout) - 1)
            return torch.linalg.vector_norm(dropped, dim=1), None

        return draw
