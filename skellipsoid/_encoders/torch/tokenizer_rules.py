"""Texts to token ids by a tokenizer whose rules are checked (``skellipsoid_runtime._rule_limits``)."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from skellipsoid_runtime._rule_limits import LONGEST_RULE, MOST_GROWTH, possible_growth

#: Whether a tokenizer may make texts far longer: its rules, of which some are large, are read once.
_MAY_GROW: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def encode(tokenizer: Any, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
    """Token ids of each text, special tokens included, truncated to ``longest``, not padded.

    Raises
    ------
    ValueError
        If the tokenizer makes a text far longer, or cannot read it.
    """
    options = {"truncation": longest is not None, "max_length": longest, "padding": False, "verbose": False}
    with _no_panic():
        if not tokenizer.is_fast:
            ids: list[list[int]] = tokenizer(list(texts), **options)["input_ids"]
            return ids
        rules = tokenizer.backend_tokenizer
        if _may_grow(tokenizer):
            _check_lengths(rules.normalizer, texts)
        tokenizer("", **options)  # sets the truncation
        # The ids alone: the library's call makes masks and offsets of each text too, and takes 1.3 to 2 times as long.
        return [encoding.ids for encoding in rules.encode_batch_fast(list(texts))]


def _may_grow(tokenizer: Any) -> bool:
    """Whether a normalisation could make a text more than ``MOST_GROWTH`` times as long; found once."""
    if (found := _MAY_GROW.get(tokenizer)) is None:
        normalizer = tokenizer.backend_tokenizer.normalizer
        try:
            found = normalizer is not None and possible_growth(json.loads(normalizer.__getstate__())) > MOST_GROWTH
        except (ValueError, LookupError, TypeError):  # a rule that is not known, of a model that was not saved here
            found = True
        _MAY_GROW[tokenizer] = found
    return found


def _check_lengths(normalizer: Any, texts: Sequence[str]) -> None:
    """Raise an error over a text that becomes far longer."""
    for text in texts:
        n_letters = len(normalizer.normalize_str(text))
        if n_letters > MOST_GROWTH * (len(text) + LONGEST_RULE):
            raise ValueError(
                f"The embedding model's tokenizer makes {n_letters} letters of a text of {len(text)}, more than "
                f"{MOST_GROWTH} times as many; use another embedding model."
            )


@contextmanager
def _no_panic() -> Iterator[None]:
    try:
        yield
    except Exception:
        raise
    except BaseException as error:  # a panic of the tokenizer's library is no Exception
        if type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"The embedding model's tokenizer cannot read a text ({reason}); use another embedding model."
        ) from error
