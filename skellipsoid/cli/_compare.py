"""The command ``compare``: which answers change from one model to the next."""

import argparse
import csv
import sys

from .. import compare as compare_models
from .._text_files import decode_lines, read_texts
from ._use import load_text_model, note_damaged


def compare(options: argparse.Namespace) -> None:
    """Report the answers that differ between two models, on lines from standard input or the texts of a file."""
    if options.text_column is not None and options.data is None:
        msg = "--text-column names a column of the file of --data; pass a file, or leave --text-column out."
        raise ValueError(msg)
    before, after = (load_text_model(folder, verbose=0) for folder in (options.before, options.after))
    if options.data is None:
        lines = (line.rstrip("\r\n") for line in decode_lines(sys.stdin.buffer, note_damaged, "The input"))
        texts = [line for line in lines if line.strip()]
    else:
        texts = list(read_texts(options.data, text_column=options.text_column))
    if not texts:
        msg = "There are no texts to compare: give lines on standard input, or a file with --data."
        raise ValueError(msg)
    found = compare_models(before, after, texts)
    print(found)
    if options.save is not None:
        with options.save.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["before", "after", "margin_before", "margin_after", "text"])
            columns = [found.changed[name].tolist() for name in ("before", "after", "margin_before", "margin_after")]
            for *values, text in zip(*columns, found.changed.text, strict=True):
                writer.writerow([*values[:2], *(f"{value:.4f}" for value in values[2:]), " ".join(text.split())])
        print(f"\nThe changed answers are in {options.save}")
