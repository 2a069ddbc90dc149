"""A memory of messages that were labelled open: what lies near to one loses score.

Let c(z, S) be the largest cosine of a sample z to the rows of S, all less the training mean. The score of z loses

    weight · max(0, c(z, opened) − c(z, known)),

where ``known`` are the class means and the messages that were labelled with a class. So a sample that lies nearer to
one of these loses nothing, and neither a shift nor a scale of the features changes a decision. It is a nearest
neighbour among the labelled messages, in which the class means stand for the training samples.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Memory(NamedTuple):
    """Directions of labelled messages from the training mean, and what a sample near an open one loses."""

    opened: Any  # (n_opened, n_features) rows of length 1: messages that were labelled open
    known: Any  # (n_known, n_features) rows of length 1: messages that were labelled with a class
    weight: float  # margin that a cosine of 1 takes

    def beside(self, centroids: Tensor) -> "Memory":
        """Return the memory with the class means, (n_classes, n_features), among what is known."""
        return self._replace(known=torch.cat([unit(centroids), self.known]))

    def deduction(self, features: Tensor) -> Tensor:
        """Return what the score of each sample loses, (n_samples,), by a memory with the class means."""
        directions = unit(features)
        excess = (directions @ self.opened.T).amax(1) - (directions @ self.known.T).amax(1)
        lost: Tensor = self.weight * excess.clamp_min(0)
        return lost


def unit(rows: Tensor) -> Tensor:
    """Divide rows by their length; rows of zeros stay."""
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / torch.where(lengths > 0, lengths, torch.ones_like(lengths))
