"""Tests that are thinned keep every pair of values."""

from itertools import combinations, product
from math import prod

import pytest
from pairwise import pairwise


@pytest.mark.parametrize("sizes", [(3, 2), (2, 2, 2), (4, 3, 2), (3, 3, 3, 3), (1, 5, 1)])
def test_every_pair_of_values_occurs_in_few_tuples(sizes):
    parameters = [[f"{i}{value}" for value in range(size)] for i, size in enumerate(sizes)]
    found = pairwise(*parameters)
    for a, b in combinations(range(len(sizes)), 2):
        assert {(each[a], each[b]) for each in found} == {*product(parameters[a], parameters[b])}
    assert len(found) == len({*found})
    if len([size for size in sizes if size > 1]) > 2:
        assert len(found) < prod(sizes)
