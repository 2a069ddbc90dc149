"""Shared code of the text data sets: subsets, reading tab-separated rows, the cast of the open label."""

import csv
from collections.abc import Iterable, Sequence

SUBSETS = ("train", "dev", "test")


def resolve_subset(subset: str) -> tuple[str, ...]:
    """Return the names of the parts that ``subset`` asks for."""
    if subset == "all":
        return SUBSETS
    if subset not in SUBSETS:
        raise ValueError(f"subset={subset!r} names no part of the data: use 'train', 'dev', 'test' or 'all'.")
    return (subset,)


def read_rows(lines: Iterable[str], n_fields: int) -> list[list[str]]:
    """Split lines at tabs without quoting; drop the header and every row that does not have ``n_fields`` fields."""
    rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    next(rows, None)
    return [row for row in rows if len(row) == n_fields]


def resolve_open_label(open_label: int | str, target_names: Sequence[str]) -> str:
    """Return the open label as a string, which must not be the name of a known class."""
    label = str(open_label)
    if label in target_names:
        raise ValueError(
            f"open_label={open_label!r} is one of the {len(target_names)} known classes: use another, such as -1."
        )
    return label
