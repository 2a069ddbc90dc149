"""Promise: labels, texts and names that a terminal would obey are printed harmless, by every command."""

import json
import sys

import pytest

from skellipsoid.cli import main

#: What a terminal obeys, or writes from the right; and what it does not.
OBEYED = "wake\x1b[2J me\x9b2J\x07\x00\x7f at \u202exis\u2066\u200f\u061c\u2028"
HARMLESS = "\u00a0nbsp a\u200db \U0001f469\u200d\U0001f4bb \ue000 ü"
#: As JSON writes them.
ESCAPED = r"wake\u001b[2J me\u009b2J\u0007\u0000\u007f at \u202exis\u2066\u200f\u061c\u2028"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_texts_that_a_terminal_would_obey_are_escaped_there_alone(saved, give_input, capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    given = f"{OBEYED}\t{HARMLESS}"
    shown = f"{ESCAPED}\t{HARMLESS}" if is_terminal else given
    give_input(given)
    assert main(["predict", "--model", str(saved)]) == 0
    assert capsys.readouterr().out.partition("\t")[2] == f"{shown}\n"
    give_input(given)
    assert main(["predict", "--model", str(saved), "--json"]) == 0
    line = capsys.readouterr().out
    assert json.loads(line)["text"] == given
    assert ("\x9b" in line) == ("\u202e" in line) == (not is_terminal)


def test_reports_escape_texts_and_labels_everywhere(saved, tmp_path, texts, labels, tiny_command, give_input, capsys):
    path = tmp_path / "mine.jsonl"
    rows = zip(texts, labels, strict=True)
    rows = [{"text": f"{text} {OBEYED}", "label": f"{label}\x1b[2J\u202e"} for text, label in rows]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    printed = []
    for words in (
        ["train", "--data", path, "--save", tmp_path / "model", "--report", "--finetune", "none"],
        ["demo", OBEYED, "--data", path, "--report"],
        ["predict", "--model", tmp_path / "model", "--scores", "wake me at six"],
        ["evaluate", "--model", saved, "--data", path],
        ["compare", "--before", saved, "--after", tmp_path / "model", "--data", path],
        ["traffic", "--model", tmp_path / "model", "--data", path, "--save", tmp_path / "groups.tsv"],
        ["merge", "--model", tmp_path / "model", "--labels", "alarm\x1b[2J\u202e", "--into", "\x1b[2J\u202ewake"],
        ["remove", "--model", tmp_path / "model", "--labels", "light\x1b[2J\u202e"],
        ["remove", "--model", tmp_path / "model", "--labels", "none \x1b[2J\u202e"],
    ):
        assert tiny_command([str(word) for word in words]) == (2 if str(words[-1]).startswith("none ") else 0), words
        printed.append("".join(capsys.readouterr()))
        assert not {"\x1b", "\x9b", "\u202e", "\u2066"} & set(printed[-1]), words
    assert sum(r"\u001b[2J\u202e" in part for part in printed) >= 5
