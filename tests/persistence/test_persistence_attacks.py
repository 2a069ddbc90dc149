"""Saved models that mean harm: nothing of them is executed, and nothing but files of the model is read.

Whoever prepares a folder can write fitting hashes, so every attack here has them.
"""

import functools
import hashlib
import io
import json
import os
import pickle
import shutil
import socket

import pytest
import safetensors.torch
import torch
from persistence_helpers import (
    MANIFEST,
    add_file,
    change_text_model,
    make_pipeline,
    part,
    read_manifest,
    setting,
    write_manifest,
)

from skellipsoid import SupConTextEncoder, export_onnx, load, save
from skellipsoid.cli import main

TEXT_MODEL = "0-enc/text_model"


@pytest.fixture
def canary(tmp_path):
    """A file that code of an attacker would write."""
    return tmp_path / "canary"


class Harm:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def refused(folder, sentence, canary, tmp_path, capsys):
    """The model is refused by one sentence, from Python and by every command that loads."""
    with pytest.raises(ValueError, match=sentence):
        load(folder)
    commands_refuse(folder, tmp_path, capsys)
    assert not canary.exists()


def commands_refuse(folder, tmp_path, capsys):
    (tmp_path / "texts.tsv").write_text("wake me at six\talarm\n", encoding="utf-8")
    for words in (["predict", "--model", folder], ["evaluate", "--model", folder, "--data", tmp_path / "texts.tsv"]):
        assert main([*map(str, words)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1


# Files


FOREIGN_FILES = [
    "0-enc/text_model/pytorch_model.bin",
    "0-enc/text_model/evil.py",
    "0-enc/arrays.safetensors/x",
    "0-enc/\ud800/arrays.safetensors",
    "../../secret",
    "{here}/secret",
    "0-enc\\..\\x",
]


@pytest.mark.parametrize("name", FOREIGN_FILES, ids=ascii)
def test_files_that_save_never_writes_are_refused_by_name(saved, canary, tmp_path, capsys, name):
    manifest = read_manifest(saved)
    manifest["sha256"][name.format(here=tmp_path)] = hashlib.sha256(b"secret").hexdigest()
    write_manifest(saved, manifest)
    refused(saved, r"names a file that save never writes \('.*'\); do not trust this model", canary, tmp_path, capsys)


def test_files_that_the_manifest_does_not_name_are_never_read(saved, pipeline, queries, canary, monkeypatch):
    """Nor is the model card, whose hash is not checked, nor a model by the name that a later fit would use."""
    for name in ("README.md", "evil.py", "pytorch_model.bin"):
        (saved / name).write_bytes(pickle.dumps(Harm(canary)))
    for name in (f"{TEXT_MODEL}/pytorch_model.bin", f"{TEXT_MODEL}/config.json", "1-clf/evil.py"):
        part(saved, name).write_bytes(pickle.dumps(Harm(canary)))
    (saved / "link").symlink_to("/dev/zero")
    os.mkfifo(saved / "pipe")
    manifest = read_manifest(saved)
    manifest["model"]["steps"][0]["parameters"]["model_name"] = "nobody/evil"
    write_manifest(saved, manifest)
    read, read_bytes = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *how, **more: read.append(path) or read_bytes(path, *how, **more))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("the network was asked"))
    loaded = load(saved)
    assert loaded.predict(queries).tolist() == pipeline.predict(queries).tolist()
    below = {os.path.relpath(path, saved) for path in read if str(path).startswith(str(saved))}
    assert below == {MANIFEST, *(f"{manifest['parts']}/{name}" for name in manifest["sha256"])}
    assert not canary.exists()


def test_arrays_that_nothing_needs_are_refused(saved, canary, tmp_path, capsys):
    arrays = safetensors.torch.load(part(saved, "1-clf/arrays.safetensors").read_bytes())
    add_file(saved, "1-clf/arrays.safetensors", safetensors.torch.save(arrays | {"more": torch.zeros(1)}))
    refused(saved, "nothing in it needs the array 'more'", canary, tmp_path, capsys)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda weights: weights | {"evil.x": torch.zeros(1)}, "has 'evil.x' of torch.float32 among its weights"),
        (lambda weights: weights | {"transformer.x": torch.zeros(1)}, "do not fit its configuration"),
        (lambda weights: {name: tensor * torch.nan for name, tensor in weights.items()}, "do not fit its config"),
    ],
)
def test_weights_that_save_never_writes_are_refused(saved, canary, tmp_path, capsys, change, sentence):
    weights = safetensors.torch.load(part(saved, f"{TEXT_MODEL}/model.safetensors").read_bytes())
    add_file(saved, f"{TEXT_MODEL}/model.safetensors", safetensors.torch.save(change(weights)))
    refused(saved, sentence, canary, tmp_path, capsys)


KEPT = "training_texts_"
DEEP = functools.reduce(lambda value, _: [value], range(900), "x")
#: Values of fitted attributes: the step, the attribute, the value, and the words of the refusal.
STATE = {
    "numbers for texts": (0, KEPT, {"array": "weight_"}, "training_texts_ .* must be an array of strings of type obj"),
    "too few texts": (0, KEPT, {"strings": ["a"] * 31, "dtype": "O"}, r"training_labels_ .* must have \(31\)"),
    "another mode": (0, "finetune_", "none", "finetune_ is 'none', which does not fit weight_ and bias_"),
    "strings far too wide": (1, "classes_", {"strings": list("abcd"), "dtype": "<U99999"}, "is far wider than the"),
    "strings nested deep": (1, "classes_", {"strings": DEEP[0][0], "dtype": "O"}, "describe an estimator"),
    "lists nested deep": (1, "classes_", DEEP, "describe an estimator"),
}


@pytest.fixture(scope="module")
def saved_with_texts(tiny_model, texts, labels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("with_texts") / "model"
    save(make_pipeline(tiny_model).set_params(enc__keep_texts=True).fit(texts, labels), folder)
    return folder


@pytest.fixture
def with_texts(saved_with_texts, tmp_path):
    """A copy of a saved model that keeps its training texts, to be changed."""
    return shutil.copytree(saved_with_texts, tmp_path / "model")


@pytest.mark.parametrize(("step", "name", "value", "sentence"), STATE.values(), ids=STATE)
def test_state_that_save_never_writes_is_refused(with_texts, canary, tmp_path, capsys, step, name, value, sentence):
    manifest = read_manifest(with_texts)
    manifest["model"]["steps"][step]["state"][name] = value
    write_manifest(with_texts, manifest)
    refused(with_texts, sentence, canary, tmp_path, capsys)


def test_kept_texts_are_printed_harmless_and_short(with_texts, monkeypatch, capsys):
    manifest = read_manifest(with_texts)
    state = manifest["model"]["steps"][0]["state"]
    state["training_texts_"]["strings"] = ["\x1b[2J\x9b\u2028\n\tpwned" + "x" * 10**6] * 32
    write_manifest(with_texts, manifest)
    for options in ([], ["--json"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"wake me at six\n")))
        assert main(["predict", "--model", str(with_texts), "--explain", *options]) == 0
        printed = capsys.readouterr().out
        assert printed.count("pwned") == 2
        assert len(printed) < 1000
        assert printed.replace("\t", "").removesuffix("\n").isprintable()


def test_what_a_terminal_would_obey_is_not_printed(saved, tmp_path, capsys):
    changed = {"format_version": 7, "skellipsoid_version": "\x1b[2J\u2028" + "x" * 10**5}
    write_manifest(saved, read_manifest(saved) | changed)
    assert main(["predict", "--model", str(saved)]) == 2
    printed = capsys.readouterr().err
    assert len(printed) < 1000
    assert printed.removesuffix("\n").isprintable()


@pytest.mark.parametrize("kind", ["link", "link to a device", "linked folder", "pipe"])
@pytest.mark.parametrize("name", ["", "1-clf/arrays.safetensors"], ids=["manifest", "arrays"])
def test_what_is_no_file_is_refused_at_once(saved, canary, tmp_path, capsys, kind, name):
    path = part(saved, name) if name else saved / MANIFEST
    if kind == "linked folder":
        path = path.parent if name else part(saved, "")
    path.rename(tmp_path / "copy")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "link to a device" else tmp_path / "copy")
    # What reads a pipe or /dev/zero never ends.
    refused(saved, r"lacks its file|cannot be read|symbolic link|no regular file", canary, tmp_path, capsys)


# The description of the text model


def adding(name, **settings):
    return lambda described: described["modules"].append({"name": name, "settings": settings})


DENSE = {"in_features": 32, "out_features": 2, "bias": True, "activation_function": "os.system"}
DESCRIPTIONS = {
    "arguments of the weights": (setting("model_kwargs", {"weights_only": False}), "has 'model_kwargs'"),
    "a token that is none": (setting("tokenizer", "pad_token", {"__type": "AddedToken"}), "which is no string"),
    "code of the model": (setting("config", "auto_map", {"AutoModel": "evil.Model"}), "has 'auto_map'"),
    "an address as a setting": (setting("config", "hidden_act", "evil/act"), "'evil/act' as 'hidden_act'"),
    "another model type": (setting("config", "model_type", "clip"), "a BertModel, but its type is 'clip'"),
    "a class by its path": (setting("class", "os.system"), r"asks for the class 'os\.system'"),
    "a module that runs code": (adding("Router", types={"a": "evil.M"}), "asks for the module 'Router'"),
    "an activation by its path": (adding("Dense", **DENSE), r"activation 'os\.system'"),
    "many layers": (setting("config", "num_hidden_layers", 10**9), r"has 1000000000 layers \(num_hidden_layers\), but"),
    "many positions": (setting("config", "max_position_embeddings", 10**8), "has 100000000 positions"),
    "a limit beyond the positions": (setting("limit", 512), "limit is 512 tokens, but it has 64 positions"),
    "a limit that is true": (setting("limit", True), "limit is True"),
    "a list": (setting("config", []), "its configuration is"),
    "half of a letter": (setting("prompt", "\ud800"), "prompt is .*, which is no valid text"),
    "a prompt without end": (setting("prompt", "a" * 10_001), "prompt has 10001 letters; at most 10000 are allowed"),
    "no room for a text": (setting("prompt", "what is it? " * 100), "prompt has [0-9]+ tokens, but a text with its"),
}


@pytest.mark.parametrize(("change", "sentence"), DESCRIPTIONS.values(), ids=DESCRIPTIONS)
def test_a_text_model_that_save_never_describes_so_is_refused(saved, canary, tmp_path, capsys, change, sentence):
    change_text_model(saved, change)
    refused(saved, f"does not describe an estimator of this package .*{sentence}", canary, tmp_path, capsys)


def test_a_text_model_that_cannot_embed_is_refused_at_its_first_use(saved, tmp_path, capsys):
    """Nothing but a text shows that these pieces do not divide."""
    change_text_model(saved, setting("config", "chunk_size_feed_forward", 7))
    sentence = r"The stored embedding model cannot embed a short text \(.*save the fitted model again\.$"
    loaded = load(saved)
    for use in (loaded.predict, loaded[0].transform, loaded[0].transform):  # no first use makes a second one right
        with pytest.raises(ValueError, match=sentence):
            use(["wake me at six"])
    with pytest.raises(ValueError, match=sentence):
        export_onnx(loaded, tmp_path / "export")
    commands_refuse(saved, tmp_path, capsys)


def test_a_model_that_looks_up_code_by_name_is_not_built(saved, canary, tmp_path, capsys, monkeypatch):
    """transformers' RagModel builds its parts from settings below its own, which may name code in the folder."""
    (saved / "evil.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Evil: pass\n")
    inside = {"model_type": "clvp_encoder", "_name_or_path": saved.name, "auto_map": {"AutoModel": "evil.Evil"}}
    monkeypatch.chdir(saved.parent)
    config = {"question_encoder": inside, "generator": inside, "model_type": "rag"}
    for kind in ("RagModel", "BertModel"):
        change_text_model(saved, lambda described, kind=kind: described.update({"class": kind, "config": config}))
        refused(saved, "asks for the class 'RagModel'|which is no plain setting", canary, tmp_path, capsys)


def test_a_user_named_folder_runs_no_code_either(build_model, canary, tmp_path, texts):
    """What a user names in ``model_name`` is loaded without its code and without pickled objects."""
    folder = tmp_path / "named"
    build_model(folder)
    (folder / "model.safetensors").unlink()
    torch.save({"x": Harm(canary)}, folder / "pytorch_model.bin")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {"model_kwargs": {"weights_only": False, "dtype": "auto"}}
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings))
    with pytest.raises(OSError, match="holds no embedding model that can be loaded"):
        SupConTextEncoder(str(folder), finetune="none").fit(texts)
    assert not canary.exists()
