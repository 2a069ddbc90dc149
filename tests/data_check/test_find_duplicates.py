"""Duplicates as groups: those of a fit, for anybody."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from skellipsoid import EllipsoidOpenSetClassifier, find_duplicates


def with_copies(n_samples=120, n_features=8, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_samples, n_features)), np.arange(n_samples) % 3
    X += 4 * rng.normal(size=(3, n_features))[y]
    origins = np.append(np.arange(n_samples), [0, 1, 2, 3])
    return X[origins] + np.append(np.zeros(n_samples), [0, 0, 1e-3, 1e-3])[:, np.newaxis], y[origins], origins


def test_they_are_groups_of_a_splitter_and_of_a_fit():
    X, y, origins = with_copies()
    groups = find_duplicates(pd.DataFrame(X), pd.Series(y.astype(str)))
    for train, test in GroupKFold(3).split(X, y, groups):
        assert not {*origins[train]} & {*origins[test]}
    fitted = EllipsoidOpenSetClassifier(random_state=0, duplicates="off").fit(X, y, groups=groups)
    np.testing.assert_array_equal(fitted.groups_, groups)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, np.nan]], None, "NaN"),
        ([[1.0, 1e300]], None, "square"),
        (np.empty((0, 3)), None, "0 sample"),
        ([[1.0, 2.0], [2.0, 3.0]], [1], "inconsistent"),
        ([["one"], ["two"]], None, "one"),
    ],
)
def test_what_a_fit_refuses_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        find_duplicates(X, y)
