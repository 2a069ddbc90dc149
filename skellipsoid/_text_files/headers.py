"""Ranks names of columns by how usual they are for texts and for labels."""

import re

from .._core.characters import normalize_text

_TEXT = {
    *("text", "texts", "utterance", "utterances", "sentence", "sentences", "query", "question", "message", "messages"),
    *("request", "input", "example", "phrase", "body", "content", "description", "comment", "review", "prompt"),
    *("transcript", "tweet"),
}
#: Names of texts where no other column has a name of texts.
_SHORT_TEXT = {"title", "subject", "headline", "summary"}
_LABEL = {
    *("label", "labels", "intent", "intents", "class", "category", "categories", "target", "topic", "tag"),
    *("queue", "department", "sentiment"),
    *("kategorie", "klasse", "thema", "catégorie", "categoría", "categoria", "clase"),
}
#: Names of what stands beside texts and labels in an export.
_OTHER = {
    *("id", "channel", "source", "platform", "device", "url", "language", "lang", "locale", "country", "region"),
    *("status", "state", "priority", "severity", "user", "author", "agent", "customer", "sender", "email", "name"),
    *("date", "time", "timestamp", "created", "updated", "version", "kanal", "sprache", "datum"),
}


def looks_like_header(text: str, label: str) -> bool:
    """Tell whether a text and a label look like the names of their columns, in either order."""
    return {normalize_text(text), normalize_text(label)} <= _TEXT | _LABEL


def rank_text(name: str) -> int:
    """Rank a name of a column: 2 if it is a usual name of texts, 1 if its last word is or it is a title, else 0."""
    return _rank(name, _TEXT, _TEXT | _SHORT_TEXT)


def rank_label(name: str) -> int:
    """Rank a name of a column: 2 if it is a usual name of labels, 1 if its last word is, −1 of something else, or 0.

    ``Intent Display Name`` is one of labels, too.
    """
    words = normalize_text(name).split()
    if len(words) > 1 and words[-1] == "name" and words[0] in _LABEL:
        return 1
    return _rank(name, _LABEL, _LABEL) or -int(_rank(name, _OTHER, _OTHER) > 0)


def _rank(name: str, usual: set[str], last: set[str]) -> int:
    if normalize_text(name) in usual:
        return 2
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+", name)  # also of camelCase
    return int(bool(words) and normalize_text(words[-1]) in last)
