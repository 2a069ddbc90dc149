"""The words that tell a group of texts from the others: class-based TF-IDF."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

#: English words that tell nothing of what a text is about. Lists of others hold words such as bill, call and show.
_EMPTY = frozenset(
    """
    a about after again all also am an and any anyone are aren't as at be because been before being both but by can
    can't could couldn't did didn't do does doesn't doing don't each either else even ever every few for from get gets
    getting go goes going got had has hasn't have haven't having he her here hers him his how i i'd i'll i'm i've if in
    into is isn't it it's its just let let's like make may me might more most much must my myself need neither never no
    nor not now of off on once one only or other our out over own please quite rather really same she should shouldn't
    so some something such than that that's the their them then there there's these they they're this those though
    through to too under until up us very want wants was wasn't way we we're well were weren't what what's when where
    which while who who's whom whose why will with without won't would wouldn't yes yet you you're your yours
    """.split()  # noqa: SIM905
)


def telling_words(
    texts: Sequence[str], groups: NDArray[np.int64], n_words: int, n_groups: int | None = None
) -> list[list[str]]:
    """Most telling words of each group, the best first.

    The weight of a word is the share p of the group's texts that have it, times ln(1 + 1 / q) [1]_. q is the mean of
    these shares over all groups, so that a large group has the same weight as a small one. The texts in no group are
    one more group. English words that say nothing alone, such as *how*, are none.

    Parameters
    ----------
    texts : sequence of str of shape (n_texts,)
    groups : ndarray of shape (n_texts,)
        Group of each text, −1 for none.
    n_words : int
    n_groups : int, default=None
        Groups whose words are wanted: the first ones. From the others, such as known classes, they are told.

    Returns
    -------
    words : list of list of str
        Fewer than ``n_words`` for a group with fewer words.

    References
    ----------
    .. [1] Grootendorst, M. "BERTopic: Neural Topic Modeling with a Class-Based TF-IDF Procedure." 2022.
    """
    n_groups = int(groups.max(initial=-1)) + 1 if n_groups is None else n_groups
    vectorizer = CountVectorizer(binary=True, stop_words=sorted(_EMPTY), token_pattern=r"(?u)\b[^\W\d_][\w'’]*\w\b")
    try:
        present = vectorizer.fit_transform(texts)
    except ValueError:  # there is no word
        return [[] for _ in range(n_groups)]
    names = vectorizer.get_feature_names_out()
    every = np.unique(groups)
    shares = np.stack([np.asarray(present[groups == group].mean(axis=0)).ravel() for group in every])
    first = int(np.searchsorted(every, 0))
    scores = (shares * np.log1p(1 / shares.mean(axis=0)))[first : first + n_groups]
    found = []
    for score in scores:
        best = np.argsort(-score, kind="stable")[:n_words]
        found.append(names[best[score[best] > 0]].tolist())
    return found
