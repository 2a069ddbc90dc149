"""DE: classifiers behind all layers, trained on adversarial embeddings, and their vote."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from skellipsoid._base import Learner, Objective, TrainingSettings

from .losses import layer_losses
from .objectives import FEATURE_DROPOUT


class EnsembleObjective(Objective):
    """The losses of all layers, on the texts and on word embeddings that are changed against them."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        # They have layers.
        self.rows: Any = learner.rows
        self.heads: Any = learner.projection

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        chosen, classes = self.settings, self.learner.classes_of(batch)
        share = 1 / (1 + chosen.adversarial_steps)
        seed = int(torch.randint(2**31 - 1, ()).item())
        generator = torch.Generator(self.learner.device).manual_seed(seed)
        perturbations = Perturbations(chosen.adversarial_norm, chosen.adversarial_rate, generator)
        torch.manual_seed(seed)
        yield share * self._loss(self.rows.dropped(batch), classes)
        for _ in range(chosen.adversarial_steps):
            torch.manual_seed(seed)  # the same dropout in each pass
            yield share * self._loss(self.rows.perturbed(batch, perturbations.next_pass()), classes)
            perturbations.ascend()

    def logits(self, features: Tensor) -> Tensor:
        """Mean log-probability of all layers."""
        logits: Tensor = self.heads.logits(features).log_softmax(2).mean(0)
        return logits

    def _loss(self, means: Tensor, classes: Tensor) -> Tensor:
        features = nn.functional.dropout(torch.tanh(self.heads(means)), FEATURE_DROPOUT)
        return layer_losses(self.heads.logits(features), classes, self.settings.redundancy)


@dataclass(frozen=True)
class EnsembleSettings(TrainingSettings):
    """Parameters of ``DEClassifier``, by the same names."""

    redundancy: float
    adversarial_steps: int
    adversarial_norm: float
    adversarial_rate: float
    activation: ClassVar[str] = "tanh"
    max_grad_norm: ClassVar[float | None] = 0.25
    objective: ClassVar[type[Objective]] = EnsembleObjective


class Perturbations:
    """Changes of the word embeddings of a batch; the texts come a few at a time, the same ones in each pass.

    Parameters
    ----------
    norm : float
        ε, the largest length of the change of a text.
    rate : float
        Length of a step.
    generator : torch.Generator
        Of the first changes: one of their own, so that drawing them leaves the dropout as it is.
    """

    def __init__(self, norm: float, rate: float, generator: torch.Generator) -> None:
        self.norm, self.rate, self.generator = norm, rate, generator
        self._changes: list[Tensor] = []

    def next_pass(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Give what changes the embeddings of one pass, text by text in the same order."""
        numbers = count()

        def changed(embeddings: Tensor, mask: Tensor) -> Tensor:
            number = next(numbers)
            if number == len(self._changes):
                self._changes.append(start_perturbation(embeddings, mask, self.norm, self.generator))
            self._changes[number] = self._changes[number].detach().requires_grad_()
            return embeddings + self._changes[number]

        return changed

    def ascend(self) -> None:
        """Move the changes against the model, along the gradients of the last pass."""
        self._changes = [ascend(change, self.rate, self.norm) for change in self._changes]


def start_perturbation(embeddings: Tensor, mask: Tensor, norm: float, generator: torch.Generator) -> Tensor:
    """Draw a perturbation: uniform in ±ε / √(number of its entries) at each token, 0 at padding."""
    sizes = (mask.sum(1) * embeddings.shape[2]).view(-1, 1, 1)
    drawn = torch.empty_like(embeddings).uniform_(-1, 1, generator=generator) * mask.unsqueeze(2)
    return (norm / sizes.sqrt() * drawn).detach()


def ascend(perturbation: Tensor, rate: float, norm: float) -> Tensor:
    """Move each text's perturbation along its gradient, by a step of the length ``rate``, and to at most ``norm``."""
    gradient: Any = perturbation.grad
    lengths = gradient.flatten(1).norm(dim=1).clamp_min(1e-8).view(-1, 1, 1)
    moved = perturbation.detach() + rate * gradient / lengths
    shrink = (norm / moved.flatten(1).norm(dim=1).clamp_min(1e-8)).clamp_max(1)
    kept: Tensor = moved * shrink.view(-1, 1, 1)
    return kept


class Vote:
    """Votes of the layers on texts: known classes, and *open* as the last.

    Parameters
    ----------
    n_texts : int
    n_layers : int
    thresholds : ndarray of shape (n_answers,)
        t of each prediction.
    exponent : float
        γ.
    """

    def __init__(self, n_texts: int, n_layers: int, thresholds: np.ndarray, exponent: float) -> None:
        self.votes = np.zeros((n_texts, len(thresholds)), dtype=np.int64)
        self.n_layers, self.thresholds, self.exponent = n_layers, thresholds, exponent
        self.answers = np.full(n_texts, -1, dtype=np.int64)
        self.exit_layers = np.zeros(n_texts, dtype=np.int64)

    def add(self, layer: int, running: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """Count the predictions of a layer (from 0 on); gives which texts are decided.

        A text is decided if the prediction has at least t · l^γ votes at the l-th layer, or else by the last layer.
        """
        self.votes[running, answers] += 1
        needed = self.thresholds[answers] * (layer + 1) ** self.exponent
        decided = (self.votes[running, answers] >= needed) | (layer == self.n_layers - 1)
        self.answers[running[decided]] = answers[decided]
        self.exit_layers[running[decided]] = layer + 1
        return np.asarray(decided)
