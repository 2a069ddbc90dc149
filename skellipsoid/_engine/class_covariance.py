"""The shrunk covariance of one class, whole and without each group of its rows."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .left_out import LeftOut, Scatter, Variances
from .samples import Removal, Samples

#: A class of fewer independent rows has no spread of its own when one is left out: it has that of all.
FEWEST_ROWS_OF_OWN_SPREAD = 3
#: Eigenvalues below this share of the largest are rounding.
SMALLEST_EIGENVALUE = 1e-9


class Shrinkage(NamedTuple):
    """How far the covariances are shrunk, and towards which balls."""

    rho: float  # ρ
    own: float  # share of a class's own spread in its τ


class Removed(NamedTuple):
    """The class without the sets of some rows, and where these rows are."""

    without: LeftOut
    scored: Tensor  # (n_sets, n_scored) positions of the scored rows; −1 pads
    sets: Tensor  # (n_sets,)


class ClassCovariance:
    """Covariance of one class by its eigenvectors, and the class without each group of its rows.

    Parameters
    ----------
    samples : Samples
    label : int
    members : Tensor of shape (n_rows,)
        Rows of the class.
    centroid : Tensor of shape (n_features,)
    n_telling : int
        Number of features that vary.
    point : bool
        Whether the class has no spread.
    """

    def __init__(
        self, samples: Samples, label: int, members: Tensor, centroid: Tensor, n_telling: int, point: bool
    ) -> None:
        self.n_features, self.point = n_telling, point
        weights = samples.weights[members]
        # A centroid in single precision is not quite the mean, which matters where a class is small for its distance.
        offsets = (samples.rows[members] - centroid).double()
        shares = (weights / weights.sum()).unsqueeze(1)
        drift = (shares * offsets).sum(0)
        offsets = offsets - drift
        self.centre = centroid.double() + drift
        self.axes, values, coordinates = _principal_axes(offsets, weights, point)
        units = torch.from_numpy(np.unique(samples.units[members.cpu().numpy()], return_inverse=True)[1].ravel())
        n_units = int(units.max()) + 1
        self.scatter = Scatter(values, coordinates, weights, units.to(weights.device), n_units)
        freedom = self.scatter.degrees_of_freedom()
        self.eigenvalues = values / freedom if n_units > 1 else values
        self.own_squares = coordinates.square()
        self.own_spread = float(self.eigenvalues.sum()) / n_telling
        self.common_spread = self.own_spread  # until all classes are there
        #: The same without each set of rows, (n_sets,).
        self.common_without = coordinates.new_empty(0)
        own, self.foreign = samples.removals(members, label)
        self.removed = [] if point else [self._remove(removal) for removal in own]

    def _remove(self, removal: Removal) -> Removed:
        members, scored, sets = (torch.from_numpy(part).to(self.axes.device) for part in removal)
        rows = self.scatter.coordinates[scored] * (scored >= 0).unsqueeze(2)
        return Removed(LeftOut(self.scatter, members, rows, rows.new_zeros(scored.shape)), scored, sets)

    def remove_for(self, removal: Removal, samples: Samples) -> Removed:
        """Leave sets of rows out for rows of other classes."""
        members, scored, sets = (torch.from_numpy(part).to(self.axes.device) for part in removal)
        offsets = (samples.rows[scored].double() - self.centre) * (scored >= 0).unsqueeze(2)
        along = offsets @ self.axes.T
        off_axes = (offsets.square().sum(2) - along.square().sum(2)).clamp_min(0)
        return Removed(LeftOut(self.scatter, members, along, off_axes), scored, sets)

    def ball(self, shrinkage: Shrinkage) -> float:
        """ρ τ, the variance in every direction that the class is shrunk towards."""
        own = self._own_share(shrinkage)
        return shrinkage.rho * (own * self.own_spread + (1 - own) * self.common_spread)

    def variances_without(self, without: LeftOut, common: Tensor, shrinkage: Shrinkage) -> Variances:
        """Variances of the class without each set of rows, the classes' common spread without them being given."""
        own, rho = self._own_share(shrinkage), shrinkage.rho
        spread = torch.where(without.has_spread, self.spread_without(without), common)
        of_scatter = torch.where(without.has_spread, (1 - rho) / without.freedom, 0.0)
        return Variances(of_scatter, rho * (own * spread + (1 - own) * common))

    def _own_share(self, shrinkage: Shrinkage) -> float:
        return shrinkage.own if self.scatter.n_units >= FEWEST_ROWS_OF_OWN_SPREAD else 0.0

    def spread_without(self, without: LeftOut) -> Tensor:
        """Mean variance per feature; without one of m units at least an m-th, even if the others are one point."""
        return (without.variance / self.n_features).clamp_min(self.own_spread / self.scatter.n_units)

    def precisions(self, shrinkage: Shrinkage, gains: Tensor | None = None) -> tuple[Tensor, float]:
        """Eigenvalues of M⁻¹ along the axes, and off them, multiplied by e to the ``gains``."""
        ball = self.ball(shrinkage)
        along = ((1 - shrinkage.rho) * self.eigenvalues + ball).reciprocal()
        if gains is None:
            return along, 1 / ball
        return along * gains[:-1].exp(), float(gains[-1].exp()) / ball

    def left_out_distances(self, shrinkage: Shrinkage) -> Tensor:
        """Distance of each own row to the class without the row's group; infinite where nothing is left."""
        distances = torch.full_like(self.scatter.weights, torch.inf)
        for without, scored, sets in self.removed:
            found = without.distances(self.variances_without(without, self.common_without[sets], shrinkage))
            distances[scored[scored >= 0]] = found[scored >= 0]
        return distances

    def left_out_centroid_distances(self) -> Tensor:
        """Euclidean distance of each own row to the mean of the class without the row's group."""
        distances = torch.full_like(self.scatter.weights, 0.0 if self.point else torch.inf)
        for without, scored, _ in self.removed:
            found = torch.where(without.exists.unsqueeze(1), without.scored.square().sum(2).sqrt(), torch.inf)
            distances[scored[scored >= 0]] = found[scored >= 0]
        return distances

    def gained(self, left_out: Tensor, shrinkage: Shrinkage, gains: Tensor) -> Tensor:
        """Left-out distances after learning; the leave-one-out ratio is assumed unchanged by learning."""
        before, after = (self.own_squares @ self.precisions(shrinkage, learned)[0] for learned in (None, gains))
        distances: Tensor = left_out * (after / before.clamp_min(SMALLEST_EIGENVALUE)).sqrt()
        return distances

    def log_likelihood(self, shrinkage: Shrinkage) -> float:
        """Gaussian log likelihood of the own rows, each by the class without its group, but for a constant."""
        total = 0.0
        for without, scored, sets in self.removed:
            variances = self.variances_without(without, self.common_without[sets], shrinkage)
            determinants = without.log_determinants(variances, self.n_features).unsqueeze(1)
            terms = (determinants + without.distances(variances).square()) * self.scatter.weights[scored]
            total -= 0.5 * float(terms[(scored >= 0) & without.exists.unsqueeze(1)].sum())
        return total

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


def _principal_axes(offsets: Tensor, weights: Tensor, point: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Orthonormal axes of the weighted scatter of rows, its eigenvalues and the rows' coordinates along them."""
    weighted = offsets * weights.sqrt().unsqueeze(1)
    is_wide = len(offsets) < offsets.shape[1]
    # The rows' products hold the same spectrum in a smaller matrix.
    values, vectors = torch.linalg.eigh(weighted @ weighted.T if is_wide else weighted.T @ weighted)
    kept = (values > SMALLEST_EIGENVALUE * values[-1].clamp_min(1e-30)) & (not point)
    values, vectors = values[kept], vectors[:, kept]
    if is_wide:
        vectors = weighted.T @ vectors / values.sqrt()
    return vectors.T, values, offsets @ vectors


def set_spreads(parts: list[ClassCovariance], n_sets: int) -> None:
    """Mean over the classes of their variance per feature, and the same without each set of rows.

    Points do not count, and have no other spread.
    """
    shaped = [part for part in parts if not part.point]
    common = sum(part.own_spread for part in shaped) / len(shaped) if shaped else 1.0
    device = parts[0].axes.device
    total = torch.full((n_sets,), common * len(shaped), dtype=torch.float64, device=device)
    count = torch.full((n_sets,), float(len(shaped)), dtype=torch.float64, device=device)
    for part in shaped:
        for without, _, sets in part.removed:
            total[sets] += torch.where(without.has_spread, part.spread_without(without), 0.0) - part.own_spread
            count[sets] -= (~without.has_spread).double()
    without_each = torch.where(count > 0, total / count.clamp_min(1), common)
    for part in parts:
        part.common_spread, part.common_without = common, without_each
        if part.point:
            part.own_spread = common
