"""The commands that add, remove and merge the classes of a saved model."""

import json
import shutil

import numpy as np
import pytest

from skellipsoid import load
from skellipsoid.cli import main

#: Columns of the two files of ``traffic --save``.
GROUPS = ["group", "proposed_name", "label", "rows", "distinct", "part_of", *(f"example_{i}" for i in (1, 2, 3))]
GROUPS += ["members", "run"]
MEMBERS = ["group", "proposed_name", "label", "text", "score", "run"]


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be replaced."""
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture
def write_groups(tmp_path, open_texts):
    """Write files as ``traffic --save`` does, of three groups: ``write_groups(labels, own={})``."""

    def write(labels, own=(), run="r1", name="groups.tsv"):
        members = [(i % 3, "name", dict(own).get(i, ""), text, 0.5, run) for i, text in enumerate(open_texts)]
        groups = [(i, "name", label, 2, 2, "", "a", "b", "c", "groups-members.tsv", run) for i, label in labels.items()]
        for path, columns, rows in (
            (name, GROUPS, groups),
            ("groups-members.tsv", MEMBERS, members),
        ):
            lines = ["\t".join(map(str, row)) for row in (columns, *rows)]
            (tmp_path / path).write_text("\n".join([*lines, ""]), encoding="utf-8")
        return tmp_path / name

    return write


def test_groups_that_are_labelled_in_part_are_asked_about(folder, write_groups, tmp_path, capsys):
    write_groups({0: "", 1: "", 2: ""}, own={0: "greeting"})
    words = ["add", "--model", str(folder), "--data", str(tmp_path / "groups-members.tsv")]
    before = (folder / "skellipsoid.json").read_bytes()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "gives a label to 1 of the 2 texts of 1 group alone; label whole groups" in error
    assert (folder / "skellipsoid.json").read_bytes() == before
    assert main([*words, "--yes"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A label is given to 1 of the 2 texts of 1 group; without one: 2 groups of 4 texts\n")
    assert "Added 1 text of 1 new class" in out


def test_no_label_of_a_group_is_lost(folder, write_groups, capsys):
    groups = write_groups({0: "greeting", 1: "", 2: ""})
    written = groups.read_text(encoding="utf-8")
    for more, message in (
        (written.splitlines()[1].replace("greeting", "parting"), "group 0 has the labels 'greeting' and 'parting'"),
        (written.splitlines()[1].replace("0\t", "7\t", 1), "group 7 is labelled, but has no text in"),
    ):
        groups.write_text(f"{written}{more}\n", encoding="utf-8")
        assert main(["add", "--model", str(folder), "--data", str(groups)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    lines = written.splitlines()
    groups.write_text("\n".join(line.rpartition("\t")[0] for line in lines), encoding="utf-8")
    assert main(["add", "--model", str(folder), "--data", str(groups)]) == 2
    assert "lacks the column run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (("alarms",), "'alarms' beside the class 'alarm'"),
        (("card_lost", "lost card"), "'card_lost' beside 'lost card'"),
        (("frobnicate it", "frobnciate it"), "'frobnciate it' beside 'frobnicate it'"),
    ],
)
def test_nearly_equal_names_are_asked_about(folder, tmp_path, open_texts, names, pair, capsys):
    path = tmp_path / "new.tsv"
    rows = [f"{text}\t{names[i % len(names)]}" for i, text in enumerate(open_texts)]
    path.write_text("\n".join(["text\tlabel", *rows, ""]), encoding="utf-8")
    n_before = len(load(folder).classes_)
    assert main(["add", "--model", str(folder), "--data", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"Nearly equal names: label {pair}; write them alike, or pass --yes" in error
    assert len(load(folder).classes_) == n_before
    assert main(["add", "--model", str(folder), "--data", str(path), "--yes"]) == 0
    assert len(load(folder).classes_) == n_before + len(names)


def test_remove_and_merge_into_another_folder(folder, labels, texts, tmp_path, capsys):
    names = np.unique(labels).tolist()
    provenance = json.loads((folder / "skellipsoid.json").read_bytes())["provenance"]
    other, third = tmp_path / "other", tmp_path / "third"
    before = load(folder).predict(texts).tolist()
    assert main(["remove", "--model", str(folder), "--labels", names[0], "--save", str(other)]) == 0
    assert main(["merge", "--model", str(other), "--labels", *names[1:3], "--into", "both", "--save", str(third)]) == 0
    out = capsys.readouterr().out
    assert f"Removed {names[0]}. The model in {other} knows 3 classes." in out
    assert f"Merged {names[1]}, {names[2]} into both. The model in {third} knows 2 classes." in out
    assert load(folder).predict(texts).tolist() == before
    assert load(third).classes_.tolist() == ["both", names[3]]
    assert json.loads((third / "skellipsoid.json").read_bytes())["provenance"] == provenance


@pytest.mark.parametrize("words", ["remove --labels nobody", "merge --labels nobody --into x"])
def test_errors_are_one_sentence_and_change_nothing(folder, words, capsys):
    before = (folder / "skellipsoid.json").read_bytes()
    assert main([*words.split(), "--model", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "'nobody' is not a known class" in error
    assert len(error.splitlines()) == 1
    assert (folder / "skellipsoid.json").read_bytes() == before


def test_groups_need_the_members_of_their_run(folder, write_groups, tmp_path, capsys):
    write_groups({0: "greeting", 1: "", 2: ""}, name="older.tsv")
    write_groups({0: "", 1: "", 2: ""}, run="r2")
    assert main(["add", "--model", str(folder), "--data", str(tmp_path / "older.tsv")]) == 2
    assert "holds other groups than" in capsys.readouterr().err
    (tmp_path / "groups-members.tsv").unlink()
    assert main(["add", "--model", str(folder), "--data", str(tmp_path / "older.tsv")]) == 2
    assert "'groups-members.tsv', which is not beside it" in capsys.readouterr().err


def test_an_unlabelled_file_is_refused(folder, write_groups, tmp_path, capsys):
    rows = tmp_path / "rows.tsv"
    rows.write_text("group\tlabel\ttext\n0\t\thello there\n", encoding="utf-8")
    for path in (rows, write_groups({0: "", 1: "", 2: ""}), write_groups({})):
        assert main(["add", "--model", str(folder), "--data", str(path)]) == 2
        assert "fill in the labels" in capsys.readouterr().err
