"""Texts as inputs of training: embeddings x that are computed once, or tokens that are embedded at every step."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._torch.devices import on_device
from .backbone import TextBackbone

#: Dropout of frozen embeddings for their two views (full fine-tuning uses the dropout of the embedding model). With
#: 0.05, 0.2 and 0.6, F1 is within 0.8 points (skellipsoid-bench/TRIED.md, *Before*).
HEAD_DROPOUT = 0.4


class Rows:
    """Texts as inputs of the linear layer, with or without dropout."""

    def views(self, rows: np.ndarray) -> Tensor:
        """Two dropout views of each text, one block after the other, (2 · n_rows, width)."""
        return self.dropped(np.concatenate([rows, rows]))

    def dropped(self, rows: np.ndarray) -> Tensor:
        """Embed each text with dropout, (n_rows, width)."""
        raise NotImplementedError

    def plain(self, rows: np.ndarray) -> Tensor:
        """Embed each text without dropout, (n_rows, width)."""
        raise NotImplementedError

    def parameters(self) -> list[nn.Parameter]:
        """Give the trained parameters besides the linear layer."""
        return []

    def modules_to_keep(self) -> list[nn.Module]:
        """Give the modules that training changes."""
        return []

    def copy(self) -> "Rows":
        """Copy the modules that training changes; the copy is not trained."""
        return self


class FrozenRows(Rows):
    """Embeddings that are computed once; their views are made with dropout.

    Parameters
    ----------
    embeddings : Tensor of shape (n_texts, width)
    """

    def __init__(self, embeddings: Tensor) -> None:
        self.embeddings = embeddings

    def dropped(self, rows: np.ndarray) -> Tensor:
        return functional.dropout(self.plain(rows), HEAD_DROPOUT)

    def plain(self, rows: np.ndarray) -> Tensor:
        return self.embeddings[on_device(rows, self.embeddings.device)]


class TokenRows(Rows):
    """Tokenised texts, embedded at every step; their views are made with the dropout of the embedding model."""

    def __init__(self, backbone: TextBackbone, texts: Sequence[str]) -> None:
        self.backbone = backbone
        self.table = backbone.table(backbone.tokenize(texts))
        backbone.unfreeze()

    def dropped(self, rows: np.ndarray) -> Tensor:
        self.backbone.model.train()
        return self._pooled(rows)

    def plain(self, rows: np.ndarray) -> Tensor:
        self.backbone.model.eval()
        return self._pooled(rows)

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in self.backbone.model.parameters() if p.requires_grad]

    def modules_to_keep(self) -> list[nn.Module]:
        return [self.backbone.model]

    def copy(self) -> "TokenRows":
        copied = copy.copy(self)
        copied.backbone = self.backbone.copy()
        copied.backbone.model.requires_grad_(False)
        return copied

    def _pooled(self, rows: np.ndarray) -> Tensor:
        device = self.table.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            pooled = self.backbone.pooled(self.table, rows)
        return pooled.float()
