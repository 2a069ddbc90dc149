"""Texts that a text model cannot read: signs, and languages, that its vocabulary does not have."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import chardet
import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.messages import numbered, shortened
from .._encoders.torch.tokens import Tokenizer

#: A vocabulary lacks the script of texts of which so many pieces are unknown. Of English texts with the default model 0
#: to .001 are, of Japanese, Chinese and Thai ones .2, .75 and 1.
MOST_UNKNOWN = 0.1
#: It lacks the words of texts that it cuts into so many pieces a word. English texts are in 1.1 to
#: 1.6 pieces a word, Spanish, Portuguese, French, German and Russian ones in 1.7, 1.7 to 2.0, 1.9, 2.3 and 5.
MOST_PIECES = 1.5
#: Tokens of a vocabulary of one language: fewer are none, more are of many.
_OF_ONE_LANGUAGE = range(10_000, 60_000)
#: Texts that tell the language, and letters of each; fewer texts do not tell it.
_MOST_TEXTS, _MOST_LETTERS, _FEWEST = 200, 200, 20
_ENGLISH = "en"
#: Letters of an example.
_SHOWN = 40


class Unread(NamedTuple):
    """What a text model cannot read of some texts."""

    #: Positions of texts of which it knows no letter or digit.
    rows: list[int]
    #: One sentence on the language of all, empty where it is read.
    language: str


def find_unread(texts: Sequence[str], tokenizer: Tokenizer) -> Unread:
    """Find texts of which a text model knows nothing, and a language that is not that of its vocabulary.

    Texts of which it knows nothing have one vector, whatever they say.
    """
    n_pieces, n_unknown = tokenizer.pieces(texts)
    spoken = np.array([any(letter.isalnum() for letter in text) for text in texts], dtype=bool)
    lost = (n_unknown == n_pieces) | ~spoken
    return Unread(np.flatnonzero(lost).tolist(), _language(texts, n_pieces, n_unknown, len(tokenizer.tokenizer)))


def _language(texts: Sequence[str], n_pieces: NDArray[np.int64], n_unknown: NDArray[np.int64], n_tokens: int) -> str:
    total, n_words = int(n_pieces.sum()), sum(len(text.split()) for text in texts)
    if len(texts) < _FEWEST or not total or not n_words:
        return ""
    unknown, per_word = n_unknown.sum() / total, total / n_words
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
        f"The text model hardly knows the words of these texts{named}: {measured}; take a text model of their language "
        '(see "Other languages" on the page Recipes of the guide).'
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
    """Say of which texts the text model knows nothing."""
    return (
        f"The text model knows no letter or digit of {numbered(len(texts), 'text')} in {place}, such as "
        f"{', '.join(examples(texts))}, so that they are all alike to it; leave them out, or take a text model that "
        "reads them."
    )
