"""Which groups of discovery are of one class: by their coherence.

    python studies/memory.py --data-home ../../../shared/data embed
    python studies/mixed_groups.py > results/mixed_groups.rst

Half of the classes of each set are known, 80 % of their texts train; the log holds the other texts, and the open texts
of the shipped corpus, each of a subject of its own. A group is *of one class* if three fifths of its different texts
are, and *mixed* if less than two fifths are of any class. Three draws of the classes.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from sklearn.metrics import roc_auc_score

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, discover_classes
from skellipsoid.datasets import load_assistant_intents

SETS, DRAWS, MOST, FEWEST = ("bot 1", "bot 2", "bot 3", "banking", "oos"), 3, 800, 6
LIMITS = (0.4, 0.45, 0.5, 0.55)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE / "memory")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    corpus = load_assistant_intents(subset="test")
    alone = corpus.data[corpus.target == "-1"]
    alone = SupConTextEncoder(finetune="none").fit(alone).transform(alone)
    found = {name: groups_of(np.load(options.cache / f"{name}.npz"), alone) for name in SETS}
    print(f"{__doc__.partition(chr(10) * 2)[2].partition(chr(10) * 2)[2]}")
    rows = []
    for name in [*SETS, "all"]:
        purity, coherence = np.concatenate([found[each] for each in (SETS if name == "all" else [name])]).T
        one, mixed = purity >= 0.6, purity < 0.4
        judged = one | mixed
        auroc = roc_auc_score(one[judged], coherence[judged])
        said = [f"{100 * np.mean(coherence[part] < limit):.0f}" for limit in LIMITS for part in (mixed, one)]
        rows.append([name, str(one.sum()), str(mixed.sum()), f"{100 * auroc:.1f}", *said])
    limits = [f"{limit}: {what}" for limit in LIMITS for what in ("mixed", "of one class")]
    print("AUROC of the coherence, and of 100 mixed groups, and of 100 of one class, those below each limit:\n")
    print_table([["Set", "of one class", "mixed", "AUROC", *limits], *rows])


def groups_of(arrays, alone):
    """Purity and coherence of the groups, (n_groups, 2)."""
    X, y, found = arrays["X"], arrays["y"], []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        classes, counts = np.unique(y, return_counts=True)
        classes = classes[counts >= FEWEST]
        known = rng.permutation(classes)[: len(classes) // 2]
        trains = np.isin(y, known) & (rng.random(len(y)) < 0.8)
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[trains], y[trains])
        rows = rng.permutation(np.flatnonzero(~trains & np.isin(y, classes)))[:MOST]
        log = np.concatenate([X[rows], alone])
        truth = np.append(y[rows], [f"alone {i}" for i in range(len(alone))])
        groups = discover_classes(clf, log)
        for group in range(groups.n_groups):
            counts = np.unique(truth[groups.labels == group], return_counts=True)[1]
            found.append((counts.max() / counts.sum(), groups.coherence[group]))
    return np.array(found)


if __name__ == "__main__":
    main()
