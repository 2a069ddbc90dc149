"""The held-out samples of a fit in closed form, and their table: which class scores each of them, at what distance."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._held_out.table import KNOWN, OF_OTHER_CLASS, REAL, SYNTHETIC, HeldOutTable, ranks_and_gaps
from ..._samples.samples import Floats, Integers, Samples
from ..._torch.distances import nearest_of
from . import class_sizes
from .boundaries import N_NEAREST
from .covariance import HeldOutSamples
from .frames import Frame, label_distances
from .left_out_shapes import LeftOutShapes
from .mixtures import draw_synthetic_classes, n_synthetic

#: At most this many samples of a set are scored as open; and, of many samples, as many of a set are drawn
#: for the choice of the shapes. More samples of one set say little more: with 2 and with 8, F1 is within 0.1.
MOST_OF_SET = 4
#: Largest number of samples whose distances to all class means are computed at once, for memory alone.
MOST_AT_ONCE = 2048


class _Scored(NamedTuple):
    """Samples of one kind, and their distances to each of their nearest classes."""

    part: HeldOutSamples
    distances: Floats  # (n_shrinkages, n_samples, n_nearest)
    sizes: Floats  # (n_samples, n_nearest) effective number of samples of these classes
    allowances: Floats  # (n_samples, n_nearest) of these classes


class TableMaker:
    """Makes the tables of held-out samples: which class scores each of them, and at what distance.

    Parameters
    ----------
    frame : Frame
    real_open : Tensor of shape (n_open, n_features)
    mean_error : float, optional
        e of an earlier fit; ``None`` estimates it.
    """

    def __init__(self, frame: Frame, real_open: Tensor, mean_error: float | None = None) -> None:
        self.frame, self.samples, self.mean_error = frame, frame.samples, mean_error
        #: Effective number of samples of each class, (n_classes,), and its geometric mean. A class without spread has
        #: the radius of a class of that size.
        self.sizes, self.typical_size = frame.sizes
        self.real_open = real_open.double() - frame.origin

    def held_out_samples(self, numbers: Tensor) -> list[HeldOutSamples]:
        """Give known samples the nearest classes and, a few of each set, the nearest other classes.

        Both are without the sample's set, the other class also without the sample's class; with a single class there is
        none. A sample is used if its own class, and any other class, has samples outside the sample's set.
        """
        classes, frame = self.samples.classes, self.frame
        nearest, used = [], []
        for part in torch.split(numbers, MOST_AT_ONCE):
            squares = label_distances(frame, part)
            own = classes[part].unsqueeze(1)
            remains, assigned = squares.gather(1, own).squeeze(1).isfinite(), [_nearest(squares)]
            if len(frame.means) > 1:
                squares.scatter_(1, own, torch.inf)
                remains &= squares.amin(1).isfinite()
                assigned.append(_nearest(squares))
            nearest.append(torch.stack(assigned))
            used.append(remains)
        chosen = torch.cat(used)
        sources, (known, *others) = numbers[chosen], torch.cat(nearest, dim=1)[:, chosen]
        few = torch.from_numpy(few_of_sets(self.samples.sets[sources.cpu().numpy()])).to(chosen.device)
        of_other = [HeldOutSamples(OF_OTHER_CLASS, sources[few], other[few]) for other in others]
        return [HeldOutSamples(KNOWN, sources, known), *of_other]

    def synthetic(self, numbers: Tensor, alpha: float, rng: np.random.Generator) -> HeldOutSamples | None:
        """Draw samples of synthetic classes, with the deviations of known samples, ``numbers``, from their class mean.

        The deviation of one of n samples is divided by √(1 − 1 / n): a mean that it is a part of lies nearer to it.
        """
        if not len(numbers):
            return None
        classes, weights = self.samples.classes[numbers], self.samples.counted_weights[numbers]
        drawn = draw_synthetic_classes(
            classes.cpu().numpy(), n_synthetic(len(numbers)), alpha, rng, weights.cpu().numpy()
        )
        if drawn is None:
            return None
        means, places = drawn
        sources = numbers[torch.from_numpy(places).to(numbers.device)]
        totals = self.frame.sets.weights
        of_unit = totals.of_units(sources) / totals.totals[self.samples.classes[sources]]
        enlarged = (1 - of_unit.clamp_max(0.5)).rsqrt().unsqueeze(1)
        deviations = self.frame.offsets[sources].double() * enlarged
        positions = means.of(self.frame.means) + deviations
        assigned = nearest_of(positions, self.frame.means, N_NEAREST)
        return HeldOutSamples(SYNTHETIC, sources, assigned, positions)

    def tables(
        self, shapes: LeftOutShapes, samples: Sequence[HeldOutSamples], shrinkages: Sequence[float]
    ) -> list[HeldOutTable]:
        """Make the table of the held-out samples, known ones first, for each ρ."""
        parts, tables = [], []
        for part in samples:
            of_kind = shapes.of_held_out_classes() if part.kind == OF_OTHER_CLASS else shapes
            parts.append(self._scored(part, of_kind, shrinkages))
        for i, shrinkage in enumerate(shrinkages):
            mean_error = self._mean_error(parts[0], i)
            found = [self._table(part, i, mean_error) for part in parts]
            if len(self.real_open):
                nearest, assigned, ranks, gaps = self._new(self.real_open, shapes, shrinkage, mean_error)
                found.append(HeldOutTable.of(len(self.frame.means), REAL, nearest, assigned, ranks=ranks, gaps=gaps))
            tables.append(HeldOutTable.joined(found, mean_error))
        return tables

    def table_of_synthetic(
        self, part: HeldOutSamples, shapes: LeftOutShapes, shrinkage: float, mean_error: float
    ) -> HeldOutTable:
        """Make the table of samples of synthetic classes."""
        return self._table(self._scored(part, shapes, [shrinkage]), 0, mean_error)

    def _scored(self, part: HeldOutSamples, shapes: LeftOutShapes, shrinkages: Sequence[float]) -> _Scored:
        """Distances of samples to each of their nearest classes, for each ρ."""
        shape = part.assigned.shape
        distances = shapes.distances(part.of_each_class(), shrinkages).view(len(shrinkages), *shape)
        sizes = self._sizes(part)
        allowances = shapes.allowances[part.assigned] + class_sizes.of_frequencies(sizes, self.sizes[part.assigned])
        return _Scored(part, distances.cpu().numpy(), sizes.cpu().numpy(), allowances.cpu().numpy())

    def _table(self, scored: _Scored, i: int, mean_error: float) -> HeldOutTable:
        """Return a part of the table: each sample is assigned to the class with the least square less its allowance.

        Distances are relative to how far out new samples of classes of these sizes lie. Samples of synthetic classes
        have no class, and all weigh the same.
        """
        part, distances = scored.part, scored.distances[i]
        distances = distances / class_sizes.growths(mean_error, scored.sizes, self.typical_size)
        compared = np.square(distances) - scored.allowances
        numbers, best, classes = np.arange(len(distances)), compared.argmin(axis=1), part.assigned.cpu().numpy()
        nearest = torch.from_numpy(distances[numbers, best])
        assigned = part.assigned[numbers, best]
        if part.kind == SYNTHETIC:
            ranks, gaps = ranks_and_gaps(classes, compared)
            return HeldOutTable.of(len(self.frame.means), part.kind, nearest, assigned, ranks=ranks, gaps=gaps)
        sets, weights = self.samples.sets[part.sources.cpu().numpy()], self.samples.counted_weights[part.sources]
        own = self.samples.classes[part.sources]
        found = ranks_and_gaps(classes, compared, own.cpu().numpy())
        return HeldOutTable.of(len(self.frame.means), part.kind, nearest, assigned, own, weights, sets, *found)

    def with_fresh(
        self, held_out: HeldOutTable, fresh: Samples, shapes: LeftOutShapes, shrinkage: float
    ) -> HeldOutTable:
        """Scale the distances of held-out samples to those of validation samples, and append the latter."""
        features = fresh.features.double() - self.frame.origin
        nearest, assigned, ranks, gaps = self._new(features, shapes, shrinkage, held_out.mean_error, fresh.classes)
        sets = fresh.sets + 1 + int(held_out.sets.max(initial=-1))
        of_fresh = fresh.classes, fresh.counted_weights, sets, ranks, gaps
        return held_out.with_fresh(HeldOutTable.of(held_out.n_classes, KNOWN, nearest, assigned, *of_fresh))

    def _new(
        self, features: Tensor, shapes: LeftOutShapes, shrinkage: float, mean_error: float, own: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Integers, Floats]:
        """Distances of samples that have no part in the shapes, the classes that they are assigned to, ranks, gaps."""
        scorer = shapes.shapes(shrinkage, 1.0, self.growths(mean_error)).scorer(N_NEAREST)
        nearest, distances, compared = scorer.nearest(features)
        places = compared.argmin(dim=1, keepdim=True)
        classes = None if own is None else own.cpu().numpy()
        found = ranks_and_gaps(nearest.cpu().numpy(), compared.cpu().numpy(), classes)
        return distances.gather(1, places).squeeze(1), nearest.gather(1, places).squeeze(1), *found

    def growths(self, mean_error: float) -> Tensor:
        """Growth of the distances and radii of all classes, (n_classes,)."""
        return class_sizes.growths(mean_error, self.sizes, self.typical_size)

    def typical_growth(self, mean_error: float) -> float:
        """Return the growth of a class of typical size, where that of a class of very many samples is 1."""
        return float((1 + mean_error / self.typical_size) ** 0.5)

    def _sizes(self, part: HeldOutSamples) -> Tensor:
        """Effective number of samples of each class that scores; of a sample's own class without its set."""
        sizes = self.sizes[part.assigned]
        if part.kind == SYNTHETIC:
            return sizes
        is_own = part.assigned == self.samples.classes[part.sources].unsqueeze(1)
        return torch.where(is_own, self.frame.sets.own_freedoms[part.sources].unsqueeze(1) + 1, sizes)

    def _mean_error(self, known: _Scored, i: int) -> float:
        """Estimate e from the known samples whose nearest class is their own, unless it is given."""
        if self.mean_error is not None:
            return self.mean_error
        classes = self.samples.classes[known.part.sources]
        is_own = (known.part.assigned[:, 0] == classes).cpu().numpy()
        weights = self.samples.weights[known.part.sources].cpu().numpy()
        columns = known.distances[i, :, 0] ** 2, classes.cpu().numpy(), known.sizes[:, 0], weights
        return class_sizes.estimate_mean_error(*(column[is_own] for column in columns))


def _nearest(squares: Tensor) -> Tensor:
    """Nearest classes, by distances to all of them, (n_samples, n_nearest); the first one in place of those of ∞."""
    found = squares.topk(min(N_NEAREST, squares.shape[1]), dim=1, largest=False)
    return torch.where(found.values.isfinite(), found.indices, found.indices[:, :1])


def few_of_sets(sets: Integers) -> NDArray[np.bool_]:
    """Mark the first samples of each set, (n_samples,)."""
    by_set = np.argsort(sets, kind="stable")
    few = np.empty(len(sets), dtype=bool)
    few[by_set] = np.arange(len(sets)) - np.searchsorted(sets[by_set], sets[by_set]) < MOST_OF_SET
    return few
