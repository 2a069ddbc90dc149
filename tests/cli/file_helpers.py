"""What the command reads in a user's file, as plain values: the one place that knows which functions read it."""

import csv
import io
import warnings

import pytest

from skellipsoid._text_files.read import read_log, read_table, read_texts
from skellipsoid.cli._split import split_table

#: Texts with their labels.
ROWS = [("wake me, please", "alarm"), ("lights öff", "light"), ("dim it", "light"), ("up at six", "alarm")]


def write(tmp_path, content, name="mine.csv"):
    """Write a file, and give its path."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def written(rows, delimiter=",", **options):
    """Rows as the text of a table."""
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, **options).writerows(rows)
    return file.getvalue()


def guessed(text, label, header=1):
    """What is said where the columns are guessed."""
    line = f"line {header} is the header, " if header else ""
    choice = "guessed; --text-column and --label-column choose others"
    return [f"{line}texts from column {text}, labels from column {label} ({choice})."]


def noting(read, path, **options):
    """What a function reads in a file, and what is said about it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read(path, **options)
    return found, [str(warning.message).removeprefix(f"{str(path)!r}: ") for warning in said]


def read(path, text_column=None, label_column=None, **options):
    """Texts with their labels, and what is said about them."""
    found, said = noting(read_table, path, text_column=text_column, label_column=label_column, **options)
    return list(zip(found.texts.tolist(), found.labels.tolist(), strict=True)), said


def refused(sentence, path, *columns, **options):
    """Expect that ``read`` refuses a file, in such a sentence."""
    with pytest.raises(ValueError, match=sentence):
        read(path, *columns, **options)


def numbers_of(path, text_column=None, label_column=None):
    """Where the rows that ``read`` gives begin, and whether these are lines or records."""
    found, _ = noting(read_table, path, text_column=text_column, label_column=label_column)
    return found.numbers.tolist(), found.unit


def texts_of(path, **options):
    """Texts of a log, and what is said about them."""
    texts, said = noting(read_texts, path, **options)
    assert noting(read_log, path, **options)[0].texts == texts  # of a message, every command reads the same
    return texts, said


def split(texts, labels, open_label="-1", seed=0):
    """Training and test texts of the report of ``train``, and what is said about them."""
    return split_table(texts, labels, open_label, seed)
