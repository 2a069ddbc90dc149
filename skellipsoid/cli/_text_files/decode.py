"""Bytes of a file or a stream to lines of text."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..._core.messages import named
from ..._core.warn import warn

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: First bytes of files that are no text, and what to do with them.
_MAGIC = {
    b"PK\x03\x04": "is an Excel workbook or a zip archive; save the sheet as 'CSV UTF-8', or unpack it",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save the sheet as 'CSV UTF-8'",
    b"\x1f\x8b": "is compressed; unpack it first",
    b"PAR1": "is a parquet file; give it a name that ends in .parquet",
}
#: Largest share of lines that are not UTF-8 in a file whose other lines are read.
_MOST_DAMAGED = 0.05
#: Largest share of bytes beyond ASCII in a text of a language that is written in Windows-1252.
_MOST_ACCENTS = 0.2


def decode_file(path: Path, encoding: str | None = None) -> list[str]:
    """Read the lines of a text file, their ends included.

    UTF-8 and UTF-16 with a byte-order mark are read as such. A file in which no line with other than ASCII characters
    is UTF-8 is read as Windows-1252, as Excel writes CSV in Western Europe, if its bytes allow it. Any other
    ``encoding`` is named by the user.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no text, if more than a twentieth of its lines is not UTF-8, or if it is not of the given encoding.

    Warns
    -----
    UserWarning
        If the file is read as Windows-1252, or if lines are not UTF-8; what cannot be read is replaced by U+FFFD.
    """
    content = read_bytes(path)
    if encoding is not None:
        return _decode_as(content, encoding, path)
    for magic, sentence in _MAGIC.items():
        if content.startswith(magic):
            raise ValueError(f"{str(path)!r} {sentence}.")
    if content.startswith(_UTF_16):
        return _decode_utf_16(content, path)
    _check_no_zero(content, path)
    # Not splitlines of a str: a text may hold what Unicode calls a line separator.
    lines = content.splitlines(keepends=True)
    damaged: list[int] = []
    decoded = list(decode_lines(lines, damaged.append, repr(str(path))))
    if damaged and (western := _decode_western(content, lines, damaged)):
        warn(
            f"{str(path)!r} is not UTF-8 and is read as Windows-1252; if letters are wrong, save it as UTF-8 (in "
            "Excel: 'CSV UTF-8'), or name its encoding with --encoding."
        )
        return western
    n_filled = sum(bool(line.strip()) for line in lines)
    if len(damaged) > max(1, _MOST_DAMAGED * n_filled):
        raise ValueError(
            f"{len(damaged)} of {n_filled} lines of {str(path)!r} are not UTF-8; name the encoding of the file with "
            "--encoding, such as cp1251, koi8_r, gb18030, big5, shift_jis or mac_roman, or save it as UTF-8."
        )
    if damaged:
        warn(
            f"{named('line', damaged)} of {str(path)!r} {'is' if len(damaged) == 1 else 'are'} not UTF-8; each "
            "character that cannot be read is replaced by \ufffd, save the file as UTF-8 to keep it."
        )
    return decoded


def _check_no_zero(content: bytes, path: Path) -> None:
    before, zero, _ = content.partition(b"\0")
    if zero:
        number = len((before + b".").splitlines())
        raise ValueError(
            f"Line {number} of {str(path)!r} holds a zero byte, which no text does; remove it, or save it as UTF-8."
        )


def read_bytes(path: Path) -> bytes:
    """Read a file; an error is one sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(f"{str(path)!r} cannot be read ({error.strerror}); pass a file of texts and labels.") from error


def decode_lines(lines: Iterable[bytes], on_damaged: Callable[[int], object], name: str) -> Iterator[str]:
    """Decode lines of UTF-8.

    ``on_damaged`` is called with the number of each line that is not, whose unreadable bytes become U+FFFD.

    Raises
    ------
    ValueError
        If they are UTF-16; it calls them ``name``.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith(_UTF_16):
            raise ValueError(f"{name} is UTF-16 text, but must be UTF-8; save it as UTF-8.")
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        try:
            decoded = content.decode()
        except UnicodeDecodeError:
            on_damaged(number)
            decoded = content.decode(errors="replace")
        yield decoded


def _decode_utf_16(content: bytes, path: Path) -> list[str]:
    try:
        text = content.decode("utf-16")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} begins as UTF-16 text, but is damaged at byte {error.start}; save it as UTF-8."
        ) from error
    encoded = text.encode()
    _check_no_zero(encoded, path)
    return [line.decode() for line in encoded.splitlines(keepends=True)]


def _decode_as(content: bytes, encoding: str, path: Path) -> list[str]:
    """Decode a file of an encoding that the user names."""
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ValueError(
            f"--encoding {encoding!r} is not known; pass a name of Python's, such as cp1251, gb18030 or shift_jis."
        ) from error
    except UnicodeError as error:
        number = len(content[: getattr(error, "start", 0)].splitlines()) or 1
        raise ValueError(
            f"Line {number} of {str(path)!r} cannot be read as --encoding {encoding} says; name another encoding."
        ) from error
    encoded = text.removeprefix("\ufeff").encode(errors="replace")
    _check_no_zero(encoded, path)
    return [line.decode() for line in encoded.splitlines(keepends=True)]


def _decode_western(content: bytes, lines: list[bytes], damaged: list[int]) -> list[str] | None:
    """Decode lines as Windows-1252, or give ``None`` if they are probably something else.

    A line of UTF-8 with accents among them says that the others are damaged; many characters beyond ASCII, that the
    script is not Latin.
    """
    n_beyond = sum(not line.isascii() for line in lines)
    n_accents = len(content) - len(content.translate(None, bytes(range(128, 256))))
    if n_beyond > len(damaged) or n_accents > _MOST_ACCENTS * len(content) or content.startswith(codecs.BOM_UTF8):
        return None
    try:
        return [line.decode("cp1252") for line in lines]
    except UnicodeDecodeError:
        return None
