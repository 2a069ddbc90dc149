"""Ellipsoids from class covariances, in closed form, judged by rows that each class is made without.

Around the centroid c_k lies the ellipsoid of M_k = (1 − ρ) S_k + ρ τ_k I: the covariance of the class's rows, shrunk
towards a ball of the spread τ_k, a mean of the class's own and of all classes'. Leaving one row out of a class changes
S_k by a rank-one term and τ_k by a number, so that every row is judged as a new one without fitting anything again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .geometry import Balls, Factors, by_class, nearest_centroid, nearest_other
from .held_out import Judged, Reach, best_size, near_best

#: Shrinkages ρ to mean over. At the last one a class of few rows has a ball, but for the axes that stand out.
SHRINKAGES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Shares of its own spread in a class's τ to mean over; the rest is that of all classes.
OWN_SHARES = (0.0, 0.5, 1.0)
#: Expected F1s that differ by less are equal.
TIE = 1e-9
#: A class of fewer rows has no spread of its own when one is left out: it has that of all.
FEWEST_ROWS_OF_OWN_SPREAD = 3
#: Eigenvalues below this share of the largest are rounding.
SMALLEST_EIGENVALUE = 1e-9
#: What a row weighs in its own class at most: beyond, rounding decides.
LARGEST_LEVERAGE = 1 - 1e-9


class Shrinkage(NamedTuple):
    """How far the covariances are shrunk, and towards which balls."""

    rho: float  # ρ
    own: float  # share of a class's own spread in its τ


class Spread(NamedTuple):
    """A variance, and what it is without each row of a class."""

    of_all: float
    left_out: Tensor  # (n_rows,)


@dataclass
class CovarianceFit:
    """Boundaries { z : ‖A_k (z − c_k)‖ ≤ radius }, and the rows that judge them."""

    centroids: Tensor  # (n_classes, n_features)
    parts: "list[Part]"
    radius: float
    judged: "JudgedRows | None" = None
    shrinkage: Shrinkage = field(init=False)
    left_out: list[Tensor] = field(init=False)  # of each class, its rows' distances to the class without them
    unit: float = field(init=False)

    def use(self, shrinkage: Shrinkage) -> None:
        """Shrink; the unit is the geometric mean over the classes of their left-out rows' mean distance."""
        self.shrinkage = shrinkage
        self.left_out = [part.left_out_distances(shrinkage) for part in self.parts]
        # Points do not count.
        means = [float(own.mean()) for own, part in zip(self.left_out, self.parts, strict=True) if not part.point]
        self.unit = float(np.exp(np.mean(np.log(means)))) if means else 1.0

    def weights(self, gains: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Squared eigenvalues of A_k along all classes' axes, and off them, multiplied by e to the ``gains``.

        ``gains`` has (n_axes + 1,) numbers of each class, the last one for the directions off its axes.
        """
        unit = self.radius / self.unit
        pairs = zip(self.parts, self._of_each(gains), strict=True)
        along, off = zip(*(part.weights(self.shrinkage, unit, gain) for part, gain in pairs), strict=True)
        return torch.cat(along), along[0].new_tensor(off)

    def factors(self, gains: list[Tensor] | None = None) -> Factors:
        """A_k of all classes."""
        starts = np.cumsum([0] + [len(part.axes) for part in self.parts]).tolist()
        weights, residual = self.weights(gains)
        return Factors(torch.cat([part.axes for part in self.parts]), weights, starts, residual)

    def reach(self, gains: list[Tensor] | None = None, between: Tensor | None = None) -> Reach:
        """How far out rows lie that their class is made without, and rows between the classes if there are."""
        assert self.judged is not None  # noqa: S101 - for the type checker
        return self.judged.reach(self, self._of_each(gains), between)

    def _of_each(self, gains: list[Tensor] | None) -> Sequence[Tensor | None]:
        return gains or [None] * len(self.parts)


def fit_covariances(
    known: Tensor,
    classes: Tensor,
    balls: Balls,
    real_open: Tensor,
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
    balls : Balls
        Of these rows. Classes whose rows are one point keep a ball, and their rows say nothing about sizes.
    real_open : Tensor of shape (n_open, n_features)
        Rows that are known to be open; may be empty.
    shrinkage : Shrinkage, optional
        ``None`` takes the mean of those with which rows that their class is made without are told apart best.
    judged : bool
        Whether rows shall judge the boundaries; needed for choosing the shrinkage.
    """
    members = by_class(classes, len(balls.radii))
    # Constant features (which are 0 here) change nothing.
    n_telling = max(1, int((known != 0).any(0).sum()))
    parts = [Part(known[rows] - balls.centroids[k], n_telling, bool(balls.points[k])) for k, rows in enumerate(members)]
    _set_spreads(parts)
    # Units in which a ball of the mean spread has A = I: distances are multiples of the paper's mean radius.
    radius = 1.0 if balls.points.all() else float(balls.radii[~balls.points].mean())
    fit = CovarianceFit(balls.centroids, parts, radius)
    if judged:
        fit.judged = JudgedRows(known, classes, balls, real_open, parts)
    fit.use(_best_shrinkage(fit) if shrinkage is None else shrinkage)
    return fit


def _best_shrinkage(fit: CovarianceFit) -> Shrinkage:
    """Mean of all candidates, those with nearly the best F1 at their best size counting most.

    Rows between the classes do not judge here: they deviate as known rows do, and say nothing about other directions.
    Where classes lie far apart, or there is one, many candidates are equally good: of the best, the likeliest counts
    alone.
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

    def __init__(self, offsets: Tensor, n_telling: int, point: bool) -> None:
        self.n_features, self.point = n_telling, point
        # A centroid in single precision is not quite the mean, which matters where a class is small for its distance.
        offsets = offsets.double() - offsets.double().mean(0)
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
        self.own_spread = self.spread()
        self.common_spread = self.own_spread  # until all classes are there

    def ball(self, shrinkage: Shrinkage) -> Spread:
        """ρ τ, the variance in every direction that the class is shrunk towards, and the same without each row."""
        own = shrinkage.own if self.n_rows >= FEWEST_ROWS_OF_OWN_SPREAD else 0.0
        of_own, of_common = shrinkage.rho * own, shrinkage.rho * (1 - own)
        of_all = of_own * self.own_spread.of_all + of_common * self.common_spread.of_all
        return Spread(of_all, of_own * self.own_spread.left_out + of_common * self.common_spread.left_out)

    def precisions(self, shrinkage: Shrinkage, gains: Tensor | None = None) -> tuple[Tensor, float]:
        """Eigenvalues of M⁻¹ along the axes, and off them, multiplied by e to the ``gains``."""
        ball = self.ball(shrinkage).of_all
        along = ((1 - shrinkage.rho) * self.eigenvalues + ball).reciprocal()
        if gains is None:
            return along, 1 / ball
        return along * gains[:-1].exp(), float(gains[-1].exp()) / ball

    def others(self, shrinkage: Shrinkage) -> float:
        """Give S_k's factor in M_k of the class without one row, but for that row's own term; of two rows, 0."""
        m = self.n_rows
        return (m - 1) / (m - 2) * (1 - shrinkage.rho) if m > 2 else 0.0

    def left_out_distances(self, shrinkage: Shrinkage) -> Tensor:
        """Distance of each own row to the class that is made of the others."""
        m = self.n_rows
        if m < 2:
            return torch.zeros(m, dtype=torch.float64, device=self.own_squares.device)
        variances = self.others(shrinkage) * self.eigenvalues + self.ball(shrinkage).left_out.unsqueeze(1)
        squared = (self.own_squares / variances).sum(1)
        if m > 2:
            leverage = (1 - shrinkage.rho) * m / ((m - 1) * (m - 2)) * squared
            squared = squared / (1 - leverage.clamp_max(LARGEST_LEVERAGE))
        distances: Tensor = squared.sqrt() * (m / (m - 1))
        return distances

    def gained(self, left_out: Tensor, shrinkage: Shrinkage, gains: Tensor) -> Tensor:
        """Left-out distances after learning: what a row loses by being left out, it loses whatever the axes learned."""
        before, after = (self.own_squares @ self.precisions(shrinkage, learned)[0] for learned in (None, gains))
        distances: Tensor = left_out * (after / before.clamp_min(SMALLEST_EIGENVALUE)).sqrt()
        return distances

    def log_likelihood(self, shrinkage: Shrinkage) -> float:
        """Gaussian log likelihood of the own rows, each by the class that is made of the others, but for a constant."""
        m = self.n_rows
        if m < 2 or self.point:
            return 0.0
        others, ball = self.others(shrinkage), self.ball(shrinkage).left_out
        determinant = (others * self.eigenvalues + ball.unsqueeze(1)).log().sum(1)
        determinant += max(0, self.n_features - len(self.eigenvalues)) * ball.log()
        distances = self.left_out_distances(shrinkage)
        # Taking a row out divides the determinant by this.
        shrunk = 1 + others / (m - 1) * m / (m - 1) * (distances * ((m - 1) / m)).square()
        return -0.5 * float((determinant - shrunk.log() + distances.square()).sum())

    def spread(self) -> Spread:
        """Mean variance per feature; without one of m rows it is at least an m-th, even if the others are one point."""
        m, total = self.n_rows, self.eigenvalues.sum()
        left_out = (total * (m - 1) - self.own_squares.sum(1) * m / max(1, m - 1)) / max(1, m - 2)
        return Spread(float(total) / self.n_features, left_out.clamp_min(total / m) / self.n_features)

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


def _set_spreads(parts: "list[Part]") -> None:
    """Mean over the classes of their variance per feature; points do not count, and have no other spread."""
    shaped = [part for part in parts if not part.point]
    common = sum(part.own_spread.of_all for part in shaped) / len(shaped) if shaped else 1.0
    for part in parts:
        own, left_out = part.own_spread, torch.full_like(part.own_spread.left_out, common)
        if part.n_rows < FEWEST_ROWS_OF_OWN_SPREAD and not part.point and len(shaped) > 1:
            # Without one of its two rows the class is a point.
            left_out += (common - own.of_all) / (len(shaped) - 1)
        elif not part.point:
            left_out += (own.left_out - own.of_all) / len(shaped)
        part.common_spread = Spread(common, left_out)
        if part.point:
            part.own_spread = part.common_spread


#: Of each class: which rows it judges, and their squared coordinates along and off its axes.
Split = list[tuple[Tensor, Tensor, Tensor]]


class JudgedRows:
    """Rows and the classes that they are judged by; what depends on no shrinkage is computed once.

    A row is known to its nearest class, its own being made without it, and open to the nearest other one. Rows
    between the classes and real open rows are open to their nearest class.
    """

    def __init__(self, known: Tensor, classes: Tensor, balls: Balls, real_open: Tensor, parts: "list[Part]") -> None:
        self.classes, self.balls, self.parts = classes, balls, parts
        self.counted = ~balls.points[classes]
        self.members = by_class(classes, len(parts))
        self.other = nearest_other(known, classes, balls.centroids) if len(parts) > 1 else None
        self.real = nearest_centroid(real_open, balls.centroids)
        self.assigned = self._assigned(known)
        self.to_other = None if self.other is None else self._split(known, self.other)
        self.to_real = self._split(real_open, self.real)

    def reach(self, fit: CovarianceFit, gains: Sequence[Tensor | None], between: Tensor | None = None) -> Reach:
        """How far out the rows lie, as multiples of the unit."""
        own = torch.empty(len(self.classes), dtype=torch.float64, device=self.classes.device)
        for part, rows, left_out, gain in zip(self.parts, self.members, fit.left_out, gains, strict=True):
            own[rows] = left_out if gain is None else part.gained(left_out, fit.shrinkage, gain)

        def judged(split: Split, assigned: Tensor) -> Judged:
            return self._distances(split, len(assigned), fit, gains) / fit.unit, assigned

        distances, stand_ins = own / fit.unit, []
        if self.to_other is not None and self.other is not None:
            others, other = judged(self.to_other, self.other)
            distances = torch.where(self.assigned == self.classes, distances, others)
            stand_ins.append((others[self.counted], other[self.counted]))
        if between is not None:
            nearest = nearest_centroid(between, self.balls.centroids)
            stand_ins.append(judged(self._split(between, nearest), nearest))
        known = distances[self.counted], self.assigned[self.counted]
        real = judged(self.to_real, self.real)
        return Reach.of(known, self.classes[self.counted], stand_ins, real, len(self.parts))

    def _assigned(self, known: Tensor) -> Tensor:
        """Nearest centroid of each row, its own class's centroid being that of the other rows."""
        if self.other is None:
            return self.classes
        counts = torch.bincount(self.classes, minlength=len(self.parts)).clamp_min(2)[self.classes]
        own = torch.linalg.vector_norm(known - self.balls.centroids[self.classes], dim=1) * (counts / (counts - 1))
        other = torch.linalg.vector_norm(known - self.balls.centroids[self.other], dim=1)
        return torch.where(own <= other, self.classes, self.other)

    def _split(self, rows: Tensor, assigned: Tensor) -> Split:
        """Rows of each class, and their squared coordinates along and off its axes."""
        groups = by_class(assigned, len(self.parts))
        return [
            (group, *part.squares(rows[group] - self.balls.centroids[k]))
            for k, (group, part) in enumerate(zip(groups, self.parts, strict=True))
        ]

    def _distances(self, split: Split, n_rows: int, fit: CovarianceFit, gains: Sequence[Tensor | None]) -> Tensor:
        found = torch.empty(n_rows, dtype=torch.float64, device=self.classes.device)
        for part, (group, along, off), gain in zip(self.parts, split, gains, strict=True):
            if part.point:  # a ball of the common radius
                found[group] = off.sqrt() * (fit.unit / fit.radius)
                continue
            weights, residual = part.precisions(fit.shrinkage, gain)
            found[group] = (along @ weights + off * residual).sqrt()
        return found
