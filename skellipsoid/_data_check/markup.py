"""Finds what stands around the words of users in training texts: tags, entities, times, greetings, signatures."""

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
#: What to do.
_CLEAN, _LEAVE_OUT = "see Mails and tickets in the guide", "leave them out if users do not write them"
_ENTITY_REMEDY = "remove the marks (load_text_file reads Rasa's files without them)"
#: Lines that a program for mails writes around an earlier message.
_QUOTED = re.compile(
    r"^[ \t]*>.*\S|^-{3,} ?\w[\w ]+ ?-{3,}\s*$|^From: .+\n(?:.+\n)?Sent: "
    r"|^.{0,80}\d{4}.{0,80}(?:wrote|schrieb|a écrit|escreveu|escribió|ha scritto|написал\(?а?\)?).{0,80}:\s*$",
    re.M,
)
#: A kind of markup is a finding from this proportion and this number of texts on.
_PROPORTION, _FEWEST = 0.1, 3
#: Words at one end, and the proportion of the texts that must share them: by chance few texts share few words.
_SHARED = ((3, 0.5), (8, 0.1))
#: Fewest texts for this check; and of the texts that share words, the proportion that must share a longer part.
_FEWEST_SHARED, _ALSO = 20, 0.9


def markup(texts: Sequence[str], rows: Sequence[int], place: Callable[[list[int]], str]) -> Iterator[Finding]:
    """Find what many texts hold that messages of users do not."""
    found_any = False
    for pattern, what, remedy in (
        (_TAG.search, "hold HTML", _CLEAN),
        (_ENTITY.search, "hold marks of entities", _ENTITY_REMEDY),
        (TIME.match, "begin with a time", "write the messages alone"),
        (_QUOTED.search, "quote an earlier message", _CLEAN),
    ):
        found = [row for row in rows if pattern(texts[row].lstrip())]
        if len(found) >= max(_FEWEST, _PROPORTION * len(rows)):
            example = pattern(texts[found[0]].lstrip())
            shown = cut(" ".join(example[0].split()) if example else "")
            yield _finding(found, len(rows), f"{what}, such as {shown!r}", remedy, place)
            found_any = True
    if not found_any and len(rows) >= _FEWEST_SHARED:  # or their ends are tags, times and quotes
        words = {row: texts[row].split() for row in rows}
        yield from _ends(words, "begin", place)
        yield from _ends({row: own[::-1] for row, own in words.items()}, "end", place)


def _ends(words: dict[int, list[str]], end: str, place: Callable[[list[int]], str]) -> Iterator[Finding]:
    """Find the longest part that many texts begin with."""
    folded = {row: tuple(map(str.casefold, own)) for row, own in words.items()}
    for n_words, proportion in _SHARED:
        counts = Counter(own[:n_words] for own in folded.values() if len(own) > n_words)
        for part, count in counts.most_common(1):
            if count < proportion * len(words):
                continue
            found = [row for row, own in folded.items() if own[:n_words] == part and len(own) > n_words]
            while True:
                longer, n_same = Counter(folded[row][: len(part) + 1] for row in found).most_common(1)[0]
                if len(longer) == len(part) or n_same < _ALSO * count:
                    break
                part = longer
                found = [row for row in found if folded[row][: len(part)] == part]
            shown = words[found[0]][: len(part)]
            text = cut(" ".join(shown if end == "begin" else shown[::-1]))
            what = f"{end} with the same words, {text!r}"
            yield _finding(found, len(words), what, f"{_LEAVE_OUT}; {_CLEAN}", place)
            return


def _finding(found: list[int], n: int, what: str, remedy: str, place: Callable[[list[int]], str]) -> Finding:
    message = f"{len(found)} of {n} texts {what} ({place(found)}), unlike messages of users; {remedy}."
    return Finding("markup", found, None, message)
