"""What repeated training texts do: the shipped corpus, Banking77 and CLINC150 with duplicates of all kinds.

Every log is made of the same training texts, so that a fit should be as good as on each text once. ``off`` is
``duplicates="off"`` in encoder and classifier: rows are left out one by one.

    python studies/duplicates.py --data-home ../../../shared/data > results/duplicates.rst   # about 15 minutes
"""

import argparse

import numpy as np
from features import SEEDS, embedded, known_classes
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize, scale

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets
from skellipsoid.metrics import open_set_f1_score

MODES = {"frozen": "none", "head": "head"}


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.data_home)


# Logs made of training texts


def logs(texts, labels, seed=0):
    """Make logs by name: texts, labels, and the text that each stands for."""
    rng = np.random.default_rng(seed)
    texts, labels, own = np.asarray(texts, dtype=object), np.asarray(labels), np.arange(len(texts))
    author = np.repeat(np.flatnonzero(labels == labels[0])[:3], 40)
    drawn = draw_zipf(len(texts), 2000, rng)
    found = {
        "each text once": (texts, own),
        "every text twice": with_copies(texts, lambda text: text),
        'a copy with "please"': with_copies(texts, lambda text: f"{text} please"),
        "a copy with one letter dropped": with_copies(texts, lambda text: drop_letter(text, rng)),
        "a copy in lower case": with_copies(texts, str.lower),
        "Zipf log of 2,000": (texts[drawn], drawn),
        "that log, each text once": (texts[np.unique(drawn)], np.unique(drawn)),
        "that log, each message with noise": (np.array([add_noise(texts[i], rng) for i in drawn], dtype=object), drawn),
        "an author repeats 3 texts of one class": (np.concatenate([texts, texts[author]]), np.append(own, author)),
    }
    return {name: (made, labels[of], of) for name, (made, of) in found.items()}


def with_copies(texts, change):
    """Every text, and after them a copy of each."""
    return np.concatenate([texts, np.array([change(text) for text in texts], dtype=object)]), np.tile(
        np.arange(len(texts)), 2
    )


def draw_zipf(n_texts, n_messages, rng):
    """Texts of messages, the k-th most frequent text with a probability of 1 / k."""
    probabilities = 1 / np.arange(1, n_texts + 1)
    return rng.permutation(n_texts)[rng.choice(n_texts, n_messages, p=probabilities / probabilities.sum())]


def drop_letter(text, rng):
    """Leave one letter out."""
    places = [i for i, letter in enumerate(text) if letter.isalpha()]
    place = places[rng.integers(len(places))]
    return text[:place] + text[place + 1 :]


def add_noise(text, rng):
    """Polite words before and after, and every other time a letter left out."""
    before = ("", "please ", "hi, ", "hello ", "hey ", "ok ", "so ", "um ", "can you help, ", "sorry, ")
    after = ("", " please", " thanks", " ?", " pls", "...", " asap", "!", " thank you", " now")
    noisy = before[rng.integers(len(before))] + text + after[rng.integers(len(after))]
    return drop_letter(noisy, rng) if rng.random() < 0.5 else noisy


# Tables


def shipped_corpus(_):
    """Print the shipped corpus, all 28 intents, test rows."""
    train, test = (datasets.load_assistant_intents(subset=subset) for subset in ("train", "test"))
    lines = []
    for name, (texts, labels, _) in logs(train.data, train.target).items():
        line = [name, f"{len(texts):,}"]
        for mode in MODES.values():
            for duplicates in ("off", "once"):
                pipe = Pipeline(
                    [
                        ("enc", SupConTextEncoder(finetune=mode, duplicates=duplicates, random_state=0)),
                        ("clf", EllipsoidOpenSetClassifier(duplicates=duplicates, random_state=0)),
                    ]
                ).fit(texts, labels)
                line.append(judge(pipe.predict(test.data), test.target, pipe.classes_))
        lines.append(line)
    headings = [
        "Shipped corpus, test",
        "messages",
        *(f"{mode}, {kind}" for mode in MODES for kind in ("off", "default")),
    ]
    table(headings, lines)


def banking(data_home):
    """Banking77, 19 intents known, frozen, development rows."""
    train, dev = (embedded("banking", subset, data_home) for subset in ("train", "dev"))
    known = known_classes("banking", 0.25, 0, data_home)
    rows = np.flatnonzero(np.isin(train.target, known))
    rng = np.random.default_rng(0)
    log = rows[draw_zipf(len(rows), 5000, rng)]
    cases = {
        "as they are": rows,
        "every row twice": np.tile(rows, 2),
        "Zipf log of 5,000": log,
        "that log, each text once": np.unique(log),
    }
    lines = [
        [name, f"{len(of):,}", *(frozen_scores(train, dev, of, kind, 0)[0] for kind in ("off", "once"))]
        for name, of in cases.items()
    ]
    table(["Banking77, 19 intents, dev", "rows", "frozen, off", "frozen, default"], lines)


def paraphrases(data_home):
    """F1 and its distance to the oracle at 75 % known, frozen, development rows, mean of five seeds."""
    lines = []
    for name in ("banking", "oos", "stackoverflow"):
        train, dev = (embedded(name, subset, data_home) for subset in ("train", "dev"))
        line = [{"banking": "Banking77", "oos": "CLINC150", "stackoverflow": "StackOverflow"}[name]]
        for kind in ("off", "once"):
            found = []
            for seed in SEEDS:
                rows = np.flatnonzero(np.isin(train.target, known_classes(name, 0.75, seed, data_home)))
                found.append(frozen_scores(train, dev, rows, kind, seed)[1:])
            f1, oracle, share = np.mean(found, axis=0)
            line += [f"{f1:.2f}", f"{oracle - f1:.2f}", f"{share:.1%}"]
        lines.append(line)
    columns = [f"{column}, {kind}" for kind in ("off", "default") for column in ("F1", "to oracle", "rows linked")]
    table(["75 % known, dev", *columns], lines)


def without_duplicates(_):
    """Fits with detection on and off are equal to the last bit where there are no duplicates."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 100)
    blobs = rng.normal(size=(400, 20)) + 3 * rng.normal(size=(4, 20))[classes]
    cases = {
        "digits": load_digits(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "wine, scaled": (scale(load_wine().data), load_wine().target),
        "iris": load_iris(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "Gaussian blobs": (blobs, classes),
        "heavy-tailed blobs (Student t, 2 degrees)": (
            rng.standard_t(2, size=(400, 20)) + 3 * classes[:, None],
            classes,
        ),
        "blobs rounded to one decimal": (blobs.round(1), classes),
        "binary columns": ((blobs > 0).astype(float), classes),
    }
    try:
        import scanpy

        cells = scanpy.datasets.pbmc68k_reduced()
        cases["blood cells"] = cells.obsm["X_pca"], cells.obs["bulk_labels"].to_numpy().astype(str)
    except ImportError:
        print(".. blood cells are left out: they take scanpy\n")
    lines = []
    for name, (X, y) in cases.items():
        with_it, without = (
            EllipsoidOpenSetClassifier(duplicates=kind, random_state=0).fit(X, y) for kind in ("once", "off")
        )
        same = (with_it.class_margins(X) == without.class_margins(X)).all() and with_it.radii_[0] == without.radii_[0]
        lines.append([name, f"{len(X):,}", "equal" if same else "different"])
    table(["No duplicates", "rows", "with and without detection"], lines)


def frozen_scores(train, dev, rows, duplicates, seed):
    """F1 with the share of known rows rejected, as a text; F1, the oracle's, and the share of rows that were linked."""
    classifier = EllipsoidOpenSetClassifier(duplicates=duplicates, random_state=seed)
    classifier.fit(normalize(train.embeddings[rows]), train.target[rows])
    features, classes = normalize(dev.embeddings), classifier.classes_
    scores, nearest = classifier.score_samples(features), classifier.predict_known(features)

    def f1(offset):
        return 100 * macro_f1(np.where(scores >= offset, nearest, "-1"), dev.target, classes)

    best = max(f1(offset) for offset in [0, *np.quantile(scores, np.linspace(0.01, 0.99, 99))])
    linked = np.mean(np.bincount(classifier.groups_)[classifier.groups_] > 1)
    return judge(classifier.predict(features), dev.target, classes), f1(0), best, linked


def judge(answers, target, classes):
    """F1, and the share of known rows that were rejected."""
    rejected = np.mean(answers[np.isin(target, classes)] == "-1")
    return f"{macro_f1(answers, target, classes):.3f} ({rejected:.0%})"


def macro_f1(answers, target, classes):
    """Macro F1 over the known classes and open."""
    truth = np.where(np.isin(target, classes), target, "-1")
    return open_set_f1_score(truth, answers, labels=classes, zero_division=0)


def table(headings, lines):
    """Print a table in reStructuredText."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    texts = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines]
    heading = "  ".join(text.ljust(width) for text, width in zip(headings, widths, strict=True))
    print("\n".join([rule, heading.rstrip(), rule, *(text.rstrip() for text in texts), rule, ""]), flush=True)


PARTS = {"shipped": shipped_corpus, "banking": banking, "paraphrases": paraphrases, "none": without_duplicates}


if __name__ == "__main__":
    main()
