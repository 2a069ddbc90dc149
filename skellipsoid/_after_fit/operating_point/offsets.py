"""Offsets from scores: below the offset samples are rejected, at a given rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.utils import check_consistent_length

from ..._core.labels import as_kind_of, as_labels
from ..._core.pipelines import read_estimator
from ..._core.validation import enumerated
from ..._core.warn import warn
from ...metrics import open_set_f1_score

#: Number of candidate offsets for the best F1 of a fold.
_N_OFFSETS = 201
#: Confidence of the rate that a warning says few samples can keep, if none was asked for.
_CONFIDENCE = 0.95


def check_rates(
    rejection_rate: float | None,
    open_acceptance_rate: float | None,
    class_rejection_rates: Mapping[Any, float] = MappingProxyType({}),
    classes: Sequence[Any] = (),
    confidence: float | None = None,
) -> None:
    """Raise an error unless rates are shares, of known classes, and not both of the first two are given."""
    if confidence is not None:
        if not (isinstance(confidence, int | float | np.number) and 0 < confidence < 1):
            raise ValueError(f"confidence={confidence!r} is not possible; use a number between 0 and 1, such as 0.95.")
        if rejection_rate is None and open_acceptance_rate is None and not class_rejection_rates:
            raise ValueError(
                f"confidence={confidence!r} is given without a rate that it is about; set one, or leave it out."
            )
    if rejection_rate is not None and open_acceptance_rate is not None:
        raise ValueError(
            "rejection_rate and open_acceptance_rate are both given; set one of them and leave the other None."
        )
    rates = {"rejection_rate": rejection_rate, "open_acceptance_rate": open_acceptance_rate}
    for label, class_rate in class_rejection_rates.items():
        if label not in classes:
            known = enumerated(np.array(classes))
            raise ValueError(
                f"class_rejection_rates has the key {label!r}, which is no known class; use some of {known}."
            )
        rates[name_class_rate(label)] = class_rate
    for name, rate in rates.items():
        if rate is not None and not (isinstance(rate, int | float | np.number) and 0 <= rate <= 1):
            raise ValueError(f"{name}={rate!r} is not a share; use a number from 0 to 1.")


def name_class_rate(label: Any) -> str:
    """Name the rate of a class for a message."""
    return f"class_rejection_rates[{label!r}]"


def most_beyond(n_rows: int, rate: float, confidence: float | None = None) -> int:
    """Largest number of ``n_rows`` samples beyond an offset for which at most the share ``rate`` of new ones is beyond.

    With r samples beyond the offset, which is the score of the next one, the share of new samples beyond it has the
    distribution Beta(r + 1, n − r). Its mean (r + 1) / (n + 1) is at most the rate, or with a ``confidence`` its
    quantile. −1 if not even r = 0 holds.
    """
    if rate == 1:
        return n_rows
    if confidence is None:
        # Quotients, because 0.29 · 100 < 29.
        return int(np.searchsorted(np.arange(n_rows + 2) / (n_rows + 1), rate, side="right")) - 2
    beyond = np.arange(n_rows)
    return int((beta.cdf(rate, beyond + 1, n_rows - beyond) >= confidence).sum()) - 1


def fewest_rows(rate: float, confidence: float | None = None) -> int:
    """Smallest number of samples that can keep a rate above 0."""
    if confidence is None:
        return max(1, int(np.ceil(1 / rate)) - 1)
    return 1 if rate == 1 else max(1, int(np.ceil(np.log1p(-confidence) / np.log1p(-rate))))


def select(scores: NDArray[np.floating], rows: NDArray[np.bool_], name: str, kind: str) -> NDArray[np.floating]:
    """Scores of the samples that a rate refers to; an error if there are none."""
    if not rows.any():
        raise ValueError(f"{name} is a share of {kind}, but there are none; pass at least one such row.")
    return scores[rows]


def rejection_offset(scores: NDArray[np.floating], rate: float, confidence: float | None = None) -> float:
    """Offset below which new samples lie at most at the ``rate``; with too few scores the lowest score."""
    beyond = most_beyond(len(scores), rate, confidence)
    return float(np.sort(scores)[max(beyond, 0)]) if beyond < len(scores) else np.inf


def acceptance_offset(scores: NDArray[np.floating], rate: float, confidence: float | None = None) -> float:
    """Smallest offset that accepts new samples at most at the ``rate``; with too few scores one above the highest."""
    beyond = most_beyond(len(scores), rate, confidence)
    if beyond == len(scores):
        return -np.inf
    # A score equal to the offset is accepted, so the offset is the next number above the first rejected score.
    first_rejected = np.sort(scores)[::-1][max(beyond, 0)]
    return float(np.nextafter(first_rejected, scores.dtype.type(np.inf)))


def difference(least: float, offset: float) -> float:
    """Class offset whose sum with ``offset`` is ``least``, and not above it after rounding."""
    found = least - offset
    while offset + found > least:
        found = float(np.nextafter(found, -np.inf))
    return found


class Shortage(NamedTuple):
    """A rate that may need more samples."""

    name: str
    rate: float
    n_rows: int
    kind: Literal["known", "open"] = "known"
    confidence: float | None = None

    def __str__(self) -> str:
        """Name the rate, how many samples there are, how many are needed, and which rates so few can keep."""
        level = _CONFIDENCE if self.confidence is None else self.confidence
        mean, most = 100 / (self.n_rows + 1), -100 * np.expm1(np.log1p(-level) / self.n_rows)
        return (
            f"{self.name}={self.rate:g} (of {self.n_rows} {self.kind} rows, "
            f"{fewest_rows(self.rate, self.confidence)} are needed; {self.n_rows} can keep "
            f"{mean:.2g} % on average, or {most:.2g} % with a confidence of {100 * level:g} %)"
        )

    @property
    def is_real(self) -> bool:
        """Whether there are too few samples; a rate of 0 needs only one."""
        return self.rate > 0 and most_beyond(self.n_rows, self.rate, self.confidence) < 0


_RESULTS = {
    "known": "the offset is their lowest score, which rejects none of them, but more of new known rows than the rate",
    "open": "the offset is above their highest score, which accepts none of them, but more of new open rows than the "
    "rate",
}


def warn_of_shortages(shortages: list[Shortage]) -> None:
    """Warn of the rates that need more samples: once for known samples, once for open ones."""
    for kind, result in _RESULTS.items():
        names = dict.fromkeys(str(shortage) for shortage in shortages if shortage.is_real and shortage.kind == kind)
        if names:
            warn(
                f"There are too few rows for {'; '.join(names)}: {result}; pass more rows or a rate that they can keep."
            )


class GivenRows:
    """Scores of the given samples, and the rate that each of them counts for."""

    def __init__(self, estimator: Any, X: ArrayLike | None, y: ArrayLike | None, confidence: float | None) -> None:
        members = ("score_samples", "predict_known")
        classifier, features = read_estimator(estimator, X, members, "set_operating_point")
        self.classes = classifier.classes_.tolist()
        self.scores = np.asarray(classifier.score_samples(features))
        self.assigned = classifier._encode(classifier.predict_known(features))
        # Without labels, known samples are of the class that they are assigned to, and open samples are all samples.
        self.true, self.is_open = self.assigned, np.ones(len(self.scores), dtype=bool)
        if y is not None:
            labels = as_labels(y)
            check_consistent_length(self.scores, labels)
            self.true = classifier._encode(as_kind_of(labels, classifier.classes_, "y", "classes_"))
            self.is_open = self.true == len(self.classes)
        self.confidence, self.shortages = confidence, list[Shortage]()

    def offsets(
        self, rejection_rate: float | None, open_acceptance_rate: float | None, class_rates: dict[Any, float]
    ) -> tuple[float, NDArray[np.float64]]:
        """Offset, and what is added to it for each class."""
        codes = {self.classes.index(label): label for label in class_rates}
        others = ~np.isin(self.assigned, [*codes])
        kind = "rows assigned to a class without a rate of its own" if codes else "rows"
        offset, class_offsets = 0.0, np.zeros(len(self.classes))
        if open_acceptance_rate is not None:
            name, rate = "open_acceptance_rate", float(open_acceptance_rate)
            scores = select(self.scores, others & self.is_open, name, f"open {kind}")
            self.shortages.append(Shortage(name, rate, len(scores), "open", self.confidence))
            offset = acceptance_offset(scores, rate, self.confidence)
        elif rejection_rate is not None:
            known = others & (self.true < len(self.classes))
            offset = self._rejection_offset("rejection_rate", float(rejection_rate), known, f"known {kind}")
        if codes and np.isinf(offset):  # an infinite offset stays infinite
            offset, class_offsets[:] = 0.0, offset
        for code, label in codes.items():
            rows = (self.assigned == code) & (self.true == code)
            name, kind = name_class_rate(label), f"known rows assigned to the class {label!r}"
            least = self._rejection_offset(name, float(class_rates[label]), rows, kind)
            class_offsets[code] = difference(least, offset)
        return offset, class_offsets

    def _rejection_offset(self, name: str, rate: float, rows: NDArray[np.bool_], kind: str) -> float:
        scores = select(self.scores, rows, name, kind)
        self.shortages.append(Shortage(name, rate, len(scores), confidence=self.confidence))
        return rejection_offset(scores, rate, self.confidence)


@dataclass(frozen=True)
class Fold:
    """Scored test samples of a fold: classes as codes, ``n_classes`` is open."""

    true: NDArray[np.int64]
    nearest: NDArray[np.int64]
    scores: NDArray[np.floating]
    n_classes: int

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return self.true < self.n_classes

    def share_accepted(self, offset: float, *, known: bool) -> float:
        scores = self.scores[self.is_known == known]
        return float(np.mean(scores >= offset)) if len(scores) else float("nan")

    def f1(self, offset: float) -> float:
        answers = np.where(self.scores >= offset, self.nearest, self.n_classes)
        classes = np.arange(self.n_classes)
        return open_set_f1_score(self.true, answers, labels=classes, open_label=self.n_classes, zero_division=0)

    def best_offset(self) -> float:
        """Offset with the best F1; of equal ones the nearest to 0."""
        if self.is_known.all():
            raise ValueError(
                "A fold holds no open row, so that its F1 only falls with rejection; use a splitter that leaves "
                "classes out, such as OpenSetKFold, or set rejection_rate."
            )
        found = np.quantile(self.scores, np.linspace(0, 1, _N_OFFSETS), method="closest_observation")
        offsets = np.unique(np.append(found.astype(float), 0.0))
        f1 = np.array([self.f1(offset) for offset in offsets])
        best = offsets[f1 == f1.max()]
        return float(best[np.abs(best).argmin()])
