"""Held-out rows: when to stop learning, and how large the boundaries are.

Rows that trained neither centroid nor matrix are seen twice. As *known* rows they should lie inside the ellipsoid of
the class that they are assigned to. As *open* rows, their own class left aside, they should lie outside the ellipsoid
of the nearest other class: to that ellipsoid they are what an unknown class would be.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .geometry import assigned_norms, nearest_centroid


class Reach(NamedTuple):
    """How far out rows lie, as multiples of the radius: a row is accepted at size s where its reach is at most s."""

    known: NDArray[np.float64]  # (n_known,)
    correct: NDArray[np.bool_]  # (n_known,) assigned to their own class
    open: NDArray[np.float64]  # (n_open,)


class HeldOutRows:
    """Held-out rows of known classes, and real open ones, with what does not change while matrices are learned.

    Parameters
    ----------
    known : Tensor of shape (n_known, n_features)
    classes : Tensor of shape (n_known,)
    real_open : Tensor of shape (n_open, n_features)
    centroids : Tensor of shape (n_classes, n_features)
    points : Tensor of shape (n_classes,)
        Classes without a shape; their rows say nothing about sizes.
    """

    def __init__(self, known: Tensor, classes: Tensor, real_open: Tensor, centroids: Tensor, points: Tensor) -> None:
        known, classes = known[~points[classes]], classes[~points[classes]]
        self.centroids = centroids
        self.known, self.assigned = known, nearest_centroid(known, centroids)
        self.correct = (self.assigned == classes).cpu().numpy()
        self.open, self.open_assigned = real_open, nearest_centroid(real_open, centroids)
        if len(centroids) > 1:
            self.open = torch.cat([known, real_open])
            self.open_assigned = torch.cat([_nearest_other(known, classes, centroids), self.open_assigned])

    def __len__(self) -> int:
        """Return the number of held-out known rows."""
        return len(self.known)

    def reach(self, components: Tensor, radii: Tensor) -> Reach:
        """How far out the rows lie with the present matrices."""

        def ratio(rows: Tensor, assigned: Tensor) -> NDArray[np.float64]:
            norms = assigned_norms(rows, assigned, self.centroids, components) / radii[assigned]
            return norms.double().cpu().numpy()

        return Reach(ratio(self.known, self.assigned), self.correct, ratio(self.open, self.open_assigned))


def _nearest_other(rows: Tensor, classes: Tensor, centroids: Tensor) -> Tensor:
    distances = torch.cdist(rows, centroids)
    return distances.scatter(1, classes.unsqueeze(1), torch.inf).argmin(1)


def mean_f1(reach: Reach, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the known rows' and the open rows' pooled F1 if all radii are multiplied by each of ``sizes``.

    Open rows weigh together as much as the known ones. Without open rows it is the known rows' F1 alone.

    Returns
    -------
    ndarray of shape (n_sizes,)
    """

    def accepted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.searchsorted(np.sort(values), sizes, side="right") / max(1, len(values))

    known, right, opened = accepted(reach.known), accepted(reach.known[reach.correct]), accepted(reach.open)
    right = right * reach.correct.mean()
    if not len(reach.open):
        return np.asarray(2 * right / (known + 1))
    # Shares of the known rows and shares of the open rows count alike.
    f1_known = 2 * right / (known + opened + 1)
    f1_open = 2 * (1 - opened) / ((1 - opened) + (1 - known) + 1)
    return np.asarray((f1_known + f1_open) / 2)


def best_size(reach: Reach) -> float:
    """Smallest of the sizes with the best ``mean_f1``; 1 without known rows that have a reach."""
    sizes = np.unique(reach.known[reach.known > 0])
    if not len(sizes):
        return 1.0
    return float(sizes[mean_f1(reach, sizes).argmax()])
