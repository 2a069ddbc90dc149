"""The shipped corpus: its file, and the function that loads it."""

from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import make_pipeline

from skellipsoid.datasets import load_assistant_intents

SIZES = {"train": (672, 0), "dev": (168, 168), "test": (280, 168)}


@pytest.fixture(scope="module")
def lines():
    bunch = load_assistant_intents()
    text = files(bunch.data_module).joinpath(bunch.filename).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


def test_file_is_three_columns_sorted_by_part_and_label(lines):
    rows = [tuple(line.split("\t")) for line in lines]
    assert rows[0] == ("split", "label", "text")
    assert {len(row) for row in rows} == {3}
    assert rows[1:] == sorted(rows[1:])
    assert all(field and field == field.strip() for row in rows for field in row)


def test_file_holds_the_promised_number_of_rows_of_each_kind(lines):
    counts = Counter(tuple(line.split("\t")[:2]) for line in lines[1:])
    intents = {label for _, label in counts if not label.startswith("open_")}
    expected = {(part, intent): n for part, n in [("train", 24), ("dev", 6), ("test", 10)] for intent in intents}
    expected |= {(part, f"open_{kind}"): 84 for part in ("dev", "test") for kind in ("near", "far")}
    assert len(intents) == 28
    assert counts == expected


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


def test_all_is_the_parts_in_order():
    whole = load_assistant_intents(subset="all")
    parts = [load_assistant_intents(subset=part) for part in SIZES]
    for name in ("data", "target", "open_kind", "split"):
        np.testing.assert_array_equal(whole[name], np.concatenate([part[name] for part in parts]))
    assert whole.target_names == sorted(set(whole.target) - {"-1"})


def test_return_X_y_is_data_and_target():
    bunch = load_assistant_intents(subset="dev", open_label="open")
    X, y = load_assistant_intents(subset="dev", open_label="open", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


@pytest.mark.parametrize(
    ("open_label", "expected"), [(-1, "-1"), (99, "99"), ("an open label longer than any intent",) * 2]
)
def test_open_label_is_cast_to_a_whole_string(open_label, expected):
    bunch = load_assistant_intents(subset="test", open_label=open_label)
    assert set(bunch.target[bunch.open_kind != ""]) == {expected}
    assert expected not in bunch.target_names


def test_labels_fit_the_texts():
    pipe = make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)), ComplementNB())
    pipe.fit(*load_assistant_intents(return_X_y=True))
    test = load_assistant_intents(subset="test")
    is_known = test.open_kind == ""
    # Chance is 1/28.
    assert pipe.score(test.data[is_known], test.target[is_known]) > 0.5


def test_unknown_subset():
    with pytest.raises(ValueError, match=r"subset='valid' names no part .* 'train', 'dev', 'test' or 'all'"):
        load_assistant_intents(subset="valid")


def test_open_label_that_is_an_intent():
    with pytest.raises(ValueError, match="open_label='set_alarm' is one of the 28 known classes"):
        load_assistant_intents(open_label="set_alarm")


def test_description_names_the_sizes_and_the_licence():
    description = load_assistant_intents().DESCR
    assert description.startswith(".. _assistant_intents:")
    for part, (n_known, _) in SIZES.items():
        assert f"{part:5}    {n_known}" in description
    assert ":Licence: BSD-3-Clause" in description
