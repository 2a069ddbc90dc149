"""Finds rows whose label the annotator rejected, by the columns that annotation tools write beside it."""

from pathlib import Path
from typing import Any, NamedTuple

from .._core.messages import named, numbered
from .._core.warn import LossWarning, warn
from .records import inside
from .text_table import Table, cell_text


class _Tool(NamedTuple):
    """What a tool writes: its own columns, all marks of its column of marks, and those that reject a label."""

    name: str
    own: set[str]
    marks: set[str]
    rejects: set[str]


_TOOLS = {
    "answer": _Tool(
        "Prodigy",
        {"_task_hash", "_input_hash", "_session_id", "_view_id", "_annotator_id", "options"},
        {"accept", "reject", "ignore"},
        {"reject", "ignore"},
    ),
    "status": _Tool(
        "Argilla",
        {"responses", "annotation_agent", "prediction_agent", "_server_id"},
        {"default", "edited", "validated", "pending", "draft", "submitted", "completed", "discarded"},
        {"discarded"},
    ),
    "was_cancelled": _Tool(
        "Label Studio",
        {"annotations", "annotation_id", "annotator", "completed_by", "lead_time"},
        {"true", "false"},
        {"true"},
    ),
}


def rejected_rows(table: Table, path: Path, *read: int, effect: str = "they are left out") -> set[int]:
    """Find the rows whose label was rejected, skipped or cancelled, or is several, and say how many they are.

    Parameters
    ----------
    table : Table
    path : Path
        For the message.
    *read : int
        Columns that hold texts or labels: they say nothing else. The last one holds the labels.
    effect : str
        What becomes of the rows, for the message.

    Returns
    -------
    rows : set of int
        A column counts in a file of Prodigy, Argilla or Label Studio, if it has the name that the tool gives it, and no
        other value than its. Of several people all have rejected it.
    """
    found: dict[int, str] = {}
    for column, name in enumerate(table.names):
        tool = _TOOLS.get(name.rpartition(".")[2])
        cells = [_marks(row[column]) for row in table.rows] if tool and column not in read else []
        if not tool or not {mark for marks in cells for mark in marks} <= tool.marks:
            continue
        marked = {row: f"{name} {each[0]!r}" for row, each in enumerate(cells) if each and {*each} <= tool.rejects}
        if "." in name or not tool.own.isdisjoint(table.names):
            found |= marked
        elif marked:
            mark = min(marked.values())
            warn(
                f"{numbered(len(marked), 'row')} of {str(path)!r} {'has' if len(marked) == 1 else 'have'} {mark}, as "
                f"{tool.name} marks a rejected label, but no other column of {tool.name}'s: the labels count; leave "
                "these rows out if they were rejected."
            )
    if table.names and read:
        found |= dict.fromkeys(_cancelled(table, table.names[read[-1]]), "was_cancelled")
    if found:
        why = ", ".join(sorted(set(found.values())))
        numbers = named(table.unit, [table.numbers[row] for row in sorted(found)])
        warn(
            f"{numbered(len(found), 'row')} of {str(path)!r} {'was' if len(found) == 1 else 'were'} rejected by the "
            f"annotator ({why}): {effect} ({numbers}).",
            LossWarning,
        )
    several = [row for row in _several(table, read[-1]) if row not in found] if read else []
    if several:
        numbers = named(table.unit, [table.numbers[row] for row in several])
        warn(
            f"{numbered(len(several), 'row')} of {str(path)!r} {'has' if len(several) == 1 else 'have'} several "
            f"labels, of one annotator or of several who disagree: {effect} ({numbers}).",
            LossWarning,
        )
    return {*found, *several}


def _marks(value: Any) -> list[str]:
    """Give what one or more people wrote."""
    values = value if isinstance(value, list | tuple) else [value]
    return [mark for mark in (cell_text(each).lower() for each in values) if mark]


def _several(table: Table, column: int) -> list[int]:
    """Rows of a tool's export with several labels: a list, or an object of choices, also as text in CSV."""

    def is_several(cell: Any) -> bool:
        is_list = isinstance(cell, list | tuple) and len(cell) > 1
        return is_list or isinstance(cell, dict) or (isinstance(cell, str) and cell.startswith('{"choices"'))

    return [i for i, row in enumerate(table.rows) if is_several(row[column])] if column in table.label_columns else []


def _cancelled(table: Table, path: str) -> list[int]:
    """Rows whose label, at a path such as ``annotations.0.result``, is in an annotation of Label Studio's that ended.

    Label Studio keeps what somebody had chosen before skipping the task.
    """
    head, *parts = path.split(".")
    if not parts or head not in table.names:
        return []
    parents: list[tuple[Any, ...]] = [tuple(parts[:i]) for i in range(len(parts))]
    column = table.names.index(head)
    return [
        number
        for number, row in enumerate(table.rows)
        if any(inside(row[column], ".".join((*parent, "was_cancelled"))) is True for parent in parents)
    ]
