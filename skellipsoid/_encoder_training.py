"""How an encoder trains its linear layer: mode, settings, rows, and features of the training texts."""

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._engine.common.training import History
from ._engine.text.backbone import TextBackbone
from ._engine.text.contrastive import (
    ContrastiveSettings,
    FrozenRows,
    TokenRows,
    cross_fit,
    start_projection,
    train_projection,
)
from ._training_texts import TrainingTexts

#: What ``"auto"`` stands for. Full fine-tuning moves millions of pretrained weights, a head one matrix.
AUTO = {
    "head": {"learning_rate": 1e-3, "batch_size": 256, "max_iter": 60},
    "full": {"learning_rate": 5e-5, "batch_size": 64, "max_iter": 4},
}
#: Distinct texts per class from which ``finetune="auto"`` trains a head, see benchmarks/texts_per_class.py.
HEAD_FROM = 25


def choose_mode(finetune: str, n_components: int | None, training: TrainingTexts, n_classes: int) -> str:
    """Choose what is trained; a single class has nothing to be separated from."""
    if finetune != "auto":
        return finetune
    trains = training.learns.sum() >= HEAD_FROM * n_classes and n_classes > 1
    return "head" if trains or n_components is not None else "none"


def read_settings(encoder: Any) -> ContrastiveSettings:
    """Read the settings of the engine from the parameters of a fitted encoder."""
    chosen: dict[str, Any] = {field.name: getattr(encoder, field.name) for field in fields(ContrastiveSettings)}
    chosen |= {name: value for name, value in AUTO[encoder.finetune_].items() if isinstance(chosen[name], str)}
    return ContrastiveSettings(**chosen)


def train_layer(
    backbone: TextBackbone,
    texts: list[str],
    training: TrainingTexts,
    embeddings: torch.Tensor | None,
    n_classes: int,
    n_components: int | None,
    pooling: str,
    settings: ContrastiveSettings,
    device: torch.device,
) -> tuple[NDArray[np.float32], NDArray[np.float32], History]:
    """Train W and b, and, without embeddings of a frozen model, the text model; validation texts are the last rows."""
    learns, classes = training.rows[training.learns], training.classes[training.learns]
    validation, n_validation = training.validation, 0
    if validation is not None:
        classes, n_validation = np.concatenate([classes, validation.classes]), len(validation.classes)
    rows: FrozenRows | TokenRows
    if embeddings is None:
        new = [] if validation is None else validation.texts
        rows = TokenRows(backbone, [*(texts[i] for i in learns), *new], pooling)
        width = rows.plain(np.array([0])).shape[1]
    else:
        parts = [embeddings[torch.from_numpy(learns)]]
        if validation is not None and validation.embeddings is not None:
            parts.append(validation.embeddings)
        rows, width = FrozenRows(torch.cat(parts).to(device)), embeddings.shape[1]
    projection = start_projection(width, n_components or width, training.seed).to(device)
    blocks = training.blocks[training.learns]
    history = train_projection(rows, classes, n_classes, projection, settings, training.seed, blocks, n_validation)
    backbone.model.eval()
    return projection.weight.detach().cpu().numpy(), projection.bias.detach().cpu().numpy(), history


def cross_fitted(
    embeddings: torch.Tensor,
    training: TrainingTexts,
    features: NDArray[np.float32],
    n_classes: int,
    settings: ContrastiveSettings,
    device: torch.device,
) -> NDArray[np.float32]:
    """Features of the known training texts, distributed as those of new texts."""
    validation = None
    if training.validation is not None and training.validation.embeddings is not None:
        validation = training.validation.embeddings.to(device), training.validation.classes
    mixed = cross_fit(
        embeddings[torch.from_numpy(training.rows)].to(device),
        training.classes,
        n_classes,
        torch.from_numpy(features).to(device),
        settings,
        training.seed,
        training.learns,
        training.blocks,
        validation,
    )
    return np.asarray(mixed.cpu().numpy(), dtype=np.float32)
