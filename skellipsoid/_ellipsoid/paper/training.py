"""The training of the paper's matrices: two losses (eq. 13 and 15) and Adam, on all classes in each step."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._held_out.table import HeldOutTable
from ..._samples.samples import Samples
from ..._torch.devices import on_device
from ..._torch.losses import contraction_loss, expansion_loss, inside_loss, other_class_loss
from ..._torch.threads import map_parts
from ..._torch.training_loop import History, run_epochs, shuffled_batches
from .pseudo_open import draw_negatives, draw_others
from .settings import TrainingSettings

#: Classes whose loss is computed together on a CPU. A step of 112 classes with 384 features takes 1.2 times as long
#: with all at once, and 1.4 times with one at a time.
CLASSES_AT_ONCE = 32
#: ``max_iter="auto"``: the epochs of the authors' code, or more if these make fewer steps than Banking77 with a quarter
#: of its classes.
N_EPOCHS, N_STEPS = 100, 1500
#: The patience is at least the number of steps in which an entry of a matrix, of the order of 1, can move this far.
LEAST_MOVE = 0.17


@dataclass
class Ellipsoids:
    """Learned boundaries { z : ‖A_k (z − c_k)‖ < Δ_k }, on the device of the fit, and the history of the training."""

    centroids: Tensor  # (n_classes, n_features)
    radii: Tensor  # (n_classes,)
    components: Tensor  # (n_classes, n_features, n_features)
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread
    trained: Tensor  # (n_trained,) numbers of the classes whose matrices are trained
    held_out: HeldOutTable | None = None
    history: History = field(default_factory=History)


class _Arrangement(NamedTuple):
    """Position of each sample in a table with a row for each class, padded to the most frequent class."""

    places: Tensor  # (2, n_samples): class and column
    n_classes: int
    n_columns: int

    @classmethod
    def of(cls, classes: np.ndarray, n_classes: int, device: torch.device) -> "_Arrangement":
        """Arrange samples by classes that are in host memory, so that the host does not wait for the device."""
        order = np.argsort(classes, kind="stable")
        counts = np.bincount(classes, minlength=n_classes)
        columns = np.empty_like(order)
        columns[order] = np.arange(len(order)) - (counts.cumsum() - counts)[classes[order]]
        return cls(on_device(np.stack([classes, columns]), device), n_classes, int(counts.max(initial=0)))

    def __call__(self, values: Tensor) -> Tensor:
        """Arrange values of all samples, (n_samples, …); the padding is zeros."""
        padded = values.new_zeros(self.n_classes, self.n_columns, *values.shape[1:])
        return padded.index_put_(tuple(self.places), values)


class _Batch(NamedTuple):
    """Samples of a step, arranged by class; the padding has weight 0."""

    weights: Tensor  # (n_trained, n_padded)
    deviations: Tensor  # (n_trained, n_padded, n_features): z − c_k of the samples of class k
    of_others: Tensor | None  # the same of a sample of another class for each
    negatives: Tensor  # (n_negatives, n_features)
    size: int  # number of samples, also those of classes that are not trained


class BoundaryTrainer:
    """Training with Adam: each step takes a batch of known samples and as many negatives, for all trained matrices.

    The losses are sums over the classes, so the matrices are trained in parts of a few classes. ``entries`` has the
    trained numbers of each part: the whole matrices, their diagonals, or one factor. They start at the identity, and
    each step writes them to ``ellipsoids.components``.
    """

    def __init__(
        self,
        ellipsoids: Ellipsoids,
        samples: Samples,
        real_open: Tensor,
        settings: TrainingSettings,
        rng: np.random.Generator,
    ) -> None:
        self.ellipsoids, self.settings, self.rng = ellipsoids, settings, rng
        self.beta = 0.0 if settings.negative_loss == "adb_gen" else settings.beta
        self.known, self.classes, self.real_open = samples.features, samples.classes, real_open
        self.classes_cpu, self.weights_cpu = samples.classes.cpu().numpy(), samples.weights.cpu().numpy()
        # The mean weight is 1, so that the learning rate does not depend on the weights.
        self.weights = (samples.weights / samples.weights.mean()).to(samples.features.dtype)
        self.trained, self.degenerate = ellipsoids.trained, torch.nonzero(ellipsoids.degenerate).flatten()
        self.centroids, self.radii = ellipsoids.centroids[self.trained], ellipsoids.radii[self.trained]
        #: Index of each class among the trained ones; −1 for the others.
        self.places = np.full(len(ellipsoids.degenerate), -1)
        self.places[self.trained.cpu().numpy()] = np.arange(len(self.trained))
        n_trained = max(1, len(self.trained))  # with none, one part that is empty
        n_at_once = CLASSES_AT_ONCE if self.known.device.type == "cpu" else n_trained
        self.parts = [slice(start, start + n_at_once) for start in range(0, n_trained, n_at_once)]
        self.entries = self._start_entries()
        self.optimizer = torch.optim.Adam(
            self.entries, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )

    def _start_entries(self) -> list[Tensor]:
        components = self.ellipsoids.components
        if len(self.trained) < len(components):
            components = components[self.trained]
        if self.settings.shape != "full":
            n_entries = 1 if self.settings.shape == "ball" else components.shape[1]
            components = components.diagonal(dim1=1, dim2=2)[:, :n_entries].clone()
        # Full matrices are the memory of ``ellipsoids.components``, if all classes are trained.
        return [components[part].detach().requires_grad_() for part in self.parts]

    def _matrices(self, entries: Tensor) -> Tensor:
        """Matrices of some classes as functions of their entries, (n_classes, n_features, n_features)."""
        if self.settings.shape == "full":
            return entries
        return torch.diag_embed(entries.expand(-1, self.known.shape[1]))

    def run(self, score: Callable[[], float] | None = None, keep_best: Callable[[], object] | None = None) -> History:
        """Train until the score, or without one the loss, has not improved for ``n_iter_no_change`` epochs."""
        if not len(self.trained):
            return History()
        steps, most = -(-len(self.known) // self.settings.batch_size), self.settings.max_iter
        # In this many epochs Adam moves an entry by a tenth; with fewer, possibly no sample crosses a boundary.
        least_wait = math.ceil(LEAST_MOVE / self.settings.learning_rate / steps)
        return run_epochs(
            self._run_epoch,
            max_iter=max(N_EPOCHS, -(-N_STEPS // steps)) if isinstance(most, str) else most,
            n_iter_no_change=max(self.settings.n_iter_no_change, least_wait),
            tol=0.0,
            score=score,
            keep_best=keep_best,
            label="ellipsoids",
            waits_while_flat=True,
            verbose=self.settings.verbose,
        )

    def _run_epoch(self) -> float:
        """Train on every sample once; returns the mean loss of the batches."""
        losses = [
            self.step(numbers) for numbers in shuffled_batches(len(self.known), self.settings.batch_size, self.rng)
        ]
        # Read at the end of the epoch: at each read the host waits for the device.
        return float(torch.stack(losses).cpu().numpy().mean(dtype=np.float64))

    def step(self, numbers: np.ndarray) -> Tensor:
        """One optimiser step on a batch, (n_batch,) positions of known samples; returns its loss (eq. 16), ()."""
        self.optimizer.zero_grad()
        batch = self.batch(numbers)

        def descend(number: int) -> Tensor:
            loss = self.loss(number, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.detach()

        n_elements = len(numbers) * self.ellipsoids.components.numel() / 100  # a product reuses what it reads
        losses = map_parts(descend, range(len(self.parts)), n_elements, self.known.device)
        self.optimizer.step()
        self._write()
        return torch.stack(losses).sum()

    def _write(self) -> None:
        """Write the matrices of the entries to the ellipsoids."""
        components = self.ellipsoids.components
        with torch.no_grad():
            for part, entries in zip(self.parts, self.entries, strict=True):
                if self.settings.shape != "full" or len(self.trained) < len(components):
                    components[self.trained[part]] = self._matrices(entries)
            # A degenerate class has no shape to learn: its matrix stays the identity.
            components[self.degenerate] = torch.eye(components.shape[1], device=components.device).to(components)

    def batch(self, numbers: np.ndarray) -> _Batch:
        device, labels, kind = self.known.device, self.classes_cpu[numbers], self.settings.negative_loss
        # Only samples of trained classes expand a matrix; all of them are mixed.
        own = self.places[labels] >= 0
        own_numbers = on_device(numbers[own], device)
        arranged = _Arrangement.of(self.places[labels[own]], len(self.trained), device)
        centroids = self.centroids[arranged.places[0]]
        negatives, others = self.known[:0], None
        if kind in ("contraction", "adb_gen"):
            batch = self.known[on_device(numbers, device)]
            negatives = draw_negatives(
                batch, labels, self.real_open, len(numbers), self.settings, self.rng, self.weights_cpu[numbers]
            )
        if kind == "clab":
            drawn = draw_others(labels, self.rng, self.weights_cpu[numbers])
            others = None if drawn is None else self.known[on_device(numbers[drawn[own]], device)]
        return _Batch(
            weights=arranged(self.weights[own_numbers]),
            deviations=arranged(self.known[own_numbers] - centroids),
            of_others=None if others is None else arranged(others - centroids),
            negatives=negatives,
            size=len(numbers),
        )

    def loss(self, number: int, batch: _Batch) -> Tensor:
        """Loss of the classes of one part; the sum over the parts is that of all trained classes (eq. 16).

        It is the mean expansion loss of the batch and the mean, over the negatives, of the contraction loss of all
        classes.
        """
        matrices, part = self._matrices(self.entries[number]), self.parts[number]
        kind, radii, weights = self.settings.negative_loss, self.radii[part].unsqueeze(1), batch.weights[part]
        deviations, n_own = [batch.deviations[part]], weights.shape[1]
        if batch.of_others is not None:
            deviations.append(batch.of_others[part])
        if len(batch.negatives):
            deviations.append(batch.negatives - self.centroids[part].unsqueeze(1))
        norms = MappedNorms.apply(matrices, torch.cat(deviations, 1))  # type: ignore[no-untyped-call]
        own, more = norms[:, :n_own], norms[:, n_own:]
        of_known = expansion_loss(own, radii)
        if kind == "adb":
            # As in the authors' code: the expansion loss of the sample's own class, times the number of classes.
            of_known = of_known + len(self.places) * inside_loss(own, radii)
        elif kind == "clab":
            of_known = of_known + inside_loss(own, radii)
            if batch.of_others is not None:
                of_known = of_known + other_class_loss(more, radii)
        loss = (weights * of_known).sum() / batch.size
        if len(batch.negatives):
            # The mean over the negatives of the sum over the classes.
            loss = loss + contraction_loss(more, radii, self.beta).sum() / len(batch.negatives)
        return loss


class MappedNorms(torch.autograd.Function):
    """Norms ‖A_k d‖ of deviations d of each class, with their gradient in A.

    The gradient of ‖A d‖ is A d dᵀ / ‖A d‖, one product for all deviations of a class. It is written out because
    autograd takes 1.3 to 1.5 times as long for a step.
    """

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, deviations: Tensor) -> Tensor:
        """Compute the norms, (n_classes, n_deviations).

        Parameters
        ----------
        ctx : object
        matrices : Tensor of shape (n_classes, n_features, n_features)
        deviations : Tensor of shape (n_classes, n_deviations, n_features)
        """
        mapped = torch.bmm(deviations, matrices.transpose(1, 2))
        norms: Tensor = torch.linalg.vector_norm(mapped, dim=2)
        ctx.save_for_backward(deviations, mapped, norms)
        return norms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Gradient with respect to the matrices; 0 at a norm of 0."""
        deviations, mapped, norms = ctx.saved_tensors
        scales = gradients[0] / norms.clamp_min(torch.finfo(norms.dtype).tiny)
        return torch.bmm((mapped * scales.unsqueeze(2)).transpose(1, 2), deviations), None
