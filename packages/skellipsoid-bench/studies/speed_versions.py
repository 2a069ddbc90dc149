"""CPU seconds of this checkout beside another one, in turns, each time in a new process.

python studies/speed_versions.py versions --other FOLDER > results/speed.rst    # fits, predictions, learning
python studies/speed_versions.py start --other FOLDER    # a new process to its first prediction
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from speed import class_like_features, save_text_model

from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label, learn_from_traffic

REPEATS = 5

#: Samples, classes and features of the fits of two versions.
OF_VERSIONS = ((500, 10, 384), (2000, 20, 384), (11250, 112, 384), (16000, 50, 384))
N_PREDICTED = 20_000
#: Of this fit, single samples are predicted, too.
ONE_OF = (11250, 112, 384)
#: Training samples, messages of a log, and known classes, of which ``learn_from_traffic`` learns.
OF_LEARNING = (2500, 2000, 30)


def main():
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("versions", "start", "once"), help="once: this checkout alone")
    parser.add_argument("--other", type=Path, help="another checkout of this package")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    if options.part == "once":
        once()
    elif options.part == "start":
        start(options.other)
    else:
        versions(options.other, options.repeats)


def versions(other, repeats):
    """Fit with the defaults and predict, by this checkout and another one, in turns, each time in a new process."""
    from line_tables import print_table  # it needs this version, and ``once`` also runs with another one

    seconds, folders = {}, (Path(other), Path(__file__).parents[3])
    for _ in range(repeats):
        for folder in folders:
            environment = os.environ | {"PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": "1"}
            command = [sys.executable, __file__, "once"]
            output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            for what, value in json.loads(output.splitlines()[-1]).items():
                seconds.setdefault(what, []).append(value)
    named = ["git", "rev-parse", "--short", "HEAD"]
    commits = [subprocess.run(named, cwd=each, capture_output=True, text=True).stdout.strip() for each in folders]
    lines = [["", *(f"{commit}, s" for commit in commits), "ratio"]]
    for what, values in seconds.items():
        before, now = values[::2], values[1::2]
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        lines.append([what, f"{statistics.median(before):.4g}", f"{statistics.median(now):.4g}", f"{ratio:.2f}"])
    print(f"CPU seconds on one core, medians of {repeats} turns; predict of {N_PREDICTED:,} samples.\n")
    print_table(lines)


def once():
    """Print the CPU seconds of each work, which other processes hardly change, after one to warm up."""
    found = {}
    EllipsoidOpenSetClassifier(random_state=0).fit(*class_like_features(5, 16, 100))
    for n_samples, n_classes, n_features in OF_VERSIONS:
        X, y = class_like_features(n_classes, n_features, n_samples)
        name = f"{n_samples:,} × {n_features}, {n_classes} classes"
        start = time.process_time()
        classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
        fitted = time.process_time()
        predicted = np.resize(X, (N_PREDICTED, n_features))
        classifier.predict(predicted[:1])
        begun = time.process_time()
        classifier.predict(predicted)
        found |= {f"fit {name}": fitted - start, f"predict {name}": time.process_time() - begun}
        if (n_samples, n_classes, n_features) == ONE_OF:
            found[f"predict one sample, {n_classes} classes"] = seconds_of_one(classifier, predicted)
    n_training, n_messages, n_classes = OF_LEARNING
    found[f"learn from {n_messages:,}, training {n_training:,} × 384, {n_classes} classes"] = seconds_of_learning()
    print(json.dumps(found))


def seconds_of_one(classifier, rows, repeats=300):
    """CPU seconds of a prediction of one sample, their median."""
    seconds = []
    for row in rows[:repeats]:
        begun = time.process_time()
        classifier.predict(row[np.newaxis])
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def seconds_of_learning():
    """CPU seconds of learning 30 labels from a log of messages, some of classes that were not in training."""
    n_training, n_messages, n_classes = OF_LEARNING
    X, y = class_like_features(n_classes + 10, 384, n_training + n_messages)
    y = np.where(y < n_classes, y, -1)
    trains = (np.arange(len(y)) < n_training) & (y >= 0)
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X[trains], y[trains])
    log, labels = X[n_training:], np.full(n_messages, None, dtype=object)
    chosen = choose_to_label(classifier, log, 30)
    labels[chosen.rows] = y[n_training:][chosen.rows]
    weights = np.ones(n_messages)
    weights[chosen.rows] = chosen.weights
    begun = time.process_time()
    learn_from_traffic(classifier, log, labels, sample_weight=weights)
    return time.process_time() - begun


def start(other, repeats=10):
    """Time new processes until their first answer, of another checkout and this one, in turns."""
    load_and_answer = (
        "import sys, time, skellipsoid\n"
        "skellipsoid.load(sys.argv[1]).predict(['where is my parcel'])\n"
        "print(time.process_time(), flush=True)"
    )
    with tempfile.TemporaryDirectory() as parent:
        save_text_model(parent + "/model")
        Path(parent, "query").write_text("where is my parcel\n")
        works = {
            "load, one answer": ["-c", load_and_answer, parent + "/model"],
            "skellipsoid predict": ["-m", "skellipsoid", "predict", "--model", parent + "/model"],
            "skellipsoid --help": ["-m", "skellipsoid", "--help"],
        }
        folders = {"other": Path(other), "this": Path(__file__).parents[3]}
        found = {(what, name): [] for what in works for name in folders}
        for repeat in range(repeats + 1):  # the first one compiles and fills the system's cache
            for (what, name), seconds in found.items():
                environment = os.environ | {"PYTHONPATH": str(folders[name].resolve())}
                command, begin = [sys.executable, *works[what]], time.perf_counter()
                with (
                    Path(parent, "query").open() as query,
                    subprocess.Popen(
                        # From a folder without a package of this name: Python looks there first.
                        command,
                        cwd=parent,
                        env=environment,
                        stdin=query,
                        stdout=subprocess.PIPE,
                    ) as process,
                ):
                    answer = process.stdout.readline()
                    wall = time.perf_counter() - begin
                    process.stdout.read()
                if process.wait():
                    raise subprocess.CalledProcessError(process.returncode, command)
                if repeat:
                    seconds.append((wall, float(answer) if what == "load, one answer" else np.nan))
    for (what, name), seconds in found.items():
        wall, cpu = (statistics.median(column) for column in zip(*seconds, strict=True))
        print(f"  {what:20} {name:6} {wall:6.2f} s, {cpu:5.2f} s of CPU, medians of {repeats}")


if __name__ == "__main__":
    main()
