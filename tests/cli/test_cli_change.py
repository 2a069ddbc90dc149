"""The commands that add, remove and merge the classes of a saved model."""

import json

import numpy as np
import pytest
from command_helpers import done, fails, refuses
from export_helpers import content_of
from file_helpers import write, written

from skellipsoid import load
from skellipsoid.cli import main

#: Columns of the two files of ``traffic --save``.
GROUPS = ["group", "proposed_name", "label", "rows", "distinct", "part_of", *(f"example_{i}" for i in (1, 2, 3))]
GROUPS += ["members", "run"]
MEMBERS = ["group", "proposed_name", "label", "text", "score", "run"]


@pytest.fixture
def write_groups(tmp_path, open_texts):
    """Write files as ``traffic --save`` does, of three groups: ``write_groups(labels, own={})``."""

    def write_both(labels, own=(), run="r1", name="groups.tsv"):
        members = [(i % 3, "name", dict(own).get(i, ""), text, 0.5, run) for i, text in enumerate(open_texts)]
        groups = [(i, "name", label, 2, 2, "", "a", "b", "c", "groups-members.tsv", run) for i, label in labels.items()]
        write(tmp_path, written([MEMBERS, *members], "\t"), "groups-members.tsv")
        return write(tmp_path, written([GROUPS, *groups], "\t"), name)

    return write_both


def test_groups_that_are_labelled_in_part_are_asked_about(folder, write_groups, tmp_path, capsys):
    write_groups({0: "", 1: "", 2: ""}, own={0: "greeting"})
    words = ["add", "--model", folder, "--data", tmp_path / "groups-members.tsv"]
    assert "gives a label to 1 of the 2 texts of 1 group alone; label whole groups" in refuses(capsys, folder, *words)
    out = done(capsys, *words, "--yes")
    assert out.startswith("A label is given to 1 of the 2 texts of 1 group; without one: 2 groups of 4 texts\n")
    assert "Added 1 text of 1 new class" in out


def test_no_label_of_a_group_is_lost(folder, write_groups, capsys):
    groups = write_groups({0: "greeting", 1: "", 2: ""})
    lines = groups.read_text(encoding="utf-8").splitlines()
    for rows, message in (
        ([*lines, lines[1].replace("greeting", "parting")], "group 0 has the labels 'greeting' and 'parting'"),
        ([*lines, lines[1].replace("0\t", "7\t", 1)], "group 7 is labelled, but has no text in"),
        ([line.rpartition("\t")[0] for line in lines], "lacks the column run"),
    ):
        groups.write_text("\n".join(rows), encoding="utf-8")
        assert message in fails(capsys, "add", "--model", folder, "--data", groups)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (("alarms",), "'alarms' beside the class 'alarm'"),
        (("card_lost", "lost card"), "'card_lost' beside 'lost card'"),
        (("frobnicate it", "frobnciate it"), "'frobnciate it' beside 'frobnicate it'"),
    ],
)
def test_nearly_equal_names_are_asked_about(folder, tmp_path, open_texts, names, pair, capsys):
    rows = [(text, names[i % len(names)]) for i, text in enumerate(open_texts)]
    words = ["add", "--model", folder, "--data", write(tmp_path, written([("text", "label"), *rows], "\t"), "new.tsv")]
    known = load(folder).classes_.tolist()
    assert f"Nearly equal names: label {pair}; write them alike, or pass --yes" in refuses(capsys, folder, *words)
    done(capsys, *words, "--yes")
    assert load(folder).classes_.tolist() == sorted([*known, *names])


def test_remove_and_merge_into_another_folder(folder, labels, tmp_path, capsys):
    names = np.unique(labels).tolist()
    provenance = json.loads((folder / "skellipsoid.json").read_bytes())["provenance"]
    other, third, before = tmp_path / "other", tmp_path / "third", content_of(folder)
    removed = done(capsys, "remove", "--model", folder, "--labels", names[0], "--save", other)
    assert f"Removed {names[0]}. The model in {other} knows 3 classes." in removed
    merged = done(capsys, "merge", "--model", other, "--labels", *names[1:3], "--into", "both", "--save", third)
    assert f"Merged {names[1]}, {names[2]} into both. The model in {third} knows 2 classes." in merged
    assert content_of(folder) == before
    assert load(third).classes_.tolist() == ["both", names[3]]
    assert json.loads((third / "skellipsoid.json").read_bytes())["provenance"] == provenance


@pytest.mark.parametrize("words", ["remove --labels nobody", "merge --labels nobody --into x"])
def test_errors_are_one_sentence_and_change_nothing(folder, words, capsys):
    assert "'nobody' is not a known class" in refuses(capsys, folder, *words.split(), "--model", folder)


def test_groups_need_the_members_of_their_run(folder, write_groups, tmp_path, capsys):
    older = write_groups({0: "greeting", 1: "", 2: ""}, name="older.tsv")
    write_groups({0: "", 1: "", 2: ""}, run="r2")
    assert "holds other groups than" in fails(capsys, "add", "--model", folder, "--data", older)
    (tmp_path / "groups-members.tsv").unlink()
    assert "'groups-members.tsv', which is not beside it" in fails(capsys, "add", "--model", folder, "--data", older)


def test_an_unlabelled_file_is_refused(folder, write_groups, tmp_path, capsys):
    rows = write(tmp_path, "group\tlabel\ttext\n0\t\thello there\n", "rows.tsv")
    for path in (rows, write_groups({0: "", 1: "", 2: ""}), write_groups({})):
        assert main(["add", "--model", str(folder), "--data", str(path)]) == 2
        assert "fill in the labels" in capsys.readouterr().err
