"""The default beside its baselines, and each baseline beside its best threshold, told the same traffic.

    python studies/beside_baselines.py --data-home _data run        # goes on where it stopped; --sets: some
    python studies/beside_baselines.py report > results/beside_baselines.rst

A third of the classes is open, half of the samples of each other class train, the rest is the test; two random splits.
Baselines have ``threshold="auto"``. The default and the Mahalanobis distances are told the traffic, except in the
column "default, untold". Texts are on frozen MiniLM with three layers, at most 120 of a class (Banking77: 40).
The bots and the cards are in the folder ``real`` of the data. Of seventeen sets four are scikit-learn's, six are texts,
and seven are synthetic.

TRIED.md (*Thresholds of baselines*) says how the thresholds of baselines were chosen.
"""

import argparse
import csv
import json
import warnings
from pathlib import Path

import numpy as np
from features import read
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import scale

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid import baselines as b
from skellipsoid.metrics import open_set_f1_score

N_DRAWS = 2
RESULTS = Path(__file__).parents[1] / "results" / "beside_baselines.jsonl"
SYNTHETIC = ("heavy tails", "two clusters", "unequal sizes", "image-like", "table, raw", "table, scaled", "wide")
REAL = {"bot 1": "sofmattress", "bot 2": "curekart", "cards": "clinc_cards"}
TOLD = {"open_share": (0.25, 0.75), "known_shift": 0}
METHODS = {
    "default, untold": EllipsoidOpenSetClassifier(random_state=0),
    "default": EllipsoidOpenSetClassifier(random_state=0, **TOLD),
    "Mahalanobis": b.MahalanobisClassifier(threshold="auto", **TOLD),
    "relative": b.MahalanobisClassifier(covariance="relative", threshold="auto", **TOLD),
    "per class": b.MahalanobisClassifier(covariance="class", threshold="auto", **TOLD),
    "PLDA": b.PLDAClassifier(threshold="auto"),
    "kNN": b.KNNOpenSetClassifier(threshold="auto"),
    "LOF": b.LOFOpenSetClassifier(),
    "LOF, all": b.LOFOpenSetClassifier(scope="all"),
    "softmax": b.SoftmaxOpenSetClassifier(threshold="auto"),
    "logit": b.MaxLogitClassifier(threshold="auto"),
    "energy": b.EnergyClassifier(threshold="auto"),
    "ball": b.BallClassifier(),
}


def texts(name, most, data_home):
    """Frozen MiniLM of at most so many training texts of each class."""
    if name in REAL.values():
        with Path(data_home, "real", f"{name}_train.csv").open(encoding="utf-8") as file:
            data, target = (np.array(column) for column in zip(*list(csv.reader(file))[1:], strict=True))
    else:
        bunch = read(name, "train", data_home)
        data, target = np.asarray(bunch.data), np.asarray(bunch.target)
    rng, kept = np.random.default_rng(0), []
    for label in np.unique(target[target != "oos"]):
        kept.append(rng.permutation(np.flatnonzero(target == label))[:most])
    kept = np.sort(np.concatenate(kept))
    encoder = SupConTextEncoder(finetune="none", random_state=0)
    return encoder.fit_transform(data[kept].tolist(), target[kept]), target[kept]


def drawn(kind):
    """Synthetic classes."""
    rng = np.random.default_rng(7)
    if kind == "heavy tails":
        y, centres = np.repeat(np.arange(15), 80), rng.normal(0, 4, (15, 20))
        return centres[y] + rng.standard_t(2, (len(y), 20)), y
    if kind == "two clusters":
        y, centres = np.repeat(np.arange(12), 80), rng.normal(0, 4, (12, 2, 10))
        return centres[y, rng.integers(0, 2, len(y))] + rng.normal(0, 1, (len(y), 10)), y
    if kind == "unequal sizes":
        y, centres = np.repeat(np.arange(18), np.geomspace(4, 600, 18).astype(int)), rng.normal(0, 1.6, (18, 30))
        return centres[y] + rng.normal(0, 1, (len(y), 30)), y
    if kind.startswith("table"):
        # Correlated columns, every other one skewed, in units from a thousandth to a thousand.
        y, mixing = np.repeat(np.arange(12), 80), rng.normal(size=(12, 12)) / 3 + np.eye(12)
        X = (rng.normal(0, 1.3, (12, 12))[y] + rng.normal(size=(len(y), 12))) @ mixing
        X[:, ::2] = np.exp(X[:, ::2] / 2)
        return (X * np.logspace(-3, 3, 12), y) if kind == "table, raw" else (scale(X), y)
    if kind == "wide":
        # A thousand columns, whose spread falls, as of embeddings; 20 training samples a class.
        y, spread = np.repeat(np.arange(20), 40), 1 / np.sqrt(np.arange(1, 1001))
        return (rng.normal(0, 0.8, (20, 1000))[y] + rng.normal(size=(len(y), 1000))) * spread, y
    y, centres = np.repeat(np.arange(30), 60), rng.normal(size=(30, 100))
    return np.maximum(centres[y] + rng.normal(0, 1.1, (len(y), 100)), 0), y


def sets(data_home):
    """Name and function of each set."""
    (iris, kinds), (wine, growers) = load_iris(return_X_y=True), load_wine(return_X_y=True)
    return {
        "digits": lambda: load_digits(return_X_y=True),
        "iris": lambda: (iris, kinds),
        "wine, raw": lambda: (wine, growers),
        "wine, scaled": lambda: (scale(wine), growers),
        **{kind: lambda kind=kind: drawn(kind) for kind in SYNTHETIC},
        "corpus": lambda: texts("assistant", 120, data_home),
        **{name: lambda file=file: texts(file, 120, data_home) for name, file in REAL.items()},
        "StackOverflow": lambda: texts("stackoverflow", 120, data_home),
        "Banking77": lambda: texts("banking", 40, data_home),
    }


def figures(estimator, X, y, draw):
    """F1 as fitted, F1 at the best threshold, AUROC, in per cent."""
    rng, labels = np.random.default_rng([draw, 11]), np.unique(y)
    known = rng.permutation(labels)[: max(2, round(2 * len(labels) / 3))]
    train = np.zeros(len(y), dtype=bool)
    for label in known:
        rows = rng.permutation(np.flatnonzero(y == label))
        train[rows[: max(2, len(rows) // 2)]] = True
    clf = estimator.fit(X[train], y[train])
    new, is_known = X[~train], np.isin(y[~train], known)
    truth = np.where(is_known, np.searchsorted(clf.classes_, y[~train]), -1)
    assigned = np.searchsorted(clf.classes_, clf.predict_known(new))
    scores, classes = clf.score_samples(new), np.arange(len(known))

    def f1(offset):
        answers = np.where(scores < offset, -1, assigned)
        return 100 * open_set_f1_score(truth, answers, labels=classes, zero_division=0)

    best = max(f1(offset) for offset in np.quantile(scores, np.linspace(0, 0.98, 50)))
    return f1(clf.offset_), best, 100 * roc_auc_score(is_known, scores)


def table(rows):
    """Write a table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    print("\n".join([rule, lines[0], rule, *lines[1:], rule]), flush=True)


def main():
    """Run what is not there yet, or print F1 as fitted, at the best threshold and AUROC of each method on each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data-home", default=None)
    parser.add_argument("--sets", nargs="+", help="only these")
    options = parser.parse_args()
    run(options) if options.what == "run" else report()


def rows_of():
    """Read the results: set, method, figures."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {(row["data"], row["method"]): row["figures"] for row in map(json.loads, lines)}


def run(options):
    """Append what is not there yet."""
    warnings.simplefilter("ignore")
    for name, load in sets(options.data_home).items():
        done = rows_of()
        todo = [method for method in METHODS if (name, method) not in done]
        if not todo or (options.sets and name not in options.sets):
            continue
        X, y = load()
        X = X if X.dtype.kind == "f" else X.astype(float)
        for method in todo:
            means = np.mean([figures(METHODS[method], X, y, draw) for draw in range(N_DRAWS)], axis=0)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"data": name, "method": method, "figures": means.round(3).tolist()}) + "\n")
        print(name, flush=True)


def report():
    """Print the tables."""
    rows = rows_of()
    names = [name for name in sets(None) if all((name, method) in rows for method in METHODS)]
    print("F1 as fitted / F1 at the best threshold / AUROC, in percent, means of two random splits.\n")
    lines = [
        [name, *("/".join(f"{value:.0f}" for value in rows[name, method]) for method in METHODS)] for name in names
    ]
    table([["Data", *METHODS], *lines])
    print(
        f"\nMeans over the {len(names)} sets: F1 as fitted, what it lacks to the best threshold, and F1 of the default"
    )
    print("above it.\n")
    means = {method: np.mean([rows[name, method] for name in names], axis=0) for method in METHODS}
    lines = [
        [method, f"{fitted:.1f}", f"{best - fitted:.1f}", f"{means['default'][0] - fitted:+.1f}"]
        for method, (fitted, best, _) in means.items()
    ]
    table([["Method", "F1", "Below its best", "Default above"], *lines])


if __name__ == "__main__":
    main()
