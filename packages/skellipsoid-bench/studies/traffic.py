r"""Calibration of the probabilities of ``predict_open_proba``.

They are first measured on development rows (--subset dev), and finally on test rows. How well the open share is
estimated, and what the boundary for it gains, is measured by ``open_share.py``.

    python studies/features.py --data-home ../../../shared/data
    python studies/traffic.py --data-home ../../../shared/data run --subset dev --seeds 0
    python studies/traffic.py --data-home ../../../shared/data run                 # all 45 cases, test rows
    python studies/traffic.py --data-home ../../../shared/data run --encoder head --seeds 0
    python studies/traffic.py --data-home ../../../shared/data run --encoder full --seeds 0 --data stackoverflow \
        --ratios 0.75
    python studies/traffic.py report > results/traffic.rst
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from features import FETCHERS, RATIOS, SEEDS, embedded, known_classes
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, predict_open_proba

RESULTS = Path(__file__).parents[1] / "results" / "traffic.jsonl"
OPEN = "open"
N_BINS = 15
#: Temperatures of the softmax.
TEMPERATURES = np.geomspace(0.02, 5, 40)


def main():
    """Run the cases that are not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--subset", choices=("dev", "test"), default="test", help="rows to judge")
    parser.add_argument("--encoder", choices=("none", "head", "full"), default="none", help="features")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.what == "report":
        report(found)
        return
    done = {(row["subset"], row["data"], row["ratio"], row["seed"], encoder_of(row)) for row in found}
    for seed, data, ratio in itertools.product(options.seeds, options.data, options.ratios):
        if (options.subset, data, ratio, seed, options.encoder) in done:
            continue
        case = {"subset": options.subset, "data": data, "ratio": ratio, "seed": seed}
        if options.encoder != "none":
            case["encoder"] = options.encoder
        line = json.dumps(case | calibrations(case, options.data_home))
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)


def encoder_of(case):
    """How the text model of a case was tuned."""
    return case.get("encoder", "none")


def tuned_rows(case, data_home):
    """Train an encoder on the known classes: features and labels for the fit, and of the rows to judge."""
    train, judged = (FETCHERS[case["data"]](subset=part, data_home=data_home) for part in ("train", case["subset"]))
    labels = np.asarray(train.target)
    kept = np.flatnonzero(np.isin(labels, known_classes(case["data"], case["ratio"], case["seed"], data_home)))
    encoder = SupConTextEncoder(finetune=encoder_of(case), random_state=case["seed"])
    X = encoder.fit_transform([train.data[i] for i in kept], labels[kept])
    return X, labels[kept], encoder.transform(judged.data), np.asarray(judged.target)


def frozen_rows(case, data_home):
    """Features and labels for the fit, and of the rows to judge."""
    train, judged = (embedded(case["data"], part, data_home) for part in ("train", case["subset"]))
    kept = np.isin(train.target, known_classes(case["data"], case["ratio"], case["seed"], data_home))
    return normalize(train.embeddings[kept]), train.target[kept], normalize(judged.embeddings), judged.target


def calibrations(case, data_home):
    """Calibration of the probabilities for the true share and for a half, and of a softmax."""
    rows_of = frozen_rows if encoder_of(case) == "none" else tuned_rows
    train, labels, X, target = rows_of(case, data_home)
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=case["seed"]).fit(train, labels)
    codes = clf._encode(np.where(np.isin(target, clf.classes_), target, OPEN))
    share = float(np.mean(codes == len(clf.classes_)))
    result = {"share": round(share, 4)}
    for name, given in {"share": share, "half": None}.items():
        result |= calibration(predict_open_proba(clf, X, given), codes, name)
    return result | calibration(softmax_probabilities(train, labels, X, case["seed"]), codes, "softmax")


def softmax_probabilities(train, labels, X, seed):
    """Softmax of a logistic regression with a tuned temperature; what its largest probability leaves is open.

    A fifth of the training rows is held out. The temperature has the highest likelihood on them.
    """
    fitted, tuned, y_fitted, y_tuned = train_test_split(
        train, labels, test_size=0.2, stratify=labels, random_state=seed
    )
    model = LogisticRegression(C=10.0, max_iter=100).fit(fitted, y_fitted)
    logits, codes = model.decision_function(tuned), np.searchsorted(model.classes_, y_tuned)
    likelihoods = [log_softmax(logits / t, axis=1)[np.arange(len(codes)), codes].sum() for t in TEMPERATURES]
    probabilities = softmax(model.decision_function(X) / TEMPERATURES[int(np.argmax(likelihoods))], axis=1)
    best = probabilities.max(axis=1, keepdims=True)
    return np.column_stack([np.where(probabilities == best, best, 0.0), 1 - best])


def calibration(probabilities, codes, name):
    """Give the calibration error of the most probable column and of open, and the Brier score."""
    truth = np.eye(probabilities.shape[1])[codes]
    best, of_open = probabilities.argmax(axis=1), probabilities[:, -1]
    return {
        f"ece_{name}": round(calibration_error(probabilities.max(axis=1), best == codes), 4),
        f"ece_open_{name}": round(calibration_error(of_open, truth[:, -1]), 4),
        f"brier_{name}": round(float(((probabilities - truth) ** 2).sum(axis=1).mean()), 4),
    }


def calibration_error(told, happened):
    """Mean absolute difference between probability and frequency, over bins of probabilities."""
    of_bin = np.minimum((told * N_BINS).astype(int), N_BINS - 1)
    sums = [np.bincount(of_bin, values, minlength=N_BINS) for values in (told, happened)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(told))


def report(found):
    """Print the tables in reStructuredText."""
    features = {"none": "frozen", "head": "trained head", "full": "whole text model tuned"}
    names = {"share": "true", "half": "a half", "softmax": "softmax, tuned temperature"}
    for subset, encoder in itertools.product(("dev", "test"), features):
        rows = [row for row in found if (row["subset"], encoder_of(row)) == (subset, encoder)]
        if not rows:
            continue
        judged = "development" if subset == "dev" else "test"
        print(f"Probabilities, {features[encoder]}, {len(rows)} cases, {judged} rows:\n")
        table = [["open share", "calibration error", "of open alone", "Brier score"]]
        for key, name in names.items():
            values = [np.mean([row[f"{what}_{key}"] for row in rows]) for what in ("ece", "ece_open", "brier")]
            table.append([name, *(f"{value:.3f}" for value in values)])
        print_table(table)


def print_table(rows):
    """Print a table whose first row is the header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    # A first cell that is empty would continue the row above.
    print("\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n")


if __name__ == "__main__":
    main()
