"""Weights of labels say how much each counts beside the others: their unit changes nothing."""

import numpy as np
import pytest

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    estimate_open_share,
)


@pytest.fixture(scope="module")
def told():
    """A classifier, a log of which some messages are labelled, and weights of these."""
    rng = np.random.default_rng(0)
    means = 6 * rng.normal(size=(5, 8))
    X, y = rng.normal(size=(160, 8)) + np.repeat(means[:4], 40, axis=0), np.repeat(np.arange(4), 40)
    log = rng.normal(size=(60, 8)) + means[np.arange(60) % 5]
    labels = np.array([None] * 60, dtype=object)
    labels[:30] = [row % 5 if row % 5 < 4 else -1 for row in range(30)]
    return EllipsoidOpenSetClassifier(random_state=0).fit(X, y), log, labels, rng.uniform(0.5, 3, size=60)


def test_one_weight_beside_which_others_are_nothing_is_told(told):
    clf, log, labels, weights = told
    weights = weights.copy()
    weights[3] = 1e100
    with pytest.warns(
        UserWarning, match=r"^29 of 30 positive weights are less than 1e-12 of the largest, 1e\+100, and"
    ):
        found = estimate_open_share(clf, log, labels, sample_weight=weights)
    assert np.isfinite(found.share)
