"""The paper's boundaries ‖A_k (z − c_k)‖ < Δ_k: starts and trains them, and scores the validation samples.

The procedure is that of the authors' published code: repository thuiar/TEXTOIR, folder
``open_intent_detection/methods/EliDecide``.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._held_out.table import (
    BOUNDARY_TOLERANCE,
    KNOWN,
    N_FIRST,
    OF_OTHER_CLASS,
    REAL,
    SYNTHETIC,
    HeldOutTable,
    best_scale,
    f1_at_fixed_shares,
    gap_of,
)
from ..._samples.folds import validation_rows
from ..._samples.samples import Samples
from ..math.boundaries import Boundaries, Fitted, Metric, Shapes
from ..math.geometry import Factors, assigned_norms, class_spheres, nearest_centroid, nearest_other
from ..math.mixtures import draw_synthetic_classes, n_synthetic
from .settings import TrainingSettings
from .training import BoundaryTrainer, Ellipsoids

#: The authors' code rejects samples on the boundary itself, r = Δ. So radii are smaller by four units of single
#: precision.
OPEN_ON_BOUNDARY = 1 - 2.0**-21

#: Known samples and real open samples.
Split = tuple[Samples, Tensor]


class Fixed(NamedTuple):
    """Matrices of an earlier training that are not trained."""

    classes: Tensor  # (n_fixed,) numbers of their classes
    components: Tensor  # (n_fixed, n_features, n_features)


def as_fitted(learned: Ellipsoids) -> Fitted:
    """Convert trained ellipsoids to the form of those in closed form."""
    centroids = learned.centroids
    factors = Factors.from_components(learned.components)
    radii = learned.radii * OPEN_ON_BOUNDARY
    shapes = Shapes(Metric.euclidean(centroids), centroids, factors, radii, torch.zeros_like(radii))
    boundaries = Boundaries.of(torch.zeros_like(centroids[0]), centroids, centroids, shapes)
    history, degenerate = learned.history, learned.degenerate.cpu().numpy()
    return Fitted(boundaries, degenerate, learned.held_out, history.losses, history.scores)


def train_ellipsoids(
    samples: Samples,
    real_open: Tensor,
    settings: TrainingSettings,
    seed: int,
    validation: Split,
    fixed: Fixed | None = None,
) -> Ellipsoids:
    """Compute centroids and radii, and train the matrices; ``validation`` samples decide when to stop.

    The losses are sums over the classes, so some matrices can be trained while the others are ``fixed``.
    """
    ellipsoids = start_ellipsoids(samples, fixed)
    trainer = BoundaryTrainer(ellipsoids, samples, real_open, settings, np.random.default_rng(seed))
    validator = PaperValidator(*validation, ellipsoids.centroids, ellipsoids.degenerate)
    if not validator:  # no validation samples, or only of degenerate classes
        ellipsoids.history = trainer.run()
        return ellipsoids

    def validate(synthetic: Tensor | None = None) -> HeldOutTable:
        return validator.validate(Factors.from_components(ellipsoids.components), ellipsoids.radii, synthetic)

    best = ellipsoids.components.clone()
    ellipsoids.history = trainer.run(lambda: known_f1(validate()), lambda: best.copy_(ellipsoids.components))
    if settings.restore_best:
        ellipsoids.components = best
    if settings.recalibrate:
        synthetic = validation_open(validation[0], ellipsoids.centroids, ellipsoids.degenerate, settings, seed)
        scale, _ = best_scale(validate(synthetic))
        ellipsoids.radii = ellipsoids.radii * (scale * (1 + BOUNDARY_TOLERANCE))
    shapes = Factors.from_components(ellipsoids.components), ellipsoids.radii
    ellipsoids.held_out = validator.ranked(validate(), *shapes).kept(OPEN_ON_BOUNDARY)
    return ellipsoids


def hold_out(samples: Samples, validates: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Choose validation samples, (n_samples,) Boolean; groups stay together.

    Parameters
    ----------
    samples : Samples
        Known samples.
    validates : ndarray of shape (n_samples,)
        1 for validation samples, 0 for training samples, −1 for undecided ones. An undecided sample goes where its
        block is, to the validation set if the block has both.
    fraction : float
        Fraction of each class's undecided samples.
    seed : int
    """
    together = samples.blocks
    for decided in (1, 0):
        is_free = validates < 0
        validates = np.where(is_free & np.isin(together, together[validates == decided]), decided, validates)
    free = np.flatnonzero(validates < 0)
    chosen = validates == 1
    rng = np.random.default_rng([seed, 2])
    chosen[free] = validation_rows(samples.classes.cpu().numpy()[free], fraction, rng, together[free])
    return np.asarray(chosen)


def hold_out_open(validates: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Choose real open samples for the validation set, (n_open,) Boolean; ``validates`` as in ``hold_out``."""
    drawn = np.random.default_rng([seed, 3]).random(len(validates)) < fraction
    return np.asarray(np.where(validates < 0, drawn, validates == 1))


class PaperValidator:
    """Known and real open validation samples, with all that is constant while the matrices are trained.

    Parameters
    ----------
    samples : Samples
        Known samples.
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    degenerate : Tensor of shape (n_classes,)
        Boolean: classes without spread. Their samples are not used.
    """

    def __init__(self, samples: Samples, real_open: Tensor, centroids: Tensor, degenerate: Tensor) -> None:
        self.centroids, self.real_open = centroids, real_open
        self.known = samples.of_classes(~degenerate)
        features, classes = self.known.features, self.known.classes
        self.assigned, self.real_assigned = (
            nearest_centroid(features, centroids),
            nearest_centroid(real_open, centroids),
        )
        self.others = nearest_other(features, classes, centroids) if len(centroids) > 1 else None

    def __len__(self) -> int:
        """Return the number of known validation samples."""
        return len(self.known)

    def validate(self, shapes: Factors, radii: Tensor, synthetic: Tensor | None = None) -> HeldOutTable:
        """Relative distances of all samples, and of those of ``synthetic`` classes if there are any."""
        padded = shapes.padded()

        def scored(kind: int, features: Tensor, assigned: Tensor, *columns: Any) -> HeldOutTable:
            norms = assigned_norms(features, assigned, self.centroids, padded)
            return HeldOutTable.of(len(self.centroids), kind, norms / radii[assigned], assigned, *columns)

        known, own = self.known.features, (self.known.classes, self.known.weights, self.known.sets)
        parts = [scored(KNOWN, known, self.assigned, *own)]
        if self.others is not None:
            parts.append(scored(OF_OTHER_CLASS, known, self.others, *own))
        if synthetic is not None:
            parts.append(scored(SYNTHETIC, synthetic, nearest_centroid(synthetic, self.centroids)))
        return HeldOutTable.joined([*parts, scored(REAL, self.real_open, self.real_assigned)])

    def ranked(self, held_out: HeldOutTable, shapes: Factors, radii: Tensor) -> HeldOutTable:
        """Add ranks and gaps to the table of ``validate``: after the assigned class, the others by their distance."""
        known, own, padded = self.known.features, self.known.classes, shapes.padded()
        parts: list[tuple[Tensor, Tensor, Tensor | None]] = [(known, self.assigned, None)]
        if self.others is not None:
            parts.append((known, self.others, own))
        found = []
        for features, assigned, left_out in [*parts, (self.real_open, self.real_assigned, None)]:
            squares = (padded.all_norms(features, self.centroids) / radii).square()
            if left_out is not None:
                squares.scatter_(1, left_out.unsqueeze(1), torch.inf)
            of_first = squares.gather(1, assigned.unsqueeze(1))
            least = squares.scatter(1, assigned.unsqueeze(1), -torch.inf).topk(
                min(N_FIRST, squares.shape[1]), dim=1, largest=False
            )
            compared = torch.cat([of_first, least.values[:, 1:]], dim=1).cpu().numpy().astype(np.float64)
            is_own = (least.indices == own.unsqueeze(1)).cpu().numpy() if features is known else compared < -np.inf
            ranks = np.where(is_own.any(axis=1), is_own.argmax(axis=1) + 1, 0)
            found.append((np.where(left_out is None, ranks, 0), gap_of(compared)))
        ranks, gaps = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return replace(held_out, ranks=ranks, gaps=gaps)


def known_f1(held_out: HeldOutTable) -> float:
    """Macro F1 over the known classes on known validation samples; the prediction open, from r = Δ on, is an error."""
    below_1 = np.array([np.nextafter(1.0, 0.0)])
    return float(f1_at_fixed_shares(held_out.known, below_1)[0])


def validation_open(
    samples: Samples, centroids: Tensor, degenerate: Tensor, settings: TrainingSettings, seed: int
) -> Tensor:
    """Draw samples of synthetic classes for validation, none with a single class.

    Their random numbers are independent of those of the training.
    """
    shaped, rng = samples.of_classes(~degenerate), np.random.default_rng([seed, 1])
    classes, weights = shaped.classes.cpu().numpy(), shaped.weights.cpu().numpy()
    drawn = draw_synthetic_classes(classes, n_synthetic(len(shaped)), settings.alpha, rng, weights)
    return shaped.features[:0] if drawn is None else drawn.of(centroids, shaped.features - centroids[shaped.classes])


def start_ellipsoids(samples: Samples, fixed: Fixed | None = None) -> Ellipsoids:
    """Initialise with centroids, mean radii and identity matrices (spheres); some matrices are fixed."""
    centroids, radii, degenerate = class_spheres(samples)
    identity = torch.eye(samples.features.shape[1], device=centroids.device, dtype=centroids.dtype)
    components = identity.repeat(samples.n_classes, 1, 1)
    is_trained = torch.ones_like(degenerate)
    if fixed is not None:
        components[fixed.classes] = fixed.components
        is_trained[fixed.classes] = False
    return Ellipsoids(centroids, radii, components, degenerate, torch.nonzero(is_trained).flatten())
