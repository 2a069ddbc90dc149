"""Data sets: the corpus that ships with the package, and a synthetic generator."""

from ._assistant import load_assistant_intents
from ._synthetic import make_open_blobs

__all__ = [
    "load_assistant_intents",
    "make_open_blobs",
]
