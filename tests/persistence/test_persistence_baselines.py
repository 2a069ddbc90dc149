"""Promise: every classifier of ``skellipsoid.baselines`` comes back from disk with the same answers, without pickle."""

import pickle

import numpy as np
import pytest
from persistence_helpers import alterations, read_manifest, snapshot, write_manifest
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, baselines, load, save, set_operating_point
from skellipsoid.model_selection import OpenSetKFold
from skellipsoid_bench import literature
from skellipsoid_bench._text_classifier import TextOpenSetClassifier

pytestmark = pytest.mark.filterwarnings("ignore:(No ball of|OpenMax):UserWarning")
#: Parameters that bring other fitted state.
OTHERS = [
    ("CLABClassifier", {"normalize": False}),
    ("DOCClassifier", {"threshold": "auto"}),
    ("LOFOpenSetClassifier", {"scope": "all"}),
    ("MOGBClassifier", {"split_purity": 0.0, "radius": "mean"}),
    ("MOGBClassifier", {"min_size": 1000}),  # no ball is left
    ("MahalanobisClassifier", {"covariance": "class"}),
    ("MahalanobisClassifier", {"covariance": "relative", "threshold": -3}),
    ("OpenMaxClassifier", {"tail_size": 0}),  # infinite locations
    ("SoftmaxOpenSetClassifier", {"threshold": "auto", "open_label": 99}),
]
#: Those that take features, also of another distribution.
CLASSES = {
    name: cls
    for module in (baselines, literature)
    for name in module.__all__
    if is_classifier((cls := getattr(module, name))()) and not issubclass(cls, TextOpenSetClassifier)
}
NAMES = [*CLASSES]
CASES = [*((name, {}) for name in NAMES), *OTHERS]


#: A value in a fitted attribute that could not score; ``...`` is none, and an array gets it as its first number.
DAMAGE = [
    ("BallClassifier", {}, "open_label_", "open", "open_label_ is 'open', but must be of the type of classes_"),
    ("BallClassifier", {}, "radii_", -1, "radii_"),
    ("SoftmaxOpenSetClassifier", {}, "coef_", ..., "coef_"),
    ("ADBClassifier", {}, "n_iter_", -1, "n_iter_ of"),
    ("ADBClassifier", {}, "centroids_", np.nan, "centroids_"),
    ("KNNOpenSetClassifier", {}, "n_neighbors_", 101, "n_neighbors_"),
    ("KNNOpenSetClassifier", {}, "_row_classes", -1, "_row_classes"),
    ("LOFOpenSetClassifier", {}, "scale_", 0, "scale_"),
    ("LOFOpenSetClassifier", {}, "_starts", 3, "_starts .* must rise from 0 to 100"),
    ("MahalanobisClassifier", {"covariance": "relative"}, "_all_whitener", ..., "_all_whitener"),
    ("OpenMaxClassifier", {}, "tail_scales_", -1, "tail_scales_"),
]


def make(name, **parameters):
    cls = CLASSES[name]
    short = {key: value for key, value in {"random_state": 0, "max_iter": 10}.items() if key in cls().get_params()}
    return cls(**{**short, **parameters})


def assert_same_answers(first, second, X):
    for method in ["predict", "score_samples", "decision_function", "predict_known"]:
        expected, found = getattr(first, method)(X), getattr(second, method)(X)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=str)
def test_a_baseline_comes_back(rows, tmp_path, name, parameters):
    dtype = np.float32 if CASES.index((name, parameters)) % 2 else np.float64
    X, y = rows[0].astype(dtype), rows[1]
    clf = make(name, **parameters).fit(X, y)
    save(clf, tmp_path / "model")
    assert {path.rsplit(".", 1)[-1] for path in snapshot(tmp_path)} == {"json", "safetensors", "md"}
    loaded = load(tmp_path / "model")
    assert type(loaded) is type(clf)
    assert (vars(loaded).keys(), loaded.get_params()) == (vars(clf).keys(), clf.get_params())
    probes = np.concatenate([X, X + 3, 50 + X[:3]]).astype(dtype)
    assert_same_answers(clf, loaded, probes)
    for estimator in (clf, loaded):
        set_operating_point(estimator, X, rejection_rate=0.3)
    assert loaded.offset_ == clf.offset_
    assert_same_answers(clf, loaded, probes)
    # What was loaded is as good as what was saved: saved again, copied, fitted again.
    save(loaded, tmp_path / "model", overwrite=True)
    assert_same_answers(clf, load(tmp_path / "model"), probes)
    assert pickle.loads(pickle.dumps(loaded)).predict(probes).tolist() == clf.predict(probes).tolist()
    np.testing.assert_array_equal(clone(loaded).fit(X, y).score_samples(X), clf.score_samples(X))


# Logits of a classifier of one's own


@pytest.mark.parametrize("name", ["DOCClassifier", "OpenMaxClassifier"])
def test_logits_of_a_classifier_that_is_kept_are_kept(rows, tmp_path, name):
    X, y = rows
    inner = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(random_state=0))
    for i, estimator in enumerate([inner, FrozenEstimator(clone(inner).fit(X, y))]):
        clf = make(name, estimator=estimator).fit(X, y)
        save(clf, tmp_path / str(i))
        loaded = load(tmp_path / str(i))
        assert_same_answers(clf, loaded, X)
        assert str(loaded.get_params()) == str(clf.get_params())


# Damage


def test_logits_of_a_classifier_of_other_classes_are_refused(rows, tmp_path):
    X, y = rows
    clf = make("EnergyClassifier", estimator=EllipsoidOpenSetClassifier(random_state=0), threshold=0.0).fit(X, y)
    for inner, sentence in (
        (EllipsoidOpenSetClassifier(random_state=0).fit(X, y + 1), "must be a classifier of the same classes_"),
        (EllipsoidOpenSetClassifier(random_state=0).fit(X[:, :3], y), "logit_estimator_ takes 3 features"),
    ):
        clf.logit_estimator_ = inner
        with pytest.raises(ValueError, match=f"load would refuse it .*{sentence}"):
            save(clf, tmp_path / "model")


@pytest.mark.parametrize(("name", "parameters", "key", "value", "sentence"), DAMAGE, ids=str)
def test_state_that_could_not_score_is_refused(rows, tmp_path, name, parameters, key, value, sentence):
    clf = make(name, **parameters).fit(*rows)
    if value is ...:
        delattr(clf, key)
    elif isinstance(getattr(clf, key), np.ndarray):
        getattr(clf, key)[0] = value
    else:
        setattr(clf, key, value)
    with pytest.raises(ValueError, match=f"load would refuse it .*{sentence}"):
        save(clf, tmp_path / "model")


#: Pipelines and wrappers, and a classifier of each kind, with short curves.
ALTERED = [
    make_pipeline(StandardScaler(), PCA(3), EllipsoidOpenSetClassifier(random_state=0)),
    TunedOperatingPointCV(EllipsoidOpenSetClassifier(random_state=0), rejection_rate=0.1, cv=OpenSetKFold(2)),
    *(make(name, **parameters) for name, parameters in CASES[: len(NAMES)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ALTERED, ids=lambda estimator: f"{estimator!s:.60}")
def test_a_change_anywhere_is_refused_at_load_or_does_no_harm(rows, tmp_path, estimator):
    if "max_iter" in estimator.get_params():
        estimator.set_params(max_iter=2)
    save(estimator.fit(*rows), tmp_path / "model")
    manifest = read_manifest(tmp_path / "model")
    refusals, n_good = [], 0
    for changed in alterations(manifest["model"]):
        write_manifest(tmp_path / "model", manifest | {"model": changed})
        try:
            loaded = load(tmp_path / "model")
        except ValueError as error:
            refusals.append(str(error))
            continue
        # Whatever comes back from load is used without an error.
        if hasattr(loaded, "predict"):
            loaded.predict(rows[0])
            loaded.decision_function(rows[0])
        n_good += 1
    assert n_good > 3
    assert len(refusals) > 30
    assert all("does not describe an estimator of this package" in refusal for refusal in refusals)
