"""Training by several processes: each embeds a part of a batch, and the loss is that of the whole batch.

The processes are those of the default group of ``torch.distributed``, which the caller begins. All have the same
samples and the same seed, so that they draw the same batches.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed, nn


@dataclass(frozen=True)
class Shards:
    """The part of each batch that this process has.

    The loss of a batch is a function L(f₁, …, f_P) of the features of all P processes. Process p knows the values of
    all features and the gradient of its own, dL/df_p · df_p/dθ. The sum of these over the processes is the gradient.
    """

    rank: int = 0
    n_processes: int = 1

    @classmethod
    def of_group(cls) -> "Shards":
        """Read the default group; without one, this process is alone."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls()
        return cls(distributed.get_rank(), distributed.get_world_size())

    def part(self, batch: np.ndarray) -> np.ndarray:
        """Rows of a batch that this process embeds."""
        return self._parts(batch)[self.rank]

    def _parts(self, batch: np.ndarray) -> list[np.ndarray]:
        return [batch[rank :: self.n_processes] for rank in range(self.n_processes)]

    def gathered(self, own: Tensor, batch: np.ndarray, n_views: int) -> Tensor:
        """Features of all processes, (n_views · n_rows, n_features); those of this one keep their gradient.

        They are in the order of the processes, as ``order`` gives it.

        Parameters
        ----------
        own : Tensor of shape (n_views · n_own_rows, n_features)
        batch : ndarray of shape (n_rows,)
        n_views : int
        """
        if self.n_processes == 1:
            return own
        sizes = [n_views * len(part) for part in self._parts(batch)]
        padded = own.new_zeros(max(sizes), own.shape[1])
        padded[: len(own)] = own.detach()
        found = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(found, padded)
        parts = [part[:size] for part, size in zip(found, sizes, strict=True)]
        parts[self.rank] = own
        return torch.cat(parts)

    def order(self, batch: np.ndarray, n_views: int) -> np.ndarray:
        """Row of each gathered feature, (n_views · n_rows,)."""
        return np.concatenate([np.tile(part, n_views) for part in self._parts(batch)])

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace the gradients of this process by their sum over all processes."""
        if self.n_processes == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        own = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
        flat = torch.cat([gradient.flatten() for gradient in own])
        distributed.all_reduce(flat)
        for parameter, total in zip(trained, torch.split(flat, [each.numel() for each in trained]), strict=True):
            parameter.grad = total.view_as(parameter)

    def agreed(self, number: int) -> int:
        """Return the number that the first process has."""
        if self.n_processes == 1:
            return number
        found: list[int] = [number]
        distributed.broadcast_object_list(found, src=0)
        return found[0]


#: A process without others.
ALONE = Shards()
