"""Texts of any container: what the encoder takes, and one sentence for everything else."""

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._validation import number


def check_texts(X: Any) -> list[str]:
    """Check that ``X`` is a non-empty sequence of strings, and give it as a list.

    Raises
    ------
    ValueError
        One sentence that names what was found and what to pass.
    """
    if isinstance(X, str | bytes):
        msg = f"X is one {type(X).__name__}, but must be a sequence of strings; pass [text] for a single text."
        raise ValueError(msg)  # noqa: TRY004 - the contract of all input errors here
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        msg = f"X has the shape {tuple(shape)}, but texts must be one-dimensional; pass one column, such as X['text']."
        raise ValueError(msg)
    if shape is None and not isinstance(X, Sequence):
        msg = f"X is a {type(X).__name__}, but must be a list, tuple, array or Series of strings; pass list(X)."
        raise ValueError(msg)
    texts = list(X)
    if not texts:
        msg = "X is empty, but must hold at least one text; check how the texts were selected."
        raise ValueError(msg)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            msg = (
                f"X[{position}] is {text!r} of type {type(text).__name__}, but every text must be a str; "
                "drop or fill missing texts and decode bytes first."
            )
            raise ValueError(msg)  # noqa: TRY004
    # Plain str: NumPy's subclass is refused by fast tokenisers.
    return [str(text) for text in texts]


def equal_texts(texts: Sequence[str], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give texts of one class that are the same the same number.

    The same after case folding, Unicode normalisation (NFKC) and white space; numbered in the order of their first
    text.
    """
    return number((label, normalize_text(text)) for label, text in zip(classes.tolist(), texts, strict=True))


def normalize_text(text: str) -> str:
    """Fold case, normalise Unicode (NFKC) and make every run of white space one blank."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def hash_table(texts: Sequence[str], labels: Sequence[Any] | None) -> str:
    """SHA-256 of a UTF-8 file of ``text<TAB>label`` lines, or of texts alone."""
    digest = hashlib.sha256()
    for row in zip(texts, *([] if labels is None else [labels]), strict=True):
        # A lone surrogate has no UTF-8, but is a text that can be embedded.
        digest.update(("\t".join(map(str, row)) + "\n").encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
