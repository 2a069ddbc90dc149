"""Labels of all commands that take them: other spellings, what is open, and what an annotator rejected."""

import json
import re
import shutil

import numpy as np
import pytest
from file_helpers import numbers_of, read

from skellipsoid import estimate_open_share, load
from skellipsoid.cli import main


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be changed."""
    return shutil.copytree(saved, tmp_path / "model")


def written(path, texts, labels, text="message"):
    rows = [f"{one}\t{label}" for one, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join([f"{text}\tlabel", *rows, ""]), encoding="utf-8")
    return path


COMMANDS = {
    "set-threshold": ["--text-column", "message", "--label-column", "label"],
    "traffic": ["--text-column", "message", "--label-column", "label"],
    "evaluate": [],
    "learn": [],
    "add": [],
    "learn --yes": ["--yes"],
    "add --yes": ["--yes"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sheet_in_title_case_or_with_another_minus_is_refused(
    folder, tmp_path, texts, labels, open_texts, command, capsys
):
    before = (folder / "skellipsoid.json").read_bytes()
    words = [command.partition(" ")[0], "--model", str(folder), *COMMANDS[command], "--quiet"]
    for known, opened, pair in (
        (np.char.title(labels), "'-1", "labels \"'-1\" beside the open label '-1', 'Alarm' beside the class 'alarm', "),
        (labels, "\u22121", "label '\u22121' (with U+2212) beside the open label '-1'"),
        (labels, "-1\ufe0f", "label '-1\ufe0f' (with U+FE0F) beside the open label '-1'"),
    ):
        path = written(tmp_path / "sheet.tsv", [*texts, *open_texts], [*known, *[opened] * len(open_texts)])
        assert main([*words, "--data", str(path)]) == 2
        error = capsys.readouterr().err
        assert f"Nearly equal names: {pair}" in error
        assert "; write them alike, or rename one of them if they are different classes.\n" in error
        assert error.count("\n") == 1
    assert (folder / "skellipsoid.json").read_bytes() == before


@pytest.mark.parametrize(
    ("label", "beside"),
    [
        ("\u22121", "'\u22121' (with U+2212) beside the open label '-1'"),
        ("alarm\u3164", "(with U+3164) beside 'alarm'"),
    ],
)
def test_train_refuses_names_that_look_alike(tiny_model, tmp_path, texts, labels, open_texts, label, beside, capsys):
    path = written(tmp_path / "table.tsv", [*texts, *open_texts], [*labels, *[label] * len(open_texts)], "text")
    words = ["train", "--data", str(path), "--model-name", str(tiny_model), "--save", str(tmp_path / "m"), "--quiet"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert beside in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_stands_twice_in_a_header_is_refused(folder, tmp_path, texts, labels, command, capsys):
    path = tmp_path / "twice.csv"
    wide = "x" * 10_000  # what a message shows is cut
    rows = [f"{text},{label},-1,0" for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join([f"message,label,label,{wide}", *rows]), encoding="utf-8")
    words = [command.partition(" ")[0], "--model", str(folder), *COMMANDS[command], "--quiet"]
    assert main([*words, "--data", str(path)]) == 2
    error = capsys.readouterr().err
    assert "'label'" in error
    assert "columns 2" in error
    assert len(error) < 1000


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("command", ["set-threshold", "traffic", "evaluate"])
def test_what_the_model_does_not_know_is_counted_and_said(folder, tmp_path, texts, labels, open_texts, command, capsys):
    n_open = len(open_texts)
    y = [*labels, "-1", "jokes", *["songs"] * (n_open - 2)]
    path = written(tmp_path / "sheet.tsv", [*texts, *open_texts], y)
    assert main([command, "--model", str(folder), *COMMANDS[command], "--data", str(path), "--quiet"]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    told = f"{n_open} of them open, because the model does not know the labels 'songs' ({n_open - 2}), "
    assert said.startswith(f"{len(y)} {'texts' if command == 'evaluate' else 'labels'}, {told}")
    assert "'-1' (1)" in said


# What an annotator rejected

TOOLS = {
    "Prodigy reject": ({"answer": "accept"}, {"answer": "reject", "_task_hash": 1}, "answer 'reject'"),
    "Prodigy ignore": ({"answer": "accept"}, {"answer": "ignore", "_session_id": "x"}, "answer 'ignore'"),
    "Argilla": ({"status": "Validated"}, {"status": "Discarded", "prediction_agent": "x"}, "status 'discarded'"),
    "Argilla 2": (
        {"label.responses.status": ["submitted"]},
        {"label.responses.status": ["discarded"]},
        "label.responses.status 'discarded'",
    ),
    "Label Studio": ({"was_cancelled": False}, {"was_cancelled": True, "lead_time": 2.5}, "was_cancelled 'true'"),
}


def annotated(path, rows, tool, text="text"):
    """Write rows as a tool does; every third is rejected, with a wrong label."""
    kept, rejected, _ = TOOLS[tool]
    records = [
        {text: one, "label": "hotel" if i % 3 == 1 else label, **(rejected if i % 3 == 1 else kept)}
        for i, (one, label) in enumerate(rows)
    ]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


@pytest.mark.parametrize("tool", TOOLS)
def test_rejected_rows_are_left_out_and_counted(tmp_path, texts, labels, tool):
    rows = list(zip(texts, labels.tolist(), strict=True))
    path = annotated(tmp_path / "export.jsonl", rows, tool)
    n = len(rows[1::3])
    found, said = read(path, "text", "label")
    assert found == [row for i, row in enumerate(rows) if i % 3 != 1]
    assert said[0].startswith(
        f"{n} rows of {str(path)!r} were rejected by the annotator ({TOOLS[tool][2]}): they are left out (lines 2, 5"
    )
    assert numbers_of(path, "text", "label")[0] == [i + 1 for i in range(len(rows)) if i % 3 != 1]


@pytest.mark.parametrize(
    ("name", "values", "tool"),
    [("answer", ["accept", "reject"], "Prodigy"), ("status", ["Completed", "Discarded"], "Argilla")],
)
def test_marks_in_a_file_of_no_tool_count_for_nothing_and_are_said(tmp_path, name, values, tool):
    path = tmp_path / "own.csv"  # the answers of a server to classes of these names; the tickets of a help desk
    path.write_text(f"text,label,{name}\nwake me,alarm,{values[0]}\ndim it,light,{values[1]}\n", encoding="utf-8")
    rows, (said,) = read(path, "text", "label")
    assert rows == [("wake me", "alarm"), ("dim it", "light")]
    assert said.startswith(f"1 row of {str(path)!r} has {name} {values[1].lower()!r}, as {tool} marks a rejected label")
    assert "the labels count" in said


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rejected_labels_count_nowhere(folder, tmp_path, texts, labels, capsys):
    rows = list(zip(texts, labels.tolist(), strict=True))
    n, n_rejected = len(rows), len(rows[1::3])
    path = annotated(tmp_path / "export.jsonl", rows, "Prodigy reject")
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
    before = load(folder)[-1].classes_.tolist()
    fresh = [(f"{text} please", label) for text, label in rows]
    path = annotated(tmp_path / "sheet.jsonl", fresh, "Prodigy reject", text="message")
    assert main(["learn", "--model", str(folder), "--data", str(path), "--quiet"]) == 0
    assert f"Learned {n - n_rejected} messages, 0 of them open, beside 0 without" in capsys.readouterr().out
    path = annotated(tmp_path / "more.jsonl", fresh, "Prodigy reject")
    assert main(["add", "--model", str(folder), "--data", str(path), "--quiet"]) == 0
    assert f"Added {n - n_rejected} texts of 4 known classes." in capsys.readouterr().out
    assert load(folder)[-1].classes_.tolist() == before


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
    path = tmp_path / "own.csv"
    path.write_text("text,answer\nwake me,accept\ndim it,reject\n", encoding="utf-8")
    assert read(path, "text", "answer") == ([("wake me", "accept"), ("dim it", "reject")], [])
