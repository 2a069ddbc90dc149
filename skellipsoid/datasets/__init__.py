"""Data sets: the corpus that ships with the package, a synthetic generator, and a loader of users' files."""

from ._assistant import load_assistant_intents
from ._synthetic import make_open_blobs
from ._text_file import load_text_file

__all__ = [
    "load_assistant_intents",
    "load_text_file",
    "make_open_blobs",
]
