"""Training of features: a linear layer on frozen embeddings, or the whole text model, with the same loop."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy.linalg import orthogonal_procrustes
from torch import Tensor, nn
from torch.nn import functional

from ..common.devices import seeded_torch
from ..common.folds import fold_numbers, validation_rows
from ..common.losses import supervised_contrastive_loss
from ..common.shards import Shards
from ..common.training import History, run_epochs, shuffled_batches
from .backbone import TextBackbone

#: Dropout of frozen embeddings for their two views (full fine-tuning uses the dropout of the text model). With 0.05,
#: 0.2 and 0.6, F1 is within 0.8 points (benchmarks/TRIED.md, *Before*).
HEAD_DROPOUT = 0.4
#: Share of warm-up steps, in which the learning rate rises: as in the authors' code.
WARMUP = 0.1
#: Number of folds; each fold's features come from a head that was trained without it. Chosen by hand: each costs a
#: training.
CROSS_FIT_FOLDS = 3
#: Weight of the identity in the Procrustes rotation, in units of the mean overlap of a direction; chosen by hand.
IDENTITY_WEIGHT = 0.1
#: Largest share of out-of-fold features: heads trained on fewer samples put new samples too far from their class. It
#: and the next are measured in benchmarks/cross_fit.py.
CROSS_FIT_MOST = 0.75
#: Samples per class at which that share is a half. With more samples the head overfits less, and the share falls.
CROSS_FIT_HALF = 150


@dataclass(frozen=True)
class ContrastiveSettings:
    """Parameters of ``SupConTextEncoder``, by the same names."""

    loss: str
    normalize: bool
    temperature: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_iter: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    verbose: int | bool


class Rows(Protocol):
    """Texts as inputs of the linear layer, with or without dropout."""

    def views(self, rows: np.ndarray) -> Tensor:
        """Give two dropout views of each text, one block after the other, (2 · n_rows, width)."""

    def plain(self, rows: np.ndarray) -> Tensor:
        """Give each text without dropout, (n_rows, width)."""

    def parameters(self) -> list[nn.Parameter]:
        """Give the trained parameters besides the linear layer."""

    def modules_to_keep(self) -> list[nn.Module]:
        """Give the modules that training changes."""


class FrozenRows:
    """Embeddings that are computed once; their views are made with dropout.

    Parameters
    ----------
    embeddings : Tensor of shape (n_texts, width)
    """

    def __init__(self, embeddings: Tensor) -> None:
        self.embeddings = embeddings

    def views(self, rows: np.ndarray) -> Tensor:
        chosen = self.plain(rows)
        return functional.dropout(torch.cat([chosen, chosen]), HEAD_DROPOUT)

    def plain(self, rows: np.ndarray) -> Tensor:
        return self.embeddings[torch.from_numpy(rows).to(self.embeddings.device)]

    def parameters(self) -> list[nn.Parameter]:
        return []

    def modules_to_keep(self) -> list[nn.Module]:
        return []


class TokenRows:
    """Tokenised texts, embedded at every step; their views are made with the dropout of the text model."""

    def __init__(self, backbone: TextBackbone, texts: Sequence[str], pooling: str) -> None:
        self.backbone, self.pooling = backbone, pooling
        self.tokens = backbone.tokenize(texts)
        backbone.transformer.requires_grad_(True)

    def views(self, rows: np.ndarray) -> Tensor:
        self.backbone.model.train()
        return self._pooled(np.concatenate([rows, rows]))

    def plain(self, rows: np.ndarray) -> Tensor:
        self.backbone.model.eval()
        return self._pooled(rows)

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in self.backbone.model.parameters() if p.requires_grad]

    def modules_to_keep(self) -> list[nn.Module]:
        return [self.backbone.transformer]

    def _pooled(self, rows: np.ndarray) -> Tensor:
        device = next(self.backbone.transformer.parameters()).device
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            pooled = self.backbone.pooled([self.tokens[i] for i in rows], self.pooling)
        return pooled.float()


def start_projection(width: int, n_components: int, seed: int) -> nn.Linear:
    """Initialise the linear layer W, b of eq. 1: the identity, or orthonormal directions if the widths differ."""
    # skip_init draws nothing from the caller's generator.
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, width, n_components)  # type: ignore[no-untyped-call]
    if n_components == width:
        start = np.eye(width)
    else:
        longer, shorter = max(width, n_components), min(width, n_components)
        start = np.linalg.qr(np.random.default_rng(seed).normal(size=(longer, shorter)))[0]
        start = start if n_components > width else start.T
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(start))
        layer.bias.zero_()
    return layer


def train_projection(
    rows: Rows,
    classes: np.ndarray,
    n_classes: int,
    projection: nn.Linear,
    settings: ContrastiveSettings,
    seed: int,
    blocks: np.ndarray | None = None,
    n_validation: int = 0,
) -> History:
    """Train the linear layer, and the parameters of ``rows``, in place.

    With early stopping the weights of the epoch with the best accuracy are kept: the share of validation texts whose
    nearest class mean is that of their own class. The means are those of the training texts, without dropout. Of epochs
    with the same accuracy the first is kept, as in the authors' code: later ones fit the training texts more closely,
    with no gain on the others.

    Parameters
    ----------
    rows : FrozenRows or TokenRows
    classes : ndarray of shape (n_texts,)
    n_classes : int
    projection : torch.nn.Linear
        On the device of the rows.
    settings : ContrastiveSettings
    seed : int
        The caller's random state is not touched.
    blocks : ndarray of shape (n_texts,), optional
        Texts with the same number are held out together.
    n_validation : int
        The last so many texts are validation texts, which are not trained on. 0: with early stopping, a share of each
        class's blocks.
    """
    device = projection.weight.device
    # A head is trained in seconds: each process of a group trains it alone.
    shards = Shards.of_group() if isinstance(rows, TokenRows) else Shards()
    with seeded_torch(seed, device), torch.enable_grad():
        trainer = _ContrastiveTrainer(
            rows, classes, n_classes, projection, settings, seed, blocks, n_validation, shards
        )
        if shards.rank:
            torch.manual_seed(seed + shards.rank)  # all begin with the same weights, but each has dropout of its own
        return trainer.run()


def cross_fit(
    embeddings: Tensor,
    classes: np.ndarray,
    n_classes: int,
    final: Tensor,
    settings: ContrastiveSettings,
    seed: int,
    trains: np.ndarray | None = None,
    blocks: np.ndarray | None = None,
    validation: tuple[Tensor, np.ndarray] | None = None,
) -> Tensor:
    """Features of training samples that are distributed as those of new samples, (n_texts, n_components).

    1. A head is trained without a third of each class's samples, and gives their out-of-fold features.
    2. Orthogonal Procrustes rotates these features onto those of the final head.
    3. They are averaged with the final head's features. The more samples a class has, the smaller is their weight.

    A sample without another block in its class keeps the final head's features, and so does a fold that has every
    sample that trains.

    Parameters
    ----------
    embeddings : Tensor of shape (n_texts, width)
    classes : ndarray of shape (n_texts,)
    n_classes : int
    final : Tensor of shape (n_texts, n_components)
        The final head's features, on the device of ``embeddings``.
    settings : ContrastiveSettings
    seed : int
    trains : ndarray of shape (n_texts,), optional
        Boolean: samples that heads are trained on; all without it.
    blocks : ndarray of shape (n_texts,), optional
        Samples with the same number are in the same fold.
    validation : tuple of (Tensor, ndarray), optional
        Embeddings and classes of the validation samples of every head, with early stopping.
    """
    trains = np.ones(len(classes), dtype=bool) if trains is None else trains
    blocks = np.arange(len(classes)) if blocks is None else blocks
    folds = fold_numbers(classes, blocks, CROSS_FIT_FOLDS, np.random.default_rng(seed))
    features = final.clone()
    width, n_components = embeddings.shape[1], final.shape[1]
    watched, watched_classes = (embeddings[:0], classes[:0]) if validation is None else validation
    share = min(CROSS_FIT_MOST, CROSS_FIT_HALF / (CROSS_FIT_HALF + trains.sum() / n_classes))
    for fold in range(CROSS_FIT_FOLDS):
        learns = trains & (folds != fold)
        out, rest = (torch.from_numpy(np.flatnonzero(rows)).to(embeddings.device) for rows in (folds == fold, learns))
        if not (len(out) and len(rest)):
            continue
        head = start_projection(width, n_components, seed).to(embeddings.device)
        train_projection(
            FrozenRows(torch.cat([embeddings[rest], watched])),
            np.concatenate([classes[learns], watched_classes]),
            n_classes,
            head,
            replace(settings, verbose=0),
            seed,
            blocks[learns],
            len(watched),
        )
        with torch.no_grad():
            unseen = _shown(head(embeddings), settings)
            # All heads have the same initialisation: directions without a trained difference should not be rotated.
            overlap = unseen[rest].T @ final[rest]
            overlap.diagonal().add_(IDENTITY_WEIGHT * len(rest) / n_components)
            # The rotation nearest to the overlap of two feature matrices rotates one onto the other.
            turn = orthogonal_procrustes(np.eye(n_components, dtype=np.float32), overlap.cpu().numpy())[0]
            features[out] += share * (unseen[out] @ torch.from_numpy(turn).to(unseen.device) - final[out])
    return _shown(features, settings)


def _shown(features: Tensor, settings: ContrastiveSettings) -> Tensor:
    return functional.normalize(features, dim=1) if settings.normalize else features


class _ContrastiveTrainer:
    def __init__(
        self,
        rows: Rows,
        classes: np.ndarray,
        n_classes: int,
        projection: nn.Linear,
        settings: ContrastiveSettings,
        seed: int,
        blocks: np.ndarray | None,
        n_validation: int,
        shards: Shards,
    ) -> None:
        self.rows, self.projection, self.settings, self.shards = rows, projection, settings, shards
        self.rng = np.random.default_rng(seed)
        self.n_classes, self.device = n_classes, projection.weight.device
        held = np.arange(len(classes)) >= len(classes) - n_validation
        if settings.early_stopping and not n_validation:
            held = validation_rows(classes, settings.validation_fraction, self.rng, blocks)
        self.training, self.held_out = np.flatnonzero(~held), np.flatnonzero(held)
        self.classes = torch.from_numpy(classes).to(self.device)
        self.modules: list[nn.Module] = [projection, *rows.modules_to_keep()]
        # The softmax loss needs class weights, which are dropped after training.
        self.class_weights = nn.Linear(projection.out_features, n_classes).to(self.device)
        parameters = [*projection.parameters(), *rows.parameters()]
        if settings.loss == "softmax":
            parameters += list(self.class_weights.parameters())
        rate = settings.learning_rate
        self.optimizer = torch.optim.AdamW(
            [{"params": parameters, "initial_lr": rate}], lr=rate, weight_decay=settings.weight_decay, fused=True
        )
        self.schedule = _warmup_then_cosine(
            self.optimizer, settings.max_iter * -(-len(self.training) // settings.batch_size)
        )

    def run(self) -> History:
        best: list[dict[str, Any]] = []

        def keep_best() -> None:
            best[:] = [copy.deepcopy(module.state_dict()) for module in self.modules]

        with_score = len(self.held_out) > 0
        history = run_epochs(
            self._run_epoch,
            max_iter=self.settings.max_iter,
            # The schedule reduces the rate to 0 at the end: only the validation score may stop it before.
            n_iter_no_change=self.settings.n_iter_no_change if with_score else self.settings.max_iter,
            tol=self.settings.tol,
            score=self._score if with_score else None,
            loss_breaks_ties=False,
            keep_best=keep_best if with_score else None,
            label="encoder",
            verbose=self.settings.verbose if self.shards.rank == 0 else 0,
        )
        for module, state in zip(self.modules, best, strict=False):
            module.load_state_dict(state)
        return history

    def _run_epoch(self) -> float:
        total = 0.0
        for batch in shuffled_batches(len(self.training), self.settings.batch_size, self.rng):
            total += self._step(self.training[batch]) * len(batch)
        return total / len(self.training)

    def _step(self, batch: np.ndarray) -> float:
        own = self.shards.part(batch)
        views = self.rows.views(own) if len(own) else self.projection.weight.new_zeros(0, self.projection.in_features)
        features = self.shards.gathered(self.projection(views), batch, n_views=2)
        classes = self.classes[torch.from_numpy(self.shards.order(batch, n_views=2)).to(self.device)]
        directions = functional.normalize(features, dim=1)
        if self.settings.loss == "softmax":
            features = directions if self.settings.normalize else features
            loss = functional.cross_entropy(self.class_weights(features), classes)
        else:
            loss = supervised_contrastive_loss(directions, classes, self.settings.temperature)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.shards.sum_gradients([*self.projection.parameters(), *self.rows.parameters()])
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def _score(self) -> float:
        """Give the accuracy of the nearest class mean on the validation texts."""
        with torch.no_grad():
            features, classes = self._without_dropout(self.training)
            sums = features.new_zeros(self.n_classes, features.shape[1]).index_add_(0, classes, features)
            counts = torch.bincount(classes, minlength=self.n_classes)
            new, truth = self._without_dropout(self.held_out)
            distances = torch.cdist(new, sums / counts.unsqueeze(1).clamp_min(1))
            # A fold may have no text of a class.
            distances[:, counts == 0] = torch.inf
            return (distances.argmin(1) == truth).double().mean().item()

    def _without_dropout(self, chosen: np.ndarray) -> tuple[Tensor, Tensor]:
        """Features of texts, as ``transform`` gives them, and their classes."""
        features = _shown(self.projection(self.rows.plain(chosen)), self.settings)
        return features, self.classes[torch.from_numpy(chosen).to(self.device)]


def _warmup_then_cosine(optimizer: torch.optim.Optimizer, n_steps: int) -> torch.optim.lr_scheduler.LambdaLR:
    # Loaded with the text model; the package is imported without it.
    from transformers import get_cosine_schedule_with_warmup

    # Its first step has a rate of 0 and is skipped. The warm-up may end between two steps.
    warmup: Any = WARMUP * n_steps + 1
    schedule: torch.optim.lr_scheduler.LambdaLR = get_cosine_schedule_with_warmup(
        optimizer, warmup, n_steps + 1, last_epoch=0
    )
    return schedule
