"""One case of the literature's protocol from raw text to figures: all three ways to tune the encoder.

A quarter of the intents (drawn by the seed) is known, all others are open; training rows are those of the known
intents, test rows are all. Nothing is chosen here: every parameter is the package's default, or the paper's where it
says "paper's boundary" (identity start, no size rule, no rescaling).

    python benchmarks/one_case.py --data-home ../shared/data
    python benchmarks/one_case.py --data-home ../shared/data --modes full        # about 10 minutes on two cores
    python benchmarks/one_case.py --data-home ../shared/data --modes full --data stackoverflow
"""

import argparse
import time

import numpy as np
from features import FETCHERS

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, metrics
from skellipsoid.model_selection import KnownClassSplit

MODES = {"frozen": "none", "head": "head", "full": "full"}
PAPER = {"init": "identity", "recalibrate": False, "rescale": False}
BOUNDARIES = {"default": {}, "paper's boundary": PAPER}


def main():
    """Fit and print one line per mode and boundary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", default="banking", choices=list(FETCHERS))
    parser.add_argument("--ratio", type=float, default=0.25, help="known-class ratio")
    parser.add_argument("--seed", type=int, default=0, help="seed of the known classes and of the training")
    parser.add_argument("--modes", nargs="+", default=["frozen", "head"], choices=list(MODES))
    options = parser.parse_args()

    train = FETCHERS[options.data](subset="train", data_home=options.data_home)
    test = FETCHERS[options.data](subset="test", data_home=options.data_home)
    known = KnownClassSplit(options.ratio, options.seed).known_classes(train.target)
    rows = np.isin(train.target, known)
    truth = np.where(np.isin(test.target, known), test.target, "-1")
    print(f"{options.data}, ratio {options.ratio}, seed {options.seed}: {rows.sum()} training, {len(truth)} test rows")
    print(f"{'mode':8}{'boundary':18}{'F1':>7}{'known':>7}{'open':>7}{'acc':>7}{'fit':>8}")
    for mode in options.modes:
        encoder = SupConTextEncoder(finetune=MODES[mode], random_state=options.seed)
        start = time.perf_counter()
        features = encoder.fit_transform(train.data[rows], train.target[rows])
        encoded = time.perf_counter() - start
        test_features = encoder.transform(test.data)
        for boundary, parameters in BOUNDARIES.items():
            classifier = EllipsoidOpenSetClassifier(random_state=options.seed, **parameters)
            start = time.perf_counter()
            classifier.fit(features, train.target[rows])
            seconds = encoded + time.perf_counter() - start
            scores = judge(truth, classifier.predict(test_features), known)
            print(
                f"{mode:8}{boundary:18}" + "".join(f"{100 * score:7.2f}" for score in scores) + f"{seconds:6.0f} s",
                flush=True,
            )


def judge(truth, predicted, known):
    """K+1 F1, F1-known, F1-open and accuracy."""
    labels = {"labels": known, "zero_division": 0}
    return (
        metrics.open_set_f1_score(truth, predicted, **labels),
        metrics.known_f1_score(truth, predicted, **labels),
        metrics.open_f1_score(truth, predicted, **labels),
        metrics.open_set_accuracy(truth, predicted, labels=known),
    )


if __name__ == "__main__":
    main()
