"""Reads JSON lines, a JSON array or parquet as a table, with paths into nested objects."""

import importlib
import json
import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from skellipsoid_runtime._containers import is_unicode

from .._bot_files.bot_reader import PAGE
from .._core.messages import named
from .._core.warn import warn
from .decode import read_bytes
from .text_table import Table

#: Half of a pair of surrogates.
_HALF = re.compile("[\ud800-\udfff]")


def read_json(lines: list[str], path: Path, wanted: Sequence[str] = ()) -> Table:
    """Read one JSON object on each line, or an array of objects.

    A ``wanted`` name with dots, such as ``data.text``, is a path into objects in objects; numbers count in arrays.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    first = next((line.lstrip() for line in lines if line.strip()), "")
    found = _array(lines, path) if first.startswith("[") else _objects(lines, path)
    found = _mended(found, "record" if first.startswith("[") else "line", path)
    names = list(dict.fromkeys(name for _, record in found for name in record))
    rows = [[record.get(name) for name in names] for _, record in found]
    unit = "record" if first.startswith("[") else "line"
    added = [name for name in wanted if "." in name and name not in names]
    if len(found) == 1:
        for name in added:
            _refuse_one_of_many(found[0][1], name, path)
    added = [name for name in added if any(inside(record, name) is not None for _, record in found)]
    rows = [[*row, *(inside(record, name) for name in added)] for row, (_, record) in zip(rows, found, strict=True)]
    return Table([*names, *added], rows, [number for number, _ in found], unit, n_added=len(added))


def inside(value: Any, name: str) -> Any:
    """Follow a path of names, which may hold dots, and of numbers in arrays; ``None`` where it leads to nothing."""
    found = [step for step in _steps(value, name) if step[1] == ""]
    return found[0][0] if found else None


def _steps(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Values on the way along a path, each with the rest of the path; of two names the longer one is taken."""
    yield value, path
    parts = path.split(".") if path else []
    for n in range(len(parts), 0, -1):
        key, rest = ".".join(parts[:n]), ".".join(parts[n:])
        if isinstance(value, dict) and key in value:
            yield from _steps(value[key], rest)
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            yield from _steps(value[int(key)], rest)
        else:
            continue
        return


def paths_into(value: Any) -> list[str]:
    """Paths to the texts and numbers in objects, without those in arrays of several."""
    if isinstance(value, list) and len(value) == 1:
        return [f"0.{path}" if path else "0" for path in paths_into(value[0])]
    if not isinstance(value, dict):
        return [] if isinstance(value, list) else [""]
    return [f"{name}.{path}" if path else str(name) for name, each in value.items() for path in paths_into(each)]


def _refuse_one_of_many(record: dict[str, Any], name: str, path: Path) -> None:
    """Refuse a path of a single record that takes one of several objects in an array: the others would be lost."""
    for value, rest in _steps(record, name):
        if isinstance(value, list) and rest and len(value) > 1 and isinstance(value[0], dict):
            place = name.removesuffix(rest).rstrip(".")
            raise ValueError(
                f"{name!r} takes one of the {len(value):,} objects of the list {place!r} in {str(path)!r}, which is "
                "one record; write this list alone to a file."
            )


def _mended(found: list[tuple[int, dict[str, Any]]], unit: str, path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Replace halves of surrogate pairs, such as half an emoji, which no text holds."""
    halves = [number for number, record in found if not is_unicode(json.dumps(record, ensure_ascii=False))]
    if not halves:
        return found
    warn(
        f"{named(unit, halves).capitalize()} of {str(path)!r} {'holds' if len(halves) == 1 else 'hold'} half a "
        "character, such as half an emoji, which is replaced by \ufffd."
    )
    return [(number, _without_halves(record)) for number, record in found]


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_halves(part) for part in value]
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", name): _without_halves(part) for name, part in value.items()}
    return value


def _array(lines: list[str], path: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        records = json.loads("".join(lines))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is no JSON array ({error}); pass an array of objects, or one object on each line."
        ) from error
    return [(i, _checked(record, f"Record {i}", path)) for i, record in enumerate(records, start=1)]


def _objects(lines: list[str], path: Path) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Line {number} of {str(path)!r} is no JSON object ({error}); write one object on each line, or an "
                "array of objects."
            ) from error
        found.append((number, _checked(record, f"Line {number}", path)))
    return found


def _checked(record: Any, place: str, path: Path) -> dict[str, Any]:
    if not isinstance(record, dict):
        kind = {list: "an array", str: "a string", type(None): "null"}.get(type(record), "a number")
        if isinstance(record, list) and any(isinstance(part, dict) and "cats" in part for part in record):
            kind = f"an array with spaCy's cats ({PAGE} turns them into labels)"
        raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument
            f"{place} of {str(path)!r} is {kind}, but must be a JSON object with a text and a label; correct it."
        )
    return record


def read_parquet(path: Path) -> Table:
    """Read a parquet file with pandas and pyarrow, or with polars.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no parquet.
    ImportError
        If neither is installed.
    """
    frame = _frame(path, read_bytes(path))
    names = [str(name) for name in frame.columns]
    # Lists are arrays in pandas.
    columns = [
        [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in frame[name].to_list()]
        for name in frame.columns
    ]
    rows = [list(cells) for cells in zip(*columns, strict=True)]
    return Table(names, rows, list(range(1, len(rows) + 1)), "record")


def _frame(path: Path, content: bytes) -> Any:
    # By default pandas makes whole numbers with gaps floats, which round large ones.
    for library, options in (("pandas", {"dtype_backend": "numpy_nullable"}), ("polars", {})):
        try:
            return importlib.import_module(library).read_parquet(BytesIO(content), **options)
        except ImportError:  # of pandas also if it is there, and pyarrow is not
            continue
        except Exception as error:
            reason = str(error).partition("\n")[0].strip(" .")
            raise ValueError(
                f"{str(path)!r} cannot be read as parquet ({reason}); take a complete copy of it, or save it as CSV."
            ) from error
    raise ImportError(
        f"{str(path)!r} is parquet, which needs pandas with pyarrow, or polars; install one, or save the file as CSV."
    )
