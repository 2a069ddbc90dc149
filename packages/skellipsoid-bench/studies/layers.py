r"""Which layers of the text model to read, how, and with which weight: F1, AUROC and closed-set accuracy of each way.

``home``: classes left out of Banking77, CLINC150, StackOverflow and the package's corpus, on development rows; the
choice is theirs. ``real``: two bots and cards; they only check. Rows that are there are not computed again.

    python studies/layers.py --data-home ../../../shared/data embed
    python studies/layers.py home
    python studies/layers.py real
    python studies/layers.py head
    python studies/layers.py report > results/layers.rst

Ways: ``last``, the sentence vector alone; ``add:0,3:.4``, means after layers 0 and 3, centred, of length .4, added to
a vector of length 1, and unit length again; ``plain``: not centred; ``other``: centred on texts of another corpus;
``linear``: divided by their mean length instead of their own; ``beside``: as further features; ``random``: as
``beside``, in 128 random directions.
"""

import argparse
import itertools
import json
import warnings
from typing import NamedTuple

import numpy as np
import torch
from features import CACHE
from line_tables import print_table
from real_lines import FILES, few, read
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score

HOME, OPEN = CACHE / "layers", "~open"
#: Training texts of a class, for speed.
MOST = {"banking": 40, "oos": 40, "stackoverflow": 100}
MOST_OF_HEAD = {"banking": 80, "oos": 100, "stackoverflow": 150}
WAYS = (
    *("last", "add:0,3:.3", "add:0,3:.4", "add:0,3:.5", "add:0,4:.3", "add:3:.3", "add:3:.5", "add:3:.7", "add:0:.5"),
    *("add:2:.5", "add:4:.5", "add:4:.7", "add:1,4:.3", "add:2,4:.3", "add:2,4:.4", "add:0,2,4:.2", "add:0,2,4:.3"),
    *("add:2,3,4:.3", "linear:0,3:.3", "linear:0,3:.4", "plain:0,3:.3", "plain:0,3:.7", "plain:3:.5", "plain:3:1"),
    *("other:0,3:.3", "other:3:.5", "other:3:.7", "random:0,4:.5"),
)
ABOUT = """Gain over the last layer alone (frozen MiniLM, which has six layers): accuracy among known samples, AUROC,
F1 as fitted and with the best limit, in points, the last with its standard error over the cases. *p*: change of the
percent of fresh known samples with a p-value of at most .1. Then the gain of best F1 by data set. Ways that did worse
on the first cases were not run on all: compare those with equal cases.
"""
MEASURES = ("acc", "auroc", "fit", "best")


class Rows(NamedTuple):
    """Means after all layers, (n_layers + 1, n_texts, width), and labels."""

    layers: np.ndarray
    y: np.ndarray

    def at(self, rows):
        """Select rows."""
        return Rows(self.layers[:, rows], self.y[rows])


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("embed", "home", "real", "head", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/, banking/, oos/, stackoverflow/")
    parser.add_argument("--ways", nargs="+", default=WAYS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    HOME.mkdir(parents=True, exist_ok=True)
    if options.what == "embed":
        embed(options)
    elif options.what == "report":
        report()
    elif options.what == "head":
        run_heads()
    else:
        run(options)


def embed(options):
    """Keep the means after all layers of every file."""
    backbone = SupConTextEncoder(finetune="none").fit(["a", "b"])._backbone
    texts = {name.rsplit(".", 1)[0].replace("/", "_"): lambda name=name: read(name, options) for name in FILES}
    for part in ("train", "dev"):
        texts[f"assistant_{part}"] = lambda part=part: load_assistant_intents(subset=part, return_X_y=True)
    for name, load_texts in texts.items():
        if not (HOME / f"{name}.npz").exists():
            given, labels = load_texts()
            layers = backbone.embed_layers(list(given), range(backbone.model.n_layers + 1)).numpy()[:, 1:]
            np.savez(HOME / f"{name}.npz", layers=layers.swapaxes(0, 1), y=np.asarray(labels).astype(str))


def load(name):
    """Read a file."""
    with np.load(HOME / f"{name}.npz") as kept:
        return Rows(kept["layers"], kept["y"])


def real_cases():
    """Training texts and messages of bots and cards."""
    for bot, shop in (("bot1", "sofmattress"), ("bot2", "curekart")):
        messages = load(f"real_{shop}_test")
        messages = messages._replace(y=np.where(messages.y == "NO_NODES_DETECTED", OPEN, messages.y))
        for part in ("", "_subset"):
            yield bot + part, load(f"real_{shop}{part}_train"), messages
    for which in ("id", "ood"):
        messages = load(f"real_clinc_cards_test_{which}")
        messages = messages._replace(y=np.where(messages.y == "-1", OPEN, messages.y))
        yield "cards" + which, load("real_clinc_cards_train"), messages


def home_cases(most=MOST, seeds=(0, 1)):
    """Classes that are left out, on development rows."""
    for data, ratio, seed in itertools.product(most, (0.25, 0.5, 0.75), seeds):
        train, dev = load(f"{data}_train"), load(f"{data}_dev")
        classes = np.unique(train.y)
        known = np.random.RandomState(10 * seed + 3).choice(classes, round(len(classes) * ratio), replace=False)
        rows = few(train, most[data], np.random.default_rng(seed))
        yield case_of(f"{data}.{int(100 * ratio)}.{seed}", train.at(rows), dev, known)
    train, dev = load("assistant_train"), load("assistant_dev")
    classes = np.unique(train.y)
    for seed in range(4):
        known = np.random.RandomState(seed).choice(classes, round(len(classes) * 0.6), replace=False)
        yield case_of(f"assistant.60.{seed}", train, dev, known)


def case_of(name, train, dev, known):
    """Training rows of the known classes, and development rows of which the others are open."""
    train = train.at(np.flatnonzero(np.isin(train.y, known)))
    return name, train, dev._replace(y=np.where(np.isin(dev.y, known), dev.y, OPEN))


def build(way, train, other, case):
    """Features of training and other rows."""
    kind, _, rest = way.partition(":")
    if kind == "last":
        return normalize(train[-1]), normalize(other[-1])
    numbers, weight = rest.split(":")
    layers, weight = [int(number) for number in numbers.split(",")], float(weight)
    centres = {layer: centre_of(kind, layer, train, case) for layer in layers}
    sizes = {layer: np.linalg.norm(train[layer] - centres[layer], axis=1).mean() for layer in layers}
    found = []
    for given in (train, other):
        parts = [given[layer] - centres[layer] for layer in layers]
        if kind == "linear":
            parts = [part / sizes[layer] for part, layer in zip(parts, layers, strict=True)]
            vectors = given[-1] / np.linalg.norm(train[-1], axis=1).mean()
        else:
            parts, vectors = [normalize(part) for part in parts], normalize(given[-1])
        if kind in ("beside", "random"):
            more = weight * np.hstack(parts)
            found.append(np.hstack([vectors, more if kind == "beside" else more @ directions(more.shape[1], 128)]))
        elif kind == "sum":  # before unit length, as a head sees it
            found.append(vectors + weight * sum(parts))
        else:
            found.append(normalize(vectors + weight * sum(parts)))
    return found


def centre_of(kind, layer, train, case):
    """Give what is subtracted from the means after a layer."""
    if kind == "plain":
        return 0.0
    if kind == "other":
        return (
            load("real_clinc_cards_train" if case.startswith("assistant") else "assistant_train").layers[layer].mean(0)
        )
    return train[layer].mean(axis=0)


def directions(width, n):
    """Orthonormal random directions that keep lengths in the mean."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(width, n)))[0] * np.sqrt(width / n)


def run(options):
    """Append what is not there yet."""
    place = HOME / f"{options.what}.jsonl"
    done = {(row["case"], row["kind"]) for row in rows_of(options.what)}
    # Held-out classes have the traffic of the literature, messages that of users.
    traffic = {"open_share": (0.25, 0.75), "known_shift": 0} if options.what == "home" else {}
    with place.open("a", encoding="utf-8") as file:
        for case, train, other in home_cases() if options.what == "home" else real_cases():
            for way in options.ways:
                if (case, way) not in done:
                    X, T = (part.astype(np.float32) for part in build(way, train.layers, other.layers, case))
                    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0, **traffic).fit(X, train.y)
                    file.write(json.dumps({"case": case, "kind": way, **judged(clf, T, other.y)}) + "\n")
                    file.flush()


def run_heads():
    """Append F1 of frozen features and of a head, with and without further layers."""
    done = {(row["case"], row["kind"]) for row in rows_of("head")}
    whole = (case for case in real_cases() if not case[0].endswith("subset"))
    with (HOME / "head.jsonl").open("a", encoding="utf-8") as file:
        for case, train, other in itertools.chain(whole, home_cases(MOST_OF_HEAD, (0,))):
            traffic = {"open_share": (0.25, 0.75), "known_shift": 0} if "." in case else {}
            for way, mode in itertools.product(("last", "layers"), ("none", "head")):
                if (case, f"{way}.{mode}") in done:
                    continue
                given = [train.layers[-1], other.layers[-1]]
                if way == "layers":
                    given = build("sum:0,3:.4", train.layers, other.layers, case)
                encoder = looking_up(np.concatenate(given).astype(np.float32))(
                    finetune=mode, layers="last", random_state=0
                )
                numbers = [str(i) for i in range(len(train.y) + len(other.y))]
                X = encoder.set_params(duplicates="off").fit_transform(numbers[: len(train.y)], train.y)
                clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0, **traffic).fit(X, train.y)
                found = judged(clf, encoder.transform(numbers[len(train.y) :]), other.y)
                n_texts = len(train.y) / len(clf.classes_)
                file.write(json.dumps({"case": case, "kind": f"{way}.{mode}", "n": n_texts, **found}) + "\n")
                file.flush()


def looking_up(vectors):
    """Make an encoder whose text model knows numbers of rows."""

    class LookedUp(SupConTextEncoder):
        def _pooled(self, texts, layers=(), *, verbose=0):
            return torch.from_numpy(vectors[[int(text) for text in texts]])

    return LookedUp


def judged(clf, X, truth):
    """Accuracy among known samples, AUROC, F1 as fitted and with the best limit; percent."""
    labels, scores, is_known = clf.predict_known(X), clf.score_samples(X), truth != OPEN

    def f1(limit):
        return 100 * open_set_f1_score(truth, np.where(scores < limit, OPEN, labels), open_label=OPEN)

    return {
        "acc": 100 * (labels[is_known] == truth[is_known]).mean(),
        "auroc": 100 * roc_auc_score(is_known, scores),
        "fit": f1(clf.offset_),
        "best": max(map(f1, np.unique(np.quantile(scores, np.linspace(0, 0.98, 99))))),
        "p": 100 * (clf.known_p_value(X)[is_known] <= 0.1).mean(),
    }


def rows_of(what):
    """Rows that are there."""
    place = HOME / f"{what}.jsonl"
    return [json.loads(line) for line in place.open(encoding="utf-8")] if place.exists() else []


def report():
    """Print the tables."""
    title = "Layers of the text model beside the last one"
    print(title, "=" * len(title), sep="\n", end="\n\n")
    print(ABOUT)
    for what, name in (("home", "Held-out classes"), ("real", "Bots and cards, which took no part in the choice")):
        print(name, "-" * len(name), sep="\n", end="\n\n")
        table = {(row["kind"], row["case"]): row for row in rows_of(what)}
        ways = [way for way in WAYS if any(kind == way for kind, _ in table)][1:]
        groups = list(dict.fromkeys(case.split(".")[0] for kind, case in table if kind == "last"))
        print_table([["way", "cases", *MEASURES, "p", *groups], *(row_of(table, way, groups) for way in ways)])

    print("Frozen features or a head\n-------------------------\n")
    print("Best F1; ``finetune`` none or head, on the last layer and with ``add:0,3:.4``.\n")
    table = {(row["case"], row["kind"]): row for row in rows_of("head")}
    kinds = [f"{way}.{mode}" for way in ("last", "layers") for mode in ("none", "head")]
    cases = [case for case in dict.fromkeys(case for case, _ in table) if all((case, kind) in table for kind in kinds)]
    rows = [
        [case, f"{table[case, kinds[0]]['n']:.0f}", *(f"{table[case, kind]['best']:.1f}" for kind in kinds)]
        for case in cases
    ]
    print_table([["case", "texts per class", *kinds], *rows])


def row_of(table, way, groups):
    """Gains of one way."""
    cases = [case for kind, case in table if kind == way and ("last", case) in table]
    gains = {
        name: np.array([table[way, case][name] - table["last", case][name] for case in cases])
        for name in (*MEASURES, "p")
    }
    error = gains["best"].std(ddof=1) / np.sqrt(len(cases))
    of_group = {g: [x for x, case in zip(gains["best"], cases, strict=True) if case.split(".")[0] == g] for g in groups}
    return [
        *(way, str(len(cases)), *(f"{gains[name].mean():+.1f}" for name in MEASURES[:-1])),
        *(f"{gains['best'].mean():+.2f} ± {error:.2f}", f"{gains['p'].mean():+.1f}"),
        *(f"{np.mean(found):+.1f}" if found else "–" for found in of_group.values()),
    ]


if __name__ == "__main__":
    main()
