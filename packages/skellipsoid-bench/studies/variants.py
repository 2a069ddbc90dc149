"""How many texts are variants of another text of their class: texts written for the training, and those of users.

python packages/skellipsoid-bench/studies/variants.py --data-home ../shared/data
"""

import argparse

import numpy as np
from line_tables import print_table
from real_lines import TRAINING_FILES, read

from skellipsoid._core.characters import normalize_text
from skellipsoid._core.texts import variants
from skellipsoid._core.validation import number
from skellipsoid.datasets import load_assistant_intents

FILES = {
    **TRAINING_FILES,
    "bot 1, subset": "real/sofmattress_subset_train.csv",
    "bot 1, its users": "real/sofmattress_test.csv",
}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", required=True, help="folder that holds real/, banking/, oos/, stackoverflow/")
    options = parser.parse_args()
    sets = {name: read(file, options) for name, file in FILES.items()}
    sets["shipped corpus"] = load_assistant_intents(return_X_y=True)
    rows = [["texts", "different", "variants, %"]]
    for name, (texts, labels) in sets.items():
        pairs = zip(texts, labels, strict=True)
        kept = sorted({(normalize_text(text), label) for text, label in pairs if label != "NO_NODES_DETECTED"})
        found = variants([text for text, _ in kept], number(label for _, label in kept))
        rows.append([name, str(len(kept)), f"{100 * np.mean(found):.0f}"])
    print_table(rows)


if __name__ == "__main__":
    main()
