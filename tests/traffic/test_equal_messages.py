"""Messages of equal features are one message, in any unit and any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skellipsoid._traffic.equal import equal_messages


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3), st.integers(0, 10**6))
def test_equal_messages_are_found_in_any_order_and_beside_an_outlier(n, n_features, n_copies, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, n_features)).astype(np.float32)
    features[0] = rng.choice([1e25, 1e-25])
    which = np.concatenate([np.arange(n), rng.integers(n, size=n_copies * n)])
    rows = rng.permutation(which)
    found = equal_messages(features[rows])
    assert (found[:, np.newaxis] == found).tolist() == (rows[:, np.newaxis] == rows).tolist()
