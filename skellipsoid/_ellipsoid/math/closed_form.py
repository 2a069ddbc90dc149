"""The default boundaries: shapes from covariances; their shrinkage and the radius scale from leave-one-out validation.

Nothing is trained iteratively. Every known sample is scored by boundaries without its set (itself, its duplicates, its
group). Two kinds of samples stand in for open ones: the same samples, scored by the nearest other class, and samples of
synthetic classes, each between two known ones.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._held_out.table import (
    BOUNDARY_TOLERANCE,
    KNOWN,
    OF_OTHER_CLASS,
    REAL,
    SYNTHETIC,
    HeldOut,
    best_scale,
    loss_scale,
    near_best,
)
from ..._samples.samples import Floats, Integers, Samples
from ..._torch.distances import euclidean
from . import class_sizes
from .boundaries import Boundaries, Chosen, Fitted, Metric, Shapes, Shrinkage
from .covariance import HeldOutSamples, has_background
from .frames import Frame, choose_frame, label_distances, principal_frame, rotated
from .geometry import Factors, Spheres, class_spheres
from .left_out_shapes import LeftOutShapes
from .mixtures import draw_synthetic_classes, n_synthetic

#: Candidates of ρ, the share of the shared shape in that of a class. With 0.99 and 0.999 besides, F1 changes by +0.1 to
#: −0.4 (skellipsoid-bench/TRIED.md, *Before*).
SHARED_SHARES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Candidates of b, the share of T in the covariance of the class means, with up to ten classes. With a trained encoder,
#: smaller shares are better for held-out classes only, since its training has seen them: F1 −0.7 to −4 (TRIED.md,
#: *Weights*).
BETWEEN_SHARES = (0.2, 0.4, 0.6)
#: With more than ten classes, the smallest candidate of b times the number of classes. More class means give a better
#: estimate of their covariance, so it needs less of T: frozen F1 +0.3 and +0.7 (TRIED.md, *The present shape*, *Kept*).
SMALLEST_BETWEEN = 2.0
#: Largest number of samples that choose the shapes. With half as many, F1 falls by 0.7 on groups and 0.9 on logs; twice
#: as many gain nothing. (skellipsoid-bench/results/constants.rst, for this and the next two.)
MOST_VALIDATION = 2048
#: Largest number of known samples that are scored without their sets, and choose the radius scale; of more, whole sets
#: are drawn. All others have their part in means and shapes. At 100,000 samples F1 falls by 0.1 at most
#: (skellipsoid-bench/results/scale.rst).
MOST_HELD_OUT = 2**15
#: At most this many samples of a set are scored as open; and, of more than MOST_VALIDATION samples, as many of a set
#: are drawn for the choice of the shapes. More samples of one set say little more: with 2 and with 8, F1 is within 0.1.
MOST_OF_SET = 4
#: β with which the radius scale is that of the expected F1: the paper's value.
NEUTRAL_BETA = 0.5
#: Largest number of samples whose distances to all class means are computed at once, for memory alone.
MOST_AT_ONCE = 2048
#: Expected F1s that differ by less are equal.
TIE = 1e-9


class Prepared(NamedTuple):
    """What a fit computes before α and β have a part in it. It can be pickled."""

    spheres: Spheres
    maker: "_TableMaker"
    shapes: LeftOutShapes
    shrinkage: Shrinkage
    held_out: HeldOut  # of known and of real open samples
    sources: Tensor  # known samples whose deviations those of synthetic classes have
    generator: np.random.Generator
    chosen: Chosen | None  # by an earlier fit
    fresh: Samples | None  # known validation samples


def fit_closed_form(
    samples: Samples,
    real_open: Tensor,
    alpha: float,
    beta: float,
    seed: int,
    given: Chosen | None = None,
    fresh: Samples | None = None,
) -> Fitted:
    """Fit one ellipsoid per class in closed form, to features of unit scale.

    Parameters
    ----------
    samples : Samples
        Known samples, at least one of each class.
    real_open : Tensor of shape (n_open, n_features)
        Samples that are known to be open; may be empty.
    alpha, beta : float
        As of ``EllipsoidOpenSetClassifier``.
    seed : int
    given : Chosen, optional
        Shares, radius scale and e of an earlier fit. Nothing is chosen then.
    fresh : Samples, optional
        Known validation samples. They have no part in means and shapes, and say how far out new samples lie.
    """
    return finish(prepare(samples, real_open, seed, given, fresh), alpha, beta)


def prepare(
    samples: Samples, real_open: Tensor, seed: int, given: Chosen | None = None, fresh: Samples | None = None
) -> Prepared | Spheres:
    """Choose the shapes, and score the samples without their sets; only spheres where no class has a spread."""
    spheres = class_spheres(samples)
    if spheres.degenerate.all():
        return spheres
    rng = np.random.default_rng([seed, 1])
    scored = torch.nonzero(~spheres.degenerate[samples.classes]).flatten()
    frame = principal_frame(samples, spheres.degenerate)
    if given:
        shrinkage, mean_error = given.shrinkage, given.mean_error
        frame = rotated(frame, shrinkage.spherical)
        if not has_background(frame):
            shrinkage = shrinkage._replace(between=None)
        maker = _TableMaker(frame, real_open, mean_error)
    else:
        subset = _subset_for_shapes(samples, scored, rng)
        frame = choose_frame(frame, subset)
        maker = _TableMaker(frame, real_open)
        shrinkage = Shrinkage(frame.spherical, *_choose_shares(maker, maker.held_out_samples(subset)))
    shapes = LeftOutShapes(frame, shrinkage.between)
    parts = maker.held_out_samples(_drawn_sets(samples, scored, rng))
    held_out = maker.tables(shapes, parts, [shrinkage.shared])[0]
    return Prepared(spheres, maker, shapes, shrinkage, held_out, parts[-1].sources, rng, given, fresh)


def finish(prepared: Prepared | Spheres, alpha: float, beta: float) -> Fitted:
    """Choose the radius scale, with synthetic classes by α, and β."""
    if isinstance(prepared, Spheres):
        return _fit_degenerate(prepared)
    spheres, maker, shapes, shrinkage, held_out, sources, generator, given, fresh = prepared
    rng = copy.deepcopy(generator)  # another α draws the same classes
    distance, mean_error, frame = _mean_distance(held_out), held_out.mean_error, maker.frame
    if not given and (synthetic := maker.synthetic(sources, alpha, rng)):
        table = maker.table_of_synthetic(synthetic, shapes, shrinkage.shared, mean_error)
        held_out = HeldOut.joined([held_out, table], mean_error)
    if fresh is not None:
        held_out = maker.with_fresh(held_out, fresh, shapes, shrinkage.shared)
    typical_growth = maker.typical_growth(mean_error)
    scale = given.scale_of_large * typical_growth if given else _choose_scale(held_out, beta)
    # A common factor alone: radii and distances are multiplied by radius / distance, and no answer depends on it. With
    # it, radii are near the mean distance of a sample to its class mean, which the paper begins with.
    radius = float(spheres.radii[~spheres.degenerate].mean())
    radii = radius * scale / distance * maker.growths(mean_error)
    boundaries = Boundaries.of(
        frame.origin,
        frame.means @ frame.back,
        shapes.centres @ frame.back,
        shapes.shapes(shrinkage.shared, (radius / distance) ** 2, radii),
        moments=shapes.moments(),
        chosen=Chosen(shrinkage, scale / typical_growth, mean_error),
    )
    return Fitted(boundaries, spheres.degenerate.cpu().numpy(), held_out.kept(scale))


def _choose_scale(held_out: HeldOut, beta: float) -> float:
    """Radius scale by the expected F1, larger or smaller as β asks for: β = 1/2, the paper's, changes nothing."""
    scale = best_scale(held_out, held_out.strictness)[0] * (1 + BOUNDARY_TOLERANCE)
    return scale * loss_scale(held_out, beta) / loss_scale(held_out, NEUTRAL_BETA)


def _subset_for_shapes(samples: Samples, scored: Tensor, rng: np.random.Generator) -> Tensor:
    """Draw the samples that choose the shapes, a few of each set, if there are many."""
    if len(scored) <= MOST_VALIDATION:
        return scored
    drawn = rng.permutation(len(scored))
    drawn = drawn[_few_of_sets(samples.sets[scored.cpu().numpy()][drawn])]
    return scored[np.sort(drawn[:MOST_VALIDATION])]


def _drawn_sets(samples: Samples, scored: Tensor, rng: np.random.Generator) -> Tensor:
    """Draw whole sets, whose samples are held out, if there are very many samples; at least one set."""
    if len(scored) <= MOST_HELD_OUT:
        return scored
    sets = np.unique(samples.sets[scored.cpu().numpy()], return_inverse=True)[1].ravel()
    order = rng.permutation(int(sets.max()) + 1)
    is_drawn = np.zeros(len(order), dtype=bool)
    is_drawn[order[np.bincount(sets)[order].cumsum() <= MOST_HELD_OUT]] = True
    is_drawn[order[0]] = True
    return scored[torch.from_numpy(is_drawn[sets]).to(scored.device)]


def _few_of_sets(sets: Integers) -> NDArray[np.bool_]:
    """Mark the first samples of each set, (n_samples,)."""
    by_set = np.argsort(sets, kind="stable")
    few = np.empty(len(sets), dtype=bool)
    few[by_set] = np.arange(len(sets)) - np.searchsorted(sets[by_set], sets[by_set]) < MOST_OF_SET
    return few


def _fit_degenerate(spheres: Spheres) -> Fitted:
    """Keep the spheres where no class has a spread: the distances between the classes choose the radii."""
    centroids = spheres.centroids.double()
    axes = centroids[:0]
    factors = Factors(axes, axes[:, 0], [0] * (len(centroids) + 1), torch.ones_like(centroids[:, 0]))
    shapes = Shapes(Metric.euclidean(centroids), centroids, factors, spheres.radii.double())
    boundaries = Boundaries.of(torch.zeros_like(centroids[0]), centroids, centroids, shapes)
    return Fitted(boundaries, spheres.degenerate.cpu().numpy())


class _TableMaker:
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
        few = torch.from_numpy(_few_of_sets(self.samples.sets[sources.cpu().numpy()])).to(chosen.device)
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


def _choose_shares(maker: _TableMaker, known: Sequence[HeldOutSamples]) -> tuple[float | None, float]:
    """Average all candidates of b and ρ, weighted by exp(F1 / standard error) at their best radius scale.

    Samples of synthetic classes are not used here: they deviate from their class as known samples do, and say nothing
    about other directions. If several candidates have the best F1 (because classes lie far apart, or there is only one)
    those of them with the largest likelihood are averaged.
    """
    frame, classes = maker.frame, maker.samples.classes
    smallest, *others = BETWEEN_SHARES
    candidates = (min(smallest, SMALLEST_BETWEEN / len(frame.means)), *others) if has_background(frame) else (None,)
    pairs = list(product(candidates, SHARED_SHARES))
    scores = np.empty((len(candidates), len(SHARED_SHARES)))
    n_independent = 1.0
    for i, between in enumerate(candidates):
        shapes = LeftOutShapes(frame, between)
        for j, held_out in enumerate(maker.tables(shapes, known, SHARED_SHARES)):
            scores[i, j], n_independent = best_scale(held_out)[1], held_out.n_independent
    scores = np.minimum(scores.ravel(), 1.0)  # weighted shares may round to more than 1
    # The standard error of the best F1, as of a share of samples; with 0 alone the best ones count.
    count = near_best(scores, np.sqrt(scores.max() * (1 - scores.max()) / max(1.0, n_independent)))
    tied = scores >= scores.max() - TIE
    if tied.sum() > 1:
        if candidates != (None,):
            shapes = LeftOutShapes(frame, None)
        own = known[0]._replace(assigned=classes[known[0].sources])
        likelihoods = shapes.log_likelihoods(own, SHARED_SHARES, maker.samples.counted_weights[own.sources])
        of_pair = np.tile(likelihoods.cpu().numpy(), len(candidates))
        count[tied & (of_pair < of_pair[tied].max())] = 0
    shared = _mean_share([share for _, share in pairs], count)
    if candidates == (None,):
        return None, shared
    return _mean_share([between for between, _ in pairs if between is not None], count), shared


def _mean_share(shares: Sequence[float], count: np.ndarray) -> float:
    """Weighted mean of shares, in log-odds."""
    values = np.array(shares)
    odds = np.exp(np.average(np.log(values / (1 - values)), weights=count))
    return float(odds / (1 + odds))


def _mean_distance(held_out: HeldOut) -> float:
    """Geometric mean over the classes of the mean distance of their held-out samples to the class that scores them."""
    known = held_out.known
    weights = np.bincount(known.classes, known.weights, minlength=held_out.n_classes)
    sums = np.bincount(known.classes, known.weights * known.distances, minlength=held_out.n_classes)
    means = sums[weights > 0] / weights[weights > 0]
    return float(np.exp(np.log(means[means > 0]).mean())) if (means > 0).any() else 1.0
