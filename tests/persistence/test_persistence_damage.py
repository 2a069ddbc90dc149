"""Promise: every kind of damage is named in one sentence, and load changes nothing in the folder."""

import os
import resource
import time

import pytest
from persistence_helpers import MANIFEST, part, read_manifest, setting, snapshot, write_manifest

from skellipsoid import load, save
from skellipsoid.persistence._folder import manifest_bytes


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [(bytes, r"is damaged \(its SHA-256 differs\)"), (None, r"lacks its file '.*' \(.+\)")],
    ids=["changed", "missing"],
)
def test_a_damaged_file_is_named_and_nothing_changes(saved, damage, sentence):
    for path in saved.glob("parts-*/**/*.*"):
        content = path.read_bytes()
        path.write_bytes(damage(len(content))) if damage else path.unlink()
        before = snapshot(saved)
        with pytest.raises(ValueError, match=sentence) as caught:
            load(saved)
        assert path.relative_to(next(saved.glob("parts-*"))).as_posix() in str(caught.value)
        assert snapshot(saved) == before
        path.write_bytes(content)
    load(saved)


@pytest.mark.parametrize("has_sizes", [True, False])
def test_a_file_of_another_size_is_refused_unread(saved, has_sizes):
    """3 GiB take neither time nor memory; in a model without sizes each kind of file has a bound."""
    if not has_sizes:
        write_manifest(saved, {name: value for name, value in read_manifest(saved).items() if name != "sizes"})
    for path in (part(saved, "0-enc/text_model/tokenizer.json"), saved / MANIFEST):
        content = path.read_bytes()
        os.truncate(path, 3 * 2**30)  # with a hole, which takes no room
        begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ValueError, match=r"is damaged \(it has 3221225472 bytes, but m(ust|ay) have \d+\)"):
            load(saved)
        assert time.process_time() - begin < 0.5
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50 * 2**10
        path.write_bytes(content)


@pytest.mark.parametrize("change", [{"tokenizer.json": -1}, None])
def test_sizes_that_save_never_writes_are_refused(saved, change):
    found = read_manifest(saved)
    changed = change and found["sizes"] | {f"0-enc/text_model/{name}": size for name, size in change.items()}
    (saved / MANIFEST).write_bytes(manifest_bytes(found | {"sizes": changed}))
    with pytest.raises(ValueError, match=r"is damaged \(its sizes do not fit its files\); do not trust this model"):
        load(saved)


MANIFESTS = {
    "another format": (setting("format", "onnx"), "was not written by skellipsoid.save"),
    "a newer format": (
        lambda manifest: manifest.update(format_version=2, skellipsoid_version="9.0"),
        r"has format version 2, this skellipsoid \(.*\) reads version 1; .* by skellipsoid 9.0, install that",
    ),
    "a format of the development version": (
        setting("format_version", 9),
        "has format version 9, .* a development version of .* wrote it, fit the model again and save it",
    ),
    "parts elsewhere": (setting("parts", ".."), "is damaged"),
    "no files": (setting("sha256", {}), "does not describe an estimator of this package"),
    "an entry nobody asked for": (setting("comment", "hello"), "'comment' is unknown or missing"),
    "an entry of a step": (setting("model", "steps", 1, "comment", 1), "the entry 'comment', which save never writes"),
    "a class that is none": (setting("model", "steps", 1, "class", ["os.system"]), "does not describe an estimator"),
    "another model's folder": (setting("model", "steps", 0, "folder", "1-clf"), "does not describe an estimator"),
}


@pytest.mark.parametrize(("change", "sentence"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_makes_no_sense_is_refused(saved, change, sentence):
    changed = read_manifest(saved)
    change(changed)
    write_manifest(saved, changed)
    with pytest.raises(ValueError, match=sentence):
        load(saved)


def test_a_bit_anywhere_in_a_manifest_is_guarded(classifier, tmp_path):
    save(classifier, tmp_path / "model")
    path = tmp_path / "model" / MANIFEST
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is damaged|has format version|was not written by"):
            load(tmp_path / "model")


@pytest.mark.parametrize("name", ["format", "radii"])
def test_a_name_that_stands_twice_is_refused(classifier, tmp_path, name):
    save(classifier, tmp_path / "model")
    path = tmp_path / "model" / MANIFEST
    path.write_text(path.read_text().replace(f'"{name}":', f'"{name}": 1, "{name}":'))
    with pytest.raises(ValueError, match=r"is damaged \(a name stands twice among \["):
        load(tmp_path / "model")


def test_folders_that_are_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder '.*nothing'; check the path"):
        load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"is not a saved model: it holds no skellipsoid\.json"):
        load(tmp_path)
    (tmp_path / "file").write_text("{}")
    with pytest.raises(ValueError, match="is not a saved model"):
        load(tmp_path / "file")
