"""Matrices of fitted ellipsoids."""

import numpy as np


def matrices_of(classifier):
    """A_k of all classes, without units."""
    return np.stack(list(classifier._matrices())).astype(np.float32)
