"""Answers that may be questions: what the zones of ``predict_set`` do, on real messages and real shares.

Of known messages: served directly, served after one question, asked, answered wrong, left to a person; of open ones:
asked and answered. As trained, and with 30 labelled messages of a log of 300, at 5, 20 and 50 % open. Beside:

- the two answers of ``predict`` at the same operating point;
- a softmax (logistic regression) whose two thresholds and gap have the least cost on the 30 labels;
- MAPIE's sets of 90 % on the probabilities of the classifier as trained (``predict_open_proba``, open as one more
  class), conformalized on the 30 labels: one class is answered, several, or a class and open, are asked about, at most
  the likeliest three, and none or open alone is open;
- the oracle: the two limits and the gap that serve most on the test rows themselves, with at most 8 % wrong, 35 % of
  the open ones asked and 25 % of them answered.

Cases are those of ``real_lines.py``: *real*, *far*, *home* and *shift*.

    python -m pip install --no-deps mapie==1.6.0                     # for ``run`` alone
    python studies/real_lines.py --data-home ../../../shared/data embed
    python studies/ask.py --data-home ../../../shared/data run       # goes on where it stopped
    python studies/ask.py report > results/ask.rst
"""

import argparse
import itertools
import json
import re
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import OPEN, cases_of, far_cases, home_cases, real_cases, third_bot
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from skellipsoid import EllipsoidOpenSetClassifier, predict_open_proba, predict_set, set_operating_point
from skellipsoid._traffic.predict_set import first_classes
from skellipsoid._traffic_model.zones import Costs

RESULTS = Path(__file__).parents[1] / "results" / "ask.jsonl"
SHARES, N_LOG, N_LABELS, DRAWS = (0.05, 0.2, 0.5), 300, 30, 4
#: What the oracle may do, in percent; and a goal.
MOST_WRONG, MOST_OPEN_ASKED, MOST_OPEN_ANSWERED = 8, 35, 25
MOST_KNOWN_ASKED, NEAR = 35, 6
N_LEVELS = 41
#: Confidence of MAPIE's sets.
CONFIDENCE = 0.9
METHODS = ("asking", "two answers", "softmax, tuned", "MAPIE", "oracle")


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/, banking/, oos/, stackoverflow/")
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines", help="features of real_lines.py")
    parser.add_argument("--cases", nargs="+", default=None, help="only these, after which no other is read")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts, known messages that moved
    {"run": run, "report": lambda _: report()}[options.what](options)


def rows_of():
    """Read what is there."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(options):
    """Append the cases that are not there yet."""
    done = {row["case"] for row in rows_of()}
    cases = [of(options) for of in (third_bot, real_cases, far_cases, home_cases)]
    for name, train, known, opened in cases_of(options.cases, *cases) if options.cases else itertools.chain(*cases):
        if name in done:
            continue
        lines = [json.dumps({"case": name, **row}) for row in judged_case(train, known, opened)]
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        print(name, flush=True)


class Messages:
    """Messages with what a method says of them: the first three classes, a score, and a gap."""

    def __init__(self, first, scores, gaps, truth):
        self.scores, self.gaps = np.asarray(scores, dtype=float), np.asarray(gaps, dtype=float)
        self.is_first, self.is_offered = first[:, 0] == truth, (first == truth[:, np.newaxis]).any(axis=1)
        self.n_offered = (first >= 0).sum(axis=1)

    def at(self, rows):
        """Select rows."""
        found = object.__new__(Messages)
        vars(found).update({name: column[rows] for name, column in vars(self).items()})
        return found

    def acted(self, low, high, gap):
        """Give the actions of two limits and a gap."""
        is_answered = (self.scores >= high) & (self.gaps >= gap)
        return np.select([self.scores < low, is_answered], ["open", "answer"], "ask")


def figures(messages, action, is_known):
    """Percents of known and of open messages."""
    answered, asked = action == "answer", action == "ask"
    known, opened = is_known, ~is_known
    direct = answered & messages.is_first
    after = asked & messages.is_offered
    of_known = {
        "direct": direct,
        "after": after,
        "served": direct | after,
        "asked": asked,
        "wrong": answered & ~messages.is_first,
        "person": action == "open",
    }
    found = {name: 100 * float(what[known].mean()) for name, what in of_known.items()}
    found |= {"open asked": 100 * float(asked[opened].mean()), "open answered": 100 * float(answered[opened].mean())}
    return found | {"offered": float((answered + messages.n_offered * asked).mean())}


def fitted(train):
    """Fit the default."""
    return EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)


def judged_case(train, known, opened):
    """Give figures of every method, given, share and draw."""
    clf = fitted(train)
    X, is_known = np.concatenate([known.X, opened.X]), np.arange(len(known.y) + len(opened.y)) < len(known.y)
    y = np.where(is_known, np.append(known.y, np.full(len(opened.y), OPEN)), OPEN)
    truth = clf._encode(y)
    first, gaps = first_classes(clf, X)
    scored = clf._score_checked(X)
    first[:, 0] = scored.assigned
    ours, softmax = Messages(first, scored.scores, gaps, truth), softmax_of(train, X, clf, truth)
    probabilities = predict_open_proba(clf, X)

    def zones():
        return predict_set(clf, X).action

    def two():
        return np.where(scored.scores < clf.offset_, "open", "answer")

    yield {"method": "asking", "given": "as trained", **figures(ours, zones(), is_known)}
    yield {"method": "two answers", "given": "as trained", **figures(ours, two(), is_known)}
    best = oracle(ours, is_known)
    yield {"method": "oracle", "given": "test rows", **figures(ours, ours.acted(*best), is_known)}
    for share, draw in itertools.product(SHARES, range(DRAWS)):
        rng = np.random.default_rng([round(100 * share), draw])
        n_open = rng.binomial(N_LOG, share)
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(part), n, replace=n > part.sum())
                for part, n in ((is_known, N_LOG - n_open), (~is_known, n_open))
            ]
        )
        rows = rng.permutation(rows)
        labels = np.full(N_LOG, None, dtype=object)
        labels[:N_LABELS] = y[rows[:N_LABELS]]
        set_operating_point(clf, X[rows], labels)
        rest = np.setdiff1d(np.arange(len(y)), rows[:N_LABELS])
        of_draw = {"given": "30 labels", "share": share, "draw": draw}
        told = {name: round(100 * clf.asking_[name], 1) for name in ("served", "wrong", "asked", "missed")}
        told |= {name: round(100 * clf.asking_[name], 1) for name in ("open_asked", "open_answered")}
        for method, messages, action in (
            ("asking", ours, zones()),
            ("two answers", ours, two()),
            ("MAPIE", *mapie_sets(probabilities, truth, rows[:N_LABELS])),
            ("softmax, tuned", softmax, softmax.acted(*tuned(softmax.at(rows[:N_LABELS]), is_known[rows[:N_LABELS]]))),
        ):
            row = {"method": method, **of_draw, **figures(messages.at(rest), action[rest], is_known[rest])}
            yield row | ({"told": told} if method == "asking" else {})
    set_operating_point(clf)


def softmax_of(train, X, clf, truth):
    """Probabilities of a logistic regression."""
    model = LogisticRegression(max_iter=300, C=10).fit(train.X, train.y)
    found = model.predict_proba(X)
    first = np.argsort(-found, axis=1, kind="stable")[:, :3]
    ordered = np.take_along_axis(found, first, axis=1)
    first = clf._encode(model.classes_[first].ravel()).reshape(first.shape)
    return Messages(first, ordered[:, 0], ordered[:, 0] - ordered[:, 1], truth)


class Given(ClassifierMixin, BaseEstimator):
    """Probabilities as a classifier."""

    def fit(self, X, y=None):
        """Take each column for a class."""
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        """Give them."""
        return X

    def predict(self, X):
        """Give the likeliest class."""
        return X.argmax(axis=1)


def mapie_sets(probabilities, truth, labelled):
    """Messages, and what is done with them by sets of classes and open, which is the last column."""
    from mapie.classification import SplitConformalClassifier

    model = SplitConformalClassifier(Given().fit(probabilities), confidence_level=CONFIDENCE)
    sets = model.conformalize(probabilities[labelled], truth[labelled]).predict_set(probabilities)[1][:, :, 0]
    is_in, with_open = sets[:, :-1], sets[:, -1]
    first = np.argsort(-probabilities[:, :-1], axis=1, kind="stable")[:, :3]
    first = np.where(np.take_along_axis(is_in, first, axis=1), first, -1)
    messages = Messages(first, np.zeros(len(first)), np.zeros(len(first)), truth)
    is_alone = (messages.n_offered == 1) & ~with_open
    return messages, np.select([messages.n_offered == 0, is_alone], ["open", "answer"], "ask")


def _levels(values):
    return np.concatenate([[-np.inf], np.quantile(values, np.linspace(0, 1, N_LEVELS)), [np.inf]])


def candidates_of(messages):
    """Two limits and a gap."""
    limits, gaps = _levels(messages.scores), _levels(messages.gaps)[::2]
    for high, gap in itertools.product(limits, gaps):
        yield from ((low, high, gap) for low in limits[limits <= high])


def tuned(messages, is_known):
    """Limits and gap with the least cost on labelled messages."""
    costs = Costs()

    def cost(zones):
        action = messages.acted(*zones)
        is_right = np.where(action == "answer", messages.is_first, messages.is_offered) & is_known
        answered, asked = action == "answer", action == "ask"
        return (
            costs.wrong * (answered & ~is_right).sum()
            + costs.question * asked.sum()
            + costs.person * ((asked & ~is_right) | (action == "open")).sum()
        )

    # All between two neighbouring scores are alike: the middle of the best ones.
    limits = np.append(np.unique(messages.scores)[::2], np.inf)
    gaps = np.append(-np.inf, np.unique(messages.gaps)[::3])
    zones = [(low, high, gap) for high in limits for low in limits[limits <= high] for gap in gaps]
    found = np.array([cost(each) for each in zones])
    return zones[int(found.argmin())]


def oracle(messages, is_known):
    """Limits and gap that serve most on the messages themselves, by sums over a grid."""
    limits, gaps = _levels(messages.scores), _levels(messages.gaps)[::2]

    def above(of):  # share from each limit and gap on, (n_limits, n_gaps)
        counted = np.zeros((len(limits) + 1, len(gaps) + 1))
        places = (
            np.searchsorted(limits, messages.scores, side="right"),
            np.searchsorted(gaps, messages.gaps, side="right"),
        )
        np.add.at(counted, places, of)
        return counted[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1][1:, 1:]

    n_known, n_open = is_known.sum(), (~is_known).sum()
    right, wrong = above(is_known & messages.is_first), above(is_known & ~messages.is_first)
    offered, opened = above(is_known & messages.is_offered), above(~is_known)
    best, zones = -1.0, (np.inf, np.inf, np.inf)
    for low in range(len(limits)):
        served = (right + offered[low, 0] - offered) / n_known
        asked = (opened[low, 0] - opened) / n_open
        allowed = (
            (100 * wrong / n_known <= MOST_WRONG)
            & (100 * asked <= MOST_OPEN_ASKED)
            & (100 * opened / n_open <= MOST_OPEN_ANSWERED)
        )
        served = np.where(allowed & (np.arange(len(limits)) >= low)[:, np.newaxis], served, -1)
        if served.max() > best:
            best = served.max()
            high, gap = np.unravel_index(int(served.argmax()), served.shape)
            zones = limits[low], limits[high], gaps[gap]
    return zones


NAMES = ("served", "direct", "after", "asked", "wrong", "person", "open asked", "open answered")


def group_of(case):
    """Give the name under which cases are averaged; those of real messages stand alone."""
    return case if case.startswith("real") else re.sub(r"[\d.]+$", "", case)


def chosen_of(rows, method, given, share):
    """Give the rows of a method; the oracle is the same for all shares."""
    what = ("test rows", None) if method == "oracle" else (given, share)
    return [row for row in rows if row["method"] == method and (row["given"], row.get("share")) == what]


def report():
    """Print the tables."""
    rows = rows_of()
    groups = {}
    for row in rows:
        groups.setdefault(group_of(row["case"]), []).append(row)
    print("Asking back\n===========\n\n.. written by studies/ask.py\n")
    print("Percent of known and of open messages, means over draws and over the cases of a group.\n")
    print("\n\n".join(__doc__.split("\n\n")[1:3]) + "\n")
    for given, share in [("as trained", None), *(("30 labels", share) for share in SHARES)]:
        title = given if share is None else f"{given}, {100 * share:.0f} % open"
        print(f"{title}\n{'-' * len(title)}\n")
        table = []
        for name, of_group in groups.items():
            for method in METHODS:
                if chosen := chosen_of(of_group, method, given, share):
                    means = [f"{np.mean([row[figure] for row in chosen]):.0f}" for figure in NAMES]
                    table.append([name, method, *means, f"{np.mean([row['offered'] for row in chosen]):.1f}"])
        print_table([["cases", "method", *NAMES, "offered"], *table])
    print_goals(rows)


def print_goals(rows):
    """Print the means of each kind of cases with 30 labels at 20 % open, and how many cases reach each goal."""
    title = "Goals: 30 labels, 20 % open"
    print(f"{title}\n{'-' * len(title)}\n\nMeans over the cases of a kind, and how many of them reach each goal:\n")
    goals = {
        "near": lambda mean, oracle: mean["served"] >= oracle["served"] - NEAR,
        "wrong": lambda mean, _: mean["wrong"] <= MOST_WRONG,
        "asked": lambda mean, _: mean["asked"] <= MOST_KNOWN_ASKED,
        "open asked": lambda mean, _: mean["open asked"] <= MOST_OPEN_ASKED,
        "open answered": lambda mean, _: mean["open answered"] <= MOST_OPEN_ANSWERED,
    }
    print(
        f"*near*, served at most {NEAR} points less than the oracle; *wrong* at most {MOST_WRONG},\n*asked* at most "
        f"{MOST_KNOWN_ASKED}, *open asked* at most {MOST_OPEN_ASKED} and *open answered* at most {MOST_OPEN_ANSWERED} "
        "percent;\n*all* of these.\n"
    )
    cases = {}
    for row in rows:
        cases.setdefault(row["case"], []).append(row)
    kinds = {}
    for case, of_case in cases.items():
        kinds.setdefault(case.partition("-")[0], []).append(of_case)
    table = [["cases", "method", *NAMES, *(f"{goal}: reached" for goal in goals), "all"]]
    for (kind, of_kind), method in itertools.product(kinds.items(), METHODS):
        reached, means = [], []
        for of_case in of_kind:
            mean, oracle = (
                {name: np.mean([row[name] for row in chosen_of(of_case, which, "30 labels", 0.2)]) for name in NAMES}
                for which in (method, "oracle")
            )
            means.append([mean[name] for name in NAMES])
            reached.append([goal(mean, oracle) for goal in goals.values()])
        counts = [*np.sum(reached, axis=0), np.all(reached, axis=1).sum()]
        of_kind = f"{kind} ({len(reached)})"
        table.append([of_kind, method, *(f"{mean:.0f}" for mean in np.mean(means, axis=0)), *map(str, counts)])
    print_table(table)


if __name__ == "__main__":
    main()
