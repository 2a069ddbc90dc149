"""Requirements of fitted state that is saved and loaded."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

Sizes = dict[str, int]


@dataclass(frozen=True)
class Rule:
    """Requirement of one fitted attribute."""

    what: str  # for the error
    accepts: Callable[[Any], bool]
    shape: tuple[str | int, ...] | None = None  # of an array; names stand for sizes that must agree within an estimator
    size: str | None = None  # the size that this number is
    nullable: bool = False
    required: bool = True

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise an error if a value does not meet the requirement; new sizes are recorded."""
        if value is None and self.nullable:
            return
        if not self.accepts(value):
            found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            msg = f"{name} is {found[:80]}, but must be {self.what}"
            raise ValueError(msg)
        if self.size is not None:
            sizes[self.size] = value
        if self.shape is not None:
            wanted = [sizes.get(side, side) if isinstance(side, str) else side for side in self.shape]
            fits = len(value.shape) == len(wanted) and all(
                isinstance(side, str) or side == found for side, found in zip(wanted, value.shape, strict=True)
            )
            if not fits:
                msg = f"{name} has the shape {value.shape}, but must have ({', '.join(map(str, wanted))})"
                raise ValueError(msg)
            sizes.update({side: n for side, n in zip(wanted, value.shape, strict=True) if isinstance(side, str)})


def is_array(kinds: str) -> Callable[[Any], bool]:
    """Whether a value is an array of one of these kinds of dtype."""
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds


def _is_finite(value: Any) -> bool:
    return is_array("f")(value) and bool(np.isfinite(value).all())


def is_number(value: Any) -> bool:
    """Whether a value is an integer or a float, not NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == value if isinstance(value, float) else abs(value) < 2**63


def is_count(value: Any) -> bool:
    """Whether a value is a positive integer."""
    return isinstance(value, int) and is_number(value) and value >= 1


def _is_classes(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUTO" or not len(value):
        return False
    ordered = value.tolist()
    return all(first < second for first, second in itertools.pairwise(ordered))


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Real) for item in value)


#: What ``_held_out`` has, by the kinds of numbers.
_HELD_OUT = {"scores": "f", "nearest": "iu", "classes": "iu", "weights": "f", "is_open": "b"}


def _is_held_out(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() != _HELD_OUT.keys():
        return False
    if not all(is_array(kind)(value[name]) for name, kind in _HELD_OUT.items()):
        return False
    return {array.shape for array in value.values()} == {(len(value["scores"]),)}


def check_held_out(classifier: Any, sizes: Sizes) -> None:
    """Raise an error if held-out scores are no numbers, or of classes that do not exist."""
    held_out = getattr(classifier, "_held_out", None)
    if held_out is None:
        return
    for name, most in (("nearest", sizes["n_classes"] - 1), ("classes", sizes["n_classes"])):
        if ((held_out[name] < 0) | (held_out[name] > most)).any():
            msg = f"{name} of _held_out holds numbers of no class"
            raise ValueError(msg)
    if np.isnan(held_out["scores"]).any() or not (np.isfinite(held_out["weights"]) & (held_out["weights"] > 0)).all():
        msg = "_held_out holds a score that is no number, or a weight that is not positive"
        raise ValueError(msg)


def floats(*shape: str | int) -> Rule:
    """Require finite numbers."""
    return Rule("an array of finite numbers", _is_finite, shape)


def measured(*shape: str | int) -> Rule:
    """Require numbers; what other packages fit may be infinite or missing, where a feature is constant for instance."""
    return Rule("an array of numbers", is_array("f"), shape)


def integers(*shape: str | int) -> Rule:
    """Require integers."""
    return Rule("an array of integers", is_array("iu"), shape)


def optional(rule: Rule) -> Rule:
    """Let the attribute be missing."""
    return replace(rule, required=False)


def or_none(rule: Rule) -> Rule:
    """Let the value be ``None``."""
    return replace(rule, nullable=True, what=f"{rule.what}, or null")


NUMBER = Rule("a number", is_number)
COUNT = Rule("a positive integer", is_count)
N_FEATURES = replace(COUNT, size="n_features")
CLASSES = Rule("an array of different labels in ascending order", _is_classes, ("n_classes",))
LABEL = Rule("a number or a string", lambda value: isinstance(value, str | bool) or is_number(value))
NUMBERS = Rule("a list of numbers", _is_numbers)
TEXT = Rule("a string", lambda value: isinstance(value, str))
N_ITER = Rule("an integer of at least 0", lambda value: value == 0 or is_count(value))
#: What every open-set classifier has.
CLASSIFIER = {
    "n_features_in_": N_FEATURES,
    "classes_": CLASSES,
    "open_label_": LABEL,
    "offset_": NUMBER,
    "class_offsets_": measured("n_classes"),
    "_norm_range": or_none(floats(2)),
    "groups_": optional(integers("n_samples")),
}


#: Held-out scores of those that have some.
HELD_OUT = Rule("a mapping of arrays of equal length", _is_held_out, nullable=True)


class Kind(NamedTuple):
    """A class that can be saved."""

    cls: type
    state: dict[str, Rule]
    check: Callable[[Any, Sizes], None] | None = None


def check_open_label(classifier: Any) -> None:
    """Raise an error if the open label is not of the kind of the classes."""
    if isinstance(classifier.open_label_, str) != isinstance(classifier.classes_.tolist()[0], str):
        msg = f"open_label_ is {classifier.open_label_!r}, but must be of the kind of classes_"
        raise ValueError(msg)


def check_starts(name: str, starts: Any, end: int, smallest: int = 0) -> None:
    """Raise an error if parts of this smallest size do not start there."""
    if starts[0] != 0 or starts[-1] != end or (np.diff(starts.astype(np.int64)) < smallest).any():
        msg = f"{name} must rise from 0 to {end}"
        raise ValueError(msg)
