"""Finds texts and labels in exports of Prodigy, Label Studio and Argilla, by the fields that these tools write."""

from collections.abc import Iterable
from typing import Any

from .text_table import Table

_LABEL_STUDIO_ROW = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}
#: Argilla's status of a response that counts; exports without a status have only such.
_SUBMITTED = {None, "submitted"}


def read_annotations(table: Table) -> Table:
    """Name the columns of texts and labels of a tool's export; other tables come back as they are.

    What is inside of objects becomes a column: ``data.text`` and ``annotations.sentiment`` of Label Studio,
    ``fields.text`` and ``responses.label`` of Argilla. A label there is the list of the different responses that count.
    """
    for tell in (_prodigy, _label_studio, _label_studio_rows, _argilla, _argilla_rows, _argilla_1):
        if found := tell(table):
            return found
    return table


def _prodigy(table: Table) -> Table | None:
    """Take tasks of ``db-out``: a choice has its labels in ``accept``, a question of yes or no has one in ``label``."""
    choices = {"text", "answer", "accept", "options"}
    if not ({"text", "answer", "_task_hash"} <= {*table.names} or choices <= {*table.names}):
        return None
    return _of(table, ["text"], [next((name for name in ("accept", "label") if name in table.names), "")])


def _label_studio(table: Table) -> Table | None:
    """Take tasks of the format JSON: each has annotations of several people, to one or more questions."""
    tasks, annotations = _column(table, "data", dict), _column(table, "annotations", list)
    if not tasks or not annotations:
        return None
    table, texts = _with_fields(table, "data", tasks)
    given = [[each for each in row or [] if isinstance(each, dict)] for row in annotations]
    counted = [[_choices(each) for each in row if not each.get("was_cancelled")] for row in given]
    questions = dict.fromkeys(name for row in counted for each in row for name in each)
    cells = {
        f"annotations.{question}": [_different(each.get(question, []) for each in row) for row in counted]
        for question in questions
    }
    cancelled = [bool(row) and all(each.get("was_cancelled") for each in row) for row in given]
    return _of(_with(table, cells | {"annotations.was_cancelled": cancelled}), texts, [*cells])


def _choices(annotation: dict[str, Any]) -> dict[str, list[Any]]:
    """Give the choices of an annotation for each question."""
    found: dict[str, list[Any]] = {}
    for part in annotation.get("result") or []:
        value = part.get("value") if isinstance(part, dict) else None
        if isinstance(value, dict) and isinstance(value.get("choices"), list):
            found.setdefault(str(part.get("from_name")), []).extend(value["choices"])
    return found


def _label_studio_rows(table: Table) -> Table | None:
    """Take rows of the formats JSON-MIN, CSV and TSV: the task's own columns, ``id``, the questions, ``annotator``."""
    if not {"id", "annotator", "annotation_id", "lead_time"} <= {*table.names}:
        return None
    own = [name for name in table.names if name not in _LABEL_STUDIO_ROW]
    between = table.names[table.names.index("id") : table.names.index("annotator")]
    questions = [name for name in own if name in between] or own
    return _of(table, [name for name in own if name not in questions] or own, questions)


def _argilla(table: Table) -> Table | None:
    """Take the records of ``to_json``: ``fields``, and ``responses`` of several people to one or more questions."""
    fields, responses = _column(table, "fields", dict), _column(table, "responses", dict)
    if not fields or not responses:
        return None
    table, texts = _with_fields(table, "fields", fields)
    questions = dict.fromkeys(question for row in responses for question in row or {})
    cells = {
        f"responses.{question}": [_submitted((row or {}).get(question)) for row in responses] for question in questions
    }
    return _of(_with(table, cells), texts, [*cells])


def _argilla_rows(table: Table) -> Table | None:
    """Take rows of Argilla 2, ``label.responses`` beside ``label.responses.status``, and of 1: lists of objects."""
    cells: dict[str, list[Any]] = {}
    for name in table.names:
        question = name.removesuffix(".responses")
        if question != name:
            values, states = _cells(table, name), _cells(table, f"{name}.status")
            rows = zip(values, states, strict=True)
            cells[f"responses.{question}"] = [_submitted(_responses(value, state)) for value, state in rows]
        elif f"{name}-suggestion" in table.names:
            cells[f"responses.{name}"] = [_submitted(value) for value in _cells(table, name)]
    return _of(_with(table, cells), [], [*cells]) if cells else None


def _responses(values: Any, states: Any) -> list[dict[str, Any]]:
    values = _listed(values)
    states = _listed(states) or [None] * len(values)
    return [{"value": value, "status": state} for value, state in zip(values, states, strict=False)]


def _argilla_1(table: Table) -> Table | None:
    """Take records for text classification of Argilla 1."""
    if not {"text", "annotation", "annotation_agent"} <= {*table.names}:
        return None
    return _of(table, ["text"], ["annotation"])


def _submitted(responses: Any) -> list[Any]:
    """Give the different responses of Argilla that count."""
    given = [each for each in _listed(responses) if isinstance(each, dict)]
    return _different(_listed(each.get("value")) for each in given if each.get("status") in _SUBMITTED)


def _different(values: Iterable[list[Any]]) -> list[Any]:
    return list(dict.fromkeys(value for each in values for value in each if isinstance(value, str | int | float)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _column(table: Table, name: str, kind: type) -> list[Any]:
    """Cells of a column that holds nothing but objects of a kind; else none."""
    cells = _cells(table, name)
    return cells if any(cells) and all(cell is None or isinstance(cell, kind) for cell in cells) else []


def _cells(table: Table, name: str) -> list[Any]:
    if name not in table.names:
        return [None] * len(table.rows)
    column = table.names.index(name)
    return [row[column] for row in table.rows]


def _with_fields(table: Table, name: str, cells: list[Any]) -> tuple[Table, list[str]]:
    """Make a column of each field of the objects in a column."""
    fields = dict.fromkeys(field for cell in cells for field in cell or {})
    added = {f"{name}.{field}": [(cell or {}).get(field) for cell in cells] for field in fields}
    return _with(table, added), [*added]


def _with(table: Table, cells: dict[str, list[Any]]) -> Table:
    """Add columns, also in place of a path of the same name into the objects."""
    own = len(table.names) - table.n_added
    kept = [i for i, name in enumerate(table.names) if i < own or name not in cells]
    new = [name for name in cells if name not in table.names[:own]]
    rows = [[*(row[i] for i in kept), *(cells[name][n] for name in new)] for n, row in enumerate(table.rows)]
    names = [*(table.names[i] for i in kept), *new]
    return table._replace(names=names, rows=rows, n_added=len(names) - own)


def _of(table: Table, texts: list[str], labels: list[str]) -> Table:
    at = {name: column for column, name in enumerate(table.names)}
    return table._replace(
        text_columns=[at[name] for name in texts if name in at],
        label_columns=[at[name] for name in labels if name in at],
    )
