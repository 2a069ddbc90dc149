"""What a saved model holds of its held-out samples: the columns of their table, under the names of format 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._core.state_rules import ASKING, CLASSIFIER, NUMBER, TRAFFIC, Rule, Sizes, is_array, optional, refuse
from .table import KNOWN, OF_OTHER_CLASS, REAL, SYNTHETIC, HeldOutTable

#: The saved columns, by the kinds of numbers; the sets are missing where each known sample is one.
_COLUMNS = {
    **{"scores": "f", "nearest": "iu", "classes": "iu", "weights": "f", "is_open": "b", "is_synthetic": "b"},
    **{"ranks": "iu", "gaps": "f", "sets": "iu"},
}


class _TableRule(Rule):
    """Rule of a table that is saved as a mapping of arrays."""

    def saved(self, value: HeldOutTable | None) -> Any:
        """Return the columns in the types of format 1."""
        if value is None:
            return None
        columns = {
            "scores": value.scores,
            "nearest": value.assigned.astype(np.int32),
            "classes": value.classes.astype(np.int32),
            "weights": value.weights,
            "is_open": value.is_open,
            "is_synthetic": value.kinds == SYNTHETIC,
            "ranks": value.ranks.astype(np.int8),
            "gaps": value.gaps,
        }
        is_each_alone = len(np.unique(value.known.sets)) == len(value.known)
        return columns if is_each_alone else {**columns, "sets": value.sets}

    def made(self, name: str, value: Any, n_classes: int) -> Any:
        """Make the table of the columns; what has others stays, and is refused by the check."""
        if not _are_columns(value):
            return value
        classes = value["classes"].astype(np.int64)
        opened = np.where(classes == n_classes, REAL, OF_OTHER_CLASS)
        opened = np.where(value["is_synthetic"], SYNTHETIC, opened)
        return HeldOutTable(
            np.where(value["is_open"], opened, KNOWN),
            -value["scores"].astype(np.float64),
            value["nearest"].astype(np.int64),
            classes,
            value["weights"].astype(np.float64),
            value.get("sets", np.arange(len(classes))).astype(np.int64),
            n_classes,
            ranks=value["ranks"].astype(np.int64),
            gaps=value["gaps"].astype(np.float64),
        )


def _are_columns(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() | {"sets"} != _COLUMNS.keys():
        return False
    if not all(is_array(_COLUMNS[name])(column) for name, column in value.items()):
        return False
    return {array.shape for array in value.values()} == {(len(value["scores"]),)}


def check_held_out(classifier: Any, sizes: Sizes) -> None:
    """Raise an error if held-out scores are NaN, or belong to classes that do not exist."""
    table: HeldOutTable | None = getattr(classifier, "_held_out", None)
    if table is None:
        return
    n_classes = sizes["n_classes"]
    for name, codes, most in (("nearest", table.assigned, n_classes - 1), ("classes", table.classes, n_classes)):
        refuse(((codes < 0) | (codes > most)).any(), f"{name} of _held_out holds numbers of no class")
    is_wrong = np.isnan(table.distances) | ~np.isfinite(table.weights) | (table.weights <= 0)
    refuse(is_wrong.any(), "_held_out holds a score that is NaN, or a weight that is not positive")
    is_wrong = (table.ranks < 0) | (table.ranks > 3) | np.isnan(table.gaps)
    refuse(is_wrong.any(), "_held_out holds a rank that is not 0 to 3, or a gap that is NaN")


#: Held-out samples, for classifiers that keep them.
HELD_OUT = _TableRule(
    "a mapping of arrays of equal length", lambda value: isinstance(value, HeldOutTable), nullable=True
)
#: Attributes of a classifier with a numeric threshold.
THRESHOLDED = {
    **CLASSIFIER,
    "threshold_": NUMBER,
    "_held_out": optional(HELD_OUT),
    "traffic_": TRAFFIC,
    "asking_": ASKING,
}
