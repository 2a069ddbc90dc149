"""Combinations of several parameters in which every pair of values occurs."""

from itertools import combinations, product


def pairwise(*parameters):
    """Give few tuples of one value for each parameter, so that every two values of two parameters occur together.

    Of two parameters these are all combinations. The same parameters give the same tuples.
    """
    missing = {
        ((a, i), (b, j))
        for a, b in combinations(range(len(parameters)), 2)
        for i, j in product(range(len(parameters[a])), range(len(parameters[b])))
    }
    every = [tuple(enumerate(chosen)) for chosen in product(*(range(len(values)) for values in parameters))]
    found = []
    while missing:
        chosen = max(every, key=lambda places: len(missing.intersection(combinations(places, 2))))
        missing.difference_update(combinations(chosen, 2))
        found.append(tuple(parameters[a][i] for a, i in chosen))
    return found
