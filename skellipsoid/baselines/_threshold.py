"""Thresholds of scores: given, or read off samples that were held out of a fit."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.sklearn import StrOptions
from .._core.state_rules import THRESHOLDED, Rule
from .._core.warn import warn
from .._held_out.kept import KeepsHeldOutMixin
from .._held_out.line import limit_of
from .._held_out.scores import Expected
from .._held_out.table import (
    KNOWN,
    N_FIRST,
    OF_OTHER_CLASS,
    REAL,
    HeldOutTable,
    best_threshold,
    quantile,
    ranks_and_gaps,
)
from .._samples.folds import fold_numbers
from .._samples.samples import joined
from .._samples.training_samples import TrainingSamples

#: Folds in which samples, and classes, are held out: five, by convention.
N_FOLDS = 5
#: Share of known samples that ``threshold="quantile"`` rejects.
REJECTED = 0.05

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Scored(NamedTuple):
    """What a method says of samples."""

    assigned: Integers  # (n_samples,) class
    knownness: Floats  # (n_samples,) the method's own score, higher is more known
    by_class: Floats  # (n_samples, n_classes) in whose largest entry the assigned class is, up to ties


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdedClassifier(KeepsHeldOutMixin, BaseOpenSetClassifier):
    """Template: a score of how known a sample is, less a threshold.

    A member writes ``_fit_scores``, ``_score``, and ``_paper_threshold`` if a publication gives one.
    """

    threshold: str | float = "quantile"
    duplicates: str = "once"
    open_label: int | str = -1

    _state: ClassVar[dict[str, Rule]] = THRESHOLDED
    #: That of ``threshold="paper"``.
    _paper_threshold: ClassVar[float]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Real, StrOptions({"quantile", "auto"})],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
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

    def _fit_boundaries(self, samples: TrainingSamples) -> None:
        samples = in_double(samples)
        self._fit_scores(samples)
        self._set_threshold(samples)

    def _set_threshold(self, samples: TrainingSamples) -> None:
        """Take the threshold that is given, or read it off held-out samples, and keep their scores."""
        if self.threshold == "paper":
            self.threshold_ = self._paper_threshold
            return
        if not isinstance(self.threshold, str):
            self.threshold_ = float(self.threshold)
            return
        held_out, parts = self._held_out_scores(samples) if self._can_refit() else (None, [])
        scored = self._fitted_scores(samples) if held_out is None else held_out
        if self.threshold == "auto" and held_out is not None and self._scores_as_new:
            self.threshold_ = limit_of(held_out.scores(Expected.by(self)), len(self.classes_))
        elif self.threshold == "auto" and scored.is_open.any():
            self.threshold_ = best_threshold(scored)
        else:
            self.threshold_ = quantile(-scored.known.distances, scored.known.weights, REJECTED)
        self._held_out = None
        if held_out is not None:
            self._keep_held_out(held_out, np.concatenate([self._margins(part) for part in parts]))

    def _held_out_scores(self, samples: TrainingSamples) -> tuple[HeldOutTable | None, list[Scored]]:
        """Score every known sample by a fit without its fold, and a share of the classes in each fold as open samples.

        Gives the table, ``None`` if no known sample can be held out, and what the fits say of its samples, in the same
        order.
        """
        n_classes, classes, blocks = len(self.classes_), samples.classes, joined(samples.units, samples.groups)
        tables: list[HeldOutTable] = []
        parts: list[Scored] = []
        folds = fold_numbers(classes, blocks, N_FOLDS)
        open_folds = np.arange(len(samples.open_features)) % N_FOLDS
        for fold in range(N_FOLDS):
            chosen = (folds != fold) & ~(self._is_held_out(classes, fold))
            tested = np.flatnonzero(folds == fold)
            if not chosen.any() or not (len(tested) or (open_folds == fold).any()):
                continue
            part = self._fit_part(samples.where(chosen).normalized())
            present = np.unique(classes[chosen])
            kinds = np.where(np.isin(classes[tested], present), KNOWN, OF_OTHER_CLASS)
            known = kinds, classes[tested], samples.weights[tested], blocks[tested]
            opened = samples.open_features[open_folds == fold]
            scored, of_open = part._scored(samples.features[tested]), part._scored(opened)
            tables.append(_table_of(scored, *known, present, n_classes))
            tables.append(_table_of(of_open, *_as_open(len(opened), n_classes), present, n_classes))
            parts += [scored, of_open]
        found = HeldOutTable.joined(tables) if tables else None
        return found if found is not None and len(found.known) else None, parts

    def _fitted_scores(self, samples: TrainingSamples) -> HeldOutTable:
        """Score the samples by the fit that has seen them, where no other is possible."""
        blocks, everything = joined(samples.units, samples.groups), np.arange(n_classes := len(self.classes_))
        known = np.full(len(samples), KNOWN), samples.classes, samples.weights, blocks
        found = _table_of(self._scored(samples.features), *known, everything, n_classes)
        if self._can_refit():
            warn(
                "No sample of a class can be held out while another stays, so that the threshold is read off the "
                "samples that were fitted, and is too high for new ones; give each class more, different samples, or "
                "pass a number as threshold."
            )
            return found
        real_open = samples.open_features
        opened = _table_of(self._scored(real_open), *_as_open(len(real_open), n_classes), everything, n_classes)
        return HeldOutTable.joined([found, opened])

    def _is_held_out(self, classes: Integers, fold: int) -> NDArray[np.bool_]:
        """Mark samples of the classes that a fold does not know; at least two stay known."""
        if self.threshold != "auto" or len(self.classes_) < 3:
            return np.zeros(len(classes), dtype=bool)
        return np.asarray(classes % N_FOLDS == fold)

    def _fit_part(self, samples: TrainingSamples) -> "ThresholdedClassifier":
        """Fit the score of a copy to some of the samples."""
        part: ThresholdedClassifier = clone(self).set_params(threshold=0.0)
        present, codes = np.unique(samples.classes, return_inverse=True)
        part.classes_ = self.classes_[present]
        part.n_features_in_ = samples.features.shape[1]
        part._fit_scores(replace(samples, classes=codes))
        return part

    def _scored(self, X: Floats) -> Scored:
        """Score samples, of which there may be none."""
        return self._score(X) if len(X) else Scored(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 1)))

    def _margins(self, scored: Scored) -> Floats:
        """Scores less the threshold, as ``score_samples`` gives them."""
        return np.asarray(scored.knownness - self.threshold_)

    def _score_assigned(self, X: NDArray[Any]) -> tuple[Integers, NDArray[np.floating]]:
        scored = self._score(X.astype(np.float64, copy=False))
        return scored.assigned, self._margins(scored).astype(X.dtype, copy=False)

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        return self._score(X.astype(np.float64, copy=False)).by_class.astype(X.dtype)


def in_double(samples: TrainingSamples) -> TrainingSamples:
    """Give samples in double precision."""
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
    """Give a part of the table: what a fit says that knows the ``present`` classes: a distance is a score times −1."""
    # Differences of scores are the gaps; in one order: what the assigned class has is never less than another's.
    n_first = min(N_FIRST, len(present))
    first = present[np.argsort(-scored.by_class, axis=1, kind="stable")[:, :n_first]]
    ranks, gaps = ranks_and_gaps(first, -np.sort(scored.by_class, axis=1)[:, ::-1][:, :n_first], classes)
    ranks = np.where(kinds == KNOWN, ranks, 0)
    found = kinds, -scored.knownness, present[scored.assigned], classes, weights, blocks, n_classes
    return HeldOutTable(*found, ranks=ranks, gaps=gaps)


def _as_open(n_open: int, n_classes: int) -> tuple[Integers, Integers, Floats, Integers]:
    """Kinds, classes, weights and blocks of real open samples."""
    return np.full(n_open, REAL), np.full(n_open, n_classes), np.ones(n_open), -1 - np.arange(n_open)
