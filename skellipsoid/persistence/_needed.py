"""Checks, by names alone, that the files of a model are those that its description needs."""

from collections.abc import Collection, Iterator
from typing import Any

from .._encoders.text_features import TextFeatures
from .._encoders.torch.stored_model import FILES
from ._describe import ARRAYS, BACKBONE
from ._kinds import HOLD_FITTED, kind_of

#: Largest number of embedding models: one, and copies where a frozen encoder is a parameter and a fitted part.
_MOST_TEXT_MODELS = 4


def check_described(model: Any, names: Collection[str]) -> None:
    """Raise an error if the steps of a description do not fit each other, or need other files than there are.

    Raises
    ------
    LookupError, TypeError, AttributeError or ValueError
        If it describes no estimator.
    NotInstalledError
        If a step belongs to a package that is not installed.
    """
    needed = list(_of_estimator(model))
    n_models = sum(name.endswith(f"/{BACKBONE}/{FILES[0]}") for name in needed)
    if n_models > _MOST_TEXT_MODELS:
        raise ValueError(f"it holds {n_models} embedding models, but save writes at most {_MOST_TEXT_MODELS}")
    if len(needed) > len(set(needed)):
        twice = next(name for name in needed if needed.count(name) > 1)
        raise ValueError(f"two parts of it need the file {twice!r}")
    for name in needed:
        if name not in names:
            raise ValueError(f"its file {name!r} is missing")
    if more := sorted(set(names) - set(needed)):
        raise ValueError(f"nothing in it needs the file {more[0]!r}")


def _of_estimator(model: Any) -> Iterator[str]:
    """Names of the files of an estimator, and of all that it holds."""
    if model["class"] == "Pipeline":
        if not model["steps"]:
            raise ValueError("a Pipeline has no steps")
        steps = [step for step in model["steps"] if step["class"] != "passthrough"]
        for step in steps[1:]:
            if _takes_texts(step):
                raise ValueError(f"the step {step['name']!r} takes texts, but is not the first one")
        for step in steps:
            yield from _of_estimator(step)
        return
    yield f"{model['folder']}/{ARRAYS}"
    for value in (*model["parameters"].values(), *model["state"].values()):
        yield from _of_value(value, model["folder"])


def _of_value(value: Any, folder: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _of_value(item, folder)
    elif not isinstance(value, dict) or "array" in value or "strings" in value:
        return
    elif "estimator" in value:
        yield from _of_estimator(value["estimator"])
    elif "text_model" in value:
        yield from (f"{folder}/{BACKBONE}/{name}" for name in FILES)
    else:  # a tuple, a mapping, a splitter with its parameters
        for item in value.values():
            yield from _of_value([*item.values()] if isinstance(item, dict) else item, folder)


def _takes_texts(model: Any) -> bool:
    """Whether the described estimator, or the one inside it, embeds texts."""
    if model["class"] == "Pipeline":
        return any(map(_takes_texts, model["steps"]))
    if model["class"] == "passthrough":
        return False
    cls = kind_of(model["class"]).cls
    inside = model["parameters"].values() if issubclass(cls, HOLD_FITTED) else ()
    return issubclass(cls, TextFeatures) or any(
        _takes_texts(value["estimator"]) for value in inside if isinstance(value, dict) and "estimator" in value
    )
