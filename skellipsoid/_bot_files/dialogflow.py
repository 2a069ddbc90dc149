"""Reads the training phrases of exported Dialogflow agents, of ES and of CX."""

import json
import re
from typing import Any

from .bot_members import Member
from .bot_texts import BotText, BotTexts, counted, joined, objects

#: An intent's name, and the language: a file beside the intent's own in ES, one below its folder in CX.
_ES = re.compile(r"(?:(.*)/)?([^/]+)_usersays_([A-Za-z]+(?:-[A-Za-z0-9]+)*)\.json")
_CX = re.compile(r"((?:.*/)?([^/]+))/trainingPhrases/([A-Za-z]+(?:-[A-Za-z0-9]+)*)\.json")


def read_dialogflow(files: list[Member], encoding: str | None) -> BotTexts | None:
    """Read an agent of ES; the name in an intent's own file counts, since the file's name lacks some characters."""
    names = {file.name: file for file in files}
    texts: list[BotText] = []
    n_templates = 0
    for file in files:
        if match := _ES.fullmatch(file.name):
            folder, name, language = match.groups()
            own = _read(names.get("/".join(filter(None, [folder, f"{name}.json"]))), encoding)
            for phrase in objects(_read(file, encoding)):
                if phrase.get("isTemplate") is True:
                    n_templates += 1
                elif text := joined(phrase.get("data")):
                    spoken = str(phrase.get("lang") or language)
                    texts.append(BotText(text, _named(own, "name", name), file.name, spoken))
    return BotTexts("Dialogflow ES", texts, counted(n_templates, "template")) if texts else None


def read_dialogflow_cx(files: list[Member], encoding: str | None) -> BotTexts | None:
    """Read an agent of CX."""
    names = {file.name: file for file in files}
    texts: list[BotText] = []
    for file in files:
        if match := _CX.fullmatch(file.name):
            folder, name, language = match.groups()
            own, found = _read(names.get(f"{folder}/{name}.json"), encoding), _read(file, encoding)
            phrases = objects(found.get("trainingPhrases") if isinstance(found, dict) else None)
            said = [(joined(phrase.get("parts")), str(phrase.get("languageCode") or language)) for phrase in phrases]
            label = _named(own, "displayName", name)
            texts += [BotText(text, label, file.name, lang) for text, lang in said if text]
    return BotTexts("Dialogflow CX", texts, []) if texts else None


def _read(file: Member | None, encoding: str | None) -> Any:
    if file is None:
        return None
    try:
        return json.loads(file.text(encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file.name!r} is no JSON ({error}); export the agent again.") from error


def _named(intent: Any, key: str, otherwise: str) -> str:
    name = intent.get(key) if isinstance(intent, dict) else None
    return name.strip() if isinstance(name, str) and name.strip() else otherwise
