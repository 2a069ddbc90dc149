"""Frames as sets see them: in few coordinates, which hold all inner products that a score needs.

Class means lie along the first axes of a frame. Along the others T is the identity and B is a multiple of it, so what
lies off the first axes matters only by the inner products of a set's own samples. An orthonormal basis of their span,
beside the first axes, has these: ten classes and a set of one sample have 11 coordinates in place of 384.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .covariance import Background, HeldOutSamples
from .frames import Frame
from .left_out import Chunk, Sets

#: Fewer coordinates are used only if their number is at most this proportion of the number of axes.
MOST_COORDINATES = 0.5


@dataclass(frozen=True)
class View:
    """A frame in the coordinates of sets: the first axes, and the basis of the span of a set's samples off them."""

    frame: Frame
    background: Background  # along the coordinates
    means: Tensor  # (n_classes, n_coordinates)
    variances_of_means: Tensor  # (n_coordinates,)
    proportions: Tensor  # (n_coordinates,) of all axes that a coordinate stands for
    offsets: Tensor  # (n_sets, size, n_coordinates) of the members of each set, in double precision
    basis: Tensor | None  # (n_sets, size, n_axes off the first); None: the coordinates are those of the frame

    def coordinates(self, samples: HeldOutSamples, chunk: Chunk) -> Tensor:
        """Coordinates of the samples of a chunk, (n_pairs, n_scored, n_coordinates)."""
        sources, given, numbers = samples.sources[chunk.positions], samples.coordinates, chunk.numbers
        if self.basis is None:
            return self.frame.coordinates(sources) if given is None else given[chunk.positions]
        if given is None:
            is_member = sources.unsqueeze(2) == chunk.sets.members[numbers].unsqueeze(1)
            places = is_member.byte().argmax(2).unsqueeze(2).expand(-1, -1, self.means.shape[1])
            return self.means[self.frame.samples.classes[sources]] + self.offsets[numbers].gather(1, places)
        given, n_first = given[chunk.positions], self.frame.n_axes - self.basis.shape[2]
        return torch.cat([given[..., :n_first], given[..., n_first:] @ self.basis[numbers].mT], dim=2)


def n_coordinates(frame: Frame, size: int) -> int:
    """Count the coordinates of a view of sets of ``size`` samples."""
    n_few = min(len(frame.means), frame.n_axes) + size
    return n_few if n_few <= MOST_COORDINATES * frame.n_axes else frame.n_axes


def view_of(frame: Frame, background: Background, sets: Sets, *, as_it_is: bool = False) -> View:
    """Choose few coordinates, unless there are about as many as axes, or the frame is wanted ``as_it_is``."""
    size, n_first = sets.members.shape[1], min(len(frame.means), frame.n_axes)
    offsets = frame.offsets[sets.members].double()
    if as_it_is or n_coordinates(frame, size) == frame.n_axes:
        proportions = torch.full_like(frame.within, 1 / frame.n_axes)
        return View(frame, background, frame.means, frame.variances_of_means, proportions, offsets, None)
    off = offsets[..., n_first:]
    if size == 1:
        lengths = torch.linalg.vector_norm(off, dim=2, keepdim=True)
        basis = off / lengths.clamp_min(torch.finfo(off.dtype).tiny)
    else:
        off = torch.where((sets.members < 0).unsqueeze(2), 0.0, off)
        basis = torch.linalg.qr(off.mT)[0].mT
        lengths = off @ basis.mT
    n_axes_each = (frame.n_axes - n_first) / size

    def along(values: Tensor) -> Tensor:
        """Values along the coordinates; they are equal along all axes off the first."""
        return torch.cat([values[:n_first], values[-1:].expand(size)])

    return View(
        frame,
        background._replace(inverse=along(background.inverse)),
        functional.pad(frame.means[:, :n_first], (0, size)),
        along(frame.variances_of_means),
        functional.pad(torch.ones_like(frame.within[:n_first]), (0, size), value=n_axes_each) / frame.n_axes,
        torch.cat([offsets[..., :n_first], lengths], dim=2),
        basis,
    )
