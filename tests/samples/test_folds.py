"""Folds and validation samples: every class is divided, and no block is."""

import numpy as np
import pytest

from skellipsoid._samples.folds import fold_numbers, validation_rows


def test_folds_deal_blocks_of_each_class_in_turn():
    classes, blocks = np.repeat([0, 1, 2], [10, 4, 3]), np.append(np.arange(14), [20, 20, 20])
    folds = fold_numbers(classes, blocks, 5)
    assert np.bincount(folds[:10]).tolist() == [2, 2, 2, 2, 2]
    assert folds[10:14].tolist() == [1, 2, 3, 4]  # small classes do not all begin with the first fold
    assert folds[14:].tolist() == [-1, -1, -1]  # a class of one block is never left out


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_folds_divide_every_class_evenly_and_no_block(seed):
    rng = np.random.default_rng(0)
    block_classes = np.repeat(np.arange(4), [1, 5, 12, 30])
    blocks = np.repeat(rng.permutation(len(block_classes)), sizes := rng.integers(1, 9, size=len(block_classes)))
    classes = np.repeat(block_classes, sizes)
    folds = fold_numbers(classes, blocks, 4, None if seed is None else np.random.default_rng(seed))
    assert all(len(set(folds[blocks == block])) == 1 for block in np.unique(blocks))
    assert set(folds[classes == 0]) == {-1}
    for label in (1, 2, 3):
        of_block = folds[np.unique(np.where(classes == label, blocks, -1), return_index=True)[1][1:]]
        counts = np.bincount(of_block, minlength=4)
        assert counts.max() - counts.min() <= 1


def test_folds_count_blocks_that_another_class_has_dealt():
    # The class 1 shares the blocks 0 to 3, one in each fold, and deals its own four in turn after them.
    blocks, classes = np.append(np.arange(4), np.arange(8)), np.repeat([0, 1], [4, 8])
    for rng in (None, np.random.default_rng(0)):
        folds = fold_numbers(classes, blocks, 4, rng)
        assert np.bincount(folds[4:]).tolist() == [2, 2, 2, 2]
        assert folds[:4].tolist() == folds[4:8].tolist()


def test_drawn_folds_are_those_of_the_generator():
    classes = np.repeat([0, 1], 20)
    one, again, other = (fold_numbers(classes, np.arange(40), 3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def check_held_out(held, classes, blocks):
    """No block is cut, and every class trains."""
    for block in np.unique(blocks):
        assert len(set(held[blocks == block])) == 1
    for label in np.unique(classes):
        assert not held[classes == label].all()


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.9])
def test_blocks_are_held_out_as_a_whole(fraction):
    rng = np.random.default_rng(0)
    counts = [1, 2, 3, 10, 40]
    block_classes = np.repeat(np.arange(5), counts)
    blocks = np.repeat(rng.permutation(len(block_classes)), sizes := rng.integers(1, 9, size=len(block_classes)))
    classes = np.repeat(block_classes, sizes)
    order = rng.permutation(len(classes))
    blocks, classes = blocks[order], classes[order]
    held = validation_rows(classes, fraction, np.random.default_rng(1), blocks)
    assert held.dtype == bool
    check_held_out(held, classes, blocks)
    for label, n_blocks in enumerate(counts):
        n_held = len(np.unique(blocks[held & (classes == label)]))
        assert n_held == min(n_blocks - 1, max(1, round(fraction * n_blocks)))


def test_rows_without_blocks_are_blocks_of_their_own():
    classes = np.repeat([0, 1, 2], [4, 9, 20])
    by_rows, by_blocks = (
        validation_rows(classes, 0.3, np.random.default_rng(0), blocks) for blocks in (None, np.arange(33))
    )
    np.testing.assert_array_equal(by_rows, by_blocks)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_several_classes_leave_every_class_something(seed):
    rng = np.random.default_rng(seed)
    blocks, classes = rng.integers(12, size=40), rng.integers(6, size=40)
    held = validation_rows(classes, 0.5, rng, blocks)
    check_held_out(held, classes, blocks)
    assert held.any()


def test_what_other_classes_hold_out_counts():
    """Class 0 shares all its four blocks with class 1, which holds out two of them and no more."""
    blocks, classes = np.tile(np.arange(4), 2), np.repeat([0, 1], 4)
    for seed in range(10):
        assert validation_rows(classes, 0.5, np.random.default_rng(seed), blocks).sum() == 4


def test_what_other_classes_hold_out_is_not_drawn_again():
    # Class 0 holds out one of the blocks 0 to 3, and class 1 two more of the blocks 0 to 9.
    blocks, classes = np.append(np.arange(4), np.arange(10)), np.repeat([0, 1], [4, 10])
    for seed in range(20):
        held = validation_rows(classes, 0.3, np.random.default_rng(seed), blocks)
        assert held[4:].sum() == 3
        assert held[:4].any()


def test_a_class_in_the_only_block_of_another_one_still_trains():
    # The class 1 would hold out one of its blocks, and the class 2 the other one: then nothing of the class 1 is left.
    blocks, classes = np.array([0, 1, 2, 0, 1, 3]), np.array([1, 1, 0, 0, 2, 2])
    for seed in range(10):
        held = validation_rows(classes, 0.5, np.random.default_rng(seed), blocks)
        check_held_out(held, classes, blocks)
    single = validation_rows(np.array([0, 1, 2]), 0.5, np.random.default_rng(0), np.zeros(3, dtype=np.int64))
    assert not single.any()


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 0.99])
def test_a_share_of_each_class_is_held_out(fraction):
    counts = {0: 1, 1: 2, 4: 3, 7: 10, 9: 100}
    classes = np.random.default_rng(0).permutation(np.repeat(list(counts), list(counts.values())))
    held = validation_rows(classes, fraction, np.random.default_rng(1))
    assert held.dtype == bool
    found = {label: int(held[classes == label].sum()) for label in counts}
    assert found[0] == 0  # a single row is needed for training
    assert found[1] == 1
    for label in (4, 7, 9):
        wanted = round(fraction * counts[label])
        assert found[label] == min(max(1, wanted), counts[label] - 1)


def test_validation_rows_are_drawn_uniformly():
    rng = np.random.default_rng(0)
    drawn = sum(validation_rows(np.repeat([0, 1], 5), 0.4, rng).astype(int) for _ in range(2000))
    np.testing.assert_allclose(drawn / 2000, 0.4, atol=0.05)


def test_validation_rows_of_the_same_generator_are_the_same():
    classes = np.repeat([0, 1, 2], 20)
    one, again, other = (validation_rows(classes, 0.3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
