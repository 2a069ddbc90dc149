"""Euclidean distances that are accurate near 0, where ‖a‖² − 2 ⟨a, b⟩ + ‖b‖² is rounding alone."""

import torch
from torch import Tensor

#: Relative rounding error of squared distances from products in double precision.
ROUNDING = 1e-12


def euclidean(rows: Tensor, others: Tensor) -> Tensor:
    """Distances, (n_rows, n_others), from differences whatever the number of rows; at 0 their gradient is 0."""
    return torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")


def nearest_of(rows: Tensor, others: Tensor, n_nearest: int) -> Tensor:
    """Numbers of the nearest others, (n_rows, n_nearest): by products, several times as fast as by differences.

    Where rounding might change their order, they are found by ``euclidean``.
    """
    squares, of_others = rows.square().sum(1, keepdim=True), others.square().sum(1)
    found = torch.addmm(of_others, rows, others.T, alpha=-2).topk(min(n_nearest + 1, len(others)), largest=False)
    error = ROUNDING * (squares + of_others.max())
    if not bool((found.values.diff(dim=1) > error).all()):
        found = euclidean(rows, others).topk(min(n_nearest, len(others)), largest=False)
    return found.indices[:, :n_nearest]
