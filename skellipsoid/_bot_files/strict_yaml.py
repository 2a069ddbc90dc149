"""Reads YAML with every value as the text that was written: ``yes``, ``007`` and ``12:30`` are intents like others."""

from typing import Any

import yaml

#: The C parser is ten times as fast; a PyYAML that was built without it has the other one alone.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_yaml(text: str, name: str) -> dict[str, Any]:
    """Read one mapping of YAML.

    Raises
    ------
    ValueError
        If it is no YAML, or holds a key twice or an alias.
    """
    try:
        found = _value(yaml.compose(text, Loader=_LOADER), name, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f"Line {mark.line + 1} of {name!r}" if mark else repr(name)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "damaged"
        raise ValueError(f"{line} is no YAML ({problem}); correct it.") from error
    except RecursionError as error:
        raise ValueError(f"{name!r} holds YAML that is nested too deeply; correct it.") from error
    return found if isinstance(found, dict) else {}


def _value(node: Any, name: str, seen: set[int]) -> Any:
    """Turn a node into text, a list or a mapping. A node that is met twice is one that an alias repeats."""
    if node is None:
        return ""
    if id(node) in seen:
        raise ValueError(
            f"Line {node.start_mark.line + 1} of {name!r} has an anchor that an alias (*name) repeats; write the text "
            "out instead."
        )
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, name, seen) for each in node.value]
    found: dict[str, Any] = {}
    for key, value in node.value:
        written = str(_value(key, name, seen))
        if written in found:
            raise ValueError(
                f"Line {key.start_mark.line + 1} of {name!r} has the key {written!r} a second time; join the two."
            )
        found[written] = _value(value, name, seen)
    return found
