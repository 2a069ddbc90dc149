"""Checks of every classifier: which input it refuses, what weights, groups, copies and units do, and failed fits.

Each takes an unfitted one, whose open label is -1.
"""

from itertools import product
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from open_set_data import blobs, has_boundary, scattered, scoring_methods, values
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer


def check_open_set_bad_input(classifier):
    X, y = blobs()
    with_nan, with_inf = X.copy(), X.copy()
    with_nan[3, 1], with_inf[3, 1] = np.nan, np.inf
    cases = [
        (sparse.csr_matrix(X), y, "X is sparse, of shape .* must be dense"),
        (with_nan, y, "NaN"),
        (with_inf, y, "infinity"),
        (np.empty((0, 4)), y, r"0 sample\(s\)"),
        (np.empty((90, 0)), y, r"0 feature\(s\)"),
        (X[:, 0], y, "(?s)Expected 2D array.*Reshape your data"),
        (X, y[:-1], r"inconsistent numbers of samples: \[90, 89\]"),
        (X, np.full(len(X), "-1"), "All 90 samples have the open label '-1'.*another open label"),
    ]
    for bad, labels, message in cases:
        with pytest.raises(ValueError, match=message):
            classifier.fit(bad, labels)
    for open_label, message in ((0.5, "0.5 is no whole number"), ("open", "'open' is a string.*numbers")):
        with pytest.raises(ValueError, match=f"{message}.*such as -1"):
            clone(classifier).set_params(open_label=open_label).fit(X, y)


def check_open_set_bad_new_rows(classifier):
    X, y = blobs()
    classifier.fit(X, y)
    with_nan = X.copy()
    with_nan[3, 1] = np.nan
    for method in (*scoring_methods(classifier), "score"):
        call = getattr(classifier, method)
        more = (y,) if method == "score" else ()
        for bad, message in (
            (sparse.csr_matrix(X), "dense"),
            (with_nan, "NaN"),
            (X[:, :2], "X has 2 features, but .* is expecting 4"),
            (X[:0], r"0 sample\(s\)"),
            (X[0], "Reshape your data"),
        ):
            with pytest.raises(ValueError, match=message):
                call(bad, *more)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.score(X, y[:-1])


def no_numbers():
    """What NumPy turns into numbers without a word, or what a mask hides, and the sentence that refuses it."""
    X = blobs()[0]
    dates = np.datetime64("2024-01-01", "s") + (1e6 * X).astype("timedelta64[s]")
    masked = np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 13)
    table = pd.DataFrame(X, columns=list("abcd"))
    column = pd.Series(dates[:, 3])
    records = np.zeros(len(X), dtype=[("a", float), ("b", float)])
    days = [[day.date() for day in row] for row in dates.tolist()]
    dated = r"X holds {}, but features must be numbers; convert dates and times, for instance to days .* ones\.$"
    return {
        "dates": (dates, dated.format(r"values of type datetime64\[s\]")),
        "times": (dates - dates[0], dated.format(r"values of type timedelta64\[s\]")),
        "objects": (dates.astype(object), dated.format(r"2.* of type datetime")),
        "lists of days": (days, dated.format(r"2.* of type date")),
        "a date among numbers": (np.array([[*row[:3], pd.NaT] for row in X]), dated.format("NaT of type NaTType")),
        "a column": (table.assign(d=column), dated.format(r"the column 'd' of type datetime64\[s\]")),
        "a zoned column": (table.assign(d=column.dt.tz_localize("UTC")), dated.format(r"the column 'd' of .*, UTC\]")),
        "periods": (table.assign(d=column.dt.to_period("D")), dated.format(r"the column 'd' of type period\[D\]")),
        "a polars column": (
            pl.DataFrame(table.to_dict("list")).with_columns(d=pl.Series(column.astype("datetime64[us]").to_numpy())),
            dated.format("the column 'd' of type Datetime.*"),
        ),
        "masked": (masked, r"X has masked values in row 3; fill them, or drop these rows\.$"),
        "masked rows": (list(masked), r"X has masked values in row 3; fill them"),
        "records": (records, r"X holds records with the fields a, b, but .*structured_to_unstructured\(X\)\.$"),
        "complex": (X + 1j, "Complex data not supported: X is of type complex128; pass real and .* features.$"),
    }


def check_open_set_no_numbers_are_refused(classifier):
    X, y = blobs()
    for bad, sentence in no_numbers().values():
        with pytest.raises(ValueError, match=f"^{sentence}"):
            clone(classifier).fit(bad, y)
    classifier.fit(X, y)
    for bad, sentence in no_numbers().values():
        for method in scoring_methods(classifier):
            with pytest.raises(ValueError, match=f"^{sentence}"):
                getattr(classifier, method)(bad)


def check_open_set_masks(classifier):
    X, y = blobs()
    expected = values(clone(classifier).fit(X, y), X)
    first = np.arange(len(y)) == 7
    ones = np.ones(len(y))
    nothing = clone(classifier).fit(np.ma.array(X), np.ma.array(y), sample_weight=np.ma.array(ones))
    np.testing.assert_array_equal(values(nothing, np.ma.array(X)), expected)
    for arguments, options, sentence in (
        ((X, np.ma.array(y, mask=first)), {}, "y has missing labels in row 7; drop them."),
        ((X, list(np.ma.array(y, mask=first))), {}, "y has missing labels in row 7; drop them."),
        ((X, y), {"sample_weight": np.ma.array(ones, mask=first)}, "sample_weight has masked values in row 7; fill"),
        ((X, y), {"groups": np.ma.array(np.arange(len(y)), mask=first)}, "groups has missing values in row 7; give"),
        ((X, y), {"sample_weight": ones.astype("timedelta64[s]")}, "sample_weight is of type timedelta64.*numbers"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            clone(classifier).fit(*arguments, **options)


def check_open_set_input_unchanged(classifier):
    X, y = blobs()
    before, labels = X.copy(), y.copy()
    tensor = torch.from_numpy(X.astype(np.float32))
    classifier.fit(tensor, y)
    classifier.fit(X, y)
    for method in scoring_methods(classifier):
        getattr(classifier, method)(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(y, labels)
    assert torch.equal(tensor, torch.from_numpy(before.astype(np.float32)))


def check_open_set_caller_settings_of_torch(classifier):
    X, y = blobs()
    margins = values(classifier.fit(X, y), X)
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.is_grad_enabled()


def check_open_set_repeated_rows_count_once(classifier):
    X, y = blobs()
    rows = scattered()
    margins = values(classifier.fit(X, y), rows)
    answers = classifier.predict(X)
    np.testing.assert_array_equal(classifier.groups_, np.arange(len(X)))
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(len(X)), 1 + np.arange(len(X)) % 5))
    np.testing.assert_array_equal(values(classifier.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)), rows), margins)
    np.testing.assert_array_equal(classifier.groups_, np.repeat(np.arange(len(X)), 2))
    classifier.fit(X[order], y[order])
    if has_boundary(classifier):  # in another order of the rows other synthetic classes or batches are drawn
        np.testing.assert_allclose(1 - values(classifier, rows), 1 - margins, rtol=0.15)
    assert (classifier.predict(X) == answers).mean() > 0.9
    assert len(np.unique(classifier.groups_)) == len(X)
    independent = classifier.set_params(duplicates="off").fit(X[order], y[order])
    assert len(np.unique(independent.groups_)) == len(order)
    assert abs(values(independent, rows) - margins).max() > 0.01


def check_open_set_integer_weights_are_repetitions(classifier):
    if not classifier._takes_weights:
        pytest.skip("counts neighbours, which have no weights")
    X, y = blobs(rows=12)
    rows = scattered()
    weights = np.random.default_rng(4).integers(4, size=len(X))
    repeated = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    classifier.set_params(duplicates="each")
    margins = values(classifier.fit(*repeated), rows)
    np.testing.assert_allclose(values(classifier.fit(X, y, sample_weight=weights), rows), margins, rtol=1e-5)
    assert (classifier.groups_ == -1).sum() == (weights == 0).sum()
    np.testing.assert_allclose(values(classifier.fit(X, y, sample_weight=0.3 * weights), rows), margins, rtol=1e-5)
    kept = weights > 0
    unweighted = values(classifier.fit(X[kept], y[kept]), rows)
    assert abs(unweighted - margins).max() > 0.01


def check_open_set_groups_have_no_order_and_no_kind(classifier):
    X, y = blobs()
    rows = scattered()
    numbers = np.random.default_rng(5).integers(30, size=len(X))
    margins = values(classifier.fit(X, y, groups=numbers), rows)
    assert len(np.unique(classifier.groups_)) == len(np.unique(numbers))
    for groups in (-numbers, numbers.astype(str).tolist(), numbers.astype(str).astype(object), numbers / 2):
        np.testing.assert_allclose(values(classifier.fit(X, y, groups=groups), rows), margins, rtol=1e-9)
    # Where nothing is held out, groups change nothing.
    assert (abs(values(classifier.fit(X, y), rows) - margins).max() > 1e-3) == hasattr(classifier, "held_out_")
    for groups, message in (
        (numbers[1:], r"groups has the shape \(89,\), but must hold one group for each of the 90 rows"),
        (np.where(numbers < 2, np.nan, numbers), "groups has missing values in row.*a value of its own"),
        ([None, *numbers[1:].tolist()], "groups has missing values in row 0;"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.fit(X, y, groups=groups)


def check_open_set_metadata_reaches_a_pipeline(classifier):
    X, y = blobs()
    groups, weights = np.arange(len(X)) // 3, np.arange(len(X)) % 2
    expected = values(clone(classifier).fit(X, y, sample_weight=weights, groups=groups), X)
    pipeline = make_pipeline(FunctionTransformer(), clone(classifier))
    name = pipeline.steps[-1][0]
    pipeline.fit(X, y, **{f"{name}__sample_weight": weights, f"{name}__groups": groups})
    np.testing.assert_array_equal(values(pipeline[-1], X), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(classifier).set_fit_request(sample_weight=True, groups=True)
        routed = make_pipeline(FunctionTransformer(), routed).fit(X, y, sample_weight=weights, groups=groups)
        np.testing.assert_array_equal(values(routed[-1], X), expected)


def check_open_set_a_failed_fit_changes_nothing(classifier):
    X, y = blobs()
    wider, names = np.hstack([X, X]), np.array(["a", "b", "c"])[y]
    failures = [
        ((wider, np.full(len(X), -1)), {}),
        ((wider, names), {"groups": [None] * len(X)}),
        ((wider, names), {"sample_weight": np.zeros(len(X))}),
        ((wider * 1e300, names), {}),
    ]
    for arguments, options in failures:
        state = dict(vars(classifier.fit(X, y)))
        answers = classifier.predict(X)
        with pytest.raises(ValueError, match=r"\w"):
            classifier.fit(*arguments, **options)
        assert all(vars(classifier)[name] is value for name, value in state.items())
        np.testing.assert_array_equal(classifier.predict(X), answers)

    with (
        mock.patch("skellipsoid._samples.training_samples.find_duplicates", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        classifier.fit(wider, names)
    np.testing.assert_array_equal(classifier.predict(X), answers)
    assert classifier.fit(X, y).score(X, y) > 0.7


def check_open_set_a_fit_deletes_only_what_a_fit_stored(classifier):
    X, y = blobs()
    classifier.note, classifier._note = "mine", np.ones(2)
    classifier.fit(X, y)
    classifier.former_ = 1  # as of another version's fit
    classifier.fit(X, y)
    assert (classifier.note, len(classifier._note), hasattr(classifier, "former_")) == ("mine", 2, False)


def check_open_set_one_group_for_all_is_no_group(classifier):
    X, y = blobs()
    margins = values(classifier.fit(X, y), X)
    for groups in (np.zeros(len(X)), y):
        with pytest.warns(UserWarning, match=r"Every class is a single group \(0, 1, 2\).*groups are ignored"):
            classifier.fit(X, y, groups=groups)
        np.testing.assert_array_equal(values(classifier, X), margins)
    with pytest.warns(UserWarning, match=r"1 of 3 classes are a single group \(2\).*do not count for the size"):
        classifier.fit(X, y, groups=np.where(y == 2, -1, np.arange(len(X))))
    assert (classifier.predict(X) != -1).mean() > 0.7


def check_open_set_uneven_weights_and_near_copies_of_any_draw(classifier):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = blobs(4, rows=25, n_features=8, seed=seed)
        drawn = rng.choice(len(X), 250)
        uneven, groups = rng.uniform(0.5, 2, size=250), rng.integers(60, size=250)
        cases = ((1e-4, None, None), (0, uneven, None), (1e-4, uneven, groups))
        for jitter, weights, given in cases if classifier._takes_weights else cases[:1]:
            classifier.fit(X[drawn] + jitter * rng.normal(size=(250, 8)), y[drawn], sample_weight=weights, groups=given)
            assert (classifier.predict(X) != -1).mean() > 0.6


def check_open_set_few_distinct_rows_repeated(classifier):
    rng = np.random.default_rng(0)
    for rows in (4, 6):
        X, y = blobs(3, rows=rows, n_features=8)
        answers = classifier.fit(X, y).predict(X)
        many, target = np.repeat(X, 20, axis=0), np.repeat(y, 20)
        np.testing.assert_array_equal(classifier.fit(many, target).predict(X), answers)
        jitter = 1e-7 * rng.normal(size=many.shape)
        assert (classifier.fit(many + jitter, target).predict(X) == answers).mean() > 0.85


def check_open_set_outliers_are_dropped_and_named(classifier):
    X, y = blobs(rows=50)
    rows = scattered()
    kept = np.delete(np.arange(len(X)), [7, 31])
    expected = values(classifier.fit(X[kept], y[kept]), rows)
    spoilt = X.copy()
    spoilt[7, 2], spoilt[31, 0] = 1e6, -1e120
    with pytest.warns(UserWarning, match="outliers, which are more than 20 times .*: rows 7, 31. They are dropped"):
        classifier.fit(spoilt, y)
    np.testing.assert_allclose(values(classifier, rows), expected, rtol=1e-6)
    if has_boundary(classifier):
        assert (classifier.predict(spoilt[[7, 31]]) == -1).all()
    large = classifier.fit(X * 1e100, y)
    answers, margins = large.predict(rows * 1e100), values(large, rows * 1e100)
    np.testing.assert_array_equal(classifier.fit(X, y).predict(rows), answers)
    if has_boundary(classifier):  # its margins have no units
        np.testing.assert_allclose(margins, values(classifier, rows), rtol=1e-6)
    with pytest.raises(ValueError, match=r"up to .*e.20. in rows 0, 1, .*, 9 and 140 more, whose squares overflow"):
        classifier.fit(X * 1e200, y)
    spoilt[7, 2] = 1e300
    with pytest.raises(ValueError, match=r"X has values up to 1e\+300 in row 7, whose squares overflow.*below 1e\+150"):
        classifier.fit(spoilt, y)
    with pytest.raises(ValueError, match="in row 7, whose squares overflow"):  # rows without a weight count, too
        classifier.fit(spoilt, y, sample_weight=np.arange(len(y)) > 0)
    if has_boundary(classifier):
        assert (classifier.fit(X, y).predict(spoilt[[7]]) == -1).all()


def check_open_set_units_change_no_decision(classifier):
    X, y = blobs(rows=40)
    rows = np.concatenate([blobs(rows=40, seed=5)[0], scattered()])
    kinds = [classifier]
    if "normalize" in classifier.get_params():
        kinds.append(clone(classifier).set_params(normalize=True))
    for kind, dtype in product(kinds, (np.float64, np.float32)):
        answers = clone(kind).fit(X.astype(dtype), y).predict(rows.astype(dtype))
        assert 0 < (answers == -1).mean() < 1
        for unit in (1e-30, 1e-6, 1e6, 1e15):
            others = clone(kind).fit((X * unit).astype(dtype), y).predict((rows * unit).astype(dtype))
            assert (others != answers).mean() <= 0.01, (unit, dtype)  # rounding may move a sample over a boundary
