"""Promise: what a command says names only options that it has, and says each thing once and plainly.

``conftest.only_options_that_there_are`` checks what any test of the command makes it say.
"""

import shutil

import pytest
from file_helpers import write

from skellipsoid.cli import main

#: What is wrong with a file or an option of it, and a part of what is said.
ODD = {
    "no encoding": (["--encoding", "nope"], "--encoding 'nope' is not known"),
    "another encoding": ([], "name the encoding of the file with --encoding"),
    "no sheet": (["--sheet", "nope"], "--sheet"),
    "no column": (["--text-column", "nope"], "'nope'"),
    "no label column": (["--label-column", "nope"], "'nope'"),
    "a language": (["--language", "xx"], "--language"),
}


@pytest.mark.parametrize(("odd", "said"), ODD.values(), ids=ODD)
def test_each_command_that_reads_a_file_names_options_that_it_has(odd, said, saved, options_of, tmp_path, capsys):
    """The odd files and options go through all commands that can raise what is said of them."""
    shutil.copytree(saved, tmp_path / "model")
    path = write(tmp_path, "message,label\nwake me at six,alarm\nrain tomorrow,weather\n", "log.csv")
    if not odd:  # a few lines are of another encoding
        lines = [*("привет,свет\n".encode() for _ in range(28)), *[b"caf\xe9,alarm\n"] * 3]
        path.write_bytes(b"message,label\n" + b"".join(lines))
    model, raised = ["--model", str(tmp_path / "model")], set()
    more = {
        "compare": ["--before", model[1], "--after", model[1]],
        "review": [*model, "--save", str(tmp_path / "sheet.tsv")],
        "set-threshold": [*model, "--open-share", "0.2"],
        "train": ["--save", str(tmp_path / "new")],
        "demo": [],
    }
    for name, options in options_of.items():
        if "--data" in options and {*odd[:1]} <= options:
            words = [name, *more.get(name, model), "--data", str(path), *odd]
            assert main(words) == 2, words
            err = capsys.readouterr().err
            assert said in err or (name == "learn" and f"{odd[0]} is that of the log; pass --log" in err), words
            raised.add(name)
    assert len(raised) >= 3


@pytest.mark.parametrize("way", ["file", "rows", "input"])
def test_predict_says_that_a_file_is_empty(way, saved, tmp_path, capsys, give_input):
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    give_input(b"")
    words = {"file": ["--data", str(tmp_path / "empty.csv")], "input": []}
    words["rows"] = [*words["file"], "--keep-columns"]
    assert main(["predict", "--model", str(saved), *words[way]]) == 0
    out, err = capsys.readouterr()
    assert (out, err.count("holds no text, and nothing is predicted.")) == ("", 1)
