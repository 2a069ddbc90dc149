"""The growth √(1 + e / n) of the radius of a class of n samples, relative to a class of typical size.

The mean of n samples has an error, whose variance is proportional to 1 / n. So new samples of a small class lie farther
from its centre than those of a large one: their mean squared distance is proportional to 1 + e / n. Distances to a
class are therefore divided by its *growth* √(1 + e / n), relative to a class of typical size, and its radius is
multiplied by it. One e is estimated from the held-out samples of all classes. So large classes tell how far out new
samples of small ones will lie.
"""

from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Sizes = TypeVar("Sizes", NDArray[np.float64], Tensor)

#: Candidates of e. Where all classes have the same size, and say nothing about it, their geometric mean is taken:
#: it is 2.8. With e = 3 for all data the gain is as large or smaller (skellipsoid-bench/TRIED.md, *The present shape*).
#: Six candidates are as good; a wider range, 0.1 to 64, is 0.7 worse for classes of unlike sizes
#: (skellipsoid-bench/results/constants.rst).
ERRORS = np.geomspace(0.5, 16, 16)
#: A class with this number of held-out samples has half of the weight of a large one. With 3 and 30, F1 is within 0.1
#: (skellipsoid-bench/results/constants.rst).
HALF_WEIGHT = 10
#: Where classes are compared, a squared distance loses this times the logarithm of the class's number of samples. For
#: normal densities it is 2 (skellipsoid-bench/results/frequencies.rst).
FREQUENCY = 4.0


def effective_sizes(freedoms: Tensor, degenerate: Tensor) -> tuple[Tensor, float]:
    """Effective number of samples of each class, (n_classes,), and its geometric mean, also of one without spread."""
    typical = float((freedoms[~degenerate] + 1).log().mean().exp())
    return torch.where(degenerate, typical, freedoms + 1), typical


def of_frequencies(sizes: Tensor, typical: float | Tensor) -> Tensor:
    """Return the part of the allowances that says how frequent classes of these sizes are, beside a ``typical`` one."""
    return FREQUENCY * (sizes / typical).log()


def estimate_mean_error(
    squares: NDArray[np.float64], classes: NDArray[np.int64], sizes: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Estimate e from the squared distances of held-out samples to their own class.

    A regression of log mean squared distance of each class on log (1 + e / n). The candidates of e are averaged, in
    logarithms, by their Gaussian likelihood.

    Parameters
    ----------
    squares : ndarray of shape (n_samples,)
    classes : ndarray of shape (n_samples,)
    sizes : ndarray of shape (n_samples,)
        Number n of samples that the mean of the class was computed from.
    weights : ndarray of shape (n_samples,)
    """
    totals = np.bincount(classes, weights)
    means = np.bincount(classes, weights * squares) / np.maximum(totals, 1e-300)
    chosen = means > 0
    of_class = np.bincount(classes, weights * sizes)[chosen] / totals[chosen]
    weight = totals[chosen] / (totals[chosen] + HALF_WEIGHT)
    residuals = np.log(means[chosen]) - np.log1p(ERRORS[:, np.newaxis] / of_class)
    if chosen.any():
        residuals -= np.average(residuals, axis=1, weights=weight)[:, np.newaxis]
    sums = np.maximum((weight * residuals**2).sum(axis=1), 1e-12)
    likelihoods = (sums.min() / sums) ** (chosen.sum() / 2)
    return float(np.exp(np.average(np.log(ERRORS), weights=likelihoods)))


def growths(mean_error: float, sizes: Sizes, typical: float) -> Sizes:
    """Root mean squared distance of new samples of classes of these sizes, relative to a class of ``typical`` size."""
    return ((1 + mean_error / sizes) / (1 + mean_error / typical)) ** 0.5
