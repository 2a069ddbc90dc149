"""Labels in other spellings: all functions that take labels of messages read them alike."""

import re
import unicodedata
from copy import copy

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import skellipsoid
from skellipsoid import add_classes, estimate_open_share, learn_from_traffic, merge_classes, set_operating_point
from skellipsoid._core.characters import is_visible
from skellipsoid._core.spelling import forms, refuse_other_spellings, says_none
from skellipsoid.datasets import make_open_blobs

NAMES = np.array(["wake_me", "balance", "lights 2"])
#: −1 as spreadsheets, phones, word processors and accountants write it.
OTHER_MINUS_ONES = [
    *("\u22121", "\u20131", "\u20141", "'-1", "\u2019-1", "`-1", '"-1"', "\uff0d1", "\uff0d\uff11", "-\uff11"),
    *("(1)", "(-1)", "[-1]", "- 1", "-\u00a01", "-1,0", "\u22121.0", "-1.", "-01", "1-", "\u207b\u00b9", "\u200b-1"),
    *("-1\ufe0f", "-1\u3164", "-\u034f1", "\u2800-1", "-1\U000e0100"),
]
SEPARATORS = [" ", "_", "-", "\u2010", "\u2011", "\u2013", "\u2014", "\u2212", "\u00a0", "\u3000", "__"]
WORDS = st.text(st.sampled_from("aZkäßéЖя0123"), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def data():
    X, y = make_open_blobs(160, 4, n_known=3, open_share=0.2, random_state=0)
    return X, np.array([*NAMES, "-1"])[y]


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    known = y != "-1"
    return skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X[known], y[known])


#: Each takes a classifier, samples and their labels.
READERS = {
    "set_operating_point": set_operating_point,
    "rate": lambda clf, X, y: set_operating_point(clf, X, y, rejection_rate=0.2),
    "open rate": lambda clf, X, y: set_operating_point(clf, X, y, open_acceptance_rate=0.9),
    "estimate_open_share": estimate_open_share,
    "learn_from_traffic": learn_from_traffic,
    "add_classes": add_classes,
    "merge_classes": lambda clf, _, y: merge_classes(clf, {str(y[0]): ["lights 2", "balance"]}),
    "y_val": lambda clf, X, y: copy(clf).fit(X, clf.classes_[np.arange(len(X)) % 3], X_val=X, y_val=y),
}


@st.composite
def spelled(draw):
    """Draw a name and another spelling of it."""
    words = draw(st.lists(WORDS, min_size=1, max_size=3))
    name = words[0] + "".join(draw(st.sampled_from(" _-")) + word for word in words[1:])
    other = words[0]
    for word in words[1:]:
        are_digits = other[-1].isdigit() and word[0].isdigit()
        other += draw(st.sampled_from(SEPARATORS if are_digits else ["", "\u200b", "'", *SEPARATORS])) + word
    change = draw(st.sampled_from([str, str.upper, str.lower, str.title, str.swapcase]))
    other = change(unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD", "NFKD"])), other))
    return name, draw(st.sampled_from(["{}", "'{}", '"{}"', "\u201e{}\u201c", "[{}]", " {} "])).format(other)


@settings(deadline=None, max_examples=20)
@given(pair=spelled())
def test_another_spelling_of_a_class_is_refused_by_all(data, fitted, pair):
    name, other = pair
    assume(name != other)
    X, clf = data[0][:12], copy(fitted)
    clf.classes_ = np.sort([name, "the balance", "lights twice"])
    y = np.array([other, *[name] * 11])
    for reader, read in READERS.items():
        if reader == "merge_classes":
            with pytest.raises(ValueError, match="Nearly equal names"):
                merge_classes(clf, {other: ["the balance", "lights twice"]})
            continue
        before = copy(clf.__dict__)
        with pytest.raises(ValueError, match=re.escape(f" beside the class {name!r}; write them alike")):
            read(clf, X, y)
        assert reader == "y_val" or all(clf.__dict__[key] is value for key, value in before.items())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("label", OTHER_MINUS_ONES)
def test_another_writing_of_the_open_label_is_refused_by_all(data, fitted, label, reader):
    X, y = data
    y = np.where(y == "-1", label, y)
    order = np.argsort(y != label, kind="stable")
    with pytest.raises(ValueError, match=r" beside the open label '-1'; write them alike, or rename one") as error:
        READERS[reader](copy(fitted), X[order], y[order])
    odd = [c for c in label if not c.isascii()]
    assert not odd or f"(with U+{ord(odd[0]):04X})" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_unicode_may_ignore_makes_no_other_name_and_no_text():
    regex = pytest.importorskip("regex")
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    ignored = [*regex.findall(r"\p{Default_Ignorable_Code_Point}", every), "\u2800"]
    assert len(ignored) > 4000
    assert {form for letter in ignored for form in forms(f"re{letter}fund")} == {"refund"}
    assert {form for letter in ignored for form in forms(f"-1{letter}")} == {"-1"}
    assert not any(map(is_visible, ignored))
    assert all(map(is_visible, regex.findall(r"[\p{L}\p{N}\p{P}\p{S}--\p{DI}\u2800\U0001d159]", every, regex.V1)))


@pytest.mark.parametrize("reader", ["set_operating_point", "rate", "open rate", "estimate_open_share"])
def test_what_is_taken_as_open_is_counted_and_said(data, fitted, reader):
    X, y = data
    others = np.flatnonzero(y == "-1")
    strange = y.astype(object)
    strange[others[:5]] = ["sports", "sports", "jokes", "chess", "tea"]
    message = (
        f"5 of {len(y)} labels count as open, because the classifier does not know 'sports' (2), 'jokes' (1), 'chess' "
        "(1) and 1 more; write the name of a class, or '-1' for a message of none."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        found = READERS[reader](copy(fitted), X, strange)
    wanted = READERS[reader](copy(fitted), X, y)  # the open label needs no word: warnings are errors here
    name = "share" if reader == "estimate_open_share" else "offset_"
    assert getattr(found, name) == getattr(wanted, name)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("1-1", "11"), ("1_0", "10"), ("floor 1", "floor -1"), ("c", "c++"), ("c", "c#"), ("1", "1,000")),
        *(("level 1", "level 2"), ("card lost", "lost card"), ("?", "!"), ("-", "_"), ("a/b", "ab"), ("1", "-1")),
    ],
)
def test_other_names_are_other_names(first, second):
    refuse_other_spellings(np.array([first]), np.array([second, "x"]), "none")
    refuse_other_spellings(np.array([second]), np.array([first, "x"]), "none")


@pytest.mark.parametrize("label", ["?", "...", "\u2026", "-1", "none", "out_of_scope/other", "Default Fallback Intent"])
def test_names_of_nothing(label):
    assert says_none(label)
    assert not says_none("open/close the account")
