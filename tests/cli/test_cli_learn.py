"""The commands of the first hour: messages to label, and what is learned from them."""

import csv
import re

import numpy as np
import pytest
from command_helpers import done, refuses
from export_helpers import content_of
from file_helpers import write, written

from skellipsoid import choose_to_label, learn_from_traffic, load, predict_set
from skellipsoid.cli import main


@pytest.fixture
def log(texts, labels, open_texts, tmp_path):
    """A log with a column of numbers, and the true labels of its messages."""
    words = ("please", "now", "quickly")
    rows = [(f"{text} {word}", label) for word in words for text, label in zip(texts, labels, strict=True)]
    rows += [(f"{text} {word}", "-1") for word in words[:2] for text in open_texts]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    lines = [("ticket", "text"), *((1000 + i, text) for i, (text, _) in enumerate(rows))]
    return write(tmp_path, written(lines), "log.csv"), dict(rows)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def fill_in(path, truth):
    """Label what somebody would label."""
    rows = [row | {"label": truth[row["message"]]} for row in read(path)]
    path.write_text(written([rows[0], *(row.values() for row in rows)], "\t", lineterminator="\n"), encoding="utf-8")


@pytest.fixture
def review(folder, log, tmp_path, capsys):
    """Write a labelling file of some messages of the log: ``review(25)``; what is said is read already."""

    def review(n, name="review.tsv"):
        words = ["review", "--quiet", "-n", n, "--model", folder, "--data", log[0], "--save", tmp_path / name]
        said = done(capsys, *words)
        assert said.startswith(f"{n} messages of {len(log[1])} are in {tmp_path / name}; fill in the column label")
        return tmp_path / name

    return review


def test_review_chooses_and_proposes_as_python_does(folder, log, review):
    path = review(25)
    model, texts = load(folder), list(log[1])
    chosen, rows = choose_to_label(model, texts, 25), read(path)
    nearest = [f"nearest_class_{i}" for i in (1, 2, 3)]
    # What somebody reads and fills in comes first, and the columns of the log come last.
    first, last = ["message", "label", "proposed_label"], ["nearest_text", "review_number", "weight", "row", "digest"]
    assert list(rows[0]) == [*first, *nearest, *last, "ticket"]
    asked = [row["message"] for row in rows]
    assert asked == [texts[row] for row in chosen.rows]
    scores = model[-1].decision_function(model[:-1].transform(asked))
    in_order = model.classes_[np.argsort(-scores, axis=1, kind="stable")]
    assert [[row[name] for name in nearest] for row in rows] == in_order[:, :3].tolist()
    assert [row["label"] for row in read(path.with_name("review-labels.tsv"))] == [*model.classes_, "-1"]
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
def test_a_name_for_no_class_is_no_new_class(name, folder, log, review, capsys):
    path = review(40)
    fill_in(path, {text: name if label == "-1" else label for text, label in log[1].items()})
    words = ["learn", "--model", folder, "--data", path, "--quiet"]
    error = refuses(capsys, folder, *words)
    assert f"label '{name}' seems to say that a message is of no class; write '-1' for it" in error
    assert f", new is {name}." in done(capsys, *words, "--yes").replace("'", "")
    assert name in load(folder).classes_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_sheet_is_learned_once_and_others_are_offered_then(folder, log, review, capsys):
    path = review(20)
    fill_in(path, log[1])
    words = ["learn", "--model", folder, "--data", path, "--log", log[0], "--quiet"]
    done(capsys, *words)
    assert "All 20 labelled messages were learned before" in refuses(capsys, folder, *words)
    assert not {row["message"] for row in read(path)} & {row["message"] for row in read(review(20, "2.tsv"))}
    out = done(capsys, "traffic", "--model", folder, "--quiet", "--data", log[0], "--text-column", "text")
    # Some texts are equal for the tiny model.
    assert re.search(r"The limits rest on the labels that were learned, [1-9][0-9]* of them in this log\.", out)


@pytest.mark.parametrize("words", [[], ["--no-neighbours"]])
def test_review_says_why_no_training_text_stands_beside_a_message(words, folder, log, tmp_path, capsys):
    command = ["review", "--model", str(folder), "--data", str(log[0]), "--save", str(tmp_path / "new.tsv"), *words]
    assert main(command) == 0
    assert ("train --keep-texts keeps them" in capsys.readouterr().err) is (not words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("message\tlabel\nwake me\t\n", "The column 'label' of {} is empty; fill in the labels"),
        ("text\tlabel\nwake me\talarm\n", "{} lacks the column message; pass a file that skellipsoid review wrote"),
        ("message\tlabel\tweight\nwake me\talarm\tmany\n", "'weight' of {} holds a cell that is no number"),
    ],
)
def test_reviews_that_cannot_be_read_are_one_sentence(folder, tmp_path, capsys, content, message):
    path = write(tmp_path, content, "review.tsv")
    assert message.format(repr(str(path))) in refuses(capsys, folder, "learn", "--model", folder, "--data", path)


def test_a_column_of_the_log_that_the_review_has_gets_another_name(folder, tmp_path, capsys):
    path = write(tmp_path, "text,weight\nwake me at six,3\ndim the lamp,4\n")
    done(capsys, "review", "--model", folder, "--data", path, "--text-column", "text", "--save", tmp_path / "r")
    found = {row["message"]: row["log_weight"] for row in read(tmp_path / "r")}
    assert found == {"wake me at six": "3", "dim the lamp": "4"}


def test_a_sheet_of_another_log_is_refused(folder, tmp_path, capsys):
    sheet = write(tmp_path, "message\tlabel\nwake me at nine\talarm\nis it warm\tweather\n", "sheet.tsv")
    other = write(tmp_path, "text\ndim the lamp\n\nwhat do I own\n", "other.csv")
    before = content_of(folder)
    words = ["learn", "--model", folder, "--data", sheet, "--log", other, "--quiet"]
    assert main(list(map(str, words))) == 2
    error = capsys.readouterr().err  # behind a note of the empty line
    assert "No message of" in error
    assert "pass the log that was reviewed" in error
    assert content_of(folder) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_guarded_message_is_learned_as_it_was(folder, log, tmp_path, capsys):
    """With the apostrophe of a spreadsheet before it, and with the weight of another locale, or what one made of it."""
    rows = list(log[1].items())[:30]
    texts, labels = [f"={text} {i}" for i, (text, _) in enumerate(rows)], [label for _, label in rows]
    wanted = learn_from_traffic(load(folder), [*texts, "-1"], [*labels, None], sample_weight=[2.8] * 30 + [1.0])
    lines = [f"'{text}\t{label}\t2,8" for text, label in zip(texts, labels, strict=True)]
    sheet = write(tmp_path, "\n".join(["message\tlabel\tweight", *lines, "-1\t\t02. Aug"]), "sheet.tsv")
    done(capsys, "learn", "--model", folder, "--data", sheet, "--quiet")
    found, new = load(folder), [*texts, *log[1]]
    np.testing.assert_allclose(found.decision_function(new), wanted.decision_function(new), rtol=1e-6)
    assert found[-1].offset_ == pytest.approx(wanted[-1].offset_)


def test_lines_of_standard_input_can_be_reviewed(folder, texts, tmp_path, give_input, capsys):
    give_input("\n".join([*texts, "", texts[0]]))
    said = done(capsys, "review", "--model", folder, "-n", 10, "--save", tmp_path / "review.tsv", "--quiet")
    assert f"10 messages of {len(texts) + 1} are in" in said
    assert len(read(tmp_path / "review.tsv")) == 10
