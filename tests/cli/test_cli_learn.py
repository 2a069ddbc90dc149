"""The commands of the first hour: messages to label, and what is learned from them."""

import csv
import re
import shutil

import numpy as np
import pytest

from skellipsoid import choose_to_label, learn_from_traffic, load, predict_set
from skellipsoid.cli import main


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be replaced."""
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture
def log(texts, labels, open_texts, tmp_path):
    """A log with a column of numbers, and the true labels of its messages."""
    words = ("please", "now", "quickly")
    rows = [(f"{text} {word}", label) for word in words for text, label in zip(texts, labels, strict=True)]
    rows += [(f"{text} {word}", "-1") for word in words[:2] for text in open_texts]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    path = tmp_path / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("ticket", "text"), *((1000 + i, text) for i, (text, _) in enumerate(rows))])
    return path, dict(rows)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def fill_in(path, truth, only=slice(None)):
    """Label what somebody would label."""
    rows = read(path)
    for row in rows[only]:
        row["label"] = truth[row["message"]]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def reviewed(folder, path, tmp_path, n=25):
    """Write a labelling file of some messages of a log."""
    review, words = tmp_path / "review.tsv", ["--model", str(folder), "--data", str(path), "--quiet"]
    assert main(["review", *words, "-n", str(n), "--save", str(review)]) == 0
    return review


def test_review_chooses_and_proposes_as_python_does(folder, log, tmp_path, capsys):
    path, truth = log
    review = reviewed(folder, path, tmp_path)
    assert capsys.readouterr().out.startswith(f"25 messages of {len(truth)} are in {review}; fill in the column label")
    model, texts = load(folder), list(truth)
    chosen, rows = choose_to_label(model, texts, 25), read(review)
    nearest = [f"nearest_class_{i}" for i in (1, 2, 3)]
    # What somebody reads and fills in comes first, and the columns of the log come last.
    first, last = ["message", "label", "proposed_label"], ["nearest_text", "review_number", "weight", "row", "digest"]
    assert list(rows[0]) == [*first, *nearest, *last, "ticket"]
    asked = [row["message"] for row in rows]
    assert asked == [texts[row] for row in chosen.rows]
    scores = model[-1].decision_function(model[:-1].transform(asked))
    in_order = model.classes_[np.argsort(-scores, axis=1, kind="stable")]
    assert [[row[name] for name in nearest] for row in rows] == in_order[:, :3].tolist()
    assert [row["label"] for row in read(review.with_name("review-labels.tsv"))] == [*model.classes_, "-1"]
    assert [int(row["ticket"]) for row in rows] == (1000 + chosen.rows).tolist()
    # Where the model would ask, nothing is proposed beside the three candidates.
    action = predict_set(model, asked).action
    assert {*action} > {"ask"}
    assert [row["proposed_label"] for row in rows] == np.where(action == "ask", "", model.predict(asked)).tolist()
    # Whole numbers: spreadsheets read others as dates, or write them with a comma.
    assert [int(row["weight"]) for row in rows] == [round(1000 * weight) for weight in chosen.weights.tolist()]
    assert {row["label"] for row in rows} == {""}


@pytest.mark.parametrize("name", ["NO_NODES_DETECTED", "open"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_name_for_no_class_is_no_new_class(name, folder, log, tmp_path, capsys):
    path, truth = log
    review = tmp_path / "review.tsv"
    assert main(["review", "--model", str(folder), "--data", str(path), "-n", "40", "--save", str(review)]) == 0
    fill_in(review, {text: name if label == "-1" else label for text, label in truth.items()})
    before = (folder / "skellipsoid.json").read_bytes()
    words = ["learn", "--model", str(folder), "--data", str(review), "--quiet"]
    assert main(words) == 2
    assert f"label '{name}' seems to say that a message is of no class; write '-1' for it" in capsys.readouterr().err
    assert (folder / "skellipsoid.json").read_bytes() == before
    assert main([*words, "--yes"]) == 0
    assert f", new is {name}." in capsys.readouterr().out.replace("'", "")
    assert name in load(folder).classes_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_sheet_is_learned_once(folder, log, tmp_path, capsys):
    path, truth = log
    review = tmp_path / "review.tsv"
    assert main(["review", "--model", str(folder), "--data", str(path), "-n", "20", "--save", str(review)]) == 0
    fill_in(review, truth)
    words = ["learn", "--model", str(folder), "--data", str(review), "--log", str(path), "--quiet"]
    assert main(words) == 0
    before = (folder / "skellipsoid.json").read_bytes()
    assert main(words) == 2
    assert "All 20 labelled messages were learned before" in capsys.readouterr().err
    assert (folder / "skellipsoid.json").read_bytes() == before


@pytest.mark.parametrize("words", [[], ["--no-neighbours"]])
def test_review_says_why_no_training_text_stands_beside_a_message(words, folder, log, tmp_path, capsys):
    command = ["review", "--model", str(folder), "--data", str(log[0]), "--save", str(tmp_path / "new.tsv"), *words]
    assert main(command) == 0
    assert ("train --keep-texts keeps them" in capsys.readouterr().err) is (not words)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_after_learning_others_are_offered_and_traffic_knows_the_labels(folder, log, tmp_path, capsys):
    path, truth = log
    first, second = tmp_path / "1.tsv", tmp_path / "2.tsv"
    words = ["--model", str(folder), "--quiet"]
    assert main(["review", *words, "--data", str(path), "-n", "20", "--save", str(first)]) == 0
    fill_in(first, truth)
    rows = read(first)
    assert main(["learn", *words, "--data", str(first), "--log", str(path)]) == 0
    assert main(["review", *words, "--data", str(path), "-n", "20", "--save", str(second)]) == 0
    assert not {row["message"] for row in rows} & {row["message"] for row in read(second)}
    capsys.readouterr()
    assert main(["traffic", *words, "--data", str(path), "--text-column", "text"]) == 0
    out = capsys.readouterr().out  # some texts are equal for the tiny model
    assert re.search(r"The limits rest on the labels that were learned, [1-9][0-9]* of them in this log\.", out)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("message\tlabel\nwake me\t\n", "The column 'label' of {} is empty; fill in the labels"),
        ("text\tlabel\nwake me\talarm\n", "{} lacks the column message; pass a file that skellipsoid review wrote"),
        ("message\tlabel\tweight\nwake me\talarm\tmany\n", "'weight' of {} holds a cell that is no number"),
        ("message\tlabel\nwake me\tAlarm\n", "Nearly equal names: label 'Alarm' beside the class 'alarm'"),
    ],
)
def test_reviews_that_cannot_be_read_are_one_sentence(folder, tmp_path, capsys, content, message):
    before = (folder / "skellipsoid.json").read_bytes()
    review = tmp_path / "review.tsv"
    review.write_text(content, encoding="utf-8")
    assert main(["learn", "--model", str(folder), "--data", str(review), "--quiet"]) == 2
    assert message.format(repr(str(review))) in capsys.readouterr().err
    assert (folder / "skellipsoid.json").read_bytes() == before


def test_a_column_of_the_log_that_the_review_has_gets_another_name(folder, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("text,weight\nwake me at six,3\ndim the lamp,4\n", encoding="utf-8")
    words = ["review", "--model", folder, "--data", log, "--text-column", "text", "--save", tmp_path / "r"]
    assert main([*map(str, words)]) == 0
    assert {row["message"]: row["log_weight"] for row in read(tmp_path / "r")} == {
        "wake me at six": "3",
        "dim the lamp": "4",
    }


def test_a_sheet_of_another_log_is_refused(folder, tmp_path, capsys):
    sheet, other = tmp_path / "sheet.tsv", tmp_path / "other.csv"
    sheet.write_text("message\tlabel\nwake me at nine\talarm\nis it warm\tweather\n", encoding="utf-8")
    other.write_text("text\ndim the lamp\n\nwhat do I own\n", encoding="utf-8")
    before = (folder / "skellipsoid.json").read_bytes()
    words = ["learn", "--model", str(folder), "--data", str(sheet), "--log", str(other), "--quiet"]
    assert main(words) == 2
    assert "No message of" in (error := capsys.readouterr().err)
    assert "pass the log that was reviewed" in error
    assert (folder / "skellipsoid.json").read_bytes() == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_guarded_message_is_learned_as_it_was(folder, log, tmp_path):
    """With the apostrophe of a spreadsheet before it, and with the weight of another locale, or what one made of it."""
    rows = list(log[1].items())[:30]
    texts, labels = [f"={text} {i}" for i, (text, _) in enumerate(rows)], [label for _, label in rows]
    wanted = learn_from_traffic(load(folder), [*texts, "-1"], [*labels, None], sample_weight=[2.8] * 30 + [1.0])
    sheet = tmp_path / "sheet.tsv"
    lines = [f"'{text}\t{label}\t2,8" for text, label in zip(texts, labels, strict=True)]
    sheet.write_text("\n".join(["message\tlabel\tweight", *lines, "-1\t\t02. Aug"]), encoding="utf-8")
    assert main(["learn", "--model", str(folder), "--data", str(sheet), "--quiet"]) == 0
    found, new = load(folder), [*texts, *log[1]]
    np.testing.assert_allclose(found.decision_function(new), wanted.decision_function(new), rtol=1e-6)
    assert found[-1].offset_ == pytest.approx(wanted[-1].offset_)


def test_lines_of_standard_input_can_be_reviewed(folder, texts, tmp_path, give_input, capsys):
    give_input("\n".join([*texts, "", texts[0]]))
    review = tmp_path / "review.tsv"
    assert main(["review", "--model", str(folder), "-n", "10", "--save", str(review), "--quiet"]) == 0
    assert len(read(review)) == 10
    assert f"10 messages of {len(texts) + 1} are in" in capsys.readouterr().out
