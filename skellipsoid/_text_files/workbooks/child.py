"""Reads the cells of a workbook in a child process, so that a crash of the library does not end the command.

A damaged workbook ends some versions of the library, or takes all memory. This file is run by its path, and imports
nothing of the package.
"""

import datetime
import json
import sys
from io import BytesIO
from typing import Any

#: Memory of the process, and cells of a sheet: ten columns of as many rows as Excel has.
MOST_MEMORY, MOST_CELLS = 4 << 30, 10 << 20
#: First bytes of the result: whatever the library prints stands before.
PREFIX = b"skellipsoid\n"


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(hard, MOST_MEMORY)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (OSError, ValueError):  # systems that know the limit and do not set it
        return


def _written(value: Any) -> Any:
    """Give a cell as text, with its kind where it is no text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ["truth", str(value).upper()]  # as a spreadsheet shows it
    if isinstance(value, int | float):
        is_whole = isinstance(value, int) or value.is_integer()
        return ["number", str(int(value)) if is_whole else repr(value)]
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return ["date", f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"]
    return ["date", value.isoformat(*([" "] if isinstance(value, datetime.datetime) else []))]


def read_cells(content: bytes, wanted: list[str]) -> dict[str, Any]:
    """Read sheets of a workbook; without a ``wanted`` name, only what sheets it has."""
    import python_calamine as calamine

    with calamine.CalamineWorkbook.from_filelike(BytesIO(content)) as workbook:
        sheets = [
            [each.name, each.visible == calamine.SheetVisibleEnum.Visible]
            for each in workbook.sheets_metadata
            if each.typ == calamine.SheetTypeEnum.WorkSheet
        ]
        found = []
        for name in wanted:
            sheet = workbook.get_sheet_by_name(name)
            if sheet.total_height * sheet.total_width > MOST_CELLS:
                return {"too_large": name}
            rows = [list(map(_written, row)) for row in sheet.to_python(skip_empty_area=False)]
            found.append({"rows": rows, "merged": sheet.merged_cell_ranges or []})
    return {"sheets": sheets, "found": found}


def main() -> None:
    """Read names as JSON, a line feed and the workbook from standard input, and write the cells as JSON."""
    _limit_memory()
    names, _, content = sys.stdin.buffer.read().partition(b"\n")
    try:
        found = read_cells(content, json.loads(names))
    except BaseException as error:  # a panic of the library is no Exception
        found = {"error": type(error).__name__}
    sys.stdout.buffer.write(PREFIX + json.dumps(found).encode())


if __name__ == "__main__":
    main()
