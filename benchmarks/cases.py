"""The 45 cases of the literature's protocol: three data sets, three known-class ratios, five seeds, beside the paper.

Every setting learns from the training rows of the known classes; the test rows are read once for each. Results are
appended to a file of JSON lines as they come, so that a run that was ended goes on where it was.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/cases.py --data-home ../shared/data                        # the default, about half an hour
    python benchmarks/cases.py --data-home ../shared/data --settings paper size  # full matrices, about an hour
    python benchmarks/cases.py --data-home ../shared/data --modes full --data stackoverflow  # about three hours
    python benchmarks/report.py
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
from features import FETCHERS, MODEL, MODES, RATIOS, SEEDS, case_features

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_accuracy, open_set_auroc, open_set_f1_score

RESULTS = Path(__file__).parent / "results" / "cases.jsonl"
LETTER = {"init": "identity", "early_stopping": False, "max_iter": 10, "duplicates": "off"}
SETTINGS = {
    "paper": {**LETTER, "recalibrate": False, "rescale": False},
    "size": {**LETTER, "recalibrate": True},
    "default": {},
}


def main():
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_case_options(parser)
    parser.add_argument("--settings", nargs="+", default=["default"], choices=list(SETTINGS))
    options = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    done = {key(row) for row in read_results()}
    for case in wanted_cases(options):
        todo = [setting for setting in options.settings if key({**case, "setting": setting}) not in done]
        if todo:
            run_case(case, todo, options)


def add_case_options(parser):
    """Add the options that say which cases to run."""
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--model", default=MODEL, help="name or folder of a text model")
    parser.add_argument("--modes", nargs="+", default=["frozen", "head"], choices=MODES)
    parser.add_argument("--data", nargs="+", default=list(FETCHERS), choices=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=RATIOS, choices=RATIOS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))


def wanted_cases(options):
    """Give the cases that the options ask for."""
    model = Path(options.model).name
    for seed, name, ratio, mode in product(options.seeds, options.data, options.ratios, options.modes):
        yield {"model": model, "mode": mode, "data": name, "ratio": ratio, "seed": seed}


def run_case(case, settings, options):
    """Fit each setting on one case, and append its results."""
    train, target, test, truth = case_features(case, options.data_home, options.model)
    for setting in settings:
        classifier = EllipsoidOpenSetClassifier(random_state=case["seed"], **SETTINGS[setting])
        classifier.fit(train, target)
        found = judge(classifier, test, truth)
        weights = [classifier.spherical_share_, classifier.between_share_, classifier.shrinkage_]
        line = {**case, "setting": setting, **found, "epochs": classifier.n_iter_, "weights": weights}
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(
            {name: round(value, 2) if isinstance(value, float) else value for name, value in line.items()}, flush=True
        )


def judge(classifier, features, truth):
    """F1 and accuracy as fitted, and at the best offset that the test rows have (the oracle), in percent."""
    scores, nearest = classifier.score_samples(features), classifier.predict_known(features)
    labels = classifier.classes_
    f1, accuracy = judge_at(0, scores, nearest, truth, labels)
    oracle_f1, oracle_accuracy = oracle(scores, nearest, truth, labels)
    return {
        "f1": f1,
        "accuracy": accuracy,
        "oracle_f1": max(f1, oracle_f1),
        "oracle_accuracy": max(accuracy, oracle_accuracy),
        "auroc": 100 * open_set_auroc(truth, scores, labels=labels),
    }


def judge_at(offset, scores, nearest, truth, labels):
    """F1 and accuracy where rows with a lower score are open, in percent."""
    answers = np.where(scores >= offset, nearest.astype(object), "-1").astype(str)
    f1 = open_set_f1_score(truth, answers, labels=labels, zero_division=0)
    return 100 * f1, 100 * open_set_accuracy(truth, answers, labels=labels)


def oracle(scores, nearest, truth, labels):
    """Best F1 and best accuracy of 99 offsets."""
    offsets = np.quantile(scores, np.linspace(0.01, 0.99, 99))
    return np.max([judge_at(offset, scores, nearest, truth, labels) for offset in offsets], axis=0).tolist()


def key(row):
    """Tell which result this is."""
    return tuple(row[name] for name in ("model", "mode", "data", "ratio", "seed", "setting"))


def read_results():
    """Read all results, the newest of each."""
    if not RESULTS.exists():
        return []
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return list({key(row): row for row in map(json.loads, lines)}.values())


if __name__ == "__main__":
    main()
