"""Are hidden classes found again in the traffic? Discovered groups against KMeans and HDBSCAN on frozen features.

A share of the classes is known, the others are hidden. The classifier is fitted to the training rows of the known
classes. The traffic is drawn from the development rows of all classes and the training rows of hidden ones; no test row
is read. In *even* traffic every row has the same chance. In *uneven* traffic the r-th hidden class keeps 1 / r of its
rows, in a random order. All methods group the rows that are answered open, and are judged on those of
hidden classes.
The settings were chosen on seed 0 with ``--choose``; seed 1 is reported.

``--head`` asks what a trained head does to this (seed 0): groups of frozen features, of the features of a head, and of
the embeddings before it, which ``discover_classes`` takes. The traffic is the development rows of all classes; of the
shipped corpus also the training rows of the hidden ones.

    python studies/features.py --data-home ../../../shared/data
    python studies/discovery.py --data-home ../../../shared/data --choose     # seed 0, goes on where it stopped
    python studies/discovery.py --data-home ../../../shared/data              # seed 1, goes on where it stopped
    python studies/discovery.py --data-home ../../../shared/data --head       # seed 0, goes on where it stopped
    python studies/discovery.py --report > results/discovery.rst
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from duplicates import table
from features import FETCHERS, RATIOS, embedded, known_classes
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, discover_classes
from skellipsoid._traffic.discovery import likelihood
from skellipsoid.datasets import load_assistant_intents

RESULTS = Path(__file__).parents[1] / "results" / "discovery.jsonl"
SETS = {"stackoverflow": "StackOverflow", "banking": "Banking77", "oos": "CLINC150"}
KINDS = ("even", "uneven")
METHODS = {"discovery": "discover_classes", "kmeans": "KMeans, true number", "hdbscan": "HDBSCAN"}
#: Rows of traffic at most, in the choice and in the report.
MOST_CHOICE, MOST_REPORT = 1500, 2000
MIN_SIZE = 5
#: Candidates: factor of T, weight of the traffic in B, largest effective number of samples.
SETTINGS = list(itertools.product((2.0, 3.0, 4.0), (0.5,), (10.0, 20.0, 40.0)))
#: What is grouped behind a head, and the sets of that study.
GROUPED = {"frozen": "frozen features", "after": "features of a head", "before": "embeddings before the head"}
EMBEDDINGS = {}
HEAD_SETS = {"assistant": "shipped corpus", **SETS}
FIGURES = {"ari": "adjusted Rand", "nmi": "NMI", "found": "classes found", "groups": "groups", "noise": "noise"}


def main():
    """Run what is not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--choose", action="store_true", help="run the candidates of the settings on seed 0")
    parser.add_argument("--head", action="store_true", help="compare frozen features with those of a trained head")
    parser.add_argument("--report", action="store_true", help="print the tables of what is there")
    options = parser.parse_args()
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    warnings.filterwarnings("ignore", message="X has outliers")
    if options.head:
        study_heads(found, options.data_home)
        return
    done = {(row["data"], row["ratio"], row["seed"], row["kind"]) for row in found}
    ratios, seed, kinds = ((0.25,), 0, ("even",)) if options.choose else (RATIOS, 1, KINDS)
    for ratio, name in itertools.product(ratios, SETS):
        left = [kind for kind in kinds if (name, ratio, seed, kind) not in done]
        if not left:
            continue
        classifier, X, y = hide_classes(name, ratio, seed, options.data_home)
        for kind in left:
            study = choose if options.choose else judge_methods
            case = {"data": name, "ratio": ratio, "seed": seed, "kind": kind}
            lines = [json.dumps(case | line) for line in study(classifier, *draw(X, y, classifier, kind, seed))]
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


class GivenEmbeddings(SupConTextEncoder):
    """An encoder that looks embeddings up instead of computing them."""

    def _pooled(self, texts, layers=(), *, verbose=0):
        return torch.from_numpy(np.stack([EMBEDDINGS[text] for text in texts]))


def study_heads(found, data_home):
    """Group the development rows with frozen features and with a trained head."""
    done = {(row["data"], row["ratio"]) for row in found if row["kind"] == "head"}
    for ratio, name in itertools.product(RATIOS[::-1], HEAD_SETS):
        if (name, ratio) in done:
            continue
        (X, y), (X_dev, y_dev) = (texts_of(name, subset, data_home) for subset in ("train", "dev"))
        known = known_of(name, ratio, y, data_home)
        is_known = np.isin(y, known)
        if name == "assistant":  # six development rows of a class are few
            X_dev, y_dev = np.append(X_dev, X[~is_known]), np.append(y_dev, y[~is_known])
        with RESULTS.open("a", encoding="utf-8") as file:
            for finetune in ("none", "head"):
                encoder = GivenEmbeddings(finetune=finetune, random_state=0)
                pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(X[is_known], y[is_known])
                results = {"before" if finetune == "head" else "frozen": discover_classes(pipe, X_dev)}
                if finetune == "head":
                    results["after"] = discover_classes(pipe[-1], pipe[:-1].transform(X_dev), texts=X_dev)
                for method, result in results.items():
                    case = {"data": name, "ratio": ratio, "seed": 0, "kind": "head", "method": method}
                    file.write(json.dumps(case | judge_groups(result, y_dev, ~np.isin(y_dev, known))) + "\n")
                file.flush()


def texts_of(name, subset, data_home):
    """Texts and labels; the encoder gets the embeddings of the texts."""
    if name == "assistant":
        bunch = load_assistant_intents(subset=subset)
        rows = SupConTextEncoder(finetune="none", layers="last", normalize=False).fit_transform(bunch.data)
    else:
        bunch, rows = FETCHERS[name](subset=subset, data_home=data_home), embedded(name, subset, data_home).embeddings
    EMBEDDINGS.update(zip(bunch.data, rows, strict=True))
    return np.array(bunch.data, dtype=object), np.asarray(bunch.target).astype(str)


def known_of(name, ratio, y, data_home):
    """Known classes of a case, drawn here for the shipped corpus."""
    if name != "assistant":
        return known_classes(name, ratio, 0, data_home).astype(str)
    names = np.unique(y)
    return np.random.default_rng(0).choice(names, round(ratio * len(names)), replace=False)


def judge_groups(result, y, is_new):
    """Purity, the share of the new texts in a group, new classes found, and how many groups of each kind are so called.

    A class is found if one group has more than half of its texts, and more than half of the group is of it.
    """
    of_group = [np.flatnonzero(result.labels == group) for group in range(result.n_groups)]
    majority = np.array([is_new[rows].mean() > 0.5 for rows in of_group], dtype=bool)
    labels, counts = np.unique(y[is_new & (y != "-1")], return_counts=True)
    found = [
        any(2 * (y[rows] == label).sum() > max(count, len(rows)) for rows in of_group)
        for label, count in zip(labels, counts, strict=True)
    ]
    pure = sum(np.unique(y[rows], return_counts=True)[1].max() for rows in of_group)
    return {
        "purity": round(float(pure / max(1, result.sizes.sum())), 4),
        "new": int(is_new.sum()),
        "open": round(float(result.is_open[is_new].mean()), 4),
        "grouped": round(float((result.labels[is_new] >= 0).mean()), 4),
        "found": int(np.sum(found)),
        "true": int(np.sum(counts >= MIN_SIZE)),
        "groups": result.n_groups,
        "new_groups": int(majority.sum()),
        "called_new": int((~result.is_part[majority]).sum()),
        "parts": int(result.is_part[~majority].sum()),
    }


def report_heads(found):
    """Print what a head does."""
    rows = [row for row in found if row["kind"] == "head"]
    if not rows:
        return
    print("Behind a trained head (development rows, seed 0)\n" + "-" * 48 + "\n")
    lines = []
    for name, ratio, method in itertools.product(HEAD_SETS, RATIOS, GROUPED):
        for row in rows:
            if (row["data"], row["ratio"], row["method"]) == (name, ratio, method):
                lines.append([HEAD_SETS[name], f"{ratio:.0%}", GROUPED[method], *head_figures([row])])
    for method in GROUPED:
        of_method = [row for row in rows if row["method"] == method]
        lines.append([f"All {len(of_method)}", "", GROUPED[method], *head_figures(of_method)])
    headings = ["purity", "new texts", "open", "in a group", "classes found", "groups", "new groups called new"]
    table(["data", "known", "grouped by", *headings, "others called a part"], lines)


def head_figures(rows):
    """Means of shares, and sums of counts."""
    shares = {name: np.mean([row[name] for row in rows]) for name in ("purity", "open", "grouped")}
    names = ("new", "found", "true", "groups", "called_new", "new_groups", "parts")
    total = {name: sum(row[name] for row in rows) for name in names}
    return [
        f"{shares['purity']:.2f}",
        str(total["new"]),
        f"{shares['open']:.0%}",
        f"{shares['grouped']:.0%}",
        f"{total['found']} of {total['true']}",
        str(total["groups"]),
        f"{total['called_new']} of {total['new_groups']}",
        f"{total['parts']} of {total['groups'] - total['new_groups']}",
    ]


def hide_classes(name, ratio, seed, data_home):
    """Fit a classifier to the known classes; give it with all rows that traffic can be drawn from."""
    train, dev = (embedded(name, subset, data_home) for subset in ("train", "dev"))
    is_known = np.isin(train.target, known_classes(name, ratio, seed, data_home))
    classifier = EllipsoidOpenSetClassifier(random_state=seed)
    classifier.fit(normalize(train.embeddings[is_known]), train.target[is_known])
    X = np.concatenate([train.embeddings[~is_known], dev.embeddings])
    return classifier, normalize(X), np.concatenate([train.target[~is_known], dev.target])


def draw(X, y, classifier, kind, seed):
    """Draw traffic."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    if kind == "uneven":
        hidden = rng.permutation(np.setdiff1d(y, classifier.classes_))
        ranks = dict(zip(hidden, range(1, len(hidden) + 1), strict=True))
        counts = {label: -(-np.sum(y == label) // rank) for label, rank in ranks.items()}
        kept = []
        for row in order:
            counts[y[row]] = counts.get(y[row], len(y)) - 1
            if counts[y[row]] >= 0:
                kept.append(row)
        order = np.array(kept)
    order = order[: MOST_CHOICE if seed == 0 else MOST_REPORT]
    return X[order], y[order]


def judge_methods(classifier, X, y):
    """Figures of each method on the rows that are answered open."""
    start = time.perf_counter()
    found = discover_classes(classifier, X, min_size=MIN_SIZE)
    seconds = time.perf_counter() - start
    is_open, hidden = found.is_open, ~np.isin(y, classifier.classes_)
    judged = hidden[is_open]
    labels, counts = np.unique(y[is_open][judged], return_counts=True)
    shared = {"rows": len(X), "open": int(is_open.sum()), "hidden": int(judged.sum())}
    shared["true"] = int((counts >= MIN_SIZE).sum())
    majority = [np.mean(hidden[(found.labels == group)]) > 0.5 for group in range(found.n_groups)]
    called = {"new_groups": int(np.sum(majority)), "called_new": int(np.sum(~found.is_part[majority]))}
    yield shared | judge("discovery", found.labels[is_open], y[is_open], judged, seconds) | called
    start = time.perf_counter()
    groups = KMeans(len(labels), n_init=3, random_state=0).fit_predict(X[is_open])
    yield shared | judge("kmeans", groups, y[is_open], judged, time.perf_counter() - start)
    start = time.perf_counter()
    groups = HDBSCAN(min_cluster_size=MIN_SIZE, copy=True).fit_predict(X[is_open])
    yield shared | judge("hdbscan", groups, y[is_open], judged, time.perf_counter() - start)


def judge(method, groups, y, judged, seconds):
    """Figures of groups; noise is a group of its own for adjusted Rand and NMI, and finds no class.

    A hidden class is found if one group has more than half of its rows, and more than half of the group is of it.
    """
    labels, counts = np.unique(y[judged], return_counts=True)
    found = 0
    for label in labels[counts >= MIN_SIZE]:
        mine = groups[y == label]
        group = np.bincount(mine[mine >= 0], minlength=1).argmax()
        shared = np.sum(mine == group)
        found += bool(2 * shared > len(mine) and 2 * shared > np.sum(groups == group))
    return {
        "method": method,
        "ari": round(float(adjusted_rand_score(y[judged], groups[judged])), 4),
        "nmi": round(float(normalized_mutual_info_score(y[judged], groups[judged])), 4),
        "found": round(found / max(1, int(np.sum(counts >= MIN_SIZE))), 4),
        "groups": len(np.unique(groups[groups >= 0])),
        "noise": round(float(np.mean(groups[judged] < 0)), 4),
        "seconds": round(seconds, 1),
    }


def choose(classifier, X, y):
    """Figures of each candidate of the settings."""
    for settings in SETTINGS:
        likelihood.INFLATION, likelihood.TRAFFIC_WEIGHT, likelihood.MOST_EVIDENCE = settings
        yield {"settings": settings} | next(judge_methods(classifier, X, y))


def report(found):
    """Print the figures of seed 1 by case, their means, and the choice on seed 0."""
    for kind in KINDS:
        rows = [row for row in found if row["seed"] == 1 and row["kind"] == kind]
        if not rows:
            continue
        print(f"Traffic: {kind}\n{'-' * (9 + len(kind))}\n")
        lines = []
        for name, ratio, method in itertools.product(SETS, RATIOS, METHODS):
            for row in rows:
                if (row["data"], row["ratio"], row["method"]) == (name, ratio, method):
                    lines.append([SETS[name], f"{ratio:.0%}", METHODS[method], *figures([row]), str(row["true"])])
        for method in METHODS:
            of_method = [row for row in rows if row["method"] == method]
            true = f"{np.mean([row['true'] for row in of_method]):.0f}"
            lines.append([f"Mean of {len(of_method)}", "", METHODS[method], *figures(of_method), true])
        table(["data", "known", "method", *FIGURES.values(), "seconds", "true groups"], lines)
        ours = [row for row in rows if "new_groups" in row]
        new, called = (sum(row[key] for row in ours) for key in ("new_groups", "called_new"))
        print(f"Of {new} groups that consist mostly of hidden classes, {called} are called new.\n")
    report_heads(found)
    chosen = [row for row in found if "settings" in row]
    if chosen:
        print("Choice of the settings (seed 0, mean of the three sets)\n" + "-" * 55 + "\n")
        lines = []
        for settings in SETTINGS:
            rows = [row for row in chosen if tuple(row["settings"]) == settings]
            true = f"{np.mean([row['true'] for row in rows]):.0f}"
            lines.append([*(f"{value:g}" for value in settings), *figures(rows), true])
        headings = ["factor of T", "weight of traffic", "most evidence"]
        table([*headings, *FIGURES.values(), "seconds", "true groups"], lines)


def figures(rows):
    """Means of the figures."""
    means = {name: np.mean([row[name] for row in rows]) for name in (*FIGURES, "seconds")}
    shares = [f"{means[name]:.2f}" for name in ("ari", "nmi")] + [f"{means['found']:.0%}", f"{means['groups']:.0f}"]
    return [*shares, f"{means['noise']:.1%}", f"{means['seconds']:.0f}"]


if __name__ == "__main__":
    main()
