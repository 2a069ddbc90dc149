"""Thresholds of scores: a given number, a quantile of held-out known scores, or the one of the best expected F1."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.sklearn import StrOptions
from .._core.state_rules import Rule
from .._core.warn import warn
from .._held_out.expected import Expected
from .._held_out.kept import KeepsHeldOutMixin
from .._held_out.state import THRESHOLDED
from .._held_out.table import (
    KNOWN,
    N_FIRST,
    OF_OTHER_CLASS,
    REAL,
    TINY,
    HeldOutTable,
    best_threshold,
    quantile,
    ranks_and_gaps,
)
from .._samples.folds import fold_numbers
from .._samples.samples import joined
from .._samples.training_samples import TrainingSamples
from .._traffic_model.threshold import threshold_without_log

#: Number of folds of samples, and of classes, to hold out.
N_FOLDS = 5
#: Folds and classes are drawn until this many samples were held out in total, at most ``MOST_DRAWS`` times.
SAMPLES_OF_DRAWS, MOST_DRAWS = 2000, 5
#: Proportion of known samples that ``threshold="quantile"`` rejects.
REJECTED = 0.05
#: ``answers_version`` of classes with this ``threshold="auto"``; it is raised when predictions change, so that a
#: benchmark does not reuse older results. 2: held-out scores are on the scale of the fit with all classes.
AUTO_THRESHOLD_VERSION = 2

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Scored(NamedTuple):
    """Scores of samples by a method."""

    assigned: Integers  # (n_samples,) class
    knownness: Floats  # (n_samples,) the method's own score, higher is more known
    by_class: Floats  # (n_samples, n_classes); the assigned class has the largest entry, up to ties


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdedClassifier(KeepsHeldOutMixin, BaseOpenSetClassifier):
    """Template: the knownness of a sample, minus a threshold.

    A subclass implements ``_fit_scores``, ``_score``, and ``_paper_threshold`` if a publication gives one.
    """

    threshold: str | float = "quantile"
    duplicates: str = "once"
    open_label: int | str = -1
    random_state: int | np.random.RandomState | None = 0

    _state: ClassVar[dict[str, Rule]] = THRESHOLDED
    #: Threshold for ``threshold="paper"``.
    _paper_threshold: ClassVar[float]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Real, StrOptions({"quantile", "auto"})],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _fit_scores(self, samples: TrainingSamples) -> None:
        """Fit the score to known samples in double precision."""

    @abstractmethod
    def _score(self, X: Floats) -> Scored:
        """Score samples in double precision."""

    def _can_refit(self) -> bool:
        """Whether a fold can be fitted without some of the samples."""
        return True

    def _keeps_scale(self) -> bool:
        """Whether a fit to fewer classes and samples has scores on the same scale."""
        return False

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        samples = in_double(samples)
        self._fit_scores(samples)
        self._set_threshold(samples)

    def _set_threshold(self, samples: TrainingSamples) -> None:
        """Set the threshold to the given one, or choose it on held-out samples, and keep their scores."""
        if self.threshold == "paper":
            self.threshold_ = self._paper_threshold
            return
        if not isinstance(self.threshold, str):
            self.threshold_ = float(self.threshold)
            return
        drawn = list(self._draws(samples)) if self._can_refit() else []
        # Thresholds of several draws of folds and classes are averaged; the scores of the first draw are kept.
        tables = drawn or [self._fitted_scores(samples)]
        self.threshold_ = float(np.mean([self._chosen(table, is_new=bool(drawn)) for table in tables]))
        self._held_out = None
        if drawn:
            self._held_out = replace(drawn[0], of_distance_0=-self.threshold_)

    def _chosen(self, scored: HeldOutTable, *, is_new: bool) -> float:
        """Choose a threshold by a table of scores; ``is_new``: whether its samples were held out."""
        if self.threshold == "auto" and is_new and self._scores_as_new:
            return threshold_without_log(replace(scored, expected=Expected.by(self)), len(self.classes_))
        if self.threshold == "auto" and scored.is_open.any():
            return best_threshold(scored)
        return quantile(-scored.known.distances, scored.known.weights, REJECTED)

    def _draws(self, samples: TrainingSamples) -> Iterator[HeldOutTable]:
        """Hold out samples, and classes, several times at random; no table without a known sample."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        for number in range(min(MOST_DRAWS, -(-SAMPLES_OF_DRAWS // len(samples)))):
            found = self._held_out_scores(samples, np.random.default_rng([seed, number]))
            if found is None:
                return
            yield found

    def _held_out_scores(self, samples: TrainingSamples, rng: np.random.Generator) -> HeldOutTable | None:
        """Score known samples by fits without their fold, and open ones by fits that lack their class, too.

        If scores keep their scale without a class (``_keeps_scale``), one fit scores both kinds.

        ``None`` if no known sample can be held out.
        """
        n_classes, classes, blocks = len(self.classes_), samples.classes, joined(samples.units, samples.groups)
        tables: list[HeldOutTable] = []
        order, folds, class_folds = rng.permutation(len(samples)), np.empty_like(classes), self._class_folds(rng)
        folds[order] = fold_numbers(classes[order], blocks[order], N_FOLDS)
        open_folds = rng.permutation(np.arange(len(samples.open_features)) % N_FOLDS)
        for fold in range(N_FOLDS):
            stays, tested, lacks = folds != fold, np.flatnonzero(folds == fold), class_folds[classes] == fold
            if self._keeps_scale() and (stays & ~lacks).any():
                stays = stays & ~lacks  # one fit has the scores of known and of open samples
            if not stays.any() or not (len(tested) or (open_folds == fold).any()):
                continue
            part, present = self._fit_part(samples.where(stays).normalized()), np.unique(classes[stays])
            scored, of_open = (
                part._scored(X) for X in (samples.features[tested], samples.open_features[open_folds == fold])
            )
            kinds = np.where(np.isin(classes[tested], present), KNOWN, OF_OTHER_CLASS)
            known = kinds, classes[tested], samples.weights[tested], blocks[tested]
            tables.append(_table_of(scored, *known, present, n_classes))
            tables.append(_table_of(of_open, *_as_open(len(of_open.assigned), n_classes), present, n_classes))
            if not self._keeps_scale() and lacks[tested].any() and (stays & ~lacks).any():
                tables.append(self._of_lacking(samples, stays & ~lacks, tested, lacks[tested], scored, blocks))
        found = HeldOutTable.joined(tables) if tables else None
        return found if found is not None and len(found.known) else None

    def _of_lacking(
        self,
        samples: TrainingSamples,
        stays: NDArray[np.bool_],
        tested: Integers,
        is_open: NDArray[np.bool_],
        scored: Scored,
        blocks: Integers,
    ) -> HeldOutTable:
        """Score samples by a fit without their classes, on the scale of ``scored``, by the fit with these classes.

        Scores depend on the number of classes and samples. So they are shifted and scaled until the known samples have
        the same mean and standard deviation in both fits.
        """
        part, present = self._fit_part(samples.where(stays).normalized()), np.unique(samples.classes[stays])
        alone = part._scored(samples.features[tested])
        known = np.isin(samples.classes[tested], present) & ~is_open
        shift, factor = _map_of(alone.knownness[known], scored.knownness[known], samples.weights[tested[known]])
        moved = shift + factor * alone.knownness, factor * alone.by_class
        opened, rows = Scored(alone.assigned[is_open], *(each[is_open] for each in moved)), tested[is_open]
        columns = np.full(len(rows), OF_OTHER_CLASS), samples.classes[rows], samples.weights[rows], blocks[rows]
        return _table_of(opened, *columns, present, len(self.classes_))

    def _class_folds(self, rng: np.random.Generator) -> Integers:
        """Deal the classes into folds; the classes of a fold are unknown to it, and at least two stay known."""
        n_classes = len(self.classes_)
        if self.threshold != "auto" or n_classes < 3:
            return np.full(n_classes, -1)
        return rng.permutation(np.arange(n_classes) % N_FOLDS)

    def _fitted_scores(self, samples: TrainingSamples) -> HeldOutTable:
        """Score the samples by the fit on these samples, if no sample can be held out."""
        blocks, everything = joined(samples.units, samples.groups), np.arange(n_classes := len(self.classes_))
        known = np.full(len(samples), KNOWN), samples.classes, samples.weights, blocks
        found = _table_of(self._scored(samples.features), *known, everything, n_classes)
        if self._can_refit():
            warn(
                "No class has two samples of which one can be held out, so that the threshold is chosen on the "
                "training samples, and is too high for new ones; pass more, different samples of each class, or a "
                "number as threshold."
            )
            return found
        real_open = samples.open_features
        opened = _table_of(self._scored(real_open), *_as_open(len(real_open), n_classes), everything, n_classes)
        return HeldOutTable.joined([found, opened])

    def _fit_part(self, samples: TrainingSamples) -> "ThresholdedClassifier":
        """Fit the score of a copy to some of the samples."""
        part: ThresholdedClassifier = self._unfitted_copy().set_params(threshold=0.0)
        present, codes = np.unique(samples.classes, return_inverse=True)
        part.classes_ = self.classes_[present]
        part.n_features_in_ = samples.features.shape[1]
        part._fit_scores(replace(samples, classes=codes))
        return part

    def _unfitted_copy(self) -> Any:
        return clone(self)

    def _scored(self, X: Floats) -> Scored:
        """Score samples; there may be none."""
        return self._score(X) if len(X) else Scored(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 1)))

    def _score_assigned(self, X: NDArray[Any]) -> tuple[Integers, NDArray[np.floating]]:
        scored = self._score(X.astype(np.float64, copy=False))
        return scored.assigned, (scored.knownness - self.threshold_).astype(X.dtype, copy=False)

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        return self._score(X.astype(np.float64, copy=False)).by_class.astype(X.dtype)


def in_double(samples: TrainingSamples) -> TrainingSamples:
    """Convert samples to double precision."""
    known, opened = (X.astype(np.float64, copy=False) for X in (samples.features, samples.open_features))
    return replace(samples, features=known, open_features=opened)


def _table_of(
    scored: Scored,
    kinds: Integers,
    classes: Integers,
    weights: Floats,
    blocks: Integers,
    present: Integers,
    n_classes: int,
) -> HeldOutTable:
    """Rows of the table from a fit that has the ``present`` classes; the distance is minus the score."""
    # Gaps are differences of scores; the assigned class is first, and its score is never below another's.
    n_first = min(N_FIRST, len(present))
    first = present[np.argsort(-scored.by_class, axis=1, kind="stable")[:, :n_first]]
    ranks, gaps = ranks_and_gaps(first, -np.sort(scored.by_class, axis=1)[:, ::-1][:, :n_first], classes)
    ranks = np.where(kinds == KNOWN, ranks, 0)
    found = kinds, -scored.knownness, present[scored.assigned], classes, weights, blocks, n_classes
    return HeldOutTable(*found, ranks=ranks, gaps=gaps)


def _map_of(source: Floats, target: Floats, weights: Floats) -> tuple[float, float]:
    """Shift and factor that map the mean and deviation of ``source`` to those of ``target``; 0 and 1 if undefined."""
    if not len(source) or not (np.isfinite(source).all() and np.isfinite(target).all()):
        return 0.0, 1.0
    means = [float(np.average(values, weights=weights)) for values in (source, target)]
    before, after = (
        float(np.average((values - mean) ** 2, weights=weights)) ** 0.5
        for values, mean in zip((source, target), means, strict=True)
    )
    factor = after / before if min(before, after) > TINY else 1.0
    return means[1] - factor * means[0], factor


def _as_open(n_open: int, n_classes: int) -> tuple[Integers, Integers, Floats, Integers]:
    """Kind, class, weight and block of each real open sample."""
    return np.full(n_open, REAL), np.full(n_open, n_classes), np.ones(n_open), -1 - np.arange(n_open)
