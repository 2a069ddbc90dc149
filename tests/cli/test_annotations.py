"""Exports of tools of annotation, as Prodigy, Label Studio and Argilla write them, are read by their own fields."""

import json

import pytest
from file_helpers import ROWS, numbers_of, read, refused, write, written

NOTES = [("sing a song", "joke"), ("what now", "light")]


def prodigy(text, labels, answer="accept", **more):
    """One task of textcat.manual, as db-out writes it."""
    options = [{"id": label, "text": label.title()} for label in ("alarm", "light", "joke")]
    hashes = {"_input_hash": hash(text), "_task_hash": -hash(text), "_is_binary": False}
    given = {"options": options, "_view_id": "choice", "accept": labels, "config": {"choice_style": "single"}}
    return {"text": text, "meta": {"source": "chat"}, **hashes, **given, "answer": answer, "_timestamp": 1, **more}


def binary(text, label, answer="accept"):
    """One task of textcat.teach: does this label fit?"""
    return {"text": text, "_input_hash": 1, "_task_hash": 2, "label": label, "score": 0.6, "answer": answer}


def task(number, text, *annotations, **data):
    """One task of Label Studio's format JSON; an annotation is its choices, ``None`` a cancelled one."""
    part = {"id": "a", "from_name": "sentiment", "to_name": "text", "type": "choices", "origin": "manual"}
    given = []
    for i, choices in enumerate(annotations):
        result = [part | {"value": {"choices": choices or ["joke"]}}]
        more = {"was_cancelled": choices is None, "ground_truth": False, "lead_time": 4.2}
        given.append({"id": 100 * number + i, "completed_by": i, "result": result, **more})
    counts = {"total_annotations": len(given), "cancelled_annotations": 0, "project": 3, "updated_by": 1}
    own = {"drafts": [], "predictions": [], "data": {"text": text, **data}, "meta": {}, "created_at": "2026-01-02"}
    return {"id": number, "annotations": given, "file_upload": "a.csv", **own, **counts, "comment_authors": []}


def minimal(number, text, label):
    """One row of Label Studio's format JSON-MIN."""
    more = {"annotator": 1, "annotation_id": number, "created_at": "2026", "updated_at": "2026", "lead_time": 1.5}
    return {"text": text, "channel": "mail", "id": number, "choice": label, **more}


def record(text, *answers, **more):
    """One record of Argilla 2, of ``records.to_json``."""
    responses = {"label": [{"value": answer, "user_id": "5f"} for answer in answers]} if answers else {}
    suggestions = {"label": {"value": "joke", "score": 0.4, "agent": "model"}}
    own = {"metadata": {"channel": "mail"}, "suggestions": suggestions, "responses": responses, "vectors": {}}
    return {"id": f"id {text}", "fields": {"text": text, **more}, **own, "status": "completed", "_server_id": "b"}


def flat(text, answers, states):
    """One record of Argilla 2, of ``records.to_list(flatten=True)`` or ``to_datasets``."""
    more = {"label.suggestion": "joke", "label.suggestion.score": 0.4, "label.suggestion.agent": "model"}
    given = {"label.responses": answers, "label.responses.users": ["5f"] * 2, "label.responses.status": states}
    return {"id": text, "status": "completed", "_server_id": "b", "text": text, **given, **more}


def old(text, label, status="Validated"):
    """One record of Argilla 1, for text classification."""
    guess = {"prediction": [["joke", 0.9]], "prediction_agent": "model"}
    given = {"annotation": label, "annotation_agent": "argilla", "multi_label": False, "status": status}
    return {"text": text, "inputs": {"text": text}, **guess, **given, "id": text, "metadata": {}, "event_timestamp": 1}


def feedback(text, *answers):
    """One record of Argilla 1's FeedbackDataset."""
    given = [{"user_id": "5f", "value": answer, "status": "submitted"} for answer in answers]
    guess = {"label-suggestion": "joke", "label-suggestion-metadata": {"type": "model"}}
    return {"text": text, "label": given, **guess, "external_id": text, "metadata": "{}"}


#: Columns of a tool, records with one label in order, then one that is left out and one with two labels.
EXPORTS = {
    "Prodigy": (
        ("text", "accept"),
        [prodigy(text, [label]) for text, label in ROWS],
        [prodigy(NOTES[0][0], ["joke"], "reject"), prodigy(NOTES[1][0], ["light", "alarm"])],
    ),
    "Prodigy, yes or no": (
        ("text", "label"),
        [binary(text, label) for text, label in ROWS],
        [binary(NOTES[0][0], "joke", "ignore"), binary(NOTES[1][0], ["light", "alarm"])],
    ),
    "Label Studio": (
        ("data.text", "annotations.sentiment"),
        [task(i, text, [label]) for i, (text, label) in enumerate(ROWS)],
        [task(8, NOTES[0][0], None), task(9, NOTES[1][0], ["light", "alarm"])],
    ),
    "Label Studio, two people": (
        ("data.text", "annotations.sentiment"),
        [task(i, text, *[None, [label]][i % 2 :], [label]) for i, (text, label) in enumerate(ROWS)],
        [task(8, NOTES[0][0], None, None), task(9, NOTES[1][0], ["light"], ["alarm"])],
    ),
    "Label Studio, minimal": (
        ("text", "choice"),
        [minimal(i, text, label) for i, (text, label) in enumerate(ROWS)],
        [minimal(8, NOTES[0][0], None), minimal(9, NOTES[1][0], {"choices": ["light", "alarm"]})],
    ),
    "Argilla": (
        ("fields.text", "responses.label"),
        [record(text, label) for text, label in ROWS],
        [record(NOTES[0][0]), record(NOTES[1][0], "light", "alarm")],
    ),
    "Argilla, flat": (
        ("text", "responses.label"),
        [flat(text, ["joke", label], ["discarded", "submitted"]) for text, label in ROWS],
        [flat(NOTES[0][0], ["joke"], ["discarded"]), flat(NOTES[1][0], ["light", "alarm"], ["submitted"] * 2)],
    ),
    "Argilla 1": (
        ("text", "annotation"),
        [old(text, label) for text, label in ROWS],
        [old(NOTES[0][0], "joke", "Discarded"), old(NOTES[1][0], ["light", "alarm"])],
    ),
    "Argilla 1, feedback": (
        ("text", "responses.label"),
        [feedback(text, label, label) for text, label in ROWS],
        [feedback(NOTES[0][0]), feedback(NOTES[1][0], "light", "alarm")],
    ),
}


def wrote(tmp_path, records, name):
    is_array = name.endswith(".json")
    return write(tmp_path, json.dumps(records) if is_array else "\n".join(map(json.dumps, records)), name)


@pytest.mark.parametrize("name", ["export.json", "export.jsonl"])
@pytest.mark.parametrize("tool", EXPORTS)
def test_the_export_of_a_tool_is_read_by_its_own_fields(tmp_path, tool, name):
    (text, label), kept, left_out = EXPORTS[tool]
    path = wrote(tmp_path, [left_out[0], *kept, left_out[1]], name)
    rows, said = read(path)
    assert rows == ROWS
    assert numbers_of(path)[0] == [2, 3, 4, 5]
    assert f"texts from column {text!r}, labels from column {label!r} (guessed" in said[0]
    several = f"1 row of {str(path)!r} has several labels, of one annotator or of several who disagree: they are"
    assert sum(line.startswith(several) for line in said) == 1
    assert sum("(line 1)" in line or "(record 1)" in line for line in said) == 1  # rejected, or no label


def test_rows_of_label_studio_as_csv(tmp_path):
    names = list(minimal(1, "", ""))
    rows = [minimal(i, text, label) for i, (text, label) in enumerate(ROWS)]
    rows.append(minimal(9, NOTES[1][0], '{"choices": ["light", "alarm"]}'))
    for delimiter, name in ((",", "project-3.csv"), ("\t", "project-3.tsv")):
        table = written([names, *(row.values() for row in rows)], delimiter)
        found, said = read(write(tmp_path, table, name))
        assert found == ROWS
        assert any("several labels" in line for line in said)


def test_of_two_questions_the_user_chooses_one(tmp_path):
    records = [task(i, text, [label], subject="hi there") for i, (text, label) in enumerate(ROWS)]
    for i, record in enumerate(records):  # neither name is usual
        (one,) = record["annotations"][0]["result"]
        other = one | {"from_name": "urgency", "value": {"choices": [str(i % 2)]}}
        record["annotations"][0]["result"] = [other, one | {"from_name": "choice"}]
    path = wrote(tmp_path, records, "export.json")
    other = r"'annotations.urgency' .such as '0'"
    message = rf"holds the labels; choose with --label-column from \d+ {other}., \d+ 'annotations.choice' .such as 'al"
    refused(message, path)
    chosen, _ = read(path, label_column="annotations.urgency")
    assert chosen == [(text, str(i % 2)) for i, (text, _) in enumerate(ROWS)]
