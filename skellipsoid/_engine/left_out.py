"""Leave-one-out: the exact change of class means and scatters when a set of samples is left out.

A class has the weighted mean c, the scatter Σ w (z − c)(z − c)ᵀ and the total weight W. A set has the weight W_R and
the mean c + d. Without it, and with W' = W − W_R:

- the scatter is less by VᵀV, where V has a row √w (z − c) for each sample of the set and one row (W_R / √W') d;
- the mean moves by −(W_R / W') d = Vᵀσ.

So every covariance of scatters and means changes by a term of low rank, and quadratic forms of its inverse follow from
the Woodbury identity.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .samples import Removal, Samples

#: Largest number of elements of one chunk.
MOST_NUMBERS = 2**20
#: A share of a class's weight below this is rounding.
SMALLEST_SHARE = 1e-9


def onto(values: Tensor, axes: Tensor) -> Tensor:
    """Change to other axes, (n_axes, n_new_axes), or to other units, (n_axes,)."""
    return values * axes if axes.dim() == 1 else values @ axes


class Removed(NamedTuple):
    """Change of classes without each of several sets of their samples."""

    rows: Tensor  # (n_sets, size, n_axes) V
    moves: Tensor  # (n_sets, size) σ
    freedom: Tensor  # (n_sets,) remaining degrees of freedom
    exists: Tensor  # (n_sets,) Boolean: whether any sample is left

    def at(self, places: Tensor) -> "Removed":
        """Select the sets at ``places``."""
        return Removed(*(part[places] for part in self))

    def moved(self) -> Tensor:
        """How far the class's mean moves, (n_sets, n_axes)."""
        return (self.moves.unsqueeze(1) @ self.rows).squeeze(1)

    def onto(self, axes: Tensor) -> "Removed":
        """Change to other coordinates."""
        return self._replace(rows=onto(self.rows, axes))


class ClassRows(NamedTuple):
    """Samples of one class about its mean."""

    members: Tensor  # (n_rows,) numbers among all samples
    offsets: Tensor  # (n_rows, n_axes)
    weights: Tensor  # (n_rows,)
    units: Tensor  # (n_rows,) equal numbers are duplicates

    def unit_weights(self) -> Tensor:
        """W_u, (n_units,)."""
        return self.weights.new_zeros(int(self.units.max()) + 1).index_add_(0, self.units, self.weights)

    def degrees_of_freedom(self) -> float:
        """W − Σ W_u² / W for the weights W_u of the units; for n units of weight 1 this is n − 1."""
        total = self.weights.sum()
        return float(total - self.unit_weights().square().sum() / total)

    def remove(self, members: Tensor) -> Removed:
        """Leave sets of samples out; ``members`` are positions in the class, (n_sets, size), padded with −1."""
        inside = members >= 0
        weights = self.weights[members] * inside
        rows = self.offsets[members] * inside.unsqueeze(2)
        total, removed = self.weights.sum(), weights.sum(1)
        exists = total - removed > SMALLEST_SHARE * total
        remaining = torch.where(exists, total - removed, 1.0)
        if rows.shape[1] == 1:  # V's two rows are parallel
            roots = (weights + weights.square() / remaining.unsqueeze(1)).sqrt()
            taken, moves = rows * roots.unsqueeze(2), -weights / remaining.unsqueeze(1) / roots
        else:
            mean = (weights.unsqueeze(2) * rows).sum(1, keepdim=True) / remaining.sqrt().view(-1, 1, 1)
            taken = torch.cat([rows * weights.sqrt().unsqueeze(2), mean], dim=1)
            moves = torch.cat([torch.zeros_like(weights), -remaining.rsqrt().unsqueeze(1)], dim=1)
            if taken.shape[1] > taken.shape[2]:
                turn, taken = torch.linalg.qr(taken)
                moves = (moves.unsqueeze(1) @ turn).squeeze(1)
        freedom = remaining - self._squared_units(members, weights) / remaining
        has_spread = exists & (freedom > SMALLEST_SHARE * remaining)
        return Removed(taken, moves, torch.where(has_spread, freedom, 0.0), exists)

    def _squared_units(self, members: Tensor, weights: Tensor) -> Tensor:
        """Σ W_u² without the sets, (n_sets,)."""
        totals, units = self.unit_weights(), self.units[members]
        of_unit = weights
        if units.shape[1] > 1:
            numbers = torch.arange(len(units), device=units.device).unsqueeze(1) * len(totals) + units
            _, pairs = torch.unique(numbers, return_inverse=True)
            sums = weights.new_zeros(int(pairs.max()) + 1).index_add_(0, pairs.flatten(), weights.flatten())
            of_unit = sums[pairs]
        return totals.square().sum() - (weights * (2 * totals[units] - of_unit)).sum(1)


class Moved(NamedTuple):
    """Class means that move when the sets of samples are left out."""

    places: Tensor  # (n_pairs,) of the samples
    labels: Tensor  # (n_pairs,) classes that move
    moves: Tensor  # (n_pairs, n_axes)
    exists: Tensor  # (n_pairs,) Boolean: whether any sample of the class is left


class LeftOutSets:
    """The set of every sample, left out of the sample's own class, and of other classes with samples of the set.

    Parameters
    ----------
    samples : Samples
    classes : list of ClassRows
    """

    def __init__(self, samples: Samples, classes: list[ClassRows]) -> None:
        device = samples.rows.device
        self.place = torch.full((len(samples), 2), -1, device=device)
        sizes: dict[int, list[Removed]] = {}
        # Pairs of a sample and another class that has samples of its set.
        pairs: list[NDArray[np.int64]] = []
        foreign: list[Removed] = []
        for label, part in enumerate(classes):
            own, others = samples.removals(part.members, label)
            for removal in own:
                members, scored = (torch.from_numpy(numbers).to(device) for numbers in removal[:2])
                found = part.remove(members)
                size = int(np.ceil(np.log2(found.rows.shape[1])))
                of_size = sizes.setdefault(size, [])
                start = sum(len(earlier.rows) for earlier in of_size)
                places = torch.arange(len(members), device=device).unsqueeze(1).expand_as(scored)[scored >= 0]
                self.place[part.members[scored[scored >= 0]]] = torch.stack(
                    [torch.full_like(places, size), places + start], dim=1
                )
                of_size.append(found)
            if others is not None:
                pairs.append(_pairs_of(others, label))
                foreign.append(part.remove(torch.from_numpy(others.members).to(device)))
        self.of_size = {size: _joined(found) for size, found in sorted(sizes.items())}
        #: Samples, classes and places in ``foreign`` of these pairs, (3, n_pairs), in the order of the samples.
        self.pairs = torch.empty(3, 0, dtype=torch.long, device=device)
        self.foreign: Removed | None = None
        if pairs:
            starts = np.cumsum([0] + [len(found.rows) for found in foreign])
            numbers = np.concatenate(
                [found + np.array([0, 0, start]) for found, start in zip(pairs, starts, strict=False)]
            )
            self.pairs = torch.from_numpy(numbers[np.argsort(numbers[:, 0], kind="stable")].T).to(device)
            self.foreign = _joined(foreign)

    def chunks(self, rows: Tensor, n_numbers: int) -> Iterator[tuple[Tensor, Removed]]:
        """Give positions in ``rows`` and their sets in chunks; each takes size × ``n_numbers`` elements."""
        for size, removed in self.of_size.items():
            mine = torch.nonzero(self.place[rows, 0] == size).flatten()
            at_once = max(1, MOST_NUMBERS // (max(n_numbers, removed.rows.shape[2]) * removed.rows.shape[1]))
            for part in torch.split(mine, at_once):
                if len(part):
                    yield part, removed.at(self.place[rows[part], 1])

    def foreign_of(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Places in ``rows``, classes and places in ``foreign`` of the pairs of these samples, which are distinct."""
        first = torch.searchsorted(self.pairs[0].contiguous(), rows)
        last = torch.searchsorted(self.pairs[0].contiguous(), rows, right=True)
        places = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), last - first)
        within = torch.arange(len(places), device=rows.device) - ((last - first).cumsum(0) - (last - first))[places]
        found = first[places] + within
        return places, self.pairs[1, found], self.pairs[2, found]

    def moved(self, rows: Tensor, classes: Tensor, removed: Removed, units: Tensor) -> Moved:
        """Give all class means that move without the sets of ``rows``; own classes lose ``removed``, in ``units``."""
        places, labels = torch.arange(len(rows), device=rows.device), classes[rows]
        moves, exists = removed.moved(), removed.exists
        if self.foreign is not None:
            more, of_class, at = self.foreign_of(rows)
            foreign = self.foreign.at(at).onto(units)
            places, labels = torch.cat([places, more]), torch.cat([labels, of_class])
            moves, exists = torch.cat([moves, foreign.moved()]), torch.cat([exists, foreign.exists])
        return Moved(places, labels, moves, exists)

    def onto(self, axes: Tensor) -> "LeftOutSets":
        """Change to other coordinates."""
        found = object.__new__(LeftOutSets)
        found.__dict__.update(self.__dict__)
        found.of_size = {size: removed.onto(axes) for size, removed in self.of_size.items()}
        found.foreign = None if self.foreign is None else self.foreign.onto(axes)
        return found


def _pairs_of(removal: Removal, label: int) -> NDArray[np.int64]:
    """Sample, class and set of each sample that is scored by another class without the sample's set."""
    rows, sets = removal.scored, np.arange(len(removal.scored))[:, np.newaxis]
    inside = rows >= 0
    wanted = np.broadcast_to(sets, rows.shape)[inside]
    return np.stack([rows[inside], np.full(inside.sum(), label), wanted], axis=1)


def _joined(parts: list[Removed]) -> Removed:
    """Concatenate the sets of several classes, padded to the largest."""
    most = max(part.rows.shape[1] for part in parts)

    def padded(values: Tensor) -> Tensor:
        missing = most - values.shape[1]
        return (
            values if not missing else torch.cat([values, values.new_zeros(len(values), missing, *values.shape[2:])], 1)
        )

    rows, moves = (torch.cat([padded(part[i]) for part in parts]) for i in range(2))
    return Removed(rows, moves, *(torch.cat([part[i] for part in parts]) for i in (2, 3)))
