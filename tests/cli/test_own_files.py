"""Files that people have: many columns, any delimiter, Excel, JSON, parquet; which columns are taken, what is said."""

import csv
import json

import pandas as pd
import pytest
from command_helpers import fails
from file_helpers import ROWS, guessed, numbers_of, read, refused, texts_of, write, written
from operator_helpers import calls

TICKETS = [("id", "created", "message", "category")] + [
    (str(17 + i), f"2024-03-0{i + 1}", text, label) for i, (text, label) in enumerate(ROWS)
]


# Delimiters, quotes, encodings


def test_a_header_of_two_columns_is_no_text(tmp_path):
    pairs = [("message", "category"), ("Utterance", "Intent"), ("ticket", "label"), ("body", "team")]
    for names in [*pairs, ("Ticket text", "Category"), ("title", "issueType label")]:
        for delimiter in ",;|\t":
            found = read(write(tmp_path, written([names, *ROWS], delimiter)))
            assert found == (ROWS, guessed(repr(names[0]), repr(names[1])))


def test_what_excel_and_pandas_write(tmp_path):
    said = guessed("'message'", "'category'")
    semicolons = written(TICKETS, ";", lineterminator="\r\n")
    assert read(write(tmp_path, semicolons.encode("utf-8-sig"))) == (ROWS, said)
    assert read(write(tmp_path, "sep=;\r\n" + semicolons)) == (ROWS, guessed("'message'", "'category'", header=2))
    assert read(write(tmp_path, written(TICKETS, "\t").encode("utf-16"), "unicode text.txt")) == (ROWS, said)
    path = write(tmp_path, semicolons.encode("cp1252"))
    western = f"{str(path)!r} is not UTF-8 and is read as Windows-1252; if letters are wrong, save it as UTF-8 (in "
    assert read(path) == (ROWS, [f"{western}Excel: 'CSV UTF-8'), or name its encoding with --encoding.", *said])
    assert read(write(tmp_path, 'text, label\nhi, "a"\n"so, hi", b\n')) == ([("hi", "a"), ("so, hi", "b")], [])
    frame = pd.DataFrame(TICKETS[1:], columns=TICKETS[0])
    frame.to_csv(path)  # with its index
    assert read(path) == (ROWS, said)
    frame[["message", "category"]].to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_ALL)
    assert read(path) == (ROWS, said)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK\x03\x04rest", "is a damaged workbook; take a complete copy of it"),
        (b"PAR1rest", "is a parquet file; give it a name that ends in .parquet"),
        (b"text,label\r\n\rwake\0 me,alarm\n", "^Line 3 of .* holds a zero byte, which no text does; remove it, or"),
        ("text,label\nwake me,al\0arm\n".encode("utf-16"), "^Line 2 of .* holds a zero byte"),
        ("text,label\n".encode("utf-16") + b"x", "begins as UTF-16 text, but is damaged at byte 24; save it as UTF-8"),
    ],
)
def test_what_is_no_text_is_one_sentence(tmp_path, content, sentence):
    refused(sentence, write(tmp_path, content))


# Which columns


def test_a_header_of_unusual_names_is_told_by_the_rows_below(tmp_path):
    rows = [(f"{text} {word}", label) for word in ("jetzt", "bitte", "sofort") for text, label in ROWS]
    found = read(write(tmp_path, written([("Nachricht", "Kategorie"), *rows], ";")))
    assert found == (rows, guessed("'Nachricht'", "'Kategorie'"))
    table = [("Nr", "Nachricht", "Kategorie"), *((str(i), *row) for i, row in enumerate(rows))]
    assert read(write(tmp_path, written(table, ";"))) == found
    # A text of one word, whose label comes back, is a text; so is one whose label is not the only single one.
    for first, last in [(("hello", "light"), []), (("hello", "greet"), [("come in now", "welcome")])]:
        rows_ = [first, *rows, *last]
        assert read(write(tmp_path, written(rows_))) == (rows_, [])


def test_a_thousand_columns_are_looked_through_a_few_times(tmp_path):
    names = [f"feature_{i}" for i in range(1000)]
    path = write(tmp_path, written([[*names, "a", "b"], *([*"0" * 1000, text, label] for text, label in ROWS * 2)]))

    def refuse():
        refused("is not clear which", path)

    counts, _ = calls(refuse)
    assert counts["max"] < 50  # each looks at all columns
    assert counts.total() < 300 * 1000


UNCLEAR = [
    (["text", "label", "intent"], {}, "which column of .* holds the labels; choose with --label-column f"),
    (["title", "team", "intent"], {"text_column": "heading"}, "^--text-column 'heading' is no column of .*: 1 'title'"),
    (["text", "label", "label"], {"label_column": "label"}, "'label' is the name of columns 2 and 3 of .*; pass the n"),
    (["text", "label", "intent"], {"label_column": "4"}, "^--label-column '4' is no column of "),
    (["text", "label", "x"], {"text_column": "1", "label_column": "text"}, "both name column 'text'; name two columns"),
]


@pytest.mark.parametrize(("names", "options", "sentence"), UNCLEAR)
def test_what_is_not_clear_is_one_sentence_with_the_columns(tmp_path, names, options, sentence):
    path = write(tmp_path, written([names, *([text, label, label] for text, label in ROWS)]))
    with pytest.raises(ValueError, match=sentence) as caught:
        read(path, **options)
    lists_columns = "both" not in sentence and "name of" not in sentence
    assert ("(such as 'wake me, please'), 2 " in str(caught.value)) == lists_columns


# What is missing, and numbers


def test_rows_without_a_text_or_a_label_are_left_out_and_numbered(tmp_path):
    more = [("", "", "", ""), (1, 2, "no label", ""), (1, 2, "", "alarm"), (1, 2, " ", "x")]
    path = write(tmp_path, written([*TICKETS, *more]))
    rows, said = read(path)
    assert rows == ROWS
    assert said[0] == f"line 6 of {str(path)!r} is empty and is left out."
    assert said[2:] == [
        f"2 rows have no text in {str(path)!r} and are left out (lines 8, 9).",
        f"1 row has no label in {str(path)!r} and is left out (line 7); give them the open label if they belong to no "
        "class.",
    ]
    rows, said = read(write(tmp_path, "text,label\nhi,a\n" + "hi,\n" * 8))
    assert rows == [("hi", "a")]
    assert "8 rows have no label" in said[0]
    assert "(lines 3, 4, 5, 6, 7 and 3 more)" in said[0]


@pytest.mark.parametrize("marker", ["NaN", "N/A", "<NA>", "Null", '""', "\u200b", r"\N", "#NV", "#REF!", "(Leer)"])
def test_what_programs_write_for_a_missing_label_is_no_class(tmp_path, marker):
    path = write(tmp_path, f"hi\tgreet\nho\t{marker}\nhe\tgreet\nhu\t\nbye\tNone\n", "mine.tsv")
    rows, said = read(path, "1", "2")
    assert rows == [("hi", "greet"), ("he", "greet"), ("bye", "None")]
    also, otherwise = (f" (also {marker!r})", f", or another name if {marker!r} is a class")
    if marker == "\u200b":
        also = otherwise = ""
    assert said == [
        f"2 rows have no label{also} in {str(path)!r} and are left out (lines 2, 4); give them the open label if they "
        f"belong to no class{otherwise}."
    ]
    assert numbers_of(path, "1", "2") == ([1, 3, 5], "line")


def test_labels_that_pandas_lost_are_left_out(tmp_path):
    frame = pd.DataFrame({"text": ["hi", "ho", "he"], "label": [1, float("nan"), 2]})
    for each in (frame, frame.astype(str)):  # "1.0", "nan", "2.0"
        each.to_csv(tmp_path / "mine.csv", index=False, na_rep="NaN")
        assert read(tmp_path / "mine.csv")[0] == [("hi", "1"), ("he", "2")]


@pytest.mark.parametrize(
    ("names", "clear"),
    [
        (("message", "channel"), False),
        (("channel", "text"), False),
        (("id", "text"), False),
        (("message", "team"), True),
        (("id", "message", "team"), False),
        (("id", "message", "channel", "category"), True),
    ],
)
def test_a_table_without_a_label_column_is_no_training_on_another(tmp_path, names, clear):
    cells = {"id": range(40), "channel": ["mail", "phone"] * 20}
    cells |= {"category": ["a", "b"] * 20, "team": ["a", "b"] * 20}
    texts = [f"{text} {i}" for i, (text, _) in enumerate(ROWS * 10)]
    rows = list(zip(*(cells.get(name, texts) for name in names), strict=True))
    path = write(tmp_path, written([names, *rows]))
    if clear:
        assert {label for _, label in read(path)[0]} == {"a", "b"}
        return
    refused(r"^It is not clear which column of .* holds the labels; choose with --label", path)
    assert len(read(path, label_column=names[0] if "text" in names else names[-1])[0]) == 40


# The commands


# Encodings


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("gb18030", ["我的卡在哪里", "关灯"]),
        ("big5", ["我的卡在哪裡", "關燈"]),
        ("shift_jis", ["カードはどこですか", "電気を消して"]),
        ("utf-16", ["où est ma carte", "關燈"]),
    ],
)
def test_an_encoding_that_is_not_utf_8_can_be_named(tmp_path, encoding, texts):
    path = write(tmp_path, "".join(f"{text}\tname\n" for text in texts * 20).encode(encoding), "mine.tsv")
    assert read(path, encoding=encoding)[0] == read(path)[0] == [(text, "name") for text in texts * 20]


# Tools of annotation


def test_a_column_of_no_file_is_refused(capsys):
    sentence = "--label-column names a column of the file of --data; pass --data, or leave it out."
    assert fails(capsys, "demo", "alarm", "--label-column", "intent") == f"skellipsoid: {sentence}\n"


def test_half_an_emoji_deep_in_a_record_is_replaced(tmp_path):
    path = write(tmp_path, '{"data": {"text": "hi \\ud83d"}, "label": ["a"]}\n' * 2, "mine.jsonl")
    found, said = texts_of(path, text_column="data.text")
    assert found == ["hi \ufffd"] * 2
    assert "half an emoji" in said[0]


def test_an_encoding_that_is_wrong_is_named(tmp_path):
    path = write(tmp_path, "héllo\tgreet\n".encode("cp1252"), "mine.tsv")
    refused(r"Line 1 .* cannot be read as --encoding ascii says", path, encoding="ascii")


def test_a_line_above_a_table_is_not_its_only_column(tmp_path):
    path = write(tmp_path, "My tickets\n" + "".join(f"{i},wake me,alarm\n" for i in range(9)), "mine.csv")
    with pytest.raises(ValueError, match=r"The first line of .* has one field, but those below are a table of 3"):
        texts_of(path)


def test_the_columns_of_dialogflow_are_known(tmp_path):
    rows = [("Intent Display Name", "Language", "Phrase"), *((label, "en", text) for text, label in ROWS)]
    assert read(write(tmp_path, written(rows)))[0] == list(ROWS)


def test_rows_that_a_line_break_has_cut_are_no_empty_cells(tmp_path):
    rows = [f"{i},text {i},alarm,yes" for i in range(40)]
    rows[20] = "20,a text that\nis cut,alarm,yes"
    path = write(tmp_path, "id,message,category,note\n" + "\n".join(rows), "mine.csv")
    refused(r"Line 22 .* with 2 fields, but line 1 has 4.*line break", path)


def test_another_encoding_is_not_read_as_windows_1252(tmp_path):
    # 0x81 is no character of Windows-1252.
    assert "\ufffd" in read(write(tmp_path, b"a long enough line \x81\x42,x\nmore,y\n"))[0][0][0]


def test_a_name_makes_a_header_of_the_first_line(tmp_path):
    path = write(tmp_path, written([("wish", "team"), *ROWS]))
    assert read(path)[0][0] == ("wish", "team")
    assert read(path, "wish", "team") == (ROWS, [])
    assert read(write(tmp_path, written([("0", "1"), *ROWS])), text_column="0")[0] == ROWS


def test_a_list_of_one_label_is_this_label(tmp_path):
    lines = [{"id": 1, "text": "wake me", "label": ["alarm"]}, {"id": 2, "text": "lights", "label": []}]
    path = write(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "doccano.jsonl")
    assert read(path)[0] == [("wake me", "alarm")]
    path = write(tmp_path, json.dumps([{"text": "a b", "label": ["alarm", "light"]}]), "two.json")
    refused("holds a list in record 1", path)


# Cells of megabytes, and columns the wrong way round


@pytest.mark.filterwarnings("ignore::UserWarning")  # columns are guessed
@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log"])
def test_one_long_cell_does_not_stop_a_log(tmp_path, name):
    rows = [*ROWS, (("please see the attachment " * 80_000).strip(), "alarm")]  # 2 MB
    path = write(tmp_path, written([("text", "label"), *rows], "," if name == "log.csv" else "\t"), name)
    assert read(path)[0] == rows
    assert texts_of(path)[0] == [text for text, _ in rows]
    assert csv.field_size_limit() == 131072  # of the process, as it was


@pytest.mark.filterwarnings("ignore::UserWarning")  # columns are guessed
@pytest.mark.parametrize("options", [(), ("text", "label"), ("1", "2")])
def test_columns_the_wrong_way_round_are_one_sentence(tmp_path, options):
    rows = [(f"{text} number {i}", label) for i in range(5) for text, label in ROWS]
    path = write(tmp_path, written([("text", "label"), *((label, text) for text, label in rows)]))
    texts = "The texts of .*mine.csv', from column 'text', are short and come back"
    labels = "most labels, from column 'label', are several words and different, so the columns are the wrong way round"
    remedy = r"pass --text-column 'label' --label-column 'text'\."
    refused(f"^{texts}, and {labels}; {remedy}$", path, *options)
    assert read(path, "label", "text")[0] == rows
