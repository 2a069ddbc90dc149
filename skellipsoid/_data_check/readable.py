"""Finds texts that an embedding model cannot read: signs and languages that its vocabulary does not have."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import chardet
import numpy as np

from .._core.characters import printable
from .._core.messages import numbered, shortened
from .._encoders.torch.tokens import Counts

#: Largest proportion of unknown pieces of texts in a script of the vocabulary. With the default model it is 0 to
#: .001 of English texts, and .2, .75 and 1 of Japanese, Chinese and Thai ones.
MOST_UNKNOWN = 0.1
#: Largest number of pieces a word of texts in a language of the vocabulary. English texts have 1.1 to 1.6, Spanish,
#: Portuguese, French, German and Russian ones 1.7, 1.7 to 2.0, 1.9, 2.3 and 5.
MOST_PIECES = 1.5
#: Tokens of a vocabulary of one language: fewer are none, more are of many.
_OF_ONE_LANGUAGE = range(10_000, 60_000)
#: Texts that tell the language, and letters of each; fewer texts do not tell it.
_MOST_TEXTS, _MOST_LETTERS, _FEWEST = 200, 200, 20
_ENGLISH = "en"
#: Letters of an example.
_SHOWN = 40


class Unread(NamedTuple):
    """What an embedding model cannot read of some texts."""

    #: Positions of texts of which it knows no letter, digit or sign: their features are zeros.
    rows: list[int]
    #: One sentence on the language of all, empty where it is read.
    language: str


def find_unread(texts: Sequence[str], counts: Counts, n_tokens: int) -> Unread:
    """Find texts of which an embedding model knows nothing, and a language that is not that of its vocabulary.

    Texts of which it knows nothing have one vector, whatever they say.

    Parameters
    ----------
    texts : sequence of str
    counts : Counts
        Their tokens.
    n_tokens : int
        Size of the vocabulary.
    """
    return Unread(np.flatnonzero(counts.readable <= 0).tolist(), _language(texts, counts, n_tokens))


def _language(texts: Sequence[str], counts: Counts, n_tokens: int) -> str:
    total, n_words = int(counts.own.sum()), sum(len(text.split()) for text in texts)
    if len(texts) < _FEWEST or not total or not n_words:
        return ""
    unknown, per_word = counts.unknown.sum() / total, total / n_words
    if unknown <= MOST_UNKNOWN and (per_word <= MOST_PIECES or n_tokens not in _OF_ONE_LANGUAGE):
        return ""
    found = _code_of(texts)
    if found == _ENGLISH:
        return ""
    measured = (
        f"{100 * unknown:.0f} % of their pieces are none of its vocabulary"
        if unknown > MOST_UNKNOWN
        else f"it cuts each word into {per_word:.1f} pieces, English ones into 1.1 to 1.6"
    )
    named = f" (they look like the language {found!r})" if found else ""
    return (
        f"The embedding model hardly knows the words of these texts{named}: {measured}; take one of their language "
        '(see "Other languages" on the page Text of the guide).'
    )


def _code_of(texts: Sequence[str]) -> str:
    """Name the language by its code; empty where it is not clear."""
    step = max(1, len(texts) // _MOST_TEXTS)
    sample = "\n".join(text[:_MOST_LETTERS] for text in texts[::step])
    return str(chardet.detect(sample.encode("utf-8", "replace")).get("language") or "")


def examples(texts: Sequence[str]) -> Iterator[str]:
    """Write some different texts for a message."""
    for text in list(dict.fromkeys(texts))[:3]:
        yield repr(shortened(printable(text), _SHOWN))


def unread_message(place: str, texts: Sequence[str]) -> str:
    """Say of which texts the embedding model knows nothing."""
    return (
        f"The embedding model reads nothing of {numbered(len(texts), 'text')} in {place}, such as "
        f"{', '.join(examples(texts))}: no letter, digit or emoji that it knows, so that they are all alike to it; "
        "leave them out, or take an embedding model that reads them."
    )
