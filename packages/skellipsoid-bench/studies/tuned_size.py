"""The size of the boundaries on features that were tuned on the training texts: three ways to find it.

MiniLM is tuned as a whole, or a head is trained without cross-fitting; a tenth of the texts of a class is held out. The
classifier is fitted to the features as they are (*plain*), or to those of ``fit_transform``, spread as those held out
(*spread*), or it is given the known rows of one half of the development rows as ``X_val``. Development rows judge,
those of all other classes being open; *rest* is their other half, which judges ``X_val``.

    python studies/features.py --data-home ../../../shared/data
    python studies/tuned_size.py --data-home ../../../shared/data head     # 20 minutes on one core, resumes
    python studies/tuned_size.py --data-home ../../../shared/data full     # two hours on one core, resumes
    python studies/tuned_size.py --report > results/tuned_size.rst
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from duplicates import table
from features import CACHE, FETCHERS, embedded, known_classes

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._encoders.torch.contrastive import FrozenRows, spread_as_fresh, start_projection, train_projection
from skellipsoid._encoders.trained_text_features import read_settings
from skellipsoid.metrics import open_set_f1_score
from skellipsoid_bench._judge import coarse_confusion, oracle_f1

RESULTS = Path(__file__).parents[1] / "results" / "tuned_size.jsonl"
OPEN = "-1"
#: Data set, share of known classes and epochs. Five or six epochs at the default rate, for two CPU cores.
FULL = (("banking", 0.25, 6), ("oos", 0.5, 6), ("stackoverflow", 0.75, 5), ("banking", 0.75, 6))
RATIOS = (0.25, 0.5, 0.75)


def main():
    """Run what is not there yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("head", "full"))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--report", action="store_true", help="print the table of what is there")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    done = {(row["trained"], row["data"], row["ratio"]) for row in found}
    cases = FULL if options.what == "full" else [(name, ratio, 60) for name in FETCHERS for ratio in RATIOS]
    for name, ratio, epochs in cases:
        if (options.what, name, ratio) not in done:
            line = {"trained": options.what, "data": name, "ratio": ratio, "epochs": epochs}
            line |= compare(tuned(options.what, name, ratio, epochs, options.data_home))
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def tuned(what, name, ratio, epochs, data_home):
    """Features of training and development texts, which training texts were held out, and labels; kept on disk."""
    path = CACHE / "tuned_size" / f"{what}-{name}-{ratio}-{epochs}.npz"
    if not path.exists():
        known = known_classes(name, ratio, 0, data_home)
        train, dev = (FETCHERS[name](subset=part, data_home=data_home) for part in ("train", "dev"))
        y, y_dev = np.asarray(train.target).astype(str), np.asarray(dev.target).astype(str)
        rows = np.flatnonzero(np.isin(y, known))
        if what == "full":
            texts = [train.data[i] for i in rows]
            # Early stopping keeps the best epoch, as the authors do; here it never ends the training.
            settings = {"max_iter": epochs, "early_stopping": True, "n_iter_no_change": epochs}
            encoder = SupConTextEncoder(finetune="full", random_state=0, verbose=1, **settings)
            moved = encoder.fit_transform(texts, y[rows])
            features, features_dev = encoder.transform(texts), encoder.transform(dev.data)
            held = abs(moved - features).max(axis=1) < 1e-5
        else:
            held = np.random.default_rng(0).random(len(rows)) < 0.1
            head = trained_head(embedded(name, "train", data_home).embeddings[rows[~held]], y[rows[~held]], epochs)
            features, features_dev = (head(embedded(name, part, data_home).embeddings) for part in ("train", "dev"))
            features = features[rows]
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, features=features, y=y[rows], held=held, features_dev=features_dev, y_dev=y_dev)
        part.replace(path)
    return dict(np.load(path))


def trained_head(embeddings, labels, epochs):
    """Train a head on all of these texts, without cross-fitting."""
    encoder = SupConTextEncoder(finetune="head", cross_fit=False, max_iter=epochs)
    encoder.finetune_ = "head"
    names, classes = np.unique(labels, return_inverse=True)
    layer = start_projection(embeddings.shape[1], embeddings.shape[1], 0)
    train_projection(FrozenRows(torch.from_numpy(embeddings)), classes, len(names), layer, read_settings(encoder), 0)
    return lambda rows: torch.nn.functional.normalize(layer(torch.from_numpy(rows)), dim=1).detach().numpy()


def compare(case):
    """Figures of the three ways, in percent."""
    X, y, held, X_dev, y_dev = (case[name] for name in ("features", "y", "held", "features_dev", "y_dev"))
    codes = np.unique(y, return_inverse=True)[1]
    fresh = torch.from_numpy(X[held])
    spread = spread_as_fresh(torch.from_numpy(X), codes, ~held, fresh, codes[held], ~held)
    spread = torch.nn.functional.normalize(spread, dim=1).numpy()
    half = np.random.default_rng(0).random(len(y_dev)) < 0.5
    validates, rest = half & np.isin(y_dev, y), ~half
    given = {"X_val": X_dev[validates], "y_val": y_dev[validates]}
    plain, moved = fitted(X, y), fitted(spread, y)
    return {
        "n_held": int(held.sum()),
        "n_val": int(validates.sum()),
        "plain": judged(plain, X_dev, y_dev),
        "spread": judged(moved, X_dev, y_dev),
        "plain, rest": judged(plain, X_dev[rest], y_dev[rest]),
        "spread, rest": judged(moved, X_dev[rest], y_dev[rest]),
        "X_val": judged(fitted(X, y, **given), X_dev[rest], y_dev[rest]),
    }


def fitted(X, y, **given):
    """Fit the default classifier."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicates in X_val
        return EllipsoidOpenSetClassifier(random_state=0).fit(X, y, **given)


def judged(clf, X, y):
    """F1, F1 at the best threshold; shares of known samples rejected, open ones accepted, held-out ones rejected."""
    truth = np.where(np.isin(y, clf.classes_), y, OPEN)
    answers, scores, nearest = clf.predict(X), clf.score_samples(X), clf.predict_known(X)
    f1 = open_set_f1_score(truth, answers, labels=clf.classes_, open_label=OPEN, zero_division=0)
    counts = np.array(coarse_confusion(truth, answers), dtype=float)
    shares = counts / counts.sum(axis=1, keepdims=True)
    found = f1, oracle_f1(truth, nearest, scores, clf.classes_), shares[0, 2], 1 - shares[1, 2]
    return [round(100 * float(share), 1) for share in (*found, (clf.held_out_scores_ < 0).mean())]


def report(found):
    """Print the table, and the means over the cases."""
    ways = ("plain", "spread", "plain, rest", "spread, rest", "X_val")
    rows = []
    for line in found:
        cells = [f"{line[way][0]:.1f} [{line[way][1]:.1f}]" for way in ways]
        rejected = [f"{line[way][2]:.0f} / {line[way][4]:.0f}" for way in ways[:2]]
        rows.append([line["trained"], line["data"], f"{line['ratio']:.0%}", *cells, *rejected])
    for what in ("full", "head"):
        lines = [line for line in found if line["trained"] == what]
        means = [np.mean([line[way][:2] for line in lines], axis=0) for way in ways]
        rows.append([what, "mean", "", *(f"{f1:.1f} [{best:.1f}]" for f1, best in means), "", ""])
    table(["trained", "data", "known", *ways, "rejected / foretold, plain", "the same, spread"], rows)


if __name__ == "__main__":
    main()
