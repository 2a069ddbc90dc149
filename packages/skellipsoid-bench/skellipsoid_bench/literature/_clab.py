"""CLAB's boundary: a learned radius that rows of other classes shrink or expand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._adb import ADBClassifier
from ._arrays import Floats, Integers, unit_rows
from ._docs import published_docs
from ._sklearn import Interval


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class CLABClassifier(ADBClassifier):
    r"""Open-set classifier with a ball around each class that shrinks and expands (CLAB's boundary).

    Like ADB, CLAB [1]_ learns the radius of a class from the distances :math:`d_i` of its samples to its mean. In
    addition it uses *negatives*: for each sample, a sample of another class is drawn, and :math:`d^-_i` is its distance
    to the same mean. The loss is

    .. math:: L = \frac{1}{N} \sum_i | d_i - \Delta_{y_i} |
       + \eta \, ([\Delta_{y_i} + s - d^-_i]_+ + [d^-_i - \Delta_{y_i} - e]_+), \qquad \Delta_k = \ln(1 + e^{\theta_k}).

    A negative that is inside the ball, or less than s outside of it, shrinks the ball. A negative that is more than e
    outside expands it. With η = 0.1 the resulting radius is between the 45 % and the 55 % quantile of the class's own
    distances, measured with dropout. A sample is assigned to the class with the nearest mean, and is open if it lies
    outside the ball of this class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    expand : float, default=0.5
        e, in units of the normalised samples. (All defaults of this class are the settings of the EliDecide paper.)

    shrink : float, default=0.1
        s, in the same units.

    eta : float, default=0.1
        η, weight of the negatives; with 0 the method is ADB. It must be less than 1. Otherwise the negatives would
        count more than the samples of the class.

    dropout : float in [0, 1), default=0.1
        q, the rate at which entries of the samples are set to 0 while radii are learned (not when samples are scored),
        as in the public code: there the text model stays in training mode. It makes the balls larger. With 0 about
        half of each class's training samples lie outside its ball.

    normalize : bool, default=True
        Whether samples, and class means, are divided by their length. e and s are meant for samples of length 1. With
        ``False``, they are in units of ``scale_``.

    learning_rate : float, default=0.05
        Step size of the Adam optimiser.

    max_iter : int, default=100
        Largest number of epochs. Training stops earlier if the loss does not improve for ten epochs.

    {duplicates unused_open_label}

    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the initial θ, the batches, the dropout and the negatives.

    Attributes
    ----------
    {classes}

    centroids_ : ndarray of shape (n_classes, n_features)
        The class means of the (normalised) samples.

    radii_ : ndarray of shape (n_classes,)
        Δ_k, in the same units. A class whose samples are all equal has the median radius of the other classes, with a
        warning.

    scale_ : float
        Root mean squared distance of the (normalised) known samples to their mean.

    {offset unused_groups}

    n_iter_ : int
        Number of epochs that ran.

    loss_curve_ : list of float
        Mean loss per sample after each epoch.

    {features}

    See Also
    --------
    ADBClassifier : The same without negatives.

    Notes
    -----
    The text of the publication was not available to the authors of this package, so the formula is that of the public
    code. The command that comes with this code draws no negatives, so it runs ADB. It is not known whether the
    published figures were computed in this way.

    References
    ----------
    .. [1] Liu, X., Li, J., Mu, J., Yang, M., Xu, R., Wang, B. "Effective Open Intent Classification with K-center
       Contrastive Learning and Adjustable Decision Boundary." AAAI 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid_bench.literature import CLABClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in ((0, 9), (9, 0))])
    >>> clf = CLABClassifier(random_state=0).fit(X, np.repeat(["up", "right"], 100))
    >>> clf.predict([[0, 9], [9, 0], [-5, -5]]).tolist()
    ['up', 'right', '-1']
    """

    expand: float = 0.5
    shrink: float = 0.1
    eta: float = 0.1
    normalize: bool = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ADBClassifier._parameter_constraints,
        "expand": [Interval(Real, 0, None, closed="left")],
        "shrink": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, 1, closed="left")],
        "normalize": ["boolean"],
    }

    def _coordinates(self, X: NDArray[Any]) -> Floats:
        rows = X.astype(np.float64, copy=False)
        return unit_rows(rows) if self.normalize else rows

    @property
    def _unit(self) -> float:
        return 1.0 if self.normalize else self.scale_

    def _radius_settings(self, batch_size: int) -> Any:
        settings = super()._radius_settings(batch_size)
        return replace(settings, expand=self.expand, shrink=self.shrink, eta=self.eta)

    def _draw(
        self, rows: Floats, classes: Integers, device: torch.device, rng: np.random.Generator
    ) -> Callable[[], tuple[Tensor, Tensor | None]]:
        rows, own, n_classes = rows / self._unit, self.centroids_[classes] / self._unit, len(self.centroids_)
        by_class, counts = np.argsort(classes, kind="stable"), np.bincount(classes)
        starts = np.cumsum(counts) - counts

        def lengths(offsets: Floats) -> Tensor:
            return torch.from_numpy(np.linalg.norm(offsets, axis=1)).to(device)

        def draw() -> tuple[Tensor, Tensor | None]:
            dropped = rows
            if self.dropout > 0:
                dropped = rows * ((rng.random(rows.shape) >= self.dropout) / (1 - self.dropout))
                dropped = unit_rows(dropped) if self.normalize else dropped
            if not self.eta or n_classes == 1:
                return lengths(dropped - own), None
            # For each row another class, then one of its rows.
            others = (classes + rng.integers(1, n_classes, size=len(rows))) % n_classes
            negatives = by_class[starts[others] + rng.integers(counts[others])]
            return lengths(dropped - own), lengths(dropped[negatives] - own)

        return draw
