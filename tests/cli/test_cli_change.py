"""The commands that add, remove and merge the classes of a saved model."""

import shutil

import numpy as np
import pytest

from skellipsoid import load
from skellipsoid.cli import main
from skellipsoid.persistence._folder import read_manifest


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be replaced."""
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture
def new_table(tmp_path, open_texts):
    """A file as ``traffic --save`` writes it, with two labels filled in."""
    path = tmp_path / "groups.tsv"
    rows = [f"{i % 3}\tname\t{('greeting', 'parting', '')[i % 3]}\t{text}\t0.5" for i, text in enumerate(open_texts)]
    path.write_text("\n".join(["group\tproposed_name\tlabel\ttext\tscore", *rows, ""]), encoding="utf-8")
    return path


def test_add_reads_labelled_groups(folder, new_table, open_texts, capsys):
    before = load(folder).classes_.tolist()
    assert main(["add", "--model", str(folder), "--data", str(new_table), "--quiet"]) == 0
    out = capsys.readouterr().out
    n_labelled = sum(i % 3 < 2 for i in range(len(open_texts)))
    assert out.strip().splitlines()[-1] == (
        f"Added {n_labelled} texts of 2 new classes. The model in {folder} knows {len(before) + 2} classes."
    )
    model = load(folder)
    assert model.classes_.tolist() == sorted([*before, "greeting", "parting"])
    assert [change["what"] for change in model[-1].changes_] == ["add"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"add `greeting`, `parting` ({n_labelled} samples)" in card


def test_known_classes_get_more_texts(folder, table, texts, capsys):
    assert main(["add", "--model", str(folder), "--data", str(table), "--refresh"]) == 0
    assert f"Added {len(texts)} texts of 4 known classes." in capsys.readouterr().out
    assert [change["what"] for change in load(folder)[-1].changes_] == ["update", "refresh"]


def test_remove_and_merge_into_another_folder(folder, labels, texts, tmp_path, capsys):
    names = np.unique(labels).tolist()
    provenance = read_manifest(folder)[0]["provenance"]
    other, third = tmp_path / "other", tmp_path / "third"
    before = load(folder).predict(texts).tolist()
    assert main(["remove", "--model", str(folder), "--labels", names[0], "--save", str(other)]) == 0
    assert main(["merge", "--model", str(other), "--labels", *names[1:3], "--into", "both", "--save", str(third)]) == 0
    out = capsys.readouterr().out
    assert f"Removed {names[0]}. The model in {other} knows 3 classes." in out
    assert f"Merged {names[1]}, {names[2]} into both. The model in {third} knows 2 classes." in out
    assert load(folder).predict(texts).tolist() == before
    assert load(third).classes_.tolist() == ["both", names[3]]
    assert read_manifest(third)[0]["provenance"] == provenance


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["remove", "--labels", "nobody"], "'nobody' is not a known class"),
        (["remove", "--labels", "nobody", "--save", "."], "exists"),
        (["merge", "--labels", "nobody", "--into", "x"], "'nobody' is not a known class"),
    ],
)
def test_errors_are_one_sentence_and_change_nothing(folder, words, message, capsys):
    before = (folder / "skellipsoid.json").read_bytes()
    assert main([words[0], "--model", str(folder), *words[1:]]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert (folder / "skellipsoid.json").read_bytes() == before


def test_an_unlabelled_file_is_refused(folder, tmp_path, capsys):
    path = tmp_path / "groups.tsv"
    path.write_text("group\tproposed_name\tlabel\ttext\tscore\n0\ta\t\thello there\t0.5\n", encoding="utf-8")
    assert main(["add", "--model", str(folder), "--data", str(path)]) == 2
    assert "label" in capsys.readouterr().err
