"""Whether labels cost F1, whether a share that is told does, and whether what is forecast after labels holds.

    python studies/memory.py --data-home ../../../shared/data embed
    python studies/labels.py run --draws 2             # goes on where it stopped
    python studies/labels.py gains --draws 50          # the same; draw by draw, of all sets
    python studies/labels.py report > results/labels.rst

Logs with 5, 20 and 50 % open messages, of the sets of ``memory.py``; 30 or 120 random messages are labelled, the others
judge. *Share told*: the true share of open messages and the unlabelled log, no label. F1 is macro over the classes that
occur and open; *all*: over what occurs in the truth or among the predictions. An interval of a forecast is its mean ±
1.645 standard deviations, that of the share its ``low`` to ``high``. *Picks*: users who are asked pick their class, or
none of these, as ``predict_set`` asks as trained. *Missed*: known messages with ``miss_rate=0.1``. *Gains*: F1
alone, with 15, 30 and 60 labels, on more draws.

The results have two to four draws, nine of the gains. Their forecasts are of the version before they were pooled of two
and before picks had an error of the gaps; TRIED.md has both beside each other.
"""

import argparse
import itertools
import json
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from memory import OPEN, REAL, SHARES, TEXTS, drawn, figures

from skellipsoid import EllipsoidOpenSetClassifier, learn_from_traffic, predict_set, set_operating_point
from skellipsoid._held_out.kept import held_out_of
from skellipsoid._traffic.forecast import forecast_as_set

RESULTS, GAINS = (Path(__file__).parents[1] / "results" / f"{name}.jsonl" for name in ("labels", "label_gains"))
COUNTS, COUNTS_OF_GAINS = (30, 120), (15, 30, 60)
NAMES = ("right", "wrong", "rejected", "noticed", "asked", "open_asked")
#: An interval of 90 % of a normal distribution; points of F1 that a draw must not lose.
DEVIATIONS, MOST_LOST = 1.645, 2.5
MISS_RATE = 0.1


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "gains", "report"))
    parser.add_argument("--cache", type=Path, default=CACHE / "memory")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=(*REAL, *TEXTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts, known messages that have moved
    if options.what == "report":
        report()
    else:
        run(options, *{"run": (RESULTS, COUNTS, judged), "gains": (GAINS, COUNTS_OF_GAINS, gained)}[options.what])


def run(options, place, counts, measured):
    """Append what is not there yet, draw by draw of all sets."""
    done = {(row["set"], row["share"], row["labels"], row["draw"]) for row in rows_of(place)}
    sets, fitted = {}, {}
    for name in options.sets:
        with np.load(options.cache / f"{name}.npz") as arrays:
            sets[name] = arrays["log"], arrays["truth"]
            fitted[name] = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(arrays["X"], arrays["y"])
    for draw, name, share, n in itertools.product(range(options.draws), sets, SHARES, counts):
        if (name, share, n, draw) not in done:
            log, truth = drawn(*sets[name], share, np.random.default_rng(1000 + draw))
            row = {"set": name, "share": share, "labels": n, "draw": draw}
            keep(place, row | measured(fitted[name], log, truth, n))


def gained(clf, log, truth, n):
    """F1 as trained and with labels."""
    learned = learn_from_traffic(clf, log, labels_of(log, truth, n))
    return {"trained": figures(clf, log, truth, n)[:2], "learned": figures(learned, log, truth, n)[:2]}


def labels_of(log, truth, n):
    """Label the first messages, but those that are equal to another with another label."""
    labels = np.full(len(truth), None, dtype=object)
    labels[:n] = truth[:n]
    labels[contradicted(log, labels)] = None
    return labels


def judged(clf, log, truth, n):
    """F1 of each way, and what was forecast as trained and after the labels, with the truth."""
    labels = labels_of(log, truth, n)
    found = {"trained": figures(clf, log, truth, n)[:2]}
    held_out = held_out_of(clf, "learn_from_traffic")
    true = true_shares(clf, log[n:], truth[n:])
    found["as trained"] = {
        name: [figure.mean, figure.low, figure.high, true[name]]
        for name, figure in forecast_as_set(clf, held_out).figures.items()
    }
    set_operating_point(clf, log, open_share=float(np.mean(truth == OPEN)))
    found["told"] = figures(clf, log, truth, n)[:2]
    set_operating_point(clf)
    learned = learn_from_traffic(clf, log, labels)
    found["learned"] = figures(learned, log, truth, n)[:2]
    found["after"] = after(learned, log, truth, n)
    if n == COUNTS[0]:
        found["picks"] = {"share": share_of(learn_from_traffic(clf, log, picked(clf, log, truth), picked=True), truth)}
    set_operating_point(learned, miss_rate=MISS_RATE)
    is_missed = ~(predict_set(learned, log[n:]).classes == truth[n:, np.newaxis]).any(axis=1)
    found["missed"] = [learned.asking_["missed"], float(is_missed[truth[n:] != OPEN].mean())]
    return found


def after(learned, log, truth, n):
    """Forecasts that labels give, each with its interval and the truth."""
    true, told = true_shares(learned, log[n:], truth[n:]), learned.changes_[-1]["after"]
    of_each = {
        name: [mean, max(mean - DEVIATIONS * error, 0), min(mean + DEVIATIONS * error, 1), true[name]]
        for name, (mean, error) in told.items()
    }
    of_each["share"] = share_of(learned, truth)
    return {name: np.round(figures, 4).tolist() for name, figures in of_each.items()}


def contradicted(log, labels):
    """Find labelled messages that are equal to a labelled one with another label, in whose place nobody labels."""
    _, messages = np.unique(log.round(5), axis=0, return_inverse=True)
    given = [(message, label) for message, label in zip(messages.ravel(), labels, strict=True) if label is not None]
    counts = Counter(message for message, _ in set(given))
    return np.array(
        [counts[message] > 1 and label is not None for message, label in zip(messages.ravel(), labels, strict=True)]
    )


def share_of(learned, truth):
    """Forecast of the open share with its interval, and the truth."""
    shares = (learned.traffic_[name] for name in ("open_share", "low", "high"))
    return [*shares, float(np.mean(truth == OPEN))]


def picked(clf, log, truth):
    """Labels that users pick where a classifier asks."""
    found, labels = predict_set(clf, log), np.full(len(truth), None, dtype=object)
    is_offered, is_asked = (found.classes == truth[:, np.newaxis]).any(axis=1), found.action == "ask"
    labels[is_asked] = np.where(is_offered, truth, OPEN)[is_asked]
    return labels


def true_shares(clf, X, truth):
    """Count what a classifier does with messages: shares of the known ones, and of the open ones."""
    answers, action, is_open = clf.predict(X), predict_set(clf, X).action, truth == OPEN
    is_right, is_rejected, is_asked = answers == truth, answers == OPEN, action == "ask"
    of_known = is_right, ~is_right & ~is_rejected, is_rejected
    shares = [*(part[~is_open] for part in of_known), is_rejected[is_open], is_asked[~is_open], is_asked[is_open]]
    return dict(zip(NAMES, (float(part.mean()) for part in shares), strict=True))


def keep(place, row):
    """Append one result."""
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, default=float) + "\n")
    print(row["set"], row["share"], row["labels"], row["draw"], flush=True)


def rows_of(place):
    """Read the results that are there."""
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def report():
    """Print the tables."""
    rows = rows_of(RESULTS)
    print(
        "F1 with labels and with the share told, less F1 as trained. *Lost*: percent of the draws that lose more than"
    )
    print(f"{MOST_LOST} points, and the worst draw.\n")
    print_table(
        [("set", "open", "trained", "labels", "all F1", "lost", "worst", "told", "all F1", "worst")]
        + [f1_line(rows, name, share) for name in sets_of(rows) for share in SHARES]
        + [f1_line([row for row in rows if row["labels"] == n], None, None, f"{n} labels") for n in COUNTS]
        + [f1_line(rows, None, None)]
    )
    print("Forecasts: mean error (forecast less truth), mean width of the interval, points; percent of the draws whose")
    print("truth is in the interval, of all and of the worst set.\n")
    print_table(
        [("when", "labels", "figure", "error", "width", "holds", "worst set")]
        + [held_line(rows, "as trained", COUNTS[0], name) for name in NAMES]
        + [held_line(rows, "after", n, name) for n in COUNTS for name in (*NAMES, "share")]
        + [held_line(rows, "picks", COUNTS[0], "share")]
    )
    print_gains(rows_of(GAINS))
    print("Missed, percent of the known messages: as told, and truly, means of each set.\n")
    print_table([("set", *(f"{n} labels" for n in COUNTS))] + [missed_line(rows, name) for name in sets_of(rows)])


def print_gains(rows):
    """Print what labels gain, of many draws."""
    print(f"Gains of F1 by labels: mean, percent of the draws that lose more than {MOST_LOST}, and the worst draw.\n")
    lines = [("set", "open", "draws", *(f"{n} labels" for n in COUNTS_OF_GAINS), "all F1")]
    for name, share in [*itertools.product(sets_of(rows), SHARES), (None, None)]:
        chosen = [row for row in rows if name in (None, row["set"]) and share in (None, row["share"])]
        of_each = [[row for row in chosen if row["labels"] == n] for n in COUNTS_OF_GAINS]
        gains = [np.array([np.subtract(row["learned"], row["trained"]) for row in of]) for of in (*of_each, chosen)]
        cells = (
            f"{gain[:, 0].mean():+.2f}, {100 * np.mean(gain[:, 0] < -MOST_LOST):.1f}, {gain[:, 0].min():+.1f}"
            for gain in gains[:-1]
        )
        share = f"{share:.0%}" if share else ""
        lines.append((name or "all", share, str(len(of_each[0])), *cells, f"{gains[-1][:, 1].mean():+.2f}"))
    print_table(lines)


def sets_of(rows):
    """Names of the sets, each once."""
    return list(dict.fromkeys(row["set"] for row in rows))


def missed_line(rows, name):
    """Told and true misses of a set."""
    cells = []
    for n in COUNTS:
        found = np.array([row["missed"] for row in rows if row["set"] == name and row["labels"] == n])
        cells.append(" / ".join(f"{100 * share:.0f}" for share in found.mean(axis=0)))
    return name, *cells


def f1_line(rows, name, share, title="all"):
    """Means of one set and share, or of all."""
    chosen = [row for row in rows if name in (None, row["set"]) and share in (None, row["share"])]
    trained, learned, told = (np.array([row[way] for row in chosen]) for way in ("trained", "learned", "told"))
    gain, of_told = learned - trained, told - trained
    return (
        *(name or title, f"{share:.0%}" if share else "", f"{trained[:, 0].mean():.1f}"),
        *(f"{mean:+.2f}" for mean in gain.mean(axis=0)),
        *(f"{100 * np.mean(gain[:, 0] < -MOST_LOST):.0f}", f"{gain[:, 0].min():+.1f}"),
        *(f"{mean:+.2f}" for mean in of_told.mean(axis=0)),
        f"{of_told[:, 0].min():+.1f}",
    )


def held_line(rows, when, n, name):
    """How far one figure is off, and whether it holds."""
    chosen = [row for row in rows if row["labels"] == n]
    mean, low, high, true = np.array([row[when][name] for row in chosen]).T
    holds, sets = (low <= true) & (true <= high), np.array([row["set"] for row in chosen])
    worst = min(holds[sets == one].mean() for one in np.unique(sets))
    shares = 100 * (mean - true).mean(), 100 * (high - low).mean(), 100 * holds.mean(), 100 * worst
    return when, str(n) if when == "after" else "", name, f"{shares[0]:+.1f}", *(f"{part:.0f}" for part in shares[1:])


if __name__ == "__main__":
    main()
