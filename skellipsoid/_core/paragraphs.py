"""Paragraphs that several docstrings have in common, inserted by a decorator of classes and functions."""

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])


def with_paragraphs(given: Mapping[str, str]) -> Callable[[Documented], Documented]:
    """Return a decorator that replaces each line ``{name other_name}`` of a docstring by these paragraphs."""

    def paragraphs(line: re.Match[str]) -> str:
        found = [textwrap.dedent(given[name]).strip("\n") for name in line[2].split()]
        return textwrap.indent("\n\n".join(found), line[1])

    def decorate(thing: Documented) -> Documented:
        if thing.__doc__ is not None:  # python -OO
            thing.__doc__ = re.sub(r"^( *)\{(\w+(?: \w+)*)\}$", paragraphs, thing.__doc__, flags=re.MULTILINE)
        return thing

    return decorate
