"""The parser of the command line: no abbreviations, and the nearest name for one that is not known."""

import argparse
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

#: Earlier names of commands.
_RENAMED = {"set-limit": "set-threshold"}


class Parser(argparse.ArgumentParser):
    """Knows options by their whole names alone: an abbreviation would mean another one in a later version."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Refuse an option that is not known, with the nearest one, before what else is missing is said."""
        known = self._option_string_actions
        for word in args or () if self._subparsers is None else ():
            name = word.partition("=")[0]
            if word == "--":
                break
            if re.fullmatch("--[a-z][a-z-]*", name, re.I) and name not in known:
                self.error(f"there is no option {name}{_meant(name, known)}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with one sentence, which names the choice that is nearest to a wrong one."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            new = _RENAMED.get(found[1])
            meant = f"; it is now {new}" if new else _meant(found[1], re.findall(r"[\w-]+", found[2]))
            message = f"there is no command {found[1]!r}{meant}" if self._is_of_commands(message) else message + meant
        elif self._is_of_commands(message):
            message = "a command is missing"
        super().error(message)

    def _is_of_commands(self, message: str) -> bool:
        """Whether an error is about the name of the command; the usage above it lists all names."""
        actions = self._subparsers._group_actions if self._subparsers is not None else []
        return any(str(action.metavar) in message for action in actions if action.metavar)


def _meant(word: str, known: Iterable[str]) -> str:
    beginning = [name for name in known if name.startswith(word)]
    near = get_close_matches(word, known, 1, 0.6) if len(beginning) != 1 else beginning
    return f"; did you mean {near[0]}?" if near else ""
