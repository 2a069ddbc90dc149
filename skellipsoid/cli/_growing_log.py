"""The messages of a log since the last call: of one that grows, that was rotated, or of another one."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .._core.messages import numbered
from .._core.warn import warn
from .._text_files.decode import whole_lines
from .._text_files.read import read_log

#: Parts of the names of columns whose numbers are times.
_OF_TIMES = ("time", "date", "stamp", "created", "zeit", "datum")


class LastLog(NamedTuple):
    """What is kept of the log of the last call; of that of an earlier version only the hash."""

    sha256: str
    n_texts: int | None = None
    path: str | None = None

    @classmethod
    def of(cls, texts: list[str], path: Path | None) -> "LastLog":
        """Give what is kept of a log."""
        return cls(_digest(texts), len(texts), None if path is None else str(path.resolve()))

    def rest_of(self, texts: list[str]) -> list[str] | None:
        """Give the texts after those of the last log; ``None`` if the log does not begin with it."""
        n_texts = len(texts) if self.n_texts is None else self.n_texts
        return texts[n_texts:] if _digest(texts[:n_texts]) == self.sha256 else None


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode(errors="replace")).hexdigest()


def read_growing(path: Path, **how: Any) -> list[str]:
    """Read the texts of a log, to its last whole line: another program may be writing the one behind.

    Warns
    -----
    UserWarning
        If its times decrease.
    """
    with whole_lines():
        texts, _, columns = read_log(path, **how)
    for name, cells in columns.items():
        times = _times(name, cells)
        steps = [(before < after) - (after < before) for before, after in pairwise(times)]
        if sum(steps) < 0:
            warn(
                f"The times in the column {name!r} of {str(path)!r} fall, but the monitor reads downwards; "
                "sort the log by its times, the earliest first."
            )
            break
    return texts


def _times(name: str, cells: list[str]) -> list[float]:
    """Cells of a column as seconds; none if they are no times."""
    with suppress(ValueError, OverflowError):
        return [datetime.fromisoformat(cell).timestamp() for cell in cells if cell]
    with suppress(ValueError):
        return [float(cell) for cell in cells if cell] if any(part in name.lower() for part in _OF_TIMES) else []
    return []


def texts_since(last: LastLog, texts: list[str], path: Path | None, **how: Any) -> list[str]:
    """Give the texts that came since the last call.

    Of a log that begins with the last one it is the rest. Where the file was rotated, the rest of the earlier file, and
    those between, come first.

    Warns
    -----
    UserWarning
        What is read, if it is not all of the log; and if the same file does not go on where it ended.
    """
    rest = last.rest_of(texts)
    if rest is not None:
        if texts and not rest:
            warn("This log was given at the last call already, and is not counted again.")
        elif last.n_texts:
            warn(f"The log begins with that of the last call, and its {numbered(len(rest), 'further text')} are read.")
        return rest
    if path is None or last.n_texts is None:
        return texts
    between: list[str] = []
    for earlier in _rotated(path.resolve()):
        try:
            found = read_growing(earlier, **how)
        except (OSError, ValueError):
            break
        rest = last.rest_of(found)
        if rest is not None:
            warn(f"The log was rotated: the end of {str(earlier)!r} ({numbered(len(rest), 'text')}) is read first.")
            return [*rest, *between, *texts]
        between = [*found, *between]
    if last.path == str(path.resolve()):
        warn(
            f"{str(path)!r} does not begin with what was read of it at the last call, nor does an earlier file beside "
            "it: if it is a log that was rotated, what was written between is missing."
        )
    return texts


def _rotated(path: Path) -> Iterator[Path]:
    """Earlier files of a log, the latest first, by the names of skellipsoid-serve or of logrotate."""
    for number in count(1):
        names = (f"{path.stem}.{number}{path.suffix}", f"{path.name}.{number}")
        found = [path.with_name(name) for name in names if path.with_name(name).is_file()]
        if not found:
            return
        yield found[0]
