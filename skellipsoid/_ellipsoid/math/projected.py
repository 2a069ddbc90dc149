"""Held-out samples of features that a projection made: what is left out is left out of the projection, too.

PCA keeps the directions in which its samples vary most. A class that is left out to stand in for open samples was among
these samples, and so was each known one: the projection kept directions for them which a new sample loses. So folds of
samples and of classes are left out of the means, the shapes and the projection. Of the covariance of the others those
directions are kept in which the variance is at least that of the last component of the projection. Of word counts,
words are kept that any of the others has.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._held_out.expected import Expected
from ..._held_out.table import BOUNDARY_TOLERANCE, KNOWN, OF_OTHER_CLASS, REAL, TINY, HeldOutTable, ranks_and_gaps
from ..._samples.folds import fold_numbers
from ..._samples.projections import Projection
from ..._samples.samples import Integers, Samples
from ..._traffic_model.threshold import threshold_without_log
from .boundaries import Boundaries, Chosen, Fitted
from .closed_form import Prepared, finish, prepare

#: Folds of samples, and of classes. With 10, F1 is up to 5 lower: a class that is left out alone finds more directions
#: kept by others (skellipsoid-bench/TRIED.md, *Projections*).
N_FOLDS = 4
#: Rounding: a direction is kept if its variance is at least this proportion of that of the last component.
ENOUGH = 0.999
#: Rounding: lengths that differ by this proportion of them are equal.
SAME_LENGTH = 1e-3


class Fold(NamedTuple):
    """A fit to the other samples in what a projection of these keeps, and the samples that are left out."""

    prepared: Prepared
    classes: Integers  # (n_kept,) numbers of its classes among all
    tested: Samples  # known samples, with the classes of all, in the projection of the fold
    opened: Tensor  # (n_open, n_features) real open samples, likewise


def leave_out_folds(
    samples: Samples, real_open: Tensor, seed: int, projection: Projection, given: Chosen | None = None
) -> list[Fold]:
    """Prepare the fits of the folds; none where nothing can be left out.

    Parameters
    ----------
    samples : Samples
    real_open : Tensor of shape (n_open, n_features)
    seed : int
    projection : Projection
        What shows.
    given : Chosen, optional
        By an earlier fit. Nothing is chosen then.
    """
    rng = np.random.default_rng([seed, 2])
    classes, order = samples.classes.cpu().numpy(), rng.permutation(len(samples))
    folds = np.empty(len(samples), dtype=np.int64)
    folds[order] = fold_numbers(classes[order], samples.blocks[order], N_FOLDS)
    class_folds = rng.permutation(np.arange(samples.n_classes) % N_FOLDS)
    open_folds = rng.permutation(np.arange(len(real_open)) % N_FOLDS)
    make = _words_of if projection == Projection.VOCABULARY else _components_of
    of_all, found = make(samples), []
    for fold in range(N_FOLDS):
        tested, stays = folds == fold, (folds != fold) & (class_folds[classes] != fold)
        if not tested.any() or not stays.any():
            continue
        on = samples.features.device
        part = _leave_out(
            samples.where(torch.from_numpy(stays).to(on)),
            samples.where(torch.from_numpy(tested).to(on)),
            real_open[torch.from_numpy(open_folds == fold).to(on)],
            of_all,
            seed,
            given,
        )
        if part is not None:
            found.append(part)
    return found


#: Gives features in what a projection of some samples keeps; ``None`` where that is nothing.
_Projected = Callable[[Tensor], Tensor]


def _leave_out(
    rest: Samples,
    tested: Samples,
    opened: Tensor,
    of_all: Callable[[Samples], _Projected | None],
    seed: int,
    given: Chosen | None,
) -> Fold | None:
    """Prepare the fit to the ``rest``; ``None`` if none of its classes has a spread."""
    projected = of_all(rest)
    if projected is None:
        return None
    numbers, classes = torch.unique(rest.classes, return_inverse=True)
    of_rest = replace(rest, features=projected(rest.features), classes=classes, n_classes=len(numbers))
    prepared = prepare(of_rest, projected(opened)[:0], seed, given)
    if not isinstance(prepared, Prepared):
        return None
    tested = replace(tested, features=projected(tested.features))
    return Fold(prepared, numbers.cpu().numpy(), tested, projected(opened))


def _components_of(samples: Samples) -> Callable[[Samples], _Projected | None]:
    """Keep directions in which the others vary as much as all samples do along their last component."""
    least = float(_covariance(samples)[0].diagonal().min())

    def of_rest(rest: Samples) -> _Projected | None:
        covariance, mean = _covariance(rest)
        values, vectors = torch.linalg.eigh(covariance)
        kept = vectors[:, values >= ENOUGH * least]
        if not kept.shape[1]:  # of a single sample
            return None
        return lambda features: ((features.double() - mean) @ kept).to(features.dtype)

    return of_rest


def _words_of(samples: Samples) -> Callable[[Samples], _Projected | None]:
    """Keep words that the others have; where rows have one length, it is that of the words that are left."""
    zero = samples.features.amin(dim=0)
    lengths = torch.linalg.vector_norm(samples.features - zero, dim=1)
    are_normalized = bool(lengths.max() - lengths.min() <= SAME_LENGTH * lengths.max())

    def of_rest(rest: Samples) -> _Projected | None:
        kept = (rest.features - zero).amax(dim=0) > 0
        if not kept.any():
            return None

        def projected(features: Tensor) -> Tensor:
            found = (features - zero)[:, kept]
            if not are_normalized:
                return found
            own = torch.linalg.vector_norm(found, dim=1, keepdim=True)
            return torch.where(own > 0, found * (lengths.max() / own), found)

        return projected

    return of_rest


def _covariance(samples: Samples) -> tuple[Tensor, Tensor]:
    """Covariance of the samples, and their mean."""
    features, weights = samples.features.double(), samples.weights / samples.weights.sum()
    mean = weights @ features
    offsets = features - mean
    return (offsets * weights.unsqueeze(1)).T @ offsets, mean


def resized(fitted: Fitted, folds: Sequence[Fold], alpha: float, expected: Expected, fresh: Samples | None) -> Fitted:
    """Give a fit the held-out samples of the folds, and the radius scale that these choose.

    The margins of a fold's fit are those that the samples would have had in the fit to all.

    Parameters
    ----------
    fitted : Fitted
        To all samples, by samples that were left out of the shapes alone.
    folds : sequence of Fold
    alpha : float
    expected : Expected
    fresh : Samples, optional
        Known validation samples, which had no part in the projection.
    """
    if fitted.held_out is None or not folds:
        return fitted
    n_classes = fitted.held_out.n_classes
    parts = [table for fold in folds for table in _tables(fold, alpha, expected, n_classes)]
    table = HeldOutTable.joined([*parts, fitted.held_out.synthetic], fitted.held_out.mean_error)
    if fresh is not None and len(fresh):
        sets = fresh.sets + 1 + int(table.sets.max(initial=-1))
        of_all = np.arange(n_classes)
        table = table.with_fresh(_scored(fitted.boundaries, fresh, of_all, n_classes, KNOWN, sets))
    if not (table.known.distances > 0).any():
        return fitted
    scale = 1.0
    if not folds[0].prepared.chosen:
        threshold = -threshold_without_log(replace(table, expected=expected), n_classes)
        scale = max(threshold, TINY) * (1 + BOUNDARY_TOLERANCE)
    boundaries, chosen = fitted.boundaries, fitted.boundaries.chosen
    if chosen is not None:
        chosen = chosen._replace(scale_of_large=chosen.scale_of_large * scale)
    radii, allowances = boundaries.shapes.radii * scale, boundaries.shapes.allowances / scale**2
    shapes = boundaries.shapes._replace(radii=radii, allowances=allowances)
    return fitted._replace(boundaries=replace(boundaries, shapes=shapes, chosen=chosen), held_out=table.kept(scale))


def _tables(fold: Fold, alpha: float, expected: Expected, n_classes: int) -> list[HeldOutTable]:
    """Score what a fold leaves out by its fit."""
    boundaries = finish(fold.prepared, alpha, expected._replace(projected=None)).boundaries
    is_known = torch.from_numpy(np.isin(fold.tested.classes.cpu().numpy(), fold.classes)).to(fold.opened.device)
    parts = [
        _scored(boundaries, part, fold.classes, n_classes, kind, part.sets)
        for kind, part in ((KNOWN, fold.tested.where(is_known)), (OF_OTHER_CLASS, fold.tested.where(~is_known)))
        if len(part)
    ]
    if len(fold.opened):
        opened = Samples.of(fold.opened, torch.full_like(fold.opened[:, 0], n_classes, dtype=torch.int64), n_classes)
        parts.append(_scored(boundaries, opened, fold.classes, n_classes, REAL, np.zeros_like(opened.units)))
    return parts


def _scored(
    boundaries: Boundaries, samples: Samples, classes: Integers, n_classes: int, kind: int, sets: Integers
) -> HeldOutTable:
    """Make the table of new samples; ``classes`` are the numbers that those of the boundaries have among all."""
    ready = boundaries.prepared(samples.features.device, torch.float64)
    nearest, distances, compared = ready.scorer.nearest(ready.standardize(samples.features.double()))
    places, own = compared.argmin(dim=1, keepdim=True), samples.classes.cpu().numpy()
    first = classes[nearest.cpu().numpy()]
    found = ranks_and_gaps(first, compared.cpu().numpy(), own)
    assigned = torch.from_numpy(np.take_along_axis(first, places.cpu().numpy(), axis=1)[:, 0])
    return HeldOutTable.of(
        n_classes,
        kind,
        distances.gather(1, places).squeeze(1),
        assigned,
        samples.classes,
        samples.counted_weights,
        sets,
        *found,
    )
