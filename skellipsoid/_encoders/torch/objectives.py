"""Losses of the training of features: supervised contrastive (eq. 2; Khosla et al. 2020), cross-entropy, their base."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._torch.devices import on_device
from ..._torch.distances import euclidean
from ..._torch.losses import supervised_contrastive_loss
from ..._torch.shards import ALONE, Shards
from .backbone import ACTIVATIONS
from .rows import Rows


class Stage(NamedTuple):
    """A part of an epoch with an optimiser of its own."""

    #: Parts of the loss of a batch (row numbers); the gradient of each is added before the next is computed.
    losses: Callable[[np.ndarray], Iterator[Tensor]]
    #: ``None`` is that of the settings.
    learning_rate: float | None = None
    #: Whether there is one step for all training texts instead of one for each batch.
    whole: bool = False


@dataclass(frozen=True)
class TrainingSettings:
    """Parameters of an encoder that is trained, by the same names."""

    normalize: bool
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_iter: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    cross_fit: bool
    verbose: int | bool
    #: Function after the linear layer, of ``ACTIVATIONS``.
    activation: ClassVar[str] = "identity"
    #: Longer gradients are shortened to this length.
    max_grad_norm: ClassVar[float | None] = None
    #: Whether the processes of a group share each batch; if not, each trains on all of it.
    shares_batches: ClassVar[bool] = False
    #: What is minimised.
    objective: "ClassVar[type[Objective]]"


@dataclass
class Learner:
    """The state of a training that an objective reads."""

    rows: Rows
    projection: nn.Linear
    codes: np.ndarray  # (n_texts,) class of each text
    n_classes: int
    training: np.ndarray  # numbers of the texts that are trained on
    settings: TrainingSettings
    rng: np.random.Generator
    shards: Shards = ALONE  # the part of each batch that this process embeds

    def __post_init__(self) -> None:
        self.device, self.width = self.projection.weight.device, self.projection.out_features
        self._classes = torch.from_numpy(self.codes).to(self.device)

    def classes_of(self, chosen: np.ndarray) -> Tensor:
        """Classes of texts, (n_rows,)."""
        return self._classes[on_device(chosen, self.device)]

    def dropped(self, chosen: np.ndarray, dropout: float = 0.0) -> Tensor:
        """Features of texts with dropout in the embedding model, and with probability ``dropout`` in the features."""
        return shown(self.projection(self.rows.dropped(chosen)), self.settings, dropout)

    def plain(self, chosen: np.ndarray) -> Tensor:
        """Features of texts, as ``transform`` returns them."""
        return shown(self.projection(self.rows.plain(chosen)), self.settings)

    def class_means(self) -> tuple[Tensor, Tensor]:
        """Give the means of the features of all training texts by class, and the number of texts of each."""
        features, classes = self.plain(self.training), self.classes_of(self.training)
        members = functional.one_hot(classes, self.n_classes)
        counts = members.sum(0)
        # A matrix product, because ``index_add_`` on a GPU adds in random order.
        return (members.T.to(features.dtype) @ features) / counts.unsqueeze(1).clamp_min(1), counts


class Objective:
    """What is minimised, by default in one stage of batches.

    Parameters
    ----------
    learner : Learner
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.settings: Any = learner.settings  # those of its own

    def parameters(self) -> list[nn.Parameter]:
        """Trained parameters that the features do not depend on."""
        return []

    def stages(self) -> list[Stage]:
        """Give the parts of an epoch."""
        return [Stage(self.losses)]

    def start_epoch(self) -> None:
        """Compute what holds for a whole epoch."""

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        """Parts of the loss of a batch."""
        raise NotImplementedError

    def logits(self, features: Tensor) -> Tensor | None:
        """Give the logits of features without dropout; ``None`` without a classifier."""
        return None


class SupConObjective(Objective):
    """The supervised contrastive loss of two dropout views of every text, or the cross-entropy of both."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        # The softmax loss needs class weights, which are discarded after training.
        self.class_weights = nn.Linear(learner.width, learner.n_classes).to(learner.device)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.class_weights.parameters()) if self.settings.loss == "softmax" else []

    def losses(self, batch: np.ndarray) -> Iterator[Tensor]:
        learner, shards = self.learner, self.learner.shards
        own, projection = shards.part(batch), learner.projection
        views = learner.rows.views(own) if len(own) else projection.weight.new_zeros(0, projection.weight.shape[1])
        features = shards.gathered(projection(views), batch, n_views=2)
        classes = learner.classes_of(shards.order(batch, n_views=2))
        if self.settings.loss == "softmax":
            yield functional.cross_entropy(self.class_weights(shown(features, self.settings)), classes)
        else:
            directions = functional.normalize(features, dim=1)
            yield supervised_contrastive_loss(directions, classes, self.settings.temperature)


def shown(features: Tensor, settings: TrainingSettings, dropout: float = 0.0) -> Tensor:
    """Features of an encoder from the output of its linear layer."""
    features = ACTIVATIONS[settings.activation]()(features)
    if dropout:
        features = functional.dropout(features, dropout)
    return functional.normalize(features, dim=1) if settings.normalize else features


def nearest_mean(learner: Learner, features: Tensor) -> Tensor:
    """Class of the nearest class mean of the training texts."""
    means, counts = learner.class_means()
    found = euclidean(features, means)
    # A fold may have no text of a class.
    return found.masked_fill(counts == 0, torch.inf).argmin(1)
