"""Promise: ``predict --out`` answers each file once, whole or not at all, and goes on where it was interrupted."""

import json
import os
import re
import time

import pandas as pd
import pytest
from command_helpers import done, fails

from skellipsoid import SupConTextEncoder
from skellipsoid.cli import main


@pytest.fixture
def parts(tmp_path, texts):
    """Three parquet files of texts, the last one empty; a pattern that names them."""
    folder = tmp_path / "data"
    folder.mkdir()
    for i, chunk in enumerate((texts[:20], [*texts[20:], "emoji 🚚\nsecond line"], [])):
        frame = pd.DataFrame({"id": range(len(chunk)), "text": pd.Series(chunk, dtype=object)})
        frame.to_parquet(folder / f"part-{i}.parquet")
    return folder / "part-*.parquet"


@pytest.fixture
def words(saved, parts, tmp_path):
    """Words of the command that answers the files into a folder."""
    return ["predict", "--model", saved, "--data", parts, "--text-column", "text", "--out", tmp_path / "out"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_goes_on_with_files_that_are_new_or_changed(words, parts, tmp_path, capsys):
    out, path = tmp_path / "out", parts.parent / "part-2.parquet"
    (parts.parent / "part-3.parquet").write_bytes((parts.parent / "part-0.parquet").read_bytes())
    pd.DataFrame({"text": ["wake me at six"]}).to_parquet(path)
    done(capsys, *words, "--json")
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    (out / "part-1.parquet.jsonl").unlink()
    # Of the same size and time, but of another content; and of another time, but of the same content.
    size, times = path.stat().st_size, (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    pd.DataFrame({"text": ["wake me at ten"]}).to_parquet(path)
    os.utime(path, ns=times)
    assert path.stat().st_size == size
    later = time.time() + 10
    os.utime(parts.parent / "part-3.parquet", (later, later))
    said = f"The predictions for 2 files are in {out}; 2 had their predictions already\n"
    assert done(capsys, *words, "--json").endswith(said)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert {name for name in before if before[name] != after[name]} == {"part-1.parquet.jsonl", "part-2.parquet.jsonl"}
    # A file that is as it was before the last run has its answers of the first one no more.
    for text in ("wake me at ten", "wake me at six"):
        pd.DataFrame({"text": [text]}).to_parquet(path)
        done(capsys, *words, "--json")
        record = json.loads((out / "part-2.parquet.jsonl").read_text(encoding="utf-8"))
        assert (list(record), record["text"]) == (["label", "text"], text)


@pytest.mark.parametrize("damage", ["cut", "edited", "without a record"])
def test_answers_that_are_not_as_they_were_written_are_refused(damage, words, tmp_path, capsys):
    done(capsys, *words)
    path, record = tmp_path / "out" / "part-0.parquet.tsv", tmp_path / "out" / "predict.answered"
    content = path.read_bytes()
    if damage == "without a record":
        record.write_text("".join(record.read_text().splitlines(keepends=True)[2:]))
    else:
        path.write_bytes(content[:-30] if damage == "cut" else content[:-1] + b"x")
    found = f"is not as predict wrote it ({path.stat().st_size} bytes; it was cut off or edited)"
    remedy = "remove it to predict its texts again, or move it elsewhere."
    assert fails(capsys, *words) == f"skellipsoid: {str(path)!r} {found}; {remedy}\n"
    path.unlink()
    done(capsys, *words)
    assert path.read_bytes() == content


def test_files_that_cannot_be_told_apart_or_are_not_there_are_refused(saved, tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.txt").write_text("where is my parcel\n")
    command = ["predict", "--model", saved, "--out", tmp_path / "out"]
    said = fails(capsys, *command, "--data", tmp_path / "*" / "part.txt")
    assert "have the same name, and the predictions for both would be in one file" in said
    for one, other in (("a.json", "a.jsonl"), ("B.txt", "b.txt")):
        (tmp_path / "c").mkdir(exist_ok=True)
        for name in (one, other):
            (tmp_path / "c" / name).write_text('{"text": "where is my parcel"}\n' if "json" in name else "where\n")
        both = tmp_path / "c" / f"[{one[0]}{other[0]}].*"
        assert "differ too little in their names" in fails(capsys, *command, "--keep-columns", "--data", both)
    said = fails(capsys, *command, "--data", tmp_path / "none-*.txt")
    assert "names no file; pass a file or a pattern in quotes" in said
    assert "--out takes the predictions for the files of --data" in fails(capsys, *command)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(words, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    assert "is not empty, and holds no predictions of predict --out; choose a new folder." in fails(capsys, *words)
    assert names(tmp_path / "out") == ["mine.txt"]


def test_an_interrupted_run_leaves_whole_files_alone(words, texts, tmp_path, monkeypatch, capsys):
    transform = SupConTextEncoder.transform

    def interrupted(encoder, X):
        if X[0] == texts[20]:  # of the second file
            raise KeyboardInterrupt
        return transform(encoder, X)

    monkeypatch.setattr(SupConTextEncoder, "transform", interrupted)
    assert main(list(map(str, words))) == 130
    assert names(tmp_path / "out") == ["part-0.parquet.tsv", "predict.answered", "predict.json"]
    monkeypatch.undo()
    done(capsys, *words)
    assert len(names(tmp_path / "out")) == 5


def test_answers_of_another_model_are_not_mixed(words, tmp_path, capsys):
    done(capsys, *words)
    request = tmp_path / "out" / "predict.json"
    request.write_text(request.read_text().replace('"model_sha256": "', '"model_sha256": "0'))
    said = fails(capsys, *words)
    assert re.search("--out '.*out' holds predictions of another model; choose a new folder", said)
    request.write_text("{")
    fails(capsys, *words)
