"""Promise: a manifest or an array that was altered by hand is refused at load, or the model is as good as any."""

import shutil

import numpy as np
import pytest
import safetensors.numpy
from persistence_helpers import add_file, part, read_manifest, setting, write_manifest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, load, save
from skellipsoid.persistence import _folder


@pytest.fixture(scope="module")
def steps(rows, tmp_path_factory):
    """Folder of a scaler, a projection to three features and a classifier."""
    folder = tmp_path_factory.mktemp("altered") / "steps"
    save(make_pipeline(StandardScaler(), PCA(3), EllipsoidOpenSetClassifier(random_state=0)).fit(*rows), folder)
    return folder


@pytest.fixture
def altered(steps, tmp_path):
    """Change the manifest of a copy of the three steps, ``altered(change)``; gives its folder."""

    def alter(change):
        folder = shutil.copytree(steps, tmp_path / "steps")
        manifest = read_manifest(folder)
        change(manifest)
        write_manifest(folder, manifest)
        return folder

    return alter


def of_step(step, *keys_and_value):
    return setting("model", "steps", step, *keys_and_value)


def of_shapes(*keys_and_value):
    return of_step(2, "state", "_boundaries", "mapping", "shapes", "mapping", *keys_and_value)


ALTERED = {
    "no axes": (of_shapes("factors", "mapping", {}), "of factors of shapes of _boundaries is missing"),
    "axes of no class": (of_shapes("factors", "mapping", "starts", [0, 1, 2, 1, 4]), "must rise from 0 to"),
    "steps reversed": (lambda each: each["model"]["steps"].reverse(), "All intermediate steps should be transformers"),
    "a step left out": (lambda each: each["model"]["steps"].pop(1), "nothing in it needs the file '1-pca/arrays.safe"),
    "a step twice": (
        lambda each: each["model"]["steps"].insert(0, each["model"]["steps"][0]),
        "two parts of it need the file '0-standardscaler/arrays.safetensors'",
    ),
    "text for a number": (of_step(2, "parameters", "alpha", "x"), "The 'alpha' parameter of EllipsoidOpenSetClassif"),
    "another array": (of_shapes("radii", {"array": "_boundaries.centroids"}), "radii .* is an array of float64, but"),
    "labels cut": (of_step(2, "state", "classes_", {"strings": ["one"], "dtype": "<U1"}), r"\['one'\] are no strings"),
    "more features": (of_step(0, "state", "n_features_in_", 6), r"mean_ .* has the shape \(12,\), but must have \(6\)"),
    "a special name": (of_step(0, "state", "__class__", 1), "'__class__' is no fitted attribute of StandardScaler"),
}


@pytest.mark.parametrize(("change", "sentence"), ALTERED.values(), ids=ALTERED)
def test_what_could_not_predict_is_refused(altered, change, sentence):
    folder = altered(change)
    with pytest.raises(ValueError, match=sentence) as caught:
        load(folder)
    assert f"The model in {str(folder)!r} does not describe an estimator of this package (" in str(caught.value)
    assert str(caught.value).endswith("; save it again.")


def test_the_versions_of_scikit_learn_are_named_where_they_differ(altered):
    folder = altered(of_step(0, "parameters", "gamma", 1))
    write_manifest(folder, read_manifest(folder) | {"versions": {"scikit-learn": "0.1"}})
    with pytest.raises(ValueError, match=r"has no parameter 'gamma'.*It was saved with scikit-learn 0\.1, this is "):
        load(folder)


def test_steps_of_a_text_pipeline_must_fit_together(saved, monkeypatch):
    manifest = read_manifest(saved)
    encoder, classifier = manifest["model"]["steps"]
    more = [{**encoder, "name": f"more{i}"} for i in range(100)]
    manifest["model"]["steps"] = [encoder, *more, classifier]
    write_manifest(saved, manifest)
    monkeypatch.setattr(_folder, "_read_parts", None)  # no file is read
    with pytest.raises(ValueError, match="the step 'more0' takes texts, but is not the first one"):
        load(saved)


@pytest.mark.parametrize("change", [lambda radii: radii * np.inf, lambda radii: radii[:-1]], ids=["infinite", "short"])
def test_arrays_that_were_changed_with_their_checksum_are_refused(altered, change):
    folder, name = altered(lambda manifest: None), "2-ellipsoidopensetclassifier/arrays.safetensors"
    arrays, radii = safetensors.numpy.load(part(folder, name).read_bytes()), "_boundaries.shapes.radii"
    arrays[radii] = change(arrays[radii])
    add_file(folder, name, safetensors.numpy.save(arrays))
    with pytest.raises(ValueError, match="radii"):
        load(folder)


def test_text_models_are_counted_wherever_they_are(saved, monkeypatch):
    """Encoders in parameters of parameters, in lists and in mappings are counted before a file is read."""
    manifest = read_manifest(saved)
    encoder, classifier = manifest["model"]["steps"]
    inner = {"estimator": {name: value for name, value in encoder.items() if name != "name"}}
    for _ in range(20):
        frozen = {"class": "FrozenEstimator", "folder": "1-clf", "parameters": {"estimator": inner}, "state": {}}
        inner = {"estimator": frozen}
    classifier["parameters"]["trainer"] = [{"mapping": {"one": {"tuple": [inner]}}}] * 100
    write_manifest(saved, manifest)
    monkeypatch.setattr(_folder, "_read_parts", None)
    with pytest.raises(ValueError, match="it holds 101 embedding models, but save writes at most 4"):
        load(saved)
