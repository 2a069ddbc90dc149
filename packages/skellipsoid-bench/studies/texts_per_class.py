"""Frozen features or a trained head, by the number of texts of each class: the choice of ``finetune="auto"``.

Each case takes a share of the classes as known, and some training texts of each. The encoder is fitted to them in each
mode, and the default boundaries to its features. The development rows judge both; those of other classes are open. No
test row is read. The corpus of the package has open development rows too, and at most 24 training texts of a class.
From 24 texts of each class on, cases of more than 50 known classes are left out, for their time.

    python studies/features.py --data-home ../../../shared/data
    python studies/texts_per_class.py --data-home ../../../shared/data    # an hour on one core; resumes
    python studies/texts_per_class.py --report > results/texts_per_class.rst
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
from duplicates import table
from features import embedded

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_auroc, open_set_f1_score
from skellipsoid_bench._encoders import _LookedUp

RESULTS = Path(__file__).parents[1] / "results" / "texts_per_class.jsonl"
SETS = {
    "assistant": "Shipped corpus",
    "banking": "Banking77",
    "oos": "CLINC150",
    "stackoverflow": "StackOverflow",
}
RATIOS = (0.25, 0.5, 0.75)
#: Texts of each class, and the seeds to take.
SIZES = {5: range(5), 10: range(5), 24: range(3), 50: range(3), 100: range(2)}
#: Known classes at most, from this many texts of each; more take hours.
MOST_CLASSES, FROM = 50, 24
MODES = ("none", "head")
#: Texts of each class that the corpus of the package has.
MOST = {"assistant": 24}
FIGURES = {"f1": "macro F1", "rejected": "known rejected", "wrong": "wrong class", "noticed": "open noticed"}


def main():
    """Run what is not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--report", action="store_true", help="print the tables of what is there")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    done = {(row["data"], row["ratio"], row["size"], row["seed"]) for row in found}
    warnings.filterwarnings("ignore", message=".* have fewer than 10 different samples")
    for size, name in itertools.product(SIZES, SETS):
        if size > MOST.get(name, size):
            continue
        train, dev = (embedded(name, subset, options.data_home) for subset in ("train", "dev"))
        most = MOST_CLASSES if size >= FROM else len(train[1])
        ratios = [ratio for ratio in RATIOS if ratio * len(np.unique(train[1])) <= most]
        for seed, ratio in itertools.product(SIZES[size], ratios):
            if (name, ratio, size, seed) not in done:
                line = {"data": name, "ratio": ratio, "size": size, "seed": seed}
                line |= run_case(train, dev, ratio, size, seed)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def run_case(train, dev, ratio, size, seed):
    """Figures of each mode in percent, and its seconds without the text model."""
    (X, y), (X_dev, y_dev) = train, dev
    labels = np.unique(y)
    known = np.random.RandomState(seed).choice(labels, round(len(labels) * ratio), replace=False)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in known])
    truth = np.where(np.isin(y_dev, known), y_dev, "-1")
    # A text's name stands for it: the text model was asked before.
    texts, new = [f"train {row}" for row in rows], [f"dev {row}" for row in range(len(X_dev))]
    vectors = dict(zip([*texts, *new], [*X[rows], *X_dev], strict=True))
    found = {"n_texts": len(rows), "n_classes": len(known), "n_dev": int((truth != "-1").sum())}
    for mode in MODES:
        start = time.perf_counter()
        encoder = _LookedUp.using(vectors)(finetune=mode, layers="last", random_state=seed)
        features = encoder.fit_transform(texts, y[rows])
        classifier = EllipsoidOpenSetClassifier(random_state=seed).fit(features, y[rows])
        seconds = round(time.perf_counter() - start, 2)
        found[mode] = judge(classifier, encoder.transform(new), truth) | {"seconds": seconds}
    return found


def judge(classifier, features, truth):
    """Figures of one fit on development rows, in percent."""
    answers, is_open = classifier.predict(features), truth == "-1"
    labels, scores = classifier.classes_, classifier.score_samples(features)
    shares = {
        "f1": open_set_f1_score(truth, answers, labels=labels, zero_division=0),
        "auroc": open_set_auroc(truth, scores, labels=labels),
        "rejected": np.mean(answers[~is_open] == "-1"),
        "wrong": np.mean((answers != truth)[~is_open] & (answers != "-1")[~is_open]),
        "noticed": np.mean(answers[is_open] == "-1"),
    }
    return {name: round(100 * float(share), 2) for name, share in shares.items()}


def report(found):
    """Print the figures of both modes by data set and texts per class, and the gain of the head."""
    lines, means = [], {size: [] for size in SIZES}
    for name, size in itertools.product(SETS, SIZES):
        rows = [row for row in found if (row["data"], row["size"]) == (name, size)]
        if rows:
            means[size].append([[np.mean([row[mode][figure] for row in rows]) for mode in MODES] for figure in FIGURES])
            gains = [row["head"]["f1"] - row["none"]["f1"] for row in rows]
            gain = f"{np.mean(gains):+.1f} ± {np.std(gains, ddof=1) / len(gains) ** 0.5:.1f}"
            lines.append([SETS[name], str(size), str(len(rows)), *pairs(means[size][-1]), gain])
    for size, of_sets in means.items():
        mean = np.mean(of_sets, axis=0)
        lines.append([f"Mean of {len(of_sets)} sets", str(size), "", *pairs(mean), f"{mean[0, 1] - mean[0, 0]:+.1f}"])
    table(["data", "texts per class", "cases", *FIGURES.values(), "gain in F1"], lines)


def pairs(figures):
    """Write each figure of both modes."""
    return [" / ".join(f"{value:.1f}" for value in of_modes) for of_modes in figures]


if __name__ == "__main__":
    main()
