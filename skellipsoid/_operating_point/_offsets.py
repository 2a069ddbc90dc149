"""Offsets from scores: below the offset samples are rejected, at a given rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import enumerated
from ..metrics import open_set_f1_score

#: Number of candidate offsets for the best F1 of a fold.
_N_OFFSETS = 201


def check_rates(
    rejection_rate: float | None,
    open_acceptance_rate: float | None,
    class_rejection_rates: Mapping[Any, float] = MappingProxyType({}),
    classes: Sequence[Any] = (),
) -> None:
    """Raise an error unless rates are shares, of known classes, and not both of the first two are given."""
    if rejection_rate is not None and open_acceptance_rate is not None:
        msg = "rejection_rate and open_acceptance_rate are both given; set one of them and leave the other None."
        raise ValueError(msg)
    rates = {"rejection_rate": rejection_rate, "open_acceptance_rate": open_acceptance_rate}
    for label, class_rate in class_rejection_rates.items():
        if label not in classes:
            known = enumerated(np.array(classes))
            msg = f"class_rejection_rates has the key {label!r}, which is no known class; use some of {known}."
            raise ValueError(msg)
        rates[name_class_rate(label)] = class_rate
    for name, rate in rates.items():
        if rate is not None and not (isinstance(rate, int | float | np.number) and 0 <= rate <= 1):
            msg = f"{name}={rate!r} is not a share; use a number from 0 to 1."
            raise ValueError(msg)


def name_class_rate(label: Any) -> str:
    """Name the rate of a class for a message."""
    return f"class_rejection_rates[{label!r}]"


def _most(n_rows: int, rate: float) -> int:
    """Largest number of samples that is at most the share ``rate`` of them; quotients, because 0.29 · 100 < 29."""
    return int(np.searchsorted(np.arange(n_rows + 1) / n_rows, rate, side="right")) - 1


def select(scores: NDArray[np.floating], rows: NDArray[np.bool_], name: str, kind: str) -> NDArray[np.floating]:
    """Scores of the samples that a rate refers to; an error if there are none."""
    if not rows.any():
        msg = f"{name} is a share of {kind}, but there are none; pass at least one such row."
        raise ValueError(msg)
    return scores[rows]


def rejection_offset(scores: NDArray[np.floating], rate: float) -> float:
    """Offset below which a new sample lies with a probability of at most ``rate``; with too few scores the lowest.

    A new sample is equally likely to have each of the n + 1 ranks among n scores and its own, so that it lies below the
    r-th lowest of them with probability r / (n + 1).
    """
    rank = _most(len(scores) + 1, rate)
    return float(np.sort(scores)[max(rank, 1) - 1]) if rank <= len(scores) else np.inf


def acceptance_offset(scores: NDArray[np.floating], rate: float) -> float:
    """Smallest offset that accepts at most the share ``rate`` of the scores."""
    most = _most(len(scores), rate)
    # A score equal to the offset is accepted, so the offset is the next number above the first rejected score.
    return (
        float(np.nextafter(np.sort(scores)[::-1][most], scores.dtype.type(np.inf))) if most < len(scores) else -np.inf
    )


def difference(least: float, offset: float) -> float:
    """Class offset whose sum with ``offset`` is ``least``, and not above it after rounding."""
    found = least - offset
    while offset + found > least:
        found = float(np.nextafter(found, -np.inf))
    return found


class Shortage(NamedTuple):
    """A rejection rate that needs more samples."""

    name: str
    rate: float
    n_rows: int

    def __str__(self) -> str:
        """Name the rate, how many samples there are and how many are needed."""
        needed = max(1.0, np.ceil(1 / self.rate) - 1)
        return f"{self.name}={self.rate:g} (of {self.n_rows} known rows, {needed:.0f} are needed)"

    @property
    def is_real(self) -> bool:
        """Whether there are too few samples; a rate of 0 needs only the lowest of them."""
        return self.rate > 0 and _most(self.n_rows + 1, self.rate) == 0


def describe_shortages(shortages: list[Shortage]) -> str | None:
    """Warning about the rates that need more samples, if there are any."""
    names = dict.fromkeys(str(shortage) for shortage in shortages if shortage.is_real)
    if not names:
        return None
    return (
        f"There are too few rows for {'; '.join(names)}: the offset is their lowest score, which rejects none of them, "
        "but more of new known rows than the rate; pass more rows or a larger rate."
    )


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
            msg = (
                "A fold holds no open row, so that its F1 only falls with rejection; use a splitter that leaves "
                "classes out, such as OpenSetKFold, or set rejection_rate."
            )
            raise ValueError(msg)
        found = np.quantile(self.scores, np.linspace(0, 1, _N_OFFSETS), method="closest_observation")
        offsets = np.unique(np.append(found.astype(float), 0.0))
        f1 = np.array([self.f1(offset) for offset in offsets])
        best = offsets[f1 == f1.max()]
        return float(best[np.abs(best).argmin()])
