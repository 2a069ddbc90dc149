"""The loop of a week on Banking77: ten hidden intents come up in the traffic, are found, labelled and added.

Half of the intents are known, ten others are hidden (seed 0). The traffic is the training texts of the hidden intents
and the development texts of the known ones. A person labels the discovered groups: here, the intent of most texts of a
group, if more than half of them have it and it is a hidden one. Judged on the development texts of both, macro F1 over
all intents and open. *oracle* knew all texts of the ten intents.

    python studies/loop.py --data-home ../../../shared/data > results/loop.rst
"""

import argparse
import time
from collections import Counter

import numpy as np
from features import FETCHERS, known_classes
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    add_classes,
    discover_classes,
    refresh,
)
from skellipsoid.metrics import open_set_f1_score

N_HIDDEN, SEED = 10, 0


def main():
    """Print a table for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--encoders", nargs="+", choices=("none", "head"), default=("none", "head"))
    parser.add_argument("--most", type=int, default=None, help="most training texts of an intent (default: all)")
    options = parser.parse_args()
    for encoder in options.encoders:
        print_table(encoder, *loop(encoder, options.data_home, options.most))


def loop(encoder, data_home, most=None):
    """Give what the discovery found, and for each model F1, the number of intents, and seconds of processor time."""
    train, dev = (FETCHERS["banking"](subset=subset, data_home=data_home) for subset in ("train", "dev"))
    rng = np.random.default_rng(SEED)
    target = np.asarray(train.target)
    known = np.array(sorted(known_classes("banking", 0.5, SEED, data_home)))
    hidden = rng.permutation(np.setdiff1d(target, known))[:N_HIDDEN]
    rows = [np.flatnonzero(target == label)[:most] for label in (*known, *hidden)]
    texts, intents = (np.array(part, dtype=object)[np.concatenate(rows)] for part in (train.data, target))
    is_hidden = np.isin(intents, hidden)
    judged = np.isin(dev.target, [*known, *hidden])
    dev_texts, truth = (np.array(part, dtype=object)[judged] for part in (dev.data, dev.target))
    traffic = np.append(texts[is_hidden], dev_texts[np.isin(truth, known)])
    answers = np.append(intents[is_hidden], truth[np.isin(truth, known)])
    shuffled = rng.permutation(len(traffic))
    traffic, answers = traffic[shuffled], answers[shuffled]
    blank = Pipeline(
        [
            ("enc", SupConTextEncoder(finetune=encoder, random_state=SEED)),
            ("clf", EllipsoidOpenSetClassifier(random_state=SEED)),
        ]
    )
    seconds, models = {}, {}

    def timed(name, make):
        start = time.process_time()
        models[name] = make()
        seconds[name] = time.process_time() - start

    timed("before", lambda: clone(blank).fit(texts[~is_hidden], intents[~is_hidden]))
    start = time.process_time()
    found = discover_classes(models["before"], traffic)
    seconds["traffic"] = time.process_time() - start
    labels = labelled(found, answers, hidden)
    new = labels != ""
    timed("added", lambda: refresh(add_classes(models["before"], traffic[new], labels[new])))
    seen = np.append(texts[~is_hidden], traffic[new]), np.append(intents[~is_hidden], labels[new])
    timed("trained again", lambda: clone(blank).fit(*seen))
    timed("oracle", lambda: clone(blank).fit(texts, intents))
    everything = np.unique(intents)
    figures = {}
    for name, model in models.items():
        f1 = open_set_f1_score(truth, model.predict(dev_texts), labels=everything, zero_division=0)
        figures[name] = (100 * f1, len(model.classes_), seconds[name])
    right = float(np.mean(labels[new] == answers[new])) if new.any() else float("nan")
    facts = {
        "groups": f"{found.n_groups}, {len(np.unique(labels[new]))} of {N_HIDDEN} hidden intents among those labelled",
        "texts labelled": f"{new.sum()}, {right:.0%} rightly",
        "seconds of groups": f"{seconds['traffic']:.0f}",
    }
    return facts, figures


def labelled(found, answers, hidden):
    """Label each group with the intent of most of its texts, if it is hidden; the others stay empty."""
    labels = np.full(len(answers), "", dtype=object)
    for group in range(found.n_groups):
        rows = np.flatnonzero(found.labels == group)
        intent, count = Counter(answers[rows].tolist()).most_common(1)[0]
        if intent in hidden and 2 * count > len(rows):
            labels[rows] = intent
    return labels


def print_table(encoder, facts, figures):
    """Print the facts, and a table in reStructuredText."""
    print(f"{'Frozen text model' if encoder == 'none' else 'Trained head'}:\n")
    print("\n".join(f"- {name}: {told}" for name, told in facts.items()) + "\n")
    rule = "  ".join("=" * width for width in (13, 5, 7, 10))
    print(f"{rule}\n{'Model':13}  {'F1':5}  Intents  CPU, s\n{rule}")
    for name, (f1, n_classes, seconds) in figures.items():
        print(f"{name:13}  {f1:5.2f}  {n_classes:<7}  {seconds:.1f}")
    print(rule + "\n", flush=True)


if __name__ == "__main__":
    main()
