"""Few samples, many features, classes of unlike sizes: whether held-out samples foretell new ones.

Two tables. The first is of generated data, ``--wide``: 40 classes, with means in 40 directions and four directions of
their own each, and 20 open classes. The second, ``--sizes``, is of development rows of the text data in features of
the frozen text model: half of the classes are known, a third of them with 5 training rows, a third with 20, and the
others with 100; and with 20 rows each. ``--memory`` fits 200,000 samples of 512 features and prints the peak of the
process.

    python studies/few_samples.py --wide
    python studies/few_samples.py --sizes --data-home ../../../shared/data
    python studies/few_samples.py --memory
"""

import argparse
import resource
import warnings

import numpy as np
from features import embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_f1_score

N_KNOWN, N_OPEN, N_NEW = 40, 20, 25
#: Features, samples per class, size of the classes' own directions, and whether rows have unit length.
WIDE = [
    (768, 10, 2, False),
    (768, 20, 2, False),
    (768, 30, 2, False),
    (300, 10, 2, False),
    (300, 30, 2, False),
    (100, 10, 2, False),
    (768, 10, 0, False),
    (768, 5, 2, False),
    (768, 8, 2, True),
    (768, 12, 2, True),
]
LEVELS = (0.05, 0.1, 0.2)
SIZES = {"5, 20 and 100": (5, 20, 100), "20 and 100": (20, 100), "20": (20,), "100": (100,)}


def generated(rng, n_features, n_samples, own, on_sphere):
    """Draw training samples, their classes, new known samples and open samples."""

    def unit(*shape):
        return rng.normal(size=shape) / np.sqrt(n_features)

    means = rng.normal(size=(N_KNOWN + N_OPEN, 40)) @ (unit(40, n_features) * 2.2 / np.arange(1, 41)[:, np.newaxis])
    directions = unit(N_KNOWN + N_OPEN, 4, n_features) * own

    def draw(labels, n):
        rows = [means[k] + rng.normal(size=(n, 4)) @ directions[k] + unit(n, n_features) * 4 for k in labels]
        return normalize(np.concatenate(rows)) if on_sphere else np.concatenate(rows)

    known = range(N_KNOWN)
    return (
        draw(known, n_samples),
        np.repeat(np.arange(N_KNOWN), n_samples),
        draw(known, N_NEW),
        draw(range(N_KNOWN, N_KNOWN + N_OPEN), N_NEW),
    )


def wide(seeds):
    """Print held-out against new samples of generated data."""
    print("features  per class  own  sphere  held-out rejected  new rejected  open accepted  p <= 0.05, 0.1, 0.2")
    for case in WIDE:
        found = []
        for seed in range(seeds):
            X, y, new, opened = generated(np.random.default_rng(seed), *case)
            clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
            p_values = clf.known_p_value(new)
            shares = [(clf.held_out_scores_ < 0).mean(), (clf.score_samples(new) < 0).mean()]
            shares += [(clf.score_samples(opened) >= 0).mean(), *((p_values <= level).mean() for level in LEVELS)]
            found.append(shares)
        held, fresh, accepted, *levels = 100 * np.mean(found, axis=0)
        n_features, n_samples, own, on_sphere = case
        shares = f"{held:18.1f} {fresh:13.1f} {accepted:14.1f}  " + ", ".join(f"{level:.1f}" for level in levels)
        print(f"{n_features:8} {n_samples:10} {own:4} {on_sphere!s:>7} {shares}", flush=True)


def by_size(seeds, data_home):
    """Print the rejection of known development rows by the size of their class."""
    print("data          rows per class  F1     known rejected by rows of the class  open accepted")
    for name in ("banking", "oos", "stackoverflow"):
        (train, y), (dev, y_dev) = (
            (normalize(part.embeddings), part.target)
            for part in (embedded(name, subset, data_home) for subset in ("train", "dev"))
        )
        for label, sizes in SIZES.items():
            found = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                known = np.array(known_classes(name, 0.5, seed, data_home))
                wanted = dict(zip(known, np.resize(sizes, len(known)), strict=True))
                rows = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:n] for k, n in wanted.items()])
                clf = EllipsoidOpenSetClassifier(random_state=0).fit(train[rows], y[rows])
                answers, is_known = clf.predict(dev), np.isin(y_dev, known)
                truth = np.where(is_known, y_dev, "-1")
                f1 = open_set_f1_score(truth, answers, labels=clf.classes_, zero_division=0)
                size = np.array([wanted.get(k, 0) for k in y_dev])
                rejected = [np.mean(answers[size == n] == "-1") for n in sizes]
                found.append([f1, *rejected, np.mean(answers[~is_known] != "-1")])
            f1, *rejected, accepted = 100 * np.mean(found, axis=0)
            shown = ", ".join(f"{share:.1f}" for share in rejected)
            print(f"{name:14}{label:16}{f1:.2f}  {shown:36} {accepted:.1f}", flush=True)


def memory():
    """Fit 200,000 samples of 512 features in single precision, and print the peak of the process."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 1000)
    X = rng.normal(size=(200, 512)).astype(np.float32)[y]
    for part in np.array_split(np.arange(len(X)), 20):
        X[part] += rng.normal(size=(len(part), 512)).astype(np.float32)
    EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


def main():
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true", help="generated data")
    parser.add_argument("--sizes", action="store_true", help="text data with classes of unlike sizes")
    parser.add_argument("--memory", action="store_true", help="the peak of one large fit")
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--seeds", type=int, default=3, help="number of draws")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".* different samples")
    if options.wide:
        wide(options.seeds)
    if options.sizes:
        by_size(options.seeds, options.data_home)
    if options.memory:
        memory()


if __name__ == "__main__":
    main()
