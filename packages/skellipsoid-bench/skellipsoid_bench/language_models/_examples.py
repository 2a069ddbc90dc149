"""Training texts that a request shows with their labels: those that are most similar to the text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from skellipsoid import SupConTextEncoder
from skellipsoid._core.characters import normalize_text


class Examples(NamedTuple):
    """Training texts, the words of their labels (``None`` is open), and their features."""

    texts: list[str]
    words: list[str | None]
    features: NDArray[np.floating]  # (n_examples, n_features)

    def nearest(self, features: Any, n_shown: int, open_word: str) -> list[list[tuple[str, str]]]:
        """Texts and words of the most similar examples of each row, by cosine, the most similar one last."""
        similarity = cosine_similarity(_dense(features).astype(np.float64), self.features)
        rows = np.argsort(similarity, axis=1, kind="stable")[:, -n_shown:]
        return [[(self.texts[i], self.words[i] or open_word) for i in found] for found in rows.tolist()]


def make_examples(
    texts: Sequence[str], labels: NDArray[Any], open_label: Any, empty: set[int], encoder: Any
) -> tuple[Examples, Any]:
    """Choose the texts that may be shown, and fit a clone of the encoder to them.

    Raises
    ------
    ValueError
        If all texts are empty.
    """
    first: dict[tuple[str, Any], int] = {}
    for row, (text, label) in enumerate(zip(texts, labels.tolist(), strict=True)):
        if row not in empty:
            first.setdefault((normalize_text(text), label), row)  # a copy says nothing more
    rows = list(first.values())
    if not rows:
        raise ValueError(f"All {len(texts)} texts are empty, so there are no examples; pass texts, or n_examples=0.")
    fitted = SupConTextEncoder(finetune="none") if encoder is None else clone(encoder)
    chosen, said = [texts[row] for row in rows], labels[rows]
    if hasattr(fitted, "fit_transform"):
        features = fitted.fit_transform(chosen, said)
    else:
        features = fitted.fit(chosen, said).transform(chosen)
    words = [None if label == open_label else str(label) for label in said.tolist()]
    return Examples(chosen, words, _dense(features)), fitted


def _dense(features: Any) -> NDArray[np.floating]:
    """Features of any encoder, of TF-IDF too."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)
