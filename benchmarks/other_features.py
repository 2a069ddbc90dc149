"""Features that are no text: pixels of digits and measurements of wines, with classes held out as open, 20 seeds.

For each seed a share of the classes is known; half of the rows of the known classes train, all other rows are the test.

    python benchmarks/other_features.py
"""

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_accuracy, open_set_auroc, open_set_f1_score
from skellipsoid.model_selection import KnownClassSplit

LETTER = {"init": "identity", "early_stopping": False, "max_iter": 20}
SETTINGS = {
    "paper": {**LETTER, "recalibrate": False, "rescale": False},
    "size rule alone": LETTER,
    "default": {},
}
N_SEEDS = 20


def main():
    """Print means over seeds."""
    digits, wine = load_digits(), load_wine()
    sets = {
        "digits, 25 % known": (digits.data, digits.target, 0.25),
        "digits, 50 % known": (digits.data, digits.target, 0.5),
        "digits, 75 % known": (digits.data, digits.target, 0.75),
        "wine, 67 % known": (scale(wine.data), wine.target, 0.67),
    }
    print(f"{'':20}{'':18}{'F1':>7}{'accuracy':>10}{'AUROC':>7}")
    for name, (X, y, ratio) in sets.items():
        for setting, parameters in SETTINGS.items():
            found = [measure(X, y, ratio, seed, parameters) for seed in range(N_SEEDS)]
            f1, accuracy, auroc = 100 * np.mean(found, axis=0)
            print(f"{name:20}{setting:18}{f1:7.2f}{accuracy:10.2f}{auroc:7.2f}", flush=True)


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
