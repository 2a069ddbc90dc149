"""The paper's boundaries: one matrix per class, trained by autograd on two losses, all classes at once.

The procedure is that of the authors' published code: repository thuiar/TEXTOIR, folder
``open_intent_detection/methods/EliDecide``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..common.folds import validation_rows
from ..common.losses import contraction_loss, expansion_loss, inside_loss, other_class_loss
from ..common.samples import Samples
from ..common.shards import ALONE, Shards
from ..common.training import History, run_epochs, shuffled_batches
from .boundaries import Boundaries, Metric, Shapes
from .geometry import Factors, assigned_norms, class_spheres, nearest_centroid, nearest_other
from .held_out import BOUNDARY_TOLERANCE, KNOWN, OF_OTHER_CLASS, REAL, SYNTHETIC, HeldOut, best_scale, expected_f1
from .mixtures import n_synthetic
from .pseudo_open import draw_negatives, draw_others, synthetic_samples
from .settings import TrainingSettings

#: The released code answers open on the boundary itself, r = Δ. So radii are smaller by four units of single precision.
OPEN_ON_BOUNDARY = 1 - 2.0**-21

#: Known samples and real open samples.
Split = tuple[Samples, Tensor]


@dataclass
class Ellipsoids:
    """Learned boundaries { z : ‖A_k (z − c_k)‖ < Δ_k }, on the device of the fit, and the history of the training."""

    centroids: Tensor  # (n_classes, n_features)
    radii: Tensor  # (n_classes,)
    components: Tensor  # (n_classes, n_features, n_features)
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread
    trained: Tensor  # (n_trained,) numbers of the classes whose matrices are trained
    held_out: HeldOut | None = None
    history: History = field(default_factory=History)


class Fixed(NamedTuple):
    """Matrices of an earlier training that stay as they are."""

    classes: Tensor  # (n_fixed,) numbers of their classes
    components: Tensor  # (n_fixed, n_features, n_features)


def fit_paper(
    samples: Samples,
    real_open: Tensor,
    settings: TrainingSettings,
    seed: int,
    validation: Split,
    fixed: Fixed | None = None,
) -> Boundaries:
    """Train the matrices; parameters as of ``fit_closed_form``, and ``validation`` samples for the stop rule.

    The matrices of different classes do not act on each other in the losses. So those of some classes can be trained
    while all others are ``fixed``.
    """
    learned = train_ellipsoids(samples, real_open, settings, seed, validation, fixed)
    centroids = learned.centroids
    return Boundaries(
        origin=torch.zeros_like(centroids[0]),
        centroids=centroids,
        centres=centroids,
        shapes=Shapes(
            Metric.euclidean(centroids),
            centroids,
            Factors.from_components(learned.components),
            learned.radii * OPEN_ON_BOUNDARY,
        ),
        degenerate=learned.degenerate,
        held_out=learned.held_out,
        losses=learned.history.losses,
        scores=learned.history.scores,
    )


def train_ellipsoids(
    samples: Samples,
    real_open: Tensor,
    settings: TrainingSettings,
    seed: int,
    validation: Split,
    fixed: Fixed | None = None,
) -> Ellipsoids:
    """Compute centroids and radii, and train the matrices.

    The processes of a group divide the classes among them. After each epoch all of them get all matrices.
    """
    shards, ellipsoids = Shards.of_group(), start_ellipsoids(samples, fixed)
    ellipsoids.trained = ellipsoids.trained[shards.rank :: shards.n_processes]
    trainer = BoundaryTrainer(ellipsoids, samples, real_open, settings, np.random.default_rng(seed), shards)
    validator = PaperValidator(*validation, ellipsoids.centroids, ellipsoids.degenerate)
    if not validator:  # nothing was held out, or only samples of degenerate classes
        ellipsoids.history = trainer.run()
        return ellipsoids

    def validate(synthetic: Tensor | None = None) -> HeldOut:
        return validator.validate(Factors.from_components(ellipsoids.components), ellipsoids.radii, synthetic)

    best = ellipsoids.components.clone()
    ellipsoids.history = trainer.run(lambda: known_f1(validate()), lambda: best.copy_(ellipsoids.components))
    if settings.restore_best:
        ellipsoids.components = best
    if settings.recalibrate:
        synthetic = validation_open(validation[0], ellipsoids.centroids, ellipsoids.degenerate, settings, seed)
        scale, _ = best_scale(validate(synthetic))
        ellipsoids.radii = ellipsoids.radii * (scale * (1 + BOUNDARY_TOLERANCE))
    ellipsoids.held_out = validate().kept(OPEN_ON_BOUNDARY)
    return ellipsoids


def hold_out(samples: Samples, held: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Choose validation samples, (n_samples,) Boolean; groups stay together.

    Parameters
    ----------
    samples : Samples
        Known samples.
    held : ndarray of shape (n_samples,)
        1 for validation samples, 0 for training samples, −1 for undecided ones. An undecided sample goes where its
        block is, to the validation if the block has both.
    fraction : float
        Share of each class's undecided samples.
    seed : int
    """
    together = samples.blocks
    for decided in (1, 0):
        held = np.where((held < 0) & np.isin(together, together[held == decided]), decided, held)
    free = np.flatnonzero(held < 0)
    chosen = held == 1
    rng = np.random.default_rng([seed, 2])
    chosen[free] = validation_rows(samples.classes.cpu().numpy()[free], fraction, rng, together[free])
    return np.asarray(chosen)


def hold_out_open(held: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Choose really open samples for the validation, (n_open,) Boolean; ``held`` as of ``hold_out``."""
    drawn = np.random.default_rng([seed, 3]).random(len(held)) < fraction
    return np.asarray(np.where(held < 0, drawn, held == 1))


class PaperValidator:
    """Validation samples, known and really open, with everything that does not change while matrices are learned.

    Parameters
    ----------
    samples : Samples
        Known samples.
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    degenerate : Tensor of shape (n_classes,)
        Classes without spread, Boolean. Their samples are left out of the validation.
    """

    def __init__(self, samples: Samples, real_open: Tensor, centroids: Tensor, degenerate: Tensor) -> None:
        self.centroids, self.real_open = centroids, real_open
        self.known = samples.of_classes(~degenerate)
        rows, classes = self.known.rows, self.known.classes
        self.assigned, self.real_assigned = nearest_centroid(rows, centroids), nearest_centroid(real_open, centroids)
        self.others = nearest_other(rows, classes, centroids) if len(centroids) > 1 else None

    def __len__(self) -> int:
        """Return the number of known validation samples."""
        return len(self.known)

    def validate(self, shapes: Factors, radii: Tensor, synthetic: Tensor | None = None) -> HeldOut:
        """Give the relative distances of all samples, and of those of ``synthetic`` classes if there are any."""

        def scored(kind: int, rows: Tensor, assigned: Tensor, *columns: Any) -> HeldOut:
            norms = assigned_norms(rows, assigned, self.centroids, shapes)
            return HeldOut.of(len(self.centroids), kind, norms / radii[assigned], assigned, *columns)

        known, own = self.known.rows, (self.known.classes, self.known.weights, self.known.sets)
        parts = [scored(KNOWN, known, self.assigned, *own)]
        if self.others is not None:
            parts.append(scored(OF_OTHER_CLASS, known, self.others, *own))
        if synthetic is not None:
            parts.append(scored(SYNTHETIC, synthetic, nearest_centroid(synthetic, self.centroids)))
        return HeldOut.joined([*parts, scored(REAL, self.real_open, self.real_assigned)])


def known_f1(held_out: HeldOut) -> float:
    """Macro F1 over the known classes of known validation samples: the answer open, from r = Δ on, is an error."""
    below_1 = np.array([np.nextafter(1.0, 0.0)])
    return float(expected_f1(held_out.known, below_1)[0])


def validation_open(
    samples: Samples, centroids: Tensor, degenerate: Tensor, settings: TrainingSettings, seed: int
) -> Tensor:
    """Draw samples of synthetic classes for validation; their random numbers are independent of the training's."""
    shaped = samples.of_classes(~degenerate)
    return synthetic_samples(
        shaped, centroids, n_synthetic(len(shaped)), settings.alpha, np.random.default_rng([seed, 1])
    )


def start_ellipsoids(samples: Samples, fixed: Fixed | None = None) -> Ellipsoids:
    """Initialise with centroids, mean radii and identity matrices, which are spheres; some matrices are fixed."""
    centroids, radii, degenerate = class_spheres(samples)
    identity = torch.eye(samples.rows.shape[1], device=centroids.device, dtype=centroids.dtype)
    components = identity.repeat(samples.n_classes, 1, 1)
    is_trained = torch.ones_like(degenerate)
    if fixed is not None:
        components[fixed.classes] = fixed.components
        is_trained[fixed.classes] = False
    return Ellipsoids(centroids, radii, components, degenerate, torch.nonzero(is_trained).flatten())


class BoundaryTrainer:
    """Training with Adam: each step takes a batch of known samples and as many negatives, for all trained matrices.

    The entries that the shape trains are ``entries``: those of the whole matrix, its diagonal, or one factor. They
    start at the identity, and each step writes them to ``ellipsoids.components``.
    """

    def __init__(
        self,
        ellipsoids: Ellipsoids,
        samples: Samples,
        real_open: Tensor,
        settings: TrainingSettings,
        rng: np.random.Generator,
        shards: Shards = ALONE,
    ) -> None:
        self.ellipsoids, self.settings, self.rng, self.shards = ellipsoids, settings, rng, shards
        self.beta = 0.0 if settings.negative_loss == "adb_gen" else settings.beta
        self.known, self.classes, self.real_open = samples.rows, samples.classes, real_open
        self.classes_cpu, self.weights_cpu = samples.classes.cpu().numpy(), samples.weights.cpu().numpy()
        # The mean weight is 1, so that the learning rate does not depend on the weights.
        self.weights = (samples.weights / samples.weights.mean()).to(samples.rows.dtype)
        self.trained, self.radii = ellipsoids.trained, ellipsoids.radii
        #: Place of each class among those that are trained; −1 for the others.
        self.places = torch.full_like(ellipsoids.degenerate, -1, dtype=torch.int64)
        self.places[self.trained] = torch.arange(len(self.trained), device=self.places.device)
        self.entries = self._start_entries()
        self.optimizer = torch.optim.Adam(
            [self.entries], lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )

    def _start_entries(self) -> Tensor:
        components = self.ellipsoids.components
        if len(self.trained) < len(components):
            components = components[self.trained]
        if self.settings.shape == "full":
            return components.detach().requires_grad_()  # the same memory, if all classes are trained
        n_entries = 1 if self.settings.shape == "ball" else components.shape[1]
        return components.diagonal(dim1=1, dim2=2)[:, :n_entries].clone().requires_grad_()

    def _matrices(self) -> Tensor:
        """Matrices of all trained classes as functions of ``entries``, (n_trained, n_features, n_features)."""
        if self.settings.shape == "full":
            return self.entries
        return torch.diag_embed(self.entries.expand(-1, self.known.shape[1]))

    def run(self, score: Callable[[], float] | None = None, keep_best: Callable[[], object] | None = None) -> History:
        """Train until the score, or without one the loss, has not improved for ``n_iter_no_change`` epochs."""
        if not self.shards.total(len(self.trained), self.known.device):
            return History()
        return run_epochs(
            self._run_epoch,
            max_iter=self.settings.max_iter,
            n_iter_no_change=self.settings.n_iter_no_change,
            tol=0.0,
            score=score,
            loss_breaks_ties=False,
            keep_best=keep_best,
            label="ellipsoids",
            verbose=self.settings.verbose if self.shards.rank == 0 else 0,
        )

    def _run_epoch(self) -> float:
        """Train on every sample once; returns the mean loss of the batches, a sum over the classes of all processes."""
        losses = [self.step(rows) for rows in shuffled_batches(len(self.known), self.settings.batch_size, self.rng)]
        self.shards.exchange(self.ellipsoids.components, self.trained)
        return self.shards.total(float(np.mean(losses)), self.known.device)

    def step(self, rows: np.ndarray) -> float:
        """One optimiser step on a batch, (n_batch,) positions of known samples; returns its loss (eq. 16)."""
        self.optimizer.zero_grad()
        loss = self.loss(rows)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        with torch.no_grad():
            degenerate, components = self.ellipsoids.degenerate, self.ellipsoids.components
            if self.entries.data_ptr() != components.data_ptr():
                components[self.trained] = self._matrices()
            # A degenerate class has no shape to learn: its matrix stays the identity.
            identity = torch.eye(self.known.shape[1], device=degenerate.device, dtype=self.entries.dtype)
            components[degenerate] = identity
        return loss.item()

    def loss(self, rows: np.ndarray) -> Tensor:
        """Sum of the mean expansion loss of a batch and the mean loss of what contracts (eq. 16)."""
        on_device = torch.from_numpy(rows).to(self.known.device)
        batch, labels = self.known[on_device], self.classes_cpu[rows]
        # Only samples of trained classes expand a matrix; all of them are mixed.
        own = self.places[self.classes[on_device]] >= 0
        mine = on_device[own]
        classes, weights, radii = self.places[self.classes[mine]], self.weights[mine], self.radii[self.classes[mine]]
        matrices, kind, negatives = self._matrices(), self.settings.negative_loss, batch[:0]
        if kind in ("contraction", "adb_gen"):
            negatives = draw_negatives(
                batch, labels, self.real_open, len(rows), self.settings, self.rng, self.weights_cpu[rows]
            )
        norms, of_negatives = self._norms(matrices, batch[own], classes, negatives)
        loss = (weights * expansion_loss(norms, radii)).sum() / len(rows)
        if kind == "adb":
            # As in the released code: the inside loss of the sample's own class, times the number of classes.
            return loss + len(self.places) * (weights * inside_loss(norms, radii)).sum() / len(rows)
        if kind == "clab":
            loss = loss + (weights * inside_loss(norms, radii)).sum() / len(rows)
            others = draw_others(labels, self.rng, self.weights_cpu[rows])
            if others is not None:
                other = batch[torch.from_numpy(others).to(batch.device)][own]
                norms, _ = self._norms(matrices, other, classes, negatives)
                loss = loss + (weights * other_class_loss(norms, radii)).sum() / len(rows)
            return loss
        if not len(negatives):
            return loss
        # The mean over the negatives of the sum over the classes.
        contraction = contraction_loss(of_negatives, self.radii[self.trained].unsqueeze(1), self.beta)
        return loss + contraction.sum() / len(negatives)

    def _norms(self, matrices: Tensor, batch: Tensor, classes: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Give ‖A_k (z − c_k)‖ of samples of classes, (n_batch,), and of all negatives, (n_trained, n_negatives).

        Classes are numbered among those that are trained. Samples are arranged class by class, padded to the most
        frequent class of the batch; the centroids come last.
        """
        centroids = self.ellipsoids.centroids[self.trained]
        order = torch.argsort(classes, stable=True)
        counts = torch.bincount(classes, minlength=len(matrices))
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=batch.device) - (counts.cumsum(0) - counts)[classes[order]]
        offsets = batch.new_zeros(len(counts), int(counts.max() if len(counts) else 0) + 1, batch.shape[1])
        offsets[classes, places] = batch - centroids[classes]
        offsets[:, -1] = centroids
        norms, of_negatives = MappedNorms.apply(matrices, offsets, negatives)  # type: ignore[no-untyped-call]
        return norms[classes, places], of_negatives


class MappedNorms(torch.autograd.Function):
    """Norms ‖A_k d‖ of deviations d of each class, and ‖A_k (z − c_k)‖ of samples z, with their gradient in A.

    The gradient of ‖A d‖ is A d dᵀ / ‖A d‖. It is written out because autograd makes a gradient of all matrices for
    each term and adds them: a step of 19 to 112 classes with 384 features took 1.4 to 1.6 times as long. All matrices
    together are one tall matrix, and A (z − c) = A z − A c. So the samples z of all classes are one product, without
    shifted copies of z.
    """

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, offsets: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
        """Compute both norms, (n_classes, n_offsets) and (n_classes, n_samples).

        Parameters
        ----------
        ctx : object
        matrices : Tensor of shape (n_classes, n_features, n_features)
        offsets : Tensor of shape (n_classes, n_offsets, n_features)
            Deviations; the last ones are the c_k.
        samples : Tensor of shape (n_samples, n_features)
        """
        mapped = torch.bmm(matrices, offsets.transpose(1, 2))  # (n_classes, n_features, n_offsets)
        of_samples = (matrices.flatten(0, 1) @ samples.T).view(*matrices.shape[:2], len(samples))
        of_samples -= mapped[:, :, -1:]
        norms = torch.linalg.vector_norm(mapped, dim=1), torch.linalg.vector_norm(of_samples, dim=1)
        ctx.save_for_backward(offsets, samples, mapped, of_samples, *norms)
        return norms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Give the gradient in the matrices; at a norm of 0 it is 0."""
        offsets, samples, mapped, of_samples, *norms = ctx.saved_tensors
        weights, of_sample_weights = (
            (gradient / norm.clamp_min(torch.finfo(norm.dtype).tiny)).unsqueeze(1)
            for gradient, norm in zip(gradients, norms, strict=True)
        )
        mapped, of_samples = mapped * weights, of_samples * of_sample_weights
        mapped[:, :, -1] -= of_samples.sum(2)
        gradient = (of_samples.flatten(0, 1) @ samples).view(*of_samples.shape[:2], samples.shape[1])
        return gradient.baddbmm_(mapped, offsets), None, None
