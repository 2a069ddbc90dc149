"""The file of results: one JSON line for each run, appended at once, whole or not at all after the next start."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skellipsoid._base import warn
from skellipsoid._core.files import holding, replacing, to_disk

Record = dict[str, Any]
#: What tells one run from another within a file.
NAMES = ("data", "ratio", "seed", "encoder", "method")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold a file of results, which is made if it is not there, and mend what a kill left of its last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with holding(Path(f"{path}.lock"), waits=False) as is_held:
        if not is_held:
            raise OSError(f"Another benchmark is writing {str(path)!r}; wait for it, or use another file.")
        _mend(path)
        yield


def append_result(path: Path, record: Record) -> None:
    """Write a line, and wait until it is on the disk."""
    with naming(path):
        with path.open("ab") as file:
            file.write(_line(record))
        to_disk(path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of writing: that of a full disk has no name."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{str(path)!r} cannot be written ({error.strerror}); make room, and start again: what is there is kept."
        ) from error


def replace_result(path: Path, record: Record) -> None:
    """Put a result in the place of the one of the same run; a kill leaves the file as it was, or as it will be."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines = [_line(record) if name_of(json.loads(line)) == name_of(record) else line for line in lines]
    with naming(path), replacing(path) as part:
        part.write_bytes(b"".join(lines))


def _mend(path: Path) -> None:
    """Cut off a last line that was not written to its end; a line that lacks its line break alone is whole."""
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        start = content.rfind(b"\n") + 1
        if start == len(content):
            return
        if _is_record(content[start:]):
            file.write(b"\n")
        else:
            _say_torn(path)
            file.truncate(start)


def read_results(*paths: str | os.PathLike[str]) -> list[Record]:
    """Read results that ``run`` wrote.

    Parameters
    ----------
    *paths : str or path-like
        Files of JSON lines. A last line that was not written to its end is left out, with a warning.

    Returns
    -------
    records : list of dict
        One for each run, in the order of the files. Metrics are in percent.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a line is not a result, or if the same run is there twice.

    Examples
    --------
    >>> from skellipsoid_bench import read_results
    >>> records = read_results("results.jsonl")  # doctest: +SKIP
    """
    records: list[Record] = []
    for path in map(Path, paths):
        try:
            *lines, rest = path.read_bytes().split(b"\n")
        except OSError as error:
            raise OSError(
                f"{str(path)!r} cannot be read ({error.strerror}); pass a file that skellipsoid-bench run wrote."
            ) from error
        for number, line in enumerate(lines, start=1):
            if not _is_record(line):
                raise ValueError(
                    f"Line {number} of {str(path)!r} is not a result of a benchmark; delete it or use another file."
                )
            records.append(json.loads(line))
        if rest:
            _say_torn(path)
    for name, found in grouped(records, *NAMES).items():
        if len(found) > 1:
            raise ValueError(f"There are two results of {describe(*name)}; pass files that hold each run once.")
    return records


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _say_torn(path: Path) -> None:
    warn(f"The last line of {str(path)!r} was not written to its end; it is left out, and its run counts as not done.")


def name_of(record: Record) -> tuple[Any, ...]:
    """Tell which run a result is of."""
    return tuple(record[name] for name in NAMES)


def grouped(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Results by what they have under some names, in the order in which each comes first."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return groups


def describe(data: str, ratio: float, seed: int, encoder: str, method: str) -> str:
    """Name a run in a message."""
    return f"{data} {ratio:.0%} known, seed {seed}, {encoder}, {method}"


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and {*NAMES, "estimator", "params"} <= {*record}
