"""The default boundaries: shapes from covariances; their shrinkage and the radius scale from leave-one-out validation.

Nothing is trained iteratively. Every known sample is scored by boundaries without its set (itself, its duplicates, its
group). Two kinds of samples stand in for open ones: the same samples, scored by the nearest other class, and samples of
synthetic classes, each between two known ones. Real open samples join them.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._held_out.expected import Expected
from ..._held_out.table import BOUNDARY_TOLERANCE, TINY, HeldOutTable, best_scale, near_best
from ..._samples.samples import Samples
from ..._traffic_model.threshold import threshold_without_log
from .boundaries import N_NEAREST, Boundaries, Chosen, Fitted, Metric, Shapes, Shrinkage
from .covariance import HeldOutSamples, has_background
from .frames import choose_frame, principal_frame, rotated
from .geometry import Factors, Spheres, class_spheres
from .left_out_shapes import LeftOutShapes
from .table_maker import TableMaker, few_of_sets

# The candidates of a are ``frames.SPHERICAL_SHRINKAGES``. All three are ascending, and b and ρ below 1, since their
# log-odds are averaged.
#: Candidates of ρ, the weight of the shared shape in that of a class. With 0.99 and 0.999 besides, F1 changes by +0.1
#: to −0.4 (skellipsoid-bench/TRIED.md, *Before*).
SHARED_SHRINKAGES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Candidates of b, the weight of T in the covariance of the class means, with up to ten classes. With a trained
#: encoder, smaller values are better for held-out classes only, since its training has seen them: F1 −0.7 to −4
#: (TRIED.md, *Weights*).
BETWEEN_SHRINKAGES = (0.2, 0.4, 0.6)
#: With more than ten classes, the smallest candidate of b times the number of classes. More class means give a better
#: estimate of their covariance, so it needs less of T: frozen F1 +0.3 and +0.7 (TRIED.md, *The present shape*, *Kept*).
SMALLEST_BETWEEN = 2.0
#: Largest number of samples that choose the shapes. With half as many, F1 falls by 0.7 on groups and 0.9 on logs; twice
#: as many gain nothing. (skellipsoid-bench/results/constants.rst, for this and the next two.)
MOST_VALIDATION = 2048
#: Largest number of known samples that are scored without their sets, and choose the radius scale; of more, whole sets
#: are drawn. All others have their part in means and shapes. At 100,000 samples F1 falls by 0.12 at most
#: (skellipsoid-bench/results/scale.rst).
MOST_HELD_OUT = 2**15
#: F1s that differ by less are equal.
TIE = 1e-9


class Prepared(NamedTuple):
    """What a fit computes before α and β have a part in it. It can be pickled."""

    spheres: Spheres
    maker: "TableMaker"
    shapes: LeftOutShapes
    shrinkage: Shrinkage
    held_out: HeldOutTable | Chosen  # of known and of real open samples; or what is given, where nobody asks for them
    sources: Tensor  # known samples whose deviations those of synthetic classes have
    generator: np.random.Generator
    chosen: Chosen | None  # by an earlier fit
    fresh: Samples | None  # known validation samples


def prepare(
    samples: Samples,
    real_open: Tensor,
    seed: int,
    given: Chosen | None = None,
    fresh: Samples | None = None,
    with_held_out: bool = True,
) -> Prepared | Spheres:
    """Choose the shapes, and score the samples without their sets; only spheres where no class has a spread.

    Parameters
    ----------
    samples : Samples
        Known samples, at least one of each class, of unit scale.
    real_open : Tensor of shape (n_open, n_features)
        Samples that are known to be open; may be empty.
    seed : int
    given : Chosen, optional
        Shares, radius scale and e of an earlier fit. Nothing is chosen then.
    fresh : Samples, optional
        Known validation samples. They have no part in means and shapes, and say how far out new samples lie.
    with_held_out : bool, default=True
        Whether samples are scored without their sets, too, where nothing is chosen.
    """
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
        maker = TableMaker(frame, real_open, mean_error)
    else:
        subset = _subset_for_shapes(samples, scored, rng)
        frame = choose_frame(frame, subset)
        maker = TableMaker(frame, real_open)
        # By the nearest mean alone: with the nearest three F1 is the same (skellipsoid-bench/TRIED.md, *Which class*),
        # and a fit takes 1.5 times as long.
        nearest = [part._replace(assigned=part.assigned[:, :1]) for part in maker.held_out_samples(subset)]
        shrinkage = Shrinkage(frame.spherical, *_choose_shrinkages(maker, nearest))
    shapes = LeftOutShapes(frame, shrinkage.between)
    if given and not with_held_out:
        return Prepared(spheres, maker, shapes, shrinkage, given, scored, rng, given, fresh)
    parts = maker.held_out_samples(_drawn_sets(samples, scored, rng))
    held_out = maker.tables(shapes, parts, [shrinkage.shared])[0]
    return Prepared(spheres, maker, shapes, shrinkage, held_out, parts[-1].sources, rng, given, fresh)


def finish(prepared: Prepared | Spheres, alpha: float, expected: Expected) -> Fitted:
    """Choose the radius scale, with synthetic classes by α, for the traffic that is expected."""
    if isinstance(prepared, Spheres):
        return _fit_degenerate(prepared)
    spheres, maker, shapes, shrinkage, held_out, sources, generator, given, fresh = prepared
    degenerate = spheres.degenerate.cpu().numpy()
    if isinstance(held_out, Chosen):
        scale, mean_error = held_out.scale_of_large, held_out.mean_error
        return Fitted(_boundaries(prepared, 1.0, scale * maker.typical_growth(mean_error), mean_error), degenerate)
    rng = copy.deepcopy(generator)  # another α draws the same classes
    distance, mean_error = _mean_distance(held_out), held_out.mean_error
    if not given and (synthetic := maker.synthetic(sources, alpha, rng)):
        table = maker.table_of_synthetic(synthetic, shapes, shrinkage.shared, mean_error)
        held_out = HeldOutTable.joined([held_out, table], mean_error)
    if fresh is not None:
        held_out = maker.with_fresh(held_out, fresh, shapes, shrinkage.shared)
    typical_growth = maker.typical_growth(mean_error)
    scale = given.scale_of_large * typical_growth if given else _choose_scale(held_out, expected)
    return Fitted(_boundaries(prepared, distance, scale, mean_error), degenerate, held_out.kept(scale))


def _boundaries(prepared: Prepared, distance: float, scale: float, mean_error: float) -> Boundaries:
    """Return the boundaries at a radius scale; ``distance`` is the mean one of held-out samples, or any."""
    spheres, maker, shapes, shrinkage = prepared[:4]
    frame, growths = maker.frame, maker.growths(mean_error)
    # A common factor alone: radii and distances are multiplied by radius / distance, and no prediction depends on it.
    # With it, radii are near the mean distance of a sample to its class mean, which the paper begins with.
    radius = float(spheres.radii[~spheres.degenerate].mean())
    return Boundaries.of(
        frame.origin,
        frame.means @ frame.back,
        shapes.centres @ frame.back,
        shapes.shapes(shrinkage.shared, (radius / distance) ** 2, growths, radius * scale / distance),
        moments=shapes.moments(),
        chosen=Chosen(shrinkage, scale / maker.typical_growth(mean_error), mean_error),
        n_nearest=N_NEAREST,
    )


def _choose_scale(held_out: HeldOutTable, expected: Expected) -> float:
    """Radius scale: the distance at which the expected traffic is divided best."""
    if not (held_out.known.distances > 0).any():
        return 1.0
    threshold = -threshold_without_log(replace(held_out, expected=expected), held_out.n_classes)
    return max(threshold, TINY) * (1 + BOUNDARY_TOLERANCE)


def _subset_for_shapes(samples: Samples, scored: Tensor, rng: np.random.Generator) -> Tensor:
    """Draw the samples that choose the shapes, a few of each set, if there are many."""
    if len(scored) <= MOST_VALIDATION:
        return scored
    drawn = rng.permutation(len(scored))
    drawn = drawn[few_of_sets(samples.sets[scored.cpu().numpy()][drawn])]
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


def _fit_degenerate(spheres: Spheres) -> Fitted:
    """Keep the spheres where no class has a spread: the distances between the classes choose the radii."""
    centroids = spheres.centroids.double()
    axes = centroids[:0]
    factors = Factors(axes, axes[:, 0], [0] * (len(centroids) + 1), torch.ones_like(centroids[:, 0]))
    radii = spheres.radii.double()
    shapes = Shapes(Metric.euclidean(centroids), centroids, factors, radii, torch.zeros_like(radii))
    boundaries = Boundaries.of(torch.zeros_like(centroids[0]), centroids, centroids, shapes)
    return Fitted(boundaries, spheres.degenerate.cpu().numpy())


def _choose_shrinkages(maker: TableMaker, known: Sequence[HeldOutSamples]) -> tuple[float | None, float]:
    """Average all candidates of b and ρ, weighted by exp(F1 / standard error) at their best radius scale.

    Samples of synthetic classes are not used here: they deviate from their class as known samples do, and say nothing
    about other directions. If several candidates have the best F1 (because classes lie far apart, or there is only one)
    those of them with the largest likelihood are averaged.
    """
    frame, classes = maker.frame, maker.samples.classes
    smallest, *others = BETWEEN_SHRINKAGES
    candidates = (min(smallest, SMALLEST_BETWEEN / len(frame.means)), *others) if has_background(frame) else (None,)
    pairs = list(product(candidates, SHARED_SHRINKAGES))
    scores = np.empty((len(candidates), len(SHARED_SHRINKAGES)))
    n_independent = 1.0
    for i, between in enumerate(candidates):
        shapes = LeftOutShapes(frame, between)
        for j, held_out in enumerate(maker.tables(shapes, known, SHARED_SHRINKAGES)):
            scores[i, j], n_independent = best_scale(held_out)[1], held_out.n_independent
        if between is not None:
            del shapes  # the axes of many classes need the memory of those of the next candidate
    scores = np.minimum(scores.ravel(), 1.0)  # weighted proportions may round to more than 1
    # The standard error of the best F1, as of a proportion of samples; with 0 alone the best ones count.
    count = near_best(scores, np.sqrt(scores.max() * (1 - scores.max()) / max(1.0, n_independent)))
    tied = scores >= scores.max() - TIE
    if tied.sum() > 1:
        if candidates != (None,):
            shapes = LeftOutShapes(frame, None)
        own = known[0]._replace(assigned=classes[known[0].sources])
        weights = maker.samples.counted_weights[own.sources]
        likelihoods = shapes.log_likelihoods(own, SHARED_SHRINKAGES, weights)
        of_pair = np.tile(likelihoods.cpu().numpy(), len(candidates))
        count[tied & (of_pair < of_pair[tied].max())] = 0
    shared = _mean_shrinkage([shared for _, shared in pairs], count)
    if candidates == (None,):
        return None, shared
    return _mean_shrinkage([between for between, _ in pairs if between is not None], count), shared


def _mean_shrinkage(shrinkages: Sequence[float], count: np.ndarray) -> float:
    """Weighted mean of shrinkages, in log-odds."""
    values = np.array(shrinkages)
    odds = np.exp(np.average(np.log(values / (1 - values)), weights=count))
    return float(odds / (1 + odds))


def _mean_distance(held_out: HeldOutTable) -> float:
    """Geometric mean over the classes of the mean distance of their held-out samples to the class that scores them."""
    known = held_out.known
    weights = np.bincount(known.classes, known.weights, minlength=held_out.n_classes)
    sums = np.bincount(known.classes, known.weights * known.distances, minlength=held_out.n_classes)
    means = sums[weights > 0] / weights[weights > 0]
    return float(np.exp(np.log(means[means > 0]).mean())) if (means > 0).any() else 1.0
