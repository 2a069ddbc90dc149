"""Trains W and b of z = (W x + b) / ‖W x + b‖₂, or the whole embedding model; features of training texts by K folds."""

import copy
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..._samples.folds import fold_numbers, validation_rows
from ..._samples.samples import fresh_weight
from ..._torch.devices import seeded_torch
from ..._torch.shards import Shards
from ..._torch.threads import one_thread_each
from ..._torch.training_loop import History, run_epochs, shuffled_batches
from .objectives import Learner, Objective, Stage, SupConObjective, TrainingSettings, nearest_mean, shown
from .rows import FrozenRows, Rows, TokenRows

#: Fraction of warm-up steps, in which the learning rate rises: as in the authors' code.
WARMUP = 0.1
#: Number of folds; each fold's features come from a head that was trained without it. Each costs a training.
CROSS_FIT_FOLDS = 3
#: Weight of the identity in the Procrustes rotation, in units of the mean overlap of a direction (not tuned).
IDENTITY_WEIGHT = 0.1
#: Largest weight of out-of-fold features: heads trained on fewer samples put new samples too far from their class. Both
#: weights are measured in skellipsoid-bench/studies/cross_fit.py.
CROSS_FIT_MOST = 0.75
#: Samples per class at which the weight is half of that. With more samples the head overfits less.
CROSS_FIT_HALF = 150
#: If the squared distances of trained texts, relative to held-out ones, are below this, they are equal up to rounding.
LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class ContrastiveSettings(TrainingSettings):
    """Parameters of ``SupConTextEncoder``, by the same names."""

    loss: str
    temperature: float
    shares_batches: ClassVar[bool] = True
    objective: ClassVar[type[Objective]] = SupConObjective


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
    settings: TrainingSettings,
    seed: int,
    blocks: np.ndarray | None = None,
    n_validation: int = 0,
) -> History:
    """Train the linear layer, and the parameters of ``rows``, in place.

    A fraction of each class's blocks is held out for early stopping, or to stretch the features of a fine-tuned model
    (``cross_fit``). With early stopping the weights of the epoch with the best accuracy on these validation texts are
    kept. Predictions are those of the objective's classifier, or without one of the nearest class mean of the training
    texts, without dropout. Of epochs with the same accuracy the first is kept, as in the authors' code: later ones fit
    the training texts more closely, with no gain on the others.

    Parameters
    ----------
    rows : FrozenRows or TokenRows
    classes : ndarray of shape (n_texts,)
    n_classes : int
    projection : torch.nn.Linear
        On the device of the rows.
    settings : TrainingSettings
        They make the objective: what is minimised.
    seed : int
        The caller's random state is not touched.
    blocks : ndarray of shape (n_texts,), optional
        Texts with the same number are held out together.
    n_validation : int
        If positive, this number of texts, the last ones, is the validation set, in place of held-out blocks.
    """
    device = projection.weight.device
    # A head is trained in seconds: each process of a group trains it alone.
    shares = settings.shares_batches and isinstance(rows, TokenRows)
    shards = Shards.of_group() if shares else Shards()
    rng, held = np.random.default_rng(seed), np.arange(len(classes)) >= len(classes) - n_validation
    holds_out = settings.early_stopping or (settings.cross_fit and isinstance(rows, TokenRows))
    if holds_out and not n_validation:
        held = validation_rows(classes, settings.validation_fraction, rng, blocks)
    learner = Learner(rows, projection, classes, n_classes, np.flatnonzero(~held), settings, rng, shards)
    # The steps of a head are small.
    threads = one_thread_each() if isinstance(rows, FrozenRows) else nullcontext()
    with seeded_torch(seed, device), torch.enable_grad(), threads:
        trainer = _Trainer(learner, np.flatnonzero(held))
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
    trains: np.ndarray,
    blocks: np.ndarray,
    validation: tuple[Tensor, np.ndarray],
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
    trains : ndarray of shape (n_texts,)
        Boolean: samples that heads are trained on.
    blocks : ndarray of shape (n_texts,)
        Samples with the same number are in the same fold.
    validation : tuple of (Tensor, ndarray)
        Embeddings and classes of the validation samples of every head, with early stopping; there may be none.
    """
    folds = fold_numbers(classes, blocks, CROSS_FIT_FOLDS, np.random.default_rng(seed))
    features = final.clone()
    width, n_components = embeddings.shape[1], final.shape[1]
    watched, watched_classes = validation
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
            unseen = shown(head(embeddings), settings)
            # All heads start with the same weights, so that untrained directions need no rotation.
            overlap = unseen[rest].T @ final[rest]
            overlap.diagonal().add_(IDENTITY_WEIGHT * len(rest) / n_components)
            # Orthogonal Procrustes: the rotation nearest to the overlap of two feature matrices maps one onto the
            # other.
            left, _, right = torch.linalg.svd(overlap)
            features[out] += share * (unseen[out] @ (left @ right) - final[out])
    return shown(features, settings)


def spread_as_fresh(
    features: Tensor,
    classes: np.ndarray,
    trained: np.ndarray,
    fresh: Tensor,
    fresh_classes: np.ndarray,
    counted: np.ndarray,
) -> Tensor:
    """Stretch features of trained texts about their class mean until they are as far from it as held-out ones.

    Trained texts lie nearer to their class mean than new ones. The factor is the root of the ratio of the mean squared
    distances; with few held-out texts it is shrunk towards 1. Other texts stay.

    Parameters
    ----------
    features : Tensor of shape (n_texts, n_components)
    classes : ndarray of shape (n_texts,)
    trained : ndarray of shape (n_texts,)
        Boolean: texts that were trained on.
    fresh : Tensor of shape (n_fresh, n_components)
    fresh_classes : ndarray of shape (n_fresh,)
    counted : ndarray of shape (n_texts,)
        Boolean: the texts that count, one of several copies.
    """
    counts_too = trained & counted
    rows = torch.from_numpy(np.flatnonzero(counts_too)).to(features.device)
    known, own = features[rows].double(), torch.from_numpy(classes[counts_too]).to(features.device)
    of_fresh = torch.from_numpy(fresh_classes).to(features.device)
    n_classes = 1 + int(max(classes.max(), fresh_classes.max(initial=-1)))
    counts = torch.bincount(own, minlength=n_classes).double()
    means = known.new_zeros(n_classes, known.shape[1]).index_add_(0, own, known) / counts.clamp_min(1).unsqueeze(1)
    several, is_seen = counts[own] > 1, counts[of_fresh] > 0
    if not (several.any() and is_seen.any()):
        return features
    # A mean of n texts is nearer to each of them, and farther from others: 1 - 1/n and 1 + 1/n times the variance.
    offsets = known - means[own]
    inner = (offsets.square().sum(1) / (1 - 1 / counts[own]))[several].mean()
    outer = ((fresh.double() - means[of_fresh]).square().sum(1) / (1 + 1 / counts[of_fresh]))[is_seen].mean()
    if inner <= LEAST_SPREAD * outer:
        return features
    factor = (outer / inner) ** (0.5 * fresh_weight(int(is_seen.sum())))
    spread, moved = features.clone(), torch.from_numpy(np.flatnonzero(trained)).to(features.device)
    centres = means[torch.from_numpy(classes[trained]).to(features.device)]
    spread[moved] = torch.lerp(centres, features[moved].double(), factor).to(features.dtype)
    return spread


class _Trainer:
    """Optimisers, epochs and validation of a training.

    Parameters
    ----------
    learner : Learner
    held_out : ndarray
        Numbers of the validation texts.
    """

    def __init__(self, learner: Learner, held_out: np.ndarray) -> None:
        self.learner, self.held_out, self.settings = learner, held_out, learner.settings
        self.modules: list[nn.Module] = [learner.projection, *learner.rows.modules_to_keep()]
        self.objective = self.settings.objective(learner)
        #: Trained parameters that the features depend on.
        self.of_features = [*learner.projection.parameters(), *learner.rows.parameters()]
        self.parameters = [*self.of_features, *self.objective.parameters()]
        self.stages = [(stage, *self._optimizer(stage)) for stage in self.objective.stages()]

    def _optimizer(self, stage: Stage) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
        rate = self.settings.learning_rate if stage.learning_rate is None else stage.learning_rate
        optimizer = torch.optim.AdamW(
            [{"params": self.parameters, "initial_lr": rate}],
            lr=rate,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )
        n_steps = 1 if stage.whole else -(-len(self.learner.training) // self.settings.batch_size)
        return optimizer, _warmup_then_cosine(optimizer, self.settings.max_iter * n_steps)

    def run(self) -> History:
        best: list[dict[str, Any]] = []

        def keep_best() -> None:
            best[:] = [copy.deepcopy(module.state_dict()) for module in self.modules]

        with_score = self.settings.early_stopping and len(self.held_out) > 0
        history = run_epochs(
            self._run_epoch,
            max_iter=self.settings.max_iter,
            # The schedule reduces the rate to 0 at the end, so only the validation score may stop it earlier.
            n_iter_no_change=self.settings.n_iter_no_change if with_score else self.settings.max_iter,
            tol=self.settings.tol,
            score=self._score if with_score else None,
            keep_best=keep_best if with_score else None,
            label="encoder",
            verbose=self.settings.verbose if self.learner.shards.rank == 0 else 0,
        )
        for module, state in zip(self.modules, best, strict=False):
            module.load_state_dict(state)
        history.held_out = self.held_out
        return history

    def _run_epoch(self) -> float:
        """Run all stages; the loss is the sum of theirs, each a mean over texts."""
        self.objective.start_epoch()
        losses: list[Tensor] = []
        shares: list[float] = []
        training = self.learner.training
        n_rows = len(training)
        for stage, optimizer, schedule in self.stages:
            batches = [np.arange(n_rows)] if stage.whole else None
            for batch in batches or shuffled_batches(n_rows, self.settings.batch_size, self.learner.rng):
                losses += self._step(stage, training[batch], optimizer)
                shares += [len(batch) / n_rows] * (len(losses) - len(shares))
                schedule.step()
        # Read at the end of the epoch: at each read the host waits for the device.
        return float(np.dot(shares, torch.stack(losses).cpu().numpy()))

    def _step(self, stage: Stage, batch: np.ndarray, optimizer: torch.optim.Optimizer) -> list[Tensor]:
        """Step once along the gradients of all parts of the loss; returns the parts, on the device."""
        optimizer.zero_grad()
        parts = []
        for loss in stage.losses(batch):
            loss.backward()  # type: ignore[no-untyped-call]
            parts.append(loss.detach())
        self.learner.shards.sum_gradients(self.of_features)
        if self.settings.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.settings.max_grad_norm)
        optimizer.step()
        return parts

    def _score(self) -> float:
        """Accuracy on the validation set, of the objective's classifier or of the nearest class mean."""
        with torch.no_grad():
            new, truth = self.learner.plain(self.held_out), self.learner.classes_of(self.held_out)
            scores = self.objective.logits(new)
            predictions = nearest_mean(self.learner, new) if scores is None else scores.argmax(1)
            return (predictions == truth).double().mean().item()


def _warmup_then_cosine(optimizer: torch.optim.Optimizer, n_steps: int) -> torch.optim.lr_scheduler.LambdaLR:
    # Loaded with the embedding model; the package is imported without it.
    from transformers import get_cosine_schedule_with_warmup

    # Its first step has a rate of 0 and is skipped. The warm-up may end between two steps.
    warmup: Any = WARMUP * n_steps + 1
    schedule: torch.optim.lr_scheduler.LambdaLR = get_cosine_schedule_with_warmup(
        optimizer, warmup, n_steps + 1, last_epoch=0
    )
    return schedule
