"""Thresholds of baselines before and after they were read off the scale of the full model, on the same test samples.

    git show dcce124d:./results/methods.jsonl > before.jsonl
    python studies/thresholds.py --before before.jsonl > results/thresholds.rst

Of the rows of ``results/methods.jsonl`` with an ``answers_version``, which a change of thresholds raises.
"""

import argparse
from pathlib import Path

import numpy as np

from skellipsoid_bench import read_results

RESULTS = Path(__file__).parents[1] / "results"
KEYS = ("encoder", "method", "data", "ratio", "seed")


def main():
    """Print a table of means over the cases that both have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, default=RESULTS / "methods.jsonl")
    options = parser.parse_args()
    before, after = (
        {tuple(row[key] for key in KEYS): row for row in read_results(path)} for path in (options.before, options.after)
    )
    pairs = {}
    for name in after.keys() & before.keys():
        if "answers_version" not in after[name] or after[name]["params"].get("threshold") != "auto":
            continue
        pairs.setdefault(name[:2], []).append((before[name], after[name]))
    rows = [("Encoder", "Method", "Cases", "F1 before", "F1 after", "Best F1", "ACC before", "ACC after")]
    for (encoder, method), found in sorted(pairs.items()):
        means = [np.mean([pair[at][key] for pair in found]) for key in ("f1", "accuracy") for at in (0, 1)]
        best = np.mean([new["oracle_f1"] for _, new in found])
        numbers = [means[0], means[1], best, means[2], means[3]]
        rows.append((encoder, method, str(len(found)), *(f"{number:.2f}" for number in numbers)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    print("\n".join([rule, lines[0], rule, *lines[1:], rule]))


if __name__ == "__main__":
    main()
