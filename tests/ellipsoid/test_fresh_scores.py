"""Held-out scores are distributed as those of fresh samples: from generated data, without a formula in common."""

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier


@pytest.fixture
def seeds(global_random_seed):
    """Four draws, of which two are enough for most; what is said holds in their mean."""
    return range(4 * global_random_seed, 4 * global_random_seed + 4)


def draw(rng, n_classes, n_features, sizes, *, own=2.0, effect=0.0, group=1):
    """Training samples, their groups, and fresh samples in the same proportions.

    Class means in 40 directions, four own directions per class, noise in all directions; samples of a group have an
    ``effect`` in common.
    """

    def unit(*shape):
        return rng.normal(size=shape) / np.sqrt(n_features)

    means = rng.normal(size=(n_classes, 40)) @ (unit(40, n_features) * 2.2 / np.arange(1, 41)[:, np.newaxis])
    directions = own * unit(n_classes, 4, n_features)

    def rows_of(k, n):
        return means[k] + rng.normal(size=(n, 4)) @ directions[k] + 4 * unit(n, n_features)

    counts = np.resize(sizes, n_classes)
    classes, fresh = np.repeat(np.arange(n_classes), counts), np.repeat(np.arange(n_classes), np.maximum(1, counts))
    rows = np.concatenate([rows_of(k, n) for k, n in enumerate(counts)])
    groups = np.arange(len(rows)) // group
    rows += effect * unit(groups[-1] + 1, n_features)[groups]
    new = np.concatenate([rows_of(k, n) for k, n in enumerate(np.bincount(fresh))])
    return rows, classes, groups, new + effect * unit(len(new), n_features)


CASES = {
    "wide": lambda rng: draw(rng, 20, 500, [20]),
    "few classes": lambda rng: draw(rng, 3, 60, [60]),
    "grouped": lambda rng: draw(rng, 12, 60, [60], effect=2.0, group=3),
    "imbalanced": lambda rng: draw(rng, 15, 60, [20, 40, 120]),
}


def fit(found):
    rows, classes, groups, new = found
    is_grouped = groups[-1] + 1 < len(groups)
    return EllipsoidOpenSetClassifier(random_state=0).fit(rows, classes, groups=groups if is_grouped else None), new


def check(fitted):
    """Rejection of held-out and fresh samples, in the mean over the fits."""
    held = np.mean([np.mean(clf.held_out_scores_ < 0) for clf, _ in fitted])
    fresh = np.mean([np.mean(clf.score_samples(new) < 0) for clf, new in fitted])
    assert abs(held - fresh) < 0.04
    for level in (0.05, 0.1, 0.2):
        rejected = np.mean([np.mean(clf.known_p_value(new) <= level) for clf, new in fitted])
        assert level / 2 < rejected < 1.5 * level


@pytest.mark.parametrize("case", CASES)
def test_fresh_samples_score_as_held_out_ones(case, seeds):
    n_draws = 4 if case == "few classes" else 2
    check([fit(CASES[case](np.random.default_rng(seed))) for seed in seeds[:n_draws]])
