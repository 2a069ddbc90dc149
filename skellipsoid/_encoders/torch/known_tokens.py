"""Readable tokens: those of the vocabulary with a letter, a digit or a sign such as an emoji."""

import unicodedata
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

#: General categories of Unicode that are readable: letters, numbers, and signs that are not punctuation.
_SAYING = ("L", "N", "So")
#: How vocabularies write a blank; else it would count as a sign.
_BLANK = "\u2581"
#: Cache: the table of a tokenizer is large.
_TABLES: WeakKeyDictionary[Any, Tensor] = WeakKeyDictionary()


def readable_tokens(tokenizer: Any) -> Tensor:
    """Whether each token is readable, (n_tokens,), Boolean.

    Unknown and other special tokens, blanks, punctuation and signs of arithmetic are not readable. Tokens of single
    bytes, as in byte-level vocabularies, are.
    """
    if (found := _TABLES.get(tokenizer)) is None:
        numbers = tokenizer.get_vocab().values()
        n_tokens = 1 + max(numbers, default=-1)
        if tokenizer.is_fast:
            rows = [[number] for number in range(n_tokens)]
            written = tokenizer.backend_tokenizer.decode_batch(rows, skip_special_tokens=False)
        else:
            written = [tokenizer.convert_ids_to_tokens(number) or "" for number in range(n_tokens)]
        found = torch.tensor([_says_something(each) for each in written], dtype=torch.bool)
        special = [number for number in tokenizer.all_special_ids if number < n_tokens]
        found[special] = False
        _TABLES[tokenizer] = found
    return found


def _says_something(written: str) -> bool:
    return any(unicodedata.category(letter).startswith(_SAYING) for letter in written if letter != _BLANK)
