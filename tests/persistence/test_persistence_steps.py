"""Promise: steps of scikit-learn and tuned operating points come back as numbers, the same to the last bit."""

import sys

import numpy as np
import pytest
from persistence_helpers import make_encoder, read_manifest, write_manifest
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import all_estimators

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, TunedOperatingPointCV, load, save
from skellipsoid.model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit

STEPS = {
    "StandardScaler": StandardScaler(),
    "neither": StandardScaler(with_mean=False, with_std=False),
    "in place": StandardScaler(copy=False),
    "l2": Normalizer(),
    "PCA": PCA(),
    "PCA mle": PCA("mle"),
    "whitened": PCA(5, whiten=True),
    "arpack": PCA(5, svd_solver="arpack", random_state=0),
    "covariance_eigh": PCA(5, svd_solver="covariance_eigh"),
    "SVD randomized": TruncatedSVD(5, random_state=0),
    "SVD arpack": TruncatedSVD(5, algorithm="arpack", random_state=0),
    "frozen Pipeline": FrozenEstimator(make_pipeline(StandardScaler(), PCA(5))),
    "Pipeline": make_pipeline(StandardScaler(), "passthrough", PCA(5)),
}


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
    encoder = FrozenEstimator(make_encoder(tiny_model).fit(texts, labels))
    frozen = make_pipeline(encoder, PCA(6), EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    save(frozen, tmp_path / "model")
    loaded = load(tmp_path / "model")
    queries = [*texts, *open_texts]
    np.testing.assert_array_equal(loaded.score_samples(queries), frozen.score_samples(queries))
    assert type(loaded[0].estimator) is SupConTextEncoder


CVS = [
    3,
    OpenSetKFold(3, shuffle=True, random_state=1),
    OpenSetShuffleSplit(3, known_ratio=0.5, random_state=0),
    KnownClassSplit(0.5, 0, test_rows=np.arange(0, 100, 3)),
    StratifiedKFold(3),
]


def test_a_tuned_operating_point_is_kept(rows, tmp_path):
    tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.2, cv=3).fit(*rows)
    for cv in CVS:
        save(tuned.set_params(cv=cv), tmp_path / "model", overwrite=True)
        loaded = load(tmp_path / "model")
        assert str(loaded.get_params()) == str(tuned.get_params())
    assert loaded.offset_ == tuned.offset_ != 0
    assert loaded.cv_results_.keys() == tuned.cv_results_.keys()
    for name, values in tuned.cv_results_.items():
        np.testing.assert_array_equal(loaded.cv_results_[name], values)


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
