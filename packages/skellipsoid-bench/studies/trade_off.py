"""Whether held-out training samples tell what new samples cost: known rejected, wrong class, open noticed.

A share of the classes is known. A classifier learns from their training rows. Its held-out scores say what operating
points cost: those of left-out rows stand in for known rows, those of left-out classes for open rows. The development
rows, with all classes, say what the same operating points cost on new rows. Test rows are not read.

    python studies/trade_off.py --data-home ../../../shared/data                        # frozen text model
    python studies/trade_off.py --data-home ../../../shared/data --finetune head        # a trained head, 15 minutes
    python studies/trade_off.py --data-home ../../../shared/data --per-class 24
"""

import argparse
import warnings

import numpy as np
from features import FETCHERS, RATIOS, embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._held_out.kept import held_out_rows
from skellipsoid.metrics._reading import read_closed_set_rows, trade_off_at
from skellipsoid_bench._encoders import _LookedUp

RATES = (0.02, 0.05, 0.1, 0.2)


def main():
    """Print one table for each data set: means over the known-class ratios and seeds, in per cent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--finetune", choices=("none", "head"), default="none")
    parser.add_argument("--per-class", type=int, default=None, help="training rows of each class (default: all)")
    parser.add_argument("--datasets", nargs="+", choices=sorted(FETCHERS), default=sorted(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, choices=RATIOS, default=RATIOS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few rows of a class
    for name in options.datasets:
        found = [costs(name, ratio, seed, options) for ratio in options.ratios for seed in options.seeds]
        print(f"{name}, {options.finetune}, {options.per_class or 'all'} rows of each class, {len(found)} settings")
        print(f"{'':12}{'known rejected':>18}{'wrong class':>18}{'open noticed':>18}")
        print(f"{'limit':12}" + f"{'told':>11}{'new':>7}" * 3)
        for limit, row in zip((*(f"{100 * rate:.0f} %" for rate in RATES), "fitted"), np.mean(found, 0), strict=True):
            print(f"{limit:12}" + "".join(f"{100 * told:11.1f}{100 * new:7.1f}" for told, new in row), flush=True)


def costs(name, ratio, seed, options):
    """Costs as told by held-out rows and as seen on new rows.

    Returns
    -------
    ndarray of shape (n_rates + 1, 3, 2)
        Limits (the rates, then the fitted one) × known rejected, wrong class, open noticed × told, new.
    """
    known = known_classes(name, ratio, seed, options.data_home)
    (X, y), (new, y_new) = features(name, known, seed, options)
    clf = EllipsoidOpenSetClassifier(random_state=seed).fit(X, y)
    told = held_out_rows(clf, "trade_off.py")
    told.pop("offset")
    rows = read_closed_set_rows(**told)
    offsets = np.unique([*rows.score, np.inf])
    rejected = trade_off_at(rows, offsets)[0]
    limits = np.array([*(offsets[rejected <= rate].max() for rate in RATES), 0.0])
    on_new = read_closed_set_rows(
        y_new, clf.predict_known(new), clf.score_samples(new), open_label=clf.open_label_, labels=clf.classes_
    )
    found = []
    for limit in limits:
        pairs = zip(*(trade_off_at(part, np.array([limit])) for part in (rows, on_new)), strict=True)
        rejected, noticed, wrong = [[float(value[0]) for value in pair] for pair in pairs]
        found.append([rejected, wrong, noticed])
    return np.array(found)


def features(name, known, seed, options):
    """Features and labels of the training rows of known classes, and of all development rows."""
    train, dev = (embedded(name, subset, options.data_home) for subset in ("train", "dev"))
    rows = np.flatnonzero(np.isin(train.target, known))
    if options.per_class:
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(rows[train.target[rows] == c])[: options.per_class] for c in known])
    labels = train.target[rows]
    if options.finetune == "none":
        return (normalize(train.embeddings[rows]), labels), (normalize(dev.embeddings), dev.target)
    texts, new = (
        np.asarray(FETCHERS[name](subset=part, data_home=options.data_home).data) for part in ("train", "dev")
    )
    vectors = dict(zip([*texts, *new], [*train.embeddings, *dev.embeddings], strict=True))
    encoder = _LookedUp.using(vectors)(finetune="head", layers="last", random_state=seed)
    return (encoder.fit_transform(texts[rows].tolist(), labels), labels), (encoder.transform(new.tolist()), dev.target)


if __name__ == "__main__":
    main()
