"""Promise: an exported model on the hub answers as one in a folder, and no file is fetched that it does not need."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hub_helpers import TOKEN, client_of, refusal, running_hub
from huggingface_hub import constants

from skellipsoid_runtime import OnnxPipeline

NAME = "user/intents-onnx"
MANIFEST, GRAPH, TOKENIZER = "skellipsoid_onnx.json", "model.onnx", "tokenizer.json"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with running_hub() as hub, client_of(hub, tmp_path / "cache", monkeypatch):
        monkeypatch.chdir(tmp_path)
        yield hub


def refused(error, **options):
    return refusal(error, OnnxPipeline, NAME, **options)


def test_an_exported_model_of_the_hub(hub, exported, texts, open_texts, monkeypatch):
    commit = hub.add(NAME, exported, **{"pytorch_model.bin": b"\x80\x04.", "README.md": b"# mine"})
    model, local = OnnxPipeline(NAME), OnnxPipeline(exported)
    new = [*texts, *open_texts]
    np.testing.assert_array_equal(model.score_samples(new), local.score_samples(new))
    assert (model.loaded_from_, local.loaded_from_) == (f"{NAME}@{commit}", None)
    assert hub.downloaded() == dict.fromkeys([MANIFEST, GRAPH, TOKENIZER, "training_features.npy"], 1)
    assert model.explain_nearest(["wake me"])["neighbor_1"] == local.explain_nearest(["wake me"])["neighbor_1"]
    # From the cache.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert OnnxPipeline(NAME).loaded_from_ == OnnxPipeline(NAME, revision=commit).loaded_from_ == model.loaded_from_


def test_what_the_hub_does_not_give(hub, exported, monkeypatch):
    hub.add(NAME, exported, closed="gated")
    assert "is gated, and you have no access" in refused(PermissionError)
    assert OnnxPipeline(NAME, token=TOKEN).loaded_from_
    assert "has no revision 'v9'" in refused(FileNotFoundError, revision="v9", token=TOKEN)
    hub.add("user/else", exported / "nothing")
    hub.repositories[NAME] = hub.repositories["user/else"]
    assert f"holds no exported model: it has no {MANIFEST}; pass the name" in refused(ValueError)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids to ask the hub; check the name, or load" in refused(ConnectionError, revision="v8")


@pytest.mark.parametrize("name", [MANIFEST, GRAPH])
def test_a_changed_byte_is_an_error(hub, exported, name):
    content = (exported / name).read_bytes()
    hub.add(NAME, exported, **{name: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]})
    assert "is damaged" in refused(ValueError)


def test_without_the_client_of_the_hub_one_sentence_says_what_to_install(hub, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused(ImportError) == (
        f"There is no folder {NAME!r} here, and a model on the hub needs the package huggingface_hub, which is not "
        "installed: pip install 'skellipsoid-runtime[hub]', or in a clone pip install "
        "'./packages/skellipsoid-runtime[hub]'."
    )


def test_a_folder_of_this_name_goes_before_the_hub(hub, exported, tmp_path):
    hub.add(NAME, exported)
    (tmp_path / "user").mkdir()
    (tmp_path / NAME).symlink_to(exported)
    assert OnnxPipeline(NAME).loaded_from_ is None
    assert "is a path on this machine" in refused(ValueError, revision="main")
    with pytest.raises(FileNotFoundError, match="check the path of the exported model"):
        OnnxPipeline(Path("user/nothing"))
    assert hub.requests == []
