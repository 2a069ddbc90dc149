"""Saved models that are damaged, and saved models that mean harm."""

import hashlib
import json
from pathlib import Path

import pytest
from persistence_helpers import MANIFEST, snapshot

from skellipsoid import load

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
    paths = [path for path in saved.rglob("*") if path.is_file() and path.parent != saved]
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
        _with("format_version", 4),
        r"has format version 4, this skellipsoid \(.*\) reads versions 1 to 3; it was written by .*, install that",
    ),
    "no version": (_without("format_version"), "has format version None"),
    "no parts": (_without("parts"), "is damaged"),
    "parts elsewhere": (_with("parts", ".."), "is damaged"),
    "no checksums": (_without("sha256"), "is damaged"),
    "a list of checksums": (_with("sha256", ["a"]), "is damaged"),
    "no files": (_with("sha256", {}), "does not describe an estimator of this package"),
    "no model": (_without("model"), "does not describe an estimator of this package"),
    "a model without steps": (_with("model", {"class": "Pipeline"}), "does not describe an estimator"),
    "an unknown class": (_with("model", "steps", 1, "class", "MinMaxScaler"), "does not describe an estimator"),
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
