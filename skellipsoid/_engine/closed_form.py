"""The default boundaries: shapes from covariances, weights and size from rows that are left out.

Nothing is trained. Every known row is scored by boundaries without its set (itself, duplicates, its group); the same
row, its class left aside, is an open one; and so are rows of imaginary classes between two known ones.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .boundaries import Boundaries, Metric, Shapes, ShapeWeights
from .covariance import LeftOutShapes, Scored, has_background
from .geometry import Balls, Factors, class_balls, class_weights
from .held_out import ROUNDING, Judged, Reach, best_size, loss_size, near_best
from .pseudo_open import FEWEST_BETWEEN, MOST_NEGATIVES, draw_between
from .samples import Samples
from .settings import BoundarySettings
from .shared_shapes import Frame, label_distances, principal_frame, shared_frame

#: Shares ρ of the shared shape in that of a class to mean over.
SHARED_SHARES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)
#: Shares b of T in the covariance of the class means to mean over. Smaller ones are better for held-out classes and
#: worse for unknown ones where an encoder was tuned: it has seen the former.
BETWEEN_SHARES = (0.2, 0.4, 0.6)
#: Rows that choose shapes at most: more of them say the same.
MOST_JUDGED = 2048
#: Expected F1s that differ by less are equal.
TIE = 1e-9


def fit_closed_form(samples: Samples, real_open: Tensor, settings: BoundarySettings, seed: int) -> Boundaries:
    """Fit to what ``fit_boundaries`` takes; of the settings ``recalibrate``, ``alpha`` and ``beta`` count."""
    balls = class_balls(samples)
    if balls.points.all():
        return _fit_points(balls)
    rng = np.random.default_rng([seed, 1])
    shaped = torch.nonzero(~balls.points[samples.classes]).flatten()
    few = shaped
    if len(shaped) > MOST_JUDGED:
        few = shaped[np.sort(rng.permutation(len(shaped))[:MOST_JUDGED])]
    frame = shared_frame(principal_frame(samples, balls.points), samples.classes, samples.weights, few)
    judge = _Judge(frame, samples, balls.points, real_open)
    between, shared = _choose_weights(judge, judge.known(few))
    shapes = LeftOutShapes(frame, samples.classes, balls.points, between)
    known = judge.known(shaped)
    imaginary = judge.imaginary(known.sources, settings.alpha, rng)
    reach = judge.reach(shapes, known, imaginary, [shared])[0]
    unit = _mean_distance(reach)
    size = unit
    if settings.recalibrate:
        size = best_size(reach)[0] * (1 + ROUNDING)
        size *= loss_size(reach, settings.beta) / loss_size(reach, 0.5)
    # Distances are multiples of the paper's mean radius.
    radius = float(balls.radii[~balls.points].mean())
    found = shapes.shapes(shared, (radius / unit) ** 2, torch.full_like(balls.radii, radius * size / unit).double())
    return Boundaries(
        origin=frame.origin,
        centroids=frame.means @ frame.back,
        centres=shapes.centres @ frame.back,
        shapes=found,
        points=balls.points,
        held_out_margins=1 - reach.known / size if len(reach.known) else None,
        moments=shapes.moments(ShapeWeights(frame.spherical, between, shared)),
    )


def _fit_points(balls: Balls) -> Boundaries:
    """Between points alone, the distances between them decide."""
    centroids = balls.centroids.double()
    axes = centroids[:0]
    shapes = Factors(axes, axes[:, 0], [0] * (len(centroids) + 1), torch.ones_like(centroids[:, 0]))
    return Boundaries(
        origin=torch.zeros_like(centroids[0]),
        centroids=centroids,
        centres=centroids,
        shapes=Shapes(Metric.euclidean(centroids), centroids, shapes, balls.radii.double()),
        points=balls.points,
    )


class _Known(NamedTuple):
    """Known rows, and the same rows as open ones."""

    sources: Tensor  # (n_known,)
    nearest: Scored
    other: Scored | None  # by the nearest other class, the own one left aside; None where there is no other


class _Judge:
    """Who scores which rows, and how far out they lie.

    Parameters
    ----------
    frame : Frame
    samples : Samples
    points : Tensor of shape (n_classes,)
    real_open : Tensor of shape (n_open, n_features)
    """

    def __init__(self, frame: Frame, samples: Samples, points: Tensor, real_open: Tensor) -> None:
        self.frame, self.samples, self.points = frame, samples, points
        self.real_open = real_open.double() - frame.origin

    def known(self, rows: Tensor) -> _Known:
        """Known rows by the nearest class and by the nearest other one, the row's set being left out.

        A row counts where anything is left of its class without its set, and of any other class.
        """
        classes, frame = self.samples.classes, self.frame
        nearest, others, counts = [], [], []
        for part in torch.split(rows, MOST_JUDGED):
            squares = label_distances(frame, classes, part)
            own = classes[part].unsqueeze(1)
            is_left = squares.gather(1, own).squeeze(1).isfinite()
            nearest.append(squares.argmin(1))
            if len(frame.means) > 1:
                squares.scatter_(1, own, torch.inf)
                is_left &= squares.amin(1).isfinite()
            others.append(squares.argmin(1))
            counts.append(is_left)
        kept = torch.cat(counts)
        sources = rows[kept]
        known = Scored(frame.rows[sources], torch.cat(nearest)[kept], sources, held_out=False)
        if len(frame.means) < 2:
            return _Known(sources, known, None)
        return _Known(sources, known, known._replace(assigned=torch.cat(others)[kept], held_out=True))

    def imaginary(self, rows: Tensor, alpha: float, rng: np.random.Generator) -> Scored | None:
        """Rows of imaginary classes; they deviate as known ``rows`` do from the mean of all others of their class."""
        classes, weights = self.samples.classes[rows], self.samples.weights[rows]
        n_wanted = min(max(len(rows), FEWEST_BETWEEN), MOST_NEGATIVES)
        drawn = draw_between(classes.cpu().numpy(), n_wanted, alpha, rng, weights.cpu().numpy()) if len(rows) else None
        if drawn is None:
            return None
        left = (1 - weights / class_weights(self.samples)[classes]).clamp_min(0.5)
        offsets = (self.frame.rows[rows] - self.frame.means[classes]) / left.sqrt().unsqueeze(1)
        positions = drawn.of(self.frame.means, offsets)
        sources = rows[torch.from_numpy(drawn.rows).to(rows.device)]
        return Scored(positions, torch.cdist(positions, self.frame.means).argmin(1), sources, held_out=False)

    def reach(
        self, shapes: LeftOutShapes, known: _Known, imaginary: Scored | None, shares: Sequence[float]
    ) -> list[Reach]:
        """How far out the rows lie, for each share ρ."""
        weights = self.samples.weights[known.sources]
        distances = shapes.distances(known.nearest, shares)
        others = None if known.other is None else shapes.distances(known.other, shares)
        between = None if imaginary is None else shapes.distances(imaginary, shares)
        classes, sets = self.samples.classes[known.sources], self.samples.sets[known.sources.cpu().numpy()]
        found = []
        for i, share in enumerate(shares):
            stand_ins = []
            if known.other is not None and others is not None:
                stand_ins.append(Judged(others[i], known.other.assigned, weights))
            if imaginary is not None and between is not None:
                stand_ins.append(Judged(between[i], imaginary.assigned, torch.ones_like(between[i])))
            real = Judged(weights[:0], classes[:0], weights[:0])
            if len(self.real_open):
                labels, margins = shapes.shapes(share, 1.0, weights.new_ones(len(self.frame.means))).assigned(
                    self.real_open
                )
                real = Judged(1 - margins, labels, torch.ones_like(margins))
            nearest = Judged(distances[i], known.nearest.assigned, weights)
            found.append(Reach.of(nearest, classes, sets, stand_ins, real, len(self.frame.means)))
        return found


def _choose_weights(judge: _Judge, known: _Known) -> tuple[float | None, float]:
    """Mean of all candidates of b and ρ, weighted by exp(F1 / standard error) of their best size.

    Imaginary classes do not judge shapes: they deviate as known rows do, and say nothing about other directions. Where
    candidates are equally good, because classes lie far apart, or there is one, the likeliest counts.
    """
    frame, classes = judge.frame, judge.samples.classes
    candidates = BETWEEN_SHARES if has_background(frame) else (None,)
    pairs = list(product(candidates, SHARED_SHARES))
    scores = np.empty(len(pairs))
    n_independent = 1.0
    for i, between in enumerate(candidates):
        shapes = LeftOutShapes(frame, classes, judge.points, between)
        for j, reach in enumerate(judge.reach(shapes, known, None, SHARED_SHARES)):
            scores[i * len(SHARED_SHARES) + j], n_independent = best_size(reach)[1], reach.n_independent
    scores = np.minimum(scores, 1.0)  # weighted shares may round to more than 1
    # The standard error of a share of rows.
    weights = near_best(scores, np.sqrt(scores.max() * (1 - scores.max()) / max(1.0, n_independent)))
    tied = scores >= scores.max() - TIE
    if tied.sum() > 1:
        shapes = LeftOutShapes(frame, classes, judge.points, None)
        own = known.nearest._replace(assigned=classes[known.sources])
        likelihoods = shapes.log_likelihoods(own, SHARED_SHARES, judge.samples.weights[known.sources])
        of_pair = np.tile(likelihoods.cpu().numpy(), len(candidates))
        weights[tied & (of_pair < of_pair[tied].max())] = 0
    shared = _mean_share([share for _, share in pairs], weights)
    if candidates == (None,):
        return None, shared
    return _mean_share([between for between, _ in pairs if between is not None], weights), shared


def _mean_share(shares: Sequence[float], weights: np.ndarray) -> float:
    """Weighted mean of shares, in logarithms of their odds."""
    values = np.array(shares)
    odds = np.exp(np.average(np.log(values / (1 - values)), weights=weights))
    return float(odds / (1 + odds))


def _mean_distance(reach: Reach) -> float:
    """Geometric mean over the classes of the mean distance of their left-out rows."""
    weights = np.bincount(reach.classes, reach.weights, minlength=reach.n_classes)
    sums = np.bincount(reach.classes, reach.weights * reach.known, minlength=reach.n_classes)
    means = sums[weights > 0] / weights[weights > 0]
    return float(np.exp(np.log(means[means > 0]).mean())) if (means > 0).any() else 1.0
