"""The words that tell a group of texts from the others: class-based TF-IDF."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import regex
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
#: Letters of scripts without blanks between words, by how lines of them are broken: Thai and its neighbours, whose
#: words only a dictionary tells, and ideographs with the syllables between them.
_COMPLEX, _IDEOGRAPHS = r"[\p{L}&&\p{lb=SA}]", r"[\p{L}&&[\p{lb=ID}\p{lb=CJ}]--\p{WB=Katakana}]"
_OTHER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{_COMPLEX}{_IDEOGRAPHS}]]"
_WORD = regex.compile(
    rf"(?V1)(?P<complex>(?:{_COMPLEX}\p{{M}}*)+)|(?P<ideographs>(?:{_IDEOGRAPHS}\p{{M}}*)+)"
    rf"|\p{{L}}(?:{_OTHER}|['’])*{_OTHER}"
)
#: Letters, with their marks, of the parts that stand for words there.
_LENGTHS = {"complex": 3, "ideographs": 2}


def words_of(text: str) -> list[str]:
    """Words of a text in small letters, of two characters at least.

    Of scripts without blanks between words it is all parts of a few letters, each with its marks.
    """
    found = []
    for match in _WORD.finditer(unicodedata.normalize("NFC", text).lower()):
        if match.lastgroup is None:
            found.append(match[0])
            continue
        letters, n = regex.findall(r"\X", match[0]), _LENGTHS[match.lastgroup]
        found += ["".join(letters[i : i + n]) for i in range(max(1, len(letters) - n + 1))]
    return [word for word in found if len(word) > 1 and word not in _EMPTY]


def telling_words(
    texts: Sequence[str], groups: NDArray[np.int64], n_words: int, n_groups: int | None = None
) -> list[list[str]]:
    """Most telling words of each group, the best first.

    The weight of a word is the rate p of the group's texts that have it, times ln(1 + 1 / q) [1]_. q is the mean of
    these rates over all groups, so that a large group has the same weight as a small one. The texts in no group are
    one more group. English words that say nothing alone, such as *how*, are none. Where a script has no blanks between
    words, parts of two letters (Chinese, Japanese) or three (Thai, Lao, Khmer, Burmese) take the place of words.

    Parameters
    ----------
    texts : sequence of str of shape (n_texts,)
    groups : ndarray of shape (n_texts,)
        Group of each text, −1 for none.
    n_words : int
    n_groups : int, default=None
        Groups whose words are wanted: the first ones. They are compared with the others, such as known classes.

    Returns
    -------
    words : list of list of str
        Fewer than ``n_words`` for a group with fewer words.

    References
    ----------
    .. [1] Grootendorst, M. "BERTopic: Neural Topic Modeling with a Class-Based TF-IDF Procedure." 2022.
    """
    n_groups = int(groups.max(initial=-1)) + 1 if n_groups is None else n_groups
    vectorizer = CountVectorizer(binary=True, analyzer=words_of)
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
