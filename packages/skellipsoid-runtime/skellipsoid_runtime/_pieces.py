"""Batches of texts of similar length, so that little is padding."""

from math import inf

import numpy as np
from numpy.typing import NDArray


def length_sorted_pieces(
    lengths: NDArray[np.int64], most_tokens: int, most_rows: float = inf
) -> list[NDArray[np.int64]]:
    """Group texts of similar length into pieces of a bounded padded size (or one text) and a bounded number of rows."""
    order = np.argsort(lengths, kind="stable")
    pieces, start = [], 0
    for stop in range(1, len(order) + 1):
        # Sorted: the last text is the longest of its piece.
        n_rows = stop + 1 - start
        if stop == len(order) or n_rows > most_rows or n_rows * lengths[order[stop]] > most_tokens:
            pieces.append(order[start:stop])
            start = stop
    return pieces
