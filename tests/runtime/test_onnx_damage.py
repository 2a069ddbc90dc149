"""Promise: an export that is damaged, of another version, or made to harm is refused in one sentence."""

import io
import json
import os
import re

import numpy as np
import onnx
import pytest
from export_helpers import changed_manifest, manifest_of, replaced

from skellipsoid_runtime import OnnxPipeline


def refused(folder, part):
    """Expect an error that names the folder."""
    with pytest.raises(ValueError, match=part) as caught:
        OnnxPipeline(folder)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "training_features.npy", "skellipsoid_onnx.json"])
def test_a_damaged_or_missing_file_is_named(copied, name):
    path = copied / name
    content = path.read_bytes()
    path.write_bytes(content[:-3] + b"   ")
    refused(copied, f"{re.escape(name)}.* is damaged")
    path.unlink()
    refused(copied, re.escape(name))


DAMAGED = "The manifest of the model in .* is damaged .*; do not trust this model"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (
            {"format_version": 2, "skellipsoid_version": "9.0"},
            "has format version 2, this skellipsoid-runtime .* reads version 1; .* by skellipsoid 9.0, install",
        ),
        ({"format_version": 2}, "has format version 2, .* a development version .* wrote it, export the model again"),
        ({"format": "other"}, "was not written by skellipsoid.export_onnx; pass"),
        ({"more": 1}, "'more' is unknown or missing"),
        ({"answers": {"values": [10**400, 1, 2, 3, 4], "dtype": "<i8"}}, DAMAGED),
        ({"offset": [1]}, DAMAGED),
        ({"asking": {"low": 0.0}}, DAMAGED),
        ({"n_features": -1}, DAMAGED),
        ({"text": {"max_length": 3}}, DAMAGED),
    ],
    ids=lambda given: f"{given!s:.50}",
)
def test_a_manifest_of_another_kind_or_form_is_refused(copied, changes, part):
    changed_manifest(copied, **changes)
    refused(copied, part)


@pytest.mark.parametrize(
    "changes",
    [{"prompt": "x" * 10**6}, {"prompt": "what is it? " * 800}, {"pad_token_id": 2**40}],
    ids=lambda changes: f"{changes!s:.30}",
)
def test_settings_of_texts_have_bounds_before_a_text_is_read(copied, changes):
    changed_manifest(copied, text=manifest_of(copied)["text"] | changes)
    refused(copied, r"cannot be used .*; do not trust it, and export it again")


@pytest.mark.parametrize("name", ["tokenizer.json", "skellipsoid_onnx.json"])
@pytest.mark.parametrize("has_sizes", [True, False])
def test_a_file_of_any_size_is_not_read(copied, name, has_sizes):
    if not has_sizes:  # as earlier exports
        changed_manifest(copied, sizes=...)
    os.truncate(copied / name, 2**42)  # with a hole, which takes no room
    refused(copied, f"{re.escape(name)}.* .it has {2**42} bytes, but m(ust|ay) have ")


def with_loop(model):
    kinds = {"i": onnx.TensorProto.INT64, "going": onnx.TensorProto.BOOL, "goes": onnx.TensorProto.BOOL}
    *given, goes = (onnx.helper.make_tensor_value_info(name, kind, []) for name, kind in kinds.items())
    same = onnx.helper.make_node("Identity", ["going"], ["goes"])
    body = onnx.helper.make_graph([same], "body", given, [goes])
    model.graph.node.append(onnx.helper.make_node("Loop", ["", ""], [], body=body))


def with_external_data(model):
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")


def with_foreign_operator(model):
    model.graph.node.append(onnx.helper.make_node("Call", [], ["z"], domain="com.example"))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (with_loop, "'Loop' has the field 6 of onnx.proto"),
        (with_external_data, "a tensor has the field 13"),
        (with_foreign_operator, "'Call' of another domain"),
    ],
)
def test_a_graph_that_export_never_writes_is_refused(copied, change, part):
    model = onnx.load(copied / "model.onnx")
    change(model)
    replaced(copied, "model.onnx", model.SerializeToString())
    refused(copied, part)


def test_a_graph_within_a_graph_is_found_however_its_tag_is_written(copied):
    model = onnx.load(copied / "model.onnx")
    with_loop(model)
    loop = model.graph.node[-1]
    body = loop.attribute[0].SerializeToString()
    tag = bytes([0x32])  # field 6, of a length
    assert body.count(tag) == 1
    longer = body.replace(tag, bytes([0xB2, 0x80, 0x80, 0x80, 0x10]))  # bits that a reader of 32 bits drops
    del loop.attribute[0]
    node = loop.SerializeToString() + bytes([0x2A, *_varint(len(longer))]) + longer
    del model.graph.node[-1]
    graph = model.graph.SerializeToString() + bytes([0x0A, *_varint(len(node))]) + node
    model.ClearField("graph")
    content = model.SerializeToString() + bytes([0x3A, *_varint(len(graph))]) + graph
    replaced(copied, "model.onnx", content)
    refused(copied, r"has the field \d+ of onnx.proto")


def _varint(number):
    found = []
    while number > 127:
        found.append(number % 128 + 128)
        number //= 128
    return [*found, number]


def test_a_graph_that_is_damaged_anywhere_is_one_sentence(copied):
    content = (copied / "model.onnx").read_bytes()
    rng = np.random.default_rng(0)
    refusals = []
    for place in rng.integers(len(content), size=30):
        cut = rng.random() < 0.3
        changed = content[:place] if cut else content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
        replaced(copied, "model.onnx", changed)
        try:
            OnnxPipeline(copied)
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > 5
    assert all(str(copied) in refusal for refusal in refusals)


@pytest.mark.parametrize(
    "change",
    [
        lambda rules: rules.update(padding={"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0}),
        lambda rules: rules.update(
            normalizer={
                "type": "Sequence",
                "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 90}] * 9,
            }
        ),
        lambda rules: rules.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}}),
        lambda rules: rules.pop("model"),
    ],
)
def test_rules_of_a_tokenizer_that_could_take_the_machine_are_refused(copied, change):
    rules = json.loads((copied / "tokenizer.json").read_bytes())
    change(rules)
    replaced(copied, "tokenizer.json", json.dumps(rules).encode())
    refused(copied, "cannot be used")


@pytest.mark.parametrize(
    "change", [lambda kept: kept[:, :-1], lambda kept: kept * np.nan, lambda kept: np.array(["a"] * len(kept))]
)
def test_training_features_of_another_form_are_refused(copied, change):
    kept = np.load(copied / "training_features.npy")
    np.save(content := io.BytesIO(), change(kept))
    replaced(copied, "training_features.npy", content.getvalue())
    refused(copied, r"cannot be used .*training_features\.npy")


def test_a_pipe_is_not_waited_for(copied):
    (copied / "model.onnx").unlink()
    os.mkfifo(copied / "model.onnx")
    refused(copied, r"model\.onnx.* .it is no file")
