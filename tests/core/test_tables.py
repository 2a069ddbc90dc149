"""Tables: what scikit-learn does with them around the package, their names, and the sentences where they do not fit."""

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.metrics import bootstrap_interval, open_set_accuracy
from skellipsoid.model_selection import OpenSetKFold

LABELS = np.repeat(["a", "b", "c", "d"], 12)
X = np.random.default_rng(0).normal(size=(48, 3)) + 9.0 * np.eye(4, 3)[np.repeat(range(4), 12)]
FRAME = pd.DataFrame(X, columns=["length", "width", "height"])


def classifier():
    return EllipsoidOpenSetClassifier(random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(X, LABELS)


# Around the package


class Sampler(BaseEstimator):
    """As those of imbalanced-learn: it acts in the fit of its Pipeline alone."""

    def fit_resample(self, X, y):
        return X, y


def test_classes_of_a_pipeline_with_a_sampler_change_and_it_is_saved_without_it(fitted, tmp_path):
    pipe = Pipeline([("scale", StandardScaler().fit(X)), ("sampler", Sampler()), ("clf", fitted)])
    plain = Pipeline([("scale", pipe["scale"]), ("clf", fitted)])
    for change in (
        lambda model: skellipsoid.add_classes(model, X[:8] + 30, ["far"] * 8),
        lambda model: skellipsoid.remove_classes(model, fitted.classes_[:1]),
        skellipsoid.refresh,
    ):
        assert change(pipe)["clf"].predict(X).tolist() == change(plain)["clf"].predict(X).tolist()
    skellipsoid.save(pipe, tmp_path / "model")
    loaded = skellipsoid.load(tmp_path / "model")
    assert [name for name, _ in loaded.steps] == ["scale", "clf"]
    np.testing.assert_array_equal(loaded.predict(X), plain.predict(X))


class Search(BaseEstimator):
    """As that of another library: it is no subclass of scikit-learn's."""

    def __init__(self, estimator):
        self.estimator = estimator

    @property
    def best_params_(self):
        return {}

    def fit(self, X, y, groups=None, **params):
        self.best_estimator_ = clone(self.estimator).fit(X, y, **params)
        self.classes_ = self.best_estimator_.classes_
        return self

    def predict(self, X):
        return self.best_estimator_.predict(X)


def test_a_search_of_another_library_is_one(tmp_path):
    inner = classifier()
    tuned = skellipsoid.TunedOperatingPointCV(Search(inner), rejection_rate=0.2, cv=2).fit(X, LABELS)
    assert tuned.offset_ == tuned.estimator_.best_estimator_.offset_
    fitted = Search(inner).fit(X, LABELS)
    skellipsoid.save(fitted, tmp_path / "model")
    assert skellipsoid.load(tmp_path / "model").predict(X).tolist() == fitted.predict(X).tolist()


# What does not fit


LAZY = {
    "a polars LazyFrame": (pl.LazyFrame({"x": [1.0]}), r"polars LazyFrame, but must .* call its collect\(\) "),
    "a dask Array": (da.from_array(X), r"dask Array, but .* compute\(\) first, or use skellipsoid.dask\.$"),
    "a dask DataFrame": (dd.from_pandas(FRAME, npartitions=2), r"dask DataFrame, but must be in memory; .*compute\(\)"),
    "a dask Series": (dd.from_pandas(FRAME.width, npartitions=2), r"dask Series, but must be in memory; .*compute\(\)"),
    "a dask Bag": (db.from_sequence(["a", "b"]), r"dask Bag, but must be in memory; call its compute\(\)"),
}
DOORS = {
    "X": lambda lazy: classifier().fit(lazy, LABELS),
    "y": lambda lazy: classifier().fit(X, lazy),
    "sample_weight": lambda lazy: classifier().fit(X, LABELS, sample_weight=lazy),
    "groups": lambda lazy: classifier().fit(X, LABELS, groups=lazy),
    "X of texts": lambda lazy: SupConTextEncoder("no such model").fit(lazy, LABELS),
    "texts": lambda lazy: skellipsoid.discover_classes(classifier().fit(X, LABELS), X, texts=lazy),
    "groups of a splitter": lambda lazy: list(OpenSetKFold(2).split(X, LABELS, lazy)),
    "labels": lambda lazy: skellipsoid.remove_classes(classifier().fit(X, LABELS), lazy),
    "y_true": lambda lazy: open_set_accuracy(lazy, LABELS),
    "stratify": lambda lazy: bootstrap_interval(open_set_accuracy, LABELS, LABELS, stratify=lazy),
}


@pytest.mark.parametrize(("lazy", "sentence"), LAZY.values(), ids=LAZY)
@pytest.mark.parametrize("name", DOORS)
def test_what_is_not_computed_yet_is_told_to_be(name, lazy, sentence):
    with pytest.raises(ValueError, match=f"^{name.split()[0]} is a {sentence}"):
        DOORS[name](lazy)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_vectors_beside_others_is_refused(table):
    frame = table({"id": [1, 2], "embedding": [[1.0, 2.0], [3.0, 4.0]]})
    sentence = r"^X holds a list or an array in some of its cells, .* pass a column of vectors alone, such as X\["
    for use in (classifier().fit, skellipsoid.check_training_features):
        with pytest.raises(ValueError, match=sentence):
            use(frame, ["a", "b"])


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.array([[1.0, 2.0, 3.0], [None, 1.0, 2.0]]), "Input X contains NaN in row 1; fill missing values"),
        (pl.Series([[1.0, 2.0], [3.0, 4.0]]), "X has 2 features, but EllipsoidOpenSetClassifier is expecting 3"),
        (pa.table({"t": pd.to_datetime(["2024-01-01"])}), "X holds the column 't' of type timestamp.*convert dates"),
    ],
)
def test_other_errors_are_those_of_arrays(fitted, column, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        fitted.predict(column)
