"""Models on disk without pickle: the round trip, what is refused, what is damaged, and saves that are killed."""

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, load, save

MANIFEST = "skellipsoid.json"


def snapshot(folder):
    """Every file below a folder with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def make_encoder(model, finetune="head", **parameters):
    chosen = {"temperature": 0.3, "max_iter": 4, "learning_rate": 1e-3, "random_state": 0} | parameters
    return SupConTextEncoder(model, finetune=finetune, **chosen)


def make_pipeline(model, seed=0):
    return Pipeline(
        [
            ("enc", make_encoder(model, n_components=6, random_state=seed)),
            ("clf", EllipsoidOpenSetClassifier(random_state=seed, max_iter=5)),
        ]
    )


@pytest.fixture(scope="module")
def queries(texts, open_texts):
    return [*texts, *open_texts]


@pytest.fixture(scope="module")
def pipeline(tiny_model, texts, labels):
    return make_pipeline(tiny_model).fit(texts, labels)


@pytest.fixture(scope="module")
def other(tiny_model, texts, labels):
    """A model that answers otherwise."""
    return make_pipeline(tiny_model, seed=1).fit(texts, np.char.upper(labels))


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 30)
    return rng.normal(size=(60, 4)) + 6 * codes[:, None], codes


@pytest.fixture(scope="module")
def classifier(blobs):
    X, y = blobs
    return EllipsoidOpenSetClassifier(random_state=0, max_iter=5).fit(X, y)


@pytest.fixture
def saved(pipeline, tmp_path):
    save(pipeline, tmp_path / "model")
    return tmp_path / "model"


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
        else:
            assert type(found) is type(value)
            assert found == value


# The round trip

KINDS = {
    "int64": [0, 1],
    "int8": [-5, 7],
    "uint8": [0, 255],
    "bool": [False, True],
    "float64": [0.0, 1.0],
    "float32": [2.0, 3.0],
    ">i4": [1, 2],
    "U": ["left", "right-hand side"],
    "O": ["left", "größer, 左"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_comes_back_with_labels_of_every_kind(blobs, tmp_path, kind):
    X, codes = blobs
    y = np.array(KINDS[kind], dtype=None if kind == "U" else kind)[codes]
    classifier = EllipsoidOpenSetClassifier(random_state=0, max_iter=5).fit(X, y)
    save(classifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_state(classifier, loaded)
    probes = np.concatenate([X, X + 50])
    answers = loaded.predict(probes)
    assert answers.dtype == classifier.predict(probes).dtype
    assert answers.tolist() == classifier.predict(probes).tolist()
    assert loaded.open_label_ in answers.tolist()
    np.testing.assert_array_equal(loaded.decision_function(probes), classifier.decision_function(probes))


def test_features_with_names_keep_them(blobs, tmp_path):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c", "é"])
    classifier = EllipsoidOpenSetClassifier(random_state=0, max_iter=2).fit(frame, y)
    save(classifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_state(classifier, loaded)
    assert loaded.predict(frame).tolist() == classifier.predict(frame).tolist()
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("finetune", ["head", "full", "none"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"pooling": "model", "normalize": False, "max_length": 7},
        {"early_stopping": True, "learning_rate": "auto", "open_label": "other"},
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


@pytest.mark.parametrize("skipped", ["passthrough", None])
def test_steps_that_do_nothing_and_names_of_every_kind(pipeline, queries, tmp_path, skipped):
    names = ["../text to/features", "nothing", "..", "text to?features"]
    steps = [pipeline["enc"], skipped, "passthrough", pipeline["clf"]]
    odd = Pipeline(list(zip(names, steps, strict=True)), verbose=True)
    save(odd, tmp_path / "deep/er/model")
    loaded = load(tmp_path / "deep/er/model")
    assert [name for name, _ in loaded.steps] == names
    assert [loaded.steps[i][1] for i in [1, 2]] == ["passthrough"] * 2
    assert loaded.verbose is True
    assert loaded.predict(queries).tolist() == pipeline.predict(queries).tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]


def test_a_model_that_hands_on_data_frames_still_does(tiny_model, texts, labels, tmp_path):
    pipeline = make_pipeline(tiny_model).set_output(transform="pandas").fit(texts, labels)
    save(pipeline, tmp_path / "model")
    loaded = load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded[:-1].transform(texts), pipeline[:-1].transform(texts))
    assert loaded.predict(texts).tolist() == pipeline.predict(texts).tolist()


def test_paths_and_devices_are_saved_as_text(tiny_model, texts, labels, tmp_path):
    encoder = make_encoder(Path(tiny_model), device=torch.device("cpu"), random_state=np.int64(3)).fit(texts, labels)
    save(encoder, str(tmp_path / "model"))
    loaded = load(str(tmp_path / "model"))
    assert (loaded.model_name, loaded.device, loaded.random_state) == (tiny_model, "cpu", 3)
    np.testing.assert_array_equal(loaded.transform(texts), encoder.transform(texts))


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


def test_a_new_process_needs_the_folder_alone(tiny_model, texts, labels, queries, tmp_path, fresh_python):
    shutil.copytree(tiny_model, tmp_path / "tiny")
    pipeline = make_pipeline(str(tmp_path / "tiny")).fit(texts, labels)
    save(pipeline, tmp_path / "model")
    shutil.rmtree(tmp_path / "tiny")
    before = snapshot(tmp_path)
    done = fresh_python(_LOAD, tmp_path / "model", stdin=json.dumps(queries))
    assert (done.stderr, done.returncode) == ("", 0)
    answers, scores = json.loads(done.stdout)
    assert answers == pipeline.predict(queries).tolist()
    np.testing.assert_allclose(scores, pipeline.score_samples(queries), atol=1e-6)
    assert snapshot(tmp_path) == before


def test_a_saved_model_holds_json_and_weights_alone(saved):
    assert {Path(name).suffix for name in snapshot(saved)} == {".json", ".safetensors"}


# What is refused before anything is written


class Derived(EllipsoidOpenSetClassifier):
    """Whatever it adds would be lost."""


def _refused(tiny_model, classifier, pipeline):
    scaled = Pipeline([("scale", StandardScaler()), ("clf", EllipsoidOpenSetClassifier(max_iter=1))])
    unfitted = Pipeline([("enc", pipeline["enc"]), ("clf", EllipsoidOpenSetClassifier())])
    random_state = pickle.loads(pickle.dumps(classifier)).set_params(random_state=np.random.RandomState(0))
    return {
        "a foreign step": (scaled, TypeError, "The step 'scale' is a StandardScaler, which cannot be saved"),
        "a Pipeline in a Pipeline": (Pipeline([("all", pipeline)]), TypeError, "The step 'all' is a Pipeline"),
        "a foreign estimator": (StandardScaler(), TypeError, "The estimator is a StandardScaler"),
        "no estimator": ({"a": 1}, TypeError, "The estimator is a dict"),
        "a class": (EllipsoidOpenSetClassifier, TypeError, "The estimator is a ABCMeta"),
        "a derived class": (Derived(), TypeError, "The estimator is a Derived"),
        "an unfitted classifier": (EllipsoidOpenSetClassifier(), NotFittedError, "is not fitted yet"),
        "an unfitted encoder": (make_encoder(tiny_model), NotFittedError, "is not fitted yet"),
        "an unfitted step": (unfitted, NotFittedError, "This EllipsoidOpenSetClassifier instance is not fitted yet"),
        "a generator": (
            random_state,
            TypeError,
            r"random_state of EllipsoidOpenSetClassifier is RandomState\(MT19937\)",
        ),
    }


@pytest.mark.parametrize("case", _refused(None, EllipsoidOpenSetClassifier(), {"enc": None}))
@pytest.mark.parametrize("exists", [False, True])
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(
    tiny_model, classifier, pipeline, tmp_path, case, exists
):
    estimator, error, sentence = _refused(tiny_model, classifier, pipeline)[case]
    if exists:
        save(classifier, tmp_path / "model")
    before = snapshot(tmp_path)
    with pytest.raises(error, match=sentence):
        save(estimator, tmp_path / "model", overwrite=True)
    assert snapshot(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"] * exists


# Folders that exist


def test_an_empty_folder_is_taken(classifier, blobs, tmp_path):
    (tmp_path / "model").mkdir()
    save(classifier, tmp_path / "model")
    assert load(tmp_path / "model").predict(blobs[0]).tolist() == classifier.predict(blobs[0]).tolist()


def test_a_relative_folder_is_taken(classifier, blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(classifier, "model")
    save(classifier, "model", overwrite=True)
    monkeypatch.chdir(tmp_path / "model")
    save(classifier, ".", overwrite=True)
    assert load(".").predict(blobs[0]).tolist() == classifier.predict(blobs[0]).tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_model_is_replaced_only_if_told_so(saved, other, queries):
    before = snapshot(saved)
    with pytest.raises(FileExistsError, match="exists; pass overwrite=True to replace a model that was saved there"):
        save(other, saved)
    assert snapshot(saved) == before
    (saved / "README.txt").write_text("mine")
    (saved / "notes").mkdir()
    (saved / "notes/parts-of-mine.txt").write_text("mine too")
    save(other, saved, overwrite=True)
    assert load(saved).predict(queries).tolist() == other.predict(queries).tolist()
    names = sorted(p.name.split("-")[0] for p in saved.iterdir())
    assert names == ["README.txt", "notes", "parts", MANIFEST]
    assert (saved / "README.txt").read_text() == "mine"
    assert (saved / "notes/parts-of-mine.txt").read_text() == "mine too"


@pytest.mark.parametrize("content", ["notes", "damaged manifest", "foreign manifest", "newer manifest", "file"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_saved_model_is_left_alone(classifier, tmp_path, content, overwrite):
    target = tmp_path / "model"
    if content == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / ("notes.txt" if content == "notes" else MANIFEST)).write_text(
            {
                "notes": "mine",
                "damaged manifest": '{"format": "skel',
                "foreign manifest": '{"name": "my-app"}',
                "newer manifest": '{"format": "skellipsoid", "format_version": 2}',
            }[content]
        )
    before = snapshot(tmp_path)
    sentence = "something other than a saved model, which is left alone" if overwrite else "exists; pass overwrite=True"
    with pytest.raises(FileExistsError, match=sentence):
        save(classifier, target, overwrite=overwrite)
    assert snapshot(tmp_path) == before


# Damage


def _truncated(path):
    path.write_bytes(path.read_bytes()[:-1])


def _emptied(path):
    path.write_bytes(b"")


def _changed(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "truncated": (_truncated, r"is damaged \(its SHA-256 differs\)"),
    "emptied": (_emptied, r"is damaged \(its SHA-256 differs\)"),
    "changed": (_changed, r"is damaged \(its SHA-256 differs\)"),
    "missing": (Path.unlink, r"lacks its file '.*' \(No such file or directory\)"),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_and_nothing_changes(saved, damage, sentence):
    paths = [path for path in saved.rglob("*") if path.is_file() and path.name != MANIFEST]
    assert len(paths) >= 8
    for path in paths:
        content = path.read_bytes()
        damage(path)
        before = snapshot(saved)
        with pytest.raises(ValueError, match=sentence) as caught:
            load(saved)
        assert path.relative_to(next(saved.glob("parts-*"))).as_posix() in str(caught.value)
        assert snapshot(saved) == before
        path.write_bytes(content)
    load(saved)


def _without(key):
    return lambda manifest: {name: value for name, value in manifest.items() if name != key}


def _with(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(manifest):
        place = manifest
        for key in keys:
            place = place[key]
        place[last] = value
        return manifest

    return change


MANIFESTS = {
    "a list": (lambda manifest: [manifest], "was not written by skellipsoid.save"),
    "a string": (lambda manifest: "model", "was not written by skellipsoid.save"),
    "another format": (_with("format", "onnx"), "was not written by skellipsoid.save"),
    "no format": (_without("format"), "was not written by skellipsoid.save"),
    "a newer format": (
        _with("format_version", 2),
        r"has format version 2, this skellipsoid \(.*\) reads version 1; it was written by .*, install that",
    ),
    "no version": (_without("format_version"), "has format version None"),
    "no parts": (_without("parts"), "is damaged"),
    "parts elsewhere": (_with("parts", ".."), "is damaged"),
    "no checksums": (_without("sha256"), "is damaged"),
    "a list of checksums": (_with("sha256", ["a"]), "is damaged"),
    "no files": (_with("sha256", {}), "does not describe an estimator of this package"),
    "no model": (_without("model"), "does not describe an estimator of this package"),
    "a model without steps": (_with("model", {"class": "Pipeline"}), "does not describe an estimator"),
    "an unknown class": (_with("model", "steps", 1, "class", "StandardScaler"), "does not describe an estimator"),
    "a class that is none": (_with("model", "steps", 1, "class", ["os.system"]), "does not describe an estimator"),
    "an unknown parameter": (_with("model", "steps", 1, "parameters", "gamma", 1), "does not describe an estimator"),
    "an unknown array": (_with("model", "steps", 1, "state", "radii_", {"array": "no"}), "does not describe an est"),
    "an unknown kind": (_with("model", "steps", 1, "state", "radii_", {"pickle": "no"}), "does not describe an est"),
    "another model's folder": (_with("model", "steps", 0, "folder", "1-clf"), "does not describe an estimator"),
}


@pytest.mark.parametrize(("change", "sentence"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_makes_no_sense_is_refused(saved, change, sentence):
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(change(manifest)))
    before = snapshot(saved)
    with pytest.raises(ValueError, match=sentence):
        load(saved)
    assert snapshot(saved) == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b'{"format": "skellipsoid"', b"\x80\x04K\x01."])
def test_a_damaged_manifest_is_named(saved, content):
    (saved / MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match=r"skellipsoid\.json' is damaged \(.*\); save the model again"):
        load(saved)


def test_a_manifest_truncated_anywhere_is_refused(saved):
    content = (saved / MANIFEST).read_bytes()
    for length in range(0, len(content) - 1, 97):
        (saved / MANIFEST).write_bytes(content[:length])
        with pytest.raises(ValueError, match="is damaged"):
            load(saved)


def test_folders_that_are_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder '.*nothing'; check the path"):
        load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"is not a saved model: it holds no skellipsoid\.json"):
        load(tmp_path)
    (tmp_path / "file").write_text("{}")
    with pytest.raises(ValueError, match="is not a saved model"):
        load(tmp_path / "file")


# Models that mean harm


def add_file(saved, name, content, stored_as=None):
    """Put a file into a saved model, and its checksum into the manifest."""
    manifest = json.loads((saved / MANIFEST).read_text())
    path = saved / manifest["parts"] / (stored_as or name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    (saved / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "name",
    ["../../secret", "{here}/secret", "0-enc/../../../secret", "0-enc/./x", "0-enc\\..\\..\\x", "C:x", "0-enc/", ""],
)
def test_files_outside_of_the_folder_are_not_read(saved, tmp_path, name):
    (tmp_path / "secret").write_bytes(b"secret")
    manifest = json.loads((saved / MANIFEST).read_text())
    manifest["sha256"][name.format(here=tmp_path)] = hashlib.sha256(b"secret").hexdigest()
    (saved / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"names a file outside of its folder \('.*'\); do not trust this model"):
        load(saved)


def test_files_outside_of_the_folder_are_not_written(saved, tmp_path, texts):
    # Cut off the text model's folder, and an absolute path is left.
    canary = tmp_path / "canary"
    add_file(saved, f"0-enc/text_model/{canary}", b"written", stored_as=f"0-enc/text_model{canary}")
    with pytest.raises(ValueError, match="do not trust this model"):
        load(saved).predict(texts)
    assert not canary.exists()


def evil(canary):
    return f"open({str(canary)!r}, 'w').close()\nclass Module:\n    pass\nModel = Module\n".encode()


@pytest.mark.parametrize("kind", ["evil.Module", "os.system", "sentence_transformers_evil.Module"])
def test_a_text_model_that_names_foreign_code_is_refused(saved, tmp_path, kind):
    part = next(saved.glob("parts-*")) / "0-enc/text_model"
    modules = json.loads((part / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "", "type": kind})
    add_file(saved, "0-enc/text_model/evil.py", evil(tmp_path / "canary"))
    add_file(saved, "0-enc/text_model/modules.json", json.dumps(modules).encode())
    with pytest.raises(ValueError, match=f"the text model asks for the class '{kind}', which is not of sentence-trans"):
        load(saved)
    assert not (tmp_path / "canary").exists()


def test_code_that_a_text_model_brings_is_not_run(saved, tmp_path, pipeline, queries):
    part = next(saved.glob("parts-*")) / "0-enc/text_model"
    add_file(saved, "0-enc/text_model/evil.py", evil(tmp_path / "canary"))
    for name, automatic in [("config.json", "AutoModel"), ("tokenizer_config.json", "AutoTokenizer")]:
        config = json.loads((part / name).read_text())
        config["auto_map"] = {automatic: "evil.Model", "AutoConfig": "evil.Model"}
        add_file(saved, f"0-enc/text_model/{name}", json.dumps(config).encode())
    assert load(saved).predict(queries).tolist() == pipeline.predict(queries).tolist()
    assert not (tmp_path / "canary").exists()


def test_code_that_a_module_of_sentence_transformers_names_is_not_run(saved, tmp_path, texts):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}]
    router = {"types": {"evil": "evil.Module"}, "structure": {"query": ["evil"]}, "parameters": {}}
    add_file(saved, "0-enc/text_model/evil.py", evil(tmp_path / "canary"))
    add_file(saved, "0-enc/text_model/modules.json", json.dumps(modules).encode())
    for name in ["router_config.json", "config.json"]:
        add_file(saved, f"0-enc/text_model/{name}", json.dumps(router).encode())
    with pytest.raises(ValueError, match=r"evil\.Module"):
        load(saved).predict(texts)
    assert not (tmp_path / "canary").exists()


# Saves that end early


@pytest.mark.parametrize("existing", [False, True])
def test_a_save_that_fails_cleans_up_after_itself(pipeline, other, tmp_path, existing, monkeypatch):
    target = tmp_path / "model"
    if existing:
        save(pipeline, target)
        (target / "notes.txt").write_text("mine")
    before = snapshot(tmp_path)
    for n_calls in range(1000):
        left = n_calls

        def fail(original, *arguments, **options):
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(28, "No space left on device")
            return original(*arguments, **options)

        with monkeypatch.context() as patched:
            for place, name in [(Path, "write_bytes"), (Path, "rename"), (Path, "replace"), (os, "fsync")]:
                original = getattr(place, name)
                patched.setattr(place, name, lambda *a, original=original, fail=fail, **o: fail(original, *a, **o))
            try:
                save(other, target, overwrite=existing)
                break
            except OSError as error:
                if error.errno != 28:
                    raise
        assert snapshot(tmp_path) == before
        assert not list(tmp_path.glob(".*"))
    assert n_calls > 15
    assert load(target)["clf"].classes_.tolist() == other["clf"].classes_.tolist()


_KILL = """
import itertools, json, os, shutil, sys
from pathlib import Path
from skellipsoid import load, save

parent, existing = Path(sys.argv[1]), sys.argv[2] == "True"
target = parent / "kill" / "model"
os.fsync = lambda handle: None  # slow; a process that is killed loses nothing that it has written
new = load(parent / "new")  # its text model is never built: no child needs torch
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(step):
    steps = itertools.count()

    def count(*_):
        if next(steps) == step:
            os._exit(9)

    def watch(event, arguments):
        if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree") or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        ):
            count()

    def write_in_halves(self, data):
        with self.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            count()
            file.write(data[len(data) // 2 :])

    Path.write_bytes = write_in_halves
    sys.addaudithook(watch)


def whole():
    # Loading compares every file with its checksum.
    return load(target)["clf"].centroids_.tolist() if target.exists() else None


outcomes = []
for step in itertools.count():
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    if existing:
        shutil.copytree(parent / "old", target)
        (target / "notes.txt").write_text("mine")
    child = os.fork()
    if not child:
        die_at(step)
        save(new, target, overwrite=existing)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = whole()
    save(new, target, overwrite=True)
    names = sorted(path.name.split("-")[0] for path in target.iterdir())
    outcomes.append([code, found, whole(), names])
    if code != 9:
        break
json.dump(outcomes, sys.stdout)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes, which this platform does not have")
@pytest.mark.parametrize("existing", [False, True])
def test_a_save_that_is_killed_leaves_the_old_model_whole(pipeline, other, queries, tmp_path, fresh_python, existing):
    save(pipeline, tmp_path / "old")
    save(other, tmp_path / "new")
    before, after = pipeline["clf"].centroids_.tolist(), other["clf"].centroids_.tolist()
    assert before != after
    done = fresh_python(_KILL, tmp_path, existing)
    assert (done.stderr, done.returncode) == ("", 0)
    codes, found, saved_again, names = zip(*json.loads(done.stdout), strict=True)
    assert len(codes) > 30
    assert codes == (9,) * (len(codes) - 1) + (0,)
    # What was there (or nothing) until one step, what is new from then on, never a mixture.
    expected = before if existing else None
    turned = found.index(after)
    assert turned > 20
    assert all(model == expected for model in found[:turned])
    assert all(model == after for model in found[turned:])
    # The next save is not troubled by what the killed one left.
    assert all(model == after for model in saved_again)
    assert load(tmp_path / "kill/model").predict(queries).tolist() == other.predict(queries).tolist()
    kept = ["notes.txt"] if existing else []
    assert all(sorted([*kept, "parts", MANIFEST]) == rest for rest in names)
