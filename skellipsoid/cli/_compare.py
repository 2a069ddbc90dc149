"""The command ``compare``: which predictions change from one model to the next."""

import argparse

from .._core.files import write_spreadsheet
from .._traffic.compare import compare as compare_models
from ._given import texts_of_file, with_content
from ._use import load_model


def compare(options: argparse.Namespace) -> None:
    """Report the predictions that differ between two models, on lines from standard input or the texts of a file."""
    given = texts_of_file(options)
    before, after = (load_model(folder, options)[0] for folder in (options.before, options.after))
    texts = with_content(given)
    if not texts:
        raise ValueError("There are no texts to compare: give lines on standard input, or a file with --data.")
    found = compare_models(before, after, texts)
    print(found)
    if options.save is not None:
        names = ["before", "after", "margin_before", "margin_after", "text"]
        columns = [found.changed[name].tolist() for name in names]
        margins = [[f"{margin:.4f}" for margin in column] for column in columns[2:4]]
        texts = [" ".join(text.split()) for text in columns[4]]
        write_spreadsheet(options.save, names, zip(*columns[:2], *margins, texts, strict=True))
        print(f"\nThe changed predictions are in {options.save}")
