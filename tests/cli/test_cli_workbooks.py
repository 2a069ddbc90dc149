"""The loop of labels by workbooks: what is written, what comes back, and which message each label is of."""

import json
import warnings

import numpy as np
import pytest
import xlsxwriter
from command_helpers import done, refuses
from file_helpers import write
from office import converted, fill_in

from skellipsoid import learn_from_traffic, load
from skellipsoid._text_files.match_log import LabelledLog, checked_match, digest, match_log
from skellipsoid._text_files.read import read_file, read_rows
from skellipsoid._text_files.workbooks.write_workbook import Sheet, write_workbook

HOSTILE = [
    *("007", "1/3", "=1+1", "TRUE", "a\tb c", "nul\0here", "'=1+1", "+49 171 1234567", "-1", "@me", "two\nlines"),
    *("\u202eoverride\u202c here", "_x0041_ is no escape", "<r>&</r>", "1e5", "12:30", "00491712345678", "#N/A"),
    *("half \ud83d emoji", "not \ufffe a \uffff letter", "x" * 40_000, "http://example.org", '"quoted", she said'),
    "nbsp\xa0here",
]


@pytest.fixture
def log(texts, tmp_path):
    """A log of JSON lines, where a message can be anything, and its messages as they are read."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate([*texts, *HOSTILE])))
    return labelled_log(path)


def labelled_log(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, found, _ = read_rows(path)
    return LabelledLog(path, found, table.numbers)


def written(path, log):
    """What ``review`` writes of a whole log."""
    rows = [[text, "", number, digest(text)] for text, number in zip(log.texts, log.numbers, strict=True)]
    sheet = Sheet("review", ["message", "label", "row", "digest"], rows, ["message"])
    write_workbook(path, [sheet], ["-1", "alarm", "007"])
    return path


@pytest.mark.parametrize("kind", ["as written", "xlsx", "ods", "xls"])
def test_every_message_of_a_workbook_is_found_to_the_letter(kind, log, tmp_path):
    labels = ["-1: none of these", "alarm", "007", "1e5"] * (len(log.texts) // 4)
    review = fill_in(written(tmp_path / "review.xlsx", log), labels)
    if kind != "as written":
        review = converted(review, kind)
    table = read_file(review, "message", "label", is_partial=True)
    assert checked_match(table, review, log, asks=True) == log.texts
    assert match_log(table, log).edited == []
    assert table.named_cells("label") == labels + [""] * (len(log.texts) - len(labels))
    if kind != "ods":
        place = log.texts.index("007")
        assert [row[0] for row in table.rows[place : place + 8]] == HOSTILE[:8]
        assert {type(cell) for row in table.rows for cell in row} == {str}  # all cells are text


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_learn_takes_the_labels_of_a_workbook(folder, log, texts, labels, tmp_path, capsys):
    review = tmp_path / "review.xlsx"
    words = ["--model", folder, "--quiet"]
    done(capsys, "review", *words, "--data", log.path, "-n", 99, "--save", review)
    table = read_file(review, "message", "label", is_partial=True)
    truth = dict(zip(texts, labels, strict=True))
    shown = match_log(table, log).texts
    fill_in(review, [truth.get(text, "-1: none of these") for text in shown])
    weights = list(map(float, table.named_cells("weight")))
    model = load(folder)
    rest = [text for text in log.texts if text not in shown]  # equal to others by the text model
    y = np.array([*(truth.get(text, "-1") for text in shown), *[None] * len(rest)], dtype=object)
    wanted = learn_from_traffic(model, [*shown, *rest], y, sample_weight=[*weights, *[1] * len(rest)])
    said = refuses(capsys, tmp_path, "review", *words, "--data", log.path, "--save", review)
    assert "labels, which --save would overwrite" in said
    out = done(capsys, "learn", *words, "--data", review, "--log", log.path).splitlines()
    found = load(folder)
    n_open = [truth.get(text, "-1") for text in shown].count("-1")
    learned = f"Learned {len(shown)} messages, {n_open} of them open, beside {len(rest)} without a label. The model"
    assert out[0].startswith(learned)
    told = found[-1].changes_[-1]
    assert out[2].startswith(f"Of the labelled known messages {100 * told['rejected']:.0f} % were handed over; ")
    assert (out[3].count(" ± "), out[4].count(" ± ")) == (8, 4)
    assert out[4].startswith("With predict --ask, known asked: {:.0f} ± ".format(100 * told["before"]["asked"][0]))
    assert found[-1].offset_ == pytest.approx(wanted[-1].offset_)
    np.testing.assert_array_equal(found.predict(shown), wanted.predict(shown))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_messages_that_a_spreadsheet_changed_are_named(folder, tmp_path, capsys):
    messages = ["show my balance", "+491711234567", "0012", "wake me at six", "dim the lamp"]
    log = write(tmp_path, "\n".join(["message", *messages]), "log.csv")
    rows = "message;label\nshow my balance;-1\n491711234567;-1\n12;-1\nwake me at six;-1\n"
    sheet = write(tmp_path, rows, "sheet.csv")
    words = ["learn", "--model", folder, "--data", sheet, "--log", log, "--quiet"]
    error = refuses(capsys, folder, *words)
    assert f"2 messages of {str(sheet)!r} are not in the log {str(log)!r}: line 3 '491711234567'" in error
    assert "(nearest there: '+491711234567'), line 4 '12' (nearest there: '0012'); correct them, or pass --yes" in error
    # The two numbers cannot be read by this model, and are two messages.
    assert done(capsys, *words, "--yes").startswith("Learned 4 messages, 4 of them open, beside 3 without a label.")
    # With digests they are found, and what a cell says is compared.
    lines = [f"{cell};-1;{digest(text)}" for cell, text in zip([messages[0], "bye", "12"], messages, strict=False)]
    sheet.write_text("\n".join(["message;label;digest", *lines]), encoding="utf-8")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = checked_match(read_file(sheet, "message", "label"), sheet, labelled_log(log), asks=True)
        yes = checked_match(read_file(sheet, "message", "label"), sheet, labelled_log(log), asks=False)
    assert (found, yes) == ([messages[0], "", ""], messages[:3])
    told = str(said[-2].message)
    assert told.startswith(f"2 messages of {str(sheet)!r} are not what their digests say, and left out")
    assert "line 3 'bye' (in the log: '+491711234567')" in told


@pytest.mark.usefixtures("all_open")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_groups_are_labelled_in_a_workbook(messages, tmp_path, capsys):
    log, groups = write(tmp_path, "\n".join(messages), "log.txt"), tmp_path / "groups.xlsx"
    words = ["--model", tmp_path / "model", "--quiet"]
    done(capsys, "traffic", *words, "--data", log, "--save", groups)
    table, members = (read_file(groups, "group", "label", sheets=[name]) for name in ("groups", "members"))
    assert table.rows
    assert set(table.named_cells("members")) == {"members"}
    assert set(members.named_cells("group")) == set(table.named_cells("group"))
    fill_in(groups, ["new_class", *["-1: none of these"] * (len(table.rows) - 1)], "C")
    said = done(capsys, "add", *words, "--data", groups)
    assert f"A label is given to {len(members.rows)} of the {len(members.rows)} texts of" in said
    assert "new_class" in load(tmp_path / "model").classes_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_predictions_are_written_to_a_workbook(folder, tmp_path, capsys):
    path, answers = tmp_path / "log.xlsx", tmp_path / "answers.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet()
        for i, row in enumerate([("ticket", "text"), (7, "show my balance"), (8, ""), (9, "=dim the lamp")]):
            sheet.write_row(i, 0, row) if i < 3 else [sheet.write_string(i, j, str(cell)) for j, cell in enumerate(row)]
    words = ["predict", "--model", folder, "--data", path, "--quiet"]
    done(capsys, *words, "--save", answers)
    table = read_file(answers, "text", "answer")
    assert table.names == ["ticket", "text", "answer", "margin", "p_value", "nearest_class"]
    assert [row[:2] for row in table.rows] == [["7", "show my balance"], ["8", ""], ["9", "=dim the lamp"]]
    assert table.named_cells("answer") == load(folder).predict(["show my balance", "", "=dim the lamp"]).tolist()
    for wrong, sentence in (
        (["--save", path], "is the file of --data, which it would replace"),
        (["--save", "answers.csv"], "does not end in .xlsx"),
        (["--keep-columns"], "pass --save with a .xlsx"),
    ):
        assert sentence in refuses(capsys, tmp_path, *words, *wrong)
    done(capsys, *words, "--keep-columns", "--out", tmp_path / "out")
    assert read_file(tmp_path / "out" / "log.xlsx", "text").rows == table.rows
