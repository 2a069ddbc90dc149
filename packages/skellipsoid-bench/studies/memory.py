"""What is gained by remembering messages that were labelled open: beside the same labels without a memory.

    python studies/memory.py --data-home ../../../shared/data embed
    python studies/memory.py run                       # goes on where it stopped
    python studies/memory.py report > results/memory.rst

Logs with 5, 20 and 50 % open messages; 30 or 120 random ones are labelled, the others judge. Classes of the
literature's sets: half of them are known, 30 texts each (60 of StackOverflow), and the messages are development texts.
The constants were chosen on bot 1, cards and CLINC150; the other sets judge. *Wrong*: of the labels of known messages,
one in 24 says open. The results have three draws of bots 1 and 2, and one of most others; they are of a version without
class frequencies (``frequencies.py``).
"""

import argparse
import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from features import CACHE, FETCHERS, known_classes
from line_tables import print_table
from real_lines import few, read
from sklearn.metrics import f1_score, roc_auc_score

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, learn_from_traffic
from skellipsoid._ellipsoid.changes import remember

OPEN = "-1"
RESULTS = Path(__file__).parents[1] / "results" / "memory.jsonl"
REAL = {
    "bot 1": ("sofmattress_train", "sofmattress_test"),
    "bot 2": ("curekart_train", "curekart_test"),
    "bot 3": ("carbon_train", "carbon_test"),
    "cards": ("clinc_cards_train", "clinc_cards_test_id"),
}
TEXTS = {"banking": 30, "oos": 30, "stackoverflow": 60}
SHARES, COUNTS, DRAWS, MOST_KNOWN = (0.05, 0.2, 0.5), (30, 120), 3, 1000


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("embed", "run", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/, banking/, oos/, stackoverflow/")
    parser.add_argument("--cache", type=Path, default=CACHE / "memory")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    {"embed": embed, "run": run, "report": lambda _: report()}[options.what](options)


def texts_of(options):
    """Name, training texts and labels, messages and labels of each set."""
    for name, (train, test) in REAL.items():
        messages, truth = read(f"real/{test}.csv", options)
        truth = np.where(np.isin(truth, ["NO_NODES_DETECTED", OPEN]), OPEN, truth)
        yield name, *read(f"real/{train}.csv", options), messages, truth
    for name, most in TEXTS.items():
        train, dev = (FETCHERS[name](subset=subset, data_home=options.data_home) for subset in ("train", "dev"))
        target, known = np.asarray(train.target), known_classes(name, 0.5, 0, options.data_home)
        rows = np.flatnonzero(np.isin(target, known))
        rows = rows[few(SimpleNamespace(y=target[rows]), most, np.random.default_rng(0))]
        truth = np.where(np.isin(dev.target, known), dev.target, OPEN)
        yield name, [train.data[row] for row in rows], target[rows], dev.data, truth


def embed(options):
    """Embed each set, once."""
    options.cache.mkdir(parents=True, exist_ok=True)
    for name, texts, y, messages, truth in texts_of(options):
        encoder = SupConTextEncoder(finetune="none").fit(texts, y)
        X, log = encoder.transform(texts), encoder.transform(list(messages))
        np.savez(options.cache / f"{name}.npz", X=X, y=np.asarray(y, str), log=log, truth=np.asarray(truth, str))
        print(name, X.shape, log.shape, flush=True)


def run(options):
    """Append what is not there yet."""
    done = {(row["set"], row["share"], row["labels"], row["draw"]) for row in rows_of()}
    for name in (*REAL, *TEXTS):
        arrays = np.load(options.cache / f"{name}.npz")
        clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(arrays["X"], arrays["y"])
        for share in SHARES:
            for draw in range(options.draws):
                log, truth = drawn(arrays["log"], arrays["truth"], share, np.random.default_rng(draw))
                for n in COUNTS:
                    if (name, share, n, draw) not in done:
                        row = {"set": name, "share": share, "labels": n, "draw": draw}
                        keep(row | judged(clf, log, truth, n))


def drawn(log, truth, share, rng):
    """Draw a log with this share of open messages."""
    known, opened = (rng.permutation(np.flatnonzero(rows)) for rows in (truth != OPEN, truth == OPEN))
    n_known = min(len(known), MOST_KNOWN, int(len(opened) * (1 - share) / share))
    rows = rng.permutation(np.append(known[:n_known], opened[: round(n_known * share / (1 - share))]))
    return log[rows], truth[rows]


def judged(clf, log, truth, n):
    """Both kinds of F1 and AUROC as trained, with labels alone, with a memory, and with a memory and wrong labels."""
    labels = np.full(len(truth), None, dtype=object)
    labels[:n] = truth[:n]
    known = np.flatnonzero(truth[:n] != OPEN)
    wrong = labels.copy()
    wrong[known[12::24]] = OPEN
    found = {"trained": figures(clf, log, truth, n)}
    deduction = remember.DEDUCTION
    for name, given, value in (
        ("alone", labels, 0.0),
        ("memory", labels, deduction),
        ("wrong alone", wrong, 0.0),
        ("wrong memory", wrong, deduction),
    ):
        remember.DEDUCTION = value
        found[name] = figures(learn_from_traffic(clf, log, given), log, truth, n)
    remember.DEDUCTION = deduction
    return found


def figures(clf, log, truth, n):
    """F1 of what occurs in the truth and open, F1 of truth or answers, AUROC; percent."""
    answers, scores, truth = clf.predict(log[n:]).astype(str), clf.score_samples(log[n:]), truth[n:]
    occurring = np.unique(np.append(truth, OPEN))
    f1 = (f1_score(truth, answers, average="macro", labels=labels, zero_division=0) for labels in (occurring, None))
    return [round(100 * float(value), 3) for value in (*f1, roc_auc_score(truth != OPEN, scores))]


def keep(row):
    """Append one result."""
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row["set"], row["share"], row["labels"], row["draw"], flush=True)


def rows_of():
    """Read the results that are there."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def report():
    """Print a table for each number of labels."""
    rows = rows_of()
    for n in COUNTS:
        print(f"{n} labels:\n")
        print_table(
            [("set", "open", "F1", "F1 gain", "worst", "all F1 gain", "AUROC", "AUROC gain", "wrong, F1 gain")]
            + [line(rows, name, share, n) for name in (*REAL, *TEXTS) for share in SHARES]
            + [line(rows, None, None, n)]
        )


def line(rows, name, share, n):
    """Means of the draws of one set and share, or of all."""
    chosen = [
        row for row in rows if row["labels"] == n and name in (None, row["set"]) and share in (None, row["share"])
    ]
    without, gain, wrong = (
        np.array([np.subtract(row[one], row[other] if other else 0) for row in chosen])
        for one, other in (("alone", None), ("memory", "alone"), ("wrong memory", "wrong alone"))
    )
    mean, of_wrong = gain.mean(axis=0), wrong.mean(axis=0)
    return (
        *(name or "all", f"{share:.0%}" if share else "", f"{without[:, 0].mean():.1f}", f"{mean[0]:+.1f}"),
        *(f"{gain[:, 0].min():+.1f}", f"{mean[1]:+.1f}", f"{without[:, 2].mean():.1f}", f"{mean[2]:+.1f}"),
        f"{of_wrong[0]:+.1f}",
    )


if __name__ == "__main__":
    main()
