"""Euclidean distances that are accurate near 0, where ‖a‖² − 2 ⟨a, b⟩ + ‖b‖² is rounding alone."""

import torch
from torch import Tensor


def euclidean(rows: Tensor, others: Tensor) -> Tensor:
    """Distances, (n_rows, n_others), from differences whatever the number of rows; at 0 their gradient is 0."""
    return torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")
