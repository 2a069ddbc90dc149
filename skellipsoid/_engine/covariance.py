"""Ellipsoids from class covariances, in closed form, judged by rows that each class is made without.

Around the centroid c_k lies the ellipsoid of M_k = (1 − ρ) S_k + ρ τ_k I: the covariance of the class's rows, shrunk
towards a ball of the spread τ_k, a mean of the class's own and of all classes'. Leaving one row out of a class changes
S_k by a rank-one term, so that every row is judged as a new one without fitting anything again.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .geometry import Factors, by_class, class_centroids, mean_radii, nearest_centroid, nearest_other
from .held_out import Open, Reach, best_size, kinds_of_open, near_best

#: Shrinkages ρ to mean over. At the last one a class of few rows has a ball, but for the axes that stand out.
SHRINKAGES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Shares of its own spread in a class's τ to mean over; the rest is that of all classes.
OWN_SHARES = (0.0, 0.5, 1.0)
#: Expected F1s that differ by less are equal.
TIE = 1e-9
#: A class of fewer rows has the spread of all: its own would be that of the row that is left out.
FEWEST_ROWS_OF_OWN_SPREAD = 4
#: Eigenvalues below this share of the largest are rounding.
SMALLEST_EIGENVALUE = 1e-9
#: What a row weighs in its own class at most: beyond, rounding decides.
LARGEST_LEVERAGE = 1 - 1e-9


class Shrinkage(NamedTuple):
    """How far the covariances are shrunk, and towards which balls."""

    rho: float  # ρ
    own: float  # share of a class's own spread in its τ


@dataclass
class CovarianceFit:
    """Boundaries { z : ‖A_k (z − c_k)‖ ≤ radius }, and the rows that judge them."""

    centroids: Tensor  # (n_classes, n_features)
    parts: "list[Part]"
    radius: float
    judged: "JudgedRows | None" = None
    shrinkage: Shrinkage = field(init=False)
    unit: float = field(init=False)

    def use(self, shrinkage: Shrinkage) -> None:
        """Shrink; the unit is the geometric mean over the classes of their left-out rows' mean distance."""
        self.shrinkage = shrinkage
        # Points do not count.
        means = [float(part.own_distances(shrinkage).mean()) for part in self.parts if not part.point]
        self.unit = float(np.exp(np.mean(np.log(means)))) if means else 1.0

    def weights(self, gains: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Squared eigenvalues of A_k along all classes' axes, and off them, multiplied by e to the ``gains``.

        ``gains`` has (n_axes + 1,) numbers of each class, the last one for the directions off its axes.
        """
        unit = self.radius / self.unit
        along, off = zip(
            *(
                part.weights(self.shrinkage, unit, None if gains is None else gains[k])
                for k, part in enumerate(self.parts)
            ),
            strict=True,
        )
        return torch.cat(along), along[0].new_tensor(off)

    def factors(self, gains: list[Tensor] | None = None) -> Factors:
        """A_k of all classes."""
        starts = np.cumsum([0] + [len(part.axes) for part in self.parts]).tolist()
        weights, residual = self.weights(gains)
        return Factors(torch.cat([part.axes for part in self.parts]), weights, starts, residual)

    def reach(self, gains: list[Tensor] | None = None, mixtures: Tensor | None = None) -> Reach:
        """How far out rows lie that their class is made without, and mixtures of rows if there are."""
        assert self.judged is not None  # noqa: S101 - for the type checker
        return self.judged.reach(self.shrinkage, self.unit, gains, mixtures)


def fit_covariances(
    known: Tensor,
    classes: Tensor,
    n_classes: int,
    real_open: Tensor,
    points: NDArray[np.bool_],
    shrinkage: Shrinkage | None = None,
    *,
    judged: bool = True,
) -> CovarianceFit:
    """Make all classes' ellipsoids.

    Parameters
    ----------
    known : Tensor of shape (n_samples, n_features)
        Of unit scale.
    classes : Tensor of shape (n_samples,)
    n_classes : int
    real_open : Tensor of shape (n_open, n_features)
        Rows that are known to be open; may be empty.
    points : ndarray of shape (n_classes,)
        Classes whose rows are one point: they keep a ball, and their rows say nothing about sizes.
    shrinkage : Shrinkage, optional
        ``None`` takes the mean of those with which rows that their class is made without are told apart best.
    judged : bool
        Whether rows shall judge the boundaries; needed for choosing the shrinkage.
    """
    centroids = class_centroids(known, classes, n_classes)
    members = by_class(classes, n_classes)
    parts = [Part(known[rows] - centroids[k], bool(points[k])) for k, rows in enumerate(members)]
    # Constant features (which are 0 here) change nothing.
    _set_spreads(parts, max(1, int((known != 0).any(0).sum())))
    # Units in which a ball of the mean spread has A = I: distances are multiples of the paper's mean radius.
    telling = torch.from_numpy(~points).to(known.device)
    radius = float(mean_radii(known, classes, centroids)[telling].mean()) if (~points).any() else 1.0
    fit = CovarianceFit(centroids, parts, radius)
    if judged:
        fit.judged = JudgedRows(known, classes, real_open, centroids, radius, parts, telling)
    fit.use(_best_shrinkage(fit) if shrinkage is None else shrinkage)
    return fit


def _best_shrinkage(fit: CovarianceFit) -> Shrinkage:
    """Mean of all candidates, those with nearly the best F1 at their best size counting most.

    Mixtures do not judge here: they lie in the span of the rows, and say nothing about directions off it. Where classes
    lie far apart, or there is one, many candidates are equally good: of the best, the likeliest counts alone.
    """
    candidates = [Shrinkage(rho, own) for own, rho in product(OWN_SHARES, SHRINKAGES)]
    scores = np.empty(len(candidates))
    for i, candidate in enumerate(candidates):
        fit.use(candidate)
        scores[i] = best_size(fit.reach())[1]
    # The standard error of a share of rows.
    n_rows = sum(part.n_rows for part in fit.parts if not part.point)
    weights = near_best(scores, np.sqrt(scores.max() * (1 - scores.max()) / max(1, n_rows)))
    tied = np.flatnonzero(scores >= scores.max() - TIE)
    if len(tied) > 1:
        likelihoods = [sum(part.log_likelihood(candidates[i]) for part in fit.parts) for i in tied]
        weights[np.delete(tied, np.argmax(likelihoods))] = 0
    rho, own = np.array(candidates).T
    odds = np.exp(np.average(np.log(rho / (1 - rho)), weights=weights))
    return Shrinkage(float(odds / (1 + odds)), float(np.average(own, weights=weights)))


class Part:
    """Covariance of one class by its eigenvectors, and its rows' squared coordinates along them."""

    def __init__(self, offsets: Tensor, point: bool) -> None:
        self.point = point
        offsets = offsets.double()
        self.n_rows = len(offsets)
        is_wide = self.n_rows < offsets.shape[1]
        if is_wide:
            # The rows' products hold the same spectrum in a smaller matrix.
            values, vectors = torch.linalg.eigh(offsets @ offsets.T)
        else:
            values, vectors = torch.linalg.eigh(offsets.T @ offsets)
        kept = (values > SMALLEST_EIGENVALUE * values[-1].clamp_min(1e-30)) & (not point)
        vectors = vectors[:, kept]
        if is_wide:
            vectors = offsets.T @ vectors / values[kept].sqrt()
        self.axes = vectors.T  # (n_axes, n_features), orthonormal
        self.eigenvalues = values[kept] / max(1, self.n_rows - 1)
        self.own_squares = (offsets @ vectors).square()
        self.own_spread = self.common_spread = 1.0
        self.n_features = offsets.shape[1]

    def ball(self, shrinkage: Shrinkage) -> float:
        """ρ τ, the variance in every direction that the class is shrunk towards."""
        own = shrinkage.own if self.n_rows >= FEWEST_ROWS_OF_OWN_SPREAD else 0.0
        return shrinkage.rho * (own * self.own_spread + (1 - own) * self.common_spread)

    def precisions(self, shrinkage: Shrinkage, gains: Tensor | None = None) -> tuple[Tensor, float]:
        """Eigenvalues of M⁻¹ along the axes, and off them, multiplied by e to the ``gains``."""
        ball = self.ball(shrinkage)
        along = ((1 - shrinkage.rho) * self.eigenvalues + ball).reciprocal()
        if gains is None:
            return along, 1 / ball
        return along * gains[:-1].exp(), float(gains[-1].exp()) / ball

    def others(self, shrinkage: Shrinkage) -> float:
        """Give S_k's factor in M_k of the class without one row, but for that row's own term; of two rows, 0."""
        m = self.n_rows
        return (m - 1) / (m - 2) * (1 - shrinkage.rho) if m > 2 else 0.0

    def own_distances(self, shrinkage: Shrinkage, gains: Tensor | None = None) -> Tensor:
        """Distance of each own row to the class that is made of the others."""
        m = self.n_rows
        if m < 2:
            return torch.zeros(m, dtype=torch.float64, device=self.own_squares.device)
        squared = self.own_squares @ (self.others(shrinkage) * self.eigenvalues + self.ball(shrinkage)).reciprocal()
        if m > 2:
            leverage = (1 - shrinkage.rho) * m / ((m - 1) * (m - 2)) * squared
            squared = squared / (1 - leverage.clamp_max(LARGEST_LEVERAGE))
        if gains is not None:
            # What a row loses by being left out, it loses whatever the axes have learned since.
            before, gained = (self.own_squares @ self.precisions(shrinkage, learned)[0] for learned in (None, gains))
            squared = squared * gained / before.clamp_min(SMALLEST_EIGENVALUE)
        distances: Tensor = squared.sqrt() * (m / (m - 1))
        return distances

    def log_likelihood(self, shrinkage: Shrinkage) -> float:
        """Gaussian log likelihood of the own rows, each by the class that is made of the others, but for a constant."""
        m = self.n_rows
        if m < 2 or self.point:
            return 0.0
        others, ball = self.others(shrinkage), self.ball(shrinkage)
        determinant = float((others * self.eigenvalues + ball).log().sum())
        determinant += max(0, self.n_features - len(self.eigenvalues)) * float(np.log(ball))
        distances = self.own_distances(shrinkage)
        # Taking a row out divides the determinant by this.
        shrunk = 1 + others / (m - 1) * m / (m - 1) * (distances * ((m - 1) / m)).square()
        return -0.5 * float((determinant - shrunk.log() + distances.square()).sum())

    def squares(self, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Squared coordinates of rows along the axes, and what is left off them."""
        offsets = offsets.double()
        along = (offsets @ self.axes.T).square()
        return along, (offsets.square().sum(1) - along.sum(1)).clamp_min(0)

    def weights(self, shrinkage: Shrinkage, unit: float, gains: Tensor | None = None) -> tuple[Tensor, float]:
        """Squared eigenvalues of A along the axes and off them (AᵀA = M⁻¹ in units); the identity for a point."""
        if self.point:
            return self.eigenvalues, 1.0
        along, off = self.precisions(shrinkage, gains)
        # Where the axes are all directions, what is left is rounding.
        spanned = len(along) == self.axes.shape[1]
        return along * unit**2, 0.0 if spanned else off * unit**2


def _set_spreads(parts: list[Part], n_features: int) -> None:
    """Mean variance per feature of each class and of all; a point has the latter."""
    own = {k: float(part.eigenvalues.sum()) / n_features for k, part in enumerate(parts) if not part.point}
    common = sum(own.values()) / len(own) if own else 1.0
    for k, part in enumerate(parts):
        part.own_spread, part.common_spread, part.n_features = own.get(k, common), common, n_features


class JudgedRows:
    """Rows and the classes that they are judged by; what depends on no shrinkage is computed once.

    A row is known to its nearest class, its own being made without it, and open to the nearest other one. Mixtures and
    real open rows are open to their nearest class.
    """

    def __init__(
        self,
        known: Tensor,
        classes: Tensor,
        real_open: Tensor,
        centroids: Tensor,
        radius: float,
        parts: list[Part],
        telling: Tensor,
    ) -> None:
        self.radius, self.classes, self.parts, self.telling = radius, classes, parts, telling
        self.counted, self.centroids = telling[classes], centroids
        self.members = by_class(classes, len(parts))
        self.other = nearest_other(known, classes, centroids) if len(parts) > 1 else None
        self.real = nearest_centroid(real_open, centroids)
        self.assigned = self._assigned(known)
        self.to_other = None if self.other is None else self._split(known, self.other)
        self.to_real = self._split(real_open, self.real)

    def reach(
        self,
        shrinkage: Shrinkage,
        unit: float,
        gains: list[Tensor] | None = None,
        mixtures: Tensor | None = None,
    ) -> Reach:
        """How far out the rows lie, as multiples of the unit."""
        own = torch.empty(len(self.classes), dtype=torch.float64, device=self.classes.device)
        for k, (part, rows) in enumerate(zip(self.parts, self.members, strict=True)):
            own[rows] = part.own_distances(shrinkage, None if gains is None else gains[k])

        def opened(distances: Tensor, assigned: Tensor) -> Open:
            return Open((distances / unit).cpu().numpy(), assigned.cpu().numpy())

        distances, stand_ins = own, []
        if self.to_other is not None and self.other is not None:
            others = self._distances(self.to_other, len(self.classes), shrinkage, unit, gains)
            distances = torch.where(self.assigned == self.classes, own, others)
            stand_ins.append(opened(others[self.counted], self.other[self.counted]))
        if mixtures is not None:
            nearest = nearest_centroid(mixtures, self.centroids)
            split = self._split(mixtures, nearest)
            stand_ins.append(opened(self._distances(split, len(mixtures), shrinkage, unit, gains), nearest))
        real = opened(self._distances(self.to_real, len(self.real), shrinkage, unit, gains), self.real)
        return Reach(
            known=(distances[self.counted] / unit).cpu().numpy(),
            classes=self.classes[self.counted].cpu().numpy(),
            assigned=self.assigned[self.counted].cpu().numpy(),
            open=kinds_of_open(stand_ins, real),
            n_classes=len(self.parts),
        )

    def _assigned(self, known: Tensor) -> Tensor:
        """Nearest centroid of each row, its own class's centroid being that of the other rows."""
        if self.other is None:
            return self.classes
        counts = torch.bincount(self.classes, minlength=len(self.parts)).clamp_min(2)[self.classes]
        own = torch.linalg.vector_norm(known - self.centroids[self.classes], dim=1) * (counts / (counts - 1))
        other = torch.linalg.vector_norm(known - self.centroids[self.other], dim=1)
        return torch.where(own <= other, self.classes, self.other)

    def _split(self, rows: Tensor, assigned: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Rows of each class, and their squared coordinates along and off its axes."""
        groups = by_class(assigned, len(self.parts))
        return [
            (group, *part.squares(rows[group] - self.centroids[k]))
            for k, (group, part) in enumerate(zip(groups, self.parts, strict=True))
        ]

    def _distances(
        self,
        split: list[tuple[Tensor, Tensor, Tensor]],
        n_rows: int,
        shrinkage: Shrinkage,
        unit: float,
        gains: list[Tensor] | None,
    ) -> Tensor:
        found = torch.empty(n_rows, dtype=torch.float64, device=self.classes.device)
        for k, (part, (group, along, off)) in enumerate(zip(self.parts, split, strict=True)):
            if part.point:  # a ball of the common radius
                found[group] = off.sqrt() * (unit / self.radius)
                continue
            weights, residual = part.precisions(shrinkage, None if gains is None else gains[k])
            found[group] = (along @ weights + off * residual).sqrt()
        return found
