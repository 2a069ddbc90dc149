"""Promise: predict never answers with an export that is stale, damaged or of another hand."""

import shutil

import pytest
from command_helpers import done, fails
from export_helpers import ANSWER, MANIFEST, STALE, changed_manifest, content_of, damage, remedy, run

from skellipsoid import export_onnx, load


def outdated(model, texts=" and holds its texts", again=None):
    """The note of a command that leaves an export of an earlier model."""
    again = again or f"run skellipsoid export --model {model} again"
    return f"skellipsoid: The export in {str(model / 'onnx')!r} is of an earlier model{texts}; {again}, or remove it.\n"


def test_a_changed_model_answers_itself_until_it_is_exported_again(model, texts, give_input, capsys):
    before = content_of(model / "onnx")
    status, _, err = run(capsys, "merge", "--model", model, "--labels", "light", "weather", "--into", "other")
    assert (status, err.count(outdated(model))) == (0, 1)
    assert content_of(model / "onnx") == before
    answers = [f"{label}\t{text}" for text, label in zip(texts, load(model).predict(texts), strict=True)]
    give_input("\n".join(texts))
    status, out, err = run(capsys, "predict", "--model", model)
    assert (status, out.splitlines()) == (0, answers)
    assert err == f"skellipsoid: The export in {str(model / 'onnx')!r} {STALE}, {remedy(model)}"
    assert run(capsys, "export", "--model", model)[0] == 0
    damage(model)
    give_input("\n".join(texts))
    status, out, err = run(capsys, "predict", "--model", model)
    assert (status, out.splitlines(), err) == (0, answers, "")


@pytest.mark.parametrize(
    ("holds", "again"),
    [("", None), (" and holds its texts", "make it again")],
    ids=["ours without texts", "damaged"],
)
def test_the_note_of_a_stale_export_says_what_it_is(holds, again, model, capsys):
    if again:
        (model / "onnx" / MANIFEST).write_bytes(b"{")
    else:
        changed_manifest(model / "onnx", training_texts=...)
    words = ["remove", "--model", model, "--labels", "light"]
    status, out, err = run(capsys, *words)
    assert (status, out) == (0, f"Removed light. The model in {model} knows 3 classes.\n")
    assert err.count(outdated(model, holds, again)) == 1
    assert err.count("The export in") == 1


@pytest.mark.parametrize(
    ("name", "damage", "part"),
    [
        ("model.onnx", "some bytes", "The file 'model.onnx' of the model in {} is damaged (its SHA-256 differs), so"),
        ("tokenizer.json", "half", "The file 'tokenizer.json' of the model in {} is damaged (it has {} bytes, but"),
        ("tokenizer.json", "gone", "The model in {} lacks its file 'tokenizer.json' (No such file or directory), so"),
        (MANIFEST, "some bytes", f"{MANIFEST}' is damaged (its SHA-256 differs), so the model itself is loaded"),
        (MANIFEST, "half", f"{MANIFEST}' is damaged ("),
        *((MANIFEST, content, "") for content in (b"[]", b"{}", b'{"made_of": [1]}', b"\xff")),
    ],
)
def test_in_place_of_a_damaged_export_the_model_answers(name, damage, part, model, predict_one):
    path = model / "onnx" / name
    content = path.read_bytes()
    half = content[: len(content) // 2]
    path.unlink()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    elif damage != "gone":
        changed = content.replace(b"offset", b"offzet") if name == MANIFEST else content[:-3] + b"  }"
        path.write_bytes(changed if damage == "some bytes" else half)
    status, out, err = predict_one(model)
    assert (status, out, err.count("\n")) == (0, ANSWER, 1)
    assert part.format(repr(str(model / "onnx")), len(half)) in err
    # Of a manifest that cannot be read, nothing says who wrote it.
    assert err.endswith(remedy(model, is_ours=name != MANIFEST or damage == "some bytes"))


@pytest.mark.slow
def test_an_export_of_another_hand_is_not_used(model, predict_one):
    shutil.rmtree(model / "onnx")
    export_onnx(load(model), model / "onnx")
    err = predict_one(model)[2]
    assert err == f"skellipsoid: The export in {str(model / 'onnx')!r} {STALE}, {remedy(model, is_ours=False)}"
    # With 8-bit integers: whoever put it there uses it otherwise.
    export_onnx(load(model), model / "onnx", quantize=True, overwrite=True)
    assert predict_one(model) == (0, ANSWER, "")


def test_a_damaged_model_is_the_error_that_it_was(model, alone, capsys):
    found = []
    for folder in (alone, model):
        (folder / "skellipsoid.json").write_bytes(b"{}")
        found.append(fails(capsys, "predict", "--model", folder).replace(str(folder), ""))
    assert found[0] == found[1]


def test_a_command_that_writes_nothing_leaves_the_export_in_use(model, predict_one, capsys):
    said = done(capsys, "set-threshold", "--model", model, "--undo")
    assert said == "The threshold stays 0.000 (as fitted); nothing is written.\n"
    damage(model)
    assert predict_one(model) == (0, ANSWER, "")
