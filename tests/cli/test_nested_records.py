"""Promise: of nested records the paths are named, nothing in a list is lost, and a log of lines with times is said."""

import json

import pytest
from file_helpers import read, texts_of


def lines(path, *records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


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
    with pytest.raises(ValueError, match=r"1 'utterances' \(a list\)"):
        read(path)


def test_cats_of_spacy_are_refused_with_the_page_that_reads_them(tmp_path):
    cats = [{"greet": 1.0, "bye": 0.0}, {"greet": 0, "bye": 1}]
    records = [{"text": f"text number {i}", "cats": each} for i, each in enumerate(cats)]
    with pytest.raises(ValueError, match=r"name of the one that is 1 \(the page 'Coming from something else'"):
        read(lines(tmp_path / "cats.jsonl", *records))
    (tmp_path / "cats.json").write_text(json.dumps([[each["text"], {"cats": each["cats"]}] for each in records]))
    with pytest.raises(ValueError, match=r"is an array with spaCy's cats \(the page 'Coming from something else'"):
        read(tmp_path / "cats.json")


@pytest.mark.parametrize(
    "time", ["2026-11-02 10:00:00,123", "[10:00:00]", "02/Nov/2026:10:00:00 +0000", "2.11.2026, 10:00"]
)
def test_lines_that_begin_with_a_time_are_said(tmp_path, time):
    (tmp_path / "app.log").write_text(f"{time} INFO hi\n{time} INFO book a table\n", encoding="utf-8")
    assert "begins with a time, which is read as a part of the message" in texts_of(tmp_path / "app.log")[1][0]
    (tmp_path / "app.log").write_text(f"{time} INFO hi\nwake me at 10:00\n", encoding="utf-8")
    assert texts_of(tmp_path / "app.log")[1] == []
