"""Scans the XML of a sheet as a stream, before its cells are read.

It gives the last cell, which tells how much memory the reader of cells takes, the cells that only look empty to it,
and the merged cells of an OpenDocument.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from xml.parsers import expat

_REFERENCE = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
#: What a cell holds that a reader takes for an empty one.
ERROR, FORMULA = "error", "formula"

#: Corners of merged cells: rows and columns from 0, the last ones included.
Corners = tuple[tuple[int, int], tuple[int, int]]


class XmlError(ValueError):
    """The XML is not well formed, or declares what no sheet needs."""


@dataclass
class Scan:
    """What a sheet holds."""

    #: Rows and columns up to the last cell that is not empty.
    n_rows: int = 0
    n_columns: int = 0
    #: Letters of all cells.
    n_letters: int = 0
    #: Rows and columns from 0 of cells that are not as empty as they seem.
    unseen: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[Corners] = field(default_factory=list)

    def extend(self, row: int, column: int) -> None:
        """Note a cell, by its numbers from 0."""
        self.n_rows, self.n_columns = max(self.n_rows, row + 1), max(self.n_columns, column + 1)


class _Handler(Protocol):
    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def letters(self, text: str) -> None: ...


def _parse(content: bytes, handler: _Handler) -> None:
    """Send the elements of a document to a handler, without the prefixes of their names.

    Raises
    ------
    XmlError
        Also of a document that declares entities, which can grow without bound.
    """

    def refuse(*_: Any) -> None:
        raise XmlError("a document type")

    def start(name: str, attributes: dict[str, str]) -> None:
        handler.start(name.rpartition(" ")[2], {key.rpartition(" ")[2]: each for key, each in attributes.items()})

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: handler.end(name.rpartition(" ")[2])
    parser.CharacterDataHandler = handler.letters
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, UnicodeError, LookupError) as error:
        raise XmlError(str(error)) from error


class _Elements:
    """Elements without their contents."""

    def __init__(self, take: Callable[[str, dict[str, str]], None]) -> None:
        self.start = take

    def end(self, name: str) -> None:
        pass

    def letters(self, text: str) -> None:
        pass


def sheets_of_xlsx(workbook: bytes) -> list[tuple[str, bool, str]]:
    """Names of the sheets, whether they are visible, and the names of their relations."""
    found: list[tuple[str, bool, str]] = []

    def take(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet" and "id" in attributes:
            is_visible = attributes.get("state", "visible") == "visible"
            found.append((attributes.get("name", ""), is_visible, attributes["id"]))

    _parse(workbook, _Elements(take))
    return found


def relations(content: bytes) -> dict[str, tuple[str, str]]:
    """Kinds and targets of relations, by their names."""
    found: dict[str, tuple[str, str]] = {}

    def take(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and {"Id", "Target"} <= attributes.keys():
            found[attributes["Id"]] = attributes.get("Type", "").rpartition("/")[2], attributes["Target"]

    _parse(content, _Elements(take))
    return found


class _Strings:
    """Lengths of the strings that the cells of a workbook share."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self.lengths.append(0)

    def end(self, name: str) -> None:
        pass

    def letters(self, text: str) -> None:
        if self.lengths:
            self.lengths[-1] += len(text)


def lengths_of_strings(content: bytes) -> list[int]:
    """Lengths of the strings that the cells of a workbook share."""
    handler = _Strings()
    _parse(content, handler)
    return handler.lengths


class _Sheet:
    """Cells of a sheet of Excel's."""

    def __init__(self, lengths: list[int]) -> None:
        self.scan, self.lengths = Scan(), lengths
        self.row, self.column = -1, -1
        self.kind, self.parts = "", set[str]()
        self.value: list[str] = []
        self.inside = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            number = attributes.get("r", "")
            self.row = int(number) - 1 if number.isascii() and number.isdigit() else self.row + 1
            self.column = -1
        elif name == "c":
            self.column += 1
            if place := _REFERENCE.fullmatch(attributes.get("r", "")):
                self.row, self.column = int(place[2]) - 1, _column(place[1])
            self.kind, self.parts, self.value = attributes.get("t", "n"), set(), []
        elif name in ("v", "is", "f"):
            self.parts.add(name)
            self.inside = name

    def end(self, name: str) -> None:
        if name in ("v", "is", "f"):
            self.inside = ""
        elif name == "c" and self.parts:
            self.scan.extend(self.row, self.column)
            value = "".join(self.value)
            is_shared = self.kind == "s" and value.isascii() and value.isdigit() and int(value) < len(self.lengths)
            self.scan.n_letters += self.lengths[int(value)] if is_shared else len(value)
            if self.kind == "e":
                self.scan.unseen[self.row, self.column] = ERROR
            elif "f" in self.parts and not value and not (self.kind == "str" and "v" in self.parts):
                self.scan.unseen[self.row, self.column] = FORMULA

    def letters(self, text: str) -> None:
        if self.inside in ("v", "is"):
            self.value.append(text)


def scan_xlsx(sheet: bytes, lengths: list[int]) -> Scan:
    """Scan a sheet of Excel's; ``lengths`` are those of the strings that cells share."""
    handler = _Sheet(lengths)
    _parse(sheet, handler)
    return handler.scan


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


class _Document:
    """Tables of an OpenDocument."""

    def __init__(self) -> None:
        self.hidden: set[str] = set()
        self.style = ""
        self.tables: list[tuple[str, str, Scan]] = []
        self.row, self.column = 0, 0
        self.n_rows, self.n_columns = 1, 1  # that the present row and cell stand for
        self.cell: dict[str, str] | None = None
        self.n_letters = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "style":
            self.style = attributes.get("name", "")
        elif name == "table-properties" and attributes.get("display") == "false":
            self.hidden.add(self.style)
        elif name == "table":
            self.tables.append((attributes.get("name", ""), attributes.get("style-name", ""), Scan()))
            self.row = 0
        elif name == "table-row":
            self.column, self.n_rows = 0, _number(attributes.get("number-rows-repeated"))
        elif name in ("table-cell", "covered-table-cell"):
            self.cell, self.n_columns = attributes, _number(attributes.get("number-columns-repeated"))
            self.n_letters = len(attributes.get("string-value", ""))
        elif name == "s":  # several blanks
            self.n_letters += _number(attributes.get("c"))

    def letters(self, text: str) -> None:
        if self.cell is not None:
            self.n_letters += len(text)

    def end(self, name: str) -> None:
        if name == "table-row":
            self.row += self.n_rows
        elif name in ("table-cell", "covered-table-cell") and self.cell is not None and self.tables:
            self._end_cell(self.tables[-1][2], self.cell)
            self.column += self.n_columns
            self.cell = None

    def _end_cell(self, scan: Scan, cell: dict[str, str]) -> None:
        kind = cell.get("value-type")
        if kind is None and "formula" not in cell and not self.n_letters:
            return
        scan.extend(self.row + self.n_rows - 1, self.column + self.n_columns - 1)
        scan.n_letters += self.n_letters * self.n_rows * self.n_columns
        place = self.row, self.column
        if kind == "error":
            scan.unseen[place] = ERROR
        elif "formula" in cell and kind is None:
            scan.unseen[place] = FORMULA
        n_rows, n_columns = _number(cell.get("number-rows-spanned")), _number(cell.get("number-columns-spanned"))
        if n_rows > 1 or n_columns > 1:
            scan.merged.append((place, (self.row + n_rows - 1, self.column + n_columns - 1)))


def scan_ods(content: bytes) -> list[tuple[str, bool, Scan]]:
    """Names of the tables of an OpenDocument, whether they are visible, and what they hold."""
    handler = _Document()
    _parse(content, handler)
    return [(name, style not in handler.hidden, scan) for name, style, scan in handler.tables]


def _number(written: str | None) -> int:
    return int(written) if written and written.isascii() and written.isdigit() and len(written) < 20 else 1
