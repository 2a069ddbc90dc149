"""The command ``compare``: which answers change from one model to the next."""

import argparse
import csv

from .._after_fit.compare import compare as compare_models
from ._use import load_model, texts_of_file, with_content


def compare(options: argparse.Namespace) -> None:
    """Report the answers that differ between two models, on lines from standard input or the texts of a file."""
    given = texts_of_file(options)
    before, after = (load_model(folder, verbose=0) for folder in (options.before, options.after))
    texts = with_content(given)
    if not texts:
        raise ValueError("There are no texts to compare: give lines on standard input, or a file with --data.")
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
