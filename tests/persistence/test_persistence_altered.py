"""Promise: a manifest or an array that was altered by hand is refused at load, or the model is as good as any."""

import hashlib

import numpy as np
import pytest
import safetensors.numpy
from persistence_helpers import MANIFEST, read_manifest, write_manifest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, load, save
from skellipsoid.persistence import _folder


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(4), 15)
    return rng.normal(size=(60, 5)) + 5 * rng.normal(size=(4, 5))[codes], codes


@pytest.fixture(scope="module")
def steps(rows, tmp_path_factory):
    """Folder of a scaler, a projection to three features and a classifier."""
    folder = tmp_path_factory.mktemp("altered") / "steps"
    save(make_pipeline(StandardScaler(), PCA(3), EllipsoidOpenSetClassifier(random_state=0)).fit(*rows), folder)
    return folder


@pytest.fixture
def altered(steps, monkeypatch):
    """Change the manifest of the three steps: ``altered(change)`` gives its folder; it is put back afterwards."""
    content = (steps / MANIFEST).read_bytes()

    def alter(change):
        manifest = read_manifest(steps)
        change(manifest["model"]["steps"])
        write_manifest(steps, manifest)
        return steps

    yield alter
    (steps / MANIFEST).write_bytes(content)


def setting(step, group, name, value):
    return lambda steps: steps[step][group].__setitem__(name, value)


def changing(*path, remove=None, **columns):
    """Change or remove columns of the boundaries."""

    def change(steps):
        found = steps[2]["state"]["_boundaries"]["mapping"]
        for name in path:
            found = found[name]["mapping"]
        found.update(columns)
        if remove:
            del found[remove]

    return change


ALTERED = {
    "no axes": (
        changing("shapes", "factors", remove="axes"),
        "axes of factors of shapes of _boundaries is missing",
    ),
    "a foreign column": (changing(size=1.0), "_boundaries has no 'size'"),
    "axes of no class": (changing("shapes", "factors", starts=[0, 1, 2, 1, 4]), "must rise from 0 to"),
    "a null mean": (setting(0, "state", "mean_", None), "mean_ is null, but must be an array with with_mean=True"),
    "steps reversed": (list.reverse, "All intermediate steps should be transformers"),
    "a step left out": (lambda steps: steps.pop(1), "nothing in it needs the file '1-pca/arrays.safetensors'"),
    "a step twice": (
        lambda steps: steps.insert(0, steps[0]),
        "two parts of it need the file '0-standardscaler/arrays.safetensors'",
    ),
    "text for a number": (
        setting(2, "parameters", "alpha", "x"),
        "The 'alpha' parameter of EllipsoidOpenSetClassif",
    ),
    "a foreign parameter": (setting(0, "parameters", "gamma", 1), "StandardScaler has no parameter 'gamma'"),
    "another array": (
        changing("shapes", radii={"array": "_boundaries.centroids"}),
        "radii of shapes of _boundaries of the EllipsoidOpenSetClassifier is an array of float64, but must be an array",
    ),
    "labels of another kind": (
        setting(2, "state", "classes_", {"strings": list("abcd"), "dtype": "<U1"}),
        "open_label_ is -1, but must be of the type of classes_",
    ),
    "labels cut": (
        setting(2, "state", "classes_", {"strings": ["one", "two"], "dtype": "<U1"}),
        r"\['one', 'two'\] are no strings of type '<U1'",
    ),
    "more features": (setting(0, "state", "n_features_in_", 6), r"mean_ .* has the shape \(5,\), but must have \(6\)"),
    "a special name": (setting(0, "state", "__class__", 1), "'__class__' is no fitted attribute of StandardScaler"),
    "a container of none": (
        setting(0, "state", "_sklearn_output_config", {"mapping": {"transform": "csv"}}),
        "'pandas",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), ALTERED.values(), ids=ALTERED)
def test_what_could_not_predict_is_refused(altered, change, sentence):
    folder = altered(change)
    with pytest.raises(ValueError, match=sentence) as caught:
        load(folder)
    assert str(caught.value).startswith(
        f"The model in {str(folder)!r} does not describe an estimator of this package ("
    )
    assert str(caught.value).endswith("; save it again.")


def test_the_versions_of_scikit_learn_are_named_where_they_differ(altered, steps):
    altered(lambda described: None)
    manifest = read_manifest(steps)
    manifest["versions"]["scikit-learn"] = "0.1"
    manifest["model"]["steps"][0]["parameters"]["gamma"] = 1
    write_manifest(steps, manifest)
    with pytest.raises(ValueError, match=r"It was saved with scikit-learn 0\.1, this is "):
        load(steps)


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
def test_arrays_that_were_changed_with_their_checksum_are_refused(altered, steps, change):
    altered(lambda described: None)
    manifest = read_manifest(steps)
    name = "2-ellipsoidopensetclassifier/arrays.safetensors"
    path = steps / manifest["parts"] / name
    content = path.read_bytes()
    arrays, radii = safetensors.numpy.load(content), "_boundaries.shapes.radii"
    arrays[radii] = change(arrays[radii])
    path.write_bytes(safetensors.numpy.save(arrays))
    manifest["sha256"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    write_manifest(steps, manifest)
    with pytest.raises(ValueError, match="radii"):
        load(steps)
    path.write_bytes(content)


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
