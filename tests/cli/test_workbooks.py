"""Workbooks: what a person sees in one is what is read, and what is damaged or too large ends in one sentence."""

import datetime
import io
import random
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import xlsxwriter
from file_helpers import numbers_of, read, refused, texts_of
from office import change_member, converted

from skellipsoid._text_files.workbooks import package
from skellipsoid._text_files.workbooks.read_workbook import read_workbook

#: What LibreOffice saves besides.
KINDS = ["xlsx", "xls", "ods"]
ROWS = [("where is my parcel", "track"), ("wake me at six", "alarm"), ("lights off", "light")]


def write(path, **sheets):
    """Write sheets: rows of cells, or a function of the workbook and the sheet."""
    with xlsxwriter.Workbook(str(path)) as workbook:
        for name, cells in sheets.items():
            sheet = workbook.add_worksheet(name)
            if callable(cells):
                cells(workbook, sheet)
                continue
            for i, row in enumerate(cells):
                sheet.write_row(i, 0, row)
    return path


def odd_sheet(workbook, sheet):
    """A title, cells that are no text, merged labels, a hidden row, and cells that only seem empty."""
    sheet.activate()
    sheet.merge_range("A1:C1", "Requests of May")
    rows = [("id", "message", "intent"), (1, "where is my parcel"), (2, 7), (3, datetime.date(2024, 3, 1)), (4, True)]
    rows += [(5, datetime.datetime(2024, 3, 1, 12, 30)), (6, 1.5), (7, "lights off", "light"), (8, "is it paid")]
    date, moment = (workbook.add_format({"num_format": form}) for form in ("d.m.yy", "d.m.yy hh:mm"))
    padded = workbook.add_format({"num_format": "000"})
    for i, row in enumerate(rows, start=3):
        for j, cell in enumerate(row):
            form = {datetime.date: date, datetime.datetime: moment, int: padded if j else None}.get(type(cell))
            sheet.write(i, j, cell, form)
    sheet.merge_range("C5:C10", "track")
    sheet.write_formula("C12", "=1/0", None, "#DIV/0!")
    sheet.set_row(5, None, None, {"hidden": True})


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_person_sees_is_read(kind, tmp_path):
    def hidden(_, sheet):
        sheet.write_row(0, 0, ["text", "label"])
        sheet.hide()

    path = write(tmp_path / "mine.xlsx", hidden=hidden, May=odd_sheet, June=ROWS, notes=[])
    path = path if kind == "xlsx" else converted(path, kind)
    rows, said = read(path)
    truth = "1" if kind == "ods" else "TRUE"  # LibreOffice makes it a number in its own format
    texts = ["where is my parcel", "7", "2024-03-01", truth, "2024-03-01 12:30:00", "1.5"]
    assert rows == [*((text, "track") for text in texts), ("lights off", "light")]
    assert numbers_of(path) == (list(range(5, 12)), "row")
    column = f"of column '{{}}' of {str(path)!r}"
    assert said[0] == "the sheet 'May' is read, 2 other sheets are not (--sheet chooses)."
    assert said[1] == f"Row 1 of the sheet 'May' of {str(path)!r} above the header in row 4 is a title and left out."
    assert said[2].startswith("row 4 is the header, texts from column 'message', labels from column 'intent' (guessed")
    assert said[3].startswith(f"5 cells {column.format('message')} hold ")
    assert "read as '7' in row 6, '2024-03-01' in row 7" in said[3]
    if kind != "xls":
        assert said[4].startswith(f"1 cell {column.format('intent')} holds an error or a formula without a stored")
    assert "(row 12)" in said[-1]


def test_sheets_are_chosen(tmp_path):
    header = ("id", "question", "topic")
    sheets = {"2": [header, (1, *ROWS[0])], "May": [header, (2, *ROWS[1])]}
    sheets["other"] = [("a", *header[1:]), (3, *ROWS[2])]
    path = write(tmp_path / "mine.XLSM", **sheets)
    assert texts_of(path)[0] == ["where is my parcel"]
    rows, said = read(path, sheets=["May", "1"])
    assert rows == [ROWS[1], ROWS[0]]
    assert read(path, sheets=["2"])[0] == [ROWS[0]]  # a name goes before a number
    assert read(path, sheets=["3"])[0] == [ROWS[2]]
    assert not any("other sheet" in line for line in said)
    refused(r"^The sheets 'May' and 'other' of .* have different columns; pass one --s", path, sheets=["May", "3"])
    refused(r"^--sheet 'mai' is no sheet of .*: sheets '2', 'May', 'other'\.$", path, sheets=["mai"])


def with_row(cell):
    return lambda content: content.replace(b"</sheetData>", b"<row>" + cell + b"</row></sheetData>")


ENTITIES = b"".join(b'<!ENTITY e%d "%s">' % (i, b"&e%d;" % (i - 1) * 99) for i in range(1, 9))
NESTED = b"<!DOCTYPE a [" + ENTITIES + b"]><worksheet"
LONG = b'<c r="A9" t="inlineStr"><is><t>' + b"a" * (package.MOST_BYTES + 1) + b"</t></is></c>"


MANY = b"".join(b'<c r="A%d" t="s"><v>0</v></c>' % i for i in range(9, 2100))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (with_row(b'<c r="XFD1048576"><v>1</v></c>'), "to its last cell over 1048576 rows and 16384 columns"),
        (with_row(LONG), "unpacks to more than 200 MB"),
        (lambda content: content.replace(b"<worksheet", NESTED), "is a damaged workbook"),
        (with_row(MANY), "hold more than 200 million letters"),
    ],
    ids=["far cell", "long cell", "entities", "a long string in many cells"],
)
def test_nothing_explodes(change, sentence, tmp_path):
    path = write(tmp_path / "mine.xlsx", a=[("a" * 32_767,), *ROWS])
    change_member(path, lambda content: content.replace(b"a" * 32_767, b"a" * 100_000), "xl/sharedStrings.xml")
    change_member(path, change)
    assert path.stat().st_size < 2_000_000
    refused(sentence, path)


def test_what_is_no_workbook_or_locked_is_one_sentence(tmp_path):
    def archive(members):
        with zipfile.ZipFile(file := io.BytesIO(), "w") as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
        return file.getvalue()

    old, ods = bytes.fromhex("d0cf11e0a1b11ae1"), "application/vnd.oasis.opendocument.spreadsheet"
    locked = {"mimetype": ods, "content.xml": "", "META-INF/manifest.xml": "<encryption-data/>"}
    for content, sentence in (
        (old + "EncryptedPackage".encode("utf-16-le"), "is locked by a password; save a copy without one"),
        (archive(locked), "is locked by a password"),
        (old + "WordDocument".encode("utf-16-le"), "is no workbook, but another file of Microsoft Office"),
        (archive({"xl/workbook.bin": "x"}), "is a binary workbook; save it as .xlsx"),
        (archive({"word/document.xml": "x"}), "is a Word document"),
        (archive({"readme": "x"}), "is a zip archive and no workbook; unpack it"),
    ):
        path = tmp_path / "mine.xlsx"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            read_workbook(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_workbooks_are_read_or_one_sentence(kind, tmp_path, capfd):
    path = write(tmp_path / "mine.xlsx", May=odd_sheet, June=ROWS)
    content = (path if kind == "xlsx" else converted(path, kind)).read_bytes()

    def spoiled(content, chance):
        spoiled = bytearray(content)
        for _ in range(chance.choice([1, 3, 30])):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        return bytes(spoiled[: chance.choice([len(spoiled), chance.randrange(len(spoiled))])])

    def outcome(number):
        chance, bad = random.Random(number), tmp_path / f"{number}.{kind}"
        bad.write_bytes(content if kind != "xls" and number % 2 else spoiled(content, chance))
        if kind != "xls" and number % 2:  # whole members of a whole archive
            with zipfile.ZipFile(bad) as archive:
                member = chance.choice([name for name in archive.namelist() if name.endswith(".xml")])
            change_member(bad, lambda xml: spoiled(xml, chance), member)
        try:
            read_workbook(bad)
        except ValueError as error:
            return str(error).count("; ")
        finally:
            bad.unlink()
        return 1

    with ThreadPoolExecutor() as pool:
        assert {*pool.map(outcome, range(300))} == {1}
    assert capfd.readouterr() == ("", "")


def test_numbers_that_nobody_wrote_are_errors(tmp_path):
    kept = "of which a spreadsheet keeps 15 digits"
    for label, sentence in ((1234567890123456, kept), (7, "but '007' is also written")):
        path = write(tmp_path / "mine.xlsx", a=[("text", "label"), ("hello", "007"), ("bye", label)])
        refused(f"^Row 3 in column 'label' of .* holds the number {label}, {sentence}", path)
