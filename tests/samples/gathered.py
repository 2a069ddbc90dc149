"""Samples with weights, duplicates and groups, as plain arrays: of these tests the one place that makes them."""

import numpy as np
import torch

from skellipsoid._samples.samples import Samples
from skellipsoid._samples.training_samples import gather


def gathered(rows, classes, weights=None, groups=None, duplicates="once", copies=None):
    """Distinct samples of some rows, the number of each among them, and the group of each row.

    They have the columns ``features``, ``classes``, ``weights``, ``copies``, ``units`` and ``groups``.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    return gather(rows, classes, weights, groups, duplicates, copies)


def samples(classes, weights=None, units=None, groups=None, n_features=3):
    """Samples of drawn features, as tensors."""
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(len(classes), n_features)))
    columns = (None if column is None else np.asarray(column) for column in (units, groups))
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    return Samples.of(rows, torch.tensor(classes), None, weights, *columns)


def numbered(labels):
    """Numbers of labels in the order in which they come first."""
    firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(firsts))[inverse]
