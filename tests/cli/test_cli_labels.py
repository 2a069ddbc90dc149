"""Labels of all commands that take them: other spellings, what is open, and what an annotator rejected."""

import json
import re

import file_helpers
import numpy as np
import pytest
from command_helpers import done, fails, refuses
from file_helpers import read, write

from skellipsoid import estimate_open_share, load
from skellipsoid.cli import main


def written(path, texts, labels, text="message"):
    rows = zip(texts, labels, strict=True)
    return write(path.parent, file_helpers.written([(text, "label"), *rows], "\t"), path.name)


NAMED = ["--text-column", "message", "--label-column", "label"]
COMMANDS = {"set-threshold": NAMED, "traffic": NAMED, "evaluate": [], "learn": [], "add": [], "add --yes": ["--yes"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sheet_in_title_case_or_with_another_minus_is_refused(
    folder, tmp_path, texts, labels, open_texts, command, capsys
):
    words = [command.partition(" ")[0], "--model", folder, *COMMANDS[command], "--quiet"]
    for known, opened, pair in (
        (np.char.title(labels), "'-1", "labels \"'-1\" beside the open label '-1', 'Alarm' beside the class 'alarm', "),
        (labels, "\u22121", "label '\u22121' (with U+2212) beside the open label '-1'"),
        (labels, "-1\ufe0f", "label '-1\ufe0f' (with U+FE0F) beside the open label '-1'"),
    ):
        path = written(tmp_path / "sheet.tsv", [*texts, *open_texts], [*known, *[opened] * len(open_texts)])
        error = refuses(capsys, folder, *words, "--data", path)
        assert f"Nearly equal names: {pair}" in error
        assert "; write them alike, or rename one of them if they are different classes.\n" in error


def test_train_refuses_names_that_look_alike(tiny_model, tmp_path, texts, labels, open_texts, capsys):
    path = written(tmp_path / "table.tsv", [*texts, *open_texts], [*labels, *["alarm\u3164"] * len(open_texts)], "text")
    words = ["train", "--data", path, "--model-name", tiny_model, "--save", tmp_path / "m", "--quiet"]
    assert "(with U+3164) beside 'alarm'" in fails(capsys, *words)


# What an annotator rejected


def annotated(path, rows):
    """Write rows as Prodigy does; every third is rejected, with a wrong label."""
    records = [
        {"text": text, "_task_hash": 1}
        | ({"label": "hotel", "answer": "reject"} if i % 3 == 1 else {"label": label, "answer": "accept"})
        for i, (text, label) in enumerate(rows)
    ]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "values", "tool"),
    [("answer", ["accept", "reject"], "Prodigy"), ("status", ["Completed", "Discarded"], "Argilla")],
)
def test_marks_in_a_file_of_no_tool_count_for_nothing_and_are_said(tmp_path, name, values, tool):
    # The answers of a server to classes of these names; the tickets of a help desk.
    path = write(tmp_path, f"text,label,{name}\nwake me,alarm,{values[0]}\ndim it,light,{values[1]}\n", "own.csv")
    rows, (said,) = read(path, "text", "label")
    assert rows == [("wake me", "alarm"), ("dim it", "light")]
    assert said.startswith(f"1 row of {str(path)!r} has {name} {values[1].lower()!r}, as {tool} marks a rejected label")
    assert "the labels count" in said


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rejected_labels_count_nowhere(folder, tmp_path, texts, labels, capsys):
    rows = list(zip(texts, labels.tolist(), strict=True))
    n, n_rejected = len(rows), len(rows[1::3])
    path = annotated(tmp_path / "export.jsonl", rows)
    assert main(["evaluate", "--model", str(folder), "--data", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{n - n_rejected} texts, all of intents that the model knows")
    assert f"{n_rejected} rows of " in captured.err
    words = ["--model", str(folder), "--data", str(path), "--label-column", "label"]
    assert main(["traffic", *words]) == 0  # their texts stay in the log
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{n} texts, ")
    assert "their labels do not count" in captured.err
    y = [None if i % 3 == 1 else label for i, (_, label) in enumerate(rows)]
    found = estimate_open_share(load(folder), texts, y)
    assert f"about {100 * found.share:.0f} %, at most {100 * found.high:.0f} %" in captured.out
    fresh = [(f"{text} please", label) for text, label in rows]
    path = annotated(tmp_path / "more.jsonl", fresh)
    said = done(capsys, "add", "--model", folder, "--data", path, "--quiet")
    assert f"Added {n - n_rejected} texts of 4 known classes." in said
    assert "hotel" not in load(folder).classes_


def test_cancelled_annotations_of_label_studio_are_left_out(tmp_path, texts, labels):
    records = [
        {
            "data": {"text": text},
            "annotations": [{"was_cancelled": i == 4, "result": [{"value": {"choices": [label]}}]}],
        }
        for i, (text, label) in enumerate(zip(texts, labels.tolist(), strict=True))
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    found, (said,) = read(path, "data.text", "annotations.0.result.0.value.choices")
    assert [text for text, _ in found] == [text for i, text in enumerate(texts) if i != 4]
    assert re.match(r"1 row of '.*' was rejected .* \(was_cancelled\): .* \(record 5\)", said)


def test_a_label_column_may_be_called_so(tmp_path):
    path = write(tmp_path, "text,answer\nwake me,accept\ndim it,reject\n", "own.csv")
    assert read(path, "text", "answer") == ([("wake me", "accept"), ("dim it", "reject")], [])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_stands_twice_in_a_header_is_refused(folder, tmp_path, texts, labels, command, capsys):
    path = tmp_path / "twice.csv"
    wide = "x" * 10_000  # what a message shows is cut
    rows = [f"{text},{label},-1,0" for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join([f"message,label,label,{wide}", *rows]), encoding="utf-8")
    error = fails(capsys, command.partition(" ")[0], "--model", folder, *COMMANDS[command], "--quiet", "--data", path)
    assert "'label'" in error
    assert "columns 2" in error
    assert len(error) < 1000
