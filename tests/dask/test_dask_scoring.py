"""Promise: answers and scores of Dask collections are those of the same data in memory, and the model travels once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import SupConTextEncoder
from skellipsoid.baselines import MahalanobisClassifier

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
db = pytest.importorskip("dask.bag")

METHODS = ["predict", "score_samples", "known_p_value"]
COLUMNS = [f"x{i}" for i in range(12)]


def call(method, *arguments):
    return getattr(skellipsoid.dask, method)(*arguments)


def check_equal(found, wanted):
    """Labels are equal; scores are, up to the rounding of products of fewer rows."""
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_an_array_and_a_dataframe_are_scored_as_in_memory(cluster, samples, fitted):
    frame = pd.DataFrame(samples[0], columns=COLUMNS)
    frame.index += 1000
    clf = clone(fitted).fit(frame, samples[1])
    for method in METHODS:
        lazy = call(method, clf, dd.from_pandas(frame, npartitions=4))
        found = lazy.compute()
        assert (found.dtype, found.name) == (lazy.dtype, method)
        assert found.index.equals(frame.index)
        check_equal(found.to_numpy(), getattr(clf, method)(frame))
        lazy = call(method, fitted, da.from_array(samples[0], chunks=(300, -1)))
        found = lazy.compute()
        assert (lazy.shape, lazy.dtype) == ((len(frame),), found.dtype)
        check_equal(found, getattr(fitted, method)(samples[0]))


def test_texts_of_a_series_and_of_a_bag_are_scored(
    cluster, texts, labels, open_texts, large_classifier, tiny_model, tmp_path
):
    model = make_pipeline(SupConTextEncoder(tiny_model, finetune="none"), clone(large_classifier)).fit(texts, labels)
    skellipsoid.save(model, tmp_path / "model")  # Dask warns of a graph with a text model in it
    skellipsoid.save(model[0], tmp_path / "encoder")
    new = [*texts[:5], *open_texts, "emoji 🚚 καλημέρα"]
    series = dd.from_pandas(pd.Series(new), npartitions=3)
    bag = db.from_sequence(new, npartitions=3)
    assert call("predict", tmp_path / "model", series).compute().tolist() == model.predict(new).tolist()
    p_values = call("known_p_value", tmp_path / "model", bag).compute()
    np.testing.assert_allclose(p_values, model[-1].known_p_value(model[:-1].transform(new)), atol=1e-5)
    for collection in (series, bag):
        features = call("transform", tmp_path / "encoder", collection)
        assert (features.shape[1], features.dtype) == (32, np.float32)
        np.testing.assert_allclose(features.compute(), model[0].transform(new), atol=1e-6)


def test_nothing_is_computed_until_it_is_asked_for(fitted):
    def fails(*_, **__):
        raise AssertionError

    X = da.from_array(np.zeros((100, 12), dtype=np.float32), chunks=(10, -1)).map_blocks(fails, dtype=np.float32)
    for method in METHODS:
        assert call(method, fitted, X).shape == (100,)
    assert call("transform", StandardScaler().fit(np.zeros((2, 12))), X).shape == (100, 12)


def test_a_folder_that_is_changed_before_it_is_computed_is_refused(cluster, samples, fitted, tmp_path):
    skellipsoid.save(fitted, tmp_path / "model")
    X = da.from_array(samples[0][:500], chunks=(100, -1))
    lazy = call("predict", tmp_path / "model", X)
    fewer = clone(fitted).fit(samples[0][:500], samples[1][:500])
    skellipsoid.save(fewer, tmp_path / "model", overwrite=True)
    with pytest.raises(ValueError, match="model' was changed meanwhile, so that partitions would have predictions of"):
        lazy.compute()
    again = call("predict", tmp_path / "model", X)
    np.testing.assert_array_equal(again.compute(), fewer.predict(samples[0][:500]))


@pytest.mark.parametrize("method", ["predict", "score_samples", "transform"])
def test_a_partition_with_missing_values_or_another_width_names_itself(method, cluster, samples, fitted):
    model = PCA().fit(samples[0]) if method == "transform" else fitted
    X = samples[0].copy()
    X[650, 3] = np.nan
    in_row = "" if method == "transform" else " in row 50; "
    with pytest.raises(ValueError, match=f"^Partition 2: Input X contains NaN{in_row}"):
        call(method, model, da.from_array(X, chunks=(300, -1))).compute()
    # A block that is narrower than it says.
    narrow = da.zeros((10, 12), chunks=(10, 12)).map_blocks(lambda block: block[:, :7], dtype=float)
    with pytest.raises(ValueError, match=r"^Partition 1: X has 7 features, but .* is expecting 12 features"):
        call(method, model, da.concatenate([da.zeros((10, 12), chunks=(10, 12)), narrow])).compute()


def test_dask_is_not_imported_and_without_it_one_sentence_says_what_to_install(warm_python):
    script = (
        "import sys, skellipsoid.dask\n"
        "print({'dask', 'distributed'} & {*sys.modules})\n"
        "sys.modules['dask.array'] = None\n"
        "try:\n    skellipsoid.dask.predict(None, None)\n"
        "except ImportError as error:\n    print(error)\n"
    )
    found = warm_python(script)
    assert found.stderr == ""
    assert found.stdout.startswith("set()\nskellipsoid.dask.predict needs Dask (")
    assert found.stdout.endswith("pip install 'skellipsoid[dask]', or in a clone pip install '.[dask]'.\n")


def test_some_columns_of_files_are_scored_and_an_error_names_the_file(cluster, samples, fitted, tmp_path):
    X = samples[0][:400].copy()
    X[250, 0] = np.nan
    for i, part in enumerate(np.array_split(X, 8)):
        frame = pd.DataFrame(part, columns=COLUMNS).assign(text="long " * 200)
        frame.to_parquet(tmp_path / f"part-{i}.parquet")
    data = dd.read_parquet(str(tmp_path / "part-*.parquet"))[COLUMNS]
    clf = clone(fitted).fit(pd.DataFrame(samples[0], columns=COLUMNS), samples[1])
    lazy = call("predict", clf, data)
    with pytest.raises(ValueError, match=r"^Partition 5: Input X contains NaN in row 0; "):
        lazy.compute()
    good = lazy.partitions[:4].compute()
    assert good.tolist() == clf.predict(pd.DataFrame(X[:200], columns=COLUMNS)).tolist()


def test_what_is_no_collection_or_no_model_is_refused(samples, fitted):
    with pytest.raises(TypeError, match=r"^X is a ndarray, but must be a Dask array, .* the model's predict\(X\)\.$"):
        call("predict", fitted, samples[0])
    X = da.from_array(samples[0], chunks=(300, -1))
    with pytest.raises(TypeError, match=r"^MahalanobisClassifier has no known_p_value; pass a classifier that has it"):
        call("known_p_value", MahalanobisClassifier().fit(samples[0], samples[1]), X)
