"""The words that tell a group of texts from the others: class-based TF-IDF."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer


def telling_words(texts: Sequence[str], groups: NDArray[np.int64], n_words: int) -> list[list[str]]:
    """Most telling words of each group, the best first.

    The weight of a word is the share p of the group's texts that have it, times ln(1 + 1 / q) [1]_. q is the mean of
    these shares over all groups, so that a large group has the same weight as a small one. The texts in no group are
    one more group.

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
    shares = np.stack([np.asarray(present[groups == group].mean(axis=0)).ravel() for group in np.unique(groups)])
    scores = (shares * np.log1p(1 / shares.mean(axis=0)))[len(shares) - n_groups :]
    found = []
    for score in scores:
        best = np.argsort(-score, kind="stable")[:n_words]
        found.append(names[best[score[best] > 0]].tolist())
    return found
