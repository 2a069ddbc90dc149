"""Ellipsoids: centroids, mean radii, distances, margins and axes, for all classes at once.

Shapes: ``n_samples`` rows of ``n_features``; ``n_classes`` ellipsoids, each { z : ‖A (z − c)‖₂ ≤ Δ }.
"""

import numpy as np
import torch
from torch import Tensor

from .devices import row_chunks


def class_centroids(features: Tensor, classes: Tensor, n_classes: int) -> Tensor:
    """Mean of each class's rows (eq. 3), (n_classes, n_features).

    Summed in double precision: the mean of equal rows is that row, however many there are.
    """
    rows = features.double()
    sums = rows.new_zeros(n_classes, rows.shape[1]).index_add_(0, classes, rows)
    means: Tensor = sums / torch.bincount(classes, minlength=n_classes).unsqueeze(1)
    return means.to(features.dtype)


def mean_radii(features: Tensor, classes: Tensor, centroids: Tensor) -> Tensor:
    """Mean distance of each class's rows to their centroid, the paper's Δ, (n_classes,)."""
    distances = torch.linalg.vector_norm(features - centroids[classes], dim=1)
    sums = torch.zeros_like(centroids[:, 0], dtype=torch.float64).index_add_(0, classes, distances.double())
    return (sums / torch.bincount(classes, minlength=len(centroids))).to(distances.dtype)


def nearest_centroid(features: Tensor, centroids: Tensor) -> Tensor:
    """Index of the nearest centroid in Euclidean distance (eq. 17), (n_samples,).

    ‖z − c‖² less the part that is the same for every class: one matrix product. Features should be centred, which
    keeps that difference accurate.
    """
    scores = torch.addmm(centroids.square().sum(1).mul_(-0.5), features, centroids.T)
    return scores.argmax(1)


def transformed_norms(features: Tensor, centroids: Tensor, components: Tensor) -> Tensor:
    """‖A_k (z − c_k)‖₂ of every row for every class, (n_samples, n_classes)."""
    norms = features.new_empty(len(features), len(centroids))
    for k, (centroid, component) in enumerate(zip(centroids, components, strict=True)):
        norms[:, k] = torch.linalg.vector_norm((features - centroid) @ component.to(features.dtype).T, dim=1)
    return norms


def assigned_norms(features: Tensor, assigned: Tensor, centroids: Tensor, components: Tensor) -> Tensor:
    """‖A_j (z − c_j)‖₂ of every row for its assigned class j alone, (n_samples,).

    Rows are grouped by class, so that each class costs one matrix product over its own rows.
    """
    norms = features.new_empty(len(features))
    order = torch.argsort(assigned, stable=True)
    counts = torch.bincount(assigned, minlength=len(centroids)).tolist()
    for k, rows in enumerate(torch.split(order, counts)):
        if len(rows):
            offsets = features[rows] - centroids[k]
            norms[rows] = torch.linalg.vector_norm(offsets @ components[k].to(features.dtype).T, dim=1)
    return norms


def ellipsoid_axes(component: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Directions (orthonormal rows) and semi-axis lengths radius/√λ_i of one ellipsoid, longest first.

    λ_i are the eigenvalues of AᵀA; an axis along which A is zero has infinite length.
    """
    _, singular, directions = np.linalg.svd(component.astype(np.float64))
    with np.errstate(divide="ignore"):
        lengths = radius / singular
    order = np.arange(len(singular))[::-1]  # singular values come largest first
    return directions[order], lengths[order]


def scoring_chunks(n_rows: int, n_features: int, n_classes: int) -> list[slice]:
    """Slices of rows whose scoring stays within the memory of one chunk."""
    return list(row_chunks(n_rows, 8 * (3 * n_features + 2 * n_classes)))
