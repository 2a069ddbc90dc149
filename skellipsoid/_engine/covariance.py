"""Ellipsoids from class covariances, in closed form, validated by rows that are left out of their class.

Around the centroid c_k lies the ellipsoid of M_k = (1 − ρ) S_k + ρ τ_k I: the covariance of the class's rows, shrunk
towards a ball of the spread τ_k, a mean of the class's own and of all classes'. Leaving a group of rows out of a class
changes S_k by a term of low rank and τ_k by a number, so that every row is judged as a new one without a refit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import torch
from torch import Tensor

from .class_covariance import SMALLEST_EIGENVALUE, ClassCovariance, Shrinkage, set_spreads
from .geometry import Balls, Factors, by_class, closeness, nearest_centroid
from .held_out import Judged, Reach, best_size, near_best
from .samples import Removal, Samples

#: Shrinkages ρ to mean over. At the last one a class of few rows has a ball, but for the axes that stand out.
SHRINKAGES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Shares of its own spread in a class's τ to mean over; the rest is that of all classes.
OWN_SHARES = (0.0, 0.5, 1.0)
#: Expected F1s that differ by less are equal.
TIE = 1e-9


@dataclass
class CovarianceFit:
    """Boundaries { z : ‖A_k (z − c_k)‖ ≤ radius }, and the rows that validate them."""

    samples: Samples
    centroids: Tensor  # (n_classes, n_features)
    parts: list[ClassCovariance]
    radius: float
    validation: "ValidationRows | None" = None
    shrinkage: Shrinkage = field(init=False)
    left_out: list[Tensor] = field(init=False)  # of each class, its rows' distances to the class without their group
    unit: float = field(init=False)

    def use(self, shrinkage: Shrinkage) -> None:
        """Shrink; the unit is the geometric mean over the classes of their left-out rows' mean distance."""
        self.shrinkage = shrinkage
        self.left_out = [part.left_out_distances(shrinkage) for part in self.parts]
        means = [
            float((own * part.scatter.weights)[kept].sum() / part.scatter.weights[kept].sum())
            for own, part in zip(self.left_out, self.parts, strict=True)
            if not part.point and (kept := own.isfinite()).any()
        ]
        self.unit = float(np.exp(np.mean(np.log(means)))) if means else 1.0

    def weights(self, gains: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Squared eigenvalues of A_k along all classes' axes, and off them, multiplied by e to the ``gains``.

        ``gains`` has (n_axes + 1,) numbers of each class, the last one for the directions off its axes.
        """
        unit = self.radius / self.unit
        pairs = zip(self.parts, self.of_each(gains), strict=True)
        along, off = zip(*(part.weights(self.shrinkage, unit, gain) for part, gain in pairs), strict=True)
        return torch.cat(along), along[0].new_tensor(off)

    def factors(self, gains: list[Tensor] | None = None) -> Factors:
        """A_k of all classes."""
        starts = np.cumsum([0] + [len(part.axes) for part in self.parts]).tolist()
        weights, residual = self.weights(gains)
        return Factors(torch.cat([part.axes for part in self.parts]), weights, starts, residual)

    def reach(self, gains: list[Tensor] | None = None, between: Tensor | None = None) -> Reach:
        """How far out rows lie whose group is left out, and rows between the classes if there are."""
        assert self.validation is not None  # noqa: S101 - for the type checker
        return self.validation.reach(self, self.of_each(gains), between)

    def of_each(self, gains: list[Tensor] | None = None) -> Sequence[Tensor | None]:
        """Gains of each class, ``None`` for the start."""
        return gains or [None] * len(self.parts)


def fit_covariances(
    samples: Samples,
    balls: Balls,
    real_open: Tensor,
    shrinkage: Shrinkage | None = None,
    *,
    validated: bool = True,
) -> CovarianceFit:
    """Make all classes' ellipsoids.

    Parameters
    ----------
    samples : Samples
        Of unit scale.
    balls : Balls
        Of these rows. Classes without a spread keep a ball, and their rows say nothing about sizes.
    real_open : Tensor of shape (n_open, n_features)
        Rows that are known to be open; may be empty.
    shrinkage : Shrinkage, optional
        ``None`` averages the candidates with the best expected F1 of left-out rows.
    validated : bool
        Whether left-out rows shall validate the boundaries; needed for choosing the shrinkage.
    """
    members = by_class(samples.classes, samples.n_classes)
    # Constant features (which are 0 here) change nothing.
    n_telling = max(1, int((samples.rows != 0).any(0).sum()))
    parts = [
        ClassCovariance(samples, k, rows, balls.centroids[k], n_telling, bool(balls.points[k]))
        for k, rows in enumerate(members)
    ]
    set_spreads(parts, 1 + int(samples.sets.max()))
    # Units in which a ball of the mean spread has A = I: distances are multiples of the paper's mean radius.
    radius = 1.0 if balls.points.all() else float(balls.radii[~balls.points].mean())
    fit = CovarianceFit(samples, balls.centroids, parts, radius)
    if validated:
        fit.validation = ValidationRows(samples, balls, real_open, parts)
    fit.use(_best_shrinkage(fit) if shrinkage is None else shrinkage)
    return fit


def _best_shrinkage(fit: CovarianceFit) -> Shrinkage:
    """Mean of all candidates, weighted by exp(F1 / standard error) of their best size.

    Rows between the classes do not validate here: they deviate as known rows do, and say nothing about other
    directions. Where classes lie far apart, or there is one, many candidates are equally good: of the best, the one
    with the largest likelihood counts alone.
    """
    candidates = [Shrinkage(rho, own) for own, rho in product(OWN_SHARES, SHRINKAGES)]
    scores = np.empty(len(candidates))
    n_independent = 1.0
    for i, candidate in enumerate(candidates):
        fit.use(candidate)
        reach = fit.reach()
        scores[i], n_independent = best_size(reach)[1], reach.n_independent
    # Weighted shares may round to more than 1.
    scores = np.minimum(scores, 1.0)
    # The standard error of a share of rows.
    weights = near_best(scores, np.sqrt(scores.max() * (1 - scores.max()) / max(1.0, n_independent)))
    tied = np.flatnonzero(scores >= scores.max() - TIE)
    if len(tied) > 1:
        likelihoods = [sum(part.log_likelihood(candidates[i]) for part in fit.parts) for i in tied]
        weights[np.delete(tied, np.argmax(likelihoods))] = 0
    rho, own = np.array(candidates).T
    odds = np.exp(np.average(np.log(rho / (1 - rho)), weights=weights))
    return Shrinkage(float(odds / (1 + odds)), float(np.average(own, weights=weights)))


#: Of each class: which rows it scores, and their squared coordinates along and off its axes.
Split = list[tuple[Tensor, Tensor, Tensor]]


class ValidationRows:
    """Rows and the classes that score them; what depends on no shrinkage is computed once.

    A row is known to its nearest class, its group being left out of its own, and open to the nearest other one. Rows
    between the classes and real open rows are open to their nearest class.
    """

    def __init__(self, samples: Samples, balls: Balls, real_open: Tensor, parts: list[ClassCovariance]) -> None:
        self.samples, self.balls, self.parts = samples, balls, parts
        self.members = by_class(samples.classes, len(parts))
        own = torch.empty_like(samples.weights)
        for part, rows in zip(parts, self.members, strict=True):
            own[rows] = part.left_out_centroid_distances()
        #: Rows that a class is left to score.
        self.counted = ~balls.points[samples.classes] & own.isfinite()
        self.foreign = [
            Foreign(samples, part, part.foreign, k) for k, part in enumerate(parts) if part.foreign is not None
        ]
        self.other = self._nearest_other() if len(parts) > 1 else None
        self.real = nearest_centroid(real_open, balls.centroids)
        self.assigned, self.to_other = samples.classes, None
        if self.other is not None:
            away = torch.linalg.vector_norm(samples.rows - balls.centroids[self.other], dim=1).double()
            for group in self.foreign:
                mine = self.other[group.rows] == group.label
                away[group.rows[mine]] = group.centroid_distances[mine]
            # Without its group a row may have no other class.
            away[self.other == samples.classes] = torch.inf
            self.has_other = away.isfinite()
            self.assigned = torch.where(own <= away, samples.classes, self.other)
            self.to_other = self._split(samples.rows, self.other)
        self.to_real = self._split(real_open, self.real)

    def reach(self, fit: CovarianceFit, gains: Sequence[Tensor | None], between: Tensor | None = None) -> Reach:
        """How far out the rows lie, as multiples of the unit."""
        weights = self.samples.weights
        distances = torch.empty_like(weights)
        for part, rows, left_out, gain in zip(self.parts, self.members, fit.left_out, gains, strict=True):
            distances[rows] = left_out if gain is None else part.gained(left_out, fit.shrinkage, gain)
        stand_ins = []
        if self.to_other is not None and self.other is not None:
            others = self._distances(self.to_other, len(weights), fit, gains)
            is_start = all(gain is None for gain in gains)
            before = others if is_start else self._distances(self.to_other, len(weights), fit, fit.of_each())
            for group in self.foreign:
                mine = self.other[group.rows] == group.label
                rows = group.rows[mine]
                # The leave-one-out ratio is assumed unchanged by learning.
                others[rows] *= group.distances(fit)[mine] / before[rows].clamp_min(SMALLEST_EIGENVALUE)
            distances = torch.where(self.assigned == self.samples.classes, distances, others)
            scored = self.counted & self.has_other
            stand_ins.append(Judged(others[scored] / fit.unit, self.other[scored], weights[scored]))
        if between is not None:
            nearest = nearest_centroid(between, self.balls.centroids)
            stand_ins.append(self._unweighted(self._split(between, nearest), nearest, fit, gains))
        known = Judged(distances[self.counted] / fit.unit, self.assigned[self.counted], weights[self.counted])
        real = self._unweighted(self.to_real, self.real, fit, gains)
        sets = self.samples.sets[self.counted.cpu().numpy()]
        return Reach.of(known, self.samples.classes[self.counted], sets, stand_ins, real, len(self.parts))

    def _unweighted(self, split: Split, assigned: Tensor, fit: CovarianceFit, gains: Sequence[Tensor | None]) -> Judged:
        distances = self._distances(split, len(assigned), fit, gains) / fit.unit
        return Judged(distances, assigned, torch.ones_like(distances))

    def _nearest_other(self) -> Tensor:
        """Nearest centroid of another class, the row's group being left out of it."""
        rows, classes = self.samples.rows, self.samples.classes
        near = closeness(rows, self.balls.centroids)
        for group in self.foreign:
            squared = group.centroid_distances.square()
            near[group.rows, group.label] = (0.5 * (rows[group.rows].double().square().sum(1) - squared)).to(near.dtype)
        return near.scatter_(1, classes.unsqueeze(1), -torch.inf).argmax(1)

    def _split(self, rows: Tensor, assigned: Tensor) -> Split:
        """Rows of each class, and their squared coordinates along and off its axes."""
        groups = by_class(assigned, len(self.parts))
        return [
            (group, *part.squares(rows[group] - self.balls.centroids[k]))
            for k, (group, part) in enumerate(zip(groups, self.parts, strict=True))
        ]

    def _distances(self, split: Split, n_rows: int, fit: CovarianceFit, gains: Sequence[Tensor | None]) -> Tensor:
        found = torch.empty(n_rows, dtype=torch.float64, device=self.samples.rows.device)
        for part, (group, along, off), gain in zip(self.parts, split, gains, strict=True):
            if part.point:  # a ball of the common radius
                found[group] = off.sqrt() * (fit.unit / fit.radius)
                continue
            weights, residual = part.precisions(fit.shrinkage, gain)
            found[group] = (along @ weights + off * residual).sqrt()
        return found


class Foreign:
    """Rows of other classes whose group has rows in one class, scored by that class without the group."""

    def __init__(self, samples: Samples, part: ClassCovariance, removal: Removal, label: int) -> None:
        self.part, self.label = part, label
        self.removed = part.remove_for(removal, samples)
        self.inside = self.removed.scored >= 0
        self.rows = self.removed.scored[self.inside]
        without = self.removed.without
        squared = without.scored.square().sum(2) + without.off_axes
        self.centroid_distances = torch.where(without.exists.unsqueeze(1), squared.sqrt(), torch.inf)[self.inside]

    def distances(self, fit: CovarianceFit) -> Tensor:
        """Distances to the class, in the metric of its covariance; for a point to a ball of the common radius."""
        if self.part.point:
            return self.centroid_distances * (fit.unit / fit.radius)
        without, _, sets = self.removed
        variances = self.part.variances_without(without, self.part.common_without[sets], fit.shrinkage)
        return without.distances(variances)[self.inside]
