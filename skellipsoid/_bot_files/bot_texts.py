"""``BotTexts``: the texts, labels and notes that a reader of a bot's files gives."""

from collections.abc import Iterable
from typing import Any, NamedTuple


class BotText(NamedTuple):
    """A training text, its label, its file, and its language where the format names one."""

    text: str
    label: str
    file: str
    language: str = ""


class BotTexts(NamedTuple):
    """What a reader found: the kind of the files, their texts, and what was left out or changed."""

    kind: str
    texts: list[BotText]
    notes: list[str]


def objects(value: Any) -> list[dict[str, Any]]:
    """Objects of a list; whatever else it holds is none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def joined(parts: Any) -> str:
    """Text of the parts into which annotated entities divide it."""
    return "".join(str(part.get("text") or "") for part in objects(parts)).strip()


def counted(number: int, noun: str, which: str = "") -> list[str]:
    """Say how many there are of something that is left out; nothing if there is none."""
    return [f"{number:,} {noun}{'' if number == 1 else 's'}{which} left out"] if number else []


def files_of(texts: Iterable[BotText]) -> int:
    """Count the files of texts."""
    return len({text.file for text in texts})
