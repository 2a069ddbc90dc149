"""Promise: a saved model comes back with the same answers to the last bit, without pickle."""

import dataclasses
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from persistence_helpers import make_encoder, make_pipeline, snapshot
from sklearn.base import clone

from skellipsoid import EllipsoidOpenSetClassifier, load, save
from skellipsoid._held_out.state import HELD_OUT


def plain(value):
    """Dataclasses and tuples as mappings and lists."""
    if dataclasses.is_dataclass(value):
        return {column.name: plain(getattr(value, column.name)) for column in dataclasses.fields(value)}
    return [type(value).__name__, *map(plain, value)] if isinstance(value, tuple) else value


def assert_same_state(first, second):
    """Every attribute but the text model, with its type."""
    assert type(first) is type(second)
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        found = vars(second)[name]
        if name == "_backbone":
            assert found.max_length == value.max_length
        elif isinstance(value, np.ndarray):
            assert found.dtype == value.dtype.newbyteorder("=")
            np.testing.assert_array_equal(found, value)
        elif name == "_held_out":
            np.testing.assert_equal(HELD_OUT.saved(found), HELD_OUT.saved(value))
        elif name in ("_kept", "_boundaries"):
            np.testing.assert_equal(plain(found), plain(value))
        else:
            assert type(found) is type(value)
            assert found == value


KINDS = {
    "int8": [-5, 7],
    "uint8": [0, 255],
    "bool": [False, True],
    "float32": [2.0, 3.0],
    ">i4": [1, 2],
    "U": ["left", "right-hand side"],
    "O": ["left", "größer, 左"],
}


@pytest.mark.filterwarnings("ignore:y holds booleans")
@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_comes_back_with_labels_of_every_kind(blobs, tmp_path, kind):
    X, codes = blobs
    y = np.array(KINDS[kind], dtype=None if kind == "U" else kind)[codes]
    open_share = {"U": 0.3, "O": (0.2, 0.5)}.get(kind)
    classifier = EllipsoidOpenSetClassifier(open_share=open_share, random_state=0).fit(X, y)
    save(classifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_state(classifier, loaded)
    probes = np.concatenate([X, X + 50])
    answers = loaded.predict(probes)
    assert answers.dtype == classifier.predict(probes).dtype
    assert answers.tolist() == classifier.predict(probes).tolist()
    assert loaded.open_label_ in answers.tolist()
    np.testing.assert_array_equal(loaded.decision_function(probes), classifier.decision_function(probes))


@pytest.mark.parametrize(
    ("finetune", "parameters"),
    [
        ("full", {}),
        ("none", {"prompt": "dim: ", "normalize": False, "max_length": 7}),
        ("head", {"early_stopping": True, "learning_rate": "auto", "open_label": "other"}),
        ("head", {"keep_texts": True}),
    ],
    ids=str,
)
def test_an_encoder_comes_back(tiny_model, texts, labels, queries, tmp_path, finetune, parameters):
    encoder = make_encoder(tiny_model, finetune, **parameters).fit(texts, labels)
    expected = encoder.transform(queries)
    save(encoder, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_state(encoder, loaded)
    np.testing.assert_array_equal(loaded.transform(queries), expected)
    # What was loaded can be saved and pickled, before its text model is built and after.
    for estimator in [load(tmp_path / "model"), loaded]:
        save(estimator, tmp_path / "model", overwrite=True)
        np.testing.assert_array_equal(load(tmp_path / "model").transform(queries), expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(queries), expected)


def test_a_pipeline_comes_back(pipeline, queries, texts, labels, tmp_path):
    expected = pipeline.decision_function(queries)
    save(pipeline.set_params(verbose=False), tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert [name for name, _ in loaded.steps] == ["enc", "clf"]
    assert loaded.get_params()["enc__temperature"] == 0.3
    np.testing.assert_array_equal(loaded.decision_function(queries), expected)
    assert loaded.predict(queries).tolist() == pipeline.predict(queries).tolist()
    assert "-1" in loaded.predict(queries)
    np.testing.assert_array_equal(clone(loaded).fit(texts, labels).decision_function(queries), expected)


def test_a_model_of_a_missing_device_is_used_on_this_one(pipeline, queries, tmp_path):
    missing = "cuda:7" if torch.cuda.is_available() else "cuda"
    elsewhere = pickle.loads(pickle.dumps(pipeline)).set_params(enc__device=missing, clf__device=missing)
    save(elsewhere, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded["clf"].device == loaded["enc"].device == missing
    assert loaded.predict(queries).tolist() == pipeline.predict(queries).tolist()


_LOAD = """
import json, sys
import skellipsoid
loaded = skellipsoid.load(sys.argv[1])
queries = json.load(sys.stdin)
json.dump([loaded.predict(queries).tolist(), loaded.score_samples(queries).tolist()], sys.stdout)
"""


def test_a_new_process_needs_the_folder_alone(tiny_model, texts, labels, queries, tmp_path, warm_python):
    shutil.copytree(tiny_model, tmp_path / "tiny")
    pipeline = make_pipeline(str(tmp_path / "tiny")).fit(texts, labels)
    save(pipeline, tmp_path / "model")
    shutil.rmtree(tmp_path / "tiny")
    before = snapshot(tmp_path)
    done = warm_python(_LOAD, tmp_path / "model", stdin=json.dumps(queries))
    assert (done.stderr, done.returncode) == ("", 0)
    answers, scores = json.loads(done.stdout)
    assert answers == pipeline.predict(queries).tolist()
    np.testing.assert_allclose(scores, pipeline.score_samples(queries), atol=1e-6)
    assert snapshot(tmp_path) == before
