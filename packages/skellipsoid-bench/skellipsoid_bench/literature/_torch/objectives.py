"""Objectives of text encoders of the literature: cross-entropy, CLAB, KNNCL, DA-ADB, MOGB."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skellipsoid._base import Learner, Objective, Stage, TrainingSettings

from .granular_balls import granular_balls
from .losses import (
    distance_aware_logits,
    granular_ball_loss,
    k_center_contrastive_loss,
    knn_contrastive_loss,
)

#: Dropout of the features in training: the rate of the platform TEXTOIR.
FEATURE_DROPOUT = 0.1
#: Share of KNNCL's momentum encoder that a step keeps: as in the authors' code.
MOMENTUM = 0.999


class CrossEntropyObjective(Objective):
    """Cross-entropy of a linear classifier, which is dropped after training."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.classifier = nn.Linear(learner.width, learner.n_classes).to(learner.device)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.classifier.parameters())

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        logits = self.logits(self.learner.dropped(batch, FEATURE_DROPOUT))
        yield functional.cross_entropy(logits, self.learner.classes_of(batch))

    def logits(self, features: Tensor) -> Tensor:
        return functional.linear(features, self.classifier.weight, self.classifier.bias)


class DistanceAwareObjective(CrossEntropyObjective):
    """Cross-entropy of DA-ADB's distance-aware logits; the class means are those at the start of the epoch."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.classifier = nn.Linear(learner.width, learner.n_classes, bias=False).to(learner.device)
        self.present = torch.from_numpy(np.unique(learner.codes[learner.training])).to(learner.device)
        self.start_epoch()

    def start_epoch(self) -> None:
        with torch.no_grad():
            means, _ = self.learner.class_means()
        self.means = means[self.present]

    def logits(self, features: Tensor) -> Tensor:
        return distance_aware_logits(features, self.means, self.classifier.weight, self.settings.scale)


class KCenterObjective(CrossEntropyObjective):
    """CLAB: K-centre contrastive loss of groups, and cross-entropy of the cosines with class weights."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.classifier = nn.Linear(learner.width, learner.n_classes, bias=False).to(learner.device)
        self.sampler = ClassSampler(learner)

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        chosen, n_members = self.settings, self.settings.n_positives + 1
        groups = np.concatenate(
            [
                batch[:, np.newaxis],
                self.sampler.positives(batch, chosen.n_positives),
                self.sampler.negatives(batch, chosen.n_negatives),
            ],
            axis=1,
        )
        features = self.learner.dropped(groups.ravel(), FEATURE_DROPOUT)
        cross_entropy = functional.cross_entropy(self.logits(features), self.learner.classes_of(groups.ravel()))
        texts = features.view(*groups.shape, -1)
        contrastive = k_center_contrastive_loss(texts[:, :n_members], texts[:, n_members:])
        yield chosen.contrastive_weight * contrastive + (1 - chosen.contrastive_weight) * cross_entropy

    def logits(self, features: Tensor) -> Tensor:
        return functional.linear(features, functional.normalize(self.classifier.weight, dim=1))


class KNNContrastiveObjective(Objective):
    """KNNCL: a momentum encoder fills a queue of keys; contrastive loss and cross-entropy each have a head."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.sampler = ClassSampler(learner)
        self.classifier = _head(learner.width, learner.n_classes).to(learner.device)
        self.contrast = _head(learner.width, learner.width).to(learner.device)
        self.rows = learner.rows.copy()
        self.modules = [*learner.rows.modules_to_keep(), learner.projection, self.contrast]
        self.projection, self.key_contrast = copy.deepcopy(learner.projection), copy.deepcopy(self.contrast)
        self.key_modules = [*self.rows.modules_to_keep(), self.projection, self.key_contrast]
        self.keys = torch.empty(0, learner.width, device=learner.device)
        self.key_classes = torch.empty(0, dtype=torch.long, device=learner.device)

    def parameters(self) -> list[nn.Parameter]:
        return [*self.classifier.parameters(), *self.contrast.parameters()]

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        learner, chosen = self.learner, self.settings
        self.classifier.train()
        with torch.no_grad():
            self._follow()
            self._enqueue(self.sampler.positives(batch, chosen.n_positives).ravel())
        features, classes = learner.dropped(batch), learner.classes_of(batch)
        cross_entropy = functional.cross_entropy(self.classifier(features), classes)
        queries = functional.normalize(self.contrast(features), dim=1)
        contrastive = knn_contrastive_loss(
            queries, classes, self.keys, self.key_classes, chosen.n_neighbors, chosen.temperature
        )
        yield chosen.contrastive_weight * contrastive + (1 - chosen.contrastive_weight) * cross_entropy

    def logits(self, features: Tensor) -> Tensor:
        logits: Tensor = self.classifier.eval()(features)
        return logits

    def _follow(self) -> None:
        """Move the momentum encoder a small step towards the trained one."""
        for module, key_module in zip(self.modules, self.key_modules, strict=True):
            for trained, key in zip(module.parameters(), key_module.parameters(), strict=True):
                key.lerp_(trained, 1 - MOMENTUM)

    def _enqueue(self, chosen: np.ndarray) -> None:
        """Add the keys of texts to the queue, which drops its oldest."""
        features = torch.tanh(self.projection(self.rows.dropped(chosen)))
        keys = functional.normalize(self.key_contrast(features), dim=1)
        size = self.settings.queue_size
        self.keys = torch.cat([self.keys, keys])[-size:]
        self.key_classes = torch.cat([self.key_classes, self.learner.classes_of(chosen)])[-size:]


class GranularBallObjective(CrossEntropyObjective):
    """MOGB: an epoch of cross-entropy, then one step on the granular-ball loss of all training texts."""

    def stages(self) -> list[Stage]:
        return [Stage(self.losses), Stage(self.ball_losses, self.settings.ball_learning_rate, whole=True)]

    def ball_losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        """Parts of the mean granular-ball loss; the balls are those of the features at its start."""
        centers, center_classes = self._balls()
        if not len(centers):
            return
        for part in np.array_split(batch, -(-len(batch) // self.settings.batch_size)):
            features, classes = self.learner.dropped(part, FEATURE_DROPOUT), self.learner.classes_of(part)
            loss = granular_ball_loss(features, classes, centers, center_classes, self.learner.n_classes)
            yield loss / len(batch)

    def _balls(self) -> tuple[Tensor, Tensor]:
        """Centres of the balls that are pure enough, and their classes."""
        learner, chosen = self.learner, self.settings
        with torch.no_grad():
            features = learner.plain(learner.training)
        rows, classes = features.double().cpu().numpy(), learner.codes[learner.training]
        weights = np.ones(len(rows))
        balls = granular_balls(rows, classes, weights, chosen.split_purity, chosen.split_size, learner.rng)
        kept = [ball for ball in balls if ball.is_pure(chosen.min_purity)]
        centers = [features[torch.from_numpy(ball.rows).to(features.device)].mean(0) for ball in kept]
        labels = torch.tensor([ball.label for ball in kept], dtype=torch.long, device=learner.device)
        return torch.stack(centers) if kept else features[:0], labels


@dataclass(frozen=True)
class CrossEntropySettings(TrainingSettings):
    """Parameters of ``CrossEntropyTextEncoder``, by the same names."""

    activation: ClassVar[str] = "relu"
    objective: ClassVar[type[Objective]] = CrossEntropyObjective


@dataclass(frozen=True)
class DistanceAwareSettings(TrainingSettings):
    """Parameters of ``DAADBTextEncoder``, by the same names."""

    scale: float
    activation: ClassVar[str] = "relu"
    objective: ClassVar[type[Objective]] = DistanceAwareObjective


@dataclass(frozen=True)
class KNNContrastiveSettings(TrainingSettings):
    """Parameters of ``KNNCLTextEncoder``, by the same names."""

    contrastive_weight: float
    temperature: float
    n_neighbors: int
    n_positives: int
    queue_size: int
    activation: ClassVar[str] = "tanh"
    max_grad_norm: ClassVar[float | None] = 0.25
    objective: ClassVar[type[Objective]] = KNNContrastiveObjective


@dataclass(frozen=True)
class KCenterSettings(TrainingSettings):
    """Parameters of ``CLABTextEncoder``, by the same names."""

    contrastive_weight: float
    n_positives: int
    n_negatives: int
    activation: ClassVar[str] = "relu"
    objective: ClassVar[type[Objective]] = KCenterObjective


@dataclass(frozen=True)
class GranularBallSettings(TrainingSettings):
    """Parameters of ``MOGBTextEncoder``, by the same names."""

    ball_learning_rate: float
    split_purity: float
    split_size: int
    min_purity: float
    activation: ClassVar[str] = "relu"
    objective: ClassVar[type[Objective]] = GranularBallObjective


class ClassSampler:
    """Draws training texts of the same class as others, or of other classes.

    Parameters
    ----------
    learner : Learner
    """

    def __init__(self, learner: Learner) -> None:
        self.rng, self.codes = learner.rng, learner.codes
        training = learner.training
        self.members = [training[learner.codes[training] == k] for k in range(learner.n_classes)]
        self.present = np.flatnonzero([len(rows) for rows in self.members])

    def positives(self, batch: np.ndarray, size: int) -> np.ndarray:
        """Draw other texts of the class of each text, (n_rows, size).

        None is drawn twice where the class has enough. A text that is alone in its class is its own.
        """
        found = np.empty((len(batch), size), dtype=np.int64)
        for i, row in enumerate(batch):
            own = self.members[self.codes[row]]
            others = own[own != row] if len(own) > 1 else own
            found[i] = self.rng.choice(others, size, replace=len(others) < size)
        return found

    def negatives(self, batch: np.ndarray, size: int) -> np.ndarray:
        """Draw texts of another class for each text: first the class, then the text, (n_rows, size).

        With a single class there are none, (n_rows, 0).
        """
        if len(self.present) < 2:
            return np.empty((len(batch), 0), dtype=np.int64)
        found = np.empty((len(batch), size), dtype=np.int64)
        for i, row in enumerate(batch):
            others = self.present[self.present != self.codes[row]]
            found[i] = [self.rng.choice(self.members[k]) for k in self.rng.choice(others, size)]
        return found


def _head(width: int, n_outputs: int) -> nn.Sequential:
    """Make a head of two layers with dropout before each: as in KNNCL's code."""
    return nn.Sequential(
        nn.Dropout(FEATURE_DROPOUT),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Dropout(FEATURE_DROPOUT),
        nn.Linear(width, n_outputs),
    )
