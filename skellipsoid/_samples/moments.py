"""Counts, means and scatters of classes: from parts of the data, merged exactly.

The scatter of a class is Σ (z − c)(z − c)ᵀ. That of two parts is the sum of theirs and n₁ n₂ / (n₁ + n₂) d dᵀ, where d
is the difference of their means: nothing cancels, so the order of the parts changes rounding alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassMoments:
    """Moments of those classes that have samples in a part of the data, all in double precision."""

    classes: Integers  # (n_present,) ascending numbers
    counts: Integers  # (n_present,)
    means: Floats  # (n_present, n_features)
    scatters: Floats  # (n_present, n_features (n_features + 1) / 2) lower triangles, one row after another
    lowest: Floats  # (n_features,) of all samples
    highest: Floats  # (n_features,)

    @classmethod
    def of(cls, features: NDArray[np.floating], classes: Integers) -> "ClassMoments":
        """Compute the moments of samples, (n_samples, n_features), at least one."""
        present = np.unique(classes)
        n_features = features.shape[1]
        lower = np.tril_indices(n_features)
        means = np.empty((len(present), n_features))
        scatters = np.empty((len(present), len(lower[0])))
        for i, label in enumerate(present):
            own = features[classes == label].astype(np.float64)
            means[i] = own.mean(axis=0)
            own -= means[i]
            scatters[i] = (own.T @ own)[lower]
        counts = np.bincount(classes)[present]
        return cls(
            present, counts, means, scatters, *(ends.astype(np.float64) for ends in (features.min(0), features.max(0)))
        )

    @staticmethod
    def merged(parts: Sequence["ClassMoments"]) -> "ClassMoments":
        """Merge the moments of parts that share no sample."""
        classes = np.unique(np.concatenate([part.classes for part in parts]))
        counts = np.zeros(len(classes), dtype=np.int64)
        means = np.zeros((len(classes), parts[0].means.shape[1]))
        scatters = np.zeros((len(classes), parts[0].scatters.shape[1]))
        lower = np.tril_indices(parts[0].means.shape[1])
        for part in parts:
            for i, place in enumerate(np.searchsorted(classes, part.classes)):
                before, added = counts[place], part.counts[i]
                difference = part.means[i] - means[place]
                share = added / (before + added)
                scatters[place] += part.scatters[i]
                if before:
                    scatters[place] += before * share * difference[lower[0]] * difference[lower[1]]
                means[place] += share * difference
                counts[place] += added
        lowest = np.min([part.lowest for part in parts], axis=0)
        return ClassMoments(classes, counts, means, scatters, lowest, np.max([part.highest for part in parts], axis=0))

    @cached_property
    def total(self) -> int:
        """Number of all samples."""
        return int(self.counts.sum())

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Features that do not vary, (n_features,)."""
        return np.asarray(self.lowest == self.highest)

    def mean(self) -> Floats:
        """Mean of all samples, exact for constant features."""
        return np.where(self.constant, self.lowest, self.counts @ self.means / self.total)

    def mean_square(self) -> float:
        """Mean squared distance of all samples to their mean."""
        size = self.means.shape[1]
        diagonal = np.arange(size) * (np.arange(size) + 3) // 2
        of_means = self.counts @ np.square(self.means - self.mean()).sum(axis=1)
        return float((self.scatters[:, diagonal].sum() + of_means) / self.total)

    def standardized(self, mean: Floats, scale: float | Floats) -> "ClassMoments":
        """Moments of (z − mean) / scale, with one scale or one for each feature."""
        lower, scales = np.tril_indices(len(mean)), np.broadcast_to(scale, len(mean))
        return ClassMoments(
            self.classes,
            self.counts,
            (self.means - mean) / scale,
            self.scatters / (scales[lower[0]] * scales[lower[1]]),
            (self.lowest - mean) / scale,
            (self.highest - mean) / scale,
        )

    def scatter(self, i: int) -> Floats:
        """Scatter of the class at a place of ``classes``, (n_features, n_features)."""
        return self._unpacked(self.scatters[i])

    def pooled_scatter(self, chosen: NDArray[np.bool_]) -> Floats:
        """Sum of the scatters of the ``chosen`` classes, (n_features, n_features)."""
        return self._unpacked(chosen.astype(np.float64) @ self.scatters)

    def _unpacked(self, triangle: Floats) -> Floats:
        size = self.means.shape[1]
        found = np.zeros((size, size))
        found[np.tril_indices(size)] = triangle
        return found + np.tril(found, -1).T
