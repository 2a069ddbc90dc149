"""Tokenization of texts, which reads no more of a long text than the model does."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ._rule_limits import check_rules

#: Letters of a text that are read at first for each token that counts. Usual texts have four to six.
_LETTERS_PER_TOKEN = 32
#: Letters at the end of a piece of a text whose tokens may change with what follows.
_UNSURE = 200
#: Settings of the tokenizer in the manifest.
SETTINGS = ("max_length", "pad_token_id", "lowers", "prompt", "truncation_side", "split_special_tokens")
#: Letters of a prompt, and tokens of a vocabulary.
_LONGEST_PROMPT, _MOST_TOKENS = 10_000, 2**24
#: Texts tokenised at once, so that memory does not grow with their number.
WINDOW = 8192


class TextReader:
    """The tokenizer of an exported model."""

    def __init__(self, rules: bytes, settings: dict[str, Any]) -> None:
        parsed = json.loads(rules)
        check_rules(parsed)
        # Written again: of a name that stands twice, the library would read another value than was checked.
        self._cut = Tokenizer.from_str(json.dumps(parsed))
        self._whole: Tokenizer | None = None  # the same without a limit, made for the first long text
        if len(settings["prompt"]) > _LONGEST_PROMPT or not 0 <= settings["pad_token_id"] < _MOST_TOKENS:
            raise ValueError("a prompt or a padding token that no embedding model has")
        self.longest: int = settings["max_length"]
        self.padding: int = settings["pad_token_id"]
        self._lowers: bool = settings["lowers"]
        self._prompt: str = settings["prompt"]
        self._bounded = settings["truncation_side"] == "right"
        self._cut.encode_special_tokens = settings["split_special_tokens"]
        self._cut.enable_truncation(self.longest, direction=settings["truncation_side"])
        if self._prompt and len(self.tokens([""])[0]) >= self.longest:
            raise ValueError("a prompt that leaves no room for a text")

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text behind the prompt, special ones included, truncated to ``longest``, not padded."""
        given = [self._prompt + text for text in texts]
        if self._lowers:
            given = [text.lower() for text in given]
        if self._bounded:
            given = [self._beginning(text) for text in given]
        return [encoding.ids for encoding in self._cut.encode_batch_fast(given)]

    def _beginning(self, text: str) -> str:
        """Give as much of a text as determines its first ``longest`` tokens: a longer text takes no more time."""
        n_letters = _LETTERS_PER_TOKEN * self.longest
        while n_letters < len(text):
            piece = text[:n_letters]
            if self._whole is None:  # kept when it is complete: another thread may be here
                whole = Tokenizer.from_str(self._cut.to_str())
                whole.encode_special_tokens = self._cut.encode_special_tokens
                whole.no_truncation()
                self._whole = whole
            found = self._whole.encode(piece, add_special_tokens=False)
            words = found.word_ids
            last = words[-1] if words else None
            sure = sum(
                word != last and end <= n_letters - _UNSURE for word, (_, end) in zip(words, found.offsets, strict=True)
            )
            if sure >= self.longest:
                return piece
            n_letters *= 2
        return text


def padded(tokens: Sequence[Sequence[int]], padding: int) -> dict[str, NDArray[np.int64]]:
    """Token ids and the mask of some texts, as the graph takes them."""
    longest = max(map(len, tokens))
    ids = np.full((len(tokens), longest), padding, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, own in enumerate(tokens):
        ids[row, : len(own)] = own
        mask[row, : len(own)] = 1
    return {"input_ids": ids, "attention_mask": mask}
