"""Samples that are exactly equal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Words that are multiplied at once, for memory alone.
MOST_HASHED = 2**18


def equal_samples(features: NDArray[Any], labels: Integers) -> Integers:
    """Assign samples with the same label and exactly the same features the same number."""
    # Adding 0 makes 0 of −0.
    table = np.ascontiguousarray(features + 0.0).view(f"u{features.dtype.itemsize}")
    _, first, found = np.unique(_hashes(table, labels), return_index=True, return_inverse=True)
    found = found.ravel()
    copies = np.flatnonzero(first[found] != np.arange(len(table)))
    originals = first[found[copies]]
    if (labels[copies] == labels[originals]).all() and (table[copies] == table[originals]).all():
        return in_order(found)
    rows = np.column_stack([table.view(np.uint8), labels.view(np.uint8).reshape(-1, 8)])  # two others have equal hashes
    return in_order(np.unique(rows.view(np.dtype((np.void, rows.shape[1]))), return_inverse=True)[1].ravel())


def _hashes(table: NDArray[Any], labels: Integers) -> NDArray[np.uint64]:
    """Random sum of the words of each row, and of its label, (n_rows,): to sort them is faster than to sort rows."""
    factors = np.random.default_rng(0).integers(2**64, size=table.shape[1] + 1, dtype=np.uint64)
    found: NDArray[np.uint64] = labels.astype(np.uint64) * factors[-1]
    for part in np.array_split(np.arange(len(table)), -(-table.size // MOST_HASHED) or 1):
        found[part] += (table[part] * factors[:-1]).sum(axis=1)
    return found


def in_order(labels: NDArray[Any]) -> Integers:
    """Assign numbers to labels in the order of their first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    return numbers[inverse.ravel()]
