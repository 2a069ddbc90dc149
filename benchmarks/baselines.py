"""Other scores on the same features, each at the threshold that is best on the test rows, which no user can know.

All learn from the training rows of the known classes. Results are appended to a file of JSON lines, so that a run that
was ended goes on where it was.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/baselines.py --data-home ../shared/data     # 90 cases, about two hours on one core
    python benchmarks/report.py
"""

import argparse
import json
from pathlib import Path

import numpy as np
from cases import add_case_options, oracle, wanted_cases
from features import case_features
from scipy.special import logsumexp, softmax
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor, NearestCentroid

from skellipsoid.metrics import open_set_auroc

RESULTS = Path(__file__).parent / "results" / "baselines.jsonl"


def main():
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_case_options(parser)
    options = parser.parse_args()
    done = {case_key(row) for row in read_results()}
    for case in wanted_cases(options):
        if case_key(case) in done:
            continue
        train, target, test, truth = case_features(case, options.data_home, options.model)
        classes, codes = np.unique(target, return_inverse=True)
        for method, (scores, nearest) in all_scores(train, codes, test).items():
            f1, accuracy = oracle(scores, classes[nearest], truth, classes)
            auroc = 100 * open_set_auroc(truth, scores, labels=classes)
            line = {**case, "method": method, "oracle_f1": f1, "oracle_accuracy": accuracy, "auroc": auroc}
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        print(case, flush=True)


def all_scores(train, codes, test):
    """Score, higher for known, and class of each test row, by method."""
    n_classes = codes.max() + 1
    found = {}
    # The radius of each class is the distance that 95 % of its rows do not exceed.
    centroids = np.array([train[codes == k].mean(axis=0) for k in range(n_classes)])
    nearest = NearestCentroid().fit(train, codes).predict(test)
    own = np.linalg.norm(train - centroids[codes], axis=1)
    radii = np.array([np.quantile(own[codes == k], 0.95) for k in range(n_classes)])
    found["ball"] = -np.linalg.norm(test - centroids[nearest], axis=1) / radii[nearest], nearest
    neighbors = KNeighborsClassifier(5).fit(train, codes)
    found["k nearest neighbours"] = -neighbors.kneighbors(test)[0][:, -1], neighbors.predict(test)
    outlier = np.empty(len(test))
    for k in np.unique(nearest):
        rows = train[codes == k]
        factor = LocalOutlierFactor(min(20, len(rows) - 1), novelty=True).fit(rows)
        outlier[nearest == k] = factor.score_samples(test[nearest == k])
    found["local outlier factor"] = outlier, nearest
    within, everything = LedoitWolf().fit(train - centroids[codes]), LedoitWolf().fit(train)
    root = np.linalg.cholesky(within.precision_)
    squares = np.square(np.linalg.norm((test @ root)[:, np.newaxis] - centroids @ root, axis=2))
    found["Mahalanobis"] = -squares.min(axis=1), squares.argmin(axis=1)
    relative = squares - everything.mahalanobis(test)[:, np.newaxis]
    found["relative Mahalanobis"] = -relative.min(axis=1), relative.argmin(axis=1)
    regression = LogisticRegression(C=10, max_iter=1000).fit(train, codes)
    logits = regression.decision_function(test)
    if logits.ndim == 1:
        logits = np.stack([-logits, logits], axis=1)
    label = logits.argmax(axis=1)
    found["softmax"] = softmax(logits, axis=1).max(axis=1), label
    found["largest logit"] = logits.max(axis=1), label
    found["energy"] = logsumexp(logits, axis=1), label
    return found


def case_key(row):
    """Tell which case this is."""
    return tuple(row[name] for name in ("model", "mode", "data", "ratio", "seed"))


def read_results():
    """Read all results."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
