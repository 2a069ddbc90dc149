"""Reads the utterances of LUIS, of its successor CLU, and of semantic-router: one JSON object a file."""

import json
from typing import Any

from .bot_members import Member
from .bot_texts import BotText, BotTexts, counted, objects


def read_luis(files: list[Member], encoding: str | None) -> BotTexts | None:
    """Read the files that hold ``utterances`` with intents, or ``routes`` with utterances."""
    kinds: dict[str, None] = {}
    found: list[BotText] = []
    for file in files:
        if not file.name.lower().endswith(".json"):
            continue
        text = file.text(encoding, '"utterances"')
        if text.lstrip()[:1] != "{":
            continue
        try:
            app = json.loads(text)
        except (ValueError, RecursionError):
            continue  # lines of objects, perhaps
        kind, texts = _utterances(app, file.name)
        if texts:
            kinds[kind] = None
            found += texts
    texts = [each for each in found if each.text and each.label]
    if not texts:
        return None
    return BotTexts(" and ".join(kinds), texts, counted(len(found) - len(texts), "utterance", " without an intent"))


def _utterances(app: dict[str, Any], file: str) -> tuple[str, list[BotText]]:
    if routes := objects(app.get("routes")):
        return "semantic-router", [
            BotText(text.strip(), str(route.get("name") or ""), file)
            for route in routes
            for text in route.get("utterances") or []
            if isinstance(text, str)
        ]
    assets = app.get("assets")
    kind, holder = ("CLU", assets) if isinstance(assets, dict) else ("LUIS", app)
    said = [each for each in objects(holder.get("utterances")) if "text" in each and "intent" in each]
    language = str(app.get("culture") or "")
    rows = [(_text(each["text"]), _text(each["intent"]), str(each.get("language") or language)) for each in said]
    return kind, [BotText(text, intent, file, spoken) for text, intent, spoken in rows]


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
