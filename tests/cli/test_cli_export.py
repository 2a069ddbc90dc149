"""Promise: the command export writes beside a model or elsewhere, completely or not at all."""

import re
import shutil

import numpy as np
import pytest
from command_helpers import fails, refuses
from export_helpers import MANIFEST, changed_manifest, content_of, manifest_of, run

from skellipsoid import SupConTextEncoder, load, save
from skellipsoid_runtime import OnnxPipeline


def test_another_folder_and_integers(model, tmp_path, texts, capsys):
    target = tmp_path / "new" / "export"
    words = ["export", "--model", model, "--out", target]
    status, out, err = run(capsys, *words, "--quantize")
    assert (status, err) == (0, "")
    assert out.endswith(f"; serve it with: skellipsoid-serve --model {target}\n")
    assert len(OnnxPipeline(target).predict(texts)) == len(texts)
    refusal = f"{str(target)!r} holds an exported model; overwrite it, or export into a new folder."
    assert fails(capsys, *words) == f"skellipsoid: {refusal}\n"
    assert manifest_of(target)["quantized"] is True
    assert run(capsys, *words, "--overwrite")[0] == 0
    assert manifest_of(target)["quantized"] is False
    np.testing.assert_array_equal(OnnxPipeline(target).predict(texts), load(model).predict(texts))


REFUSED = [
    (["--quantize"], "--quantize changes predictions a little, and predict never uses such an export by itself; pass"),
    (["--quantize", "--out", "{}/model/onnx", "--overwrite"], "by itself; pass --out with another folder for it, or"),
    (["--overwrite"], "--overwrite replaces the export in the folder of --out; name the folder, or leave"),
    (["--revision", "main"], "leave revision out"),
    (["--out", "{}/mine", "--overwrite"], "exists and is not an empty folder; export into a new folder"),
    (["--out", "{}/both", "--overwrite"], "holds 'notes.txt' beside an exported model, which would be lost; move it"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_what_export_refuses(words, sentence, model, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.onnx").write_bytes(b"theirs")
    shutil.copytree(model / "onnx", tmp_path / "both")
    (tmp_path / "both" / "notes.txt").write_text("mine")
    words = [word.format(tmp_path) for word in words]
    assert sentence in refuses(capsys, tmp_path, "export", "--model", model, *words)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"made_of": {}}, "The export in '{}' was not written by this command, so it is not replaced"),
        ({"quantized": True}, "The export in '{}' has 8-bit integers, so it is not replaced"),
        ("damaged", rf"'{{}}/{MANIFEST}' is damaged \(.*\), so nothing says who wrote it"),
    ],
    ids=str,
)
def test_an_export_of_another_hand_is_not_replaced(changes, found, model, capsys):
    path = model / "onnx" / MANIFEST
    if changes == "damaged":
        path.write_bytes(path.read_bytes()[:100])
    else:
        changed_manifest(path.parent, **changes)
    remedy = "move it elsewhere, or pass --out with another folder."
    sentence = f"skellipsoid: {found.format(re.escape(str(path.parent)))}; {remedy}\n"
    assert re.fullmatch(sentence, refuses(capsys, model, "export", "--model", model))


def test_integers_need_kept_texts(saved, tmp_path, capsys):
    err = fails(capsys, "export", "--model", saved, "--out", tmp_path / "out", "--quantize")
    assert err.startswith("skellipsoid: quantize recalibrates the model with the training texts, but the")
    assert err.endswith("fit its text encoder with keep_texts, or export without quantize.\n")
    assert not (tmp_path / "out").exists()


def test_a_path_that_is_not_there_may_be_a_typo_or_a_model_of_the_hub(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    err = refuses(capsys, tmp_path, "export", "--model", "models/typo")
    found = "There is no folder 'models/typo' here; for a model on the hub pass --out with a folder."
    assert err == f"skellipsoid: {found}\n"


def test_a_model_that_was_changed_meanwhile_is_not_exported(model, capsys, monkeypatch):
    before = content_of(model / "onnx")
    transform = SupConTextEncoder.transform

    def changing(*given):  # at the first use of the model
        monkeypatch.undo()
        save(load(model), model, overwrite=True)
        return transform(*given)

    monkeypatch.setattr(SupConTextEncoder, "transform", changing)
    status, out, err = run(capsys, "export", "--model", model)
    assert (status, out) == (2, "")
    assert "was changed meanwhile, and the export of what it was is not written; run the command again." in err
    assert content_of(model / "onnx") == before


def test_an_encoder_in_bfloat16_has_no_export_beside_it(model, capsys):
    shutil.rmtree(model / "onnx")
    pipeline = load(model)
    pipeline[0].set_params(dtype="bfloat16")
    save(pipeline, model, overwrite=True)
    err = refuses(capsys, model, "export", "--model", model)
    found = f'The encoder of the model in {str(model)!r} has dtype="bfloat16", but an export computes in single'
    remedy = 'set dtype="float32" and save the model again, or pass --out with another folder.'
    assert err == f"skellipsoid: {found} precision, so that predictions near the threshold differ; {remedy}\n"
