r"""What a few labelled messages of a log are worth: the line alone, learning, and other methods.

    python studies/real_lines.py --data-home ../../../shared/data embed
    python studies/first_hour.py --data-home ../../../shared/data run          # goes on where it stopped
    python studies/first_hour.py --data-home ../../../shared/data run --encoder head
    python studies/first_hour.py report > results/first_hour.rst
    python studies/first_hour.py --data-home ../../../shared/data run --draws 2 --cases real-bot1 real-bot2 real-bot3
    python studies/first_hour.py report --cases real-bot1 real-bot2 real-bot3 > results/first_hour_bots.rst

``first_hour_bots.rst`` is of today, the other cases are of the version before the memory and class frequencies.

A log has 400 messages, or all that there are. Of these m are labelled; F1 is of all other messages of the case, in the
log's share of open ones. *oracle* is the best line for them.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_streams import Curve
from line_tables import print_table
from real_lines import OPEN, cases_of, far_cases, headed, home_cases, real_cases, third_bot
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label, learn_from_traffic, set_operating_point
from skellipsoid._traffic.log import score
from skellipsoid.metrics import open_set_f1_score

#: Cases and their numbers of draws; of two the features of a trained head, too.
CASES = {
    "real-bot1": 18,
    "real-bot1subset": 6,
    "real-bot2": 8,
    "real-bot3": 8,
    "real-cardsid": 6,
    "real-cardsood": 6,
    "real-clinc50": 2,
    "shift-banking.4": 2,
    "shift-oos.4": 2,
    "shift-stackoverflow.4": 3,
    "home-banking0.25.0": 4,
    "home-stackoverflow0.5.0": 4,
}
OF_HEAD = ("real-bot1", "real-cardsid", "real-cardsood", "shift-stackoverflow.4")
COUNTS = (15, 30, 60, 120, 240)
N_LOG, SHARE = 400, 0.2
RESULTS = CACHE / "first_hour"
SOURCES = (third_bot, real_cases, far_cases, home_cases)


def main():
    """Run the draws that are not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data-home", default=None)
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines")
    parser.add_argument("--encoder", choices=("none", "head"), default="none")
    parser.add_argument("--cases", nargs="+", default=None, help="only these")
    parser.add_argument("--draws", type=int, default=99, help="at most so many draws of a case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.what == "report":
        report(options)
        return
    names = options.cases or (CASES if options.encoder == "none" else OF_HEAD)
    for name, train, known, opened in cases_of(names, *(of(options) for of in SOURCES)):
        if options.encoder == "head":
            X, parts = headed(train, known, opened)
            train, known, opened = (
                part._replace(X=features) for part, features in zip((train, known, opened), (X, *parts), strict=True)
            )
        base = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)
        for draw in range(min(CASES[name], options.draws)):
            place = RESULTS / f"{options.encoder}-{name}-{draw}.json"
            if not place.exists():
                place.write_text(json.dumps(list(drawn(base, train, known, opened, draw))))
                print(place.name, flush=True)


def drawn(base, train, known, opened, draw):
    """Measure every number of labels for one log."""
    rng = np.random.default_rng(draw)
    k, o = rng.permutation(len(known.y)), rng.permutation(len(opened.y))
    natural = len(opened.y) / (len(opened.y) + len(known.y))
    share = natural if len(known.y) + len(opened.y) <= N_LOG else SHARE
    n_open = min(round(share * N_LOG), len(o))
    n_known = min(N_LOG - n_open, len(k), round(n_open / share * (1 - share)))
    X = np.concatenate([known.X[k], opened.X[o]])
    y = np.append(known.y[k].astype(object), np.full(len(o), OPEN)).astype(str)
    in_log = np.append(np.arange(len(k)) < n_known, np.arange(len(o)) < n_open)
    weights = np.append(np.full(len(k), (1 - share) / len(k)), np.full(len(o), share / len(o)))
    log = rng.permutation(np.flatnonzero(in_log))
    for m in COUNTS:
        if m > 0.62 * len(log):
            continue
        for way, rows, of_labels in (
            ("random", np.arange(m), np.ones(m)),
            ("chosen", *choose_to_label(base, X[log], m, random_state=draw).values()),
        ):
            rest = np.ones(len(y), dtype=bool)
            rest[log[rows]] = False
            if way == "random":
                yield from rivals(base, train, X, y, log[rows], rest, weights, m)
            labels, given = np.full(len(log), None, dtype=object), np.ones(len(log))
            labels[rows], given[rows] = y[log][rows], of_labels
            labels[rows] = np.where(np.isin(y[log][rows], base.classes_), y[log][rows], OPEN)
            line = set_operating_point(base, X[log], labels, sample_weight=given)
            yield m, f"line, {way}", *measured(line, X, y, rest, weights, line.offset_)
            set_operating_point(base)
            learned = learn_from_traffic(base, X[log], labels, sample_weight=given)
            told = learned.changes_[-1]
            yield (
                m,
                f"learned, {way}",
                *measured(learned, X, y, rest, weights, learned.offset_),
                *told["after"]["rejected"],
            )


def rivals(base, train, X, y, rows, rest, weights, m):
    """Measure other methods with the same labels."""
    yield m, "fitted", *measured(base, X, y, rest, weights, 0.0)
    own = np.where(np.isin(y[rows], base.classes_), y[rows], OPEN)
    joined, labels = np.concatenate([train.X, X[rows]]), np.append(train.y, own)
    for name, model in (
        ("logistic regression", LogisticRegression(C=10, max_iter=500)),
        ("kNN", KNeighborsClassifier(5, metric="cosine", weights="distance")),
    ):
        answers = model.fit(joined, labels).predict(X[rest])
        f1 = open_set_f1_score(
            y[rest], answers, labels=base.classes_, open_label=OPEN, zero_division=0, sample_weight=weights[rest]
        )
        yield m, name, 100 * f1, 100 * f1, 0.0, 0.0


def measured(clf, X, y, rest, weights, offset):
    """F1, that of the best line, shares of known messages rejected and of open ones noticed."""
    scores, assigned = score(clf, X[rest])
    n_classes, truth = len(clf.classes_), clf._encode(y[rest])
    curve = Curve(scores, assigned, truth, n_classes, weights[rest])
    below, opened = scores < offset, truth == n_classes
    return curve(offset), curve.best, below[~opened].mean(), below[opened].mean()


def report(options):
    """Print the tables in reStructuredText."""
    for encoder, title in (("none", "Frozen features"), ("head", "Trained head")):
        found = {}
        for place in sorted(RESULTS.glob(f"{encoder}-*.json")):
            if options.cases and place.stem.split("-", 1)[1].rsplit("-", 1)[0] not in options.cases:
                continue
            for m, way, *numbers in json.loads(place.read_text()):
                found.setdefault((place.stem.split("-", 1)[1].rsplit("-", 1)[0], m, way), []).append(numbers)
        if not found:
            continue
        print(f"{title}\n{'-' * len(title)}\n")
        print(
            "Mean F1, and in brackets with the best line for the model; *rejected*, *noticed*: the learned model's.\n"
        )
        ways = (
            "fitted",
            "line, random",
            "line, chosen",
            "learned, random",
            "learned, chosen",
            "logistic regression",
            "kNN",
        )
        rows = [["case", "m", *ways, "rejected", "noticed"]]
        for name, m in dict.fromkeys((name, m) for name, m, _ in found):
            means = {way: np.mean([numbers[:4] for numbers in found[name, m, way]], axis=0) for way in ways}
            cells = [f"{means[way][0]:.1f} [{means[way][1]:.1f}]" for way in ways[:5]]
            cells += [f"{means[way][0]:.1f}" for way in ways[5:]]
            _, _, rejected, noticed = means["learned, random"]
            rows.append([name, str(m), *cells, f"{100 * rejected:.0f}", f"{100 * noticed:.0f}"])
        print_table(rows)
        print(
            "Share of known messages rejected, as the learned model foretells it by labels drawn at random: mean error"
        )
        print(
            "in points, and percent of the draws in which it lies within 1.64 errors. (Where messages were chosen, the"
        )
        print("others are no random part of the log.)\n")
        rows = [["m", "error", "within"]]
        for m in COUNTS:
            of_count = [numbers for (_, k, way), numbers in found.items() if (k, way) == (m, "learned, random")]
            told = np.array([row for numbers in of_count for row in numbers])
            off = np.abs(told[:, 4] - told[:, 2])
            rows.append([str(m), f"{100 * off.mean():.1f}", f"{100 * np.mean(off <= 1.64 * told[:, 5]):.0f}"])
        print_table(rows)


if __name__ == "__main__":
    main()
