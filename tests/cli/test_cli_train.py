"""The commands that train: their report, the model that they keep or do not."""

import json
import os
import pickle
import re
import shutil
import signal
import sys

import numpy as np
import pytest
from command_helpers import done, fails
from embedding_helpers import embedded_texts
from export_helpers import content_of
from file_helpers import write, written

from skellipsoid import EllipsoidOpenSetClassifier, load, save
from skellipsoid.cli import main

# train


def train(tiny_model, table, *options):
    return main(["train", "--data", str(table), "--model-name", str(tiny_model), *map(str, options)])


def test_train_keeps_a_model_of_all_texts(tiny_model, table, texts, labels, tmp_path, capsys):
    folder = tmp_path / "new" / "model"
    assert train(tiny_model, table, "--save", folder) == 0
    out, err = capsys.readouterr()
    table_, _, last = out.rpartition("\n\n")
    assert last == f"The model is in {folder}; label lines with: skellipsoid predict --model {folder}\n"
    title, _, *rows = table_.strip().splitlines()
    assert title.startswith("Other thresholds, estimated with held-out texts and held-out intents")
    at = next(i for i, row in enumerate(rows) if row.startswith("predict --ask, of 100:"))
    rows, forecast, questions = rows[:7], rows[8 : at - 1], rows[at + 1 :]
    assert forecast[0].startswith("What to expect of users' messages, each with an interval of 90 %.")
    names = ["as fitted", *(f"threshold for {n} % open" for n in (5, 20, 50))]
    for part, n_figures in ((forecast[-4:], 4), (questions, 2)):
        assert [row.split("  ")[0] for row in part] == names
        told = np.array([re.findall(r"(\d+) \((\d+)-(\d+)\)", row) for row in part], dtype=int)
        assert told.shape == (4, n_figures, 3)  # (n_thresholds, n_figures, mean low high)
        assert ((told[..., 1] <= told[..., 0]) & (told[..., 0] <= told[..., 2])).all()
    assert "\r" not in err
    loaded = load(folder)
    assert loaded.classes_.tolist() == ["alarm", "balance", "light", "weather"]
    assert (loaded["enc"].finetune, loaded["enc"].finetune_, loaded["enc"].verbose) == ("auto", "none", 0)
    assert not hasattr(loaded["enc"], "training_texts_")
    assert len(loaded["clf"].groups_) == len(texts)
    assert loaded["clf"].offset_ == 0
    (present,) = [row for row in rows if row.endswith("<- this model")]
    name, (right, wrong, rejected, detected) = present[:19].strip(), map(int, present[19:].split()[:4])
    held_out = loaded["clf"].held_out_
    assert name == "as fitted"
    assert right + wrong + rejected == 100
    assert rejected == pytest.approx(100 * np.mean(held_out.score[~held_out.is_open] < 0), abs=1)
    assert detected == pytest.approx(100 * np.mean(held_out.score[held_out.is_open] < 0), abs=0.5)


def test_train_takes_a_csv_file_and_every_option(tiny_model, texts, labels, open_texts, tmp_path, capsys):
    rows = [*zip(texts, labels, strict=True), *((text, "oos") for text in open_texts)]
    path = write(tmp_path, written([("text", "label"), *((f"{text}, ok", label) for text, label in rows)]))
    scores = []
    for name, finetune, seed in [("a", "none", 5), ("b", "none", 5), ("c", "head", 6)]:
        options = ["--finetune", finetune, "--seed", seed, "--open-label", "oos", "--quiet"]
        assert train(tiny_model, path, "--save", tmp_path / name, *options) == 0
        model = load(tmp_path / name)
        assert (model["enc"].finetune, model["enc"].random_state, model["clf"].random_state) == (finetune, seed, seed)
        assert model.classes_.tolist() == ["alarm", "balance", "light", "weather"]
        assert model[-1].open_label_ == "oos"
        scores.append(model.score_samples(texts))
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


def test_a_kept_model_says_what_it_was_trained_on(tiny_model, texts, labels, tmp_path, capsys):
    folder, rows = tmp_path / "model", zip([*texts, texts[0]], [*labels, labels[0]], strict=True)
    path = write(tmp_path, written(rows, "\t"), "log.tsv")
    assert train(tiny_model, path, "--finetune", "none", "--save", folder, "--report") == 0
    out = capsys.readouterr().out
    provenance = json.loads((folder / "skellipsoid.json").read_bytes())["provenance"]
    assert (provenance["data"], provenance["n_texts"]) == ("log.tsv", len(texts) + 1)
    assert provenance["data_check"]["exact_duplicates"] == 1
    assert provenance["report"] in out
    rates = {"open_rejection_rate", "false_rejection_rate"}
    assert provenance["metrics"].keys() == {"open_set_f1", "known_f1", "open_f1", "accuracy", *rates}
    assert f"{provenance['metrics']['accuracy']:.2f}" in provenance["report"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "log.tsv" in card
    assert "false rejection rate" in card


def test_the_rejection_rate_holds_on_texts_that_were_held_out(tiny_model, table, texts, tmp_path, capsys):
    offsets = {}
    for rate in (0.25, 0.75):
        folder = tmp_path / str(rate)
        assert train(tiny_model, table, "--save", folder, "--rejection-rate", rate, "--finetune", "head") == 0
        # A fifth of eight texts of each of four intents are held out, two of each.
        found = capsys.readouterr().out.splitlines()[0]
        share = found.removeprefix("Threshold: of 8 known texts that a first model was trained without, ")
        assert float(share.partition("%")[0]) <= 100 * rate
        model = load(folder)
        offsets[rate] = model["clf"].offset_
        assert len(model["clf"].groups_) == len(texts)
        np.testing.assert_array_equal(model.predict(texts) == "-1", model.score_samples(texts) < offsets[rate])
    assert offsets[0.25] < offsets[0.75]


@pytest.mark.parametrize("more", [["--report"], ["--report", "--rejection-rate", "0.1", "--finetune", "head"]])
def test_each_text_is_embedded_once_and_every_step_is_said(
    more, tiny_model, table, texts, tmp_path, monkeypatch, capsys
):
    embedded = embedded_texts(monkeypatch)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert train(tiny_model, table, "--save", tmp_path / "model", *more) == 0
    assert len(embedded) == len({*embedded}) >= len({*texts})
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("Checking", "Training"))]
    assert said[0] == f"Checking {len(texts)} texts."
    assert any(line.endswith("others.") for line in said)
    assert f"Training on all {len(texts)} texts." in said
    assert any(line.endswith("set the threshold.") for line in said) == ("--rejection-rate" in more)
    assert load(tmp_path / "model").predict(["wake me at six"]).shape == (1,)


def test_of_few_texts_nothing_is_promised(tiny_model, texts, labels, tmp_path, capsys):
    folder = tmp_path / "model"
    rows = [(text, label) for text, label in zip(texts, labels, strict=True) if label in ("alarm", "balance")]
    path = write(tmp_path, written(rows[:6], "\t"), "few.tsv")
    assert train(tiny_model, path, "--save", folder, "--finetune", "none") == 0
    out = capsys.readouterr().out
    assert "There is no forecast for users' messages: the training held out 6 texts, and a forecast needs 20;" in out
    said = done(capsys, "set-threshold", "--model", folder, "--open-share", 0.1)
    assert "There is no forecast" in said
    assert "±" not in said


def test_a_run_that_fails_or_is_interrupted_leaves_no_folder(tiny_model, table, tmp_path, capsys, monkeypatch):
    before = sorted(tmp_path.iterdir())
    for error, status in [(KeyboardInterrupt(), 130), (MemoryError("too much"), 2)]:

        def fail(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(EllipsoidOpenSetClassifier, "fit", fail)
            assert train(tiny_model, table, "--save", tmp_path / "new" / "model") == status
        assert sorted(tmp_path.iterdir()) == before
    assert capsys.readouterr().err.endswith("skellipsoid: too much\n")


# A folder that exists, before or after the training


def test_overwrite_replaces_a_model_and_nothing_else(tiny_command, table, tmp_path, capsys):
    folder = tmp_path / "model"
    words = ["train", "--data", str(table), "--save", str(folder), "--overwrite"]
    assert tiny_command([*words, "--seed", "1"]) == 0  # a first run with it is no error
    assert tiny_command([*words, "--seed", "2"]) == 0
    assert load(folder)["clf"].random_state == 2
    assert tiny_command(["demo", "alarm", "--data", str(table), "--save", str(folder), "--overwrite"]) == 0
    assert load(folder)["clf"].random_state == 0
    capsys.readouterr()
    # What is refused, is refused before anything is read.
    words[2] = str(tmp_path / "no file")
    exists = "exists; pass --overwrite to replace a model that was saved there, or another folder."
    assert fails(capsys, *words[:-1]) == f"skellipsoid: {str(folder)!r} {exists}\n"
    (tmp_path / "nowhere").symlink_to(tmp_path / "not there")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "skellipsoid.json").write_text("{")
    before = sorted(tmp_path.iterdir())
    no_model = "holds no saved model, and --overwrite replaces nothing else; pass another folder."
    for other in [tmp_path, table, tmp_path / "nowhere", tmp_path / "damaged"]:
        assert fails(capsys, *words, "--save", other) == f"skellipsoid: {str(other)!r} {no_model}\n"
        assert exists in fails(capsys, *words[:-1], "--save", other)
    assert sorted(tmp_path.iterdir()) == before
    said = fails(capsys, "demo", "--data", table, "--overwrite")
    assert "--overwrite replaces the model in the folder of --save; name the folder" in said


@pytest.mark.parametrize(
    ("appears", "options"),
    [("a model", []), ("a model", ["--overwrite"]), ("a file", []), ("a folder", ["--overwrite"])],
)
def test_a_folder_that_appears_during_the_training_costs_no_training(
    tiny_command, table, tmp_path, capsys, monkeypatch, appears, options
):
    folder, other = tmp_path / "model", tmp_path / "model-3"
    (tmp_path / "model-2").write_text("taken")
    fit = EllipsoidOpenSetClassifier.fit

    def fit_while_it_appears(classifier, *arguments):
        fit(classifier, *arguments)
        if appears == "a model":
            save(fit(EllipsoidOpenSetClassifier(random_state=99), *arguments), folder)
        elif appears == "a file":
            folder.write_text("mine")
        else:
            folder.mkdir()
            (folder / "notes.txt").write_text("mine")
        return classifier

    monkeypatch.setattr(EllipsoidOpenSetClassifier, "fit", fit_while_it_appears)
    assert tiny_command(["train", "--data", str(table), "--save", str(folder), *options]) == 2
    err = capsys.readouterr().err
    # A warning of few samples comes before it.
    left = f"{str(folder)!r} appeared during the training and is left alone"
    assert err.endswith(f"skellipsoid: {left}; the model is in {str(other)!r} instead, use it there or move it.\n")
    assert load(other)["clf"].random_state == 0
    if appears == "a model":
        assert load(folder).random_state == 99
    else:
        assert (folder if appears == "a file" else folder / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_a_termination_during_the_save_leaves_what_was_there(folder, tmp_path, monkeypatch):
    before = content_of(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGTERM))
        assert main(["remove", "--model", str(folder), "--labels", "light", "--quiet"]) == 143
    assert content_of(tmp_path) == before
    assert [*tmp_path.iterdir()] == [folder]


def test_no_note_of_train_names_a_parameter_of_python(tiny_model, tmp_path, capsys):
    rows = [(f"text number {i} of {i % 3}", i % 3 - 1) for i in range(12)]
    data = write(tmp_path, written(rows, "\t"), "numbers.tsv")
    assert train(tiny_model, data, "--save", tmp_path / "model") == 0
    said = capsys.readouterr().err.replace(str(tmp_path), "")
    assert "as the open label" in said
    assert not re.search(r"\b[a-z]+_[a-z]+\b", said)


def test_a_rejection_rate_needs_texts_to_hold_out(tiny_model, tmp_path, capsys):
    path = write(tmp_path, "wake me\talarm\nlights off\tlight\n", "few.tsv")
    words = ["train", "--data", path, "--model-name", tiny_model, "--save", tmp_path / "model", "--rejection-rate", 0.1]
    assert "--rejection-rate 0.1 needs texts to hold out" in fails(capsys, *words, "--quiet")
    assert not (tmp_path / "model").exists()


UNUSABLE = r"The embedding model '.*text model' cannot be used \(\w+Error: "


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("tokenizer_config.json", b"[]", UNUSABLE),
        ("config.json", b'{"model_type": []}', UNUSABLE),
        ("pytorch_model.bin", pickle.dumps([1]), r"The folder '.*text model' holds no embedding model that can be l"),
        ("pytorch_model.bin", b"abc", UNUSABLE),
    ],
)
def test_a_damaged_text_model_is_one_sentence(tiny_model, table, tmp_path, capsys, name, content, sentence):
    folder = tmp_path / "text model"
    shutil.copytree(tiny_model, folder)
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    assert train(folder, table, "--save", tmp_path / "model") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"skellipsoid: {sentence}.+\n", err)
    assert len(err) < 400
    assert not (tmp_path / "model").exists()


def test_a_training_whose_parent_is_taken_ends(tiny_command, table, tmp_path, capsys, monkeypatch):
    fit = EllipsoidOpenSetClassifier.fit

    def fit_while_it_appears(*arguments):
        (tmp_path / "new").write_text("mine")
        return fit(*arguments)

    monkeypatch.setattr(EllipsoidOpenSetClassifier, "fit", fit_while_it_appears)
    fails(capsys, "train", "--data", table, "--save", tmp_path / "new" / "model", "--quiet")


def test_an_open_label_that_no_text_has_is_noted(tiny_model, table, tmp_path, capsys):
    assert train(tiny_model, table, "--save", tmp_path / "model", "--open-label", "alram") == 0
    note = f"skellipsoid: No text of {str(table)!r} has the open label 'alram'; every label in it is a known intent.\n"
    assert note in capsys.readouterr().err
