"""Euclidean norms of samples: a warning if they differ from training, and whether a row of zeros is unreadable."""

from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .warn import warn

Floats = NDArray[np.float64]

#: A norm is unlike those in training if it is above the largest usual one times this factor, or below the smallest one
#: divided by it. Raw and unit-length embeddings differ by more than this, open samples by less.
FACTOR = 2.0
#: Smallest number of new samples, of one call or several, that are compared; a few unusual ones are chance.
FEWEST_NEW = 20
#: Proportion of these samples whose norms must be unlike those in training.
PROPORTION = 0.9
#: Smallest number of training samples; with fewer there is no warning.
FEWEST_TRAINED = 50
#: With fewer features, as in a table or logits, open samples have norms of any size.
FEWEST_FEATURES = 10
#: Proportion of each class's norms that is unusual, at either end.
_TAIL = 0.05
#: If no training norm is below this fraction of the median, as with unit vectors, a row of zeros is an unreadable text.
_SHORTEST = 0.5


@dataclass
class _Seen:
    """Samples since the last comparison, after one fit."""

    norm_range: Floats
    n_samples: int = 0
    n_unlike: int = 0
    has_warned: bool = False

    def warns_of(self, n_samples: int, n_unlike: int) -> bool:
        self.n_samples += n_samples
        self.n_unlike += n_unlike
        if self.has_warned or self.n_samples < FEWEST_NEW:
            return False
        self.has_warned = self.n_unlike >= PROPORTION * self.n_samples
        self.n_samples = self.n_unlike = 0
        return self.has_warned


#: Kept outside of the estimators, because ``predict`` does not change a fitted model.
_SEEN: WeakKeyDictionary[Any, _Seen] = WeakKeyDictionary()
_LOCK = Lock()


def usual_norms(X: NDArray[Any], classes: NDArray[np.int64]) -> Floats | None:
    """Smallest and largest usual norm, (2,): over the classes, the least 5 % quantile and the greatest 95 % quantile.

    ``None`` with too few samples or features.
    """
    if len(X) < FEWEST_TRAINED or X.shape[1] < FEWEST_FEATURES:
        return None
    found = norms(X)
    quantiles = [np.quantile(found[classes == label], (_TAIL, 1 - _TAIL)) for label in np.unique(classes)]
    low, high = zip(*quantiles, strict=True)
    return np.array([min(low), max(high)])


def zeros_are_none(X: NDArray[Any]) -> bool:
    """Whether rows of zeros are unreadable texts: whether no training sample is nearly zero.

    False with few features: in a table or in logits zeros may be an ordinary sample.
    """
    found = norms(X) if X.shape[1] >= FEWEST_FEATURES else np.zeros(0)
    return bool(len(found)) and bool(found.min() > 0) and bool(found.min() >= _SHORTEST * np.median(found))


def less_excess(scores: Any, of_assigned: Any, highest: float) -> Any:
    """Lower the scores of unreadable texts for all classes, arrays or tensors, (n_samples, n_classes).

    Each row loses what the score of its assigned class, (n_samples, 1), exceeds the ``highest`` by.
    """
    return scores - (of_assigned - highest).clip(0)


def are_zeros(X: Any) -> Any:
    """Mark rows of zeros, (n_samples,), of an array or a tensor."""
    return (X == 0).all(1)


def warn_of_unlike_norms(estimator: Any, found: NDArray[Any] | None) -> None:
    """Warn the caller's caller, once for each fit, if nearly all samples have norms unlike those in training."""
    norm_range: Floats | None = getattr(estimator, "_norm_range", None)
    if norm_range is None or found is None:
        return
    is_unlike = (found < norm_range[0] / FACTOR) | (found > norm_range[1] * FACTOR)
    with _LOCK:
        seen = _SEEN.get(estimator)
        if seen is None or seen.norm_range is not norm_range:  # a new fit has a new array
            seen = _SEEN[estimator] = _Seen(norm_range)
        if not seen.warns_of(len(found), int(is_unlike.sum())):
            return
    usual = np.quantile(found, (_TAIL, 1 - _TAIL), method="closest_observation")  # of infinite norms too
    warn(
        f"New samples have a Euclidean norm of {_span(*usual)}, but training samples had {_span(*norm_range)}: prepare "
        "new samples as in training (same model, normalisation and scaling), or most predictions will be wrong."
    )


def norms(X: NDArray[Any]) -> Floats:
    """Euclidean norms of samples, (n_samples,), in double precision without a copy of X."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64)))


def _span(low: float, high: float) -> str:
    first, last = f"{low:.3g}", f"{high:.3g}"
    return first if first == last else f"{first} to {last}"
