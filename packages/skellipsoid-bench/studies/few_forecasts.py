"""Whether forecasts as trained hold where few samples were held out: few classes, with few texts each.

    python studies/memory.py --data-home ../../../shared/data embed
    python studies/few_forecasts.py > results/few_forecasts.rst

The sets of ``memory.py``; 4, 8 or 16 classes with 2 to 10 texts each are drawn, four times. Their other messages are
known, those of all other classes open. *Without groups*: the intervals before the number of held-out groups counted.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from labels import true_shares
from line_tables import print_table
from memory import OPEN, REAL, TEXTS

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._held_out.kept import held_out_of
from skellipsoid._traffic.forecast import FEWEST_HELD_OUT, forecast_as_set

CLASSES, COUNTS = (4, 8, 16), (2, 3, 5, 10)
NAMES = {"right": "right", "wrong": "wrong", "rejected": "rejected", "noticed": "noticed", "asked": "asked"}
NAMES["open_asked"] = "open asked"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE / "memory")
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few texts
    found = [each for name in (*REAL, *TEXTS) for each in of_set(name, options)]
    print("Percent of the draws in which the truth lies in the interval of 90 %, of all sets and of the worst one, and")
    print("the mean width of the interval, points; in brackets without groups.\n")
    rows = [["texts of a class", "draws", *NAMES.values()]]
    for n in COUNTS:
        rows.append([str(n), *cells([each for each in found if each["n"] == n])])
    print_table([*rows, ["all", *cells(found)]])


def of_set(name, options):
    """Forecasts and truth of one set."""
    arrays = np.load(options.cache / f"{name}.npz")
    for draw in range(options.draws):
        rng = np.random.default_rng(draw)
        for n_classes in CLASSES:
            for n in COUNTS:
                counted = np.unique(arrays["y"], return_counts=True)
                able = counted[0][(counted[1] >= n) & np.isin(counted[0], arrays["truth"])]
                if len(able) < n_classes or n_classes * n < FEWEST_HELD_OUT:
                    continue
                classes = rng.choice(able, n_classes, replace=False)
                rows = [rng.permutation(np.flatnonzero(arrays["y"] == label))[:n] for label in classes]
                rows = np.concatenate(rows)
                clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(
                    arrays["X"][rows], arrays["y"][rows]
                )
                held_out = held_out_of(clf, "few_forecasts.py")
                if len(held_out.known) < FEWEST_HELD_OUT:
                    continue
                truth = np.where(np.isin(arrays["truth"], classes), arrays["truth"], OPEN)
                without = held_out._replace(n_known=np.inf, n_open=np.inf)
                yield {
                    "set": name,
                    "n": n,
                    "true": true_shares(clf, arrays["log"], truth),
                    "with": forecast_as_set(clf, held_out).figures,
                    "without": forecast_as_set(clf, without).figures,
                }


def cells(chosen):
    """Cells of a line: how often the intervals hold, and how wide they are."""
    sets = np.array([each["set"] for each in chosen])
    found = [str(len(chosen))]
    for name in NAMES:
        parts = []
        for way in ("with", "without"):
            low, high = np.array([each[way][name][2:] for each in chosen]).T
            true = np.array([each["true"][name] for each in chosen])
            holds = (low <= true) & (true <= high)
            worst = min(holds[sets == one].mean() for one in np.unique(sets))
            parts.append(f"{100 * holds.mean():.0f}, {100 * worst:.0f}; {100 * (high - low).mean():.0f}")
        found.append(f"{parts[0]} [{parts[1]}]")
    return found


if __name__ == "__main__":
    main()
