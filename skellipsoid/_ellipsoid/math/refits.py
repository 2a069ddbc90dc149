"""The covariances without one large set (leave-one-out), from whole matrices; of a small one ``low_rank`` is faster."""

from typing import NamedTuple

import torch
from torch import Tensor

from .covariance import ClassAxes, Pairs
from .frames import Frame, identity
from .left_out import Chunk, LeftOut, Sets
from .views import View

#: Multiplications that take as long as the operators of a refit besides.
OVERHEAD = 1e7
#: Time of a multiplication in products of low rank, relative to that in a refit, whose matrices are larger (measured
#: on one core for 2,000 and 4,000 samples of 384 features in groups of 20 to 200).
SLOWNESS = 2.0


def refit_is_faster(sets: Sets, n_classes: int, n_own: int, n_axes: int, n_shrinkages: int) -> bool:
    """Whether refits are faster than changes of low rank, where classes have up to ``n_own`` axes.

    About as many classes score the samples of a set as have samples in it.
    """
    n_touched = sets.touched.shape[1]
    size = min(sets.members.shape[1], n_touched * n_axes)
    n_columns = size + min(size + n_touched, n_classes)
    low_rank = n_columns**2 * (n_columns + 2 * n_axes)
    low_rank += n_touched * n_columns * (n_columns + n_own) * (n_axes + n_shrinkages * n_columns)
    refits = n_axes**2 * (5 * n_axes + n_columns)
    refits += n_touched * n_own * (n_axes**2 + n_own * n_axes + n_shrinkages * n_own**2)
    return refits + OVERHEAD < SLOWNESS * low_rank


class Refit(NamedTuple):
    """The statistics that all classes share, without a set, by the letters of docs/internals.rst."""

    view: View  # the frame as it is
    left_out: LeftOut
    shared: Tensor  # (n_axes, n_axes) Q divided by ``ratio_of_shared``, in these coordinates
    ratio_of_shared: Tensor  # (1,)
    mean: Tensor  # (n_axes,) μ
    root: Tensor  # (n_axes, n_axes) lower Cholesky factor of M
    half: Tensor  # (n_axes, n_axes) its inverse times H
    psi: Tensor  # ()

    def shift(self, numbers: Tensor | slice, means: Tensor) -> Tensor:
        """T B⁻¹ (c_k − μ) = ψ H M⁻¹ (c_k − μ): how far centres are from class means, (n_pairs, n_axes)."""
        solved = torch.linalg.solve_triangular(self.root, (means - self.mean).T, upper=False)
        shifts: Tensor = self.psi * (solved.T @ self.half)
        return shifts

    def scores(
        self, own: ClassAxes, pairs: Pairs, shrinkages: Tensor, typical: Tensor, *, with_volumes: bool
    ) -> tuple[Tensor, Tensor | None]:
        """As of ``LowRank``.

        The scatter of a class is AᵀA with the rows of A, and AᵀPA without the set, where P = I − NᵀN and NA = V.
        """
        axes, values = own.axes[pairs.places], own.values[pairs.places]
        roots, n_own = values.sqrt().unsqueeze(2), axes.shape[1]
        # Of the rows of V, those of the class first.
        order = pairs.inside.argsort(dim=1, descending=True)[:, : int(pairs.inside.sum(1).max())]
        V = self.left_out.V[0][order] * (pairs.inside.gather(1, order).unsqueeze(2) * self.view.background.stretches)
        N = V @ axes.mT * torch.where(values > 0, values.rsqrt(), 0.0).unsqueeze(1)
        vectors = torch.cat([roots * axes, pairs.offsets], dim=1)
        solved = torch.linalg.solve(self.shared, vectors.flatten(0, 1).T).T.view(vectors.shape)
        products = vectors[:, :n_own] @ solved.mT
        products_without = products - N.mT @ (N @ products)
        of_scatter, sphere = pairs.parts(shrinkages, typical)
        relative = (of_scatter / sphere)[..., None, None]
        capacity = identity(n_own, axes) + relative * products_without[..., :n_own]
        inner = torch.linalg.solve(capacity, relative * products_without[..., n_own:])
        squares = (pairs.offsets * solved[:, n_own:]).sum(2) - (products[..., n_own:] * inner).sum(2)
        squares /= sphere.unsqueeze(2)
        if not with_volumes:
            return squares, None
        of_shared = torch.linalg.slogdet(self.shared)[1] + axes.shape[2] * sphere.log()
        return squares, of_shared + torch.linalg.slogdet(capacity)[1]


def refit(view: View, chunk: Chunk) -> Refit:
    """Compute T, B, μ and Q without the set of a chunk."""
    frame, background = view.frame, view.background
    left_out, ones = chunk.sets.left_out(view.offsets), identity(frame.n_axes, frame.means)
    V, stretches = left_out.V[0], background.stretches
    iota, n_axes = (found[0] for found in frame.without(chunk.sets))
    H = ones - frame.pooled * V.T @ V
    means = _remaining_means(frame, chunk, left_out)
    mean = means.mean(0)
    if not background.target:
        return Refit(view, left_out, H, iota.view(1), mean, ones, torch.zeros_like(H), iota)
    scale = len(frame.means) - 1
    deviations = means - mean
    halves = torch.linalg.solve_triangular(torch.linalg.cholesky(H), deviations.T, upper=False)
    gamma = halves.square().sum() / scale / frame.variances_of_means.sum()
    # If a single class remains, ψ is 0, and any M does.
    target = background.target * (gamma / n_axes * frame.n_axes).clamp_min(1e-9)
    M = (1 - background.between) / scale * deviations.T @ deviations + target * H
    root = torch.linalg.cholesky(M)
    half = torch.linalg.solve_triangular(root, H, upper=False)
    psi = iota * (len(means) - 1) / scale
    # The diagonal part of Q changes by one factor.
    diagonal = psi / ((1 - background.between) * frame.variances_of_means + target)
    before = 1 + background.inverse
    factor = ((1 + diagonal) / before).mean()
    shared = H + psi * half.T @ half + torch.diag(factor * before - 1 - diagonal)
    shared *= stretches * stretches.unsqueeze(1) / factor
    return Refit(view, left_out, shared, (iota * factor).view(1), mean, root, half, psi)


def _remaining_means(frame: Frame, chunk: Chunk, left_out: LeftOut) -> Tensor:
    """Return the means of the classes that remain, (n_remaining, n_axes)."""
    present = chunk.sets.touched[0] >= 0
    touched, means = chunk.sets.touched[0][present], frame.means.clone()
    means[touched] += left_out.moves[0][present] @ left_out.V[0]
    remains = means.new_ones(len(means) + 1, dtype=torch.bool)  # the last place is that of no class
    remains[touched] = chunk.sets.exists[0][present]
    remains[chunk.held_out] = False
    return means[remains[:-1]]
