"""What choosing parameters with and without held-out classes is worth: Banking77, a quarter known, five seeds.

The rows of the training and development parts choose beta and alpha, twice: with ordinary
cross-validation (``StratifiedKFold``, accuracy) and with whole classes left out (``OpenSetKFold``, macro F1). The test
rows are then read once for each choice, for the defaults, and for an oracle that reads all candidates off them. All
classifiers learn from the same training and development rows, in features of the frozen text model.

    python studies/choice.py --data-home ../../../shared/data
"""

import argparse

import numpy as np
from features import SEEDS, embedded, known_classes
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_f1_score, open_set_f1_scorer
from skellipsoid.model_selection import OpenSetKFold

GRID = {"beta": [0.1, 0.5, 2.0], "alpha": [0.6, 2.0]}
N_FOLDS = 3


def main():
    """Print F1 on the test rows by seed, and what each search chose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--ratio", type=float, default=0.25, help="known-class ratio")
    parser.add_argument("--n-jobs", type=int, default=2, help="fits at the same time")
    options = parser.parse_args()
    parts = [embedded("banking", subset, options.data_home) for subset in ("train", "dev", "test")]
    (train, y_train), (dev, y_dev), (test, y_test) = [(normalize(part.embeddings), part.target) for part in parts]
    X, y = np.concatenate([train, dev]), np.concatenate([y_train, y_dev])
    columns = ("defaults", "plain KFold", "OpenSetKFold", "oracle")
    print(f"{'seed':6}" + "".join(f"{name:>14}" for name in columns))
    table = []
    for seed in SEEDS:
        known = known_classes("banking", options.ratio, seed, options.data_home)
        rows = np.isin(y, known)
        truth = np.where(np.isin(y_test, known), y_test, "-1")
        model = EllipsoidOpenSetClassifier(random_state=seed)

        def test_f1(fitted, truth=truth):
            return 100 * open_set_f1_score(truth, fitted.predict(test), labels=fitted.classes_, zero_division=0)

        plain = GridSearchCV(model, GRID, cv=StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed))
        honest = GridSearchCV(
            model, GRID, cv=OpenSetKFold(N_FOLDS, shuffle=True, random_state=seed), scoring=open_set_f1_scorer
        )
        for search in (plain, honest):
            search.set_params(n_jobs=options.n_jobs).fit(X[rows], y[rows])
        candidates = [
            test_f1(clone(model).set_params(**candidate).fit(X[rows], y[rows]))
            for candidate in plain.cv_results_["params"]
        ]
        default = test_f1(clone(model).fit(X[rows], y[rows]))
        table.append([default, test_f1(plain.best_estimator_), test_f1(honest.best_estimator_), max(candidates)])
        print(f"{seed:<6}" + "".join(f"{f1:14.2f}" for f1 in table[-1]), flush=True)
        print(f"      plain KFold {plain.best_params_}; OpenSetKFold {honest.best_params_}", flush=True)
    print("mean  " + "".join(f"{f1:14.2f}" for f1 in np.mean(table, axis=0)))


if __name__ == "__main__":
    main()
