"""The covariances without small sets (leave-one-out): every matrix changes by a term of low rank (Woodbury identity).

docs/internals.rst has the letters, *Without a set: the algebra*.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from .covariance import ClassAxes, Pairs
from .frames import identity
from .left_out import Chunk, LeftOut
from .views import View


class LowRank(NamedTuple):
    """How the statistics that all classes share change without sets.

    In coordinates where Q was the identity, Q is ``ratio_of_shared`` (I + UᵀEU).
    """

    view: View  # n_axes are its coordinates
    left_out: LeftOut
    U: Tensor  # (n_sets, n_columns, n_axes) V, and what Y D⁻¹ consists of, where T was the identity
    E: Tensor  # (n_sets, n_columns, n_columns)
    ratio_of_shared: Tensor  # (n_sets,)
    mean: Tensor  # (n_sets, n_axes) μ
    inverse: Tensor  # (n_sets, n_axes) D⁻¹, where B⁻¹ is proportional to D⁻¹ − (Y D⁻¹)ᵀ Φ Y D⁻¹
    YD: Tensor  # (n_sets, n_touched + size, n_axes) Y D⁻¹
    Phi: Tensor  # (n_sets, n_touched + size, n_touched + size)
    psi: Tensor  # (n_sets,) ι (K′ − 1) / (K − 1), by which T is larger, relative to B

    def shift(self, numbers: Tensor | slice, means: Tensor) -> Tensor:
        """T B⁻¹ (c_k − μ): how far centres are from class means, (n_pairs, n_axes)."""
        deviations = (means - self.mean[numbers]).unsqueeze(2)
        solved, V = self.YD[numbers], self.left_out.V[numbers]
        moved = deviations * self.inverse[numbers].unsqueeze(2)
        moved = moved - solved.transpose(1, 2) @ (self.Phi[numbers] @ (solved @ deviations))
        moved = moved - self.view.frame.pooled * V.transpose(1, 2) @ (V @ moved)
        return moved.squeeze(2) * self.psi[numbers].unsqueeze(1)

    def scores(
        self, own: ClassAxes, pairs: Pairs, shrinkages: Tensor, typical: Tensor, *, with_volumes: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Squared distances for each ρ, and log determinants of Σ_k but for that of the coordinates.

        The Woodbury identity on (1 − ρ) S_k + ρ Q without the sets. The classes that score are ``own`` ones.
        The results have (n_shrinkages, n_pairs, n_scored) and (n_shrinkages, n_pairs) elements.
        """
        offsets, columns = pairs.offsets, self.U[pairs.numbers] * self.view.background.stretches
        vectors, n_columns = torch.cat([columns, offsets], dim=1), columns.shape[1]
        basis = None if self.view.basis is None else self.view.basis[pairs.numbers]
        of_scatter, sphere = parts = pairs.parts(shrinkages, typical)
        inner, squares = own.inner_products(vectors, pairs.places, basis, parts, n_columns)
        of_sphere = sphere[..., None, None]
        inner = inner + columns @ vectors.transpose(1, 2) / of_sphere
        products, crossed = inner[..., :n_columns], inner[..., n_columns:]
        of_class = functional.pad(pairs.inside, (0, n_columns - pairs.inside.shape[1]))
        change = self.E[pairs.numbers] * of_sphere - torch.diag_embed(of_class * of_scatter.unsqueeze(2))
        capacity = identity(change.shape[-1], change) + change @ products
        squares = squares + offsets.square().sum(2) / sphere.unsqueeze(2)
        squares -= (crossed * torch.linalg.solve(capacity, change @ crossed)).sum(2)
        if not with_volumes:
            return squares, None
        values = own.values[pairs.places]
        variances, n_other = of_scatter.unsqueeze(2) * values + sphere.unsqueeze(2), own.axes.shape[2] - values.shape[1]
        return squares, variances.log().sum(2) + n_other * sphere.log() + torch.linalg.slogdet(capacity)[1]


def low_rank_changes(view: View, chunk: Chunk) -> LowRank:
    """Change T, B, μ and Q, by the letters and steps of docs/internals.rst, *Without a set: the algebra*.

    Q' = ι (H + ψ H M⁻¹ H), where H = I − κ VᵀV, and M⁻¹ is D⁻¹ − (YD⁻¹)ᵀ Φ YD⁻¹ with a diagonal D.
    """
    left_out, frame, background = chunk.sets.left_out(view.offsets), view.frame, view.background
    V, kappa, n_touched, size = left_out.V, frame.pooled, left_out.moves.shape[1], left_out.V.shape[1]
    iota, n_axes = frame.without(chunk.sets)
    minus_kappa = -kappa * identity(size, V)
    Y, mean, G, n_remaining = _class_means(view, chunk, left_out)
    if not background.target:
        none, empty = torch.zeros_like(mean), Y[:, :0]
        products = empty @ empty.transpose(1, 2)
        E = minus_kappa.expand(len(V), -1, -1)
        return LowRank(view, left_out, V, E, iota, mean, none, empty, products, iota)
    target = background.target * _relative_trace(view, V, Y, G) / n_axes * frame.n_axes
    G = (1 - background.between) * G
    G[:, n_touched:, n_touched:] += target.view(-1, 1, 1) * minus_kappa
    inverse = ((1 - background.between) * view.variances_of_means + target.unsqueeze(1)).reciprocal()
    YD = Y * inverse.unsqueeze(1)
    Phi = torch.linalg.solve(identity(G.shape[1], G) + G @ (YD @ Y.transpose(1, 2)), G)
    psi = iota * (n_remaining - 1) / (len(frame.means) - 1)
    # H M⁻¹ H, with Y D⁻¹ H = Y D⁻¹ + (mixed)ᵀ V.
    mixed = -kappa * (V @ YD.transpose(1, 2))
    onto_columns = torch.cat([mixed, identity(G.shape[1], G).expand(len(mixed), -1, -1)], dim=1)
    E = -(onto_columns @ Phi @ onto_columns.transpose(1, 2))
    # The rows of U are V, and those of Y D⁻¹: of the touched classes, and V D⁻¹.
    of_v, of_v_solved = slice(size), slice(size + n_touched, None)
    E[:, of_v, of_v] += kappa**2 * (V @ (V * inverse.unsqueeze(1)).transpose(1, 2))
    E[:, of_v, of_v_solved] += minus_kappa
    E[:, of_v_solved, of_v] += minus_kappa
    E *= psi.view(-1, 1, 1)
    E[:, of_v, of_v] += minus_kappa
    factor = ((1 + psi.unsqueeze(1) * inverse) / (1 + background.inverse)) @ view.proportions
    U, E = _fewest_columns(V, YD, inverse, E / factor.view(-1, 1, 1), len(frame.means))
    return LowRank(view, left_out, U, E, iota * factor, mean, inverse, YD, Phi, psi)


def _fewest_columns(V: Tensor, YD: Tensor, inverse: Tensor, E: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Return U and E such that UᵀEU is that of the rows of V and Y D⁻¹.

    Class means lie along the first axes, and D⁻¹ is a multiple of I along the others. So the rows of Y D⁻¹ are sums of
    those of V and of unit vectors, which are fewer for large sets.
    """
    (n_sets, size, n_axes), n_touched = V.shape, YD.shape[1] - V.shape[1]
    n_first = min(n_classes, n_axes)
    if n_first >= YD.shape[1]:
        return torch.cat([V, YD], dim=1), E
    ones, common = identity(size, V).expand(n_sets, -1, -1), inverse[:, -1:]
    of_v = torch.cat([ones, V.new_zeros(n_sets, n_touched, size), ones * common.unsqueeze(2)], dim=1)
    along = [V.new_zeros(n_sets, size, n_first), YD[:, :n_touched, :n_first]]
    along.append(V[..., :n_first] * (inverse[:, :n_first] - common).unsqueeze(1))
    onto = torch.cat([of_v, torch.cat(along, dim=1)], dim=2)
    first_axes = identity(n_axes, V)[:n_first].expand(n_sets, -1, -1)
    return torch.cat([V, first_axes], dim=1), onto.mT @ E @ onto


def _class_means(view: View, chunk: Chunk, left_out: LeftOut) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Y, μ, G, and the number of classes that remain.

    The rows of Y are the deviations c − μ of the touched classes, and V. B₀ gains YᵀGY: the scatter of the class
    means that remain, about their own mean, less that of all class means, both divided by K − 1.
    """
    sets, size = chunk.sets, left_out.V.shape[1]
    is_touched = (sets.touched >= 0).double()
    # Coefficients of the class means: those of the touched classes move, or are gone.
    before = functional.pad(torch.diag_embed(is_touched), (0, size))
    remains = is_touched * sets.exists * (sets.touched != chunk.held_out.unsqueeze(1))
    after = torch.cat([torch.diag_embed(remains), left_out.moves * remains.unsqueeze(2)], dim=2)
    n_classes = len(view.means)
    n_remaining = (n_classes - (is_touched - remains).sum(1)).clamp_min(1)
    of_mean = (after - before).sum(1, keepdim=True) / n_remaining.view(-1, 1, 1)
    Y = torch.cat([view.means[sets.touched], left_out.V], dim=1)
    G = after.transpose(1, 2) @ after - before.transpose(1, 2) @ before
    G = (G - n_remaining.view(-1, 1, 1) * of_mean.transpose(1, 2) @ of_mean) / (n_classes - 1)
    return Y, (of_mean @ Y).squeeze(1), G, n_remaining


def _relative_trace(view: View, V: Tensor, Y: Tensor, G: Tensor) -> Tensor:
    """Return the trace of H⁻¹ (B₀ + YᵀGY), relative to that of B₀, (n_sets,).

    H⁻¹ is I + Vᵀ (κ⁻¹ I − VVᵀ)⁻¹ V.
    """
    kappa, products = view.frame.pooled, V @ Y.transpose(1, 2)
    inner = (V * view.variances_of_means) @ V.transpose(1, 2) + products @ G @ products.transpose(1, 2)
    capacity = identity(V.shape[1], V) - kappa * V @ V.transpose(1, 2)
    of_v = torch.linalg.solve(capacity, kappa * inner).diagonal(dim1=1, dim2=2).sum(1)
    of_y: Tensor = (G * (Y @ Y.transpose(1, 2))).sum((1, 2))
    relative: Tensor = 1 + (of_y + of_v) / view.frame.variances_of_means.sum()
    return relative
