"""Kinds of arrays, and rows of length 1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def unit_rows(features: NDArray[Any]) -> NDArray[Any]:
    """Rows of length 1, in any units; rows of zeros stay."""
    for norm in (np.inf, 2):  # squares of a row whose largest value is 1 do not underflow
        lengths = np.linalg.norm(features, norm, axis=1, keepdims=True)
        features = features / np.where(lengths > 0, lengths, 1)
    return features
