"""Options that say how a file of texts is read: its sheets, columns and encoding."""

import argparse
from pathlib import Path


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add the columns of texts and labels of ``--data``."""
    add_encoding(command)
    for what in ("text", "label"):
        command.add_argument(
            f"--{what}-column",
            metavar="COLUMN",
            help=f"the column of the {what}s: its name, or its number from 1 (default: guessed, with a note)",
        )
    command.add_argument("--language", metavar="CODE", help="the one to read of a bot's several languages, such as de")


def add_lines(command: argparse.ArgumentParser, help_of_data: str) -> None:
    """Add a file of texts, in place of lines of standard input."""
    command.add_argument("--data", type=Path, metavar="FILE", help=help_of_data)
    add_encoding(command)
    add_text_column(command)


def add_encoding(command: argparse.ArgumentParser, of: str = "--data") -> None:
    """Add how a file of texts is read: its encoding, or the sheets of a workbook."""
    command.add_argument(
        "--sheet",
        action="append",
        default=[],
        metavar="SHEET",
        help=f"the sheet of a workbook in {of}: its name, or else its number from 1; may be given several times "
        "(default: the first visible one, with a note)",
    )
    command.add_argument(
        "--encoding",
        metavar="NAME",
        help="the encoding of the files of texts, such as cp1251 or shift_jis (default: UTF-8, or what Excel writes)",
    )


def add_text_column(command: argparse.ArgumentParser, of: str = "--data") -> None:
    """Add the column of the texts."""
    command.add_argument(
        "--text-column", metavar="COLUMN", help=f"the column of the texts in {of} (default: guessed, with a note)"
    )
