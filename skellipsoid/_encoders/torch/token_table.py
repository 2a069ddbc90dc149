"""Tokenised texts as one tensor on a device, from which a few texts at a time are padded there."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ..._torch.devices import on_device

#: Padded tokens in one forward pass: large enough to keep the matrix products busy, small enough for the caches.
PIECE_TOKENS = {"cpu": 512, "cuda": 32768}
#: Padded lengths are multiples of it: the matrix units of a GPU work on tiles of this size. On a CPU, multiples
#: of 8 take 1.1 times as long.
LENGTH_STEP = {"cpu": 1, "cuda": 8}


class TokenTable:
    """Token ids of texts, one text after the other, on a device.

    Parameters
    ----------
    tokens : sequence of sequences of int
    device : torch.device
    padding : int
        Token id of the padding.
    longest : int
        Texts are not padded beyond this length.
    """

    def __init__(self, tokens: Sequence[Sequence[int]], device: torch.device, padding: int, longest: int) -> None:
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        ends = lengths.cumsum()
        ids = np.fromiter(chain.from_iterable(tokens), np.int64, lengths.sum())
        self._ids = on_device(np.append(ids, padding), device)
        self._places = on_device(np.stack([ends - lengths, lengths]), device)  # (2, n_texts): starts and lengths
        step = LENGTH_STEP.get(device.type, 1)
        #: Number of tokens of each text with its padding, (n_texts,).
        self.lengths = np.maximum(np.minimum(-(-lengths // step) * step, longest), lengths)
        self.device = device

    def padded(self, rows: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Token ids of texts in one tensor, and 1 where there is one, each (n_rows, longest)."""
        starts, lengths = self._places[:, rows].unsqueeze(2)
        columns = torch.arange(longest, device=self.device)
        mask = columns < lengths
        last = len(self._ids) - 1  # the padding
        return self._ids[(starts + columns).where(mask, last)], mask.long()
