"""Cells of megabytes, and columns the wrong way round."""

import csv
import io

import pytest
from file_helpers import read as read_table
from file_helpers import texts_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # columns are guessed

ROWS = [("wake me, please", "alarm"), ("lights off", "light"), ("dim it", "light"), ("up at six", "alarm")]


def write(tmp_path, content, name="mine.csv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def written(rows, delimiter=","):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def read(path, text_column=None, label_column=None):
    return read_table(path, text_column, label_column)[0]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.txt", "log"])
def test_one_long_cell_does_not_stop_a_log(tmp_path, name):
    delimiter = "," if name == "log.csv" else "\t"
    long = "please see the attachment " * 80_000  # 2 MB
    rows = [(text, label) for text, label in ROWS] + [(long.strip(), "alarm")]
    path = write(tmp_path, written([("text", "label"), *rows], delimiter), name)
    assert read(path) == rows
    assert texts_of(path)[0] == [text for text, _ in rows]
    path = write(tmp_path, written([("text",), *([text] for text, _ in rows)]), "alone.csv")
    assert texts_of(path)[0] == [text for text, _ in rows]
    assert csv.field_size_limit() == 131072  # of the process, as it was


MANY = [(f"{text} number {i}", label) for i in range(5) for text, label in ROWS]


@pytest.mark.parametrize("options", [(), ("text", "label"), ("1", "2")])
def test_columns_the_wrong_way_round_are_one_sentence(tmp_path, options):
    path = write(tmp_path, written([("text", "label"), *((label, text) for text, label in MANY)]))
    sentence = (
        r"^The texts of .*mine.csv', from column 'text', are short and come back, and most labels, from column 'label'"
        r", are several words and different, so the columns are the wrong way round; pass --text-column 'label' "
        r"--label-column 'text'\.$"
    )
    with pytest.raises(ValueError, match=sentence):
        read(path, *options)
    assert read(path, "label", "text") == MANY


def test_columns_the_wrong_way_round_are_refused_before_torch_is_imported(tmp_path, fresh_python):
    path = write(tmp_path, written([("text", "label"), *((label, text) for text, label in MANY)]))
    script = "import sys; from skellipsoid.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    done = fresh_python(script, "train", "--data", path, "--save", tmp_path / "model")
    assert done.stdout == "2 False\n"
    assert "so the columns are the wrong way round" in done.stderr
