"""Decodes a file or a stream to lines of text, and guesses its encoding."""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .._core.characters import printable
from .._core.messages import named, shortened
from .._core.no_text import check_is_text
from .._core.warn import warn

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Largest proportion of lines that are not UTF-8 in a file whose other lines are read.
_MOST_DAMAGED = 0.05
#: Largest proportion of bytes beyond ASCII in a text of a language that is written in Windows-1252.
_MOST_ACCENTS = 0.2
#: Encodings of spreadsheets, as chardet calls them: the fewer, the fewer wrong guesses of short files.
_ENCODINGS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp437", "cp850"),
    *("cp852", "cp866", "cp874", "cp932", "iso8859-1", "iso8859-2", "iso8859-7", "iso8859-9", "iso8859-15", "koi8-r"),
    *("koi8-u", "mac-roman", "mac-latin2", "mac-cyrillic", "gb18030", "big5hkscs", "shift_jis", "euc-jp", "cp949"),
    "euc-kr",
)
#: Smallest number of lines beyond ASCII with which the guess was right in all tables of the test.
_ENOUGH_LINES = 50
#: A sign of Windows-1252 that no language writes within a word.
_SPLIT = re.compile("[a-z\xdf-\xff][\xa1\xa7\xa9\xac\xae\xb1-\xb3\xb5\xb6\xb8\xb9\xbc-\xbf][a-z\xdf-\xff]")
#: Letters of a line that a message shows.
_MOST_LETTERS = 60


#: Whether the last line of a file is left out if it has no end.
_WHOLE = ContextVar("whole", default=False)


@contextmanager
def whole_lines() -> Iterator[None]:
    """Read files to their last line end inside the block: another program may be writing the line behind it."""
    before = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(before)


def _whole(content: bytes, path: Path) -> bytes:
    """Cut a line without an end off, unless it is the only one, the end of a cell of several lines, or of an array."""
    whole, end, last = content.rpartition(b"\n")
    is_record = path.suffix.lower() == ".json" or content.lstrip(codecs.BOM_UTF8 + b" \t\r\n").startswith(b"[")
    is_of_cell = last.count(b'"') % 2 and not last.startswith(b"{")
    if not end or not last.strip(b"\0 \t\r") or is_record or is_of_cell:
        return content
    warn("The last line of the log has no end yet, and is left for the next call.")
    return whole + end


class UnclearEncodingError(ValueError):
    """Two readings of a file are plausible."""


def decode_file(
    path: Path, encoding: str | None = None, n_familiar: Callable[[list[str]], int] | None = None
) -> list[str]:
    """Read the lines of a text file, their ends included.

    UTF-8 and UTF-16 with a byte-order mark are read as such, whatever ``encoding`` the user names for the files that
    are neither. Of a file without an encoding chardet guesses it. Where Windows-1252 reads the file otherwise, the
    reading counts in which ``n_familiar`` finds more cells; else the guess of another script, or of many lines.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no text, if its encoding is not clear, or if it is not of the given encoding.

    Warns
    -----
    UserWarning
        If an encoding is guessed, or is not the given one, or if lines are not UTF-8; what cannot be read is replaced
        by U+FFFD.
    """
    content = read_bytes(path)
    check_is_text(content, path)
    if _WHOLE.get():
        content = _whole(content, path)
    if content.startswith(_UTF_16):
        lines = _decoded(content, "utf-16", path)
        if encoding is not None and "utf16" not in re.sub(r"[-_]", "", encoding.lower()):
            _say_encoding(path, f"has the mark of UTF-16 and is read as such, in spite of --encoding {encoding}.")
        return lines
    # Not splitlines of a str: a text may hold what Unicode calls a line separator.
    raw = content.splitlines(keepends=True)
    damaged: list[int] = []
    lines = list(decode_lines(raw, damaged.append, repr(str(path))))
    n_filled = sum(bool(line.strip()) for line in raw)
    n_beyond = sum(not line.isascii() for line in raw)
    is_marked = content.startswith(codecs.BOM_UTF8)
    if encoding is not None and (is_marked or (n_beyond and not damaged and b"\0" not in content)):
        if not re.fullmatch(r"utf[-_]?8([-_]sig)?", encoding.lower()):
            _say_encoding(path, f"is UTF-8 and is read as such, in spite of --encoding {encoding}.")
    elif encoding is not None:
        return _decoded(content, encoding, path)
    _check_no_zero(content, path)
    # By chance a few lines of another encoding look like UTF-8; a half of an emoji is broken UTF-8.
    is_other = n_beyond - len(damaged) <= _MOST_DAMAGED * n_beyond and not is_marked and not _has_halves(content)
    if damaged and is_other and (guess := _guessed(content, raw, path, n_familiar)):
        return guess
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
    return lines


def _guessed(
    content: bytes, raw: list[bytes], path: Path, n_familiar: Callable[[list[str]], int] | None
) -> list[str] | None:
    """Lines of a file in the encoding that is given or guessed; ``None`` if none is plausible."""
    import chardet

    telling = b"".join(line for line in raw if not line.isascii())  # English lines beside these hide their language
    found = chardet.detect(
        telling,
        max_bytes=len(telling),
        include_encodings=_ENCODINGS,
        compat_names=False,
        prefer_superset=False,  # to chardet Windows-1250 holds all of ISO 8859-2
        no_match_encoding="cp1252",
    )
    names = dict.fromkeys([str(found["encoding"]), "cp1252", *(_ENCODINGS if n_familiar else ())])
    readings = {name: lines for name in names if (lines := _reading(raw, name))}
    counts = {name: n_familiar(lines) for name, lines in readings.items()} if n_familiar else {}
    if counts and max(counts.values()) > min(counts.values()):
        encoding = max(readings, key=counts.__getitem__)
    else:
        chosen = _chosen(content, raw, path, {name: readings[name] for name in [*names][:2] if name in readings})
        if chosen is None:
            return None
        encoding = chosen
    name = f"Windows-{encoding[2:]}" if encoding.startswith("cp125") else encoding
    _say_encoding(
        path,
        f"is not UTF-8 and is read as {name}; if letters are wrong, save it as UTF-8 (in Excel: 'CSV UTF-8'), or name "
        "its encoding with --encoding.",
    )
    return readings[encoding]


def _reading(raw: list[bytes], encoding: str) -> list[str]:
    """Lines in an encoding; none if they cannot be in it."""
    try:
        lines = [line.decode(encoding) for line in raw]
    except (UnicodeError, LookupError):
        return []
    return [] if re.search("[\x80-\x9f]", "".join(lines)) else lines  # no text holds such controls


def _chosen(content: bytes, raw: list[bytes], path: Path, readings: dict[str, list[str]]) -> str | None:
    """Choose between the guess and Windows-1252; ``None`` if neither is plausible."""
    western = readings.get("cp1252")
    guess = next((name for name in readings if name != "cp1252"), None)
    letters = {name: re.sub("[\0-\x7f]|\\W", "", "".join(lines)) for name, lines in readings.items()}
    if guess and not _is_latin(letters[guess]) and not _mixes_scripts(readings[guess]):
        return "cp1252" if western and not letters["cp1252"] else guess
    if guess is None or not _is_latin(letters[guess]):
        return "cp1252" if western and not _has_many_accents(content) else None
    if western == readings[guess] or (western and not letters["cp1252"]):
        return "cp1252"  # letters are none: English with typographic quotes, which chardet takes for Czech letters
    if western and _n_split(western) > 1 and not _n_split(readings[guess]):
        return guess  # such as Polish: za³o¿enie
    if sum(not line.isascii() for line in raw) < _ENOUGH_LINES:
        raise _unclear(path, guess, readings[guess], western)
    return guess


def _say_encoding(path: Path, what: str) -> None:
    warn(f"{str(path)!r} {what}")


def _unclear(path: Path, encoding: str, guess: list[str], western: list[str] | None) -> UnclearEncodingError:
    """Show the first line that two readings have otherwise."""
    shown = western or [""] * len(guess)
    at = next(i for i, (one, other) in enumerate(zip(guess, shown, strict=True)) if one != other)
    first, second = (printable(repr(shortened(lines[at], _MOST_LETTERS))) for lines in (guess, shown))
    other = f" or {second} (--encoding cp1252)" if western else " or other letters (another --encoding)"
    return UnclearEncodingError(
        f"{str(path)!r} is not UTF-8, and its encoding is not clear: line {at + 1} is {first} (--encoding {encoding})"
        f"{other}; pass one of these options, or save it as UTF-8 (in Excel: 'CSV UTF-8')."
    )


def _is_latin(letters: str) -> bool:
    return 2 * sum(unicodedata.name(letter, "").startswith("LATIN") for letter in letters) >= len(letters)


def _n_split(lines: list[str]) -> int:
    """Count lines in which a sign of Windows-1252 that is no letter stands between two small letters."""
    return sum(bool(_SPLIT.search(line)) for line in lines)


def _has_halves(content: bytes) -> bool:
    try:
        return bool(content.decode(errors="surrogatepass"))
    except UnicodeDecodeError:
        return False


def _has_many_accents(content: bytes) -> bool:
    """Whether a text has more characters beyond ASCII than one of a Latin script."""
    n_accents = len(content) - len(content.translate(None, bytes(range(128, 256))))
    return n_accents > _MOST_ACCENTS * len(content)


def _mixes_scripts(lines: list[str]) -> bool:
    """Whether many words with letters of another script have letters of ASCII, too: then it is another encoding."""
    words = [word for line in lines for word in re.findall(r"[^\W\d_]+", line) if not word.isascii()]
    alphabetic = [word for word in words if ord(max(word)) < 0x0E00]  # others put no blanks between words
    n_mixed = sum(bool(re.search("[a-zA-Z]", word)) for word in alphabetic)
    return 10 * n_mixed > len(words)


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


def _decoded(content: bytes, encoding: str, path: Path) -> list[str]:
    """Decode a whole file."""
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ValueError(
            f"--encoding {encoding!r} is not known; pass a name of Python's, such as cp1251, gb18030 or shift_jis."
        ) from error
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        if encoding == "utf-16":
            raise ValueError(
                f"{str(path)!r} begins as UTF-16 text, but is damaged at byte {start}; save it as UTF-8."
            ) from error
        raise ValueError(
            f"Line {len(content[:start].splitlines()) or 1} of {str(path)!r} cannot be read as --encoding {encoding} "
            "says; name another encoding."
        ) from error
    encoded = text.removeprefix("\ufeff").encode(errors="replace")
    _check_no_zero(encoded, path)
    return [line.decode() for line in encoded.splitlines(keepends=True)]
