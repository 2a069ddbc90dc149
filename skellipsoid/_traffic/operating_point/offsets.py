"""Offsets from scores: below the offset samples are rejected, at a given rate."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from ..._core.labels import as_kind_of, as_labels
from ..._core.pipelines import read_estimator
from ..._core.spelling import refuse_other_spellings, warn_of_strangers
from ..._core.validation import is_number
from ..._core.warn import warn
from ...metrics import open_set_f1_score

#: Number of candidate offsets for the best F1 of a fold.
_N_OFFSETS = 201
#: Confidence of the rate that a warning says few samples can keep.
_CONFIDENCE = 0.95


def check_rates(rejection_rate: float | None, open_acceptance_rate: float | None) -> None:
    """Raise an error unless rates are in [0, 1], and not both are given."""
    if rejection_rate is not None and open_acceptance_rate is not None:
        raise ValueError(
            "rejection_rate and open_acceptance_rate are both given; set one of them and leave the other None."
        )
    for name, rate in {"rejection_rate": rejection_rate, "open_acceptance_rate": open_acceptance_rate}.items():
        if rate is not None and not (is_number(rate) and 0 <= rate <= 1):
            raise ValueError(f"{name}={rate!r} is not a proportion; use a number from 0 to 1.")


def most_beyond(n_samples: int, rate: float) -> int:
    """Largest number of ``n_samples`` beyond an offset for which at most the proportion ``rate`` of new ones is beyond.

    With r samples beyond the offset, which is the score of the next one, the rate of new samples beyond it has the
    distribution Beta(r + 1, n − r). Its mean (r + 1) / (n + 1) is at most the rate. −1 if not even r = 0 holds.
    """
    # Quotients, because 0.29 · 100 < 29.
    return int(np.searchsorted(np.arange(n_samples + 2) / (n_samples + 1), rate, side="right")) - 2


def select(scores: NDArray[np.floating], chosen: NDArray[np.bool_], name: str, kind: str) -> NDArray[np.floating]:
    """Scores of the samples that a rate refers to; an error if there are none."""
    if not chosen.any():
        raise ValueError(f"{name} is a proportion of {kind}, but there are none; pass at least one such sample.")
    return scores[chosen]


def rejection_offset(scores: NDArray[np.floating], rate: float) -> float:
    """Offset below which new samples lie at most at the ``rate``; with too few scores the lowest score."""
    if np.isneginf(scores).all():  # then everything else would be known
        raise ValueError(
            f"All {len(scores)} known samples are so far from the classes that their scores are -inf, so that no "
            "offset can be chosen by them; check the units of X."
        )
    beyond = most_beyond(len(scores), rate)
    if beyond == len(scores):
        warn(f"A rejection rate of {rate:g} rejects every sample: all predictions are open; pass a smaller rate.")
        return finite(scores.dtype.type(np.inf))
    return finite(np.sort(scores)[max(beyond, 0)])


def acceptance_offset(scores: NDArray[np.floating], rate: float) -> float:
    """Smallest offset that accepts new samples at most at the ``rate``; with too few scores one above the highest."""
    beyond = most_beyond(len(scores), rate)
    if beyond == len(scores):
        warn(f"An acceptance rate of {rate:g} accepts every sample: no prediction is open; pass a smaller rate.")
        return finite(scores.dtype.type(-np.inf))
    # A score equal to the offset is accepted, so the offset is the next number above the first rejected score.
    first_rejected = np.sort(scores)[::-1][max(beyond, 0)]
    return finite(np.nextafter(first_rejected, scores.dtype.type(np.inf)))


def finite(offset: Any) -> float:
    """Return a score as a finite offset: samples so far out that their scores are −∞ are always open.

    The mean of two of them is finite, too.
    """
    most = np.finfo(np.asarray(offset).dtype).max / 2
    return float(np.clip(offset, -most, most))


_RESULTS = {
    "known": "the offset is their lowest score, which rejects none of them, but more of new known samples than the "
    "rate",
    "open": "the offset is above their highest score, which accepts none of them, but more of new open samples than "
    "the rate",
}


def warn_of_few(name: str, rate: float, n_samples: int, kind: Literal["known", "open"] = "known") -> None:
    """Warn if a rate needs more samples, with the rates that so few can keep; a rate of 0 needs only one."""
    if rate > 0 and most_beyond(n_samples, rate) < 0:
        mean, most = 100 / (n_samples + 1), -100 * np.expm1(np.log1p(-_CONFIDENCE) / n_samples)
        # The reciprocal of a smaller rate is infinite.
        needed = float(np.ceil(1 / max(float(rate), np.finfo(float).tiny))) - 1
        warn(
            f"There are too few samples for {name}={rate:g} (of {n_samples} {kind} samples, {needed:.9g} are "
            f"needed; {n_samples} can keep {mean:.2g} % on average, or {most:.2g} % with a confidence of "
            f"{100 * _CONFIDENCE:g} %): {_RESULTS[kind]}; pass more samples or a rate that they can keep."
        )


def offset_of_rate(
    estimator: Any, X: Any, y: ArrayLike | None, rejection_rate: float | None, open_acceptance_rate: float | None
) -> float:
    """Offset for a rate of the given samples; without labels, all of them are of the kind that the rate refers to."""
    classifier, features = read_estimator(estimator, X, ("score_samples",), "set_operating_point")
    scores = np.asarray(classifier.score_samples(features))
    is_known = is_open = np.ones(len(scores), dtype=bool)
    if y is not None:
        labels = as_labels(y)
        check_consistent_length(scores, labels)
        labels = as_kind_of(labels, classifier.classes_, "y", "classes_")
        refuse_other_spellings(labels, classifier.classes_, classifier.open_label_)
        warn_of_strangers(labels, classifier.classes_, classifier.open_label_)
        codes = classifier._encode(labels)
        is_known = codes < len(classifier.classes_)
        is_open = ~is_known
    if rejection_rate is not None:
        scores = select(scores, is_known, "rejection_rate", "known samples")
        warn_of_few("rejection_rate", rejection_rate, len(scores))
        return rejection_offset(scores, rejection_rate)
    rate = float(open_acceptance_rate)  # type: ignore[arg-type]
    scores = select(scores, is_open, "open_acceptance_rate", "open samples")
    warn_of_few("open_acceptance_rate", rate, len(scores), "open")
    return acceptance_offset(scores, rate)


class HeldOutOfFold(NamedTuple):
    """Test samples of a fold, as the fitted classifier keeps held-out samples."""

    labels: NDArray[Any]  # (n_samples,)
    is_known: NDArray[np.bool_]  # (n_samples,)
    scores: NDArray[np.float64]  # (n_samples,)
    first: NDArray[Any]  # (n_samples, n_first) labels of the first classes
    compared: NDArray[np.float64]  # (n_samples, n_first) what is least of the class that comes first


@dataclass(frozen=True)
class Fold:
    """Scored test samples of a fold: classes as codes, ``n_classes`` is open."""

    true: NDArray[np.int64]
    nearest: NDArray[np.int64]
    scores: NDArray[np.floating]
    n_classes: int
    n_features: int = 0
    held_out: HeldOutOfFold | None = None  # of a classifier whose folds score as the fit to all does

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return self.true < self.n_classes

    def acceptance_rate(self, offset: float, *, known: bool) -> float:
        scores = self.scores[self.is_known == known]
        return float(np.mean(scores >= offset)) if len(scores) else float("nan")

    def f1(self, offset: float) -> float:
        predicted = np.where(self.scores >= offset, self.nearest, self.n_classes)
        classes = np.arange(self.n_classes)
        return open_set_f1_score(self.true, predicted, labels=classes, open_label=self.n_classes, zero_division=0)

    def best_offset(self) -> float:
        """Offset with the best F1; of equal ones the nearest to 0."""
        if self.is_known.all():
            raise ValueError(
                "A fold holds no open sample, so that its F1 only falls with rejection; use a splitter that leaves "
                "classes out, such as OpenSetKFold, or set rejection_rate."
            )
        found = np.quantile(self.scores, np.linspace(0, 1, _N_OFFSETS), method="closest_observation")
        offsets = np.unique(np.append(found.astype(float), 0.0))
        f1 = np.array([self.f1(offset) for offset in offsets])
        best = offsets[f1 == f1.max()]
        return float(best[np.abs(best).argmin()])


def offsets_of(
    folds: list[Fold], rejection_rate: float | None, open_acceptance_rate: float | None
) -> NDArray[np.float64]:
    """Offset of each fold, by a rate or for the best F1; with the warning that folds have few samples."""
    if open_acceptance_rate is not None:
        name = "open_acceptance_rate"
        opened = [select(fold.scores, ~fold.is_known, name, "open samples in each fold") for fold in folds]
        warn_of_few(name, open_acceptance_rate, min(map(len, opened)), "open")
        return np.array([acceptance_offset(scores, open_acceptance_rate) for scores in opened])
    if rejection_rate is None:
        return np.array([fold.best_offset() for fold in folds])
    name = "rejection_rate"
    known = [select(fold.scores, fold.is_known, name, "known samples in each fold") for fold in folds]
    warn_of_few(name, rejection_rate, min(map(len, known)))
    return np.array([rejection_offset(scores, rejection_rate) for scores in known])
