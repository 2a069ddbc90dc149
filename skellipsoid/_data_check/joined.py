"""Finds labels that join several others in one cell, such as ``a|b``."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .findings import Finding, listed

#: What stands between labels in a cell.
_BETWEEN = re.compile(r"\s*[|;,+&\n]\s*|\s+/\s+")
#: A list of quoted labels, and its brackets and quotes.
_LIST = re.compile(r"\s*[\[({]\s*['\"]")
_OF_LIST = re.compile(r"^\s*[\[({]|[\])}]\s*$|['\"]")


def joined_labels(
    rows_of: Mapping[Any, list[int]], open_label: Any, place: Callable[[list[int]], str]
) -> Iterator[Finding]:
    """Find labels that join at least two others, each of which is a label of its own or occurs in several joins."""
    parts_of = {label: _parts(label) for label in rows_of if isinstance(label, str) and label != open_label}
    counts = Counter(part for label, parts in parts_of.items() if len(parts) > 1 for part in parts)
    for label, parts in sorted(parts_of.items()):
        is_list = bool(_LIST.match(label))
        if len(parts) > 1 and (is_list or all(part in rows_of or counts[part] > 1 for part in parts)):
            others = listed([repr(part) for part in parts])
            message = (
                f"The label {label!r} in {place(rows_of[label])} joins {others}, but is "
                "trained as a class of its own; write one label for each text, or leave these texts out."
            )
            yield Finding("joined_labels", rows_of[label], label, message)


def _parts(label: str) -> list[str]:
    """Labels that a label joins, each once; itself if it joins none."""
    return list(dict.fromkeys(filter(None, (part.strip() for part in _BETWEEN.split(_OF_LIST.sub("", label))))))
