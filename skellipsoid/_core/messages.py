"""Parts of messages: lists that are cut after some entries, shortened values, plurals."""

from pathlib import Path
from typing import Any

from .warn import LossWarning, warn

#: Largest number of lines or labels that a message names.
_MOST_NAMED = 5


def named(noun: str, things: list[Any]) -> str:
    """Name the first things, and say how many more there are."""
    named = ", ".join(map(str, things[:_MOST_NAMED]))
    more = f" and {len(things) - _MOST_NAMED} more" if len(things) > _MOST_NAMED else ""
    return f"{noun}{'' if len(things) == 1 else 's'} {named}{more}"


def numbered(number: int, noun: str) -> str:
    """Write a number with its noun in singular or plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def say_empty(numbers: list[int], path: Path, unit: str = "line") -> None:
    """Warn that lines or rows of a file are empty."""
    if numbers:
        verb = "is" if len(numbers) == 1 else "are"
        warn(f"{named(unit, numbers)} of {str(path)!r} {verb} empty and {verb} left out.", LossWarning)


def shortened(text: str, most: int) -> str:
    """Cut a text for a message, on one line."""
    return cut(" ".join(text.split()), most)


def cut(name: str, most: int = 60) -> str:
    """Cut a name for a message, with its blanks as they are."""
    return name if len(name) <= most else f"{name[:most]}…"
