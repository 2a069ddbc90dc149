"""Accuracy among known messages, with no open class: the default beside logistic regression on the same features.

    python studies/real_lines.py --data-home ../../../shared/data embed
    python studies/closed_set.py --data-home ../../../shared/data run       # goes on where it stopped
    python studies/closed_set.py report > results/closed_set.rst

Both as trained, and with 30, 60 or 120 labelled messages of a log, the same rows for both. The default learns from all
of them and from the log; logistic regression is fitted anew to training texts and labelled known messages. Its C is
chosen by five-fold cross-validation. Accuracy is of the known messages that were not labelled.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import OPEN, real_cases
from real_messages import joined, labelled
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from skellipsoid import EllipsoidOpenSetClassifier, learn_from_traffic

RESULTS = Path(__file__).parents[1] / "results" / "closed_set.jsonl"
CASES = {
    "real-bot1": "bot 1",
    "real-bot1subset": "bot 1, reduced",
    "real-bot2": "bot 2",
    "real-bot2subset": "bot 2, reduced",
    "real-cardsid": "cards",
}
COUNTS, DRAWS = (0, 30, 60, 120), 3
C = (0.3, 1, 3, 10, 30, 100)


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/ and oos/")
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines", help="features of real_lines.py")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    {"run": run, "report": lambda _: report()}[options.what](options)


def run(options):
    """Append what is not there yet."""
    done = {(row["case"], row["labels"], row["draw"]) for row in rows_of()}
    for name, train, known, opened in real_cases(options):
        if name not in CASES:
            continue
        messages = joined(known, opened)
        clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)
        for m in COUNTS:
            for draw in range(DRAWS if m else 1):
                if (name, m, draw) in done:
                    continue
                rows = labelled(messages, m, draw)
                rest = np.setdiff1d(np.flatnonzero(messages.y != OPEN), rows)
                labels = np.full(len(messages.y), None, dtype=object)
                labels[rows] = messages.y[rows]
                ours = learn_from_traffic(clf, messages.X, labels) if m else clf
                answers = {"default": ours, "regression": regression(train, messages.at(rows))}
                line = {"case": name, "labels": m, "draw": draw, "messages": len(rest)}
                for method, model in answers.items():
                    known_class = model.predict_known if method == "default" else model.predict
                    right = known_class(messages.X[rest]) == messages.y[rest]
                    line[method] = round(100 * float(np.mean(right)), 2)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def regression(train, messages):
    """Logistic regression, C by cross-validation."""
    messages = messages.at(messages.y != OPEN)
    X, y = np.concatenate([train.X, messages.X]), np.concatenate([train.y, messages.y]).astype(str)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return GridSearchCV(LogisticRegression(max_iter=2000), {"C": C}, cv=folds).fit(X, y)


def rows_of():
    """Read the results."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def report():
    """Print the table."""
    found = rows_of()
    print(
        "Accuracy among known messages, percent: the default / logistic regression with C by cross-validation, on the"
    )
    print(
        "same features (frozen MiniLM, three layers). With labels: means of three draws, and the standard error of the"
    )
    print("difference over them.\n")
    lines = [["case", *("as trained" if m == 0 else f"{m} labels" for m in COUNTS)]]
    for case, title in CASES.items():
        cells = [title]
        for m in COUNTS:
            pairs = np.array([(r["default"], r["regression"]) for r in found if (r["case"], r["labels"]) == (case, m)])
            cell = "{:.1f} / {:.1f}".format(*pairs.mean(axis=0))
            if len(pairs) > 1:
                difference = pairs[:, 0] - pairs[:, 1]
                cell += f" ({difference.mean():+.1f} ± {difference.std(ddof=1) / len(pairs) ** 0.5:.1f})"
            cells.append(cell)
        lines.append(cells)
    print_table(lines)


if __name__ == "__main__":
    main()
