"""Negatives of the contraction loss: pseudo-open mixtures z = Σ λ_i z_i, real open samples, or other classes."""

import numpy as np
import torch
from torch import Tensor

from ..._torch.devices import on_device
from ..math.mixtures import draw_mixtures
from .settings import TrainingSettings


def draw_negatives(
    features: Tensor,
    classes: np.ndarray,
    real_open: Tensor,
    n_wanted: int,
    settings: TrainingSettings,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> Tensor:
    """Draw open samples: up to half of them real ones, the others pseudo-open samples, mixtures of ``features``.

    The number of labels P is uniform for each pseudo-open sample, and so are the labels among those of ``features``. A
    sample that needs more labels than there are is skipped. If all are skipped, all real open samples are drawn.
    """
    n_real = min(len(real_open), n_wanted // 2)
    fewest, most = settings.n_mix
    numbers = rng.integers(fewest, most + 1, size=n_wanted - n_real)
    n_labels = len(np.unique(classes))
    mixtures = [
        draw_mixtures(classes, int((numbers == n_mix).sum()), n_mix, settings.alpha, rng, weights, uniform_labels=True)
        for n_mix in range(fewest, min(most, n_labels) + 1)
    ]
    mixed = torch.cat([features[:0], *(mixture.of(features) for mixture in mixtures if mixture is not None)])
    chosen = rng.permutation(len(real_open))[: n_real if len(mixed) else n_wanted]
    return torch.cat([mixed, real_open[on_device(chosen, real_open.device)]])


def draw_others(classes: np.ndarray, rng: np.random.Generator, weights: np.ndarray) -> np.ndarray | None:
    """Draw a sample of another class for each sample, by weight, (n_samples,); ``None`` with a single class."""
    _, inverse, counts = np.unique(classes, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        return None
    by_class = np.argsort(inverse, kind="stable")
    totals, ends = np.cumsum(weights[by_class]), np.cumsum(counts)
    own_end, own_count = ends[inverse], counts[inverse]
    # In cyclic order, all other classes follow the end of the sample's own class.
    others = totals[-1] - np.bincount(inverse, weights)[inverse]
    drawn = (totals[own_end - 1] + rng.random(len(classes)) * others) % totals[-1]
    after = (np.searchsorted(totals, drawn, side="right") - own_end) % len(classes)
    # Guards against rounding into the sample's own class.
    places = (own_end + np.minimum(after, len(classes) - own_count - 1)) % len(classes)
    return np.asarray(by_class[places])
