"""Reads Rasa's training texts: YAML of version 2 and later, Markdown and JSON of version 1."""

import json
import re
from collections.abc import Callable
from typing import Any

from .bot_members import Member
from .bot_texts import BotText, BotTexts, counted, objects
from .strict_yaml import read_yaml

#: Folders of a project that hold no training texts: test stories, parts of a split, reports.
_LEFT_OUT = {"tests", "train_test_split", "results", "models"}
_YAML = re.compile(r"^nlu\s*:", re.MULTILINE)
_SECTION = re.compile(r"##\s*(intent)\s*:\s*(.+?)\s*|#.*")
_ITEM = re.compile(r"\s*(?:--?|[*+])(?:\s+(.*)|(.*))")
#: ``[paris](city)``, ``[paris](city:Paris)``, ``[paris]{"entity": "city"}`` and ``[paris][{…}, {…}]``.
_ENTITY = re.compile(r"\[([^\]]+)\](?:\([^()]*\)|\{[^{}]*\}|\[\{.*?\}\])")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def read_rasa(files: list[Member], encoding: str | None) -> BotTexts | None:
    """Read the intents of all files that hold some; retrieval intents such as ``faq/price`` stay whole."""
    found: list[tuple[str, str | None, str]] = []  # text, intent and file
    skipped: set[str] = set()
    n_loose = 0
    for file in files:
        suffix = file.name.rpartition(".")[2].lower()
        if suffix not in _FORMS:
            continue
        aside = [part for part in file.name.split("/")[:-1] if part in _LEFT_OUT]
        if aside and len(files) > 1:
            skipped.add(f"{aside[0]}/")
            continue
        marker, read = _FORMS[suffix]
        examples, loose = read(file.text(encoding, marker), file.name)
        found += [(each, intent, file.name) for each, intent in examples]
        n_loose += loose
    plain = [(_ENTITY.sub(r"\1", text), intent, file) for text, intent, file in found]
    texts = [BotText(text.strip(), intent.strip(), file) for text, intent, file in plain if intent and text.strip()]
    if not texts:
        return None
    notes = ["entities removed"] if any(new[0] != old[0] for new, old in zip(plain, found, strict=True)) else []
    notes += [f"{', '.join(sorted(skipped))} not read"] if skipped else []
    notes += counted(n_loose, "line", " without a hyphen")
    return BotTexts("Rasa", texts, [*notes, *counted(len(plain) - len(texts), "text", " without an intent")])


_Rows = tuple[list[tuple[str, str | None]], int]


def _read_yaml(text: str, name: str) -> _Rows:
    if not _YAML.search(text):
        return [], 0
    content = read_yaml(text, name)
    rows: list[tuple[str, str | None]] = []
    n_loose = 0
    for each in objects(content.get("nlu")):
        if "intent" not in each:
            continue  # synonyms, lookup tables and regular expressions
        examples = each.get("examples")
        if isinstance(examples, list):
            listed = [_bare(each.get("text", "") if isinstance(each, dict) else each) for each in examples]
        else:
            lines = [line for line in str(examples or "").splitlines() if line.strip()]
            listed = [_bare(line) for line in lines if _ITEM.fullmatch(line)]
            n_loose += len(lines) - len(listed)
        rows += [(example, str(each["intent"])) for example in listed]
    return rows, n_loose


def _bare(line: Any) -> str:
    """Text of an example, without the hyphen before it."""
    text = str(line).strip()
    item = _ITEM.fullmatch(text)
    return (item[1] or item[2] or "") if item else text


def _read_markdown(text: str, name: str) -> _Rows:
    intent: str | None = None
    rows: list[tuple[str, str | None]] = []
    for line in _COMMENT.sub("", text).splitlines():
        if section := _SECTION.fullmatch(line.strip()):
            intent = section[2] if section[1] else None
        elif intent and _ITEM.fullmatch(line):
            rows.append((_bare(line), intent))
    return rows, 0


def _read_json(text: str, name: str) -> _Rows:
    if not text:
        return [], 0
    try:
        data = json.loads(text)["rasa_nlu_data"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ValueError(f"{name!r} is no JSON of Rasa ({error}); correct it.") from error
    keys = ("common_examples", "intent_examples", "entity_examples")
    examples = [each for key in keys for each in objects(data.get(key) if isinstance(data, dict) else None)]
    return [(str(each.get("text") or ""), str(each.get("intent") or "") or None) for each in examples], 0


#: By the ending of a name: what such a file must hold, and what reads it.
_FORMS: dict[str, tuple[str, Callable[[str, str], _Rows]]] = {
    "yml": ("nlu", _read_yaml),
    "yaml": ("nlu", _read_yaml),
    "md": ("intent", _read_markdown),
    "json": ('"rasa_nlu_data"', _read_json),
}
