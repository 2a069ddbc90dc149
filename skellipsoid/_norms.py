"""A warning when samples have norms unlike those of the training samples, as without the preprocessing of training."""

from threading import Lock
from typing import Any
from warnings import warn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

#: Norms farther from those of the training samples than this factor are unlike them.
FACTOR = 1.25
#: Samples that are judged together, of one call or of several: a few odd ones say nothing.
FEWEST_SAMPLES = 20
#: Share of these samples that must be unlike the training samples.
SHARE = 0.9
#: Share of each class's training norms that is cut off at either end.
_TAIL = 0.05


class _Count:
    """Samples since the last judgement of one fit."""

    def __init__(self, norm_range: NDArray[np.float64]) -> None:
        self.norm_range = norm_range
        self.n_samples = self.n_unlike = 0
        self.lowest, self.highest = np.inf, 0.0
        self.has_warned = False


#: Beside the estimators and not in them: ``predict`` changes no fitted model.
_COUNTS: WeakKeyDictionary[Any, _Count] = WeakKeyDictionary()
_LOCK = Lock()


def usual_norms(X: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the smallest and the largest usual norm, (2,): the 5 % and 95 % quantiles of the classes at the ends."""
    norms = _norms(X)
    quantiles = [np.quantile(norms[classes == label], (_TAIL, 1 - _TAIL)) for label in np.unique(classes)]
    low, high = zip(*quantiles, strict=True)
    return np.array([min(low), max(high)])


def warn_of_unlike_norms(estimator: Any, X: NDArray[Any], stacklevel: int) -> None:
    """Warn, once for each fit of an estimator, if nearly all samples have norms unlike those in training."""
    norm_range = getattr(estimator, "_norm_range", None)
    if norm_range is None:
        return
    norms = _norms(X)
    unlike = norms[(norms < norm_range[0] / FACTOR) | (norms > norm_range[1] * FACTOR)]
    with _LOCK:
        count = _COUNTS.get(estimator)
        if count is None or count.norm_range is not norm_range:  # not seen, or fitted again
            count = _COUNTS[estimator] = _Count(norm_range)
        if count.has_warned:
            return
        count.n_samples += len(norms)
        count.n_unlike += len(unlike)
        if len(unlike):
            count.lowest, count.highest = min(count.lowest, unlike.min()), max(count.highest, unlike.max())
        if count.n_samples < FEWEST_SAMPLES:
            return
        count.has_warned = count.n_unlike >= SHARE * count.n_samples
        if not count.has_warned:
            count.n_samples = count.n_unlike = 0
            count.lowest, count.highest = np.inf, 0.0
            return
    warn(
        f"{count.n_unlike} of the last {count.n_samples} samples have a Euclidean norm of "
        f"{_span(count.lowest, count.highest)}, but that of training samples is {_span(*norm_range)}. The answers "
        "cannot be trusted: prepare new samples as in training (normalisation, scaling, the same model), or fit again.",
        stacklevel=stacklevel + 1,
    )


def _norms(X: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # of values that predict does not refuse
        return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def _span(low: float, high: float) -> str:
    first, last = f"{low:.3g}", f"{high:.3g}"
    return first if first == last else f"{first} to {last}"
