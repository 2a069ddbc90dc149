"""Bootstrap confidence interval of a metric over test samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from warnings import catch_warnings, filterwarnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from skellipsoid_runtime._containers import only_column

from .._core.validation import is_number, unmasked
from ._reading import check_same_length

#: Number of row numbers drawn at once, so that memory does not grow with the number of resamples.
_BATCH_SIZE = 2**20


class BootstrapInterval(NamedTuple):
    """A metric and its bootstrap confidence interval.

    Attributes
    ----------
    estimate : float
        The metric on all samples.
    low, high : float
        The ends of the interval.
    standard_error : float
        Standard deviation of the metric over the resamples.

    See Also
    --------
    bootstrap_interval : Returns it.
    """

    estimate: float
    low: float
    high: float
    standard_error: float


def bootstrap_interval(
    metric: Callable[..., float],
    y_true: ArrayLike,
    *predictions: ArrayLike,
    stratify: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    method: Literal["percentile", "basic", "BCa"] = "percentile",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> BootstrapInterval:
    """Bootstrap confidence interval of any metric over test samples.

    Draws samples with replacement, each with its true label and its predictions, and computes the metric on each
    resample. The model does not change: the interval shows the uncertainty of a finite test set. For the uncertainty of
    training, repeat the training with several seeds.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, *predictions)`` with the drawn samples, returns a number. Fix the known classes with
        ``functools.partial(open_set_f1_score, labels=classes)``; otherwise they are the classes of the drawn samples.
    y_true : array-like of shape (n_samples,)
        True labels.
    *predictions : array-like of shape (n_samples,) or (n_samples, n_columns)
        Further arguments of the metric with one value per sample: predicted labels, scores, or those of two models for
        the interval of their difference.
    stratify : array-like of shape (n_samples,), default=None
        Samples are drawn within each distinct value. ``None`` draws from all samples; the interval then is for another
        test set from the same source, with other class sizes. ``stratify=y_true`` keeps the class sizes; the interval
        then is for a test set with these sizes. Use it if a class, or open, has so few samples that a resample may miss
        it. A value with a single sample keeps that sample.
    confidence_level : float, default=0.95
        In (0, 1).
    n_resamples : int, default=1000
        Number of resamples.
    method : {"percentile", "basic", "BCa"}, default="percentile"
        As of :func:`scipy.stats.bootstrap`. "BCa" corrects bias and skewness and computes the metric ``n_samples``
        times more.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the resampling; the same seed gives the same interval.

    Returns
    -------
    interval : BootstrapInterval
        Named tuple ``(estimate, low, high, standard_error)``. The interval has no width if the metric is equal on all
        resamples.

    Raises
    ------
    ValueError
        If lengths differ, nothing can be drawn, the metric is NaN on all samples or on a resample, or ``method`` fails.

    See Also
    --------
    skellipsoid_bench.paired_test : Compares two models over seeds.
    scipy.stats.bootstrap : The implementation.

    Notes
    -----
    The percentile interval ends at the (1 ∓ ``confidence_level``) / 2 quantiles of the metric over the resamples [1]_.
    ``UndefinedMetricWarning`` is shown for the given samples, not for the resamples.

    References
    ----------
    .. [1] B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993.

    Examples
    --------
    >>> from skellipsoid.metrics import bootstrap_interval, open_set_accuracy
    >>> y_true, y_pred = [0, 0, 0, 1, 1, 1, -1, -1, -1, -1], [0, 0, -1, 1, 1, 0, -1, -1, -1, 1]
    >>> interval = bootstrap_interval(open_set_accuracy, y_true, y_pred, n_resamples=200, random_state=0)
    >>> interval.estimate, round(interval.low, 2), round(interval.high, 2)
    (0.7, 0.4, 0.9)

    Two models on the same samples, by the interval of their difference:

    >>> def gain(y_true, y_a, y_b):
    ...     return open_set_accuracy(y_true, y_a) - open_set_accuracy(y_true, y_b)
    >>> interval = bootstrap_interval(gain, y_true, y_pred, [0] * 10, n_resamples=200, random_state=0)
    >>> round(interval.estimate, 2), interval.low > 0
    (0.4, False)
    """
    rows = [_read_rows(y_true, "y_true"), *(_read_rows(values, "a prediction") for values in predictions)]
    for k, values in enumerate(rows[1:], start=1):
        check_same_length(len(rows[0]), values, "predictions" if len(rows) == 2 else f"array {k} of the predictions")
    if not (is_number(confidence_level) and 0 < confidence_level < 1):
        raise ValueError(f"confidence_level={confidence_level!r} is not in (0, 1): pass a number such as 0.95.")
    if n_resamples < 2:
        raise ValueError(f"n_resamples={n_resamples!r} is too few for an interval: pass at least 2, better 1000.")
    samples, single = _split_strata(len(rows[0]), stratify)

    def metric_of(*drawn: NDArray[np.intp]) -> float:
        chosen = np.concatenate([*drawn, single])
        return float(metric(*(values[chosen] for values in rows)))

    estimate = float(metric(*rows))
    if np.isnan(estimate):
        raise ValueError("The metric is NaN on all rows, so that it has no interval: pass rows on which it is defined.")
    # A new generator unless one is passed: the global random state is never changed.
    is_old = isinstance(random_state, np.random.RandomState)
    with catch_warnings():
        simplefilter("ignore", UndefinedMetricWarning)
        # BCa is undefined (0 / 0 inside SciPy) if all resamples agree; that case is treated below.
        simplefilter("ignore", stats.DegenerateDataWarning)
        filterwarnings("ignore", category=RuntimeWarning, module="scipy")
        result = stats.bootstrap(
            samples,
            metric_of,
            vectorized=False,
            n_resamples=n_resamples,
            batch=max(1, _BATCH_SIZE // len(rows[0])),
            confidence_level=confidence_level,
            method=method,
            random_state=random_state if is_old else np.random.default_rng(random_state),
        )
    low, high = _read_interval(result, method)
    return BootstrapInterval(estimate, low, high, float(result.standard_error))


def _read_rows(values: Any, name: str) -> NDArray[Any]:
    """Convert values to an array to draw from; a list of mixed labels stays mixed."""
    values = only_column(unmasked(values, name), name)
    array = np.asarray(values)
    if array.dtype.kind == "U" and not hasattr(values, "__array__"):
        objects = np.asarray(values, dtype=object)
        if not all(isinstance(value, str) for value in objects.ravel()):
            return objects
    return array


def _split_strata(n_rows: int, stratify: ArrayLike | None) -> tuple[list[NDArray[np.intp]], NDArray[np.intp]]:
    """Row numbers of each stratum to draw from, and those of strata with a single row, which stay."""
    if stratify is None:
        strata = [np.arange(n_rows)]
    else:
        values = np.asarray(only_column(unmasked(stratify, "stratify"), "stratify"))
        check_same_length(n_rows, values, "stratify")
        codes = np.unique(values, return_inverse=True)[1]
        strata = np.split(np.argsort(codes, kind="stable"), np.bincount(codes).cumsum()[:-1])
    samples = [rows for rows in strata if len(rows) > 1]
    if not samples:
        raise ValueError(
            f"{n_rows} rows in {len(strata)} strata cannot be resampled: pass at least two rows, of which two have the "
            "same value in stratify."
        )
    single = [rows for rows in strata if len(rows) == 1]
    return samples, np.concatenate([np.empty(0, dtype=np.intp), *single])


def _read_interval(result: Any, method: str) -> tuple[float, float]:
    """Read the ends of SciPy's interval, or raise an error that says why there is none."""
    drawn = result.bootstrap_distribution
    n_undefined = int(np.isnan(drawn).sum())
    if n_undefined:
        raise ValueError(
            f"The metric is NaN on {n_undefined} of {len(drawn)} resamples, which miss a class or open: pass "
            "stratify=y_true, so that every resample has all of them."
        )
    if drawn.min() == drawn.max():
        return float(drawn[0]), float(drawn[0])
    low, high = result.confidence_interval
    if np.isnan(low) or np.isnan(high):
        raise ValueError(f"method={method!r} finds no interval for these rows: pass method='percentile'.")
    return float(low), float(high)
