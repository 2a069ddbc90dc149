"""Files that people have: records of JSON and parquet, and logs; what is read, what is said."""

import errno
import json
import os
import sys

import pandas as pd
import pytest
from file_helpers import ROWS, guessed, read, refused, texts_of, write

# JSON and parquet


RECORDS = [{"id": i, "message": text, "meta": {"a": [1]}, "category": label} for i, (text, label) in enumerate(ROWS)]


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.ndjson", "mine.JSON"])
def test_json_lines_and_arrays(tmp_path, name):
    said = guessed("'message'", "'category'", header=0)
    lines = "\n\n".join(json.dumps(record) for record in RECORDS)
    assert read(write(tmp_path, "\ufeff" + lines, name)) == (ROWS, said)
    assert read(write(tmp_path, json.dumps(RECORDS, ensure_ascii=False, indent=1), name)) == (ROWS, said)


def test_json_values(tmp_path):
    lines = ['{"text": "hi", "label": 1}', '{"label": -1.0, "text": " ho"}']
    lines += ['{"text": "he", "label": null}', '{"text": 7, "label": Infinity}']
    rows, said = read(write(tmp_path, "\n".join(lines), "mine.jsonl"))
    assert rows == [("hi", "1"), ("ho", "-1")]
    assert "(lines 3, 4)" in said[0]
    rows, said = read(write(tmp_path, f"[{','.join(lines)}]", "mine.json"))
    assert rows == [("hi", "1"), ("ho", "-1")]
    assert "(records 3, 4)" in said[0]


NO_TABLES = [
    ('{"text": "hi"}\n{"text": \n', "Line 2 of .* is no JSON object .*; write one object on each line, or an array"),
    ("[1, 2]", "Record 1 of .* is a number, but must be a JSON object with a text and a label; correct it"),
    ('{"text": "a", "label": "b"}\n["a", "b"]', "Line 2 of .* is an array, but must be a JSON object"),
    ('[{"text": "a"}', "is no JSON array .*; pass an array of objects, or one object on each line"),
    ('{"text": "a"}', "has one column, 1 'text' .such as 'a'., but a text and a label are needed; add a column"),
    ('{"text": "a", "label": ["b", "c"]}', "Column 'label' of .* holds a list in line 1, but a text or a label is"),
]


@pytest.mark.parametrize(("content", "sentence"), NO_TABLES)
def test_json_that_is_no_table_is_one_sentence(tmp_path, content, sentence):
    refused(sentence, write(tmp_path, content, "mine.jsonl"))


def test_parquet(tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    path = tmp_path / "mine.parquet"
    rows = [*ROWS, (None, "light")]
    polars.DataFrame(rows, schema=["message", "category"], orient="row").with_row_index("id").write_parquet(path)
    rows, said = read(path)
    assert rows == ROWS
    assert said[:1] == guessed("'message'", "'category'", header=0)
    assert "1 row has no text" in said[1]
    assert "(record 5)" in said[1]
    with pytest.raises(ValueError, match=r"cannot be read as parquet .*; take a complete copy of it, or save it as C"):
        read(write(tmp_path, b"PAR1", "cut.parquet"))
    with pytest.raises(OSError, match=rf"cannot be read \({os.strerror(errno.ENOENT)}\); pass a file of texts and lab"):
        read(tmp_path / "no.parquet")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"is parquet, which needs pandas with pyarrow, or polars; install one, or"):
        read(path)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_large_numbers_of_parquet_stay_exact_or_are_refused(tmp_path, monkeypatch, library):
    polars = pytest.importorskip("polars")
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    texts, ids = [text for text, _ in ROWS], [2**60 + i for i in range(len(ROWS))]
    frame = polars.DataFrame({"text": [*texts, "no label"], "label": [*ids, None]})
    frame.write_parquet(tmp_path / "mine.parquet")
    assert read(tmp_path / "mine.parquet")[0] == [(text, str(label)) for text, label in zip(texts, ids, strict=True)]
    frame.with_columns(polars.col("label").cast(polars.Float64)).write_parquet(tmp_path / "rounded.parquet")
    refused(r"'label' of .* holds the float 1\.152921504606847e\+18 in record 1, but", tmp_path / "rounded.parquet")


# Files that nobody here shaped


@pytest.mark.parametrize("name", ["log.txt", "log.LOG"])
def test_a_log_is_read_as_lines(tmp_path, name):
    lines = ["well, well, well", "", 'a "quoted, word', "öl; 3,50", '"whole, line"', " spaces ", "my\taccount"]
    path = write(tmp_path, "\r\n".join(lines), name)
    found, said = texts_of(path)
    assert found == [line for line in lines if line]
    assert said == [f"line 2 of {str(path)!r} is empty and is left out."]
    # With tabs in all lines, or a named column, it is a table.
    found, said = texts_of(write(tmp_path, "".join(f"{text}\t{label}\n" for text, label in ROWS), name))
    assert found == [text for text, _ in ROWS]
    assert said[0].startswith("texts from column number 1 (guessed")
    path = write(tmp_path, "what,of\nup at six,alarm\n", name)
    assert texts_of(path, text_column="what") == (["up at six"], [])


# Exports of logs


@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv"])
def test_empty_cells_at_the_end_of_a_row_may_be_missing_or_too_many(tmp_path, name):
    delimiter = "\t" if name == "mine.tsv" else ","
    rows = [["id", "message", "category", "note"], ["1", "wake me", "alarm"], ["2", "lights", "light", "", "", ""]]
    found, said = read(write(tmp_path, "".join(delimiter.join(row) + "\n" for row in rows), name))
    assert found == [("wake me", "alarm"), ("lights", "light")]
    assert any("ends before the last column" in warning and warning.startswith("Line 2 of ") for warning in said)
    path = write(tmp_path, "".join(delimiter.join(row) + "\n" for row in [*rows, ["3", "up", "alarm", "", "x"]]), name)
    refused(r"Line 4 .* with 5 fields, but line 1 has 4", path)


@pytest.mark.parametrize(("classes", "expected"), [(["1.0", "1.5"], ["1.0", "2"]), ([], ["1", "2"])])
def test_labels_of_a_model_are_read_as_they_are(tmp_path, classes, expected):
    rows = [{"text": "wake me", "label": 1.0}, {"text": "dim it", "label": 2.0}]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    pd.DataFrame(rows).to_parquet(tmp_path / "mine.parquet")
    for name in ("mine.json", "mine.parquet"):
        assert [label for _, label in read(tmp_path / name, kept=classes)[0]] == expected


# Promise: of nested records the paths are named, nothing in a list is lost, and a log of lines with times is said


def lines(path, *records):
    return write(path.parent, "".join(f"{json.dumps(record)}\n" for record in records), path.name)


def test_paths_of_elasticsearch(tmp_path):
    hit = {"_source": {"event": {"message": "hi"}, "intent": "greet"}, "fields": {"event.nlu.message": ["hi"]}}
    path = lines(tmp_path / "es.jsonl", hit, hit)
    with pytest.raises(ValueError, match=r"a dict in line 1, .*; name a path into it instead, such as '_source\.ev"):
        texts_of(path, text_column="_source")
    assert texts_of(path, text_column="_source.event.message") == (["hi", "hi"], [])
    assert texts_of(path, text_column="fields.event.nlu.message") == (["hi", "hi"], [])
    assert texts_of(path, text_column="fields.event.nlu.message.0") == (["hi", "hi"], [])
    with pytest.raises(ValueError, match=r"1 '_source' \(an object\), 2 'fields' \(an object\)"):
        texts_of(path, text_column="message")


def test_a_path_into_one_record_of_a_list_counts_the_others(tmp_path):
    said = [{"said": {"text": text}, "intent": "greet"} for text in ("hi", "hey", "hello")]
    path = lines(tmp_path / "export.jsonl", {"utterances": said})
    with pytest.raises(ValueError, match=r"'utterances\.0\.said\.text' takes one of the 3 objects of the list 'u"):
        read(path, "utterances.0.said.text", "utterances.0.intent")
    refused(r"1 'utterances' \(a list\)", path)


def test_cats_of_spacy_are_refused_with_the_page_that_reads_them(tmp_path):
    cats = [{"greet": 1.0, "bye": 0.0}, {"greet": 0, "bye": 1}]
    records = [{"text": f"text number {i}", "cats": each} for i, each in enumerate(cats)]
    with pytest.raises(ValueError, match=r"name of the one that is 1 \(the page 'Coming from something else'"):
        read(lines(tmp_path / "cats.jsonl", *records))
    (tmp_path / "cats.json").write_text(json.dumps([[each["text"], {"cats": each["cats"]}] for each in records]))
    refused(r"is an array with spaCy's cats \(the page 'Coming from something else'", tmp_path / "cats.json")


@pytest.mark.parametrize(
    "time", ["2026-11-02 10:00:00,123", "[10:00:00]", "02/Nov/2026:10:00:00 +0000", "2.11.2026, 10:00"]
)
def test_lines_that_begin_with_a_time_are_said(tmp_path, time):
    (tmp_path / "app.log").write_text(f"{time} INFO hi\n{time} INFO book a table\n", encoding="utf-8")
    assert "begins with a time, which is read as a part of the message" in texts_of(tmp_path / "app.log")[1][0]
    (tmp_path / "app.log").write_text(f"{time} INFO hi\nwake me at 10:00\n", encoding="utf-8")
    assert texts_of(tmp_path / "app.log")[1] == []
