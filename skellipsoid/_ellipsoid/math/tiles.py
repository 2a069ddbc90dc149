"""Products of samples with the axes of their classes: in runs of one class, or in tiles of equal size.

On a CPU samples are sorted by their class, and the axes of each class multiply its run of samples. That pads and copies
nothing, but costs several operators for each class. Where classes have few samples each, and on a GPU, samples are
sorted into tiles of equal size, and the axes of the classes are padded with zeros to equal numbers: one batched product
serves all tiles. The number of operators does not depend on the number of classes, and on a GPU nothing is read back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Most places of a tile on a GPU, where the number of tiles is not read back: all that there may be are computed.
MOST_PLACES = 128
#: Places of the first tile of each class, relative to the mean number of samples of a class.
ROOM = 1.25
#: Memory of padded axes relative to that of the axes, at most.
MOST_PADDING = 2
#: Runs are faster than tiles from this mean number of samples on, of the classes that are present; or up to this number
#: of samples in all, each of which is a run.
LONG_RUN, FEW_RUNS = 8, 8
#: Classes for each sample above which no class has a tile of its own: copying the axes of the samples' classes is then
#: faster than reading those of all classes.
FEW_SAMPLES = 4
#: A class, and its samples, which stand together.
Run = tuple[int, slice]


def reads_are_free(device: torch.device) -> bool:
    """Whether the host reads a number without waiting for the device."""
    return device.type == "cpu"


def runs_of(ordered: Tensor, n_classes: int) -> list[Run] | None:
    """Find runs of one class among classes in ascending order; ``None`` where tiles are faster."""
    if not reads_are_free(ordered.device) or torch.compiler.is_compiling():
        return None
    counts = torch.bincount(ordered, minlength=n_classes)
    present = torch.nonzero(counts).flatten()
    if not len(present) or LONG_RUN * len(present) > len(ordered):
        return None
    ends = counts[present].cumsum(0).tolist()
    return list(zip(present.tolist(), map(slice, [0, *ends[:-1]], ends), strict=True))


def single_runs(classes: Tensor) -> list[Run] | None:
    """Take each of a few samples for a run; ``None`` if there are more, or none."""
    if not 0 < len(classes) <= FEW_RUNS or not reads_are_free(classes.device) or torch.compiler.is_compiling():
        return None
    return [(label, slice(place, place + 1)) for place, label in enumerate(classes.tolist())]


@dataclass(frozen=True)
class Tiles:
    """Places of samples in tiles; all samples of a tile are of one class.

    The first ``n_first`` tiles are those of all classes in their order, and the others hold the samples that remain.
    Sample 0 fills places that are not used. If there are few samples, each is a tile, and there are no first tiles.
    """

    sources: Tensor  # (n_tiles * size,) sample of each place
    classes: Tensor  # (n_tiles - n_first,) of the other tiles
    places: Tensor  # (n_samples,) of each sample
    size: int
    n_first: int

    @classmethod
    def of(cls, classes: Tensor, n_classes: int) -> "Tiles":
        """Sort samples of these classes into tiles."""
        n_samples, device = len(classes), classes.device
        if FEW_SAMPLES * n_samples < n_classes:
            own = torch.arange(n_samples, device=device)
            return cls(own, classes, own, 1, 0)
        reads = reads_are_free(device)
        size = 8 * int(np.ceil(max(1, n_samples) * ROOM / n_classes / 8))
        size = size if reads else min(size, MOST_PLACES)
        ordered, order = classes.sort(stable=True)
        starts = torch.searchsorted(ordered, torch.arange(n_classes + 1, device=device))
        n_more = (starts.diff() - 1).clamp_min(0) // size  # tiles beside the first one
        ends = n_more.cumsum(0)
        n_others = int(ends[-1]) if reads else n_samples // size
        # The place of a sample among those of its class goes on from the first tile to the others.
        ranks = torch.arange(n_samples, device=device) - starts[ordered]
        others = (n_classes + ends - n_more - 1) * size
        found = ranks + torch.where(ranks < size, ordered * size, others[ordered])
        sources = order.new_zeros((n_classes + n_others) * size).scatter_(0, found, order)
        places = torch.empty_like(order).scatter_(0, order, found)
        tiles = torch.arange(n_others, device=device)
        of_others = torch.searchsorted(ends, tiles, right=True).clamp_max_(n_classes - 1)
        return cls(sources, of_others, places, size, n_classes)

    def gather(self, values: Tensor, rows: Tensor | None = None) -> Tensor:
        """Put values of samples, or those of ``rows`` for each sample, in their places, (n_tiles, size, …)."""
        if not self.n_first:
            return (values if rows is None else values.index_select(0, rows)).unsqueeze(1)
        shape = len(self.sources) // self.size, self.size, *values.shape[1:]
        return values.index_select(0, self.sources if rows is None else rows[self.sources]).view(shape)

    def subtract(self, values: Tensor, by_class: Tensor) -> Tensor:
        """Subtract the vectors of their classes, (n_classes, n), from tiles, (n_tiles, size, n), in place."""
        values[: self.n_first].sub_(by_class.unsqueeze(1)[: self.n_first])
        if len(self.classes):
            values[self.n_first :].sub_(by_class.index_select(0, self.classes).unsqueeze(1))
        return values

    def scatter(self, values: Tensor) -> Tensor:
        """Take what was computed in each place back to its sample, (n_samples, …)."""
        found = values.flatten(0, 1)
        return found.index_select(0, self.places) if self.n_first else found

    def product(self, values: Tensor, by_class: Tensor) -> Tensor:
        """Multiply tiles, (n_tiles, size, …, n), by the matrices of their classes, (n_classes, n, m)."""
        found = self._with_matrices(torch.bmm, values.flatten(1, -2), by_class)
        return found.view(*values.shape[:-1], by_class.shape[2])

    def left_product(self, by_class: Tensor, values: Tensor) -> Tensor:
        """Multiply the matrices of the classes, (n_classes, m, n), by tiles, (n_tiles, n, size)."""
        return self._with_matrices(lambda tiles, matrices: torch.bmm(matrices, tiles), values, by_class)

    def _with_matrices(self, multiply: Callable[[Tensor, Tensor], Tensor], values: Tensor, by_class: Tensor) -> Tensor:
        """Call ``multiply`` with tiles and the matrices of their classes; those of the first tiles are not copied."""
        if not self.n_first:
            return multiply(values, by_class.index_select(0, self.classes))
        found = multiply(values[: self.n_first], by_class)
        if not len(self.classes):
            return found
        return torch.cat([found, multiply(values[self.n_first :], by_class.index_select(0, self.classes))])


class Bucket(NamedTuple):
    """Classes with about equally many axes."""

    axes: Tensor  # (n_own, n_axes, n_features) zeros pad
    weights: Tensor  # (n_own, n_axes, n_weightings) zeros pad
    ranks: list[int]  # (n_own,) numbers of axes without padding

    def squared_norms(
        self, samples: Tensor, rows: Tensor, classes: Tensor, centres: Tensor, whole: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Compute what ``PaddedAxes.squared_norms`` does, for the classes of this bucket."""
        if (runs := single_runs(classes)) is not None:
            return self._of_runs(samples, rows, runs, centres, whole)
        ordered, order = classes.sort(stable=True)
        if (runs := runs_of(ordered, len(self.axes))) is not None:
            along, squares = self._of_runs(samples, rows[order], runs, centres, whole)
            back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
            return along[back], None if squares is None else squares[back]
        tiles = Tiles.of(classes, len(self.axes))
        offsets = tiles.subtract(tiles.gather(samples, rows), centres)
        squares = tiles.left_product(self.axes, offsets.mT).square_()
        along = tiles.scatter(tiles.left_product(self.weights.mT, squares).mT)
        return along, tiles.scatter(offsets.square_().sum(2)) if whole else None

    def _of_runs(
        self, samples: Tensor, rows: Tensor, runs: list[Run], centres: Tensor, whole: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Compute both for rows that stand in runs."""
        along, squares = [], []
        for label, own in runs:
            offsets, n_axes = samples.index_select(0, rows[own]).sub_(centres[label]), self.ranks[label]
            found = torch.mm(offsets, self.axes[label, :n_axes].T).square_()
            along.append(torch.mm(found, self.weights[label, :n_axes]))
            if whole:
                squares.append(offsets.square_().sum(1))
        return torch.cat(along), torch.cat(squares) if whole else None


@dataclass(frozen=True)
class PaddedAxes:
    """Axes of all classes and one or several weights of each axis, padded to equal numbers within buckets of classes.

    Padding at most doubles the memory of the axes.
    """

    buckets: list[Bucket]
    members: list[Tensor]  # of each bucket, (n_own,)
    bucket: Tensor  # (n_classes,) of each class
    place: Tensor  # (n_classes,) of each class in its bucket

    @classmethod
    def of(cls, axes: Tensor, weights: Tensor, starts: list[int]) -> "PaddedAxes":
        """Pad the axes of all classes, (n_axes of all, n_features), with weights (n_axes of all, n_weightings)."""
        members = of_like_size(np.diff(starts))
        buckets = [_padded(axes, weights, np.array(starts), own) for own in members]
        found = [torch.from_numpy(own).to(axes.device) for own in members]
        bucket = torch.empty(len(starts) - 1, dtype=torch.int64, device=axes.device)
        place = torch.empty_like(bucket)
        for number, own in enumerate(found):
            bucket[own], place[own] = number, torch.arange(len(own), device=axes.device)
        return cls(buckets, found, bucket, place)

    def squared_norms(
        self, samples: Tensor, rows: Tensor, classes: Tensor, centres: Tensor, *, whole: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Σ_j w_j ⟨v_j, d⟩² by the axes of a class, (n_pairs, n_weightings), and if ``whole`` ‖d‖², (n_pairs,).

        d is the difference of the sample in a row of ``samples`` and the centre of a class. The rows are those of the
        pairs, and each pair has its class.
        """
        if len(self.buckets) == 1:
            return self.buckets[0].squared_norms(samples, rows, classes, centres, whole)
        along = samples.new_empty(len(rows), self.buckets[0].weights.shape[2])
        squares = samples.new_empty(len(rows)) if whole else None
        buckets = self.bucket[classes]
        counts = (buckets == torch.arange(len(self.buckets), device=samples.device).unsqueeze(1)).sum(1).tolist()
        of_bucket = torch.split(buckets.argsort(stable=True), counts)
        for bucket, members, own in zip(self.buckets, self.members, of_bucket, strict=True):
            if len(own):
                places = self.place[classes[own]]
                found, off = bucket.squared_norms(samples, rows[own], places, centres[members], whole)
                along[own] = found
                if squares is not None and off is not None:
                    squares[own] = off
        return along, squares


def of_like_size(sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Divide things of these sizes into buckets in which padding at most doubles the memory, the largest first."""
    rest = np.argsort(-sizes, kind="stable")
    found = []
    while len(rest):
        own = sizes[rest]
        fits = own[0] * len(own) <= MOST_PADDING * own.sum()
        n_own = len(own) if fits else int((MOST_PADDING * own > own[0]).sum())
        found.append(np.sort(rest[:n_own]))
        rest = rest[n_own:]
    return found


def _padded(axes: Tensor, weights: Tensor, starts: NDArray[np.int64], members: NDArray[np.int64]) -> Bucket:
    ranks = np.diff(starts)[members]
    shape = len(members), int(ranks.max())
    if shape[0] * shape[1] == len(axes):  # all classes, and no padding: nothing is copied
        return Bucket(axes.view(*shape, axes.shape[1]), weights.view(*shape, weights.shape[1]), ranks.tolist())
    inside = np.arange(shape[1]) < ranks[:, np.newaxis]
    given = (starts[members][:, np.newaxis] + np.arange(shape[1]))[inside]
    place, source = (torch.from_numpy(found).to(axes.device) for found in (np.flatnonzero(inside), given))

    def pad(values: Tensor) -> Tensor:
        padded = values.new_zeros(shape[0] * shape[1], values.shape[1])
        return padded.index_copy_(0, place, values[source]).view(*shape, values.shape[1])

    return Bucket(pad(axes), pad(weights), ranks.tolist())
