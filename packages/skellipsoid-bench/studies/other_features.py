"""Features that are no text, with classes held out as open, 20 seeds.

Pixels of digits, measurements of wines, and the embedding of blood cells that scanpy ships (50 principal components of
the genes that 700 cells read, ten cell types). For each seed a share of the classes is known; half of the rows of the
known classes train, all other rows are the test.

    python studies/other_features.py
    pip install scanpy && python studies/other_features.py --data cells
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_accuracy, open_set_auroc, open_set_f1_score
from skellipsoid.model_selection import KnownClassSplit

SETTINGS = {
    "EliDecide": {"trainer": EliDecide()},
    "EliDecide, our radius scale": {"trainer": EliDecide(recalibrate=True)},
    "default": {},
}
N_SEEDS = 20


def digits():
    """1,797 images of 8 × 8 pixels, ten digits."""
    return load_digits(return_X_y=True)


def wine():
    """178 wines by 13 measurements, three growers."""
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def cells():
    """700 blood cells by 50 principal components, ten types."""
    import scanpy

    found = scanpy.datasets.pbmc68k_reduced()
    return found.obsm["X_pca"], found.obs["bulk_labels"].to_numpy().astype(str)


SETS = {"digits": (digits, (0.25, 0.5, 0.75)), "wine": (wine, (0.67,)), "cells": (cells, (0.25, 0.5, 0.75))}


def main():
    """Print means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["digits", "wine"], choices=list(SETS))
    print(f"{'':20}{'':18}{'F1':>7}{'accuracy':>10}{'AUROC':>7}")
    for name in parser.parse_args().data:
        load, ratios = SETS[name]
        X, y = load()
        for ratio in ratios:
            for setting, parameters in SETTINGS.items():
                found = [measure(X, y, ratio, seed, parameters) for seed in range(N_SEEDS)]
                f1, accuracy, auroc = 100 * np.mean(found, axis=0)
                case = f"{name}, {ratio:.0%} known"
                print(f"{case:20}{setting:18}{f1:7.2f}{accuracy:10.2f}{auroc:7.2f}", flush=True)


def measure(X, y, ratio, seed, parameters):
    """F1, accuracy and AUROC on the test rows of one seed."""
    known = KnownClassSplit(ratio, seed).known_classes(y)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    rows = np.isin(y_train, known)
    classifier = EllipsoidOpenSetClassifier(random_state=seed, **parameters).fit(X_train[rows], y_train[rows])
    answers, labels = classifier.predict(X_test), {"labels": known}
    return (
        open_set_f1_score(y_test, answers, zero_division=0, **labels),
        open_set_accuracy(y_test, answers, **labels),
        open_set_auroc(y_test, classifier.score_samples(X_test), **labels),
    )


if __name__ == "__main__":
    main()
