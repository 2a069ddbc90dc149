"""EliDecide as its authors released it, on given features of unit length: the proof that ours does the same.

The development rows of the known classes stop the training, as in the released code. Features are not rescaled, and no
row is left out as a duplicate or an outlier. Each case reads its test rows once. A case that is there is not run again.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/elidecide.py --data-home ../shared/data                                         # all 45 cases
    python benchmarks/elidecide.py --data-home ../shared/data --data banking --ratios 0.25 --seeds 0  # 3 minutes
    python benchmarks/elidecide.py --data-home ../shared/data --name letter --trainer '{"weight_decay": 0, "n_mix": 3}'
    python benchmarks/elidecide.py --report
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
from features import FETCHERS, RATIOS, SEEDS, embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
from skellipsoid.benchmark._data import OPEN
from skellipsoid.benchmark._judge import judge
from skellipsoid.benchmark._measure import versions

RESULTS = Path(__file__).parent / "results" / "elidecide.jsonl"


def main():
    """Run the cases that are not there yet, or print what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--name", default="released", help="name of the settings in the lines")
    parser.add_argument("--trainer", type=json.loads, default={}, help="settings of EliDecide that differ, as JSON")
    parser.add_argument("--report", action="store_true", help="print what is there")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    done = {(row["name"], row["data"], row["ratio"], row["seed"]) for row in found}
    for case in itertools.product(options.seeds, options.data, options.ratios):
        seed, data, ratio = case
        if (options.name, data, ratio, seed) in done:
            continue
        row = {"name": options.name, **run(data, ratio, seed, options.trainer, options.data_home)}
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        report([row])


def run(data, ratio, seed, changes, data_home):
    """Train on one case and judge it on its test rows."""
    known = known_classes(data, ratio, seed, data_home)
    X, y = features_of(data, "train", known, data_home)
    X_dev, y_dev = features_of(data, "dev", known, data_home)
    trainer = EliDecide(**{"rescale": False, **changes})
    classifier = EllipsoidOpenSetClassifier(
        trainer=trainer, duplicates="off", outliers="keep", open_label=OPEN, random_state=seed
    )
    start = time.perf_counter()
    classifier.fit(X, y, X_val=X_dev, y_val=y_dev)
    seconds = time.perf_counter() - start
    rows = embedded(data, "test", data_home)
    X_test, truth = normalize(rows.embeddings), np.where(np.isin(rows.target, known), rows.target, OPEN)
    return {
        "data": data,
        "ratio": ratio,
        "seed": seed,
        **judge(classifier, X_test, classifier.predict(X_test), truth),
        "n_iter": classifier.n_iter_,
        "dev_f1": [round(100 * score, 2) for score in classifier.validation_scores_],
        "n_train": len(X),
        "n_dev": len(X_dev),
        "n_test": len(X_test),
        "trainer": trainer.get_params(),
        "fit_seconds": round(seconds, 1),
        "versions": versions(),
    }


def features_of(data, subset, known, data_home):
    """Features of unit length of the rows of the known classes, and their labels."""
    rows = embedded(data, subset, data_home)
    kept = np.isin(rows.target, known)
    return normalize(rows.embeddings[kept]), rows.target[kept]


def report(found):
    """Print one line for each case."""
    for row in found:
        (right, wrong, rejected), (_, accepted, noticed) = row["coarse"]
        print(
            f"{row['name']:12} {row['data']:14} {row['ratio']:.2f} seed {row['seed']}: F1 {row['f1']:.2f}, accuracy "
            f"{row['accuracy']:.2f}, known rejected {rejected / (right + wrong + rejected):.3f}, open accepted "
            f"{accepted / (accepted + noticed):.3f}, {row['n_iter']} epochs, {row['fit_seconds']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
