"""What the characters of a text say: no import takes long here, so that a command starts at once."""

import re
import unicodedata
from typing import Any

#: Unicode categories of blanks, control characters and format characters.
_INVISIBLE = {"Zs", "Zl", "Zp", "Cc", "Cf"}
#: Control characters, line ends, what sets the direction of writing, and halves of characters.
_OBEYED = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Whether a string has a form in bytes: it holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def normalize_text(text: str) -> str:
    """Fold case, normalise Unicode (NFKC) and make every run of white space one blank."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def is_visible(text: str) -> bool:
    """Whether a text has a character that is not blank, a control or a format character."""
    return any(unicodedata.category(character) not in _INVISIBLE for character in text)


def printable(value: Any) -> str:
    """Escape, as JSON does, what a terminal would obey: control characters, line ends, the direction of writing."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
