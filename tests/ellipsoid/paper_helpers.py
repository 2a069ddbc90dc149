"""Rows, settings and the literal loss for the tests of the paper's training."""

import math
from dataclasses import replace

import numpy as np
import torch

from skellipsoid._ellipsoid.paper.ellipsoids import start_ellipsoids
from skellipsoid._ellipsoid.paper.settings import TrainingSettings
from skellipsoid._ellipsoid.paper.training import BoundaryTrainer
from skellipsoid._samples.samples import Samples

BETA = 0.4
SETTINGS = TrainingSettings(
    alpha=0.6,
    beta=BETA,
    n_mix=(2, 3),
    learning_rate=1e-2,
    weight_decay=0.05,
    batch_size=8,
    max_iter=3,
    n_iter_no_change=100,
    shape="full",
    negative_loss="contraction",
    recalibrate=False,
    validation_fraction=0.25,
    restore_best=False,
    verbose=0,
)


def known_rows(n_classes=4, n_rows=30, n_features=5, *, spread=2.0, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.append(np.arange(n_classes), rng.choice(n_classes, size=n_rows - n_classes)))
    rows = rng.normal(size=(n_rows, n_features)) + rng.normal(scale=spread, size=(n_classes, n_features))[classes]
    return torch.tensor(rows / math.sqrt(2 * n_features), dtype=dtype), torch.from_numpy(classes)


def open_rows(n_rows=9, n_features=5, *, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(5).normal(size=(n_rows, n_features)), dtype=dtype)


def start(known, classes, weights=None):
    return start_ellipsoids(Samples.of(known, classes, None, weights))


def some_ellipsoids(known, classes, *, weights=None, seed=1):
    """Ellipsoids that are no spheres, with known rows and open rows on both sides of each boundary."""
    ellipsoids = start(known, classes, weights)
    noise = np.random.default_rng(seed).normal(size=ellipsoids.components.shape)
    ellipsoids.components += 0.2 * torch.from_numpy(noise)
    return ellipsoids


def trainer_of(ellipsoids, known, classes, real_open=None, *, weights=None, seed=0, **changes):
    samples = Samples.of(known, classes, None, weights)
    real_open = known[:0] if real_open is None else real_open
    return BoundaryTrainer(ellipsoids, samples, real_open, replace(SETTINGS, **changes), np.random.default_rng(seed))


def norms_of(components, centroids, rows, k):
    """‖A_k (z − c_k)‖ of rows."""
    return [(components[k] @ (row - centroids[k])).square().sum().sqrt() for row in rows]


def literal_loss(components, ellipsoids, batch, classes, negatives, weights=None):
    """eq. 16: the mean over the batch of eq. 13, and the mean over all negatives of the sum of eq. 15 over classes."""
    centroids, radii = ellipsoids.centroids, ellipsoids.radii
    weights = torch.ones(len(batch)) if weights is None else weights
    expansion, contraction = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for row, k, weight in zip(batch, classes.tolist(), weights, strict=True):
        (norm,) = norms_of(components, centroids, [row], k)
        expansion = expansion + weight * torch.maximum(norm - radii[k], torch.zeros_like(norm))
    for k in range(len(components)):
        for norm in norms_of(components, centroids, negatives, k):
            inside = bool(norm < radii[k])
            contraction = contraction + (radii[k] - norm + BETA if inside else BETA * torch.exp(radii[k] - norm))
    return expansion / len(batch) + contraction / max(1, len(negatives))


def whole_loss(trainer, rows):
    """Loss of a batch: the sum over the parts of the classes."""
    batch = trainer.batch(rows)
    return sum(trainer.loss(number, batch) for number in range(len(trainer.parts)))
