"""Equal texts and near duplicates, by character n-grams, and a hash of training data."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from skellipsoid_runtime._containers import check_texts

from .._samples.duplicates import find_duplicates
from .characters import normalize_text
from .validation import number

#: Number of characters of a text that are compared; most embedding models read about as many.
_N_CHARACTERS = 1000
#: Dimensions to which the weights of character n-grams are reduced.
_N_DIRECTIONS = 128
#: Smallest cosine of the character n-grams of near duplicates.
_ALIKE = 0.75


def texts_of(X: Any) -> list[str] | None:
    """Return samples that are texts as a list, and ``None`` for other samples."""
    try:
        return check_texts(X)
    except ValueError:
        return None


def equal_texts(texts: Sequence[str], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give equal texts of one class the same number.

    Equal after case folding, Unicode normalisation (NFKC) and collapsing white space; numbered in the order of their
    first text.
    """
    return number((label, normalize_text(text)) for label, text in zip(classes.tolist(), texts, strict=True))


def first_of_equal(texts: Sequence[str]) -> NDArray[np.int64]:
    """Row of the first of each set of equal texts, whatever their class, ascending."""
    return np.unique(number(map(normalize_text, texts)), return_index=True)[1]


#: Smallest cosine of the weights of two texts of a class that are variants of each other.
_VARIANT, _OF_PART = 0.5, 25


def near_duplicates(texts: Sequence[str], classes: NDArray[np.int64]) -> Iterator[list[int]]:
    """Group near duplicates within a class by their characters; no embedding is needed.

    Parameters
    ----------
    texts : sequence of str of shape (n_samples,)
        Normalised; no two of one class are the same.
    classes : ndarray of shape (n_samples,)

    Yields
    ------
    rows : list of int
        Rows of each group of at least two.
    """
    if len(texts) < 2:
        return
    weights = _character_weights(texts)
    left, singular, _ = randomized_svd(weights, min(_N_DIRECTIONS, *weights.shape), random_state=0)
    varies = singular > 1e-9 * singular[0]
    units = defaultdict(list)
    for row, unit in enumerate(find_duplicates(normalize(left[:, varies] * singular[varies]), classes).tolist()):
        units[unit].append(row)
    for rows in units.values():
        if len(rows) > 1:
            similarity = (weights[rows] @ weights[rows].T).toarray()
            np.fill_diagonal(similarity, 0)
            alike = [row for row, largest in zip(rows, similarity.max(axis=1), strict=True) if largest >= _ALIKE]
            if alike:
                yield alike


def variants(texts: Sequence[str], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Find texts that are variants of another text of their class, by their characters, (n_samples,).

    Among more texts neighbours are nearer. So a class is searched in random parts of at most ``_OF_PART`` texts.

    Parameters
    ----------
    texts : sequence of str of shape (n_samples,)
        Normalised; no two of one class are the same.
    classes : ndarray of shape (n_samples,)
    """
    weights, found = _character_weights(texts), np.zeros(len(texts), dtype=bool)
    order = np.random.default_rng(0).permutation(len(texts))
    for code in range(int(classes.max()) + 1):
        rows = order[classes[order] == code]
        for part in np.array_split(rows, -(-len(rows) // _OF_PART)):
            similarity = (weights[part] @ weights[part].T).toarray()
            np.fill_diagonal(similarity, 0)
            found[part] = similarity.max(axis=1, initial=0) >= _VARIANT
    return found


def _character_weights(texts: Sequence[str]) -> Any:
    """TF-IDF weights of n-grams of characters within words, so that the order of words has little influence."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, lowercase=False)
    return vectorizer.fit_transform([_without_punctuation(text[:_N_CHARACTERS]) for text in texts])


def _without_punctuation(text: str) -> str:
    """Drop punctuation, unless there is nothing else."""
    without = "".join(" " if unicodedata.category(character)[0] == "P" else character for character in text)
    return " ".join(without.split()) or text


def hash_table(texts: Sequence[str], labels: Sequence[Any] | None) -> str:
    """SHA-256 of a UTF-8 file of ``text<TAB>label`` lines, or of texts alone."""
    digest = hashlib.sha256()
    for row in zip(texts, *([] if labels is None else [labels]), strict=True):
        # A lone surrogate, which a label may hold, has no UTF-8.
        digest.update(("\t".join(map(str, row)) + "\n").encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
