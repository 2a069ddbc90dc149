"""The heads of DE, one on each layer of the text model: their training, and their votes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skellipsoid._base import seeded_torch
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.torch.contrastive import train_projection
from skellipsoid._encoders.training_texts import TrainingTexts

from ._torch.dynamic_ensemble import EnsembleSettings, Vote
from ._torch.layers import LayerHeads, LayerRows, visit_layers

#: Texts of a piece that are computed at once.
PIECE = 64


def train_heads(
    backbone: TextBackbone,
    texts: list[str],
    training: TrainingTexts,
    n_classes: int,
    n_layers: int,
    device: torch.device,
    settings: EnsembleSettings,
) -> tuple[LayerHeads, Any, NDArray[np.float32]]:
    """Give the trained heads, and the features of the texts that were trained on, (n_texts, n_layers, width)."""
    learns, validation = training.rows[training.learns], training.validation
    classes = np.concatenate([training.classes[training.learns], validation.classes])
    rows = LayerRows(backbone, [*(texts[i] for i in learns), *validation.texts])
    with seeded_torch(training.seed, device):
        heads: Any = LayerHeads(n_layers, backbone.width, n_classes).to(device)
    blocks, n_given = training.blocks[training.learns], len(validation.texts)
    history = train_projection(rows, classes, n_classes, heads, settings, training.seed, blocks, n_given)
    backbone.model.eval()
    with torch.inference_mode():
        parts = [
            torch.tanh(heads(rows.plain(np.arange(start, min(start + PIECE, len(learns)))))).cpu()
            for start in range(0, len(learns), PIECE)
        ]
    return heads, history, torch.cat(parts).numpy()


def add_votes(
    vote: Vote,
    backbone: TextBackbone,
    tokens: list[list[int]],
    heads: Sequence[torch.Tensor],
    outlier_factors: Sequence[Any],
) -> None:
    """Let each layer vote on texts, as long as they are undecided; without outlier factors none is open."""
    weight, bias, class_weight, class_bias = heads

    def visit(layer: int, means: torch.Tensor, running: torch.Tensor) -> torch.Tensor:
        features = torch.tanh(means @ weight[layer].T + bias[layer])
        known = (features @ class_weight[layer].T + class_bias[layer]).argmax(1).cpu().numpy()
        if outlier_factors:
            is_open = outlier_factors[layer].score_samples(features.cpu().numpy()) < 0
            known = np.where(is_open, len(class_bias[layer]), known)
        decided = vote.add(layer, running.cpu().numpy(), known)
        return torch.from_numpy(~decided).to(means.device)

    visit_layers(backbone, tokens, visit)
