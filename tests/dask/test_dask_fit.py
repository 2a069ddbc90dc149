"""Promise: a fit to partitions is the fit in memory: its moments exactly, its choice by the samples that are drawn."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import skellipsoid
from skellipsoid._ellipsoid.math.closed_form import finish, prepare
from skellipsoid._held_out.expected import Expected
from skellipsoid._samples.moments import ClassMoments
from skellipsoid._samples.samples import Samples
from skellipsoid.baselines import MahalanobisClassifier
from skellipsoid.dask._draw import Draw, Keyed, group_keys, priorities

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")


@pytest.fixture(autouse=True)
def _in_this_process():
    """The cluster is for test_dask_faults.py."""
    with dask.config.set(scheduler="synchronous"):
        yield


def fit(classifier, X, y, groups=None, *, rows=300, **options):
    X, y, groups = (None if part is None else in_blocks(part, rows) for part in (X, y, groups))
    return skellipsoid.dask.fit(classifier, X, y, groups=groups, **options)


def in_blocks(rows, size):
    return da.from_array(rows, chunks=(size,) + (-1,) * (rows.ndim - 1))


def check_equal(found, wanted, X):
    """Compare two classifiers, whose features were rounded to single precision in two ways."""
    np.testing.assert_allclose(found.class_margins(X), wanted.class_margins(X), atol=1e-4)
    np.testing.assert_allclose(found.radii_, wanted.radii_, rtol=1e-5)
    np.testing.assert_allclose(found.centers_, wanted.centers_, atol=1e-4)
    assert found.classes_.tolist() == wanted.classes_.tolist()
    assert found.scale_ == pytest.approx(wanted.scale_)


def test_for_the_shares_that_it_chose_its_shapes_are_those_of_all_samples(samples, large_classifier):
    X, y, _ = samples
    found = fit(large_classifier, X, y, samples_per_class=50)
    known = y != "-1"
    divisor = found._boundaries.divisor  # of each column: these are not alike
    assert found.column_units_ is not None
    rows = ((X[known].astype(np.float64) - X[known].mean(0, dtype=np.float64)) / divisor).astype(np.float32)
    whole = Samples.of(torch.from_numpy(rows), torch.from_numpy(np.unique(y[known], return_inverse=True)[1]))
    prepared = prepare(whole, torch.empty(0, X.shape[1]), 0, found._boundaries.chosen)
    wanted = finish(prepared, 0.6, Expected())
    new = torch.from_numpy((X - found._boundaries.mean) / divisor).double()
    margins = wanted.boundaries.prepared(torch.device("cpu"), torch.float64).scorer.all(new)[0]
    np.testing.assert_allclose(found.class_margins(X.astype(np.float64)), margins, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_of_parts_are_merged_exactly(dtype):
    rng = np.random.default_rng(0)
    rows = (1000 + rng.normal(size=(500, 6)) * [1, 2, 3, 4, 5, 0]).astype(dtype)
    classes = rng.integers(0, 4, 500)
    classes[:100] = 3
    parts = [ClassMoments.of(rows[part], classes[part]) for part in (slice(0, 90), slice(90, 400), slice(400, 500))]
    whole = ClassMoments.of(rows, classes)
    for merged in (ClassMoments.merged(parts), ClassMoments.merged([ClassMoments.merged(parts[:2]), parts[2]])):
        np.testing.assert_array_equal(merged.counts, whole.counts)
        np.testing.assert_allclose(merged.means, whole.means, rtol=1e-14)
        np.testing.assert_allclose(merged.scatters, whole.scatters, atol=1e-9)
    exact = rows.astype(np.float64)
    assert whole.mean_square() == pytest.approx(((exact - exact.mean(0)) ** 2).sum(1).mean(), rel=1e-10)
    own = exact[classes == 2] - exact[classes == 2].mean(0)
    np.testing.assert_allclose(whole.standardized(whole.mean(), 2.0).scatter(2), own.T @ own / 4, atol=1e-9)
    np.testing.assert_array_equal(whole.constant, [False] * 5 + [True])
    assert whole.mean()[5] == 1000


@pytest.mark.parametrize("seed", [0, 1])
def test_a_draw_of_parts_is_the_draw_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 5, 4000)
    keys = group_keys(np.array([f"user {i}" for i in rng.integers(0, 900, 4000)], dtype=object))
    whole = Draw.of(Keyed(classes, keys), 60, seed)
    parts = [Draw.of(Keyed(c, k), 60, seed) for c, k in zip(np.split(classes, 8), np.split(keys, 8), strict=True)]
    merged = Draw.merged([Draw.merged(parts[:3], 60, seed), *parts[3:]], 60, seed)
    for name in ("classes", "keys", "counts"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    drawn = np.bincount(whole.classes, whole.counts)
    assert ((drawn >= 60) & (drawn < 90)).all()
    limits = whole.limits(np.bincount(classes), seed)
    is_drawn = priorities(keys, seed) <= limits[classes]
    np.testing.assert_array_equal(np.bincount(classes[is_drawn]), drawn)
    assert Draw.of(Keyed(classes, keys), 60, seed + 1).keys.tolist() != whole.keys.tolist()


def test_dataframes_keep_the_names_of_their_features(samples, large_classifier, tmp_path):
    X, y, groups = samples
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)]).assign(label=y, user=groups)
    for i, part in enumerate(np.array_split(np.arange(len(X)), 4)):
        frame.iloc[part].to_parquet(tmp_path / f"part-{i}.parquet")
    data = dd.read_parquet(str(tmp_path / "part-*.parquet"))
    lazy, features = (each.drop(columns=["label", "user"]) for each in (data, frame))
    given = {"groups": data["user"], "samples_per_class": 9999}
    found = skellipsoid.dask.fit(large_classifier, lazy, data["label"], **given)
    wanted = clone(large_classifier).fit(features, frame["label"], groups=frame["user"])
    assert found.feature_names_in_.tolist() == wanted.feature_names_in_.tolist()
    check_equal(found, wanted, features)
    np.testing.assert_allclose(found.held_out_scores_, wanted.held_out_scores_, atol=1e-5)
    numbers = wanted.groups_[y != "-1"]
    np.testing.assert_array_equal(found.groups_, numbers - numbers[0])  # the open samples came first
    assert not hasattr(large_classifier, "classes_")
    skellipsoid.save(found, tmp_path / "model")
    assert (skellipsoid.load(tmp_path / "model").predict(features) == found.predict(features)).all()


def test_a_class_without_spread_and_a_class_in_one_partition_are_fitted(large_classifier):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(5 * k, 1, size=(100, 4)) for k in range(4)] + [np.full((5, 4), 30.0)])
    y = np.repeat(["a", "b", "c", "d", "e"], [100, 100, 100, 100, 5])
    with pytest.warns(UserWarning, match="Classes without spread"):
        wanted = clone(large_classifier).fit(X, y)
    with pytest.warns(UserWarning, match="Classes without spread"):
        found = fit(large_classifier, X, y, rows=100, samples_per_class=200)
    check_equal(found, wanted, X)


def test_partitions_that_do_not_fit_name_themselves(samples, large_classifier):
    X, y, groups = samples
    rows = np.arange(len(y))
    for given, sentence in (
        ([np.where(rows[:, None] == 700, np.nan, X), y], r"^Partition 2: Input X contains NaN in row 100; "),
        ([X, np.where(rows == 300, None, y.astype(object))], r"^Partition 1: y has missing labels in row 0; "),
        ([X, y, np.where(rows == 901, np.nan, groups)], r"^Partition 3: groups has missing values in row 1; "),
        ([X[:600], np.append(y[:300].astype(object), np.zeros(300))], r"^Partition 1 of y holds numbers such as 0\.0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fit(large_classifier, *given)
    blocks = in_blocks(X[:600], 300)
    narrow = blocks.map_blocks(lambda block, block_id: block[:, : 12 - 5 * block_id[0]], dtype=X.dtype)
    with pytest.raises(ValueError, match=r"^Partition 1: X has 7 features, but partition 0 has 12; "):
        skellipsoid.dask.fit(large_classifier, narrow, in_blocks(y[:600], 300))


def test_what_cannot_be_fitted_is_said_before_the_data_are_read(samples, large_classifier):
    X, y = (in_blocks(part, 300) for part in samples[:2])
    series = dd.from_pandas(pd.Series(samples[1]), npartitions=2)
    trained = clone(large_classifier).set_params(trainer=skellipsoid.EliDecide())
    negative = clone(large_classifier).set_params(alpha=-1)
    for classifier, *given, error, sentence in (
        (MahalanobisClassifier(), X, y, TypeError, r"^classifier is a MahalanobisClassifier, but must be an Ellipsoid"),
        (large_classifier, samples[0], y, TypeError, r"^X is a ndarray, but must be a Dask array"),
        (large_classifier, X, y[:100], ValueError, r"^y has 100 rows, but X has "),
        (large_classifier, X, series, ValueError, r"^y has 2 partitions, but X has \d+; "),
        (trained, X, y, ValueError, r"needs all samples in one memory; set trainer=None"),
        (negative, X, y, ValueError, r"The 'alpha' parameter of EllipsoidOpenSetClassifier"),
    ):
        with pytest.raises(error, match=sentence):
            skellipsoid.dask.fit(classifier, *given)
    with pytest.raises(ValueError, match=r"^samples_per_class=5, but must be a whole number of at least 10; "):
        skellipsoid.dask.fit(large_classifier, X, y, samples_per_class=5)


def test_large_numbers_as_labels_of_partitions_stay_exact_or_are_refused(samples, large_classifier):
    X, y = samples[0], 2**60 + np.unique(samples[1], return_inverse=True)[1]
    wanted = fit(large_classifier, X, y)
    assert wanted.classes_.tolist() == [2**60 + k for k in range(13)]

    def fit_to(*parts):
        """Fit to labels of which each partition has another type."""
        lazy = in_blocks(y, 300).map_blocks(lambda part, block_id: parts[min(block_id[0], 2)](part), dtype=y.dtype)
        return skellipsoid.dask.fit(large_classifier, in_blocks(X, 300), lazy)

    kinds = [np.asarray, lambda part: part.astype(np.uint64), lambda part: np.full(len(part), 7.0)]
    assert fit_to(*kinds).classes_.tolist() == [7, *wanted.classes_.tolist()]
    with pytest.raises(ValueError, match=r"Partition 1 of y holds 1\S* \(partition 0 is float64\), which is no exact"):
        fit_to(*kinds[::-1])


def test_data_of_no_or_few_known_samples_are_refused(large_classifier):
    with pytest.raises(ValueError, match=r"^All 40 samples have the open label"):
        fit(large_classifier, np.zeros((40, 3)), np.full(40, -1), rows=20)
    with pytest.raises(ValueError, match=r"^X has 40 samples of known classes with 50 features, but at least as many"):
        fit(large_classifier, np.random.default_rng(0).normal(size=(40, 50)), np.arange(40) % 2, rows=20)
    with pytest.raises(ValueError, match=r"^X has no rows in any of its partitions"):
        fit(large_classifier, np.zeros((0, 3)), np.zeros(0), rows=20)
