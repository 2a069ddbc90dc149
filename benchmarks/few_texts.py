"""What cross-fitting the head is worth with few texts: 7 intents of 24 texts each of the corpus that ships.

Each draw takes a quarter of the intents as known. Development texts of these are known, those of all other intents are
open.

    python benchmarks/few_texts.py
"""

import numpy as np
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets
from skellipsoid.metrics import open_set_f1_score
from skellipsoid.model_selection import KnownClassSplit

N_DRAWS = 8


def main():
    """Print the means over the draws."""
    train, dev = (datasets.load_assistant_intents(subset=subset) for subset in ("train", "dev"))
    print(f"{'':20}{'known accepted':>15}{'open rejected':>15}{'macro F1':>10}")
    for cross_fit in (False, True):
        found = [measure(train, dev, seed, cross_fit) for seed in range(N_DRAWS)]
        mean = np.mean(found, axis=0)
        print(f"cross_fit={cross_fit!s:10}{mean[0]:15.2f}{mean[1]:15.2f}{mean[2]:10.2f}", flush=True)


def measure(train, dev, seed, cross_fit):
    """Scores of one draw."""
    known = KnownClassSplit(0.25, seed).known_classes(train.target)
    rows = np.isin(train.target, known)
    pipe = Pipeline(
        [
            ("enc", SupConTextEncoder(cross_fit=cross_fit, random_state=seed)),
            ("clf", EllipsoidOpenSetClassifier(random_state=seed)),
        ]
    )
    answers = pipe.fit(train.data[rows], train.target[rows]).predict(dev.data)
    truth = np.where(np.isin(dev.target, known), dev.target, "-1")
    is_open = truth == "-1"
    return (
        np.mean(answers[~is_open] != "-1"),
        np.mean(answers[is_open] == "-1"),
        open_set_f1_score(truth, answers, labels=known, zero_division=0),
    )


if __name__ == "__main__":
    main()
