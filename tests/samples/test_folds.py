"""Folds and validation samples: every class is divided, and no block is."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skellipsoid._samples.folds import fold_numbers, validation_rows


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_folds_divide_every_class_evenly_and_no_block(seed):
    rng = np.random.default_rng(0)
    block_classes = np.repeat(np.arange(4), [1, 5, 12, 30])
    blocks = np.repeat(rng.permutation(len(block_classes)), sizes := rng.integers(1, 9, size=len(block_classes)))
    classes = np.repeat(block_classes, sizes)
    draws = [None if seed is None else np.random.default_rng(seed) for _ in range(2)]
    folds, again = (fold_numbers(classes, blocks, 4, draw) for draw in draws)
    np.testing.assert_array_equal(folds, again)
    assert all(len(set(folds[blocks == block])) == 1 for block in np.unique(blocks))
    assert set(folds[classes == 0]) == {-1}
    for label in (1, 2, 3):
        of_block = folds[np.unique(np.where(classes == label, blocks, -1), return_index=True)[1][1:]]
        counts = np.bincount(of_block, minlength=4)
        assert counts.max() - counts.min() <= 1


@example(
    ([0, 1, 2, 0, 1, 3], [1, 1, 0, 0, 2, 2]), 0.5, 0
)  # class 1 would hold out one of its blocks, class 2 the other
@example(([0, 0, 0], [0, 1, 2]), 0.5, 0)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), min_size=1, max_size=40).map(
        lambda pairs: tuple(zip(*pairs, strict=True))
    ),
    st.floats(0.01, 0.99),
    st.integers(0, 99),
)
def test_no_block_is_cut_and_every_class_trains(given, fraction, seed):
    blocks, classes = map(np.array, given)
    held = validation_rows(classes, fraction, np.random.default_rng(seed), blocks)
    assert all(len(set(held[blocks == block])) == 1 for block in np.unique(blocks))
    assert not any(held[classes == label].all() for label in np.unique(classes))
    np.testing.assert_array_equal(held, validation_rows(classes, fraction, np.random.default_rng(seed), blocks))
    # Without blocks every row is one, and every class of several rows holds out some.
    alone = np.arange(len(classes))
    held = validation_rows(classes, fraction, np.random.default_rng(seed))
    np.testing.assert_array_equal(held, validation_rows(classes, fraction, np.random.default_rng(seed), alone))
    assert all(held[classes == label].any() for label in np.unique(classes) if (classes == label).sum() > 1)
