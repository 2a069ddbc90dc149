r"""Which estimate of the open share holds on data that nobody tuned it to.

1. ``score``, once for each case: fit on the training rows of the known classes; keep the held-out scores, and the
   scores of the development rows. Test rows are not read.
2. ``streams``: draw streams from the development rows, known and open ones apart, with replacement where there are
   fewer rows than wanted, and estimate their share in several ways. Then all development rows are the log: what does
   the boundary for its share gain?
3. ``report``: constants are chosen on two data sets and judged on the third.

    python studies/features.py --data-home ../../../shared/data
    python studies/open_share.py --data-home ../../../shared/data score
    python studies/open_share.py --data-home ../../../shared/data score --encoder head --seeds 0 1
    python studies/open_share.py streams     # each case once; goes on where it stopped
    python studies/open_share.py report > results/open_share.rst
"""

import argparse
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import torch
from features import CACHE, FETCHERS, RATIOS, SEEDS, embedded, known_classes
from skellipsoid._after_fit.operating_point.of_share import line_of_share
from sklearn.preprocessing import normalize
from traffic import print_table

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._after_fit import traffic
from skellipsoid._after_fit.traffic.held import HeldOutScores
from skellipsoid._after_fit.traffic.mixture import known_above
from skellipsoid._after_fit.traffic.share import open_share_of, score
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
        lows = [low_of(held, p, copies, level) for level in (0.4, 0.6)]
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
    ratio = float(place.stem.split("-")[2])
    return arrays | {"fifths": fifths, "line": line(held, dev, n_classes), "ratio": ratio}


def low_of(held, p, copies, level):
    """Lower limit at a level, for each tilt."""
    with patched(traffic.share, LEVEL=level, TILT_ERROR=1e-12):
        seen = (1 - traffic.share.resample(held, p, copies).storey) * (1 - level)
    tilts = np.random.default_rng(0).normal(size=len(seen))  # as in ``resample``
    return [np.quantile(1 - seen / known_above(tilt * tilts, level), 1 - traffic.share.CERTAINTY) for tilt in TILTS]


class patched:
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
    with patched(traffic.mixture, TILT_ERROR=tilt, LOG_SHARPNESS_ERROR=log_sharpness):
        return traffic.mixture.fit_mixture(p, n_independent, held.open_shares(), 0.5).share


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


def report():
    """Print the tables in reStructuredText, for frozen features and for the trained head."""
    for encoder, features in (("none", "Frozen features"), ("head", "Trained head")):
        places = sorted((SCORES / "streams").glob(f"{encoder}-*.npz"))
        cases = {name: [dict(np.load(p)) for p in places if p.name.split("-")[1] == name] for name in FETCHERS}
        cases = {name: found for name, found in cases.items() if found}
        if not cases:
            continue
        numbers = ", ".join(f"{len(found)} of {name}" for name, found in cases.items())
        print(f"{features}, cases: {numbers}; each has {N_STREAMS} streams of each size and share.\n")
        print_errors(cases)
        print_lows(cases)
        print_intervals(cases)
        print_lines(cases)


def shares_of(case):
    """Shares by each way of estimating them, with each choice of constants: {way: {constants: (n_streams,)}}."""
    ways = {name: dict(zip(LEVELS, case[name].T, strict=True)) for name in ("storey", "corrected")}
    ways["mixture"] = dict(zip(PRIORS, case["mixture"].T, strict=True))
    storey = ways["storey"][traffic.share.LEVEL]  # the level is that of ``low``
    ways["combination"] = {prior: (1 - mixed) * mixed + mixed * storey for prior, mixed in ways["mixture"].items()}
    return ways


def print_errors(cases):
    """Print errors of the shares on each data set, by constants that have the least on the other two."""
    print("Mean absolute error of the share; constants are those with the least error on the other data sets.\n")
    errors = {}
    for name, found in cases.items():
        for case in found:
            for way, choices in shares_of(case).items():
                for constants, shares in choices.items():
                    off = np.abs(shares - case["true"])
                    of_share = [off[case["true"] == true].mean() for true in SHARES]
                    errors.setdefault((way, constants), {}).setdefault(name, []).append(of_share)
    means = {key: {name: np.mean(rows, axis=0) for name, rows in found.items()} for key, found in errors.items()}
    head = [f"{100 * true:g} %" for true in SHARES]
    table, fixed = [["judged on", "estimate", "constants", "mean", *head]], [["estimate", "constants", "mean", *head]]
    for name, way in itertools.product(cases, ("storey", "corrected", "mixture", "combination")):
        others = [other for other in cases if other != name] or [name]
        best = min(
            (key for key in means if key[0] == way), key=lambda key: np.mean([means[key][other] for other in others])
        )
        row = means[best][name]
        table.append([name, way, str(best[1]), f"{row.mean():.3f}", *(f"{value:.3f}" for value in row)])
    print_table(table)
    print("The same constants everywhere, mean of the data sets:\n")
    for (way, constants), found in means.items():
        row = np.mean([*found.values()], axis=0)
        fixed.append([way, str(constants), f"{row.mean():.4f}", *(f"{value:.3f}" for value in row)])
    print_table(fixed)


def print_lows(cases):
    """Print how often the lower limit holds, by the standard deviation of the tilt and the level."""
    print("Streams whose ``low`` is at most the true share; tilt 0 resamples messages and classes alone.\n")
    table = [["data set", "level", "tilt", *(f"{100 * true:g} %" for true in SHARES), "true share less low"]]
    for (name, found), (i, level), (j, tilt) in itertools.product(
        cases.items(), enumerate((0.4, 0.6)), enumerate(TILTS)
    ):
        lows, true = (np.concatenate([case[key] for case in found]) for key in ("low", "true"))
        low = np.maximum(lows[:, i, j], 0)
        held = [f"{100 * np.mean(low[true == share] <= share + 1e-9):.0f}" for share in SHARES]
        table.append([name, str(level), f"{tilt:.1f}", *held, f"{np.mean(true - low):.3f}"])
    print_table(table)


def print_intervals(cases):
    """Print the coverage by the package's limits, for each data set and share, the worst first."""
    print("The package's estimate. *low*, *high*: streams in which they hold; *note*: those with a sentence.\n")
    rows = []
    for (name, found), share in itertools.product(cases.items(), SHARES):
        told, true, doubt = (np.concatenate([case[key] for case in found]) for key in ("found", "true", "doubt"))
        chosen = true == share
        estimate, low, high = told[chosen].T
        held = np.mean(low <= share + 1e-9), np.mean(high >= share - 1e-9)
        numbers = [np.mean(np.abs(estimate - share)), np.mean(low), np.mean(high)]
        cells = [*(f"{100 * value:.0f} %" for value in held), *(f"{value:.3f}" for value in numbers)]
        rows.append((held, [name, f"{100 * share:g} %", *cells, f"{100 * doubt[chosen].mean():.0f} %"]))
    rows.sort(key=lambda row: row[0])
    print_table(
        [["data set", "open share", "low", "high", "error", "mean low", "mean high", "note"], *(r for _, r in rows)]
    )
    print("Known development rows by fifths of their p-values, percent:\n")
    table = [["data set", "lowest", "", "", "", "highest"]]
    for name, found in cases.items():
        fifths = 100 * np.mean([case["fifths"] for case in found], axis=0)
        table.append([name, *(f"{value:.1f}" for value in fifths)])
    print_table(table)


def print_lines(cases):
    """Print what the boundary for a share gains, and the least gain of any case."""
    print("Macro F1 of all development rows as the log: the fitted boundary, and the change by that for the share.")
    print(
        "*Synthetic*: samples of synthetic classes stand in for open ones, too. *Gated*: the boundary stays where the"
    )
    print("expected gain is at most its error, as in the package.\n")
    ways = list(itertools.product(("held-out", "synthetic"), ("estimated", "true")))
    heads = [f"{stands}, {share}{gate}" for stands, share in ways for gate in ("", ", gated")]
    table = [["data set", "known", "fitted", "best", *heads]]
    changes = {}
    for name, ratio in itertools.product(cases, RATIOS):
        for case in cases[name]:
            if case["ratio"] == ratio:
                gains = [[gain, gain if told > error else 0.0] for gain, told, error in case["line"][:-1]]
                changes.setdefault((name, ratio), []).append([*case["line"][-1][:2], *np.ravel(gains)])
    everything = np.concatenate([*changes.values()])
    for (name, ratio), rows in [*changes.items(), (("mean", None), everything)]:
        fitted, *others = np.mean(rows, axis=0)
        known = "" if ratio is None else f"{100 * ratio:.0f} %"
        table.append([name, known, f"{fitted:.2f}", *(f"{value:+.2f}" for value in others)])
    table.append(["least", "", "", *(f"{value:+.2f}" for value in everything.min(axis=0)[1:])])
    print_table(table)


if __name__ == "__main__":
    main()
