"""The command demo: its answers, its one line of numbers, its report, its prompt."""

import json
import re
import sys

import numpy as np
import pytest
from file_helpers import write, written

from skellipsoid import load
from skellipsoid.cli import main
from skellipsoid.cli._demo import summarize


def test_demo_answers_first_and_keeps_the_model(tiny_command, table, tmp_path, texts, labels, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    folder = tmp_path / "new" / "model"
    sentences = ["wake me at six", "tell a joke"]
    assert tiny_command(["demo", *sentences, "--data", str(table), "--save", str(folder)]) == 0
    out, err = capsys.readouterr()
    # What is used and kept has seen every intent, those too that the test held out.
    loaded = load(folder)
    assert loaded.classes_.tolist() == ["alarm", "balance", "light", "weather"]
    lines = out.splitlines()
    assert len(lines) == 14
    for i, answer in enumerate(loaded.predict(sentences)):
        said, *near = lines[3 * i : 3 * i + 3]
        assert said == f"{sentences[i]!r}: {'open' if answer == '-1' else answer}"
        for line, name in zip(near, ["nearest training text", "the next one"], strict=True):
            text, label = re.fullmatch(rf"    {name}: '(.+)' \((\w+)\)", line).groups()
            known = next(known for known in texts if known.startswith(text.rstrip("…")))
            assert label == labels[texts.index(known)]
        assert near[0].partition(": ")[2] != near[1].partition(": ")[2]
    assert lines[1] == "    nearest training text: 'wake me at six' (alarm)"
    assert lines[6] == ""
    counts = r"Of 6 known texts (\d) are right, (\d) wrong, (\d) handed over"
    found = re.fullmatch(rf"{counts}; of 2 open ones \d are detected\.", lines[8])
    assert sum(map(int, found.groups())) == 6
    provenance = json.loads((folder / "skellipsoid.json").read_bytes())["provenance"]
    assert "false rejection rate" in provenance["report"]
    assert int(found[3]) / 6 == pytest.approx(provenance["metrics"]["false_rejection_rate"])
    assert re.fullmatch(
        r"A bot that asks back \(predict --ask\) asks about \d+ to \d+ of 100 known .* of 100 open ones\.", lines[10]
    )
    assert lines[11] == "(Tested on 8 texts that it was not trained on; --report prints all results.)"
    assert lines[13] == f"The model is in {folder}; label lines with: skellipsoid predict --model {folder}"
    # The model that is kept and that of the test embed each text once.
    # A bar is one line, whatever the number of its updates.
    assert sum("embedding: 100%" in line for line in err.split("\n")) == 1
    assert loaded["enc"].verbose == 0


_OF_100 = "Of 100 known texts {} are right, {} wrong, {} handed over; "


@pytest.mark.parametrize(
    ("known", "opened", "sentence"),
    [
        ((80, 8, 28), (91, 10), _OF_100.format(69, 7, 24) + "of 100 open ones 90 are detected."),
        ((40, 40, 40), (0, 0), _OF_100.format(34, 33, 33) + "how many open ones are detected is not tested."),
        ((0, 0, 0), (0, 101), "Of 100 open texts 0 are detected."),
    ],
)
def test_one_sentence_for_a_manager(known, opened, sentence):
    truth, predicted = np.repeat(["a", "-1"], [sum(known), sum(opened)]), ["a", "b", "-1", "-1", "a"]
    assert summarize(truth, np.repeat(predicted, [*known, *opened]), "-1") == sentence


def test_demo_of_copies_does_not_flatter_itself(tiny_command, texts, labels, tmp_path, capsys):
    path = write(tmp_path, written([*zip(texts, labels, strict=True)] * 3, "\t"), "copies.tsv")
    assert tiny_command(["demo", "alarm", "--data", str(path), "--report"]) == 0
    out, err = capsys.readouterr()
    # Two of the eight texts of each of four intents, in three copies each.
    assert "3 known intents, 54 training texts, 24 test texts (6 open)" in out
    assert "4 labels have equal texts, each of which counts once: nothing to do." in err
    # Nor is one text shown twice as the reason of an answer.
    first, second = out.splitlines()[1:3]
    assert first == "    nearest training text: 'alarm' (alarm)"
    assert "'alarm'" not in second


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        # A fifth of two intents cannot be held out as open.
        ([*range(0, 32, 4), *range(1, 32, 4)], ["Open rejection is not measured, because no test text is open"]),
        # An intent of a single text.
        ([*range(0, 32, 4), *range(1, 32, 4), 2], ["Not tested: intent 'light', because its only text trains."]),
        ([*range(0, 32, 4)], ["1 known intents, 6 training texts, 2 test texts (0 open)"]),
        ([0, 1, 2], ["Not tested: intents 'alarm', 'balance', 'light'", "There is no report, because no text is left"]),
    ],
)
def test_demo_trains_on_what_there_is_and_says_what_it_cannot_report(
    tiny_command, texts, labels, tmp_path, capsys, rows, lines
):
    path = write(tmp_path, written([(texts[i], labels[i]) for i in rows], "\t"), "few.tsv")
    assert tiny_command(["demo", "alarm", "--data", str(path), "--save", str(tmp_path / "model"), "--report"]) == 0
    out, err = capsys.readouterr()
    for line in lines:
        assert line in out
    assert ("false rejection rate" in out) == (len(rows) > 3)
    assert load(tmp_path / "model").classes_.tolist() == sorted(set(labels[rows].tolist()))
    # Warnings are sentences, without the place in the code.
    assert ".py" not in err


@pytest.mark.slow
def test_demo_with_the_shipped_corpus_and_the_real_model(minilm, capsys, give_input):
    give_input()
    assert main(["demo", "--report"]) == 0
    out = capsys.readouterr().out
    assert "28 known intents, 672 training texts, 448 test texts (168 open)" in out
    rows = {line.split("  ")[0].strip(): line.split() for line in map(str.strip, out.splitlines()) if line}
    # Of 29 answers; K+1 macro F1, and the share of open requests that are recognised.
    assert float(rows["macro avg"][4]) > 0.6
    assert float(rows["open rejection rate"][3]) > 0.6
    assert "'who won the match last night': open\n    nearest training text: " in out
    assert "'where is my parcel': track_parcel\n    nearest training text: 'track my parcel' (track_parcel)\n" in out


# A real terminal


@pytest.mark.parametrize("end", ["\n", ""])
def test_demo_asks_for_more_where_there_is_a_terminal(tiny_command, table, capsys, give_input, end):
    give_input(f"  wake me early  \nplay jazz\n{end}never read\n" if end else "x y\n", terminal=True)
    assert tiny_command(["demo", "--data", str(table)]) == 0
    asked = capsys.readouterr().out.partition("Type a sentence (an empty line ends):")[2]
    for sentence in ["wake me early", "play jazz"] if end else ["x y"]:
        assert f"> {sentence!r}: " in asked
    assert "never read" not in asked
