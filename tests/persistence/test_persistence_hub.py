"""Promise: a model on the hub is loaded as one in a folder: no other file is read, and each error is one sentence."""

import os
from pathlib import Path

import numpy as np
import pytest
from hub_helpers import TOKEN, refusal
from huggingface_hub import constants
from persistence_helpers import MANIFEST, add_file, part, read_manifest, snapshot

from skellipsoid import load, save
from skellipsoid.persistence._folder import manifest_bytes

NAME = "user/intents"


def refused(error, **options):
    return refusal(error, load, NAME, **options)


def test_only_files_that_load_reads_are_downloaded_and_once(hub, saved_once, pipeline, queries):
    manifest = read_manifest(saved_once)
    read = {MANIFEST, *(f"{manifest['parts']}/{name}" for name in manifest["sha256"])}
    others = {"pytorch_model.bin": b"\x80\x04.", "parts-0123456789abcdef/estimator/arrays.safetensors": b"earlier"}
    commit = hub.add(NAME, saved_once, **others)
    model = load(NAME)
    np.testing.assert_array_equal(model.predict(queries), pipeline.predict(queries))
    assert model.loaded_from_ == f"{NAME}@{commit}"
    assert hub.downloaded() == dict.fromkeys(read, 1)
    hub.requests.clear()
    load(NAME)
    # The hub is asked for the commit of the branch, and the size of the manifest, alone.
    assert hub.requests == [("HEAD", f"/{NAME}/resolve/main/{MANIFEST}")] * 2
    hub.requests.clear()
    load(NAME, revision=commit)
    assert hub.requests == []


def test_a_folder_of_this_name_goes_before_the_hub(hub, saved_once, other, tmp_path):
    hub.add(NAME, saved_once)
    save(other, tmp_path / "user" / "intents")
    assert set(load(NAME).classes_) == set(other.classes_)
    with pytest.raises(ValueError, match=r"^revision='main' is one of a repository .* is a path on this machine; "):
        load(NAME, revision="main")
    assert hub.requests == []


# Without a network


def test_a_cached_model_is_loaded_without_a_network(hub, saved_once, monkeypatch):
    commit = hub.add(NAME, saved_once)
    load(NAME)
    hub.requests.clear()
    hub.status = 503
    assert load(NAME).loaded_from_ == f"{NAME}@{commit}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}")
    assert load(NAME).loaded_from_ == f"{NAME}@{commit}"
    assert hub.downloaded() == {}


# What the hub refuses


def test_there_is_no_such_repository(hub):
    assert refused(FileNotFoundError) == (
        f"There is no folder {NAME!r} here, and no such model on the hub that you can read; check the name, and log in "
        "with `hf auth login` or set HF_TOKEN if the model is private."
    )


def test_a_private_repository_needs_a_token(hub, saved_once, pipeline, monkeypatch, tmp_path):
    hub.add(NAME, saved_once, closed="private")
    assert "no such model on the hub that you can read" in refused(FileNotFoundError)
    assert load(NAME, token=TOKEN).loaded_from_
    written = snapshot(tmp_path / "cache").values()
    assert written
    assert not any(TOKEN.encode() in content for content in written)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert load(NAME, revision="main").loaded_from_


def test_a_repository_without_a_model(hub, tmp_path):
    (tmp_path / "else").mkdir()
    hub.add(NAME, tmp_path / "else", **{"config.json": b"{}"})
    said = f"The repository {NAME!r} on the hub holds no model of this package: it has no {MANIFEST}; pass the name of"
    assert refused(ValueError) == f"{said} one that skellipsoid.push_to_hub wrote."
    assert hub.downloaded() == {}


# What does not fit the manifest


def test_a_file_that_save_never_writes_is_not_downloaded(hub, saved):
    add_file(saved, "0-enc/modeling.py", b"harm")
    hub.add(NAME, saved)
    assert "names a file that save never writes ('0-enc/modeling.py'); do not trust this model" in refused(ValueError)
    assert {*hub.downloaded()} == {MANIFEST}  # again if the cache may have damaged it


@pytest.mark.parametrize(("name", "size"), [("0-enc/text_model/tokenizer.json", 2**16), (MANIFEST, 2**28 + 1)])
def test_a_file_of_another_size_is_not_downloaded(hub, saved, name, size):
    path = saved / name if name == MANIFEST else part(saved, name)
    os.truncate(path, size)
    hub.add(NAME, saved)
    assert f"{name}' of the model {NAME!r} on the hub has {size} bytes, but m" in refused(ValueError)
    assert path.relative_to(saved).as_posix() not in hub.downloaded()


def test_what_is_damaged_in_the_cache_is_fetched_again(hub, saved_once, pipeline, queries):
    commit = hub.add(NAME, saved_once)
    load(NAME)
    for blob in Path(constants.HF_HUB_CACHE).glob("*/blobs/*"):
        blob.write_bytes(bytes(len(blob.read_bytes())))
    np.testing.assert_array_equal(load(NAME, revision=commit).predict(queries), pipeline.predict(queries))
    hub.requests.clear()
    load(NAME, revision=commit)
    assert hub.requests == []  # it is whole from now on


@pytest.mark.parametrize("revision", ["", "a..b", "a\nb", "x" * 300])
def test_what_is_no_revision_is_refused_in_one_sentence(hub, saved_once, revision):
    hub.add(NAME, saved_once)
    sentence = refused(ValueError, revision=revision)
    assert "is no name of a branch, tag or commit; pass one, or leave revision out" in sentence
    assert hub.requests == []


def test_offline_and_half_in_the_cache(hub, saved_once, monkeypatch):
    hub.add(NAME, saved_once)
    load(NAME)
    next(Path(constants.HF_HUB_CACHE).glob("*/snapshots/*/*/*/arrays.safetensors")).unlink()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="not complete in the hub's cache, and HF_HUB_OFFLINE forbids"):
        load(NAME)


@pytest.mark.parametrize(
    ("status", "error", "sentence"),
    [
        (401, PermissionError, "or pass token=False if the model is public and a token has expired"),
        (403, PermissionError, "the hub refuses access"),
        (501, ConnectionError, "the hub cannot be asked"),
    ],
)
def test_other_answers_of_the_hub(hub, saved_once, status, error, sentence):
    hub.add(NAME, saved_once)
    hub.status = status
    assert sentence in refused(error)


@pytest.mark.parametrize("content", [b"{}", b"["])
def test_a_repository_with_another_manifest(hub, saved_once, content):
    hub.add(NAME, saved_once, **{MANIFEST: content})
    assert NAME in refused(ValueError)
    assert {*hub.downloaded()} == {MANIFEST}  # again if the cache may have damaged it


def test_a_missing_file_is_an_error(hub, saved):
    part(saved, "1-clf/arrays.safetensors").unlink()
    hub.add(NAME, saved)
    assert f"The model in {NAME!r} lacks its file '1-clf/arrays.safetensors'" in refused(ValueError)


def test_a_manifest_of_many_names_is_refused_before_they_are_asked_for(hub, saved_once):
    manifest = read_manifest(saved_once)
    manifest["sha256"] |= {f"{number}-clf/arrays.safetensors": "0" * 64 for number in range(2000)}
    hub.add(NAME, saved_once, **{MANIFEST: manifest_bytes(manifest)})
    assert " files, but save writes at most 1000; do not trust this model." in refused(ValueError)
    assert len(hub.requests) < 10


def test_a_name_that_is_too_long_is_one_sentence(hub):
    said = r"^[^\n]* cannot be fetched from the hub \([^\n]*\); check the name, and try again\.$"
    with pytest.raises(ConnectionError, match=said):
        load(f"user/{'x' * 200}")
