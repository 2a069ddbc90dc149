"""Promise: steps of scikit-learn and tuned operating points come back as numbers, the same to the last bit."""

import pickle
import sys

import numpy as np
import pytest
from persistence_helpers import make_encoder, read_manifest, write_manifest
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import all_estimators

from skellipsoid import (
    EliDecide,
    EllipsoidOpenSetClassifier,
    OpenShareMonitor,
    SupConTextEncoder,
    TunedOperatingPointCV,
    explain,
    load,
    save,
)
from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit


@pytest.fixture(scope="module")
def rows():
    """Rows of four classes whose features differ in size, and their classes."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(4), 25)
    return (rng.normal(size=(100, 12)) + 5 * rng.normal(size=(4, 12))[codes]) * np.geomspace(0.1, 30, 12), codes


STEPS = {
    "StandardScaler": StandardScaler(),
    "no mean": StandardScaler(with_mean=False),
    "no deviation": StandardScaler(with_std=False),
    "neither": StandardScaler(with_mean=False, with_std=False),
    "in place": StandardScaler(copy=False),
    "l2": Normalizer(),
    "max": Normalizer("max"),
    "PCA": PCA(),
    "PCA of a share": PCA(0.9),
    "PCA mle": PCA("mle"),
    "whitened": PCA(5, whiten=True),
    "arpack": PCA(5, svd_solver="arpack", random_state=0),
    "randomized": PCA(np.int64(5), svd_solver="randomized", random_state=0),
    "covariance_eigh": PCA(5, svd_solver="covariance_eigh"),
    "SVD randomized": TruncatedSVD(5, random_state=0),
    "SVD arpack": TruncatedSVD(5, algorithm="arpack", random_state=0),
    "frozen": FrozenEstimator(PCA(5)),
    "frozen Pipeline": FrozenEstimator(make_pipeline(StandardScaler(), PCA(5))),
    "Pipeline": make_pipeline(StandardScaler(), "passthrough", PCA(5)),
}


#: Those whose computations differ; the state of all is compared below.
COMPUTED = ["neither", "l2", "PCA mle", "whitened", "SVD arpack", "frozen Pipeline", "Pipeline"]


@pytest.mark.filterwarnings("ignore:New samples have a Euclidean norm")
@pytest.mark.filterwarnings("ignore:The columns of X are uncorrelated")  # behind the whitening
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, np.float64) for kind in COMPUTED), ("StandardScaler", np.float32), ("whitened", np.float32)],
)
def test_a_step_transforms_as_before_to_the_last_bit(rows, tmp_path, kind, dtype):
    X, y = rows[0].astype(dtype), rows[1]
    step = STEPS[kind]
    step = FrozenEstimator(clone(step.estimator).fit(X)) if isinstance(step, FrozenEstimator) else clone(step)
    pipeline = Pipeline([("step", step), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(X.copy(), y)
    probes = np.random.default_rng(2).normal(size=(333, 12)).astype(dtype) * 20
    save(pipeline, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded["step"]) is type(step)
    for some in [probes, probes[:1], X]:
        expected = pipeline[:-1].transform(some.copy())
        found = loaded[:-1].transform(some.copy())
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
    assert loaded.predict(probes.copy()).tolist() == pipeline.predict(probes.copy()).tolist()
    assert explain(loaded, X.copy()).keys() == explain(pipeline, X.copy()).keys()
    # What was loaded is as good as what was saved: saved again, copied, fitted again.
    save(loaded, tmp_path / "model", overwrite=True)
    again = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    # Not to the last bit: a pickle loses the layout in memory.
    expected = pipeline[:-1].transform(probes.copy())
    np.testing.assert_allclose(
        again[:-1].transform(probes.copy()), expected, rtol=1e-3 if dtype == np.float32 else 1e-9
    )
    refitted = clone(loaded).fit(X.copy(), y)
    np.testing.assert_array_equal(refitted.score_samples(X.copy()), pipeline.score_samples(X.copy()))


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_alone_is_kept_with_all_its_state(rows, tmp_path, kind):
    step = STEPS[kind]
    step = FrozenEstimator(clone(step.estimator).fit(rows[0])) if isinstance(step, FrozenEstimator) else clone(step)
    step.fit(rows[0].copy(), rows[1])
    save(step, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert vars(loaded).keys() == vars(step).keys()
    for name, value in vars(step).items():
        if isinstance(value, np.ndarray):
            assert getattr(loaded, name).strides == value.strides or not value.flags.contiguous
            np.testing.assert_array_equal(getattr(loaded, name), value)
        elif isinstance(value, (int, float, str)):
            assert getattr(loaded, name) == value


def test_a_frozen_encoder_is_kept(tiny_model, texts, labels, open_texts, tmp_path):
    encoder = make_encoder(tiny_model).fit(texts, labels)
    frozen = Pipeline(
        [
            ("enc", FrozenEstimator(encoder)),
            ("pca", PCA(6, random_state=0)),
            ("clf", EllipsoidOpenSetClassifier(random_state=0)),
        ]
    ).fit(texts, labels)
    save(frozen, tmp_path / "model")
    loaded = load(tmp_path / "model")
    queries = [*texts, *open_texts]
    np.testing.assert_array_equal(loaded.score_samples(queries), frozen.score_samples(queries))
    assert loaded.predict(queries).tolist() == frozen.predict(queries).tolist()
    assert type(loaded["enc"].estimator) is SupConTextEncoder


# A tuned operating point

CVS = {
    "number": 3,
    "own": OpenSetKFold(3, shuffle=True, random_state=1),
    "own draws": OpenSetShuffleSplit(3, known_ratio=0.5, random_state=0),
    "own with rows": KnownClassSplit(0.5, 0, test_rows=np.arange(0, 100, 3)),
    "scikit-learn's": StratifiedKFold(3),
}


def test_a_tuned_operating_point_is_kept(rows, tmp_path):
    X, y = rows[0], np.array(["a", "b", "c", "d"])[rows[1]]
    inner = make_pipeline(StandardScaler(), PCA(5), EllipsoidOpenSetClassifier(random_state=0))
    tuned = TunedOperatingPointCV(inner, rejection_rate=0.2, cv=CVS["own with rows"], n_jobs=1).fit(X, y)
    assert tuned.offset_ != 0
    save(tuned, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is TunedOperatingPointCV
    assert (loaded.offset_, loaded.estimator_[-1].offset_) == (tuned.offset_, tuned.offset_)
    assert (loaded.rejection_rate, loaded.n_jobs, loaded.open_label_) == (0.2, 1, "-1")
    probes = np.concatenate([X, X + 40])
    assert loaded.predict(probes).tolist() == tuned.predict(probes).tolist()
    assert "-1" in loaded.predict(probes).tolist()
    np.testing.assert_array_equal(loaded.score_samples(probes), tuned.score_samples(probes))
    assert loaded.cv_results_.keys() == tuned.cv_results_.keys()
    for name, values in tuned.cv_results_.items():
        np.testing.assert_array_equal(loaded.cv_results_[name], values)
    again = clone(loaded).fit(X, y)
    assert again.offset_ == tuned.offset_
    for cv in CVS.values():
        save(tuned.set_params(cv=cv), tmp_path / "model", overwrite=True)
        assert str(load(tmp_path / "model").get_params()) == str(tuned.get_params())


# The table


def test_nothing_is_imported_and_of_scikit_learn_few_classes_are_made(rows, tmp_path):
    folder = tmp_path / "model"
    save(make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(random_state=0)).fit(*rows), folder)
    before, manifest = set(sys.modules), read_manifest(folder)
    load(folder)
    assert set(sys.modules) - before == set()
    made = set()
    for name, _ in all_estimators():
        manifest["model"]["steps"][0]["class"] = name
        write_manifest(folder, manifest)
        try:
            load(folder)
        except ValueError as error:
            if f"(KeyError: {name!r})" in str(error):
                continue
        made.add(name)
    assert made == {"FrozenEstimator", "Normalizer", "PCA", "Pipeline", "StandardScaler", "TruncatedSVD"}


def fitted_estimators(tiny_model, texts, labels, rows):
    """One of each class and of each way to fit it that brings other state."""
    X, y = rows
    for trainer in [None, EliDecide(max_iter=2)]:
        for some in [X, X[::10], X[:, :2]]:
            yield EllipsoidOpenSetClassifier(trainer=trainer, random_state=0).fit(some, y[:: 100 // len(some)])
    for finetune in ["head", "full", "none"]:
        yield make_encoder(tiny_model, finetune, max_iter=1, keep_texts=finetune != "full").fit(texts, labels)
    yield TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=2).fit(X, y)
    yield OpenShareMonitor(EllipsoidOpenSetClassifier(random_state=0).fit(X, y)).fit(X).update(X[:5])
    for step in [StandardScaler(), Normalizer(), PCA(), TruncatedSVD()]:
        yield step.fit(X)


@pytest.mark.filterwarnings("ignore:Classes without spread")
def test_every_fitted_attribute_is_declared(tiny_model, texts, labels, rows, tmp_path):
    # Or what is loaded could lack it, and fail later.
    for estimator in fitted_estimators(tiny_model, texts, labels, rows):
        save(estimator, tmp_path / "model", overwrite=True)
        load(tmp_path / "model")
