"""Promise: ``predict --keep-columns`` gives the rows of a file back as they are, with the answers beside them."""

import csv
import io
import json

import file_helpers
import numpy as np
import pandas as pd
import pytest
from command_helpers import done, fails

from skellipsoid import explain, load, save

SCORES = ["answer", "margin", "p_value", "nearest_class"]
ADDED = [*SCORES, "nearest_text", "nearest_text_label"]
HEADER = ["id", " message", "when", "note"]
ROWS = [
    ["007", "wake me at six", "2024-03-01", "a, b"],
    ["008", " rain;\ntomorrow", "", 'say "hi" '],
    ["009", "tell a joke", "2024-03-03", "\x1b[2Jé"],
]


@pytest.fixture(scope="module")
def keeping(fit_model, tmp_path_factory):
    """A model that keeps its training texts."""
    folder = tmp_path_factory.mktemp("keeping") / "model"
    save(fit_model(finetune="none", keep_texts=True), folder)
    return folder


def write(path, rows, delimiter=","):
    return file_helpers.write(path.parent, file_helpers.written(rows, delimiter), path.name)


def answered(capsys, model, path, *options):
    return done(capsys, "predict", "--model", model, "--data", path, "--keep-columns", "--quiet", *options)


def expected(model, n_neighbors=1):
    """What is added to the three rows."""
    texts = [row[1].strip() for row in ROWS]
    why = explain(load(model), texts, n_axes=0, n_neighbors=n_neighbors)
    columns = [why.answer, np.round(why.margin.astype(float), 4), np.round(why.p_value, 4), why.nearest_class]
    if n_neighbors:
        columns += [why.neighbor_1, why.neighbor_label_1]
    return [list(map(str, values)) for values in zip(*columns, strict=True)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_keeps_its_cells_its_delimiter_and_its_header(keeping, tmp_path, capsys, delimiter):
    path = write(tmp_path / "mine.csv", [HEADER, *ROWS], delimiter)
    found = list(csv.reader(io.StringIO(answered(capsys, keeping, path), newline=""), delimiter=delimiter))
    assert found[0] == ["id", "message", "when", "note", *ADDED]
    assert found[1:] == [row + more for row, more in zip(ROWS, expected(keeping), strict=True)]


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.json"])
def test_records_keep_their_values(keeping, tmp_path, capsys, name):
    records = [{"id": i, "text": row[1], "meta": {"a": [1, None]}, "cost": 0.1} for i, row in enumerate(ROWS)]
    lines = map(json.dumps, records)
    (tmp_path / name).write_text("\n".join(lines) if name.endswith("l") else json.dumps(records), encoding="utf-8")
    found = [json.loads(line) for line in answered(capsys, keeping, tmp_path / name).splitlines()]
    assert [list(record) for record in found] == [["id", "text", "meta", "cost", *ADDED]] * 3
    assert [{key: record[key] for key in records[0]} for record in found] == records
    assert [[str(record[key]) for key in ADDED] for record in found] == expected(keeping)


def test_parquet_keeps_its_types(keeping, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"n": pd.array([1, None, 3], dtype="Int64"), "text": [row[1] for row in ROWS]})
    frame["when"] = pd.to_datetime(["2024-03-01", None, "2024-03-03"])
    frame.to_parquet(tmp_path / "mine.parquet")
    path = tmp_path / "out" / "mine.parquet"
    assert f"are in {path.parent}" in answered(capsys, keeping, tmp_path / "mine.parquet", "--out", path.parent)
    found = pd.read_parquet(path)
    pd.testing.assert_frame_equal(found[["n", "text", "when"]], frame)
    assert [list(map(str, row)) for row in found[ADDED].to_numpy().tolist()] == expected(keeping)
    out = tmp_path / "open"
    answered(capsys, keeping, tmp_path / "mine.parquet", "--out", out, "--open-only")
    is_open = found.answer == "-1"
    assert pd.read_parquet(out / path.name).n.tolist() == found.n[is_open].tolist()
    frame.assign(text="wake me at six").to_parquet(tmp_path / "known.parquet")
    answered(capsys, keeping, tmp_path / "known.parquet", "--out", out, "--open-only")
    empty = pd.read_parquet(out / "known.parquet")
    assert (len(empty), empty.dtypes.to_dict()) == (0, found.dtypes.to_dict())
    for text in ("wake me at six", "tell a joke"):  # answered, so that nothing is offered, or asked about
        frame.assign(text=text).to_parquet(tmp_path / "asked.parquet")
        frame.assign(text=text).to_json(tmp_path / "asked.jsonl", orient="records", lines=True, date_format="iso")
        for name in ("asked.parquet", "asked.jsonl"):
            answered(capsys, keeping, tmp_path / name, "--ask", "--out", tmp_path / text)
        asked = pd.read_parquet(tmp_path / text / "asked.parquet")
        lines = (tmp_path / text / "asked.jsonl").read_text(encoding="utf-8").splitlines()
        names = ["action", "candidate_1", "candidate_2", "candidate_3"]
        told = asked[names].astype(object).where(asked[names].notna(), None)
        assert told.to_numpy().tolist() == [[json.loads(line)[name] for name in names] for line in lines]
    said = fails(capsys, "predict", "--model", keeping, "--data", tmp_path / "mine.parquet", "--keep-columns")
    assert "--keep-columns writes parquet to files alone; pass --out with a folder" in said


def test_files_of_a_folder_keep_their_format_and_the_run_goes_on(saved, tmp_path, capsys):
    write(tmp_path / "a.csv", [HEADER, *ROWS], ";")
    (tmp_path / "b.json").write_text(json.dumps([{"text": "rain"}]), encoding="utf-8")
    (tmp_path / "c.log").write_text("wake me, please\n", encoding="utf-8")
    out = tmp_path / "out"
    for said in ("", "; 3 had their predictions already"):
        assert answered(capsys, saved, tmp_path / "*.*", "--out", out).endswith(f"are in {out}{said}\n")
    names = sorted(path.name for path in out.iterdir())
    assert names == ["a.csv", "b.jsonl", "c.log", "predict.answered", "predict.json"]
    assert (out / "a.csv").read_text(encoding="utf-8").startswith(";".join(["id", "message", "when", "note", *SCORES]))
    assert (out / "c.log").read_text(encoding="utf-8").startswith("wake me, please\t")
    said = fails(capsys, "predict", "--model", saved, "--data", tmp_path / "*.csv", "--out", out)
    assert "holds predictions of other options" in said


def test_the_labelling_queue_holds_open_texts_alone(saved, texts, open_texts, tmp_path, capsys, give_input):
    lines = [*texts, *open_texts]
    is_open = load(saved).predict(lines) == "-1"
    assert 0 < is_open.sum() < len(lines)
    wanted = [line for line, opened in zip(lines, is_open, strict=True) if opened]
    give_input("\n".join(lines))
    found = done(capsys, "predict", "--model", saved, "--open-only").splitlines()
    assert [line.split("\t")[-1] for line in found] == wanted
    path = write(tmp_path / "mine.csv", [["text", "row"], *((line, i) for i, line in enumerate(lines))])
    rows = list(csv.DictReader(io.StringIO(answered(capsys, saved, path, "--open-only"))))
    assert [int(row["row"]) for row in rows] == np.flatnonzero(is_open).tolist()
    path = write(tmp_path / "known.csv", [["text", "row"], (lines[int(np.argmin(is_open))], 0)])
    assert answered(capsys, saved, path, "--open-only") == f"text,row,{','.join(SCORES)}\n"


def test_what_cannot_be_kept_is_one_sentence(saved, tmp_path, capsys):
    path = write(tmp_path / "mine.csv", [["text", "answer"], ("rain", "old")])
    words = ["predict", "--model", str(saved), "--keep-columns", "--quiet"]
    for options, sentence in (
        (["--data", path, "--json"], "--keep-columns writes all scores in the format of the file; leave --json out."),
        (["--data", path], "has a column 'answer' already, which the predictions need; rename it in the file."),
        ([], "--keep-columns keeps the columns of the file of --data"),
    ):
        assert sentence in fails(capsys, *words, *options)


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.txt", "wake me\n\n  \nrain\n\n", ["wake me", "", "  ", "rain"]),
        ("a.tsv", "text\nwake me\n\nrain\n", ["text", "wake me", "", "rain"]),
        ("a.csv", "id,text\n1,wake me\n\n2,\n3,rain\n", ["id,text", "1,wake me", ",", "2,", "3,rain"]),
        ("a.jsonl", '{"text": "wake me"}\n{"text": null}\n{}\n', ['{"text": "wake me"', *['{"text": null'] * 2]),
    ],
)
def test_every_row_stays_in_its_place_also_an_empty_one(keeping, tmp_path, capsys, name, content, rows):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    lines = answered(capsys, keeping, path).splitlines()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.startswith(row)
