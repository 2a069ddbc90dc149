"""Data sets: the corpus that ships with the package, fetchers of public ones, a synthetic generator."""

from ._assistant import load_assistant_intents
from ._fetchers import fetch_banking77, fetch_clinc_oos, fetch_stackoverflow
from ._synthetic import make_open_blobs

__all__ = [
    "fetch_banking77",
    "fetch_clinc_oos",
    "fetch_stackoverflow",
    "load_assistant_intents",
    "make_open_blobs",
]
