r"""Which estimate of the open share holds on data that nobody tuned it to.

1. ``score``, once for each case: fit on the training rows of the known classes; keep the held-out scores, and the scores
   of the development rows. Test rows are not read.
2. ``streams``: draw streams from the development rows, known and open ones apart, with replacement where there are fewer
   rows than wanted; estimate their share in several ways. Constants are chosen on two data sets and judged on the third.
3. ``line``: all development rows are the log. What the boundary for its estimated share gains.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/open_share.py --data-home ../shared/data score
    python benchmarks/open_share.py --data-home ../shared/data score --encoder head --seeds 0 1
    python benchmarks/open_share.py streams     # each case once; goes on where it stopped
    python benchmarks/open_share.py report > benchmarks/results/open_share.rst
"""

import argparse
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import torch
from features import CACHE, FETCHERS, RATIOS, SEEDS, embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._operating_point._of_share import line_of_share
from skellipsoid._traffic import _mixture, _share
from skellipsoid._traffic._held import HeldOutScores
from skellipsoid._traffic._share import open_share_of, score
from skellipsoid.metrics import open_set_f1_score

SCORES = CACHE / "open_share"
OPEN = "open"
SIZES, SHARES, N_STREAMS = (300, 1000, 3000), (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9), 3
LEVELS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
#: Standard deviations of the tilt and of the log sharpness in the mixture.
PRIORS = tuple(itertools.product((0.01, 0.2, 0.4, 0.8), (0.4, 0.8)))
#: Standard deviations of the tilt in ``low``; 0 is a bootstrap of messages and classes alone.
TILTS = (0.01, 0.2, 0.3, 0.4, 0.6)


def main():
    """Run the cases that are not there yet, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("score", "streams", "report"))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--encoder", choices=("none", "head"), default="none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers
    SCORES.mkdir(parents=True, exist_ok=True)
    if options.what == "report":
        report()
    elif options.what == "score":
        for seed, data, ratio in itertools.product(options.seeds, options.data, options.ratios):
            place = SCORES / f"{options.encoder}-{data}-{ratio}-{seed}.npz"
            if not place.exists():
                keep(place, scored(options.encoder, data, ratio, seed, options.data_home))
    else:
        for place in sorted(SCORES.glob("*.npz")):
            kept = SCORES / "streams" / place.name
            kept.parent.mkdir(exist_ok=True)
            if ".part" not in place.name and not kept.exists():
                keep(kept, streams(place))


def keep(place, arrays):
    """Write arrays, complete or not at all."""
    partial = place.with_suffix(".part.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(place)
    print(place.name, flush=True)


def scored(encoder, data, ratio, seed, data_home):
    """Held-out scores of a fit on the known classes, and scores of the development rows."""
    known = known_classes(data, ratio, seed, data_home)
    train, dev = (embedded(data, subset, data_home) for subset in ("train", "dev"))
    kept = np.isin(train.target, known)
    y, X, new = train.target[kept], normalize(train.embeddings[kept]), normalize(dev.embeddings)
    if encoder == "head":
        texts = [FETCHERS[data](subset=subset, data_home=data_home).data for subset in ("train", "dev")]
        vectors = dict(zip([*texts[0], *texts[1]], [*train.embeddings, *dev.embeddings], strict=True))

        class Looked(SupConTextEncoder):  # each text is embedded once for all cases
            def _pooled(self, texts):
                return torch.from_numpy(np.stack([vectors[text] for text in texts]))

        head = Looked(finetune="head", random_state=seed)
        X, new = head.fit_transform([texts[0][row] for row in np.flatnonzero(kept)], y), head.transform(texts[1])
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=seed).fit(X, y)
    scores, assigned = score(clf, new)
    truth = clf._encode(np.where(np.isin(dev.target, known), dev.target, OPEN))
    return dict(clf._held_out) | {"dev_scores": scores, "dev_assigned": assigned, "dev_truth": truth}


def read(place):
    """Held-out scores as a fit keeps them, and what the development rows score."""
    arrays = dict(np.load(place))
    dev = {name.removeprefix("dev_"): arrays.pop(name) for name in [*arrays] if name.startswith("dev_")}
    n_classes = int(dev["truth"].max())
    fitted = type("Fitted", (EllipsoidOpenSetClassifier,), {"held_out_": None})()
    fitted._held_out = arrays
    return HeldOutScores.of(fitted, "open_share.py"), SimpleNamespace(**dev), n_classes


def streams(place):
    """Estimate the shares of streams in all ways, and draw the line for the development rows.

    Returns
    -------
    dict of ndarray
        One entry for each stream: ``size``, ``true``; ``storey`` and ``corrected`` at each level, ``mixture`` with each
        prior; ``found`` with share, low and high of the package; ``low`` for each tilt at each of two levels; ``doubt``
        says whether a sentence came with them. ``fifths`` are those of the p-values of known rows.
    """
    held, dev, n_classes = read(place)
    p_values, levels = held.p_values(dev.scores), np.array(LEVELS)
    known, opened = np.flatnonzero(dev.truth < n_classes), np.flatnonzero(dev.truth == n_classes)
    of_open = held.p_values(held.opened)
    passed = np.array([np.average(of_open > level, weights=held.open_weights) for level in LEVELS])
    rng = np.random.default_rng(int(place.stem.rsplit("-", 1)[1]))
    rows = {name: [] for name in ("size", "true", "storey", "corrected", "mixture", "found", "low", "doubt")}
    for size, true, _ in itertools.product(SIZES, SHARES, range(N_STREAMS)):
        n_open = round(true * size)
        drawn = np.concatenate(
            [rng.choice(pool, n, replace=n > len(pool)) for pool, n in ((known, size - n_open), (opened, n_open))]
        )
        told = open_share_of(held, dev.scores[drawn], dev.assigned[drawn], n_classes)
        p = p_values[drawn]
        above = (p[:, None] > levels).mean(axis=0)
        copies = np.unique(drawn, return_inverse=True)[1]
        counts = np.bincount(copies)
        n_independent = 1 / ((counts**2).sum() / size**2 + 1 / len(held.known))
        lows = []
        for level, tilt in itertools.product((0.4, 0.6), TILTS):
            with patched(_share, LEVEL=level, TILT_ERROR=tilt):
                lows.append(np.quantile(_share.resample(held, p, copies).without_open, 1 - _share.CERTAINTY))
        rows["size"].append(size)
        rows["true"].append(true)
        rows["storey"].append(np.clip(1 - above / (1 - levels), 0, 1))
        rows["corrected"].append(np.clip((1 - levels - above) / (1 - levels - passed), 0, 1))
        rows["mixture"].append([mixture(p, n_independent, held, *prior) for prior in PRIORS])
        rows["found"].append([told.share, told.low, told.high])
        rows["low"].append(lows)
        rows["doubt"].append(told.note is not None)
    fifths = np.histogram(p_values[known], np.linspace(0, 1, 6))[0] / len(known)
    arrays = {name: np.array(values) for name, values in rows.items()}
    return arrays | {"fifths": fifths, "line": line(held, dev, n_classes)}


class patched:  # noqa: N801
    """Constants of a module, as they are for a while."""

    def __init__(self, module, **constants):
        self.module, self.constants = module, constants

    def __enter__(self):
        self.before = {name: getattr(self.module, name) for name in self.constants}
        vars(self.module).update(self.constants)

    def __exit__(self, *_):
        vars(self.module).update(self.before)


def mixture(p, n_independent, held, tilt, log_sharpness):
    """Share by the mixture with other priors."""
    with patched(_mixture, TILT_ERROR=tilt, LOG_SHARPNESS_ERROR=log_sharpness):
        return _mixture.fit_mixture(p, n_independent, held.open_shares(), 0.5).share


def line(held, dev, n_classes):
    """Change of F1 by the boundary for the estimated and the true share, and what is expected of it and its error.

    Open samples are those of held-out classes, or of synthetic classes, too. The last line is the F1 of the fitted
    boundary and the gain of the best one.
    """
    best = max(f1(offset, dev, n_classes) for offset in np.quantile(dev.scores, np.linspace(0, 1, 101)))
    fitted = f1(0.0, dev, n_classes)
    shares = open_share_of(held, dev.scores, dev.assigned, n_classes).share, np.mean(dev.truth == n_classes)
    without = held._replace(synthetic=held.synthetic[:0], synthetic_assigned=held.synthetic_assigned[:0])
    lines = []
    for stands_in, share in itertools.product((without, held), shares):
        told = line_of_share(stands_in, share, n_classes)
        lines.append([f1(told.offset, dev, n_classes) - fitted, told.gain, told.error])
    return np.array([*lines, [fitted, best - fitted, 0]])


def f1(offset, dev, n_classes):
    """Macro F1 of the development rows in percent."""
    answers = np.where(dev.scores < offset, n_classes, dev.assigned)
    return 100 * open_set_f1_score(
        dev.truth, answers, labels=np.arange(n_classes), open_label=n_classes, zero_division=0
    )


if __name__ == "__main__":
    main()
