r"""Where the line goes by the scores of a log and a share that is told or counted, on real messages and real shares.

1. ``embed``: features of the frozen text model, once, and again after a change of the encoders or of the model.
2. ``score``: fit each case; keep the held-out scores, and the scores of its known and open messages.
3. ``streams``: draw logs of 100, 300 and 1,000 messages with 2, 5, 20 and 50 % open, and place the line in all ways.
4. ``report``: the tables.

Cases: *real*, messages of users of a bot and CLINC150's own out-of-scope texts; *far*, open texts of another domain;
*home*, classes left out (development rows); *shift*, home sets fitted on half of the clusters of each class; the
other half is the known traffic.

    python studies/real_lines.py --data-home ../shared/data embed
    python studies/real_lines.py --data-home ../shared/data score
    python studies/real_lines.py --data-home ../shared/data score --encoder head
    python studies/real_lines.py streams
    python studies/real_lines.py constants
    python studies/real_lines.py report > results/real_lines.rst
"""

import argparse
import csv
import functools
import itertools
import json
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from features import CACHE, features_key
from line_streams import constants, streams
from line_tables import report
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._encoders.torch.backbone import LAYER_WEIGHT
from skellipsoid._encoders.torch.text_modules import LayerMix
from skellipsoid._held_out.state import HELD_OUT
from skellipsoid._traffic.log import score as score_messages

OPEN = "open"
FILES = (
    *("real/sofmattress_train.csv", "real/sofmattress_subset_train.csv", "real/sofmattress_test.csv"),
    *("real/curekart_train.csv", "real/curekart_subset_train.csv", "real/curekart_test.csv"),
    *("real/carbon_train.csv", "real/carbon_test.csv"),
    *("real/clinc_cards_train.csv", "real/clinc_cards_test_id.csv", "real/clinc_cards_test_ood.csv"),
    *("oos/train.tsv", "oos/dev.tsv", "oos/test.tsv", "banking/train.tsv", "banking/dev.tsv"),
    *("stackoverflow/train.tsv", "stackoverflow/dev.tsv"),
)
#: Training texts of the sets, by the names of the sets in tables.
TRAINING_FILES = {
    "bot 1": "real/sofmattress_train.csv",
    "bot 2": "real/curekart_train.csv",
    "bot 3": "real/carbon_train.csv",
    "cards": "real/clinc_cards_train.csv",
    "Banking77": "banking/train.tsv",
    "CLINC150": "oos/train.tsv",
    "StackOverflow": "stackoverflow/train.tsv",
}
#: Training texts of a class in the home sets, for speed.
MOST_OF_CLASS = {"banking": 80, "oos": 50, "stackoverflow": 200}


def main():
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("embed", "score", "streams", "constants", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds real/, banking/, oos/, stackoverflow/")
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines")
    parser.add_argument("--encoder", choices=("none", "head"), default="none")
    parser.add_argument("--files", default="", help="beginning of the names of the files to embed")
    parser.add_argument("--draws", type=int, default=2, help="streams of each case, size and share")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    options.cache.mkdir(parents=True, exist_ok=True)
    {"embed": embed, "score": score, "streams": streams, "constants": constants, "report": report}[options.what](
        options
    )


class Texts(NamedTuple):
    """Texts with features and labels."""

    texts: np.ndarray
    X: np.ndarray
    y: np.ndarray

    def at(self, rows):
        """Select rows."""
        return Texts(*(column[rows] for column in self))


def read(name, options):
    """Texts and labels of a file."""
    path = Path(options.data_home) / name
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            rows = list(csv.reader(file))
        else:
            rows = [row for line in file if len(row := line.rstrip("\r\n").split("\t")) == 2]
    return [row[0] for row in rows[1:]], [row[1] for row in rows[1:]]


def embed(options):
    """Embed every file."""
    encoder = SupConTextEncoder(finetune="none").fit(["a", "b"])
    for name in FILES:
        place = vectors_of(name, options)
        if name.startswith(options.files) and not place.exists():
            np.save(place, encoder._backbone.embed_layers(read(name, options)[0], encoder.layers_).numpy())
            print(name, flush=True)


def with_features(cases):
    """Give cases the features of an encoder that is fitted to their training texts, in place of those of the layers."""

    @functools.wraps(cases)
    def mixed(options):
        for name, train, *messages in cases(options):
            mix = LayerMix(range(train.X.shape[1] - 1), LAYER_WEIGHT, train.X.shape[2])
            _, first = np.unique(train.texts.astype(str), return_index=True)
            mix.centres.copy_(torch.from_numpy(train.X[first, 1:].mean(axis=0)))
            yield (
                name,
                *(rows._replace(X=normalize(mix(torch.from_numpy(rows.X)).numpy())) for rows in (train, *messages)),
            )

    return mixed


def vectors_of(name, options):
    """Name the file of features, by the text model and the sources that made them."""
    return options.cache / f"{name.replace('/', '_').rsplit('.', 1)[0]}.{features_key()}.layers.npy"


def load(name, options):
    """Read a file with the vectors of its texts and layers."""
    texts, labels = read(name, options)
    return Texts(np.array(texts, dtype=object), np.load(vectors_of(name, options)), np.array(labels))


def few(rows, n, rng):
    """At most n texts of each class."""
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(rows.y == c))[:n] for c in np.unique(rows.y)]))


def half_of_clusters(rows, n_clusters, rng):
    """Whether a text is in one of the half of its class's clusters that is trained on."""
    chosen = np.zeros(len(rows.y), dtype=bool)
    for c in np.unique(rows.y):
        of_class = np.flatnonzero(rows.y == c)
        clusters = KMeans(n_clusters, n_init=3, random_state=0).fit_predict(normalize(rows.X[of_class, 0]))
        chosen[of_class[np.isin(clusters, rng.permutation(n_clusters)[: n_clusters // 2])]] = True
    return chosen


@with_features
def real_cases(options):
    """Name, training texts, known and open messages."""
    for bot, shop in (("bot1", "sofmattress"), ("bot2", "curekart")):
        messages = load(f"real/{shop}_test.csv", options)
        is_open = messages.y == "NO_NODES_DETECTED"
        for part in ("", "subset"):
            train = load(f"real/{shop}_{part and part + '_'}train.csv", options)
            yield f"real-{bot}{part}", train, messages.at(~is_open), messages.at(is_open)
    for which in ("id", "ood"):
        messages = load(f"real/clinc_cards_test_{which}.csv", options)
        is_open = messages.y == "-1"
        train = load("real/clinc_cards_train.csv", options)
        yield f"real-cards{which}", train, messages.at(~is_open), messages.at(is_open)
    train, dev, far = clinc(options)
    for n in (50, 100):
        yield f"real-clinc{n}", train.at(few(train, n, np.random.default_rng(n))), dev, far


@with_features
def third_bot(options):
    """Give the bot that came later: name, training texts, known and open messages."""
    messages = load("real/carbon_test.csv", options)
    is_open = messages.y == "NO_NODES_DETECTED"
    yield "real-bot3", load("real/carbon_train.csv", options), messages.at(~is_open), messages.at(is_open)


def cases_of(names, *cases):
    """Give the cases of these names; after the last of them nothing more is read."""
    left = set(names)
    for case in itertools.chain(*cases):
        if case[0] in left:
            yield case
            left.remove(case[0])
            if not left:
                return


@with_features
def far_cases(options):
    """Few classes, and open texts of other domains."""
    train, dev, far = clinc(options)
    for seed in (0, 1):
        known = np.random.default_rng(seed).choice(np.unique(train.y), 12, replace=False)
        yield f"far-clinc12.{seed}", train.at(np.isin(train.y, known)), dev.at(np.isin(dev.y, known)), far
    train, dev = (load(f"banking/{part}.tsv", options) for part in ("train", "dev"))
    known = known_classes("banking", 0.75, 0, options)[:50]
    yield "far-banking50", train.at(np.isin(train.y, known)), dev.at(np.isin(dev.y, known)), far


@with_features
def home_cases(options):
    """Left-out classes, and the same with known traffic that has moved."""
    far = clinc(options)[2]
    for data, most in MOST_OF_CLASS.items():
        train, dev = (load(f"{data}/{part}.tsv", options) for part in ("train", "dev"))
        for ratio, seed in itertools.product((0.25, 0.5, 0.75), (0, 1)):
            known = known_classes(data, ratio, seed, options)
            rows, kept = train.at(np.isin(train.y, known)), np.isin(dev.y, known)
            rows = rows.at(few(rows, most, np.random.default_rng(seed)))
            yield f"home-{data}{ratio}.{seed}", rows, dev.at(kept), dev.at(~kept)
        for n_clusters in (2, 4):
            rng = np.random.default_rng(n_clusters)
            known = known_classes(data, 0.5, 2, options)
            rows, kept = train.at(np.isin(train.y, known)), np.isin(dev.y, known)
            if data == "stackoverflow":
                rows = rows.at(few(rows, most, rng))
            chosen = half_of_clusters(rows, n_clusters, rng)
            fitted = rows.at(chosen)
            if n_clusters == 2:
                fitted = fitted.at(few(fitted, 20, rng))
            moved = rows.at(rng.permutation(np.flatnonzero(~chosen))[:2000])
            yield f"shift-{data}.{n_clusters}", fitted, moved, dev.at(~kept)
            if n_clusters == 2:
                yield f"shift-{data}far.{n_clusters}", fitted, moved, far


def clinc(options):
    """Read CLINC150: training texts, development texts, out-of-scope texts."""
    train, dev, test = (load(f"oos/{part}.tsv", options) for part in ("train", "dev", "test"))
    return train, dev, test.at(test.y == "oos")


def known_classes(data, ratio, seed, options):
    """Read the known classes of a draw."""
    draws = json.loads((Path(options.data_home) / "known_classes.json").read_text())
    return draws[data][str(ratio)][str(seed)]


#: Cases that are fitted with a trained head, too.
OF_HEAD = (
    *("real-bot1", "real-cardsid", "real-cardsood", "real-clinc50", "far-clinc12.0", "home-banking0.5.0"),
    *("home-stackoverflow0.5.0", "shift-banking.4", "shift-stackoverflow.4"),
)


def score(options):
    """Fit every case that is not there yet."""
    folder = options.cache / f"lines_{options.encoder}"
    folder.mkdir(exist_ok=True)
    for name, train, known, opened in itertools.chain(*(of(options) for of in (real_cases, far_cases, home_cases))):
        place = folder / f"{name}.npz"
        if place.exists() or (options.encoder == "head" and name not in OF_HEAD):
            continue
        X, parts = train.X, (known.X, opened.X)
        if options.encoder == "head":
            X, parts = headed(train, known, opened)
        keep(place, X, train.y, *parts, known.y)
        print(name, flush=True)


def keep(place, X, y, known, opened, truth):
    """Fit, and keep the held-out scores, and those of known and open messages."""
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(X, y)
    (k_scores, k_assigned), (o_scores, o_assigned) = (score_messages(clf, part) for part in (known, opened))
    arrays = {"k_scores": k_scores, "k_assigned": k_assigned, "k_truth": clf._encode(truth)}
    arrays |= {"o_scores": o_scores, "o_assigned": o_assigned, "n_classes": len(clf.classes_), "n_train": len(X)}
    np.savez(place, **HELD_OUT.saved(clf._held_out), **arrays)


def headed(train, known, opened):
    """Features of a trained head; each text is embedded once for all cases."""
    vectors = {text: x for rows in (train, known, opened) for text, x in zip(rows.texts, rows.X, strict=True)}

    class Looked(SupConTextEncoder):
        def _pooled(self, texts, layers=(), *, verbose=0):
            return torch.from_numpy(np.stack([vectors[text] for text in texts]))

    head = Looked(finetune="head", random_state=0)
    X = head.fit_transform(list(train.texts), train.y)
    return X, [head.transform(list(rows.texts)) for rows in (known, opened)]


if __name__ == "__main__":
    main()
