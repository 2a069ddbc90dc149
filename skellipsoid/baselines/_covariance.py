"""Weighted class means, and covariances shrunk towards a sphere: (1 − s) S + s · tr(S)/d · I."""

import numpy as np

from ._threshold import Floats, Integers

#: Variances below this fraction of the largest are rounding errors.
SMALLEST_VARIANCE = 1e-12


def class_means(X: Floats, classes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Weighted mean, (n_classes, n_features), and total weight, (n_classes,), of each class."""
    totals = np.bincount(classes, weights, minlength=n_classes).astype(np.float64)
    means = np.zeros((n_classes, X.shape[1]))
    np.add.at(means, classes, X * weights[:, np.newaxis])
    return means / totals[:, np.newaxis], totals


def shrunk_covariance(
    centred: Floats, weights: Floats, shrinkage: str | float, divisor: float | None = None
) -> tuple[Floats, float]:
    """Covariance of centred samples, shrunk towards a sphere of its mean variance, and the weight of the sphere.

    ``shrinkage="auto"`` is the weight of Ledoit and Wolf, as in :class:`~sklearn.covariance.LedoitWolf`, which takes no
    weights.
    """
    n_features, total = centred.shape[1], float(weights.sum())
    scale = float(np.sqrt(np.square(centred).sum(axis=1) @ weights / total)) or 1.0  # fourth powers may overflow
    centred = centred / scale
    covariance = (centred * weights[:, np.newaxis]).T @ centred / total
    variance = float(np.trace(covariance)) / n_features
    if isinstance(shrinkage, str):
        squares = float(np.square(covariance).sum())
        noise = (float(np.square(np.square(centred).sum(axis=1)) @ weights) / total - squares) / total
        spread = squares - n_features * variance**2
        share = min(max(noise, 0.0) / spread, 1.0) if spread > 0 else 0.0
    else:
        share = float(shrinkage)
    covariance *= 1 - share
    covariance.flat[:: n_features + 1] += share * variance
    covariance *= scale**2 * total / (total if divisor is None else divisor)
    return covariance, share


def whitener(covariance: Floats) -> tuple[Floats, float]:
    """V with VᵀΣV = I, and ln det Σ; directions without variance get the smallest variance above rounding errors."""
    variances, axes = np.linalg.eigh(covariance)
    largest = variances[-1] if variances[-1] > 0 else 1.0
    variances = np.maximum(variances, SMALLEST_VARIANCE * largest)
    return axes / np.sqrt(variances), float(np.log(variances).sum())
