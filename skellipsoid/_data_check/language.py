"""Whether training texts are of the language of a text model, by the pieces into which it divides their words."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .findings import Finding

#: Pieces of a word on average: in English texts at most 1.22 (StackOverflow titles) by all-MiniLM-L6-v2, in others at
#: least 1.48 (French).
_MOST_PIECES = 1.35
#: Tokens that a model of one language knows: fewer are no language, more are of many.
_OF_ONE_LANGUAGE = range(10_000, 60_000)
#: Words from which on this is told.
_FEWEST_WORDS = 50
_WORD = re.compile(r"\w+|[^\w\s]")


def language(texts: Sequence[str], rows: Sequence[int], counts: NDArray[np.int64], n_tokens: int) -> Iterator[Finding]:
    """Find that words have many pieces, by the tokens of each text and the number of those that the model knows."""
    n_words = sum(len(_WORD.findall(text)) for text in texts)
    if n_words < _FEWEST_WORDS or n_tokens not in _OF_ONE_LANGUAGE:
        return
    pieces = counts.sum() / n_words
    if pieces > _MOST_PIECES:
        message = (
            f"The text model divides the words of these texts into {pieces:.1f} pieces on average, as it does with "
            "languages that it was not trained on; use a text model of their language (the guide, Recipes, Other "
            "languages)."
        )
        yield Finding("language", list(rows), None, message)
