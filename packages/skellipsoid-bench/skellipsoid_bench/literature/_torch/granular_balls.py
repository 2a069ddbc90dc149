"""Granular balls: sets of samples that are split until each is pure or small."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

#: Relative rounding error of sums of weights.
ROUNDING = 1e-9

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Ball(NamedTuple):
    """A set of samples."""

    rows: Integers  # (n_rows,)
    label: int  # the class with the largest weight
    purity: float  # its proportion
    weight: float

    def is_pure(self, least: float) -> bool:
        """Whether the purity is at least this, up to rounding."""
        return self.purity >= least * (1 - ROUNDING)


def granular_balls(
    X: Floats, classes: Integers, weights: Floats, purity: float, size: float, rng: np.random.Generator
) -> Iterator[Ball]:
    """Split the ball of all rows until every one is pure or small; the balls' rows are a partition of all rows.

    A ball with less than ``purity`` is split if it weighs more than ``size``.

    A ball is split by one seed for each of its classes, a random row of the class, or the seed that the ball itself
    came from for that seed's class; each row goes to the nearest seed.
    """
    waiting: list[tuple[Integers, int]] = [(np.arange(len(X)), -1)]
    while waiting:
        rows, seed = waiting.pop()
        shares = np.bincount(classes[rows], weights[rows])
        ball = Ball(rows, int(shares.argmax()), float(shares.max() / shares.sum()), float(shares.sum()))
        parts = []
        if not ball.is_pure(purity) and ball.weight > size * (1 + ROUNDING):
            seeds = [
                seed if seed >= 0 and classes[seed] == k else int(rng.choice(rows[classes[rows] == k]))
                for k in np.flatnonzero(shares)
            ]
            nearest = cdist(X[rows], X[seeds]).argmin(axis=1)
            parts = [(rows[nearest == i], chosen) for i, chosen in enumerate(seeds) if (nearest == i).any()]
        if len(parts) > 1:
            waiting += parts
        else:
            yield ball
