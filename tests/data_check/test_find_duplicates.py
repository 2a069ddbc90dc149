"""Duplicates as groups: those of a fit, for anybody."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from skellipsoid import EllipsoidOpenSetClassifier, find_duplicates


def test_they_are_groups_of_a_splitter_and_of_a_fit():
    rng, origins = np.random.default_rng(0), np.append(np.arange(120), [0, 1, 2, 3])
    y = origins % 3
    X = (rng.normal(size=(120, 8)) + 4 * rng.normal(size=(3, 8))[y[:120]])[origins]
    X[-2:] += 1e-3  # near copies, after exact ones
    groups = find_duplicates(pd.DataFrame(X), pd.Series(y.astype(str)))
    for train, test in GroupKFold(3).split(X, y, groups):
        assert not {*origins[train]} & {*origins[test]}
    fitted = EllipsoidOpenSetClassifier(random_state=0, duplicates="off").fit(X, y, groups=groups)
    np.testing.assert_array_equal(fitted.groups_, groups)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, 1e300]], None, "square"),
        ([[1.0, 2.0], [2.0, 3.0]], [1], "inconsistent"),
        ([["one"], ["two"]], None, "one"),
    ],
)
def test_what_a_fit_refuses_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        find_duplicates(X, y)
