"""Texts and labels from the files that people have: tab-separated, CSV of any kind, JSON lines, JSON, parquet."""

from .decode import decode_lines
from .delimited import find_table
from .messages import named, numbered, shortened
from .names import looks_like_header
from .read import PARQUET, LabelledTexts, read_file, read_labels, read_rows, read_table, read_texts
from .write import write_rows

__all__ = [
    "PARQUET",
    "LabelledTexts",
    "decode_lines",
    "find_table",
    "looks_like_header",
    "named",
    "numbered",
    "read_file",
    "read_labels",
    "read_rows",
    "read_table",
    "read_texts",
    "shortened",
    "write_rows",
]
