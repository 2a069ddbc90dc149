r"""What unlabelled traffic tells: how much of it is open, where to draw the line, how probable each answer is.

Shares and their intervals are measured on development rows. Streams of 1,000 messages are drawn, with repetition, from
the development rows of the known classes, and from training and development rows of the hidden classes. In moved
streams the known part is not drawn as the training rows were, so that the share should not be told.

The line and the probabilities are first measured on development rows (--subset dev), and finally on test rows.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/traffic.py --data-home ../shared/data shares               # nine cases
    python benchmarks/traffic.py --data-home ../shared/data line --subset dev --seeds 0
    python benchmarks/traffic.py --data-home ../shared/data line                 # all 45 cases, test rows
    python benchmarks/traffic.py --data-home ../shared/data line --encoder head --seeds 0
    python benchmarks/traffic.py --data-home ../shared/data line --encoder full --seeds 0 --data stackoverflow \
        --ratios 0.75
    python benchmarks/traffic.py report > benchmarks/results/traffic.rst
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path

import numpy as np
from features import FETCHERS, RATIOS, SEEDS, embedded, known_classes
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, predict_open_proba, set_operating_point
from skellipsoid._traffic._held import HeldOutScores
from skellipsoid._traffic._share import open_share_of, score
from skellipsoid.metrics import open_set_f1_score

RESULTS = Path(__file__).parent / "results" / "traffic.jsonl"
OPEN = "open"
N_SAMPLES = 1000
SHARES = (0.0, 0.05, 0.2, 0.5, 0.8)
N_BINS = 15
#: Temperatures of the softmax.
TEMPERATURES = np.geomspace(0.02, 5, 40)


def main():
    """Run the cases that are not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("shares", "line", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seeds", nargs="+", type=int, default=None, help="default: 0 for shares, 0 to 4 for line")
    parser.add_argument("--subset", choices=("dev", "test"), default="test", help="rows of the line's table")
    parser.add_argument(
        "--encoder", choices=("none", "head", "full"), default="none", help="features of the line's table"
    )
    parser.add_argument("--draws", type=int, default=20, help="streams of each share")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # shares that cannot be known
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.what == "report":
        report(found)
        return
    subset = "dev" if options.what == "shares" else options.subset
    seeds = options.seeds or ([0] if options.what == "shares" else SEEDS)
    done = {(row["what"], row["subset"], row["data"], row["ratio"], row["seed"], encoder_of(row)) for row in found}
    for seed, data, ratio in itertools.product(seeds, options.data, options.ratios):
        if (options.what, subset, data, ratio, seed, options.encoder) in done:
            continue
        case = {"what": options.what, "subset": subset, "data": data, "ratio": ratio, "seed": seed}
        if options.encoder != "none":
            case["encoder"] = options.encoder
        result = shares(case, options) if options.what == "shares" else line(case, options)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(case | result) + "\n")
        print(json.dumps(case | {name: value for name, value in result.items() if name != "streams"}), flush=True)


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


def fit(case, data_home):
    """Fit on the training rows of the known classes.

    Returns
    -------
    classifier : EllipsoidOpenSetClassifier
    known, hidden : ndarray of shape (n_rows, n_features)
        Training rows of known and of hidden classes.
    target : ndarray of shape (n_known,)
    """
    classes = known_classes(case["data"], case["ratio"], case["seed"], data_home)
    rows = embedded(case["data"], "train", data_home)
    X, is_known = normalize(rows.embeddings), np.isin(rows.target, classes)
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=case["seed"])
    return clf.fit(X[is_known], rows.target[is_known]), X[is_known], X[~is_known], rows.target[is_known]


def shares(case, options):
    """Estimate the share of streams, of known rows as they are and as they are moved."""
    clf, train, hidden, _ = fit(case, options.data_home)
    dev = embedded(case["data"], "dev", options.data_home)
    X, is_known = normalize(dev.embeddings), np.isin(dev.target, clf.classes_)
    held, n_classes = HeldOutScores.of(clf, "traffic.py"), len(clf.classes_)
    opened = score(clf, np.concatenate([X[~is_known], hidden]))
    rng = np.random.default_rng(case["seed"])
    streams = []
    for name, known in moved(clf, X[is_known], train, rng).items():
        parts = score(clf, known), opened
        for share, _ in itertools.product(SHARES, range(options.draws if name == "as is" else options.draws // 4)):
            n_open = round(share * N_SAMPLES)
            drawn = [rng.integers(len(p[0]), size=n) for p, n in zip(parts, (N_SAMPLES - n_open, n_open), strict=True)]
            scores, assigned = (
                np.concatenate([part[i][rows] for part, rows in zip(parts, drawn, strict=True)]) for i in range(2)
            )
            told = open_share_of(held, scores, assigned, n_classes)
            numbers = [None if told.reason else round(told[key], 4) for key in ("share", "low", "high")]
            streams.append([name, share, *numbers])
    return {"streams": streams}


def moved(clf, X, train, rng):
    """Known rows as they are, and moved: with noise, with one shift, training rows, towards the class means."""
    noise, shift = normalize(rng.normal(size=X.shape)), normalize(rng.normal(size=(1, X.shape[1])))
    means = clf.centroids_[clf._encode(clf.predict_known(X))]
    return {
        "as is": X,
        "noise 0.2": normalize(X + 0.2 * noise),
        "noise 0.4": normalize(X + 0.4 * noise),
        "shift 0.2": normalize(X + 0.2 * shift),
        "shift 0.5": normalize(X + 0.5 * shift),
        "training rows": train[rng.permutation(len(train))[: len(X)]],
        "towards means": normalize(0.7 * X + 0.3 * means),
    }


def line(case, options):
    """F1 of the fitted line, of the lines for the share, and of the best one; calibration of the probabilities."""
    if encoder_of(case) == "none":
        clf, train, _, labels = fit(case, options.data_home)
        rows = embedded(case["data"], case["subset"], options.data_home)
        X, target = normalize(rows.embeddings), rows.target
    else:
        train, labels, X, target = tuned_rows(case, options.data_home)
        clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=case["seed"]).fit(train, labels)
    truth = np.where(np.isin(target, clf.classes_), target, OPEN)
    held, (scores, assigned) = HeldOutScores.of(clf, "traffic.py"), score(clf, X)
    share, told = float(np.mean(truth == OPEN)), open_share_of(held, scores, assigned, len(clf.classes_))
    # Lines first: these are the package's own calls.
    lines = {"fitted": 0.0, "traffic": float(set_operating_point(clf, X).offset_)}
    lines["share"] = float(set_operating_point(clf, open_share=share).offset_)
    set_operating_point(clf)
    nearest = clf.classes_[assigned]

    def f1(offset):
        answers = np.where(scores < offset, OPEN, nearest)
        return 100 * open_set_f1_score(truth, answers, labels=clf.classes_, open_label=OPEN, zero_division=0)

    result = {f"f1_{name}": round(f1(offset), 2) for name, offset in lines.items()}
    candidates = np.unique(
        [*np.quantile(scores, np.linspace(0, 1, 201), method="closest_observation"), *lines.values()]
    )
    result |= {"f1_oracle": round(max(map(f1, candidates)), 2), "share": round(share, 4), "reason": told.reason}
    result |= {key: None if told.reason else round(told[key], 4) for key in ("low", "high")}
    codes = clf._encode(truth)
    for name, given in {"share": share, "auto": "auto", "half": None}.items():
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
    streams = [stream for row in found if row["what"] == "shares" for stream in row["streams"]]
    print_shares(streams)
    for subset, encoder in itertools.product(("dev", "test"), ("none", "head", "full")):
        wanted = "line", subset, encoder
        rows = [row for row in found if (row["what"], row["subset"], encoder_of(row)) == wanted]
        if rows:
            print_lines(rows, subset, encoder)


def print_shares(streams):
    """Print how many streams are answered, how often the interval covers the truth, and how wide it is."""
    print("Open share of streams of 1,000 messages, development rows, nine cases:\n")
    table = [["known part", "open share", "streams", "answered", "covered", "width", "error"]]
    for name in dict.fromkeys(stream[0] for stream in streams):
        for share in (*SHARES, None) if name == "as is" else (None,):
            chosen = [s for s in streams if s[0] == name and share in (None, s[1])]
            told = [s for s in chosen if s[2] is not None]
            covered = np.mean([low <= true <= high for _, true, _, low, high in told])
            width = np.mean([high - low for *_, low, high in told])
            error = np.mean([abs(answer - true) for _, true, answer, *_ in told])
            numbers = [
                f"{100 * len(told) / len(chosen):.0f} %",
                f"{100 * covered:.1f} %",
                f"{width:.3f}",
                f"{error:.3f}",
            ]
            table.append([name, "all" if share is None else f"{100 * share:.0f} %", f"{len(chosen):,}", *numbers])
    print_table(table)


def print_lines(rows, subset, encoder):
    """Print the macro F1 of the lines, and the calibration of the probabilities."""
    features = {"none": "frozen", "head": "trained head", "full": "whole text model tuned"}[encoder]
    print(f"Macro F1, {features}, {len(rows)} cases, {'development' if subset == 'dev' else 'test'} rows:\n")
    table = [["data set", "classes", "fitted", "for the traffic", "for the true share", "best", "not told"]]
    groups = {(row["data"], row["ratio"]): [] for row in rows}
    for row in rows:
        groups[row["data"], row["ratio"]].append(row)
    for (data, ratio), chosen in [*groups.items(), (("mean", None), rows)]:
        means = [
            f"{np.mean([row[f'f1_{key}'] for row in chosen]):.2f}" for key in ("fitted", "traffic", "share", "oracle")
        ]
        declined = sum(row["reason"] is not None for row in chosen)
        table.append([data, "" if ratio is None else f"{100 * ratio:.0f} %", *means, str(declined)])
    worst = [f"{min(row[f'f1_{key}'] - row['f1_fitted'] for row in rows):+.2f}" for key in ("traffic", "share")]
    table.append(["worst change", "", "", *worst, "", ""])
    print_table(table)
    print("Probabilities:\n")
    table = [["open share", "calibration error", "of open alone", "Brier score"]]
    names = {"share": "true", "auto": "estimated", "half": "a half", "softmax": "softmax, tuned temperature"}
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
