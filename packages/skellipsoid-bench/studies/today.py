"""What people use today, beside the package, on the same texts and the same embeddings.

Each case takes a share of the classes of a data set as known, and some training texts of each. A method sees these
texts and labels, and nothing else. The test rows, those of other classes open, judge it; they are read for the final
table only. Embeddings are those of all-MiniLM-L6-v2, of unit length, for every method that takes some.

A method that has only a score gets the threshold that rejects a share of its known training texts, each scored by
a model without its fold (five folds). ``choose`` compares shares and settings on development rows, the open ones among
them; ``SHARES`` of ``today_methods.py`` keeps the best: open texts that a user does not have helped the others, not the
package.

    python studies/features.py --data-home ../../../shared/data
    python studies/today.py choose --data-home ../../../shared/data
    python studies/today.py sklearn --data-home ../../../shared/data
    python studies/today.py report > results/today.rst

In place of ``sklearn``: ``skellipsoid``, ``detectors``, ``router``, ``setfit``. The last three run in environments of
their own: ``pip install -c constraints.txt -e . -e packages/skellipsoid-runtime -r
environments/NAME.txt``. An interrupted run goes on.
"""

import argparse
import contextlib
import functools
import itertools
import json
import re
import time
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from duplicates import table
from features import embedded, known_classes, read
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize
from today_methods import FOLDS, METHODS, OPEN, SIZES, Case, Texts, share_of

import skellipsoid
from skellipsoid.metrics import open_set_auroc, open_set_f1_score

RESULTS = Path(__file__).parents[1] / "results" / "today.jsonl"
SETS = {"banking": "Banking77", "stackoverflow": "StackOverflow", "assistant": "Shipped corpus"}
RATIOS = (0.25, 0.5)
#: Training texts of each class that the shipped corpus has.
MOST = {"assistant": 24}
TRIED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
#: Draws of the runs, and the one that chooses shares and settings.
SEEDS, CHOICE = (0, 1, 2), 3
#: Texts that are answered one by one, for the time of an answer. Times are of the processor: the machine was busy.
TIMED = 30


def texts_of(name, subset, data_home):
    """Texts and labels of one part of a data set."""
    words = np.asarray(read(name, subset, data_home).data, dtype=object)
    vectors, target = embedded(name, subset, data_home)
    return Texts(words, normalize(vectors)), np.asarray(target)


def run_case(method, train, new, draw, other, shares):
    """Fit a method to some texts of the known classes, and judge it on new texts, at each share.

    Parameters
    ----------
    method : str
    train, new : (Texts, labels)
    draw : (known classes, texts of each class, seed)
    other : Texts
        Open examples, of another data set.
    shares : sequence of float

    Returns
    -------
    list of dict
    """
    (texts, y), (new_texts, y_new) = train, new
    known, size, seed = draw
    known = np.sort(known)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in known])
    texts, codes = texts.take(rows), np.searchsorted(known, y[rows])
    truth = np.where(np.isin(y_new, known), np.searchsorted(known, y_new).clip(max=len(known) - 1), OPEN)
    spec, case = METHODS[method], Case(seed, size, other)
    start = time.process_time()
    model = spec.make(case).fit(texts, codes)
    held_out = None
    if spec.threshold == "share":
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(codes, codes))
        # SetFit takes minutes a model: a fifth of the texts stands for all.
        folds = folds[:1] if spec.group == "setfit" else folds
        parts = [spec.make(case).fit(texts.take(rest), codes[rest]) for rest, _ in folds]
        of_folds = zip(parts, folds, strict=True)
        held_out = np.concatenate([part.answers(texts.take(left))[1] for part, (_, left) in of_folds])
    seconds = time.process_time() - start
    if spec.group == "setfit":
        seconds = model.seconds + sum(part.seconds for part in parts)
    labels, scores = model.answers(new_texts)
    start = time.process_time()
    for row in range(TIMED):
        model.answers(new_texts.take([row]))
    alone = (time.process_time() - start) / TIMED
    found = {"n_train": len(rows), "seconds": round(seconds, 3), "ms": round(1000 * alone, 3)}
    lines = []
    for share in shares if spec.threshold == "share" else [None]:
        threshold = spec.threshold if held_out is None else float(np.quantile(held_out, share))
        lines.append(judge(labels, scores, threshold, truth, np.arange(len(known))) | {"share": share} | found)
    return lines


def judge(labels, scores, threshold, truth, classes):
    """Figures of one fit, in percent."""
    answers, is_open = np.where(scores < threshold, OPEN, labels), truth == OPEN
    wrong = (answers != truth) & (answers != OPEN)
    shares = {
        "f1": open_set_f1_score(truth, answers, labels=classes, zero_division=0),
        "auroc": open_set_auroc(truth, scores, labels=classes),
        "rejected": np.mean(answers[~is_open] == OPEN),
        "wrong": np.mean(wrong[~is_open]),
        "noticed": np.mean(answers[is_open] == OPEN),
    }
    return {name: round(100 * float(share), 2) for name, share in shares.items()}


def cases(names, sizes, ratios, data_home, subset):
    """Every case without its seed: the data set, its parts, and open examples of another one."""
    parts = {name: [texts_of(name, part, data_home) for part in ("train", subset)] for name in SETS}
    foreign = {name: parts["banking" if name == "assistant" else "assistant"][0][0] for name in SETS}
    order = np.random.default_rng(0).permutation
    foreign = {name: texts.take(order(len(texts.words))) for name, texts in foreign.items()}
    for size, name, ratio in itertools.product(sizes, names, ratios):
        if size <= MOST.get(name, size):
            yield name, ratio, size, *parts[name], foreign[name]


def known_of(name, ratio, seed, train, data_home):
    """Known classes: those of the literature's protocol where there is one."""
    if name in ("banking", "stackoverflow"):
        return known_classes(name, ratio, seed, data_home)
    labels = np.unique(train[1])
    return np.random.RandomState(seed).choice(labels, round(len(labels) * ratio), replace=False)


def choose(options):
    """Print the mean F1 on development rows of every share, by method and texts per class."""
    methods = options.methods or [name for name, spec in METHODS.items() if spec.group in options.groups]
    print(f"{'shares':30}", *TRIED)
    for size in options.sizes:
        found = {method: [] for method in methods}
        for name, ratio, _, train, dev, other in cases(SETS, [size], RATIOS, options.data_home, "dev"):
            draw = (known_of(name, ratio, CHOICE, train, options.data_home), size, CHOICE)
            for method in methods:
                found[method].append([line["f1"] for line in run_case(method, train, dev, draw, other, TRIED)])
        for method, figures in found.items():
            print(f"{method:30}", size, *(f"{mean:.1f}" for mean in np.mean(figures, axis=0)), flush=True)


def run(options):
    """Append every case of a group of methods that is not there yet."""
    found = read_lines()
    done = {(*case_of(row), row["method"]) for row in found}
    methods = options.methods or [name for name, spec in METHODS.items() if spec.group == options.task]
    for seed in options.seeds:
        for case in cases(options.sets, options.sizes, options.ratios, options.data_home, "test"):
            name, ratio, size, train, test, other = case
            draw = (known_of(name, ratio, seed, train, options.data_home), size, seed)
            for method in methods:
                if (name, ratio, size, seed, method) in done:
                    continue
                share = share_of(method, size)
                line = {"data": name, "ratio": ratio, "size": size, "seed": seed, "method": method}
                line |= run_case(method, train, test, draw, other, [share])[0]
                line["mib"] = round(installed_mib((*METHODS[method].packages, "sentence-transformers")))
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


@functools.cache
def installed_mib(packages):
    """MiB on the disk of packages and of all that they require."""
    seen, waiting, total = set(), list(packages), 0
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        total += sum(path.stat().st_size for path in _files(found))
        needed = [line for line in found.requires or [] if "extra ==" not in line]
        waiting += [re.match(r"[\w.-]+", line).group() for line in needed]
    return total / 2**20


def _files(found):
    if found.name == "skellipsoid":  # it may be an editable installation
        return list(Path(skellipsoid.__file__).parent.rglob("*.*"))
    paths = (Path(path.locate()) for path in found.files or [])
    return [path for path in paths if path.is_file()]


def read_lines():
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def report(found):
    """Print the tables: every case, the cases that SetFit has, by texts per class, and by data set."""
    found = with_auto(found)
    every = cases_of(found, AUTO)
    of_all = [name for name in (*METHODS, AUTO) if cases_of(found, name) >= every]
    draws = len({seed for *_, seed in every})
    print(f"Means of {len(every)} cases ({draws} draw{'s' * (draws > 1)} of the known classes).\n")
    print_means(found, of_all, every)
    for head in ("logistic", "differentiable"):
        few = cases_of(found, f"SetFit, {head} head")
        sizes = ", ".join(map(str, sorted({size for _, _, size, _ in few})))
        print(f"Means of the {len(few)} cases that SetFit has with its {head} head, of {sizes} texts per class:\n")
        print_means(found, [name for name in (*METHODS, AUTO) if cases_of(found, name) >= few], few)
    kept = [row for row in found if case_of(row) in every]
    print("F1 by texts per class; the shipped corpus has no more than 24.\n")
    by(kept, of_all, "size", {size: str(size) for size in SIZES})
    print("F1 by data set and known share.\n")
    places = itertools.product(SETS, RATIOS)
    by(kept, of_all, ("data", "ratio"), {place: f"{SETS[place[0]]} {place[1]:.0%}" for place in places})


AUTO = "skellipsoid, auto"


def with_auto(found):
    """All rows, and those of ``finetune="auto"``: frozen up to 24 texts of each class, from 25 on the head."""
    chosen = [row for row in found if row["method"] == f"skellipsoid, {'frozen' if row['size'] < 25 else 'head'}"]
    return found + [row | {"method": AUTO} for row in chosen]


def case_of(row):
    return row["data"], row["ratio"], row["size"], row["seed"]


def cases_of(found, method):
    return {case_of(row) for row in found if row["method"] == method}


def print_means(found, methods, kept):
    """Print each method's figures over some cases, the best F1 first, and in how many its F1 is above that of auto."""
    rows = [row for row in found if case_of(row) in kept]
    of_method = {name: [row for row in rows if row["method"] == name] for name in methods}
    f1 = {name: {case_of(row): row["f1"] for row in of_method[name]} for name in methods}
    lines = []
    for name in sorted(methods, key=lambda name: -np.mean([row["f1"] for row in of_method[name]])):
        mean = {key: np.mean([row[key] for row in of_method[name]]) for key in ("rejected", "wrong", "noticed")}
        mean |= {key: np.mean([row[key] for row in of_method[name]]) for key in ("f1", "auroc")}
        median = [np.median([row[key] for row in of_method[name]]) for key in ("seconds", "ms")]
        above = np.mean([value > f1[AUTO][case] for case, value in f1[name].items()])
        lines.append([name, *(f"{value:.1f}" for value in mean.values())])
        lines[-1] += [f"{100 * above:.0f} %", *(f"{value:.1f}" for value in median), str(of_method[name][0]["mib"])]
    heads = ["method", "known rejected", "wrong class", "open noticed", "F1", "AUROC", "better than auto"]
    table([*heads, "fit, s", "answer, ms", "installed, MiB"], lines)


def by(found, methods, keys, places):
    """Print the F1 of each method by one or two keys of a case."""
    keys = (keys,) if isinstance(keys, str) else keys
    lines = []
    for name in methods:
        cells = {place: [] for place in places}
        for row in found:
            place = tuple(row[key] for key in keys)
            if row["method"] == name:
                cells[place if len(keys) > 1 else place[0]].append(row["f1"])
        lines.append((np.mean([np.mean(values) for values in cells.values()]), name, cells))
    lines.sort(reverse=True, key=lambda line: line[0])
    rows = [[name, *(f"{np.mean(values):.1f}" for values in cells.values())] for _, name, cells in lines]
    table(["method", *places.values()], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = list(dict.fromkeys(spec.group for spec in METHODS.values()))
    parser.add_argument("task", choices=("choose", "report", *groups))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--groups", nargs="+", default=["sklearn"], choices=groups, help="of choose")
    parser.add_argument("--methods", nargs="+", default=None, choices=METHODS)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, type=int)
    parser.add_argument("--ratios", nargs="+", default=RATIOS, type=float)
    parser.add_argument("--seeds", nargs="+", default=SEEDS, type=int)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".* have fewer than 10 different samples")
    {"choose": choose, "report": lambda _: report(read_lines())}.get(options.task, run)(options)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
