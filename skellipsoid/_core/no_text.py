"""Recognises files that are not text by their first bytes, and says what to do with each kind."""

import re
from pathlib import Path

_UNPACK = "is compressed; unpack it first"
_COPY = "copy the messages into a text file or a CSV file"
#: First bytes of files that are not text.
_MAGIC = {
    b"PK\x03\x04": "is an Excel workbook or a zip archive; save the sheet as 'CSV UTF-8', or unpack it",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save the sheet as 'CSV UTF-8'",
    b"PAR1": "is a parquet file; give it a name that ends in .parquet",
    **dict.fromkeys((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!"), _UNPACK),
    b"SQLite format 3\0": "is an SQLite database; export its table as CSV",
    b"%PDF-": f"is a PDF document; {_COPY}",
    rb"{\rtf": "is a document of the Rich Text Format; save it as plain text, or the sheet as 'CSV UTF-8'",
    **dict.fromkeys(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"RIFF"), f"is an image; {_COPY}"
    ),
}
_HTML, _SVG = re.compile(rb"<(!doctype\s+html|html|head|body|table|meta)\b", re.I), re.compile(rb"<svg\b")
_XML = b"<?xml"


def check_is_text(content: bytes, path: Path, *, may_be_page: bool = False) -> None:
    """Raise an error for a file that is not text, or, unless ``may_be_page``, is HTML or XML, which are not tables.

    Raises
    ------
    ValueError
        The message says what the file is, and what to do.
    """
    sentence = next((what for magic, what in _MAGIC.items() if content.startswith(magic)), None)
    if not sentence and not may_be_page:
        sentence = _page(content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip())
    if sentence:
        raise ValueError(f"{str(path)!r} {sentence}.")


def _page(start: bytes) -> str | None:
    prolog = re.sub(rb"\A(\s|<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE\s+svg.*?>)*", b"", start, flags=re.S)
    if _HTML.match(prolog):
        return "is an HTML page, which some programs save as .xls; open it in a spreadsheet and save it as 'CSV UTF-8'"
    if _SVG.match(prolog):
        return f"is an SVG image; {_COPY}"
    if start.startswith(_XML):
        return "is an XML file; open it in a spreadsheet and save it as 'CSV UTF-8'"
    return None
