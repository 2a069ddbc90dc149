"""Normalised, visible and printable characters of a text; all imports are fast, so that a command starts at once."""

import re
import unicodedata
from typing import Any

#: Unicode categories of blanks, control characters and format characters.
_INVISIBLE = {"Zs", "Zl", "Zp", "Cc", "Cf"}
#: Default_Ignorable_Code_Point of Unicode, and letters without a visible glyph.
_IGNORED = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: Control characters, line ends, marks of the writing direction, and lone surrogates.
_OBEYED = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: A date and a time, or a time, at the beginning of a line that a program logged.
TIME = re.compile(
    r"[\[(]?(?:\d{4}-\d\d-\d\d[T ]|\d\d?[./]\d\d?[./]\d{2,4},? |\d\d/\w{3}/\d{4}:)?\d\d?:\d\d(?::\d\d)?\b"
)


def normalize_text(text: str) -> str:
    """Fold case, normalise Unicode (NFKC) and make every run of white space one blank."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def is_visible(text: str) -> bool:
    """Whether a text has a character that is not blank, a control or a format character, and may not be ignored."""
    return any(unicodedata.category(letter) not in _INVISIBLE and not _IGNORED.match(letter) for letter in text)


def without_ignored(text: str) -> str:
    """Remove characters without a visible glyph, such as variation selectors and zero-width blanks."""
    return _IGNORED.sub("", text)


def printable(value: Any) -> str:
    """Escape, as JSON does, what changes a terminal's state: control characters, line ends, writing direction."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
