"""Rules for the fitted attributes that are saved and loaded: type, shape and range of each.

A class that can be saved declares its state: ``_state`` maps each fitted attribute to a ``Rule``, and ``_check_state``
checks attributes together. Only these attributes are saved and loaded; any other is an error.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

Sizes = dict[str, int]


@dataclass(frozen=True)
class Rule:
    """Rule for one fitted attribute."""

    what: str  # for the error
    accepts: Callable[[Any], bool]
    shape: tuple[str | int, ...] | None = None  # of an array; names stand for sizes that must agree within an estimator
    size: str | None = None  # name of the size that this number is
    below: str | None = None  # name of the size that all numbers are below
    rises_to: str | None = None  # name of the size to which numbers rise from 0
    length: str | None = None  # name of the size that is the length of a list
    nullable: bool = False
    required: bool = True
    otherwise: Callable[[Any], Any] | None = None  # default, by the estimator, for models that lack it

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise an error if a value breaks the rule; new sizes are recorded."""
        if value is None and self.nullable:
            return
        if not self.accepts(value):
            found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            raise ValueError(f"{name} is {found[:80]}, but must be {self.what}")
        if self.size is not None:
            before = sizes.setdefault(self.size, value)
            refuse(before != value, f"{name} is {value}, but an array has {before}")
        if self.shape is not None:
            wanted = [sizes.get(side, side) if isinstance(side, str) else side for side in self.shape]
            fits = len(value.shape) == len(wanted) and all(
                isinstance(side, str) or side == found for side, found in zip(wanted, value.shape, strict=True)
            )
            refuse(not fits, f"{name} has the shape {value.shape}, but must have ({', '.join(map(str, wanted))})")
            sizes.update({side: n for side, n in zip(wanted, value.shape, strict=True) if isinstance(side, str)})
        if self.below is not None:
            end = sizes[self.below]
            refuse(((value < 0) | (value >= end)).any(), f"{name} holds numbers below 0 or above {end - 1}")
        if self.length is not None:
            wrong = f"{name} has {len(value)} numbers, but must have {sizes[self.length]}"
            refuse(len(value) != sizes[self.length], wrong)
        if self.rises_to in sizes:
            end = sizes[self.rises_to]
            refuse(not rises(np.asarray(value), end), f"{name} must rise from 0 to {end}")

    def saved(self, value: Any) -> Any:
        """Convert a value to the saved form."""
        return value

    def made(self, name: str, value: Any, n_classes: int) -> Any:
        """Convert a value of a model of ``n_classes`` back from the saved form."""
        return value


class _ChangesRule(Rule):
    """Rule of ``changes_``; in format 1 the expected rate is *foretold*."""

    def saved(self, value: Any) -> Any:
        """Write the name of format 1."""
        return _renamed(value, "expected", "foretold")

    def made(self, name: str, value: Any, n_classes: int) -> Any:
        """Read the name of format 1."""
        return _renamed(value, "foretold", "expected")


def _renamed(changes: Any, old: str, new: str) -> Any:
    """Rename an entry of changes; what is no list of mappings stays, and is refused by the check."""
    if not (isinstance(changes, list) and all(isinstance(change, Mapping) for change in changes)):
        return changes
    return [{new if name == old else name: value for name, value in change.items()} for change in changes]


class Record:
    """Rule for a dataclass or named tuple: a rule for each of its fields.

    A field that is not ``required`` may be missing in older models, and then has its default.
    """

    def __init__(
        self,
        cls: Any,
        *,
        nullable: bool = False,
        required: bool = True,
        otherwise: Callable[[Any], Any] | None = None,
        **columns: "Rule | Record",
    ) -> None:
        self.cls, self.columns = cls, columns
        self.nullable, self.required, self.otherwise = nullable, required, otherwise

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise an error if a field breaks its rule."""
        if value is None and self.nullable:
            return
        refuse(not isinstance(value, self.cls), f"{name} is {str(value)[:80]}, but must hold {', '.join(self.columns)}")
        for column, rule in self.columns.items():
            rule.check(f"{column} of {name}", getattr(value, column), sizes)

    def saved(self, value: Any) -> Any:
        """Return the fields by name, without missing ones that are not required."""
        if value is None:
            return None
        given = {column: (rule, getattr(value, column)) for column, rule in self.columns.items()}
        return {column: rule.saved(part) for column, (rule, part) in given.items() if rule.required or part is not None}

    def made(self, name: str, value: Any, n_classes: int) -> Any:
        """Build it from the saved mapping."""
        if not isinstance(value, Mapping):
            return value
        required = {column for column, rule in self.columns.items() if rule.required}
        for column in sorted((required - value.keys()) | (value.keys() - self.columns.keys())):
            refuse(column in self.columns, f"{column} of {name} is missing")
            refuse(column not in self.columns, f"{name} has no {column!r}")
        given = {column: rule for column, rule in self.columns.items() if column in value}
        made = {column: rule.made(f"{column} of {name}", value[column], n_classes) for column, rule in given.items()}
        return self.cls(**made)


def is_array(kinds: str) -> Callable[[Any], bool]:
    """Whether a value is an array of one of these kinds of dtype."""
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds


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
    if value.dtype.kind in "fu" and (np.abs(value) >= 2**53).any():  # rounded, or not comparable
        return False
    ordered = value.tolist()
    return all(first < second for first, second in itertools.pairwise(ordered))


#: Entries of ``traffic_``.
_TRAFFIC = {"open_share", "low", "high", "known_shift", "known_spread", "open_place", "open_width"}


def _is_traffic(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() != _TRAFFIC or not all(map(is_number, value.values())):
        return False
    are_proportions = 0 <= value["low"] <= value["high"] <= 1 and 0 < value["open_share"] < 1
    return bool(are_proportions and value["known_spread"] > 0 < value["open_width"])


#: Entries of ``asking_``, and the target miss rate if there is one.
_ASKING = {
    *("low", "high", "gap", "cost_question", "cost_wrong", "cost_person", "confusion"),
    *("served", "wrong", "asked", "missed", "open_asked", "open_answered"),
}


def _is_asking(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() - {"miss_rate"} != _ASKING:
        return False
    if not all(is_number(number) and np.isfinite(number) for number in value.values()):
        return False
    are_costs = all(value[f"cost_{name}"] > 0 for name in ("question", "wrong", "person"))
    return bool(are_costs and value["low"] <= value["high"] and 0 <= value.get("miss_rate", 0) <= 1)


def _is_changes(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    names = {"what", "classes", "n_samples", "when"}
    more = {"into", "rejected", "expected", "before", "after", "forgotten", "n_trained"}
    return all(isinstance(change, Mapping) and names <= change.keys() <= names | more for change in value)


def floats(*shape: str | int, least: float = -np.inf, above: float = -np.inf) -> Rule:
    """Require finite numbers, of at least one number or above another."""

    def accepts(value: Any) -> bool:
        return is_array("f")(value) and bool((np.isfinite(value) & (value >= least) & (value > above)).all())

    limit = f" above {above}" if above > -np.inf else f" of at least {least}" if least > -np.inf else ""
    return Rule(f"an array of finite numbers{limit}", accepts, shape)


def measured(*shape: str | int) -> Rule:
    """Require numbers; those fitted by other packages may be infinite or NaN, for instance with a constant feature."""
    return Rule("an array of numbers", is_array("f"), shape)


def integers(
    *shape: str | int,
    below: str | None = None,
    rises_to: str | None = None,
    least: float = -np.inf,
    most: float = np.inf,
) -> Rule:
    """Require integers: from 0 to below a size, rising from 0 to a size, or between two numbers."""

    def accepts(value: Any) -> bool:
        return is_array("iu")(value) and bool(((value >= least) & (value <= most)).all())

    limit = "" if least == -np.inf else f" of at least {least}" if most == np.inf else f" from {least} to {most}"
    return Rule(f"an array of integers{limit}", accepts, shape, below=below, rises_to=rises_to)


def rising(length: str, end: str) -> Rule:
    """Require a list of integers that rise from 0 to a size."""
    return Rule("a list of integers", _is_list_of_integers, length=length, rises_to=end)


def _is_list_of_integers(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int for number in value)


def rises(places: Any, end: int, smallest: int = 0) -> bool:
    """Whether numbers rise from 0 to an end in steps of at least ``smallest``."""
    steps = np.diff(places.astype(np.int64))
    return bool(len(places) and places[0] == 0 and places[-1] == end and (steps >= smallest).all())


def optional(rule: Rule) -> Rule:
    """Let the attribute be missing."""
    return replace(rule, required=False)


def or_none(rule: Rule) -> Rule:
    """Let the value be ``None``."""
    return replace(rule, nullable=True, what=f"{rule.what}, or null")


NUMBER = Rule("a number", is_number)
POSITIVE = Rule("a positive number", lambda value: is_number(value) and value > 0)
COUNT = Rule("a positive integer", is_count)
N_FEATURES = replace(COUNT, size="n_features")
CLASSES = Rule("an array of different, exact labels in ascending order", _is_classes, ("n_classes",))
LABEL = Rule("a number or a string", lambda value: isinstance(value, str | bool) or is_number(value))
NUMBERS = Rule("a list of numbers", lambda value: isinstance(value, list) and all(isinstance(n, Real) for n in value))
TEXT = Rule("a string", lambda value: isinstance(value, str))
N_ITER = Rule("an integer of at least 0", lambda value: value == 0 or is_count(value))
ESTIMATOR = Rule("an estimator", lambda value: hasattr(value, "predict"))
#: Estimates of the traffic by ``set_operating_point``.
TRAFFIC = Rule("a mapping of estimates of the traffic", _is_traffic, nullable=True, required=False)
#: Zones of the three actions, set by ``set_operating_point``.
ASKING = Rule("a mapping of the zones of the three actions", _is_asking, nullable=True, required=False)
#: Changes of the classes since the fit.
CHANGES = _ChangesRule("a list of changes", _is_changes)
#: Attributes of every open-set classifier.
CLASSIFIER = {
    "n_features_in_": N_FEATURES,
    "classes_": CLASSES,
    "open_label_": LABEL,
    "offset_": NUMBER,
    "class_offsets_": measured("n_classes"),
    "_norm_range": or_none(floats(2)),
    "_zeros_are_none": optional(Rule("a Boolean", lambda value: isinstance(value, bool))),
    "groups_": optional(integers("n_samples")),
}
#: Attributes after training in epochs.
TRAINED = {"n_iter_": N_ITER, "loss_curve_": NUMBERS}


def check_open_label(classifier: Any) -> None:
    """Raise an error if the open label is not of the type of the classes."""
    is_wrong = isinstance(classifier.open_label_, str) != isinstance(classifier.classes_.tolist()[0], str)
    refuse(is_wrong, f"open_label_ is {classifier.open_label_!r}, but must be of the type of classes_")


def require(estimator: Any, *names: str) -> None:
    """Raise an error if an attribute that these parameters need is missing."""
    for name in names:
        refuse(getattr(estimator, name, None) is None, f"{name} is missing")


def refuse(is_wrong: Any, msg: str) -> None:
    """Raise a ValueError if the condition holds."""
    if is_wrong:
        raise ValueError(msg)
