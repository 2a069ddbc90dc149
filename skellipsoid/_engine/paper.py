"""The paper's boundaries: one full matrix per class, learned with two losses, all classes in one matrix product."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .boundaries import Boundaries, Metric, Shapes
from .geometry import Factors, class_spheres
from .held_out import BOUNDARY_TOLERANCE, HeldOut, HeldOutSamples, Validation, best_scale, boundary_f1, hold_out
from .losses import (
    contraction_loss,
    contraction_slope,
    expansion_loss,
    expansion_slope,
    inside_loss,
    inside_slope,
    other_class_loss,
    other_class_slope,
)
from .pseudo_open import FEWEST_SYNTHETIC, MOST_NEGATIVES, draw_negatives, draw_others, synthetic_samples
from .samples import Samples
from .settings import BoundarySettings
from .training import History, run_epochs, shuffled_batches

#: The norm of a transformed sample is a denominator.
SMALLEST_NORM = 1e-12


@dataclass
class Ellipsoids:
    """Learned boundaries { z : ‖A_k (z − c_k)‖ ≤ Δ_k }, on the device of the fit, and the history of the training."""

    centroids: Tensor  # (n_classes, n_features)
    radii: Tensor  # (n_classes,)
    components: Tensor  # (n_classes, n_features, n_features)
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread
    held_out: HeldOut | None = None
    history: History = field(default_factory=History)


def fit_paper(samples: Samples, real_open: Tensor, settings: BoundarySettings, seed: int) -> Boundaries:
    """Learn full matrices, initialised with the identity; parameters as of ``fit_closed_form``."""
    learned = train_ellipsoids(samples, real_open, settings, seed)
    centroids = learned.centroids
    return Boundaries(
        origin=torch.zeros_like(centroids[0]),
        centroids=centroids,
        centres=centroids,
        shapes=Shapes(
            Metric.euclidean(centroids), centroids, Factors.from_components(learned.components), learned.radii
        ),
        degenerate=learned.degenerate,
        held_out=learned.held_out,
        history=learned.history,
    )


def train_ellipsoids(samples: Samples, real_open: Tensor, settings: BoundarySettings, seed: int) -> Ellipsoids:
    """Learn centroids, radii and matrices."""
    rng = np.random.default_rng(seed)
    training, held_out = _hold_out(samples, real_open, settings, rng)
    ellipsoids = start_ellipsoids(training[0])
    trainer = _BoundaryTrainer(ellipsoids, *training, settings, rng)
    validator = HeldOutSamples(*held_out, ellipsoids.centroids, ellipsoids.degenerate) if held_out else None
    if not held_out or not validator:  # nothing was held out, or only samples of degenerate classes
        ellipsoids.history = trainer.run()
        return ellipsoids

    def validate(synthetic: Tensor | None = None) -> Validation:
        return validator.validate(Factors.from_components(ellipsoids.components), ellipsoids.radii, synthetic)

    def score() -> float:
        return boundary_f1(validate(), rescales=settings.recalibrate)

    if settings.early_stopping:
        best = ellipsoids.components.clone()
        ellipsoids.history = trainer.run(score, lambda: best.copy_(ellipsoids.components))
        ellipsoids.components = best
    else:
        ellipsoids.history = trainer.run()
    if settings.recalibrate:
        synthetic = validation_open(held_out[0], ellipsoids.centroids, ellipsoids.degenerate, settings, seed)
        scale, _ = best_scale(validate(synthetic))
        ellipsoids.radii = ellipsoids.radii * (scale * (1 + BOUNDARY_TOLERANCE))
    left_out = None if validator.others is None else validator.known.classes
    ellipsoids.held_out = HeldOut.of(validate(), left_out)
    return ellipsoids


def validation_open(
    samples: Samples, centroids: Tensor, degenerate: Tensor, settings: BoundarySettings, seed: int
) -> Tensor:
    """Draw samples of synthetic classes for validation; their random numbers are independent of the training's."""
    shaped = samples.of_classes(~degenerate)
    n_wanted = min(max(len(shaped), FEWEST_SYNTHETIC), MOST_NEGATIVES)
    return synthetic_samples(shaped, centroids, n_wanted, settings.alpha, np.random.default_rng([seed, 1]))


Split = tuple[Samples, Tensor]
#: A loss, or its derivative, of norms ‖A_k (z − c_k)‖₂ and radii.
NormFunction = Callable[[Tensor, Tensor], Tensor]


def _hold_out(
    samples: Samples, real_open: Tensor, settings: BoundarySettings, rng: np.random.Generator
) -> tuple[Split, Split | None]:
    """Split known and real open samples into training and, if the settings need them, validation samples."""
    if not (settings.early_stopping or settings.recalibrate):
        return (samples, real_open), None
    return hold_out(samples, real_open, settings.validation_fraction, rng)


def start_ellipsoids(samples: Samples) -> Ellipsoids:
    """Initialise with centroids, mean radii and identity matrices: spheres."""
    centroids, radii, degenerate = class_spheres(samples)
    identity = torch.eye(samples.rows.shape[1], device=centroids.device, dtype=centroids.dtype)
    return Ellipsoids(centroids, radii, identity.repeat(samples.n_classes, 1, 1), degenerate)


class _BoundaryTrainer:
    """Training with Adam: each step takes a batch of known samples and as many negatives, for all matrices."""

    def __init__(
        self,
        ellipsoids: Ellipsoids,
        samples: Samples,
        real_open: Tensor,
        settings: BoundarySettings,
        rng: np.random.Generator,
    ) -> None:
        self.ellipsoids, self.settings, self.rng = ellipsoids, settings, rng
        self.beta = 0.0 if settings.negative_loss == "adb_gen" else settings.beta
        self.known, self.classes, self.real_open = samples.rows, samples.classes, real_open
        self.classes_cpu, self.weights_cpu = samples.classes.cpu().numpy(), samples.weights.cpu().numpy()
        # The mean weight is 1, so that the learning rate does not depend on the weights.
        self.weights = (samples.weights / samples.weights.mean()).to(samples.rows.dtype)
        self.gradient = torch.zeros_like(ellipsoids.components)
        ellipsoids.components.grad = self.gradient
        self.optimizer = torch.optim.Adam([ellipsoids.components], lr=settings.learning_rate, fused=True)

    def run(self, score: Callable[[], float] | None = None, keep_best: Callable[[], object] | None = None) -> History:
        """Train until the score, or without one the loss, stops improving."""
        return run_epochs(
            self._run_epoch,
            max_iter=self.settings.max_iter,
            n_iter_no_change=self.settings.n_iter_no_change,
            tol=self.settings.tol,
            score=score,
            keep_best=keep_best,
            label="ellipsoids",
            verbose=self.settings.verbose,
        )

    def _run_epoch(self) -> float:
        total = 0.0
        for rows in shuffled_batches(len(self.known), self.settings.batch_size, self.rng):
            total += self._step(rows)
        return total / len(self.known)

    def _step(self, rows: np.ndarray) -> float:
        """One optimiser step on a batch; returns the batch's summed loss (eq. 16)."""
        on_device = torch.from_numpy(rows).to(self.known.device)
        batch, classes, weights = self.known[on_device], self.classes[on_device], self.weights[on_device]
        if self.settings.negative_loss in ("adb", "clab"):
            loss = self._contract_by_known(batch, classes, weights, rows)
        else:
            negatives = draw_negatives(
                batch,
                self.classes_cpu[rows],
                self.real_open,
                len(rows),
                self.settings,
                self.rng,
                self.weights_cpu[rows],
            )
            loss = self._contract(negatives)
        loss = loss + self._expand(batch, classes, weights)
        self.gradient.div_(len(rows))
        # A degenerate class has no shape to learn: its matrix stays the identity.
        self.gradient[self.ellipsoids.degenerate] = 0
        self._restrict_gradient()
        self.optimizer.step()
        return float(loss)

    def _restrict_gradient(self) -> None:
        """Keep the gradient of what the shape trains; Adam then keeps the shape, since it acts on each entry alone."""
        if self.settings.shape == "full":
            return
        diagonal = self.gradient.diagonal(dim1=1, dim2=2)
        # One number times the identity: its derivative is the trace.
        kept = diagonal.clone() if self.settings.shape == "diagonal" else diagonal.sum(1, keepdim=True)
        self.gradient.zero_()
        diagonal.copy_(kept)

    def _contract_by_known(self, batch: Tensor, classes: Tensor, weights: Tensor, rows: np.ndarray) -> Tensor:
        """Loss of known samples in place of open ones (ADB, CLAB); writes its gradient."""
        self.gradient.zero_()
        loss = self._add_known(batch, classes, weights, inside_loss, inside_slope)
        if self.settings.negative_loss == "clab":
            others = draw_others(self.classes_cpu[rows], self.rng, self.weights_cpu[rows])
            if others is not None:
                negatives = batch[torch.from_numpy(others).to(batch.device)]
                loss = loss + self._add_known(negatives, classes, weights, other_class_loss, other_class_slope)
        return loss

    def _contract(self, negatives: Tensor) -> Tensor:
        """Contraction loss of every open sample for every class; writes its gradient.

        The matrices of all classes form one tall matrix, so that the forward pass and the gradient are one matrix
        product each. Since A (z − c) = A z − A c, no shifted copies of the samples are needed.
        """
        ellipsoids = self.ellipsoids
        n_classes, n_features = ellipsoids.centroids.shape
        if not len(negatives):
            self.gradient.zero_()
            return negatives.new_zeros(())
        stacked = ellipsoids.components.view(n_classes * n_features, n_features)
        shift = torch.bmm(ellipsoids.components, ellipsoids.centroids.unsqueeze(2)).squeeze(2)
        mapped = (negatives @ stacked.T).view(-1, n_classes, n_features).sub_(shift)
        norms = torch.linalg.vector_norm(mapped, dim=2).clamp_min_(SMALLEST_NORM)  # (n_negatives, n_classes)
        loss = contraction_loss(norms, ellipsoids.radii, self.beta).sum()
        slope = contraction_slope(norms, ellipsoids.radii, self.beta)
        weighted = mapped.mul_((slope / norms).unsqueeze(2))
        torch.mm(weighted.view(-1, n_classes * n_features).T, negatives, out=self.gradient.view_as(stacked))
        self.gradient.sub_(weighted.sum(0).unsqueeze(2) * ellipsoids.centroids.unsqueeze(1))
        return loss

    def _expand(self, batch: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
        """Weighted expansion loss of every known sample for its own class; adds its gradient."""
        return self._add_known(batch, classes, weights, expansion_loss, expansion_slope)

    def _add_known(
        self, batch: Tensor, classes: Tensor, weights: Tensor, loss: NormFunction, slope: NormFunction
    ) -> Tensor:
        """Weighted loss of every sample for the class given with it; adds its gradient.

        Samples are arranged class by class, padded to the most frequent class of the batch.
        """
        ellipsoids = self.ellipsoids
        order = torch.argsort(classes, stable=True)
        counts = torch.bincount(classes, minlength=len(ellipsoids.centroids))
        position = torch.arange(len(order), device=batch.device) - (counts.cumsum(0) - counts)[classes[order]]
        offsets = batch.new_zeros(len(counts), int(counts.max()), batch.shape[1])  # (n_classes, most, n_features)
        offsets[classes[order], position] = batch[order] - ellipsoids.centroids[classes[order]]
        padded_weights = batch.new_zeros(offsets.shape[:2])
        padded_weights[classes[order], position] = weights[order]
        mapped = torch.bmm(offsets, ellipsoids.components.transpose(1, 2))
        norms = torch.linalg.vector_norm(mapped, dim=2).clamp_min_(SMALLEST_NORM)  # padding has norm 0: inside
        radii = ellipsoids.radii.unsqueeze(1)
        weighted = mapped.mul_((padded_weights * slope(norms, radii) / norms).unsqueeze(2))
        self.gradient.baddbmm_(weighted.transpose(1, 2), offsets)
        return (padded_weights * loss(norms, radii)).sum()
