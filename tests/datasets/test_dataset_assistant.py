"""The shipped corpus: its file, and the function that loads it."""

from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from skellipsoid.datasets import load_assistant_intents

SIZES = {"train": (672, 0), "dev": (168, 168), "test": (280, 168)}


def test_no_two_texts_are_near_copies():
    texts = load_assistant_intents(subset="all").data
    letters = ["".join(filter(str.isalnum, text.lower())) for text in texts]
    assert len(set(letters)) == len(texts)

    words = CountVectorizer(binary=True, token_pattern=r"\S+").fit_transform(texts)
    shared = (words @ words.T).toarray()
    n_words = shared.diagonal()
    jaccard = shared / (n_words[:, np.newaxis] + n_words - shared)
    np.fill_diagonal(jaccard, 0)
    assert jaccard.max() <= 0.6


@pytest.mark.parametrize("subset", SIZES)
def test_subset_sizes_and_kinds(subset):
    bunch = load_assistant_intents(subset=subset)
    is_open = bunch.target == "-1"
    assert ((~is_open).sum(), is_open.sum()) == SIZES[subset]
    assert set(bunch.target[~is_open]) == set(bunch.target_names)
    assert set(bunch.open_kind[~is_open]) == {""}
    assert Counter(bunch.open_kind[is_open]) == ({"near": 84, "far": 84} if is_open.any() else {})
    assert set(bunch.split) == {subset}
    assert bunch.data.dtype == object
    assert all(type(text) is str for text in bunch.data)


def test_return_X_y_is_data_and_target():
    bunch = load_assistant_intents(subset="dev", open_label="open")
    X, y = load_assistant_intents(subset="dev", open_label="open", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_unknown_subset():
    with pytest.raises(ValueError, match=r"subset='valid' names no part .* 'train', 'dev', 'test' or 'all'"):
        load_assistant_intents(subset="valid")


def test_open_label_that_is_an_intent():
    with pytest.raises(ValueError, match="open_label='set_alarm' is one of the 28 known classes"):
        load_assistant_intents(open_label="set_alarm")
