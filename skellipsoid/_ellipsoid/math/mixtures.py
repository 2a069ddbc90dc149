"""Mixtures of samples with distinct labels (eq. 14), and the synthetic classes between two known ones."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._torch.devices import on_device

#: Fewest and most samples of synthetic classes in validation: with few the radius scale depends on the draw. With a
#: quarter and four times as many, F1 is within 0.2, but for −0.5 on tables with 64 (results/constants.rst).
FEWEST_SYNTHETIC, MOST_SYNTHETIC = 256, 8192


class Mixture(NamedTuple):
    """Which samples are mixed, and how: a pseudo-open sample is ``(weights[i] * features[indices[i]]).sum()``."""

    indices: np.ndarray  # (n_mixtures, n_mix)
    weights: np.ndarray  # (n_mixtures, n_mix), those of a mixture sum to 1

    def of(self, features: Tensor) -> Tensor:
        """Mix samples, (n_mixtures, n_features)."""
        mixed = features.new_zeros(len(self.indices), features.shape[1])
        weights = torch.from_numpy(self.weights).to(features, non_blocking=True)
        for numbers, weight in zip(on_device(self.indices, features.device).T, weights.T, strict=True):
            mixed.addcmul_(weight.unsqueeze(1), features[numbers])
        return mixed


def draw_mixtures(
    classes: np.ndarray,
    n_mixtures: int,
    n_mix: int,
    alpha: float,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
    *,
    uniform_labels: bool = False,
) -> Mixture | None:
    """Draw ``n_mixtures`` pseudo-open samples from samples with the given classes.

    The first sample is drawn by weight, each further one by weight among the samples whose class is not yet in the
    mixture. Gumbel noise on the logarithms of the classes' weights does that for all mixtures at once. With
    ``uniform_labels`` the classes are drawn uniformly, and then one sample of each. With fewer than ``n_mix``
    classes, all of them are mixed.

    Parameters
    ----------
    classes : ndarray of shape (n_samples,)
    n_mixtures : int
    n_mix : int
        P, how many samples with distinct labels make a mixture.
    alpha : float
        α, the concentration of the symmetric Dirichlet distribution of the weights.
    rng : numpy.random.Generator
        Random numbers come from the CPU, so that every device sees the same mixtures.
    weights : ndarray of shape (n_samples,), optional
        Weights in the draws; equal without it.
    uniform_labels : bool, default=False
        Whether every class is equally likely, however many samples it has.

    Returns
    -------
    Mixture or None
        ``None`` if there are fewer than two classes.
    """
    labels, inverse = np.unique(classes, return_inverse=True)
    n_mix = min(n_mix, len(labels))
    if n_mix < 2:
        return None
    by_class = np.argsort(inverse, kind="stable")
    # A sample is drawn if the number falls into its interval of the class's total weight.
    ends = np.cumsum(np.ones(len(classes)) if weights is None else weights[by_class])
    last = np.cumsum(np.bincount(inverse)) - 1
    totals = np.diff(ends[last], prepend=0.0)
    keys = rng.gumbel(size=(n_mixtures, len(labels))) + (0.0 if uniform_labels else np.log(totals))
    chosen = np.argpartition(-keys, n_mix - 1, axis=1)[:, :n_mix]  # (n_mixtures, n_mix) positions in labels
    drawn = (ends[last] - totals)[chosen] + rng.random(chosen.shape) * totals[chosen]
    places = np.minimum(np.searchsorted(ends, drawn, side="right"), last[chosen])
    coefficients = rng.dirichlet(np.full(n_mix, alpha), size=n_mixtures)
    return Mixture(by_class[places], coefficients)


def n_synthetic(n_known: int) -> int:
    """Return the number of samples of synthetic classes for a number of known samples."""
    return min(max(n_known, FEWEST_SYNTHETIC), MOST_SYNTHETIC)


def draw_synthetic_classes(
    classes: np.ndarray, n_wanted: int, alpha: float, rng: np.random.Generator, weights: np.ndarray
) -> tuple[Mixture, np.ndarray] | None:
    """Draw synthetic classes, each between two known ones; ``None`` with a single class.

    A mixture of samples has a smaller deviation from the mixed centroids than the samples have. So only the centroids
    are mixed, and the deviation is that of the sample whose class has the larger weight.

    Returns
    -------
    means : Mixture
        Of class centroids.
    sources : ndarray of shape (n_wanted,)
        Numbers of the known samples whose deviations are added.
    """
    mixture = draw_mixtures(classes, n_wanted, 2, alpha, rng, weights)
    if mixture is None:
        return None
    heavier = np.take_along_axis(mixture.indices, mixture.weights.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    return Mixture(classes[mixture.indices], mixture.weights), heavier
