"""The held-out samples of a fit in closed form, and their table: which class scores each of them, at what distance."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._held_out.table import KNOWN, OF_OTHER_CLASS, REAL, SYNTHETIC, HeldOut
from ..._samples.samples import Floats, Integers, Samples
from ..._torch.distances import euclidean
from . import class_sizes
from .covariance import HeldOutSamples
from .frames import Frame, label_distances
from .left_out_shapes import LeftOutShapes
from .mixtures import draw_synthetic_classes, n_synthetic

#: At most this many samples of a set are scored as open; and, of many samples, as many of a set are drawn
#: for the choice of the shapes. More samples of one set say little more: with 2 and with 8, F1 is within 0.1.
MOST_OF_SET = 4
#: Largest number of samples whose distances to all class means are computed at once, for memory alone.
MOST_AT_ONCE = 2048


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
        self.typical_size = float((frame.sets.freedoms[~frame.degenerate] + 1).log().mean().exp())
        self.sizes = torch.where(frame.degenerate, self.typical_size, frame.sets.freedoms + 1)
        self.real_open = real_open.double() - frame.origin

    def held_out_samples(self, numbers: Tensor) -> list[HeldOutSamples]:
        """Assign known samples to the nearest class and, a few of each set, to the nearest other class.

        Both are without the sample's set, the other class also without the sample's class; with a single class there is
        none. A sample is used if its own class, and any other class, has samples outside the sample's set.
        """
        classes, frame = self.samples.classes, self.frame
        nearest, used = [], []
        for part in torch.split(numbers, MOST_AT_ONCE):
            squares = label_distances(frame, part)
            own = classes[part].unsqueeze(1)
            remains, assigned = squares.gather(1, own).squeeze(1).isfinite(), [squares.argmin(1)]
            if len(frame.means) > 1:
                squares.scatter_(1, own, torch.inf)
                remains &= squares.amin(1).isfinite()
                assigned.append(squares.argmin(1))
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
        sources = numbers[torch.from_numpy(drawn.sources).to(numbers.device)]
        totals = self.frame.sets.weights
        of_unit = totals.of_units(sources) / totals.totals[self.samples.classes[sources]]
        enlarged = (1 - of_unit.clamp_max(0.5)).rsqrt().unsqueeze(1)
        deviations = self.frame.offsets[sources].double() * enlarged
        positions = drawn.means.of(self.frame.means) + deviations
        assigned = euclidean(positions, self.frame.means).argmin(1)
        return HeldOutSamples(SYNTHETIC, sources, assigned, positions)

    def tables(
        self, shapes: LeftOutShapes, samples: Sequence[HeldOutSamples], shares: Sequence[float]
    ) -> list[HeldOut]:
        """Make the table of the held-out samples, known ones first, for each share ρ."""
        distances, of_kinds, sizes = [], [], []
        for part in samples:
            without_class = part.kind == OF_OTHER_CLASS and shapes.between is not None
            of_kind = LeftOutShapes(self.frame, shapes.between, without_class=True) if without_class else shapes
            found = of_kind.distances(part, shares)
            of_kinds.append(self._held_out(part, found[0]))
            distances.append(found.cpu().numpy())
            sizes.append(self._sizes(part).cpu().numpy())
        tables = []
        for i, share in enumerate(shares):
            mean_error = self._mean_error(samples[0].sources, of_kinds[0], distances[0][i], sizes[0])
            parts = [
                self._grown(table, of_part[i], of_samples, mean_error)
                for table, of_part, of_samples in zip(of_kinds, distances, sizes, strict=True)
            ]
            if len(self.real_open):
                scored = self._new(self.real_open, shapes, share, mean_error)
                parts.append(HeldOut.of(len(self.frame.means), REAL, *scored))
            tables.append(HeldOut.joined(parts, mean_error))
        return tables

    def table_of_synthetic(
        self, part: HeldOutSamples, shapes: LeftOutShapes, share: float, mean_error: float
    ) -> HeldOut:
        """Make the table of samples of synthetic classes."""
        distances = shapes.distances(part, [share])[0]
        table = self._held_out(part, distances)
        return self._grown(table, distances.cpu().numpy(), self._sizes(part).cpu().numpy(), mean_error)

    def _grown(self, table: HeldOut, distances: Floats, sizes: Floats, mean_error: float) -> HeldOut:
        """Fill in distances, relative to how far out new samples of classes of these sizes lie."""
        return replace(table, distances=distances / class_sizes.growths(mean_error, sizes, self.typical_size))

    def with_fresh(self, held_out: HeldOut, fresh: Samples, shapes: LeftOutShapes, share: float) -> HeldOut:
        """Scale the distances of held-out samples to those of validation samples, and append the latter."""
        scored = self._new(fresh.features.double() - self.frame.origin, shapes, share, held_out.mean_error)
        sets = fresh.sets + 1 + int(held_out.sets.max(initial=-1))
        found = HeldOut.of(held_out.n_classes, KNOWN, *scored, fresh.classes, fresh.counted_weights, sets)
        return held_out.with_fresh(found)

    def _new(self, features: Tensor, shapes: LeftOutShapes, share: float, mean_error: float) -> tuple[Tensor, Tensor]:
        """Distances of samples that have no part in the shapes, and the classes that they are assigned to."""
        assigned, margins = shapes.shapes(share, 1.0, self.growths(mean_error)).scorer().assigned(features)
        return 1 - margins, assigned

    def _held_out(self, part: HeldOutSamples, distances: Tensor) -> HeldOut:
        """Give a part of the table; samples of synthetic classes have no class, and all weigh the same."""
        scored = len(self.frame.means), part.kind, distances, part.assigned
        if part.kind == SYNTHETIC:
            return HeldOut.of(*scored)
        sets = self.samples.sets[part.sources.cpu().numpy()]
        return HeldOut.of(*scored, self.samples.classes[part.sources], self.samples.counted_weights[part.sources], sets)

    def growths(self, mean_error: float) -> Tensor:
        """Growth of the distances and radii of all classes, (n_classes,)."""
        return class_sizes.growths(mean_error, self.sizes, self.typical_size)

    def typical_growth(self, mean_error: float) -> float:
        """Give the growth of a class of typical size, where that of a class of very many samples is 1."""
        return float((1 + mean_error / self.typical_size) ** 0.5)

    def _sizes(self, part: HeldOutSamples) -> Tensor:
        """Effective number of samples of the class that scores each sample; of its own class without its set."""
        sizes = self.sizes[part.assigned]
        if part.kind == SYNTHETIC:
            return sizes
        is_own = part.assigned == self.samples.classes[part.sources]
        return torch.where(is_own, self.frame.sets.own_freedoms[part.sources] + 1, sizes)

    def _mean_error(self, sources: Tensor, known: HeldOut, distances: Floats, sizes: Floats) -> float:
        """Estimate e from the known samples that their own class scores, unless it is given."""
        if self.mean_error is not None:
            return self.mean_error
        columns = distances**2, known.classes, sizes, self.samples.weights[sources].cpu().numpy()
        return class_sizes.estimate_mean_error(*(column[known.assigned == known.classes] for column in columns))


def few_of_sets(sets: Integers) -> NDArray[np.bool_]:
    """Mark the first samples of each set, (n_samples,)."""
    by_set = np.argsort(sets, kind="stable")
    few = np.empty(len(sets), dtype=bool)
    few[by_set] = np.arange(len(sets)) - np.searchsorted(sets[by_set], sets[by_set]) < MOST_OF_SET
    return few
