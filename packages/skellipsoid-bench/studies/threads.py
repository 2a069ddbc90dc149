"""Seconds of fits and answers alone and beside busy processes, with all threads and with one.

python packages/skellipsoid-bench/studies/threads.py [--busy 0 1 2 4] [--repeats 5]
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from skellipsoid import EllipsoidOpenSetClassifier

#: Samples, features, classes.
SIZES = [(200, 16, 10), (500, 384, 10), (2000, 40, 10), (2000, 384, 20), (11_250, 384, 112)]
BUSY = "while True: pass"


def seconds_of(n_samples, n_features, n_classes, repeats):
    """Median seconds of a fit, and of the answers to 10,000 samples."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % n_classes
    X = rng.normal(size=(n_classes, n_features))[y] + 0.6 * rng.normal(size=(n_samples, n_features))
    new = np.resize(X, (10_000, n_features)).astype(np.float32)
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
        fitted = time.perf_counter()
        classifier.predict(new)
        times.append((fitted - start, time.perf_counter() - fitted))
    return [statistics.median(column) for column in zip(*times[1:], strict=True)]


def main():
    """Measure, or start the processes that do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--size", type=int, nargs=3)
    options = parser.parse_args()
    if options.size:
        print(*seconds_of(*options.size, options.repeats))
        return
    print("samples  features  classes  busy  fit: all, one  ratio  predict: all, one  ratio")
    for n_busy in options.busy:
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n_busy)]
        try:
            for size in SIZES:
                command = [sys.executable, __file__, "--repeats", str(options.repeats), "--size", *map(str, size)]
                found = []
                for one in ({}, {"OMP_NUM_THREADS": "1"}):
                    done = subprocess.run(command, env=os.environ | one, check=True, capture_output=True, text=True)
                    found.append([float(value) for value in done.stdout.split()])
                (fit, predict), (fit_by_one, predict_by_one) = found
                sizes = "{:7} {:9} {:8} {:5}".format(*size, n_busy)
                print(f"{sizes} {fit:9.2f} {fit_by_one:5.2f} {fit / fit_by_one:6.2f}", end="")
                print(f" {predict:12.3f} {predict_by_one:5.3f} {predict / predict_by_one:6.2f}", flush=True)
        finally:
            for other in others:
                other.kill()
                other.wait()


if __name__ == "__main__":
    main()
