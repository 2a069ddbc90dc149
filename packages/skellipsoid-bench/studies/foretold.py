"""Whether ``learn_from_traffic`` foretells what comes: with 15 to 120 labels of a log, on the messages after it.

After ``real_lines.py embed --files real/``. Four hundred messages are the log, all others come later; the
labels are chosen by ``choose_to_label``.

    python studies/foretold.py --data-home ../../../shared/data > results/foretold.rst
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import OPEN, Texts, cases_of, real_cases, third_bot

from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label, learn_from_traffic, set_operating_point
from skellipsoid.metrics import open_set_f1_score

NAMES = ("right", "wrong", "rejected", "noticed")
CASES = ("real-bot1", "real-bot2", "real-bot3", "real-cardsid", "real-cardsood")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", required=True)
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines")
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few samples, known messages that have moved
    title = "What learn_from_traffic foretells, and what comes"
    print(title, "=" * len(title), sep="\n", end="\n\n")
    print("Shares of known messages that are answered right, wrong or rejected, and of open ones that are noticed,")
    print("percent: foretold / true, and in brackets the draws in which the truth is within two errors. F1 is true.")
    print("*before*: as trained; *share told*: the share of open messages in the log, and no label.\n")
    rows = [["case", "labels", "", *NAMES, "F1"]]
    for name, train, known, opened in cases_of(CASES, third_bot(options), real_cases(options)):
        clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)
        everything = Texts(*(np.concatenate(parts) for parts in zip(known, opened, strict=True)))
        truth = np.where(np.isin(everything.y, clf.classes_), everything.y, OPEN)
        rows.append(told_share(name, clf, everything.X, truth, options.draws))
        for n in (15, 30, 60, 120):
            rows += rows_of(name, n, clf, everything.X, truth, options.draws)
    print_table(rows)


def rows_of(name, n, clf, X, truth, draws):
    """Foretold and true shares of the given and of the learned classifier, means over draws."""
    found, f1 = {"before": [], "after": []}, {"before": [], "after": []}
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(X))
        log, later = order[: min(400, len(X) // 2)], order[min(400, len(X) // 2) :]
        chosen = choose_to_label(clf, X[log], n, random_state=draw)
        labels, weights = np.full(len(log), None, dtype=object), np.ones(len(log))
        labels[chosen.rows], weights[chosen.rows] = truth[log][chosen.rows], chosen.weights
        learned = learn_from_traffic(clf, X[log], labels, sample_weight=weights)
        for when, model in (("before", clf), ("after", learned)):
            told = np.array([learned.changes_[-1][when][key] for key in NAMES])
            found[when].append([*told.T, true_shares(answers := model.predict(X[later]), truth[later])])
            f1[when].append(f1_of(answers, truth[later]))
    rows = []
    for when, values in found.items():
        told, errors, true = np.moveaxis(np.array(values), 1, 0)
        holds = (np.abs(told - true) <= 2 * errors).mean(axis=0)
        cells = zip(told.mean(axis=0), true.mean(axis=0), holds, strict=True)
        rows.append([name, str(n), when, *(f"{100 * a:.0f} / {100 * b:.0f} ({100 * c:.0f})" for a, b, c in cells)])
        rows[-1].append(f"{np.mean(f1[when]):.1f}")
    return rows


def told_share(name, clf, X, truth, draws):
    """Measure the shares where the share of open messages is told, and nothing else."""
    set_operating_point(clf, open_share=float(np.mean(truth == OPEN)))
    found, f1 = [], []
    for draw in range(draws):
        later = np.random.default_rng(draw).permutation(len(X))[min(400, len(X) // 2) :]
        found.append(true_shares(answers := clf.predict(X[later]), truth[later]))
        f1.append(f1_of(answers, truth[later]))
    set_operating_point(clf)
    return [name, "0", "share told", *(f"{100 * share:.0f}" for share in np.mean(found, axis=0)), f"{np.mean(f1):.1f}"]


def f1_of(answers, truth):
    """Macro F1 over open and the classes that occur, percent."""
    return 100 * open_set_f1_score(truth, answers, labels=np.setdiff1d(truth, [OPEN]), open_label=OPEN, zero_division=0)


def true_shares(answers, truth):
    """Right, wrong and rejected of the known, noticed of the open."""
    is_known, is_rejected = truth != OPEN, answers == OPEN
    is_right = answers == truth
    of_known = is_right[is_known].mean(), (~is_right & ~is_rejected)[is_known].mean(), is_rejected[is_known].mean()
    return [*of_known, is_rejected[~is_known].mean()]


if __name__ == "__main__":
    main()
