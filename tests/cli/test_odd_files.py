"""Cells of megabytes, and columns the wrong way round."""

import csv

import pytest
from file_helpers import ROWS, read, texts_of, write, written

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # columns are guessed


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log"])
def test_one_long_cell_does_not_stop_a_log(tmp_path, name):
    rows = [*ROWS, (("please see the attachment " * 80_000).strip(), "alarm")]  # 2 MB
    path = write(tmp_path, written([("text", "label"), *rows], "," if name == "log.csv" else "\t"), name)
    assert read(path)[0] == rows
    assert texts_of(path)[0] == [text for text, _ in rows]
    assert csv.field_size_limit() == 131072  # of the process, as it was


@pytest.mark.parametrize("options", [(), ("text", "label"), ("1", "2")])
def test_columns_the_wrong_way_round_are_one_sentence(tmp_path, options):
    rows = [(f"{text} number {i}", label) for i in range(5) for text, label in ROWS]
    path = write(tmp_path, written([("text", "label"), *((label, text) for text, label in rows)]))
    sentence = (
        r"^The texts of .*mine.csv', from column 'text', are short and come back, and most labels, from column 'label'"
        r", are several words and different, so the columns are the wrong way round; pass --text-column 'label' "
        r"--label-column 'text'\.$"
    )
    with pytest.raises(ValueError, match=sentence):
        read(path, *options)
    assert read(path, "label", "text")[0] == rows
