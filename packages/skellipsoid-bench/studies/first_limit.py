r"""The limit of a fit that nobody has told anything: how much F1 it loses, and whether its forecast holds.

Cases are those of ``real_lines.py``, which fits them, and tables of numbers, which are fitted here. Open shares are 5,
20 and 50 %, but that of the held-out classes for the home cases and the tables.

    python studies/real_lines.py --data-home ../../../shared/data embed
    python studies/real_lines.py --data-home ../../../shared/data score
    python studies/first_limit.py > results/first_limit.rst
"""

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_streams import Case
from line_tables import print_table
from real_lines import OPEN, keep
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skellipsoid._held_out.expected import TRAFFIC, Expected
from skellipsoid._held_out.table import KNOWN, OF_OTHER_CLASS, SYNTHETIC, HeldOutTable, best_scale
from skellipsoid._traffic_model import posterior
from skellipsoid._traffic_model.posterior import Labels, fit_traffic_model
from skellipsoid._traffic_model.threshold import forecast_of, threshold_without_log

GROUPS = ("bots", "cards", "far", "shift", "home 25 %", "home 50 %", "home 75 %", "digits", "wine", "iris")
SHARES = (0.05, 0.2, 0.5)
FIGURES = ("right", "wrong", "rejected", "noticed", "f1")
LITERATURE = Expected((0.25, 0.75), 0.0)


def main():
    """Fit the tables of numbers, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE / "real_lines")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few samples
    fit_tables(options.cache / "lines_none")
    cases = [Case(place) for place in sorted((options.cache / "lines_none").glob("*.npz"))]
    title = "The limit of a fit that nobody has told anything"
    print(title, "=" * len(title), sep="\n", end="\n\n")
    print_losses(cases)
    print_forecasts(cases)


def fit_tables(folder):
    """Digits, wines and irises: two thirds of the classes are known, half of their samples train; ten draws."""
    for name, load in {"digits": load_digits, "wine": load_wine, "iris": load_iris}.items():
        X, y = load(return_X_y=True)
        X, y = (X if name == "digits" else scale(X)), y.astype(str)
        for seed in range(10):
            place = folder / f"table-{name}.{seed}.npz"
            if place.exists():
                continue
            rng = np.random.default_rng(seed)
            known = rng.permutation(np.unique(y))[: round(2 / 3 * len(np.unique(y)))]
            rows = np.flatnonzero(np.isin(y, known))
            train, test = train_test_split(rows, test_size=0.5, stratify=y[rows], random_state=seed)
            keep(place, X[train], y[train], X[test], X[~np.isin(y, [*known, OPEN])], y[test])


def group_of(name):
    """Kind of a case, and the open shares that it is judged at."""
    kind, rest = name.split("-", 1)
    if kind == "home":
        ratio = rest.split("0.")[1].split(".")[0].ljust(2, "0")
        return f"home {ratio} %", (1 - int(ratio) / 100,)
    if kind == "table":
        return rest.split(".")[0], (1 / 3,)
    if kind == "real" and not rest.startswith(("cardsood", "clinc")):
        return ("cards" if rest.startswith("cards") else "bots"), SHARES
    return ("far" if kind == "real" else kind), SHARES


def former(case):
    """Limit by the expected F1 of held-out and synthetic classes, which trainers and some baselines have."""
    is_open, is_synthetic = (case.table[name].astype(bool) for name in ("is_open", "is_synthetic"))
    kinds = np.where(is_synthetic, SYNTHETIC, np.where(is_open, OF_OTHER_CLASS, KNOWN))
    codes = (case.table[name].astype(np.int64) for name in ("nearest", "classes"))
    distances, weights = 1 - case.table["scores"], case.table["weights"]
    table = HeldOutTable(kinds, distances, *codes, weights, np.arange(len(kinds)), case.n_classes)
    return 1 - best_scale(table)[0]


def expecting(expected):
    """Give a rule: the limit of a fit that expects this traffic."""
    return lambda case: threshold_without_log(case.held._replace(expected=expected), case.n_classes)


def varied(name, value):
    """Give a rule: the default with another value of a constant."""

    def rule(case):
        before = getattr(posterior, name)
        setattr(posterior, name, value)
        try:
            return expecting(Expected())(case)
        finally:
            setattr(posterior, name, before)

    return rule


RULES = {
    "expected F1 of held-out and synthetic classes": former,
    "10 % of held-out samples rejected": lambda case: float(np.quantile(case.held.known.scores, 0.1)),
    f"default: open_share={TRAFFIC}": expecting(Expected()),
    "the same, known_shift=0": expecting(Expected(known_shift=0.0)),
    "the same, known_shift=0.5": expecting(Expected(known_shift=0.5)),
    **{
        f"open_share={share}": expecting(Expected(share))
        for share in ((0.02, 0.5), (0.05, 0.6), (0.05, 0.75), (0.1, 0.75), (0.2, 0.75), 0.3)
    },
    "open_share=(0.25, 0.75)": expecting(Expected((0.25, 0.75))),
    "literature: open_share=(0.25, 0.75), known_shift=0": expecting(LITERATURE),
    **{f"beta={beta}": expecting(Expected(open_weight=2 * beta)) for beta in (0.25, 1.0)},
    **{
        f"{name} = {value}": varied(name, value)
        for name, values in {
            "SHIFT": (0.25, 1.0),
            "PLACE": ((0.0, 0.45), (0.8, 0.45), (0.4, 0.2), (0.4, 0.9)),
            "SYNTHETIC_PART": (0.0, 0.5),
            "LOOK_KNOWN": (0.002, 0.05),
        }.items()
        for value in values
    },
}


def print_losses(cases):
    """Print the loss of F1 to the best limit, for each rule and kind of case."""
    print("Loss of macro F1 to the best limit, points: mean (worst) of the cases. *home*: as in the literature, by the")
    print("share of known classes. *digits*, *wine*, *iris*: tables, two thirds of the classes known.\n")
    rows = [["limit", *GROUPS]]
    for name, rule in RULES.items():
        losses = {}
        for case in cases:
            group, shares = group_of(case.name)
            limit = rule(case)
            for share in shares:
                curve = case.all_messages(share)
                losses.setdefault(group, []).append(curve.best - curve(limit))
        rows.append([name, *(f"{np.mean(losses[g]):.1f} ({np.max(losses[g]):.1f})" for g in GROUPS)])
    print_table(rows)


def print_forecasts(cases):
    """Print how often the figures of a forecast lie in their intervals."""
    print(
        "\nForecasts of the default at 5, 20 and 50 % open: percent of the cases in which a figure lies in its interval"
    )
    print("of 90 %, mean width of the interval, and mean of the forecast less the truth; points.\n")
    found, none = {}, np.zeros(0)
    for case, share in itertools.product(cases, SHARES):
        limit = threshold_without_log(case.held, case.n_classes)
        model = fit_traffic_model(case.held, none, none.astype(np.int64), Labels.none(0), share)
        told, m = forecast_of(case.held, model, limit, case.n_classes), case.messages
        is_right, accepted = m.k_assigned == m.k_truth, m.k_scores >= limit
        truth = (is_right & accepted).mean(), (~is_right & accepted).mean(), (~accepted).mean()
        truth = *truth, (m.o_scores < limit).mean(), case.all_messages(share)(limit) / 100
        for name, figure, true in zip(FIGURES, told, truth, strict=True):
            values = figure.low <= true <= figure.high, figure.high - figure.low, figure.mean - true
            found.setdefault((name, group_of(case.name)[0]), []).append(values)
    rows = [["figure", *GROUPS]]
    for name in FIGURES:
        means = [np.mean(found[name, group], axis=0) for group in GROUPS]
        rows.append([name, *(f"{100 * holds:.0f}, {100 * width:.0f}, {100 * off:+.0f}" for holds, width, off in means)])
    print_table(rows)
    judged = [rows for (name, g), rows in found.items() if g in ("bots", "cards", "shift") and name != "f1"]
    holds, width, _ = np.mean(np.concatenate(judged), axis=0)
    print(
        f"\nBots, cards and shift together, without F1: {100 * holds:.0f} % in the interval, width {100 * width:.0f}."
    )


if __name__ == "__main__":
    main()
