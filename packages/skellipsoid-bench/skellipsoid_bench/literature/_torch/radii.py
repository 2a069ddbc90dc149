"""Radii of balls, learned from distances: the boundary losses of ADB and CLAB.

The radius of class k is Δ_k = ln(1 + exp θ_k), and only θ is learned. Both losses are piecewise linear in Δ, so that
their slopes are written out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from skellipsoid._torch.losses import CLAB_EXPAND, CLAB_SHRINK, other_class_loss
from skellipsoid._torch.training_loop import History, run_epochs, shuffled_batches

#: Epochs without a loss smaller by ``TOL`` that end the training: chosen by hand; the publications have no stop rule.
N_ITER_NO_CHANGE, TOL = 10, 1e-5


@dataclass(frozen=True)
class RadiusSettings:
    """How radii are learned; ``eta`` = 0 is ADB."""

    learning_rate: float
    batch_size: int
    max_iter: int
    expand: float = CLAB_EXPAND
    shrink: float = CLAB_SHRINK
    eta: float = 0.0


#: Distances of every row to the centroid of its class, and of a negative of every row to the same, if there are any.
Draw = Callable[[], tuple[Tensor, Tensor | None]]


def radius_loss(distances: Tensor, negatives: Tensor | None, radii: Tensor, settings: RadiusSettings) -> Tensor:
    """Loss of each row, given the radius of its class: |d − Δ| and, for CLAB, η ([Δ + s − d⁻]₊ + [d⁻ − Δ − e]₊)."""
    loss = (distances - radii).abs()
    if negatives is not None:
        loss = loss + other_class_loss(negatives, radii, settings.eta, settings.shrink, settings.expand)
    return loss


def radius_slope(distances: Tensor, negatives: Tensor | None, radii: Tensor, settings: RadiusSettings) -> Tensor:
    """Differentiate ``radius_loss`` by the radius; at a kink the mean of both sides."""
    slope = torch.sign(radii - distances)
    if negatives is not None:
        shrinking = (1 + torch.sign(radii + settings.shrink - negatives)) / 2
        expanding = (1 + torch.sign(negatives - radii - settings.expand)) / 2
        slope = slope + settings.eta * (shrinking - expanding)
    return slope


def learn_radii(
    draw: Draw, classes: Tensor, weights: Tensor, n_classes: int, settings: RadiusSettings, rng: np.random.Generator
) -> tuple[Tensor, History]:
    """Learn the radii of all classes, (n_classes,), from the distances that ``draw`` gives in each epoch.

    Each batch of rows is one step of Adam on θ.
    The loss is a sum over classes, so that each class keeps the radius with which its own rows had the smallest loss.

    Parameters
    ----------
    draw : callable
        Called once per epoch: dropout and negatives are drawn anew.
    classes : Tensor of shape (n_samples,)
    weights : Tensor of shape (n_samples,), double
    n_classes : int
    settings : RadiusSettings
    rng : Generator
    """
    theta = torch.from_numpy(rng.normal(size=n_classes)).to(weights.device)
    optimizer = torch.optim.Adam([theta], lr=settings.learning_rate)
    weights = weights / weights.mean()
    best_radii, best_losses = softplus(theta), torch.full_like(theta, torch.inf)

    def run_epoch() -> float:
        """Train one epoch; returns the mean loss per row at its end."""
        nonlocal best_radii, best_losses
        distances, negatives = draw()
        for rows in shuffled_batches(len(distances), settings.batch_size, rng):
            batch = torch.from_numpy(rows).to(distances.device)
            own, others = classes[batch], None if negatives is None else negatives[batch]
            slopes = radius_slope(distances[batch], others, softplus(theta)[own], settings) * weights[batch]
            gradient = torch.zeros_like(theta).index_add_(0, own, slopes)
            theta.grad = gradient * torch.sigmoid(theta) / len(batch)
            optimizer.step()
        radii = softplus(theta)
        losses = radius_loss(distances, negatives, radii[classes], settings) * weights
        sums = torch.zeros_like(radii).index_add_(0, classes, losses)
        better = sums < best_losses
        best_radii, best_losses = torch.where(better, radii, best_radii), torch.where(better, sums, best_losses)
        return float(sums.sum() / len(distances))

    history = run_epochs(
        run_epoch, max_iter=settings.max_iter, n_iter_no_change=N_ITER_NO_CHANGE, tol=TOL, label="radii"
    )
    return best_radii, history
