"""Messages of real users and real open texts: the package and what people use today, on the same texts.

Each method answers as trained, with the proportion of open messages told, and with 30 or 120 labelled messages of the
log.

    python studies/real_lines.py --data-home ../../../shared/data embed
    python studies/real_messages.py --data-home ../../../shared/data cases
    python studies/real_messages.py --data-home ../../../shared/data run       # goes on where it stopped
    python studies/real_messages.py report > results/real_messages.rst

``run --methods semantic-router`` needs the environment of ``environments/router.txt``. ``real_peers.py`` runs SetFit
and AutoIntent in environments of their own, on the files that ``cases`` writes. All get the same features (three layers
of all-MiniLM-L6-v2, frozen); SetFit trains the text model itself.

A method that has a score and no use for messages gets a threshold: as trained the one that rejects the proportion of
held-out training texts of ``today_methods.py``; with the open proportion told, the one that rejects as much of the log;
with labelled messages, the one with the best F1 of these messages. Figures are of the messages that were not labelled.
Seconds and memory: what a process takes that embeds the training texts, learns them, and answers all messages.
"""

import argparse
import itertools
import json
import multiprocessing
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import OPEN, cases_of, read, real_cases, third_bot
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.model_selection import StratifiedKFold
from today_methods import FOLDS, METHODS, SIZES, Case, Texts, share_of

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    choose_to_label,
    learn_from_traffic,
    set_operating_point,
)
from skellipsoid.baselines import MahalanobisClassifier
from skellipsoid.metrics import open_set_f1_score

HOME = CACHE / "real_messages"
RESULTS = Path(__file__).parents[1] / "results" / "real_messages.jsonl"
CASES = {
    "real-bot1": "Bot 1",
    "real-bot1subset": "Bot 1, reduced training set",
    "real-bot1v1": "Bot 1, messages of version 1",
    "real-bot2": "Bot 2",
    "real-bot3": "Bot 3",
    "real-cardsid": "Cards, open texts of other card intents",
    "real-cardsood": "Cards, open texts of other domains",
    "real-clinc50": "CLINC150, 50 texts a class, its own open texts",
    "real-clinc100": "CLINC150, 100 texts a class, its own open texts",
}
#: Numbers of labelled messages, the last for the bots; draws of them, fewer for the large cases.
COUNTS, BOTS, DRAWS, DRAWS_OF_LARGE, LARGE = (30, 120), ("real-bot1", "real-bot2", "real-bot3"), 10, 2, 5000
WITH_SCORES = ("logistic regression", "OneClassSVM, per class", "semantic-router")
MAHALANOBIS, OPEN_CLASS = "relative Mahalanobis", "logistic regression, open as a class"


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cases", "run", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/ and oos/")
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines", help="features of real_lines.py")
    parser.add_argument("--methods", nargs="+", default=["skellipsoid", *WITH_SCORES[:2], MAHALANOBIS, OPEN_CLASS])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    HOME.mkdir(parents=True, exist_ok=True)
    {"cases": write_cases, "run": run, "report": lambda _: report()}[options.what](options)


def all_cases(options):
    """Name, training texts, messages (open ones with the label OPEN)."""
    for name, train, known, opened in itertools.chain(third_bot(options), real_cases(options)):
        yield name, train, joined(known, opened)
        if name == "real-bot1":
            # The texts of version 1 are those of version 2; only labels were mended.
            vectors = {text: x for part in (known, opened) for text, x in zip(part.texts, part.X, strict=True)}
            texts, labels = first_version(options)
            X = np.stack([vectors[text] for text in texts])
            y = np.where(labels == "NO_NODES_DETECTED", OPEN, labels)
            yield "real-bot1v1", train, train._replace(texts=texts, X=X, y=y)


def first_version(options):
    """Texts and labels of the messages as first published."""
    texts, labels = read("real/sofmattress_test_v1.csv", options)
    return np.array(texts, dtype=object), np.array(labels)


def joined(known, opened):
    """Known and open messages in one shuffled table."""
    rows = np.random.default_rng(0).permutation(len(known.y) + len(opened.y))
    labels = np.append(known.y.astype(object), np.full(len(opened.y), OPEN)).astype(str)
    texts = np.append(known.texts, opened.texts)
    return known._replace(texts=texts, X=np.concatenate([known.X, opened.X]), y=labels).at(rows)


def labelled(messages, m, draw):
    """Rows of the messages that are labelled."""
    return np.random.default_rng(1000 * m + draw).permutation(len(messages.y))[:m]


def counts_of(name):
    """Numbers of labelled messages of a case."""
    return COUNTS if name in BOTS else COUNTS[:-1]


def draws_of(train):
    """Draws of labelled messages."""
    return DRAWS if len(train.y) < LARGE else DRAWS_OF_LARGE


def write_cases(options):
    """Write texts, labels, features and labelled rows for the methods that run elsewhere."""
    for name, train, messages in cases_of(options.cases, all_cases(options)):
        drawn = {m: [labelled(messages, m, draw).tolist() for draw in range(draws_of(train))] for m in counts_of(name)}
        sizes = np.unique(train.y, return_counts=True)[1]
        case = {
            "train": [train.texts.tolist(), train.y.tolist()],
            "messages": [messages.texts.tolist(), messages.y.tolist()],
            "labelled": drawn,
            "rejected": share_of("logistic regression", _nearest_size(sizes.mean())),
        }
        (HOME / f"{name}.json").write_text(json.dumps(case), encoding="utf-8")
        np.save(HOME / f"{name}.npy", np.concatenate([train.X, messages.X]))


def run(options):
    """Append what is not there yet; answers of ``real_peers.py``, too."""
    for name, train, messages in cases_of(options.cases, all_cases(options)):
        done = {(row["method"], row["given"], row["draw"]) for row in rows_of() if row["case"] == name}
        counts = counts_of(name)
        found = {
            method: _answers(method, train, messages, counts, done)
            for method in options.methods
            if any((method, str(m), 0) not in done for m in counts)
        }
        costs = {
            method: _measured(method, train, messages)
            for method in found
            if name in BOTS and (method, "fitted", 0) not in done
        }
        for place in sorted((HOME / "answers").glob(f"{name}.*.json")):
            method = place.name.split(".")[1]
            answers = json.loads(place.read_text(encoding="utf-8"))
            found[method] = _of_peer(method, answers, train, messages, counts)
            costs[method] = answers[0]["cost"] if answers[0]["given"] == "fitted" else {}
        for method, answers in found.items():
            with RESULTS.open("a", encoding="utf-8") as file:
                for shown, given, draw, rows, labels in answers:
                    if (shown, given, draw) in done:
                        continue
                    line = {"case": name, "method": shown, "given": given, "draw": draw}
                    line |= judged(messages.y, labels, rows) | (costs.get(shown, {}) if given == "fitted" else {})
                    file.write(json.dumps(line) + "\n")
                    file.flush()
            print(name, method, flush=True)


def _measured(method, train, messages):
    """Processor seconds and memory of a process that embeds, learns and answers."""
    if method == OPEN_CLASS:  # as logistic regression
        return {}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_cost, method, train, messages).result()


def _cost(method, train, messages):
    warnings.simplefilter("ignore")
    start = time.process_time()
    encoder = SupConTextEncoder(finetune="none", random_state=0)
    train = train._replace(X=encoder.fit_transform(list(train.texts), train.y))
    next(iter(_answers(method, train, messages._replace(X=encoder.transform(list(messages.texts))), ())))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(time.process_time() - start, 1), "mib": round(memory)}


def _of_peer(method, answers, train, messages, counts):
    for answer in answers:
        if "scores" in answer:
            yield from _at_thresholds(method, train, messages, counts, *map(answer.get, ("known", "scores", "line")))
        else:
            rows = np.array(answer["rows"], dtype=int)
            yield answer["method"], answer["given"], answer["draw"], rows, np.array(answer["answers"])


def judged(truth, answers, without):
    """Figures in percent over the messages that were not labelled."""
    rest = np.setdiff1d(np.arange(len(truth)), without)
    truth, answers = truth[rest], answers[rest].astype(str)
    is_open = truth == OPEN
    shares = {
        "right": np.mean(answers[~is_open] == truth[~is_open]),
        "noticed": np.mean(answers[is_open] == OPEN),
        "mcc": matthews_corrcoef(truth, answers),
        # Of open and the classes that occur; and of those that are answered, too (scikit-learn's default).
        "f1": f1_score(truth, answers, labels=np.unique(truth), average="macro"),
        "f1_answered": f1_score(truth, answers, average="macro"),
    }
    return {name: round(100 * float(share), 2) for name, share in shares.items()}


def _answers(method, train, messages, counts, done=()):
    """Yield name, what was given, draw, labelled rows, and an answer for every message."""
    if method == "skellipsoid":
        yield from _ours(train, messages, counts, done)
    elif method == OPEN_CLASS:
        for m in counts:
            for draw in range(draws_of(train)):
                rows = labelled(messages, m, draw)
                y = np.append(train.y.astype(object), messages.y[rows]).astype(str)
                model = LogisticRegression(C=10, max_iter=1000).fit(np.concatenate([train.X, messages.X[rows]]), y)
                yield method, str(m), draw, rows, model.predict(messages.X)
    else:
        yield from _scored(method, train, messages, counts)


def _ours(train, messages, counts, done):
    """As fitted; the line of the share; labelled messages, drawn at random and chosen by the package."""
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(train.X, train.y)
    none, name = np.array([], dtype=int), "skellipsoid"
    yield name, "fitted", 0, none, clf.predict(messages.X)
    share = float(np.mean(messages.y == OPEN))
    yield name, "share", 0, none, set_operating_point(clf, messages.X, open_share=share).predict(messages.X)
    set_operating_point(clf)
    for m in counts:
        for draw in range(draws_of(train)):
            if (f"{name}, messages chosen by review", str(m), draw) in done:
                continue
            chosen = choose_to_label(clf, messages.X, m, random_state=draw)
            ways = {
                name: (labelled(messages, m, draw), None),
                f"{name}, messages chosen by review": tuple(chosen.values()),
            }
            for way, (rows, weights) in ways.items():
                labels, given = np.full(len(messages.y), None, dtype=object), None
                labels[rows] = messages.y[rows]
                if weights is not None:
                    given = np.ones(len(messages.y))
                    given[rows] = weights
                learned = learn_from_traffic(clf, messages.X, labels, sample_weight=given)
                yield way, str(m), draw, rows, learned.predict(messages.X)


def _scored(method, train, messages, counts):
    """Answers of a method with a score, at the threshold of each setting."""
    classes, codes = np.unique(train.y, return_inverse=True)
    if method == MAHALANOBIS:
        clf = MahalanobisClassifier(covariance="relative", threshold="auto", open_label=OPEN, random_state=0)
        clf = clf.fit(train.X, train.y)
        known, scores, line = clf.predict_known(messages.X), clf.score_samples(messages.X), 0.0
    else:
        if method == "semantic-router":  # divides by the length of a row, which is 0 for texts that cannot be read
            train, messages = (rows._replace(X=_with_length(rows.X)) for rows in (train, messages))
        size = _nearest_size(len(codes) / len(classes))
        make, case = METHODS[method].make, Case(0, size, None)
        texts = Texts(train.texts, train.X)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(codes, codes)
        parts = [(make(case).fit(texts.take(rest), codes[rest]), texts.take(left)) for rest, left in folds]
        line = np.quantile(np.concatenate([part.answers(left)[1] for part, left in parts]), share_of(method, size))
        known, scores = make(case).fit(texts, codes).answers(Texts(messages.texts, messages.X))
        known = classes[known]
    yield from _at_thresholds(method, train, messages, counts, known, scores, line)


def _with_length(X):
    """Give rows of zeros a direction."""
    return np.where(X.any(axis=1, keepdims=True), X, X.shape[1] ** -0.5).astype(X.dtype)


def _nearest_size(n_texts):
    """Give the number of texts of a class for which ``today_methods.py`` has a proportion."""
    return min(SIZES, key=lambda n: abs(n - n_texts))


def _at_thresholds(method, train, messages, counts, known, scores, line):
    """Answers as trained, with the open proportion told, and with labelled messages."""
    known, scores, classes = np.asarray(known, dtype=object), np.asarray(scores), np.unique(train.y)
    none, share = np.array([], dtype=int), np.mean(messages.y == OPEN)
    yield method, "fitted", 0, none, np.where(scores < line, OPEN, known)
    yield method, "share", 0, none, np.where(scores < np.quantile(scores, share), OPEN, known)
    for m in counts:
        for draw in range(draws_of(train)):
            rows = labelled(messages, m, draw)
            best = _best_line(scores[rows], known[rows], messages.y[rows], classes)
            yield method, str(m), draw, rows, np.where(scores < best, OPEN, known)


def _best_line(scores, known, truth, classes):
    """Mean of the lines with the best F1 of labelled messages."""
    order = np.sort(scores)
    lines = np.concatenate([[order[0] - 1e-9], (order[1:] + order[:-1]) / 2, [order[-1] + 1e-9]])
    f1 = [
        open_set_f1_score(truth, np.where(scores < t, OPEN, known), labels=classes, open_label=OPEN, zero_division=0)
        for t in lines
    ]
    return float(np.mean(lines[np.isclose(f1, np.max(f1))]))


def rows_of():
    """Read the results."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


#: From the predictions that the collection publishes, version 1 of the messages: in-scope accuracy, out-of-scope
#: recall, Matthews correlation, at thresholds .3 and .5; and the best Matthews correlation of all thresholds.
PLATFORMS = {
    "Dialogflow": ((72.7, 56.6, 61.6), (67.1, 72.9, 62.5), 63.8),
    "LUIS": ((47.2, 92.2, 55.7), (37.7, 95.8, 49.9), 58.1),
    "Rasa (DIET)": ((68.4, 10.2, 44.6), (64.1, 39.8, 49.3), 53.2),
    "Haptik": ((65.4, 66.9, 58.8), (53.2, 81.9, 55.0), 59.9),
    "BERT, fine-tuned": ((73.2, 7.8, 47.2), (73.2, 30.7, 53.8), 63.5),
}
GIVEN = {
    "fitted": "as trained",
    "share": "proportion told",
    "30": "30 labelled",
    "60": "60 labelled",
    "120": "120 labelled",
}
EARLIER = """in percent; means of the draws. Of an earlier version: before class frequencies and the memory of open
messages.
"""
EARLIER_PEERS = "Rows without the last figure are of an earlier version of this study, which did not count it."
FIGURES = ("right", "noticed", "mcc", "f1", "f1_answered")


def report():
    """Print a table for each case."""
    found = rows_of()
    for case, title in CASES.items():
        rows = [row for row in found if row["case"] == case]
        if not rows:
            continue
        print(f"{title}\n{'-' * len(title)}\n")
        is_new = any("f1_answered" in row for row in rows)
        print(
            "In-scope accuracy / out-of-scope recall / Matthews correlation / F1 over open and the classes that occur"
        )
        if is_new:
            print("/ F1 over all that occur or are answered (scikit-learn's default), percent; means of the draws.")
            if not all("f1_answered" in row for row in rows):
                print(EARLIER_PEERS)
            print()
        else:
            print(EARLIER)
        methods = list(dict.fromkeys(row["method"] for row in rows))
        given = [name for name in GIVEN if any(row["given"] == name for row in rows)]
        costs = {row["method"]: f"{row['seconds']} / {row['mib']}" for row in rows if "seconds" in row}
        lines = [["method", *map(GIVEN.get, given), *(["seconds / MiB"] if costs else [])]]
        for method in methods:
            cost = [costs.get(method, "–")] if costs else []
            lines.append([method, *(_cell(rows, method, name) for name in given), *cost])
        print_table(lines)
    title = "Platforms on bot 1, messages of version 1"
    print(f"{title}\n{'-' * len(title)}\n")
    print("In-scope accuracy / out-of-scope recall / Matthews correlation, from the predictions that the collection")
    print("publishes (repository hellohaptik/HINT3, folder preds). No threshold is known before the messages are.\n")
    lines = [["platform", "threshold .3", "threshold .5", "best Matthews correlation"]]
    for name, (low, high, best) in PLATFORMS.items():
        lines.append([name, " / ".join(map(str, low)), " / ".join(map(str, high)), str(best)])
    print_table(lines)


def _cell(rows, method, given):
    of = [row for row in rows if row["method"] == method and row["given"] == given]
    figures = [key for key in FIGURES if of and all(key in row for row in of)]
    return " / ".join(f"{np.mean([row[key] for row in of]):.1f}" for key in figures) or "–"


if __name__ == "__main__":
    main()
