"""Linear heads on fixed features: logits by softmax cross-entropy, or by one sigmoid for each class."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

from ..common.samples import Samples
from ..common.training import History, held_out_rows, run_epochs, shuffled_batches

#: Share of each class's rows that decides when training ends.
HELD_OUT = 0.2
#: Epochs without improvement that end the training, and what counts as improvement.
N_ITER_NO_CHANGE = 10
TOL = 1e-4
#: A class has at least this share at the start.
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True)
class HeadSettings:
    """How a head is trained."""

    loss: str  # "softmax" or "sigmoid"
    learning_rate: float
    batch_size: int
    max_iter: int


@dataclass
class Head:
    """Logits are rows @ weights.T + bias."""

    weights: Tensor  # (n_classes, n_features)
    bias: Tensor  # (n_classes,)
    history: History = field(default_factory=History)


def head_loss(logits: Tensor, classes: Tensor, loss: str) -> Tensor:
    """Loss of each row, (n_samples,): cross-entropy, or the sum over classes of the sigmoids' own."""
    if loss == "softmax":
        return cross_entropy(logits, classes, reduction="none")
    truth = one_hot(classes, logits.shape[1]).to(logits.dtype)
    return binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(1)


def head_slope(logits: Tensor, classes: Tensor, loss: str) -> Tensor:
    """Differentiate ``head_loss`` by the logits, (n_samples, n_classes)."""
    probabilities = torch.softmax(logits, 1) if loss == "softmax" else torch.sigmoid(logits)
    return probabilities - one_hot(classes, logits.shape[1]).to(logits.dtype)


def train_head(samples: Samples, settings: HeadSettings, seed: int) -> Head:
    """Train a head; the weights with the smallest loss of held-out rows are kept.

    Parameters
    ----------
    samples : Samples
        Features of about unit variance.
    settings : HeadSettings
    seed : int
        Determines the held-out rows and the batches.
    """
    rng = np.random.default_rng(seed)
    held = held_out_rows(samples.classes.cpu().numpy(), HELD_OUT, rng, samples.blocks)
    is_held = torch.from_numpy(held).to(samples.rows.device)
    trainer = _HeadTrainer(samples.where(~is_held), settings, rng)
    judged = samples.where(is_held)
    if not len(judged):
        return Head(trainer.weights, trainer.bias, trainer.run())
    best = Head(trainer.weights.clone(), trainer.bias.clone())

    def score() -> float:
        losses = head_loss(trainer.logits(judged.rows), judged.classes, settings.loss).double()
        return -float((losses * judged.weights).sum() / judged.weights.sum())

    def keep_best() -> None:
        best.weights.copy_(trainer.weights)
        best.bias.copy_(trainer.bias)

    best.history = trainer.run(score, keep_best)
    return best


class _HeadTrainer:
    """One epoch: batches of rows, one Adam step for each."""

    def __init__(self, samples: Samples, settings: HeadSettings, rng: np.random.Generator) -> None:
        self.samples, self.settings, self.rng = samples, settings, rng
        rows = samples.rows
        self.row_weights = (samples.weights / samples.weights.mean()).to(rows.dtype)
        self.weights = rows.new_zeros(samples.n_classes, rows.shape[1])
        shares = samples.weights.new_zeros(samples.n_classes).index_add_(0, samples.classes, samples.weights)
        shares = (shares / shares.sum()).clamp(SMALLEST_SHARE, 1 - SMALLEST_SHARE)
        self.bias = (shares.log() if settings.loss == "softmax" else shares.logit()).to(rows.dtype)
        self.optimizer = torch.optim.Adam([self.weights, self.bias], lr=settings.learning_rate, fused=True)

    def logits(self, rows: Tensor) -> Tensor:
        """Logits of rows, (n_samples, n_classes)."""
        return torch.addmm(self.bias, rows, self.weights.T)

    def run(self, score: Callable[[], float] | None = None, keep_best: Callable[[], object] | None = None) -> History:
        """Learn until the score, or without one the loss, does not improve."""
        return run_epochs(
            self._run_epoch,
            max_iter=self.settings.max_iter,
            n_iter_no_change=N_ITER_NO_CHANGE,
            tol=TOL,
            score=score,
            keep_best=keep_best,
            label="head",
        )

    def _run_epoch(self) -> float:
        total = 0.0
        for rows in shuffled_batches(len(self.samples), self.settings.batch_size, self.rng):
            total += self._step(torch.from_numpy(rows).to(self.weights.device))
        return total / len(self.samples)

    def _step(self, batch: Tensor) -> float:
        """One optimiser step; returns the batch's summed loss."""
        rows, classes, weights = self.samples.rows[batch], self.samples.classes[batch], self.row_weights[batch]
        logits = self.logits(rows)
        slope = head_slope(logits, classes, self.settings.loss) * (weights / len(batch)).unsqueeze(1)
        self.weights.grad = slope.T @ rows
        self.bias.grad = slope.sum(0)
        self.optimizer.step()
        return float((head_loss(logits, classes, self.settings.loss) * weights).sum())
