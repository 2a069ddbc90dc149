"""What class frequencies are worth where classes are compared: a constant times the logarithm of a class's size.

    python studies/memory.py --data-home ../../../shared/data embed
    python studies/frequencies.py > results/frequencies.rst

As trained, nothing told: closed-set accuracy, F1 over the classes that occur and open, F1 over what occurs in the truth
or among the predictions, and AUROC, means of logs with 5, 20 and 50 % open messages. The bots have classes of unlike
sizes. *Thinned*: of the training texts, sizes of classes fall from all to a sixth, whatever the traffic: then sizes say
nothing. The constant was chosen when the three bots had been seen; the thinned sets came after.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from memory import OPEN, SHARES, drawn, figures

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.math import class_sizes

CONSTANTS = (0.0, 2.0, 4.0, 8.0)
#: Sets, and how many draws of thinned training texts; 0 is all of them.
CASES = {"bot 1": 1, "bot 2": 0, "bot 3": 0, "cards": 2, "stackoverflow": 2, "banking": 1}
AS_IT_IS = ("bot 1", "bot 2", "bot 3")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE / "memory")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    print("Closed-set accuracy / F1 / all F1 / AUROC with each constant, percent.\n")
    rows = [["set", *(f"{constant:g}" for constant in CONSTANTS)]]
    for name, n_thinned in CASES.items():
        arrays = np.load(options.cache / f"{name}.npz")
        if name in AS_IT_IS:
            rows.append([name, *cells(arrays, [np.arange(len(arrays["y"]))])])
        if n_thinned:
            kept = [thinned(arrays["y"], np.random.default_rng(draw)) for draw in range(n_thinned)]
            rows.append([f"{name}, thinned", *cells(arrays, kept)])
    print_table(rows)


def thinned(y, rng):
    """Keep all of one class, a sixth of another one, at least three texts, and in between of the others."""
    classes = rng.permutation(np.unique(y))
    parts = 6.0 ** -(np.arange(len(classes)) / (len(classes) - 1))
    rows = [rng.permutation(np.flatnonzero(y == name)) for name in classes]
    return np.concatenate([own[: max(3, round(part * len(own)))] for own, part in zip(rows, parts, strict=True)])


def cells(arrays, kept):
    """Figures with each constant, means over training sets."""
    usual, found = class_sizes.FREQUENCY, []
    for constant in CONSTANTS:
        class_sizes.FREQUENCY = constant
        values = np.mean([judged(arrays, rows) for rows in kept], axis=0)
        found.append(" / ".join(f"{value:.1f}" for value in values))
    class_sizes.FREQUENCY = usual
    return found


def judged(arrays, rows):
    """Closed-set accuracy, both kinds of F1, AUROC."""
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(arrays["X"][rows], arrays["y"][rows])
    is_known = arrays["truth"] != OPEN
    right = clf.predict_known(arrays["log"][is_known]) == arrays["truth"][is_known]
    logs = [drawn(arrays["log"], arrays["truth"], share, np.random.default_rng(0)) for share in SHARES]
    return [100 * right.mean(), *np.mean([figures(clf, *log, 0) for log in logs], axis=0)]


if __name__ == "__main__":
    main()
