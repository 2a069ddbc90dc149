"""Class means c_k, mean radii Δ_k, and norms ‖A_k (z − c_k)‖₂ of samples, for all classes at once.

Shapes: ``n_samples`` × ``n_features``; ``n_classes`` ellipsoids, each { z : ‖A (z − c)‖₂ ≤ Δ }.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._samples.samples import Samples
from ..._torch.devices import row_chunks
from .tiles import PaddedAxes

#: Memory of the offsets of samples to some classes, for which a CPU computes norms at once: they stay in its cache.
CACHE_BYTES = 2**18
#: Rounding: a class whose mean radius is below this (features have unit scale) has no spread.
DEGENERATE_RADIUS = 1e-6


def class_means(samples: Samples) -> Tensor:
    """Weighted mean of each class's samples (eq. 3) in double precision, (n_classes, n_features)."""
    if samples.moments is not None:
        return torch.from_numpy(samples.moments.means).to(samples.features.device)
    features, classes, weights = samples.features, samples.classes, samples.weights
    sums = features.new_zeros(samples.n_classes, features.shape[1], dtype=torch.float64)
    for part in row_chunks(len(features), 16 * features.shape[1]):
        sums.index_add_(0, classes[part], features[part].double() * weights[part].unsqueeze(1))
    return sums / class_weights(samples).unsqueeze(1)


def class_centroids(samples: Samples) -> Tensor:
    """Class means in the precision of the samples: the mean of equal samples is that sample."""
    return class_means(samples).to(samples.features.dtype)


def mean_radii(samples: Samples, centroids: Tensor) -> Tensor:
    """Weighted mean distance of each class's samples to their centroid, the paper's Δ, (n_classes,)."""
    distances = torch.linalg.vector_norm(samples.features - centroids[samples.classes], dim=1)
    sums = torch.zeros_like(centroids[:, 0], dtype=torch.float64)
    sums.index_add_(0, samples.classes, distances.double() * samples.weights)
    return (sums / class_weights(samples)).to(distances.dtype)


def class_weights(samples: Samples) -> Tensor:
    """Total weight of each class's samples, (n_classes,)."""
    return samples.weights.new_zeros(samples.n_classes).index_add_(0, samples.classes, samples.weights)


class Spheres(NamedTuple):
    """The sphere of each class: what the paper's training begins with, and a common factor of the closed form's."""

    centroids: Tensor  # (n_classes, n_features)
    radii: Tensor  # (n_classes,)
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread, all samples equal or duplicates of one


def class_spheres(samples: Samples) -> Spheres:
    """Centroids and mean radii of all classes; degenerate classes have a typical radius."""
    centroids = class_centroids(samples)
    radii = mean_radii(samples, centroids)
    pairs = np.unique(np.stack([samples.classes.cpu().numpy(), samples.units]), axis=1)
    n_units = torch.from_numpy(np.bincount(pairs[0], minlength=samples.n_classes)).to(radii.device)
    degenerate = (radii <= DEGENERATE_RADIUS) | (n_units < 2)
    typical = _typical_radius(centroids, radii[~degenerate])
    return Spheres(centroids, torch.where(degenerate, typical, radii), degenerate)


def _typical_radius(centroids: Tensor, other_radii: Tensor) -> float:
    """Radius of degenerate classes: the median of the other classes' radii.

    If all classes are degenerate: half the smallest distance between two centroids. If all centroids are equal: 1.
    """
    if len(other_radii):
        return float(other_radii.quantile(0.5))
    distances = torch.pdist(centroids)
    distances = distances[distances > DEGENERATE_RADIUS]
    return float(distances.min()) / 2 if len(distances) else 1.0


def nearest_centroid(features: Tensor, centroids: Tensor) -> Tensor:
    """Index of the nearest centroid in Euclidean distance (eq. 17), (n_samples,).

    Features should be centred, so that the differences are accurate.
    """
    return closeness(features, centroids).argmax(1)


def nearest_other(features: Tensor, classes: Tensor, centroids: Tensor) -> Tensor:
    """Index of the nearest centroid among the other classes, (n_samples,)."""
    return closeness(features, centroids).scatter_(1, classes.unsqueeze(1), -torch.inf).argmax(1)


def closeness(features: Tensor, centroids: Tensor) -> Tensor:
    """−‖z − c‖² / 2 less the part that is the same for every class: one matrix product."""
    return torch.addmm(centroids.square().sum(1).mul_(-0.5), features, centroids.T)


@dataclass
class Factors:
    """Matrices A_k of all classes, each by a few axes: ‖A_k d‖² = Σ_j w_j ⟨v_j, d⟩² + u (‖d‖² − Σ_j ⟨v_j, d⟩²).

    u is the eigenvalue of A_kᵀA_k off the axes; where it is not 0, the axes v_j of a class are orthonormal. A full
    matrix has its rows as axes, with weights 1 and u = 0.
    """

    axes: Any  # (n_axes of all classes together, n_features), a tensor, or an array where it is stored
    weights: Any  # (n_axes of all classes together,)
    starts: list[int]  # (n_classes + 1,) where each class's axes start
    residual: Any  # (n_classes,) u

    @classmethod
    def from_components(cls, components: Tensor) -> "Factors":
        """Read full matrices, (n_classes, n_features, n_features)."""
        n_classes, n_features = components.shape[:2]
        axes = components.reshape(-1, n_features)
        starts = [k * n_features for k in range(n_classes + 1)]
        return cls(axes, axes.new_ones(len(axes)), starts, axes.new_zeros(n_classes))

    def scaled(self, squares: float) -> "Factors":
        """Multiply squared norms."""
        return Factors(self.axes, self.weights * squares, self.starts, self.residual * squares)

    def padded(self) -> "PaddedFactors":
        """Prepare them for scoring."""
        if not bool(self.residual.any()):
            return PaddedFactors(PaddedAxes.of(self.axes, self.weights.unsqueeze(1), self.starts), None)
        weights = torch.stack([self.weights, torch.ones_like(self.weights)], dim=1)
        return PaddedFactors(PaddedAxes.of(self.axes, weights, self.starts), self.residual)


class PaddedFactors(NamedTuple):
    """Factors for scoring. The weights of an axis are w_j and, if u is not 0, 1: for both sums of the formula."""

    axes: PaddedAxes
    residual: Tensor | None  # (n_classes,) u; None: 0 for all classes

    def all_norms(self, features: Tensor, centroids: Tensor) -> Tensor:
        """‖A_k (z − c_k)‖₂ of every sample for every class, (n_samples, n_classes)."""
        at_once, found = len(centroids), []
        if features.device.type == "cpu" and not torch.compiler.is_compiling():  # an exported graph has any batch size
            at_once = max(1, CACHE_BYTES // max(1, features.numel() * features.element_size()))
        for bucket, members in zip(self.axes.buckets, self.axes.members, strict=True):
            for first in range(0, len(members), at_once):
                some = slice(first, first + at_once)
                own, n_axes = members[some], max(bucket.ranks[some])
                offsets = features - centroids[own].unsqueeze(1)  # (n_own, n_samples, n_features)
                along = torch.bmm(offsets, bucket.axes[some, :n_axes].transpose(1, 2))
                squares = along.square_() @ bucket.weights[some, :n_axes]
                residual = None if self.residual is None else self.residual[own].unsqueeze(1)
                found.append(_norms(squares, None if residual is None else offsets.square_().sum(-1), residual))
        by_bucket = torch.cat(found)
        return (by_bucket if len(self.axes.members) == 1 else by_bucket[torch.cat(self.axes.members).argsort()]).T


def _norms(along: Tensor, whole: Tensor | None, residual: Tensor | None) -> Tensor:
    """‖A_k d‖₂ from both sums along the axes, (…, 1 or 2), and from ‖d‖²."""
    norms = along[..., 0]
    if residual is not None and whole is not None:
        off = whole.sub(along[..., 1]).clamp_min_(0)
        norms = torch.where(residual > 0, norms.addcmul(off, residual), norms)
    # Squares beyond the precision are infinite, and their difference is NaN: such samples are infinitely far.
    return norms.sqrt().nan_to_num_(nan=torch.inf, posinf=torch.inf)


def assigned_norms(
    features: Tensor, assigned: Tensor, centroids: Tensor, shapes: PaddedFactors, rows: Tensor | None = None
) -> Tensor:
    """‖A_j (z − c_j)‖₂ of every sample for its assigned class j alone, (n_samples,); or of samples in ``rows``."""
    if rows is None:
        rows = torch.arange(len(features), device=features.device)
    residual = None if shapes.residual is None else shapes.residual[assigned]
    found = shapes.axes.squared_norms(features, rows, assigned, centroids, whole=residual is not None)
    return _norms(*found, residual)
