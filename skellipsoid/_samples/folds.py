"""Samples dealt into folds and validation samples, by class; a block (see ``samples``) is never divided."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def fold_numbers(classes: Integers, blocks: Integers, n_folds: int, rng: np.random.Generator | None = None) -> Integers:
    """Fold of each sample, (n_samples,); every class is divided evenly, and a class of one block stays in each: −1.

    The blocks of a class are dealt in turn, in their order or, with ``rng``, in random order. In their order the
    classes begin with different folds, since small ones would all be in the first folds.
    """
    of_block = np.full(blocks.max(initial=-1) + 1, -1)
    for label, own in _blocks_by_class(classes, blocks):
        if len(own) > 1:
            free = own[of_block[own] < 0]  # not yet dealt, as a block of another class
            taken = len(own) - len(free)
            free, first = (free, label) if rng is None else (rng.permutation(free), 0)
            of_block[free] = (first + taken + np.arange(len(free))) % n_folds
    return np.asarray(of_block[blocks])


def validation_rows(
    classes: Integers, fraction: float, rng: np.random.Generator, blocks: Integers | None = None
) -> NDArray[np.bool_]:
    """Choose a proportion of each class's samples as validation samples, (n_samples,).

    Samples with the same number in ``blocks`` are held out together; without it every sample is a block. Every class
    keeps at least one block for training, and a class of two blocks or more holds out at least one, unless blocks with
    samples of several classes make that impossible.
    """
    numbers = np.arange(len(classes)) if blocks is None else blocks
    held_out = np.zeros(numbers.max(initial=-1) + 1, dtype=bool)
    for _, own in _blocks_by_class(classes, numbers):
        n_held_out = min(len(own) - 1, max(1, round(fraction * len(own))))
        n_missing = max(0, n_held_out - int(held_out[own].sum()))
        held_out[rng.permutation(own[~held_out[own]])[:n_missing]] = True
    for _, own in _blocks_by_class(classes, numbers):
        if held_out[own].all():
            held_out[own[0]] = False
    return np.asarray(held_out[numbers])


def _blocks_by_class(classes: Integers, blocks: Integers) -> Iterator[tuple[int, Integers]]:
    """Return each class and its blocks, in the order of their first samples."""
    for label in np.unique(classes):
        own = blocks[classes == label]
        yield int(label), own[np.sort(np.unique(own, return_index=True)[1])]
