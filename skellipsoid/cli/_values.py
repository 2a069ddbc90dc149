"""Values of options: each reader gives the value of a word, or an error of one sentence."""

import argparse
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_LARGEST_SEED = 2**32 - 1


def seed(text: str) -> int:
    """Read a seed."""
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST_SEED:
        raise ArgumentTypeError(f"{text!r} is not a seed; use a whole number from 0 to {_LARGEST_SEED}")
    return int(text)


def count(text: str) -> int:
    """Read a positive whole number."""
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 10**9:
        raise ArgumentTypeError(f"{text!r} is not a number of messages; use a whole number of at least 1")
    return int(text)


def proportion(text: str) -> float:
    """Read a proportion."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"{text!r} is not a proportion; use a number from 0 to below 1, such as 0.05")
    return value


class ReadProportion(argparse.Action):
    """Keep a proportion, or the two ends of an interval."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        if len(values) > 2:
            parser.error(f"argument {self.option_strings[0]}: pass one proportion, or the two ends of an interval")
        setattr(namespace, self.dest, values[0] if len(values) == 1 else tuple(values))


def plot_file(text: str) -> Path:
    """Read the name of a file for a picture, in a folder that exists."""
    return _in_folder(text, (".pdf", ".png", ".svg"))


def page_file(text: str) -> Path:
    """Read the name of a file for a page, in a folder that exists."""
    return _in_folder(text, (".html",))


def _in_folder(text: str, suffixes: tuple[str, ...]) -> Path:
    path = with_suffix(text, suffixes)
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {str(path.parent)!r} for {text!r}; create it, or use another")
    return path


def with_suffix(text: str, suffixes: tuple[str, ...]) -> Path:
    """Read the name of a file that ends in one of these."""
    path = Path(text)
    if path.suffix.lower() not in suffixes:
        raise ArgumentTypeError(f"{text!r} names no format; use a name that ends in {', '.join(suffixes)}")
    return path
