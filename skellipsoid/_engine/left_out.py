"""One class without each of several sets of its rows: means, scatters and distances, exactly, without a refit.

The class has the weighted mean c, the scatter T = Σ w (z − c)(z − c)ᵀ and the total weight W. Without rows R of weight
W_R and mean c + d its mean is c − (W_R / W') d, with W' = W − W_R, and its scatter is T − VᵀV, where V has a row
√w (z − c) for each row of R and one row (W_R / √W') d. The shrunk covariance a (T − VᵀV) + b I is inverted by the
Woodbury identity, in coordinates along the axes of T, where T is diagonal.
"""

from typing import NamedTuple

import torch
from torch import Tensor

#: Rows that are all of their class in some direction: rounding decides how far out they lie without it.
ROUNDING_OF_LEVERAGE = 1e-9
#: A share of a class's weight below this is rounding.
SMALLEST_SHARE = 1e-9


class Scatter(NamedTuple):
    """Rows of one class in coordinates along the axes of their scatter, which is diagonal there."""

    values: Tensor  # (n_axes,) of T
    coordinates: Tensor  # (n_rows, n_axes)
    weights: Tensor  # (n_rows,)
    units: Tensor  # (n_rows,) equal numbers are duplicates
    n_units: int

    @property
    def total(self) -> Tensor:
        """W."""
        return self.weights.sum()

    def unit_weights(self) -> Tensor:
        """W_u, (n_units,)."""
        totals = torch.zeros(self.n_units, dtype=torch.float64, device=self.weights.device)
        return totals.index_add_(0, self.units, self.weights)

    def degrees_of_freedom(self) -> float:
        """W − Σ W_u² / W for the weights W_u of the units: for units of weight 1, their number less one."""
        return float(self.total - self.unit_weights().square().sum() / self.total)


class Variances(NamedTuple):
    """Variance along the axes, a · T + b, and off them, b, of each set's class without it."""

    of_scatter: Tensor  # (n_sets,) a
    ball: Tensor  # (n_sets,) b


class LeftOut:
    """A class without each of several sets of its rows, and rows scored by what is left of it.

    Parameters
    ----------
    scatter : Scatter
    members : Tensor of shape (n_sets, size)
        Rows of the class to leave out; −1 pads.
    scored : Tensor of shape (n_sets, n_scored, n_axes)
        Coordinates of rows about the class's mean.
    off_axes : Tensor of shape (n_sets, n_scored)
        Their squared distances off the axes.
    """

    def __init__(self, scatter: Scatter, members: Tensor, scored: Tensor, off_axes: Tensor) -> None:
        self.values, self.off_axes = scatter.values, off_axes
        inside = members >= 0
        weights = scatter.weights[members] * inside
        rows = scatter.coordinates[members] * inside.unsqueeze(2)
        removed = weights.sum(1)
        remaining = scatter.total - removed
        #: Whether anything is left.
        self.exists = remaining > SMALLEST_SHARE * scatter.total
        remaining = torch.where(self.exists, remaining, 1.0)
        mean = (weights.unsqueeze(2) * rows).sum(1) / removed.unsqueeze(1)
        #: How far the mean moves, (n_sets, n_axes).
        self.shift = -mean * (removed / remaining).unsqueeze(1)
        self.scored = scored - self.shift.unsqueeze(1)
        self.removed_rows = self._removed_scatter(rows, weights, mean, removed, remaining)
        freedom = remaining - self._squared_units(scatter, members, weights) / remaining
        #: Whether what is left has a spread; a single unit has none.
        self.has_spread = self.exists & (freedom > SMALLEST_SHARE * remaining)
        self.freedom = torch.where(self.has_spread, freedom, 1.0)
        trace = scatter.values.sum() - self.removed_rows.square().sum((1, 2))
        #: Total variance of what is left, (n_sets,).
        self.variance = torch.where(self.has_spread, trace.clamp_min(0) / self.freedom, 0.0)

    def _removed_scatter(
        self, rows: Tensor, weights: Tensor, mean: Tensor, removed: Tensor, remaining: Tensor
    ) -> Tensor:
        """V of each set, (n_sets, at most n_axes, n_axes)."""
        if rows.shape[1] == 1:  # both of its rows point one way
            return rows * (weights + weights.square() / remaining.unsqueeze(1)).sqrt().unsqueeze(2)
        centre = mean * (removed / remaining.sqrt()).unsqueeze(1)
        stacked = torch.cat([rows * weights.sqrt().unsqueeze(2), centre.unsqueeze(1)], dim=1)
        return torch.linalg.qr(stacked, mode="r").R if stacked.shape[1] > stacked.shape[2] else stacked

    def _squared_units(self, scatter: Scatter, members: Tensor, weights: Tensor) -> Tensor:
        """Σ W_u² of what is left, (n_sets,)."""
        totals, units = scatter.unit_weights(), scatter.units[members]
        of_unit = weights
        if units.shape[1] > 1:
            numbers = torch.arange(len(units), device=units.device).unsqueeze(1) * scatter.n_units + units
            _, pairs = torch.unique(numbers, return_inverse=True)
            sums = weights.new_zeros(int(pairs.max()) + 1).index_add_(0, pairs.flatten(), weights.flatten())
            of_unit = sums[pairs]
        return totals.square().sum() - (weights * (2 * totals[units] - of_unit)).sum(1)

    def distances(self, variances: Variances) -> Tensor:
        """Distances of the scored rows to the class without their set, (n_sets, n_scored); infinite to nothing."""
        along = self._along(variances)
        scaled = self.removed_rows / along.unsqueeze(1)
        squared = (self.scored.square() / along.unsqueeze(1)).sum(2) + self.off_axes / variances.ball.unsqueeze(1)
        lost = torch.linalg.solve_triangular(
            self._capacity(scaled, variances), scaled @ self.scored.transpose(1, 2), upper=False
        )
        squared = squared + variances.of_scatter.unsqueeze(1) * lost.square().sum(1)
        return torch.where(self.exists.unsqueeze(1), squared.sqrt(), torch.inf)

    def log_determinants(self, variances: Variances, n_features: int) -> Tensor:
        """Logarithm of the determinant of each covariance, (n_sets,)."""
        along = self._along(variances)
        capacity = self._capacity(self.removed_rows / along.unsqueeze(1), variances)
        lost: Tensor = 2 * torch.diagonal(capacity, dim1=1, dim2=2).log().sum(1)
        return along.log().sum(1) + max(0, n_features - len(self.values)) * variances.ball.log() + lost

    def _along(self, variances: Variances) -> Tensor:
        """Variances along the axes of the class with all its rows, (n_sets, n_axes)."""
        return variances.of_scatter.unsqueeze(1) * self.values + variances.ball.unsqueeze(1)

    def _capacity(self, scaled: Tensor, variances: Variances) -> Tensor:
        """Cholesky factor of I − a V P⁻¹ Vᵀ, the smaller matrix of the Woodbury identity."""
        leverage = variances.of_scatter.view(-1, 1, 1) * (scaled @ self.removed_rows.transpose(1, 2))
        size = leverage.shape[1]
        identity = torch.eye(size, dtype=leverage.dtype, device=leverage.device)
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(identity - leverage)
        if (bad := failed > 0).any():
            factor[bad] = torch.linalg.cholesky((1 + ROUNDING_OF_LEVERAGE) * identity - leverage[bad])
        return factor
