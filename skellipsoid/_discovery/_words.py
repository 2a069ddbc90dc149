"""The words that tell a group of texts from the others: class-based TF-IDF."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer


def telling_words(texts: Sequence[str], groups: NDArray[np.int64], n_words: int) -> list[list[str]]:
    """Most telling words of each group, the best first.

    The weight of a word is the share of the group's texts that have it, times ln(1 + (A − f + ½) / (f + ½)) [1]_. f is
    the number of texts with the word in all groups, and A the mean number of words of a group, each counted once in a
    text. Texts in no group count as one more group. Words with f > A have no weight.

    Parameters
    ----------
    texts : sequence of str of shape (n_texts,)
    groups : ndarray of shape (n_texts,)
        Group of each text, −1 for none.
    n_words : int

    Returns
    -------
    words : list of list of str
        Fewer than ``n_words`` for a group with fewer words.

    References
    ----------
    .. [1] Grootendorst, M. "BERTopic: Neural Topic Modeling with a Class-Based TF-IDF Procedure." 2022.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    vectorizer = CountVectorizer(binary=True, token_pattern=r"(?u)\b[^\W\d_][\w'’]*\w\b")
    try:
        present = vectorizer.fit_transform(texts)
    except ValueError:  # there is no word
        return [[] for _ in range(n_groups)]
    names = vectorizer.get_feature_names_out()
    everywhere = np.asarray(present.sum(axis=0)).ravel()
    mean = everywhere.sum() / (n_groups + 1)
    weights = np.log1p(np.maximum(mean - everywhere + 0.5, 0) / (everywhere + 0.5))
    found = []
    for group in range(n_groups):
        share = np.asarray(present[groups == group].mean(axis=0)).ravel()
        score = share * weights
        best = np.argsort(-score, kind="stable")[:n_words]
        found.append(names[best[score[best] > 0]].tolist())
    return found
