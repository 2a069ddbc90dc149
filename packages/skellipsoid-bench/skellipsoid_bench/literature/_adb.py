"""ADB's boundary: a ball about the mean of each class, whose radius is learned."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from skellipsoid._base import resolve_device, resolve_seed
from skellipsoid._core.state_rules import TRAINED, Rule
from skellipsoid.baselines._balls import CentroidBallClassifier

from ._arrays import Floats, Integers
from ._docs import published_docs
from ._sklearn import Interval, StrOptions
from ._torch.radii import Draw, RadiusSettings, learn_radii

#: Batches that an epoch is cut into, so that small data sets need few epochs too, and the sizes of a batch; chosen by
#: hand.
_STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 16, 16, 128


@published_docs
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
    CLABClassifier : Learns the radii with samples of other classes, too.
    skellipsoid.baselines.BallClassifier : The radius covers a given proportion of the samples.

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
    >>> from skellipsoid_bench.literature import ADBClassifier
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
        batch_size = min(max(len(features) // _STEPS_PER_EPOCH, _SMALLEST_BATCH), _LARGEST_BATCH)
        settings = self._radius_settings(batch_size)
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
