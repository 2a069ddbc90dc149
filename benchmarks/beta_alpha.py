"""How beta and alpha move the boundaries: Banking77, classes left out in five folds of the training rows.

Nothing is read but training rows of the known classes; the folds of ``OpenSetKFold`` leave a fifth of them out as open.
Features are those of the frozen text model.

    python benchmarks/beta_alpha.py --data-home ../shared/data > benchmarks/results/beta_alpha.rst    # 15 minutes
"""

import argparse

import numpy as np
from features import embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_f1_score
from skellipsoid.model_selection import OpenSetKFold

BETAS, ALPHAS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0), (0.2, 0.6, 2.0)
RATIOS, N_FOLDS = (0.25, 0.75), 5


def main():
    """Print one table for each share of known classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = embedded("banking", "train", options.data_home)
    for ratio in RATIOS:
        known = known_classes("banking", ratio, options.seed, options.data_home)
        mine = np.isin(rows.target, known)
        table(normalize(rows.embeddings[mine]), rows.target[mine], ratio, options.seed)


def table(X, y, ratio, seed):
    """Print macro F1 and its standard error over the folds, and what is rejected of known and open rows."""
    folds = list(OpenSetKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, y))
    rule = "  ".join("=" * width for width in (6, *[26] * len(ALPHAS)))
    print(f"Banking77, {ratio:.0%} known: macro F1 ± standard error; rejected known / open rows, in percent\n\n{rule}")
    print("  ".join(["β     ", *(f"α = {alpha:<22}" for alpha in ALPHAS)]).rstrip() + f"\n{rule}")
    for beta in BETAS:
        line = [f"{beta:<6}"]
        for alpha in ALPHAS:
            found = np.array([judge(X, y, train, test, beta, alpha, seed) for train, test in folds])
            f1, of_known, of_open = found.mean(axis=0)
            error = found[:, 0].std(ddof=1) / np.sqrt(N_FOLDS)
            line.append(f"{f1:.2f} ± {error:.1f}; {of_known:.1f} / {of_open:.1f}".ljust(26))
        print("  ".join(line).rstrip(), flush=True)
    print(f"{rule}\n")


def judge(X, y, train, test, beta, alpha, seed):
    """F1 and rejection rates of one fold, in percent."""
    clf = EllipsoidOpenSetClassifier(beta=beta, alpha=alpha, random_state=seed).fit(X[train], y[train])
    answers, is_known = clf.predict(X[test]), np.isin(y[test], clf.classes_)
    f1 = open_set_f1_score(y[test], answers, labels=clf.classes_, zero_division=0)
    rejected = answers == clf.open_label_
    return 100 * f1, 100 * rejected[is_known].mean(), 100 * rejected[~is_known].mean()


if __name__ == "__main__":
    main()
