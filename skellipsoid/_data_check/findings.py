"""The findings of a check as a table, and the names of rows in their messages."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._core.results import Result
from .._core.validation import name_rows

#: Largest number of rows that a message names.
MOST_NAMED = 10


class Finding(NamedTuple):
    """One possible error."""

    kind: str
    rows: list[int]
    label: Any
    message: str


def as_bunch(findings: list[Finding]) -> Bunch:
    """Give findings as columns of a table."""
    columns = {name: np.empty(len(findings), dtype=object) for name in ("kind", "rows", "label", "message")}
    for i, finding in enumerate(findings):
        columns["kind"][i], columns["label"][i] = finding.kind, finding.label
        columns["rows"][i], columns["message"][i] = tuple(finding.rows), finding.message
    return Result(**columns)


def grouped(items: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    """Group items by a key, in the order of their first appearance."""
    groups: dict[Hashable, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def named_rows(rows: list[int], unit: str = "row") -> str:
    """Name rows for a message."""
    return name_rows(np.array(rows), unit)


def named_groups(groups: list[list[int]], unit: str = "row") -> str:
    """Name rows for a message, those that belong together in brackets."""
    named, left = [], MOST_NAMED
    for group in groups:
        if left < 2:
            break
        more = ", …" if len(group) > left else ""
        named.append(f"({', '.join(map(str, group[:left]))}{more})")
        left -= min(left, len(group))
    n_more = sum(map(len, groups)) - (MOST_NAMED - left)
    return f"{unit}s {', '.join(named)}" + (f" and {n_more} more" if n_more else "")


def named_class(label: Any, open_label: Any) -> str:
    """Name a label at the start of a sentence."""
    return f"The open label {label!r}" if label == open_label else f"The class {label!r}"


def listed(names: list[str]) -> str:
    """Join names for a message: the first ones, and how many more there are."""
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
