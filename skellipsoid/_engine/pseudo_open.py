"""Rows that pass for open ones: mixtures of known rows with distinct labels (eq. 14), and rows between the classes."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .samples import Samples
from .settings import BoundarySettings

#: Open rows that a boundary is learned from or judged by at most.
MOST_NEGATIVES = 8192
#: Rows between the classes that judge the size at least: it should not hang on which ones were drawn.
FEWEST_BETWEEN = 256


class Mixture(NamedTuple):
    """Which rows are mixed, and how: a pseudo-open sample is ``(weights[i] * rows[indices[i]]).sum()``."""

    indices: np.ndarray  # (n_mixtures, n_mix)
    weights: np.ndarray  # (n_mixtures, n_mix), rows sum to 1

    def of(self, features: Tensor) -> Tensor:
        """Mix rows of ``features``, (n_mixtures, n_features)."""
        mixed = features.new_zeros(len(self.indices), features.shape[1])
        for indices, weights in zip(self.indices.T, self.weights.T, strict=True):
            share = torch.from_numpy(weights).to(features)
            mixed.addcmul_(share.unsqueeze(1), features[torch.from_numpy(indices).to(features.device)])
        return mixed


def draw_negatives(
    rows: Tensor,
    classes: np.ndarray,
    real_open: Tensor,
    n_wanted: int,
    settings: BoundarySettings,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> Tensor:
    """Draw open rows: real ones for up to half of them, else mixtures of ``rows``; see ``draw_mixtures``.

    Rows of a single class cannot be mixed: then there are real ones alone, as many as there are.
    """
    n_real = min(len(real_open), n_wanted // 2)
    mixture = draw_mixtures(classes, n_wanted - n_real, settings.n_mix, settings.alpha, rng, weights)
    mixed = rows[:0] if mixture is None else mixture.of(rows)
    chosen = rng.permutation(len(real_open))[: n_real if len(mixed) else n_wanted]
    return torch.cat([mixed, real_open[torch.from_numpy(chosen).to(real_open.device)]])


class Between(NamedTuple):
    """Rows of imaginary classes: where their class lies, and the row that they deviate from it like."""

    centres: Mixture  # of class centroids
    rows: np.ndarray  # (n_rows,)

    def of(self, centroids: Tensor, offsets: Tensor) -> Tensor:
        """Make the rows, given ``offsets`` of all rows to their centroids."""
        return self.centres.of(centroids) + offsets[torch.from_numpy(self.rows).to(offsets.device)]


def draw_between(
    classes: np.ndarray, n_wanted: int, alpha: float, rng: np.random.Generator, weights: np.ndarray
) -> Between | None:
    """Draw imaginary classes, each between two known ones; ``None`` where there is one class.

    A mixture of rows averages away how they deviate from their centroids. So the centroids are mixed, and the row
    deviates as that one of the two rows does whose class has the larger weight.
    """
    mixture = draw_mixtures(classes, n_wanted, 2, alpha, rng, weights)
    if mixture is None:
        return None
    heavier = np.take_along_axis(mixture.indices, mixture.weights.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    return Between(Mixture(classes[mixture.indices], mixture.weights), heavier)


def rows_between(samples: Samples, centroids: Tensor, n_wanted: int, alpha: float, rng: np.random.Generator) -> Tensor:
    """Rows of imaginary classes, (n_wanted, n_features); none where there is one class."""
    classes, weights = samples.classes.cpu().numpy(), samples.weights.cpu().numpy()
    drawn = draw_between(classes, n_wanted, alpha, rng, weights)
    return samples.rows[:0] if drawn is None else drawn.of(centroids, samples.rows - centroids[samples.classes])


def draw_mixtures(
    classes: np.ndarray,
    n_mixtures: int,
    n_mix: int,
    alpha: float,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> Mixture | None:
    """Draw ``n_mixtures`` pseudo-open samples from rows with the given classes.

    The first row is drawn uniformly, each further one uniformly among the rows whose class is not yet in the mixture;
    Gumbel noise on the classes' log counts does that for all mixtures at once. With fewer classes than ``n_mix``, as
    many as there are; with a single one there is nothing to mix.

    Parameters
    ----------
    classes : ndarray of shape (n_rows,)
    n_mixtures : int
    n_mix : int
        P, how many rows with distinct labels make a mixture.
    alpha : float
        α, the concentration of the symmetric Dirichlet distribution of the weights.
    rng : numpy.random.Generator
        Random numbers come from the CPU, so that every device sees the same mixtures.
    weights : ndarray of shape (n_rows,), optional
        What the rows weigh in the draws; equally without it.

    Returns
    -------
    Mixture or None
        ``None`` if the rows hold fewer than two classes.
    """
    labels, inverse = np.unique(classes, return_inverse=True)
    n_mix = min(n_mix, len(labels))
    if n_mix < 2:
        return None
    by_class = np.argsort(inverse, kind="stable")
    # A row is drawn where a number falls into its piece of the class's total weight.
    ends = np.cumsum(np.ones(len(classes)) if weights is None else weights[by_class])
    last = np.cumsum(np.bincount(inverse)) - 1
    totals = np.diff(ends[last], prepend=0.0)
    keys = np.log(totals) + rng.gumbel(size=(n_mixtures, len(labels)))
    chosen = np.argpartition(-keys, n_mix - 1, axis=1)[:, :n_mix]  # (n_mixtures, n_mix) positions in labels
    drawn = (ends[last] - totals)[chosen] + rng.random(chosen.shape) * totals[chosen]
    places = np.minimum(np.searchsorted(ends, drawn, side="right"), last[chosen])
    shares = rng.dirichlet(np.full(n_mix, alpha), size=n_mixtures)
    return Mixture(by_class[places], shares)
