"""Records of JSON lines, of a JSON array and of parquet to a table."""

import importlib
import json
from io import BytesIO
from pathlib import Path
from typing import Any

from .decode import decode_file, read_bytes
from .table import Table


def read_json(path: Path) -> Table:
    """Read one JSON object on each line, or an array of objects.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    lines = decode_file(path)
    first = next((line.lstrip() for line in lines if line.strip()), "")
    found = _array(lines, path) if first.startswith("[") else _objects(lines, path)
    names = list(dict.fromkeys(name for _, record in found for name in record))
    rows = [[record.get(name) for name in names] for _, record in found]
    unit = "record" if first.startswith("[") else "line"
    return Table(names, rows, [number for number, _ in found], unit)


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
    columns = [frame[name].to_list() for name in frame.columns]
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
