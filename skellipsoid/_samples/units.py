"""Divisors of columns of unlike units: standard deviations within classes over their geometric mean."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What these were chosen on, and judged on: skellipsoid-bench/results/units.rst.
#: Standard deviations of columns of one unit vary by less: that of their logarithms. Measured: text embeddings .18 to
#: .22, irises .3 to .4, principal components of blood cells .17 to .25, wine 1.9.
ALIKE = 0.1
#: The same bound from ``MANY_COLUMNS`` columns on, as embeddings have.
MANY_ALIKE, MANY_COLUMNS = 0.3, 100
#: A column that varies by less, as a proportion of the one that varies most, is what rounding left of another; of many
#: columns, as embeddings have, also what an embedding model does not use.
NOTHING, NOTHING_OF_MANY = 1e-13, 1e-6
#: Smallest unit of a column that varies, as a proportion of its standard deviation over all samples.
SMALLEST = 0.03


def column_units(
    features: NDArray[np.floating], classes: NDArray[np.int64], weights: Floats, n_different: int | None = None
) -> Floats | None:
    """Return the unit of each column, its standard deviation within classes; ``None`` if all are in one unit as given.

    They do not depend on the units of the columns but for a common factor: their geometric mean is 1.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)
        At least one sample.
    weights : ndarray of shape (n_samples,)
        Positive.
    n_different : int or None
        Number of different samples, if copies are among them.
    """
    numbers, counts = np.unique(classes, return_inverse=True, return_counts=True)[1:]
    freedom = (len(features) if n_different is None else n_different) - len(counts)
    if freedom < 1 or features.shape[1] < 2:
        return None
    within, overall = _deviations(features, numbers.ravel(), weights / weights.sum())
    varies = np.ptp(features, axis=0) > 0
    varies &= overall > 4 * np.finfo(features.dtype).eps * np.abs(features).max(axis=0)  # more than rounding
    varies &= overall > (NOTHING_OF_MANY if varies.sum() >= MANY_COLUMNS else NOTHING) * overall.max()
    if varies.sum() < 2 or _share_ends(features[:, varies]):
        return None
    logs = np.log(np.maximum(within, SMALLEST * overall)[varies])
    alike = MANY_ALIKE if varies.sum() >= MANY_COLUMNS else ALIKE
    if logs.std() <= max(alike, 2 / np.sqrt(2 * freedom)):  # the second is twice what chance makes of equal ones
        return None
    units = np.ones(features.shape[1])
    units[varies] = np.exp(logs - logs.mean())
    return units


def in_units(features: NDArray[Any], units: Floats | None) -> NDArray[Any]:
    """Divide columns by their units, in the precision of the features; ``None``: they are as given."""
    return features if units is None else (features / units).astype(features.dtype, copy=False)


def _deviations(features: NDArray[np.floating], classes: NDArray[np.int64], shares: Floats) -> tuple[Floats, Floats]:
    """Return standard deviations of columns, within classes and over all samples, (n_features,) each."""
    order, counts = np.argsort(classes, kind="stable"), np.bincount(classes)
    means, within = np.empty((2, len(counts), features.shape[1]))
    for number, members in enumerate(np.split(order, counts.cumsum()[:-1])):
        own = shares[members] / shares[members].sum()
        rows = features[members].astype(np.float64)
        means[number] = own @ rows
        within[number] = own @ np.square(rows - means[number])
    of_classes = np.bincount(classes, shares)
    variances = of_classes @ within
    return np.sqrt(variances), np.sqrt(variances + of_classes @ np.square(means - of_classes @ means))


def _share_ends(features: NDArray[np.floating]) -> bool:
    """Whether most columns have the same least and the same largest value: pixels, proportions, yes and no."""
    ends = np.stack([features.min(axis=0), features.max(axis=0)])
    return bool(2 * np.unique(ends, axis=1, return_counts=True)[1].max() > features.shape[1])
