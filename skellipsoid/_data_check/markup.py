"""What training texts hold around the words of users: tags, marks of entities, times, a greeting or a signature."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from .._core.characters import TIME
from .._core.messages import cut
from .findings import Finding

_TAG = re.compile(
    r"</?(?:html|head|body|div|p|br|hr|span|table|t[rdh]|a|b|i|u|em|strong|font|img|ul|ol|li|h[1-6])\b[^<>]*>", re.I
)
_ENTITY = re.compile(r"\[[^\[\]]+\](?:\([\w.:=-]+\)|\{\"entity\")")
_ENTITY_REMEDY = "remove the marks (load_text_file reads Rasa's files without them)"
#: A kind of markup is told from so large a share of the texts on, and a shared part of so many; at least of so many.
_SHARE, _SHARED, _FEWEST = 0.1, 0.5, 3
#: Words that texts share at one of their ends at least, and texts of which more than chance is shared.
_WORDS, _FEWEST_SHARED = 3, 20


def markup(texts: Sequence[str], rows: Sequence[int], place: Callable[[list[int]], str]) -> Iterator[Finding]:
    """Find what many texts hold that messages of users do not."""
    for pattern, what, remedy in (
        (_TAG.search, "hold HTML", "take the text out of it (the guide, Recipes)"),
        (_ENTITY.search, "hold marks of entities", _ENTITY_REMEDY),
        (TIME.match, "begin with a time", "write the messages alone"),
    ):
        found = [row for row in rows if pattern(texts[row].lstrip())]
        if len(found) >= max(_FEWEST, _SHARE * len(rows)):
            example = pattern(texts[found[0]].lstrip())
            shown = cut(example[0] if example else "")
            yield _finding(found, len(rows), f"{what}, such as {shown!r}", remedy, place)
            return  # its ends are shared, too
    if len(rows) < _FEWEST_SHARED:
        return
    words = {row: texts[row].casefold().split() for row in rows}
    for end, of in (("begin", slice(None, _WORDS)), ("end", slice(-_WORDS, None))):
        parts = {row: " ".join(each[of]) for row, each in words.items() if len(each) > _WORDS}
        for part, count in Counter(parts.values()).most_common(1):
            if count >= _SHARED * len(rows):
                what = f"{end} with the same words, {cut(part)!r}"
                found = [row for row, each in parts.items() if each == part]
                yield _finding(found, len(rows), what, "leave them out if users do not write them", place)


def _finding(found: list[int], n: int, what: str, remedy: str, place: Callable[[list[int]], str]) -> Finding:
    message = f"{len(found)} of {n} texts {what} ({place(found)}), unlike messages of users; {remedy}."
    return Finding("markup", found, None, message)
