"""MOGB's boundary: several balls for each class, by splitting what is not pure."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from skellipsoid._base import BoundaryOpenSetClassifier, TrainingSamples, resolve_seed, warn
from skellipsoid._core.state_rules import CLASSIFIER, POSITIVE, Rule, floats, integers

from ._arrays import Floats, Integers
from ._docs import published_docs
from ._sklearn import Interval, StrOptions
from ._torch.granular_balls import ROUNDING, Ball, granular_balls

#: A ball of equal rows has this radius, as a fraction of the scale: margins stay finite.
_SMALLEST_RADIUS = 1e-6


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class MOGBClassifier(BoundaryOpenSetClassifier):
    """Open-set classifier with several balls around each class (MOGB's boundary).

    Granular balls [1]_. The purity of a ball is the proportion of its most frequent class.

    1. At first one ball contains all samples.
    2. A ball with too small a purity and enough samples is split: one seed sample of each of its classes is drawn, and
       every sample goes to the nearest seed. This is repeated.
    3. Of the resulting balls, those that are pure and large enough are kept. The centre is the mean of the samples of
       the ball, and the radius is their largest distance to it.

    A sample is assigned to the class of the nearest centre, and is open if it lies outside that ball.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    split_purity : float in [0, 1], default=1.0
        Balls with a smaller purity are split. With 0 nothing is split, and each class is one ball, as with
        ``BallClassifier(coverage=1)``.

    split_size : int, default=5
        Only balls with more samples (by weight) are split. The default is the setting of the EliDecide paper for
        Banking77 and CLINC150; for StackOverflow it is 15.

    min_purity : float in [0, 1], default=0.9
        Only balls with at least this purity are kept.

    min_size : int, default=5
        Only balls with at least this many samples (by weight) are kept. The default is the setting of the EliDecide
        paper for Banking77 and CLINC150; for StackOverflow it is 15.

    radius : {"max", "mean"}, default="max"
        Whether the largest distance of a ball's samples to its centre is its radius, as the EliDecide paper says, or
        the mean, as in the authors' code.

    {duplicates unused_open_label}

    random_state : int, RandomState instance or None, default=None
        Determines the seed samples.

    Attributes
    ----------
    {classes}

    centers_ : ndarray of shape (n_balls, n_features)
        Centres of the balls that were kept.

    radii_ : ndarray of shape (n_balls,)
        Their radii.

    ball_classes_ : ndarray of shape (n_balls,)
        Index in ``classes_`` of the class of each.

    {offset unused_groups features}

    See Also
    --------
    skellipsoid.baselines.BallClassifier : One ball for each class.

    Notes
    -----
    The text of the publication was not available to the authors of this package. The steps follow the appendix of the
    EliDecide paper and the public code. This code uses different distances for splitting and for decisions; here both
    are Euclidean. If no ball of a class is kept, the class is never answered, its margins are all negative, and a
    warning names it.

    References
    ----------
    .. [1] Li, Y., Ouyang, Y., Pan, Y., and others. "Multi-Granularity Open Intent Classification via Adaptive
       Granular-Ball Decision Boundary." AAAI 2025.

    Examples
    --------
    >>> from skellipsoid_bench.literature import MOGBClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]], [0, 0, 0, 1, 1, 1]
    >>> clf = MOGBClassifier(min_size=1, random_state=0).fit(X, y)
    >>> clf.centers_.round(6).tolist(), clf.radii_.round(6).tolist()
    ([[1.0], [11.0]], [1.0, 1.0])
    >>> clf.predict([[1.9], [5.0]]).tolist()
    [0, -1]
    """

    split_purity: float = 1.0
    split_size: int = 5
    min_purity: float = 0.9
    min_size: int = 5
    radius: str = "max"
    duplicates: str = "once"
    open_label: int | str = -1
    random_state: int | np.random.RandomState | None = None

    _state: ClassVar[dict[str, Rule]] = {
        **CLASSIFIER,
        "_smallest": POSITIVE,
        "_means": floats("n_classes", "n_features"),
        "ball_classes_": integers("n_balls", below="n_classes"),
        "centers_": floats("n_balls", "n_features"),
        "radii_": floats("n_balls", least=0),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "split_purity": [Interval(Real, 0, 1, closed="both")],
        "split_size": [Interval(Integral, 1, None, closed="left")],
        "min_purity": [Interval(Real, 0, 1, closed="both")],
        "min_size": [Interval(Integral, 1, None, closed="left")],
        "radius": [StrOptions({"max", "mean"})],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "random_state": ["random_state"],
    }

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        rows = samples.features.astype(np.float64, copy=False)
        classes, weights = samples.classes, samples.weights
        shares = weights / weights.sum()
        mean = shares @ rows
        scale = float(np.sqrt(shares @ np.square(rows - mean).sum(axis=1)))
        is_rounding = scale <= np.finfo(np.float64).eps * np.linalg.norm(mean)
        self._smallest = _SMALLEST_RADIUS * (1.0 if is_rounding else scale)
        n_classes = len(self.classes_)
        members = np.eye(n_classes)[classes] * weights[:, np.newaxis]  # (n_rows, n_classes)
        self._means = members.T @ rows / members.sum(axis=0)[:, np.newaxis]
        rng = np.random.default_rng(resolve_seed(self.random_state))
        found = self._balls(rows, classes, weights, rng)
        balls = sorted(filter(self._is_kept, found), key=lambda ball: (ball.label, ball.rows[0]))
        self.ball_classes_ = np.array([ball.label for ball in balls], dtype=np.int64)
        self.centers_, self.radii_ = np.empty((len(balls), rows.shape[1])), np.empty(len(balls))
        for i, ball in enumerate(balls):
            own = rows[ball.rows]
            self.centers_[i] = np.average(own, axis=0, weights=weights[ball.rows])
            distances = cdist(own, self.centers_[[i]])[:, 0]
            reach = distances.max() if self.radius == "max" else np.average(distances, weights=weights[ball.rows])
            self.radii_[i] = max(float(reach), self._smallest)
        missing = np.setdiff1d(np.arange(n_classes), self.ball_classes_)
        if len(missing):
            names = ", ".join(map(repr, self.classes_[missing].tolist()))
            warn(
                f"No ball of min_purity={self.min_purity} and min_size={self.min_size} is there for the class {names}, "
                "which is never answered therefore; lower one of them."
            )

    def _balls(self, X: Floats, classes: Integers, weights: Floats, rng: np.random.Generator) -> list[Ball]:
        if self.split_purity > 0:
            return list(granular_balls(X, classes, weights, self.split_purity, self.split_size, rng))
        members = [np.flatnonzero(classes == k) for k in range(len(self.classes_))]
        return [Ball(rows, k, 1.0, float(weights[rows].sum())) for k, rows in enumerate(members)]

    def _is_kept(self, ball: Ball) -> bool:
        return ball.is_pure(self.min_purity) and ball.weight >= self.min_size * (1 - ROUNDING)

    def _score_assigned(self, X: NDArray[Any]) -> tuple[Integers, NDArray[np.floating]]:
        rows = X.astype(np.float64, copy=False)
        if not len(self.centers_):
            margins = self._score_all(X)
            return margins.argmax(axis=1), margins.max(axis=1)
        distances = cdist(rows, self.centers_)
        nearest = distances.argmin(axis=1)
        margins = 1 - distances[np.arange(len(rows)), nearest] / self.radii_[nearest]
        return self.ball_classes_[nearest], margins.astype(X.dtype, copy=False)

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        rows = X.astype(np.float64, copy=False)
        # Without a ball no row is inside, however near.
        margins = -1 - cdist(rows, self._means) / self._smallest
        for k in np.unique(self.ball_classes_):
            own = np.flatnonzero(self.ball_classes_ == k)
            distances = cdist(rows, self.centers_[own])
            nearest = distances.argmin(axis=1)
            margins[:, k] = 1 - distances[np.arange(len(rows)), nearest] / self.radii_[own][nearest]
        return np.asarray(margins.astype(X.dtype, copy=False))
