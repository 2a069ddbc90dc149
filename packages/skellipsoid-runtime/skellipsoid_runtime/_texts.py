"""Texts to token ids: the checks and the tokenizer of the package, and no more of a long text than counts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ._rule_limits import check_rules

#: Letters of a text that are read at first for each token that counts. Usual texts have four to six.
_LETTERS_PER_TOKEN = 32
#: Letters at the end of a piece of a text whose tokens may change with what follows.
_UNSURE = 200
#: What the manifest says of the tokenizer.
SETTINGS = ("max_length", "pad_token_id", "lowers", "prompt", "truncation_side", "split_special_tokens")
#: Letters of a prompt, and tokens of a vocabulary.
_LONGEST_PROMPT, _MOST_TOKENS = 10_000, 2**24
#: What to do where a missing text was none in the file.
_OF_PANDAS = ", or read the file with keep_default_na=False if pandas made it of texts such as 'None' or 'NA'"
#: Texts tokenised at once, so that memory does not grow with their number.
WINDOW = 8192


def only_column(X: Any) -> Any:
    """Give a frame, table or array of one column as that column, (n_rows,), and everything else as it is.

    Raises
    ------
    ValueError
        If ``X`` is not computed yet: a lazy frame, a Dask collection.
    """
    package = type(X).__module__.partition(".")[0]
    if package == "dask" or (hasattr(X, "collect") and not hasattr(X, "__len__")):
        remedy = "compute() first, or use skellipsoid.dask" if package == "dask" else "collect() first"
        raise ValueError(f"X is a {package} {type(X).__name__}, but must be in memory; call its {remedy}.")
    if not hasattr(X, "__array__"):
        return X
    found = np.asanyarray(X)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def check_texts(X: Any) -> list[str]:
    """Check that ``X`` is a non-empty sequence of strings, or one column of them, and give it as a list.

    Raises
    ------
    ValueError
        One sentence that names what was found and what to pass: those of skellipsoid, which a test compares.
    """
    if isinstance(X, str | bytes):
        raise ValueError(  # noqa: TRY004 - the contract of all input errors here
            f"X is one {type(X).__name__}, but must be a sequence of strings; pass [text] for a single text."
        )
    X = only_column(X)
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(
            f"X has the shape {tuple(shape)}, but texts must be one-dimensional; pass one column, such as X['text']."
        )
    if isinstance(X, Mapping):
        raise ValueError(  # noqa: TRY004
            f"X is a {type(X).__name__}, but must be a sequence of strings; of lists of texts by their label take "
            "[text for texts in X.values() for text in texts] as texts, and [label for label, texts in X.items() for "
            "text in texts] as labels."
        )
    if shape is None and not isinstance(X, Sequence):
        raise ValueError(
            f"X is a {type(X).__name__}, but must be a list, tuple, array or Series of strings; pass list(X)."
        )
    texts = list(X)
    if not texts:
        raise ValueError("X is empty, but must hold at least one text; check how the texts were selected.")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            of_pandas = _OF_PANDAS if isinstance(text, float) and text != text else ""
            raise ValueError(  # noqa: TRY004
                f"X[{position}] is {text!r} of type {type(text).__name__}, but every text must be a str; "
                f"drop or fill missing texts and decode bytes first{of_pandas}."
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"X[{position}] is {text[:80]!r}, which holds half of a character (a lone surrogate) and is no "
                'valid Unicode; decode it correctly, or replace it with text.encode("utf-8", "replace").decode().'
            ) from None
    return [str(text) for text in texts]


class TextReader:
    """The tokenizer of an exported model."""

    def __init__(self, rules: bytes, settings: dict[str, Any]) -> None:
        parsed = json.loads(rules)
        check_rules(parsed)
        # Written again: of a name that stands twice, the library would read another value than was checked.
        self._cut = Tokenizer.from_str(json.dumps(parsed))
        self._whole: Tokenizer | None = None  # the same without a limit, made for the first long text
        if len(settings["prompt"]) > _LONGEST_PROMPT or not 0 <= settings["pad_token_id"] < _MOST_TOKENS:
            raise ValueError("a prompt or a padding token that no text model has")
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


def length_sorted_pieces(lengths: NDArray[np.int64], most_tokens: int, most_rows: int) -> list[NDArray[np.int64]]:
    """Group texts of similar length into pieces of a bounded padded size (or one text) and a bounded number of rows."""
    order = np.argsort(lengths, kind="stable")
    pieces, start = [], 0
    for stop in range(1, len(order) + 1):
        # Sorted: the last text is the longest of its piece.
        n_rows = stop + 1 - start
        if stop == len(order) or n_rows > most_rows or n_rows * lengths[order[stop]] > most_tokens:
            pieces.append(order[start:stop])
            start = stop
    return pieces
