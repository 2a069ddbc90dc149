"""The check of training features: each kind of finding when it is there, none where it is not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from skellipsoid import check_training_features

KINDS = ["missing_values", "infinite_values", "zero_rows", "conflicting_labels", "near_conflicts", "few_samples"]
KINDS += ["mixed_norms", "constant_columns", "unlike_units", "exact_duplicates", "near_duplicates"]


@pytest.fixture
def y():
    return np.repeat(["bird", "cat", "dog"], 30)


@pytest.fixture
def X(y):
    """Three clusters, none of its rows alike."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 8)) + 4 * (y == "cat")[:, np.newaxis] - 4 * (y == "dog")[:, np.newaxis]


def only(findings, kind):
    """The one finding that there is, of this kind."""
    assert findings.kind.tolist() == [kind]
    return Bunch(**{name: values[0] for name, values in findings.items()})


def test_clean_features_have_no_findings(X, y):
    for features in (X, normalize(X), X + 1e6, X.astype(np.float32) * 1e25, (10 * X).astype(int)):
        findings = check_training_features(features, y)
        assert findings.kind.tolist() == []
    assert pd.DataFrame(findings).shape == (0, 4)


@pytest.mark.parametrize(
    ("value", "kind", "said", "remedy"),
    [
        (np.nan, "missing_values", "missing values", "fill them, for instance with SimpleImputer"),
        (-1e200, "infinite_values", "infinite values, or values beyond 1e+150,", "correct them"),
    ],
)
def test_rows_that_no_fit_takes_are_found_by_number(X, y, value, kind, said, remedy):
    X[[3, 50], 1] = value
    found = only(check_training_features(X, y), kind)
    assert (found.rows, found.label) == ((3, 50), None)
    assert found.message == f"X has {said} in rows 3, 50; {remedy}, or drop these rows."


def test_zero_rows_are_found_and_are_no_duplicates(X, y):
    X[[4, 5]] = 0
    X[6] = -0.0
    found = only(check_training_features(X, y), "zero_rows")
    assert (found.rows, found.label) == ((4, 5, 6), None)
    assert found.message == (
        "All features are 0 in rows 4, 5, 6; look whether their files could be read, and drop these rows."
    )


def test_a_nearly_equal_row_under_another_label_is_found(X, y):
    X[40] = X[3] + 0.01
    found = only(check_training_features(X, y), "near_conflicts")
    assert (found.rows, found.label) == ((3, 40), ("bird", "cat"))
    assert "look at these samples, and keep one label for each if they show the same." in found.message
    X[40] = X[3] + 1.0  # as near as any other row
    assert "near_conflicts" not in check_training_features(X, y).kind


def test_unit_length_and_raw_rows_together_are_found(X, y):
    mixed = X.copy()
    mixed[10:22] = normalize(X[10:22])
    found = only(check_training_features(mixed, y), "mixed_norms")
    assert found.rows == tuple(range(10, 22))
    assert found.message == (
        "The norm is 1 in rows 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 2 more, but not in most rows; normalise all "
        "rows or none, as in the samples to predict."
    )
    unit = normalize(X)
    unit[5] = X[5]
    found = only(check_training_features(unit, y), "mixed_norms")
    assert found.rows == (5,)
    assert found.message.startswith("The norm is 1 in most rows, but not in row 5; normalise all rows or none")


@pytest.mark.parametrize("factor", [255, 1 / 255])
def test_rows_in_other_units_are_found(X, y, factor):
    X += 10
    X[7] *= factor
    found = only(check_training_features(X, y), "unlike_norms")
    assert found.rows == (7,)
    assert "prepare all rows alike (units, range of pixels, normalisation), or drop these." in found.message


def test_constant_columns_are_named(X, y):
    X[:, 2] = 7
    found = only(check_training_features(X, y), "constant_columns")
    assert (found.rows, found.label) == ((), None)
    assert found.message == "The column 2 has the same value in all rows; drop what is constant, if it should be."
    X[:, 3] = 0
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    for table in (frame, pl.from_pandas(frame)):
        assert check_training_features(table, y).message[0].startswith("The columns 'c', 'd' have the same value")


def test_columns_in_unlike_units_are_named(X, y):
    X[:, 3] *= 1000
    X[:, 5] /= 2
    found = only(check_training_features(pd.DataFrame(X, columns=list("abcdefgh")), y), "unlike_units")
    assert (found.rows, found.label) == ((), None)
    assert "times as large in column 'd' as in column 'f'" in found.message


@pytest.mark.parametrize(("noise", "kind"), [(0.0, "exact_duplicates"), (0.001, "near_duplicates")])
def test_duplicates_are_found_unless_a_group_holds_them(X, y, noise, kind):
    copied, labels = np.concatenate([X, X[:3] + noise]), [*y, *y[:3]]
    found = only(check_training_features(copied, labels), kind)
    assert (found.rows, found.label) == ((0, 1, 2, 90, 91, 92), "bird")
    assert "rows (0, 90), (1, 91), (2, 92);" in found.message
    groups = np.arange(93)
    assert only(check_training_features(copied, labels, groups=groups), kind).rows == found.rows
    groups[90:92] = [0, 1]
    assert only(check_training_features(copied, labels, groups=groups), kind).rows == (2, 92)


def test_all_kinds_come_in_the_documented_order(X, y):
    X = np.concatenate([X, X[:2], X[2:3] + 1e-4, X[10:12]])
    y = np.array([*y, "bird", "bird", "bird", "cat", "rare"])
    X[94] += 0.01
    X[[20, 21], 0] = np.nan, np.inf
    X[22], X[:, 5] = 0, 0
    X[:, 4] /= 50
    X[50:54] = normalize(X[50:54])
    findings = check_training_features(X, y)
    assert list(dict.fromkeys(findings.kind)) == KINDS
    for kind, rows, message in zip(findings.kind, findings.rows, findings.message, strict=True):
        assert kind in check_training_features.__doc__
        assert list(rows) == sorted(set(rows))
        assert all(type(row) is int for row in rows)
        assert message.endswith(".")
        assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda X, y: (sparse.csr_array(X), y), ValueError, "X is sparse, of shape"),
        (lambda X, y: (X, None), ValueError, "requires y to be passed"),
        (lambda X, y: (np.ma.masked_greater(X, 5), y), ValueError, "X has masked values in rows 30"),
    ],
)
def test_what_is_no_table_is_refused(X, y, change, error, match):
    with pytest.raises(error, match=match):
        check_training_features(*change(X, y))


@pytest.mark.parametrize(("groups", "match"), [([1, 2], r"shape \(2,\)"), ([None] * 90, "groups has missing values")])
def test_groups_that_do_not_fit_are_refused(X, y, groups, match):
    with pytest.raises(ValueError, match=match):
        check_training_features(X, y, groups=groups)


@pytest.mark.parametrize(
    ("X", "y", "kinds"),
    [
        (np.full((3, 2), np.nan), [0, 0, 1], ["missing_values", "few_samples", "few_samples"]),
        (np.zeros((3, 2)), [0, 0, 0], ["zero_rows", "few_samples"]),
        ([[1.0, 2.0]], [0], ["few_samples"]),
        (np.ones((20, 2)), np.arange(20) % 2, ["conflicting_labels", "constant_columns"]),
    ],
    ids=["nothing but NaN", "nothing but zeros", "one row", "one row everywhere"],
)
def test_tables_in_which_nothing_is_left(X, y, kinds):
    assert check_training_features(X, y).kind.tolist() == kinds
