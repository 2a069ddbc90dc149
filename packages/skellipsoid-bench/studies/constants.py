"""The constants of the default fit, each set to another value: the change of F1 on development rows.

Every line is one constant with one other value. The columns are kinds of data, see ``cases``; known classes are those
of seed 0, all other classes are open. *time* is the ratio of CPU seconds of all fits. The last lines are of the default
fit with its line drawn for the true share of open rows (``set_operating_point``).

    python studies/constants.py --data-home ../../../shared/data > results/constants.rst   # about an hour
"""

import argparse
import time
import warnings

import numpy as np
from duplicates import add_noise, draw_zipf, drop_letter
from features import FETCHERS, embedded, known_classes
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._ellipsoid.math import class_sizes, closed_form, covariance, frames, mixtures, table_maker
from skellipsoid._held_out import table as held_out
from skellipsoid._samples import duplicates, samples
from skellipsoid.metrics import open_set_f1_score

#: Module, name, other values.
CONSTANTS = [
    (closed_form, "MOST_VALIDATION", (1024, 4096)),
    (table_maker, "MOST_OF_SET", (2, 8)),
    (closed_form, "SHARED_SHRINKAGES", ((0.1, 0.5, 0.85, 0.97),)),
    (frames, "SPHERICAL_SHRINKAGES", ((0.1, 0.3, 0.7, 1.0), (0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0))),
    (covariance, "FEWEST_CLASSES_OF_BACKGROUND", (3, 6)),
    (held_out, "F1_STANDARD_ERROR", (0.15, 0.6)),
    (held_out, "FEWEST_OF_CLASS", (5, 20)),
    (held_out, "N_CANDIDATES", (100, 2000)),
    (mixtures, "FEWEST_SYNTHETIC", (64, 1024)),
    (mixtures, "MOST_SYNTHETIC", (2048, 32768)),
    (class_sizes, "HALF_WEIGHT", (3, 30)),
    (class_sizes, "ERRORS", (np.geomspace(0.5, 16, 6), np.geomspace(0.1, 64, 32))),
    (samples, "OUTLYING", (10.0, 40.0)),
    (samples, "OUTLYING_DEVIATIONS", (5.0, 20.0)),
    (samples, "FEWEST_WITH_OWN_MEDIAN", (5, 12)),
    (duplicates, "EVIDENCE", (1e-4, 1e-2)),
    (duplicates, "N_NEIGHBORS", (12, 32)),
    (duplicates, "FEWEST_NEIGHBORS", (5, 12)),
    (duplicates, "CUTS", (duplicates.CUTS[::2], duplicates.CUTS[:9])),
    (duplicates, "MOST_ROWS", (512, 4096)),
]
KINDS = ("text", "few", "unlike", "log", "groups", "table")


def main():
    """Print the table, a line after each constant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--names", nargs="+", help="constants (default: all)")
    options = parser.parse_args()
    data = {kind: list(cases(kind, options.data_home)) for kind in KINDS}
    widths = (30, 29, *[len(kind) + 2 for kind in KINDS], 5)
    rule = "  ".join("=" * width for width in widths)
    print(rule)
    print_row(("Constant", "value", *KINDS, "time"), widths)
    print(rule)
    usual, seconds = scores(data)
    print_row(("(F1 of the values in the code)", "", *(f"{100 * usual[kind]:.2f}" for kind in KINDS), ""), widths)
    for module, name, others in CONSTANTS:
        if options.names and name not in options.names:
            continue
        kept = getattr(module, name)
        for value in others:
            setattr(module, name, value)
            found, taken = scores(data)
            moved = [f"{100 * (found[kind] - usual[kind]):+.2f}" for kind in KINDS]
            print_row((name, f"{shown(value)} for {shown(kept)}", *moved, f"{taken / seconds:.2f}"), widths)
        setattr(module, name, kept)
    print(rule)


def print_row(cells, widths):
    """Print one line of the table."""
    print("  ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)


def shown(value):
    """Name a value: a number, or how many candidates from where to where."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return f"{len(value)}, {min(value):g}–{max(value):g}"


def scores(data):
    """Mean F1 of each kind of data, and the CPU seconds of all fits."""
    found, seconds = {}, 0.0
    for kind, parts in data.items():
        f1 = []
        for X, y, groups, dev, truth in parts:
            start = time.process_time()
            clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y, groups=groups)
            seconds += time.process_time() - start
            f1.append(open_set_f1_score(truth, clf.predict(dev), labels=clf.classes_, zero_division=0))
        found[kind] = float(np.mean(f1))
    return found, seconds


def cases(kind, data_home):
    """Training rows, labels and groups, development rows and answers.

    text: seven cases of the protocol. few: eight rows of each class. unlike: 5, 20 or 100 rows of a class. log: texts
    that repeat, with noise or with a letter left out. groups: authors, whose rows lie near each other. table: digits
    and irises, and digits with outliers.
    """
    if kind == "table":
        yield from tables()
        return
    if kind == "log":
        yield from logs(data_home)
        return
    ratios = {"text": {"banking": (0.25, 0.5, 0.75), "oos": (0.25, 0.5), "stackoverflow": (0.25, 0.75)}}
    chosen = ratios.get(kind, {"banking": (0.5,), "oos": (0.5,), "stackoverflow": (0.5,)})
    for name, some in chosen.items():
        for ratio in some:
            rng = np.random.default_rng(0)
            known = np.array(sorted(known_classes(name, ratio, 0, data_home)))
            train, dev = (embedded(name, subset, data_home) for subset in ("train", "dev"))
            X, y = normalize(train.embeddings), train.target
            if kind in ("text", "groups"):
                rows = np.flatnonzero(np.isin(y, known))
            else:
                sizes = [8] if kind == "few" else (5, 20, 100)
                of_class = [rng.permutation(np.flatnonzero(y == label)) for label in known]
                rows = np.concatenate([own[: sizes[k % len(sizes)]] for k, own in enumerate(of_class)])
            X, y, groups = X[rows], y[rows], None
            if kind == "groups":
                rows = rng.permutation(len(X))[:2000]
                X, y, groups = X[rows], y[rows], rng.integers(100, size=len(rows))
                X = normalize(X + rng.normal(size=(100, X.shape[1]))[groups] * 0.5 / X.shape[1] ** 0.5)
            yield X, y, groups, normalize(dev.embeddings), np.where(np.isin(dev.target, known), dev.target, "-1")


def logs(data_home):
    """Banking77 at 25 %: a log of 3,000 messages with noise, and all texts with a copy that lacks a letter."""
    known, rng = sorted(known_classes("banking", 0.25, 0, data_home)), np.random.default_rng(0)
    train = FETCHERS["banking"](subset="train", data_home=data_home)
    labels, dev = np.asarray(train.target), embedded("banking", "dev", data_home)
    kept = np.flatnonzero(np.isin(labels, known))
    texts, labels = np.array(train.data, dtype=object)[kept], labels[kept]
    drawn = draw_zipf(len(texts), 3000, rng)
    noisy = [add_noise(texts[i], rng) for i in drawn]
    copied = [*texts, *(drop_letter(text, rng) for text in texts)]
    encoder = SupConTextEncoder(finetune="none", random_state=0)
    for made, of in ((noisy, labels[drawn]), (copied, np.tile(labels, 2))):
        truth = np.where(np.isin(dev.target, known), dev.target, "-1")
        yield encoder.fit(made).transform(made), of, None, normalize(dev.embeddings), truth


def tables():
    """Digits and irises, half of them for the judgement; digits with one wild row in a hundred."""
    for load, n_known, wild in ((load_digits, 6, 0.0), (load_iris, 2, 0.0), (load_digits, 6, 0.01)):
        X, y = load(return_X_y=True)
        rng = np.random.default_rng(0)
        is_dev = rng.random(len(X)) < 0.5
        rows = np.flatnonzero(~is_dev & (y < n_known))
        train = X[rows].copy()
        is_wild = rng.random(len(rows)) < wild
        train[is_wild] = rng.normal(size=(int(is_wild.sum()), X.shape[1])) * 40 * X.std()
        yield train, y[rows], None, X[is_dev], np.where(y[is_dev] < n_known, y[is_dev], -1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
