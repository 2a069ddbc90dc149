"""The first page's table: three bots, as trained, with 30 and with 120 labelled messages, and asked back.

    python studies/real_lines.py --data-home ../../../shared/data embed --files real/
    python studies/first_page.py --data-home ../../../shared/data > results/first_page.rst

All methods have the same features, and each draw of labels. *occur*: macro F1 over the classes that occur in the truth
and open; *all*: over what occurs in the truth or among the predictions, scikit-learn's default. Logistic regression has
a threshold, and beside it open as one more class; thresholds are those of ``real_messages.py``. Figures are of the
messages without a label, percent, means of the draws, and in brackets the standard deviation of one draw.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import OPEN, cases_of, real_cases, third_bot
from real_messages import MAHALANOBIS, OPEN_CLASS, _answers, joined, labelled
from sklearn.metrics import f1_score

from skellipsoid import EllipsoidOpenSetClassifier, learn_from_traffic, predict_set

CASES, COUNTS, DRAWS = ("real-bot1", "real-bot2", "real-bot3"), (30, 120), 10
METHODS = (MAHALANOBIS, "logistic regression", OPEN_CLASS)
GIVEN = {"fitted": "as trained", **{str(n): f"{n} labels" for n in COUNTS}}
KINDS = {"occur": "F1 over the classes that occur and open", "all": "F1 over what occurs or is predicted"}


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", required=True)
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines", help="features of real_lines.py")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts, known messages that have moved
    f1, asked, sizes = {}, {}, []
    for name, train, known, opened in cases_of(CASES, third_bot(options), real_cases(options)):
        messages = joined(known, opened)
        sizes.append([name, *map(str, (len(np.unique(train.y)), len(train.y), len(messages.y), len(opened.y)))])
        for given, rows, clf in models(train, messages):
            rest = np.setdiff1d(np.arange(len(messages.y)), rows)
            answers = clf.predict(messages.X[rest])
            f1.setdefault(("skellipsoid", name, given), []).append(both_f1(messages.y[rest], answers))
            asked.setdefault((name, given), []).append(of_questions(clf, messages.at(rest)))
        for method in METHODS:
            for _, given, draw, rows, answers in _answers(method, train, messages, COUNTS):
                if given in GIVEN and draw < DRAWS:
                    rest = np.setdiff1d(np.arange(len(messages.y)), rows)
                    f1.setdefault((method, name, given), []).append(both_f1(messages.y[rest], answers[rest]))
    report(f1, asked, sizes)


def models(train, messages):
    """Give the classifier as trained, and with each draw of labels: what was given, the labelled rows, the model."""
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)
    yield "fitted", [], clf
    for n in COUNTS:
        for draw in range(DRAWS):
            labels, rows = np.full(len(messages.y), None, dtype=object), labelled(messages, n, draw)
            labels[rows] = messages.y[rows]
            yield str(n), rows, learn_from_traffic(clf, messages.X, labels)


def both_f1(truth, answers):
    """Both kinds of F1, percent."""
    answers = answers.astype(str)
    return [
        100 * f1_score(truth, answers, labels=of, average="macro", zero_division=0) for of in (np.unique(truth), None)
    ]


def of_questions(clf, messages):
    """Percents of ``predict``, and of known messages (right at once or after a question …) and of open ones."""
    found, answers, is_open = predict_set(clf, messages.X), clf.predict(messages.X), messages.y == OPEN
    answered, asks = found.action == "answer", found.action == "ask"
    is_first, is_offered = found.classes[:, 0] == messages.y, (found.classes == messages.y[:, np.newaxis]).any(axis=1)
    served = np.where(answered, is_first, asks & is_offered)
    of_known = served, asks, answered & ~is_first, found.action == "open"
    is_right = answers == messages.y
    shares = [is_right[~is_open], is_right[is_open]]
    shares += [*(part[~is_open] for part in of_known), asks[is_open], answered[is_open]]
    return [100 * float(part.mean()) for part in shares]


def report(f1, asked, sizes):
    """Print the tables."""
    title = "The first page's figures"
    print(title, "=" * len(title), sep="\n", end="\n\n")
    print("\n\n".join(__doc__.split("\n\n")[2:]))
    print_table([["case", "classes", "training texts", "messages", "open"], *sizes])
    for place, (kind, of) in enumerate(KINDS.items()):
        print(f"*{kind}*: {of}.\n")
        rows = [["method", *(f"{name[5:]}, {title}" for name in CASES for title in GIVEN.values())]]
        for method in ("skellipsoid", *METHODS):
            rows.append([method, *(cell(f1.get((method, name, given)), place) for name in CASES for given in GIVEN)])
        print_table(rows)
    print("``predict``: percent of known messages that are right, of open ones that are detected. Asked back")
    print("(``predict_set``): percent of known messages that are served (right at once, or offered in the question),")
    print("asked about, answered wrong, left open; of open ones that are asked about, and answered.\n")
    columns = "case, given, right, detected, served, asked, wrong, left open, open asked, open answered"
    rows = [columns.split(", ")]
    for (name, given), draws in asked.items():
        rows.append([name, GIVEN[given], *(f"{mean:.0f}" for mean in np.mean(draws, axis=0))])
    print_table(rows)


def cell(draws, place):
    """Mean, and the standard deviation of a draw."""
    if draws is None:
        return "–"
    of = np.array(draws)[:, place]
    return f"{of.mean():.1f}" if len(of) == 1 else f"{of.mean():.1f} ({of.std(ddof=1):.1f})"


if __name__ == "__main__":
    main()
