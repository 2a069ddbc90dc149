"""Messages of equal features are one message, in any unit and any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skellipsoid import (
    choose_to_label,
)
from skellipsoid._traffic.equal import equal_messages
from skellipsoid.baselines import KNNOpenSetClassifier


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e8])
def test_copies_are_messages_of_equal_features_in_any_unit(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)) + 8 * np.eye(6)[np.arange(200) % 3], np.arange(200) % 3
    log = rng.normal(size=(300, 6)) + 4 * np.eye(6)[rng.integers(6, size=300)]
    clf = KNNOpenSetClassifier(normalize=False).fit(scale * X, y)
    chosen = choose_to_label(clf, scale * log, 30)
    assert len(chosen.rows) == 30
    again = choose_to_label(clf, scale * np.concatenate([log, log[:150], log[:150]]), 300)
    assert again.rows.tolist() == list(range(300))
    assert again.weights.tolist() == [3] * 150 + [1] * 150


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3), st.integers(0, 10**6))
def test_equal_messages_are_found_in_any_order_and_beside_an_outlier(n, n_features, n_copies, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, n_features)).astype(np.float32)
    features[0] = rng.choice([1e25, 1e-25])
    which = np.concatenate([np.arange(n), rng.integers(n, size=n_copies * n)])
    rows = rng.permutation(which)
    found = equal_messages(features[rows])
    assert (found[:, np.newaxis] == found).tolist() == (rows[:, np.newaxis] == rows).tolist()
