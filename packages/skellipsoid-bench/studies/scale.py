"""How time and memory of a fit grow with samples, classes and features, and what holding out fewer samples costs.

``growth``: each size in a new process with one thread: CPU seconds of a fit, peak memory beyond the data, and samples
per second of predict. The largest are 1 million samples of 1,000 classes, and 10,000 classes of 5 samples.
``held_out``: macro F1 with as many held-out samples as the package takes of 100,000, and with all of them.

    python studies/scale.py growth > results/growth.jsonl      # 20 to 40 minutes, 9 GiB
    python studies/scale.py held_out > results/scale.rst
    python studies/charts.py                                   # the picture
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from runtime import table

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.math import closed_form
from skellipsoid.metrics import open_set_f1_score

#: Samples, classes and features of each fit, by what grows.
SIZES = {
    "samples": [(n, 100, 384) for n in (2_000, 8_000, 32_000, 128_000)] + [(1_000_000, 1_000, 384)],
    "classes": [(5 * k, k, 384) for k in (20, 100, 500, 2_500, 10_000)],
    "features": [(4_000, 40, d) for d in (64, 256, 1_024, 4_096)],
}
N_PREDICTED = 20_000


def main():
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("growth", "held_out", "one"))
    parser.add_argument("size", nargs="*", type=int, help="of one: samples, classes, features")
    options = parser.parse_args()
    if options.part == "one":
        print(json.dumps(one(*options.size)))
    elif options.part == "held_out":
        held_out()
    else:
        for what, sizes in SIZES.items():
            for size in sizes:
                command = [sys.executable, __file__, "one", *map(str, size)]
                environment = os.environ | {"OMP_NUM_THREADS": "1"}
                output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                print(json.dumps({"grows": what, **json.loads(output)}), flush=True)


def gaussians(n_samples, n_classes, n_features, seed=0, *, distance=0.6):
    """Round classes whose means are ``distance`` from each other in each feature, about."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    X += (distance * rng.standard_normal((n_classes, n_features), dtype=np.float32))[y]
    return X, y


def one(n_samples, n_classes, n_features):
    """Fit once."""
    EllipsoidOpenSetClassifier(random_state=0).fit(*gaussians(200, 5, 8))
    X, y = gaussians(n_samples, n_classes, n_features)
    before = peak()
    start = time.process_time()
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    fitted = time.process_time()
    found = {"samples": n_samples, "classes": n_classes, "features": n_features, "seconds": round(fitted - start, 3)}
    found |= {"gib": round(peak() - before, 3), "data_gib": round(X.nbytes / 2**30, 3)}
    new = X[:N_PREDICTED]
    start = time.process_time()
    classifier.predict(new)
    return found | {"predicted_per_second": round(len(new) / (time.process_time() - start))}


def peak():
    """Largest memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def held_out(n_known=150, n_open=50, n_samples=100_000, n_features=64):
    """F1 on new samples, a quarter of which are of classes that were not in training."""
    most, rows = closed_form.MOST_HELD_OUT, []
    for distance in (0.5, 0.7, 0.9):
        f1, seconds = [], []
        for seed in range(3):
            n_all = n_samples * (n_known + n_open) // n_known
            X, y = gaussians(2 * n_all, n_known + n_open, n_features, seed, distance=distance)
            trains = (np.arange(len(X)) < n_all) & (y < n_known)
            new = np.arange(len(X)) >= n_all
            truth = np.where(y[new] < n_known, y[new], -1)
            for number in (most, 10**9):
                closed_form.MOST_HELD_OUT = number
                start = time.process_time()
                classifier = EllipsoidOpenSetClassifier(random_state=seed).fit(X[trains], y[trains])
                seconds.append(time.process_time() - start)
                f1.append(100 * open_set_f1_score(truth, classifier.predict(X[new])))
        some, every = np.reshape(f1, (-1, 2)).T
        ratio = np.median(np.divide(*np.reshape(seconds, (-1, 2)).T[::-1]))
        change = some - every
        cells = [f"{some.mean():.2f}", f"{every.mean():.2f}", f"{change.mean():+.2f} ± {np.ptp(change) / 2:.2f}"]
        rows.append([f"{distance}", *cells, f"{ratio:.1f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    closed_form.MOST_HELD_OUT = most
    table(
        f"{n_samples:,} samples of {n_known} classes, {n_features} features; three draws",
        ["Distance of the means", f"F1, {most:,} held out", "F1, all held out", "Change", "Time, all to some"],
        rows,
    )


if __name__ == "__main__":
    main()
