"""What cross-fitting the head is worth, for 25 to 11,000 training texts, and how much of it.

Each case takes a share of the classes as known, and some training texts of each. A head learns from them; the features
of the training texts are mixed with out-of-fold features in several shares, the boundaries are fitted to each mixture,
and the development rows tell how good they are, those of all other classes being open. Share 0 is no cross-fitting.

    python studies/features.py --data-home ../../../shared/data
    python studies/cross_fit.py --data-home ../../../shared/data     # half an hour on one core; resumes
    python studies/cross_fit.py --report > results/cross_fit.rst
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from duplicates import table
from features import embedded
from sklearn.preprocessing import normalize
from torch.nn import functional

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._encoders.torch import contrastive
from skellipsoid._encoders.trained_text_features import read_settings
from skellipsoid._samples.duplicates import find_duplicates
from skellipsoid.metrics import open_set_f1_score

RESULTS = Path(__file__).parents[1] / "results" / "cross_fit.jsonl"
SETS = ("assistant", "banking", "stackoverflow", "oos")
RATIOS = (0.25, 0.75)
#: Texts of each class, and the seeds to take; all texts at last.
SIZES = {5: (0, 1, 2), 10: (0, 1, 2), 24: (0, 1, 2), 50: (0, 1), 10_000: (0,)}
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def main():
    """Run what is not there yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--report", action="store_true", help="print the table of what is there")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    done = {(row["data"], row["ratio"], row["size"], row["seed"]) for row in found}
    for size, seeds in SIZES.items():
        for name in SETS:
            if name == "assistant" and size > 24:  # which is all it has
                continue
            train, dev = (embedded(name, subset, options.data_home) for subset in ("train", "dev"))
            for ratio in RATIOS:
                for seed in seeds:
                    if (name, ratio, size, seed) not in done:
                        line = {"data": name, "ratio": ratio, "size": size, "seed": seed}
                        line |= run_case(train, dev, ratio, size, seed)
                        with RESULTS.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(line) + "\n")


def run_case(train, dev, ratio, size, seed):
    """F1 by share of out-of-fold features and of frozen ones, and seconds of one head and of all four."""
    (X, y), (X_dev, y_dev) = train, dev
    labels = np.unique(y)
    known = np.random.RandomState(seed).choice(labels, round(len(labels) * ratio), replace=False)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in known])
    X, y = X[rows], y[rows]
    classes, codes = np.unique(y, return_inverse=True)
    encoder = SupConTextEncoder(finetune="head")
    encoder.finetune_ = "head"  # as in a fit
    settings = read_settings(encoder)
    embeddings, start = torch.from_numpy(X), time.perf_counter()
    head = contrastive.start_projection(X.shape[1], X.shape[1], seed)
    contrastive.train_projection(contrastive.FrozenRows(embeddings), codes, len(classes), head, settings, seed)
    seconds = time.perf_counter() - start
    with torch.no_grad():
        final, new = (functional.normalize(head(torch.from_numpy(part)), dim=1) for part in (X, X_dev))
    blocks, most = find_duplicates(normalize(X), codes), contrastive.CROSS_FIT_MOST
    contrastive.CROSS_FIT_MOST, half = 1.0, contrastive.CROSS_FIT_HALF
    contrastive.CROSS_FIT_HALF = 1e12  # nothing but out-of-fold features
    trains, nothing = np.ones(len(codes), dtype=bool), (embeddings[:0], codes[:0])
    unseen = contrastive.cross_fit(embeddings, codes, len(classes), final, settings, seed, trains, blocks, nothing)
    crossed = time.perf_counter() - start
    contrastive.CROSS_FIT_MOST, contrastive.CROSS_FIT_HALF = most, half
    used = min(most, half / (half + len(y) / len(classes)))
    f1 = {
        share: f1_of(functional.normalize(final + share * (unseen - final), dim=1).numpy(), y, new.numpy(), y_dev, seed)
        for share in (*SHARES, used)
    }
    return {
        "n_texts": len(y),
        "n_classes": len(classes),
        "f1": {f"{share:g}": round(f1[share], 2) for share in SHARES},
        "default": round(f1[used], 2),
        "frozen": round(f1_of(normalize(X), y, normalize(X_dev), y_dev, seed), 2),
        "seconds": [round(seconds, 2), round(crossed, 2)],
    }


def f1_of(features, target, new, target_dev, seed):
    """Macro F1 of the default boundaries on development rows, in percent."""
    classifier = EllipsoidOpenSetClassifier(random_state=seed).fit(features, target)
    truth = np.where(np.isin(target_dev, classifier.classes_), target_dev, "-1")
    return 100 * open_set_f1_score(truth, classifier.predict(new), labels=classifier.classes_, zero_division=0)


def report(found):
    """Print mean F1 by texts per class and share."""
    lines = []
    for size in SIZES:
        rows = [row for row in found if row["size"] == size]
        texts = [row["n_texts"] for row in rows]
        line = ["all" if size == max(SIZES) else str(size), f"{min(texts):,} to {max(texts):,}", str(len(rows))]
        line.append(f"{np.mean([row['frozen'] for row in rows]):.1f}")
        line += [f"{np.mean([row['f1'][f'{share:g}'] for row in rows]):.1f}" for share in SHARES]
        lines.append([*line, f"{np.mean([row['default'] for row in rows]):.1f}"])
    shares = [f"share {share:g}" for share in SHARES]
    table(["texts per class", "texts", "cases", "frozen", *shares, "default"], lines)


if __name__ == "__main__":
    main()
