"""Files of texts and labels, however an editor wrote them, and the split for an honest report."""

import re

import numpy as np
import pytest
from file_helpers import read as read_table
from file_helpers import split, write

ROWS = [("wake me", "alarm"), ("lights öff", "light")]


def read(tmp_path, content, name="table.tsv", said=()):
    rows, found = read_table(write(tmp_path, content, name))
    assert all(re.match(sentence, line) for sentence, line in zip(said, found, strict=True))
    return rows


TABLES = {
    "plain": "wake me\talarm\nlights öff\tlight\n",
    "no last newline": "wake me\talarm\nlights öff\tlight",
    "header": "text\tlabel\nwake me\talarm\nlights öff\tlight\n",
    "header in capitals": "Text\tLABEL\nwake me\talarm\nlights öff\tlight\n",
    "Windows": b"\xef\xbb\xbfText\tLabel\r\nwake me\talarm\r\nlights \xc3\xb6ff\tlight\r\n",
    "old Macintosh": "wake me\talarm\rlights öff\tlight\r",
    "spaces": "  wake me \t alarm \nlights öff\tlight\n\n \n",
}


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
def test_tables_are_read_however_an_editor_wrote_them(tmp_path, content):
    assert read(tmp_path, content) == ROWS


#: Files, and what is said of a line of theirs.
BAD = [
    ("a.tsv", "\nwake\talarm\n\na\tb\tc\n", r"Line 4 of .* is 'a\\tb\\tc' with 3 fields, but line 2 has 2, .* a tab"),
    ("a.tsv", "wake me\x85please\talarm\nlights off\n", "Line 2 of .* is 'lights off' with 1 field, but line 1 has"),
    ("a.tsv", "lights off\n", "Line 1 of .* with 1 field, but a text and a label are needed, with a tab, comma"),
    ("a.csv", "wake me,alarm\na, b,c\n", "Line 2 of .* by a comma; put quotes around a text that holds a comma"),
    ("a.csv", '"two\nlines",alarm\nlights off\n', "Line 3 of .* is 'lights off' with 1 field, .* line break"),
    ("a.csv", "wake me;alarm\nnow; wake me;alarm\n", "Line 2 of .* line 1 has 2, .* by a semicolon; .* a semicolon"),
    ("a.csv", 'wake me,alarm\n"lights off,light\nmore,b\n', "Line 2 of .* cannot be read .*; correct its quotes"),
    ("a.csv", 'wake me,alarm\n"lights" off,light\n', "Line 2 of .* cannot be read .*; correct its quotes"),
]


@pytest.mark.parametrize(("name", "content", "sentence"), BAD)
def test_a_bad_line_is_given_by_its_number(tmp_path, name, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(tmp_path, content, name)


@pytest.mark.parametrize(("name", "separator"), [("table.tsv", b"\t"), ("table.csv", b",")])
def test_lines_that_are_not_utf_8_are_named_and_read(tmp_path, name, separator):
    # A line that is UTF-8 says that the others should be.
    content = b"wake m\xc3\xab|alarm\nlights \xf6ff|light\n\nm\xfcde|l\xedght\n" + b"dim it|light\n" * 37
    content = content.replace(b"|", separator)
    said = [rf"lines 2, 4 of '.*{name}' are not UTF-8; each character that", "line 3 of .* is empty"]
    rows = read(tmp_path, content, name, said)
    assert rows[:3] == [("wake më", "alarm"), ("lights \ufffdff", "light"), ("m\ufffdde", "l\ufffdght")]
    with pytest.raises(ValueError, match=r"2 of 39 lines of .* are not UTF-8; name the encoding of the file with"):
        read(tmp_path, content[: -len("dim it|light\n")], name)


# Splitting it


def rows_of(**counts):
    labels = np.repeat(list(counts), list(counts.values()))
    return np.array([f"{label} {i}" for i, label in enumerate(labels)], dtype=object), labels


def count(labels):
    return dict(zip(*[part.tolist() for part in np.unique(labels, return_counts=True)], strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_without_open_rows_a_fifth_of_the_intents_is_held_out(seed):
    texts, labels = rows_of(**{f"intent{i}": 8 for i in range(10)})
    parts = split(texts, labels, seed=seed)
    known = set(parts.train_labels)
    assert len(known) == 8
    # Every row trains or tests, none does both, and rows of the two intents that are held out do not train.
    assert not set(parts.train) & set(parts.test)
    held_out = [label for label in np.unique(labels) if label not in known]
    assert len(parts.train) == 8 * 6
    assert len(parts.test) == 10 * 2
    for text, label in zip(parts.test, parts.test_labels, strict=True):
        true = text.split()[0]
        assert label == ("-1" if true in held_out else true)
    counts, _, named = parts.note.partition("; held out as open: ")
    assert counts == "8 known intents, 48 training texts, 20 test texts (4 open)"
    assert sorted(named.split(", ")) == held_out
    assert parts.gaps == []


def test_open_rows_are_used_as_such_and_every_label_is_tested():
    texts, labels = rows_of(a=4, b=9, c=2, oos=8)
    parts = split(texts, labels, "oos")
    assert count(parts.train_labels) == {"a": 3, "b": 7, "c": 1, "oos": 6}
    assert count(parts.test_labels) == {"a": 1, "b": 2, "c": 1, "oos": 2}
    assert sorted([*parts.train, *parts.test]) == sorted(texts)
    assert parts.note == "3 known intents, 17 training texts, 6 test texts (2 open); open rows are labelled 'oos'"
    assert parts.gaps == []


@pytest.mark.parametrize("seed", range(5))
def test_copies_of_a_text_are_on_one_side_whatever_their_labels(seed):
    texts, labels = rows_of(a=12, b=12, c=12, d=12)
    copies = np.concatenate([texts, [text.upper() + " " for text in texts], texts[:6]])
    all_labels = np.concatenate([labels, labels, ["b"] * 6])
    parts = split(copies.astype(object), all_labels, seed=seed)
    train, test = ({text.strip().lower() for text in side} for side in (parts.train, parts.test))
    assert not train & test
    # A quarter of the distinct texts, and all of their copies.
    assert len(test) == pytest.approx(12, abs=2)
    assert len(parts.test) >= 2 * len(test)


NO_OPEN = "Open rejection is not measured, because no test text is open"
TRAINS = "Not tested: intent 'b', because its only text trains."
EACH_TRAINS = "Not tested: intents 'b', 'c', because the only text of each trains."


@pytest.mark.parametrize(
    ("counts", "known", "tested", "gaps"),
    [
        # No intent can be held out where two must remain.
        ({"a": 5, "b": 5}, {"a": 4, "b": 4}, {"a": 1, "b": 1}, [NO_OPEN]),
        ({"a": 8, "-1": 8}, {"a": 6, "-1": 6}, {"a": 2, "-1": 2}, []),
        # An intent of one text trains.
        ({"a": 4, "b": 1, "c": 1, "-1": 4}, {"a": 3, "b": 1, "c": 1, "-1": 3}, {"a": 1, "-1": 1}, [EACH_TRAINS]),
        ({"a": 4, "b": 1, "-1": 1}, {"a": 3, "b": 1, "-1": 1}, {"a": 1}, [TRAINS, NO_OPEN]),
        ({"a": 1}, {"a": 1}, {}, ["Not tested: intent 'a', because", NO_OPEN]),
    ],
)
def test_small_files_are_split_as_far_as_they_go(counts, known, tested, gaps):
    parts = split(*rows_of(**counts))
    assert count(parts.train_labels) == known
    assert count(parts.test_labels) == tested
    assert len(parts.gaps) == len(gaps)
    assert all(found.startswith(gap) for found, gap in zip(parts.gaps, gaps, strict=True))
