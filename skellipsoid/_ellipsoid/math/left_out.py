"""Leave-one-out: the exact change of class means and scatters when a set of samples is left out.

A class has the mean c and the weight w_k of all its samples. A set has samples z of the weight w in it, together w_R.
Without them, and with w' = w_k − w_R:

- the scatter is less by VᵀV, where V has a row √w (z − c + δ Σ w (z − c)) for each sample of the set, with
  δ = (√(w_k / w') − 1) / w_R;
- the mean moves by −Σ w (z − c) / w' = σV, where σ = −√w / √(w_k w').

So every covariance of scatters and means changes by a term of low rank, and quadratic forms of its inverse follow from
the Woodbury identity. A set may have samples of several classes: then V has the rows of all of them.

Why not a few folds? The same shapes with five plain folds have an F1 of 39.0 in place of 69.6 (24 texts a class;
``skellipsoid-bench/TRIED.md``): without a fifth of a class the others score unlike those of the fit.

What changes without a set, and what is kept, with the largest difference from a fit on the remaining samples. It was
measured on 12 to 16 classes of 26 samples in 4, 40 and 330 dimensions, with sets of one to seven samples.

==================================================== ======================================================
class means, μ, scatters, degrees of freedom         change
T, w̄                                                 change; a w̄ I shrinks as T does in the mean over the axes:
                                                     0.7 % with sets of up to 6 % of all samples
B₀, its target b γ T, γ, classes that lose all       change; along the axes of B by one factor
span                                                 kept, without the set's axes in the mean γ: 0.001 %
typical variance (classes without spread alone)      kept: 3 %
class held out: B₀, μ, γ, number of classes          change: a quarter of the class's proportion of all classes
class held out: T                                    loses the set, and keeps the rest of the class: 0.8 % in the
                                                     mean of 16 classes, 0.2 % of 40
origin and unit of the features, outliers, copies    kept: distances do not depend on the first two
==================================================== ======================================================
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._samples.samples import Integers, Samples
from ..._torch.devices import chunk_bytes
from .tiles import of_like_size

#: Rounding: a smaller proportion of a class's weight is 0.
SMALLEST_PROPORTION = 1e-9
#: Single samples stand in the order of the classes that score them, rather than of their own, where a chunk has fewer
#: than the first of them for each class, and classes have as many samples as the second: changes are computed more
#: often, and the axes of a class are read less often. A fit of 32,000 × 384 of 200 classes takes .6 of the time, one of
#: 8,000 as long as before.
SHORT_RUN, LONG_AXES = 32, 64


def most_elements(device: torch.device) -> int:
    """Largest number of elements of one chunk, for memory alone: a chunk takes about 4 times as many."""
    return chunk_bytes(device) // 32


class Sets(NamedTuple):
    """Sets of about the same size.

    ``size`` is the number of samples, ``n_touched`` the number of classes with samples of the set. −1 pads both.
    """

    members: Tensor  # (n_sets, size) samples
    touched: Tensor  # (n_sets, n_touched) classes
    places: Tensor  # (n_sets, size) of the members' classes in ``touched``
    roots: Tensor  # (n_sets, size) √w; 0 where padded, and in degenerate classes
    pulls: Tensor  # (n_sets, n_touched) δ
    moves: Tensor  # (n_sets, size) σ
    freedoms: Tensor  # (n_sets, n_touched) remaining degrees of freedom
    exists: Tensor  # (n_sets, n_touched) Boolean: whether any sample remains
    traces: Tensor  # (n_sets,) trace of VᵀV in features

    def at(self, numbers: Tensor | slice) -> "Sets":
        """Select sets."""
        return Sets(*(part[numbers] for part in self))

    def left_out(self, offsets: Tensor) -> "LeftOut":
        """Compute V, given the offsets z − c of the members, (n_sets, size, n_axes), in double precision."""
        n_touched, n_axes = self.touched.shape[1], offsets.shape[2]
        places = torch.arange(n_touched, device=self.places.device).view(1, -1, 1)
        inside = (self.places.unsqueeze(1) == places).to(self.roots.dtype)
        roots = self.roots.unsqueeze(2)
        weighted = offsets * roots
        sums = (inside * self.roots.unsqueeze(1)) @ weighted * self.pulls.unsqueeze(2)
        V = weighted + roots * sums.gather(1, self.places.unsqueeze(2).expand(-1, -1, n_axes))
        moves = inside * self.moves.unsqueeze(1)
        if len(roots[0]) <= n_touched * n_axes:
            return LeftOut(V, moves, inside)
        # More rows than axes: fewer have the same products.
        turns, V = torch.linalg.qr(V.unsqueeze(1) * inside.unsqueeze(3))
        moves = torch.eye(n_touched).to(moves).unsqueeze(2) * (moves.unsqueeze(2) @ turns)
        inside = torch.eye(n_touched).to(moves).unsqueeze(2).expand(moves.shape)
        return LeftOut(V.flatten(1, 2), moves.flatten(2), inside.flatten(2))


class LeftOut(NamedTuple):
    """What the scatters and means of the touched classes lose with the sets."""

    V: Tensor  # (n_sets, size, n_axes)
    moves: Tensor  # (n_sets, n_touched, size) σ of the class's rows of V, 0 for others
    inside: Tensor  # (n_sets, n_touched, size) 1 for the class's rows of V, 0 for others


class Chunk(NamedTuple):
    """Sets, and samples that are scored without them, by pairs of a set and a class that scores."""

    sets: Sets
    numbers: Tensor | slice  # (n_pairs,) of the sets; all of them, if each set has one pair: no copy
    labels: Tensor  # (n_pairs,) class that scores
    positions: Tensor  # (n_pairs, n_scored) of the samples; −1 pads
    held_out: Tensor  # (n_sets,) class that is held out besides; the number of classes for none

    def split(self, n_pairs: int) -> Iterator["Chunk"]:
        """Divide a chunk of one set into some of so many pairs."""
        for first in range(0, len(self.labels), n_pairs):
            part = slice(first, first + n_pairs)
            numbers = torch.zeros_like(self.labels[part])
            yield self._replace(numbers=numbers, labels=self.labels[part], positions=self.positions[part])


class LeftOutSets:
    """The sets of all samples.

    Parameters
    ----------
    samples : Samples
    degenerate : Tensor of shape (n_classes,)
        Classes without spread: their scatter is in no statistic.
    offsets : Tensor of shape (n_samples, n_axes)
        Samples less their class means, in the coordinates of their span.
    """

    def __init__(self, samples: Samples, degenerate: Tensor, offsets: Tensor) -> None:
        self.weights = _ClassWeights(samples)
        self.freedoms = torch.where(degenerate, 0.0, self.weights.freedoms)
        runs = samples.set_runs()
        #: Where the set of each sample stands: its number in ``of_size``, and its place there.
        self.place = torch.empty(len(samples), 2, dtype=torch.long, device=degenerate.device)
        #: Degrees of freedom of each sample's own class without its set.
        self.own_freedoms = torch.empty_like(samples.weights)
        self.of_size: list[Sets] = []
        classes = samples.classes.cpu().numpy()
        for numbers in of_like_size(runs.sizes):
            mine = numbers[np.argsort(classes[runs.table(numbers)[:, 0]], kind="stable")]
            sets = self._sets(samples, runs.table(mine), degenerate)
            at_once = max(1, most_elements(offsets.device) // (offsets.shape[1] * sets.members.shape[1]))
            traces = sets.roots.new_empty(len(mine))
            for first in range(0, len(mine), at_once):
                part = slice(first, first + at_once)
                traces[part] = _traces(sets.at(part), offsets)
            place = np.full(len(runs.sizes), -1)
            place[mine] = np.arange(len(mine))
            scored = np.flatnonzero(place[runs.numbers] >= 0)
            places = torch.from_numpy(place[runs.numbers[scored]]).to(self.place)
            of_samples = torch.from_numpy(scored).to(self.place)
            self.place[of_samples] = torch.stack([torch.full_like(places, len(self.of_size)), places], dim=1)
            is_own = sets.touched[places] == samples.classes[of_samples].unsqueeze(1)
            self.own_freedoms[of_samples] = torch.where(is_own, sets.freedoms[places], 0.0).sum(1)
            self.of_size.append(sets._replace(traces=traces))

    def _sets(self, samples: Samples, members: Integers, degenerate: Tensor) -> Sets:
        """Compute what the classes of the ``members`` lose with each set, but for ``traces``."""
        classes = samples.classes.cpu().numpy()
        touched, places = (torch.from_numpy(found).to(degenerate.device) for found in _touched(members, classes))
        numbers = torch.from_numpy(members).to(degenerate.device)
        weights = samples.weights[numbers] * (numbers >= 0)
        totals = self.weights.totals[touched] * (touched >= 0)
        of_set = torch.zeros_like(totals).scatter_add_(1, places, weights)
        exists = totals - of_set > SMALLEST_PROPORTION * totals
        remaining = torch.where(exists, totals - of_set, torch.inf)
        freedoms = remaining - self.weights.squares(numbers, weights, touched, places) / remaining
        has_spread = exists & (freedoms > SMALLEST_PROPORTION * remaining) & ~degenerate[touched]
        roots = torch.where(degenerate[touched].gather(1, places), 0.0, weights.sqrt())
        pulls = torch.where(exists, ((totals / remaining).sqrt() - 1) / of_set.clamp_min(1e-300), 0.0)
        moves = -roots * (totals * remaining).rsqrt().gather(1, places)
        freedoms = torch.where(has_spread, freedoms, 0.0)
        return Sets(numbers, touched, places, roots, pulls, moves.nan_to_num(), freedoms, exists, totals[:, 0])

    def chunks(
        self,
        sources: Tensor,
        labels: Tensor,
        n_elements: Callable[[Sets, int], int],
        held_out: Tensor | None = None,
        are_large: Callable[[Sets], bool] = lambda sets: False,
    ) -> Iterator[Chunk]:
        """Return the samples ``sources``, scored by the classes ``labels``, with their sets.

        Classes may be held out besides, one for each sample. ``n_elements`` gives, for sets and a number of samples
        that a class scores without one of them, about how many elements that takes. Each set of those that
        ``are_large`` is one chunk, for what changes without it takes longest.
        """
        place, n_classes = self.place[sources], len(self.freedoms)
        changes = place[:, 1] * (n_classes + 1) + (n_classes if held_out is None else held_out)
        may_sort = len(self.place) >= LONG_AXES * n_classes
        for number, sets in enumerate(self.of_size):
            mine = torch.nonzero(place[:, 0] == number).flatten()
            if not len(mine):
                continue
            of_change, of_label = changes[mine], labels[mine]
            # Pairs of one set stand together: what changes without it is computed once. Sets of one class do, too, so
            # that few classes score the samples of a chunk.
            keys = of_change * n_classes + of_label
            found, pair, counts = torch.unique(keys, return_inverse=True, return_counts=True)
            of_pair = mine[torch.argsort(pair, stable=True)]
            starts = counts.cumsum(0) - counts
            # Powers of two, unlike the sizes of sets: the number of operators does not depend on how many samples are
            # drawn of a set, as a test asks for; of_like_size gives a bucket more or less.
            n_scored = torch.log2(counts.double()).ceil().long()
            each_alone = are_large(sets)
            if each_alone:
                n_scored = n_scored.amax().expand_as(n_scored)
            for power in torch.unique(n_scored).tolist():
                some, most = torch.nonzero(n_scored == power).flatten(), 2**power
                at_once = max(1, most_elements(place.device) // n_elements(sets, most))
                if may_sort and sets.members.shape[1] == 1 and at_once < SHORT_RUN * n_classes:
                    some = some[(found[some] % n_classes).argsort(stable=True)]
                columns = torch.arange(most, device=keys.device)
                of_set = torch.unique_consecutive(found // n_classes, return_counts=True)[1] if each_alone else None
                for pairs in torch.split(some, at_once if of_set is None else of_set.tolist()):
                    # Pairs of one class that scores stand together, for ``ClassAxes.inner_products``.
                    part = pairs[(found[pairs] % n_classes).argsort(stable=True)]
                    places = starts[part].unsqueeze(1) + columns
                    inside = columns < counts[part].unsqueeze(1)
                    positions = torch.where(inside, of_pair[places.clamp_max(len(of_pair) - 1)], -1)
                    first = positions[:, 0]
                    used, numbers = torch.unique(changes[first], return_inverse=True)
                    if len(used) == len(first):
                        used, numbers = changes[first], slice(None)
                    some_sets, classes = sets.at(used // (n_classes + 1)), used % (n_classes + 1)
                    yield Chunk(some_sets, numbers, labels[first], positions, classes)


def _traces(sets: Sets, offsets: Tensor) -> Tensor:
    """Trace of VᵀV of each set, (n_sets,)."""
    return sets.left_out(offsets[sets.members].double()).V.square().sum((1, 2))


class _ClassWeights:
    """Weights of the classes and of the units in them."""

    def __init__(self, samples: Samples) -> None:
        classes, weights = samples.classes, samples.weights
        n_units = samples.units.max(initial=0) + 1
        found, units = np.unique(classes.cpu().numpy() * n_units + samples.units, return_inverse=True)
        self.units = torch.from_numpy(units.ravel()).to(classes.device)
        self.of_unit = weights.new_zeros(len(found)).index_add_(0, self.units, weights)
        zeros = weights.new_zeros(samples.n_classes)
        self.totals = zeros.index_add(0, classes, weights)
        of_class = torch.from_numpy(found // n_units).to(classes.device)
        self.squared_units = zeros.index_add(0, of_class, self.of_unit.square())  # Σ w_u²
        if samples.moments is not None:
            self.totals = self.squared_units = torch.from_numpy(samples.moments.counts).to(weights)
        #: w_k − Σ w_u² / w_k for the weights w_u of the units; for n units of weight 1 this is n − 1.
        self.freedoms = self.totals - self.squared_units / self.totals

    def of_units(self, numbers: Tensor) -> Tensor:
        """Weight of the units of samples, (n_samples,)."""
        return self.of_unit[self.units[numbers]]

    def squares(self, members: Tensor, weights: Tensor, touched: Tensor, places: Tensor) -> Tensor:
        """Σ w_u² of the touched classes without the sets, (n_sets, n_touched)."""
        units, of_unit = self.units[members], weights
        if members.shape[1] > 1:
            numbers = torch.arange(len(units), device=units.device).unsqueeze(1) * len(self.of_unit) + units
            _, pairs = torch.unique(numbers, return_inverse=True)
            sums = weights.new_zeros(int(pairs.max()) + 1).index_add_(0, pairs.flatten(), weights.flatten())
            of_unit = sums[pairs]
        of_sets = weights * (2 * self.of_unit[units] - of_unit)
        return self.squared_units[touched].scatter_add(1, places, -of_sets)


def _touched(members: Integers, classes: Integers) -> tuple[Integers, Integers]:
    """Classes of the members of each set, and the place of each member's class among them."""
    labels, n_classes = classes[np.where(members < 0, members[:, :1], members)], classes.max() + 1
    found, inverse = np.unique(labels + n_classes * np.arange(len(labels))[:, np.newaxis], return_inverse=True)
    of_set = found // n_classes
    starts = np.searchsorted(of_set, np.arange(len(labels)))
    touched: NDArray[np.int64] = np.full((len(labels), np.bincount(of_set).max()), -1)
    touched[of_set, np.arange(len(found)) - starts[of_set]] = found % n_classes
    return touched, inverse.reshape(labels.shape) - starts[:, np.newaxis]
