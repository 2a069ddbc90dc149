"""New classes are added to a fitted model, beside a model that is trained again on all classes.

Of the known classes of a case (75 %, seed 0), 1, 3 or 10 are new. *before* is fitted without them, *added* gets them
by ``add_classes``, *refreshed* chooses its shares and its size anew as well, and *again* is trained on all classes.
With ``head`` the encoder of *before* never saw the new classes. ``EliDecide`` has frozen features and trains matrices:
*added* trains those of the new classes alone, *refreshed* and *again* all. Development rows only: F1 over known classes
and open. *moved* is the share of development rows of old and hidden classes that are answered otherwise than before.

    python studies/changes.py --data-home ../../../shared/data > results/changes.rst
    python studies/changes.py --data-home ../../../shared/data --cases head:oos  # some rows of the table
"""

import argparse
import time

import numpy as np
from features import FETCHERS, embedded, known_classes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder, add_classes
from skellipsoid.metrics import open_set_f1_score

RATIO, SEED, N_NEW = 0.75, 0, (1, 3, 10)
CASES = ["none:banking", "none:oos", "none:stackoverflow", "head:banking", "head:oos", "head:stackoverflow"]
CASES.append("EliDecide:stackoverflow")
COLUMNS = ("before", "added", "refreshed", "again")


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    options = parser.parse_args()
    widths = (24, 8, 7, *[8, 8, 10, 8], 8, 15)
    rule = "  ".join("=" * width for width in widths)
    print(rule)
    print_row(("Data, encoder", "classes", "new", *COLUMNS, "moved", "CPU time: added"), widths)
    print(rule)
    for case in options.cases:
        encoder, data = case.split(":")
        for row in measured(data, encoder, options.data_home):
            print_row(row, widths)
    print(rule)


def print_row(cells, widths):
    """Print one line of the table."""
    print("  ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)


def measured(data, encoder, data_home):
    """Give a row of the table for each number of new classes."""
    known = np.array(sorted(known_classes(data, RATIO, SEED, data_home)))
    new = np.random.default_rng(SEED).permutation(known)
    (X, y), (dev, truth) = (rows(data, subset, encoder, data_home) for subset in ("train", "dev"))
    truth = np.where(np.isin(truth, known), truth, "-1")
    again, seconds = fitted(X, y, known, encoder)
    for n_new in N_NEW:
        if n_new > len(known) // 2:
            continue
        before, _ = fitted(X, y, np.setdiff1d(known, new[:n_new]), encoder)
        is_new = np.isin(y, new[:n_new])
        start = time.process_time()
        added = add_classes(before, X[is_new], y[is_new])
        share = (time.process_time() - start) / seconds
        refreshed = make_pipeline(*[step for _, step in added.steps[:-1]], added[-1].refresh())
        models = before, added, refreshed, again
        answers = [model.predict(dev) for model in models]
        f1 = [f"{100 * open_set_f1_score(truth, found, labels=known, zero_division=0):.2f}" for found in answers]
        moved = np.mean((answers[0] != answers[1])[~np.isin(truth, new[:n_new])])
        yield f"{data}, {encoder}", len(known), n_new, *f1, f"{100 * moved:.1f} %", f"{100 * share:.0f} % of again"


def rows(data, subset, encoder, data_home):
    """Features of the frozen model, or texts where an encoder is trained; and labels."""
    if encoder != "head":
        part = embedded(data, subset, data_home)
        return normalize(part.embeddings), part.target
    bunch = FETCHERS[data](subset=subset, data_home=data_home)
    return np.array(bunch.data, dtype=object), np.asarray(bunch.target)


def fitted(X, y, known, encoder):
    """Fit a Pipeline on some classes; it, and the CPU seconds."""
    chosen = np.isin(y, known)
    trainer = EliDecide(rescale=False) if encoder == "EliDecide" else None
    steps = [EllipsoidOpenSetClassifier(trainer=trainer, random_state=SEED)]
    if encoder == "head":
        steps.insert(0, SupConTextEncoder(finetune=encoder, random_state=SEED))
    start = time.process_time()
    return make_pipeline(*steps).fit(X[chosen], y[chosen]), time.process_time() - start


if __name__ == "__main__":
    main()
