"""The tables of ``real_lines.py``."""

import itertools
import json

import lines
import numpy as np
from line_streams import COLUMNS, SHARES, SIZES, cases_of
from scipy.special import ndtr
from scipy.stats import beta

from skellipsoid._traffic.learning import drawn
from skellipsoid._traffic.log import Log
from skellipsoid._traffic.proba import of_scores
from skellipsoid._traffic_model.threshold import place_threshold

GROUPS = ("real", "far", "home", "shift")


def print_table(rows):
    """Print a table whose first row is the header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    # A first cell that is empty would continue the row above.
    print("\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n")


def columns(place):
    """Read the rows of the streams."""
    rows = zip(*json.loads(place.read_text()), strict=True)
    return {name: np.array(column) for name, column in zip(COLUMNS.split(), rows, strict=True)}


def figures(table, chosen, on=""):
    """Mean F1, loss to the best line, worst change against the fitted line, streams that lose more than 2 and 5."""
    f1, fit, best = (
        table[n][chosen]
        for n in (("f1", "fitted", "best") if not on else ("on_stream", "fitted_on_stream", "best_on_stream"))
    )
    change = f1 - fit
    numbers = f1.mean(), (best - f1).mean(), change.min(), 100 * np.mean(change < -2), 100 * np.mean(change < -5)
    return [f"{value:.1f}" for value in numbers]


def report(options):
    """Print the tables in reStructuredText."""
    for encoder, features in (("none", "Frozen features"), ("head", "Trained head")):
        if (place := options.cache / f"placed_{encoder}.json").exists():
            print(f"{features}\n{'-' * len(features)}\n")
            cases = cases_of(encoder, options)
            print_cases(cases)
            table = columns(place)
            print_ways(table)
            print_cells(table)
            print_each_case(table)
            print_doubled(table)
            if encoder == "none":
                print_shares(cases, options)
                print_unlabelled(cases)
                print_probabilities(cases)
                print_choice(cases)
                print_tests(cases)
    if (place := options.cache / "constants.json").exists():
        print_constants(columns(place))


def print_cases(cases):
    """Print what the cases are."""
    print(
        "Cases, percent. *Foretold*: held-out samples that the fitted line rejects; *best*: the F1 of the best line.\n"
    )
    head = ["case", "texts", "classes", "messages", "foretold", "rejected", "noticed"]
    table = [[*head, *(f"fitted, best at {100 * share:g} % open" for share in SHARES)]]
    for case in cases:
        m = case.messages
        rates = [100 * np.mean(scores < 0) for scores in (case.held.known.scores, m.k_scores, m.o_scores)]
        curves = [case.all_messages(share) for share in SHARES]
        numbers = [str(case.n_train), str(case.n_classes), f"{len(m.k_scores)} + {len(m.o_scores)}"]
        f1 = [f"{curve(0.0):.1f}, {curve.best:.1f}" for curve in curves]
        table.append([case.name, *numbers, *(f"{rate:.0f}" for rate in rates), *f1])
    print_table(table)


def print_ways(table):
    """Print every way of placing the line with every share."""
    print(
        "Means over cases, sizes and shares. *Loss*: to the best line; *worst*: least change of F1 against the fitted"
    )
    print("line; *> 2*, *> 5*: percent of the streams that lose so many points. First for all messages at")
    print("this share, which stand for the traffic to come, then for the rows of the stream itself.\n")
    names = ["F1", "loss", "worst", "> 2", "> 5"]
    rows = [["share", "line", *names, *(f"{name}, stream" for name in names)]]
    for source in sources_of(table):
        for way in dict.fromkeys(table["way"].tolist()):
            chosen = (table["source"] == source) & (table["way"] == way)
            if chosen.any() and not (way == "fitted" and source != "true"):
                rows.append([source, way, *figures(table, chosen), *figures(table, chosen, "stream")])
    print_table(rows)


def print_cells(table):
    """Print sizes and shares."""
    print("Loss to the best line, and in brackets percent of the streams that lose more than 2, by share and size.\n")
    rows = [["share", "line", *(f"{100 * share:g} %, {size}" for share in SHARES for size in SIZES)]]
    ways = [("true", "fitted"), ("true", "share alone"), ("counted 30", "quantile"), ("counted 30", "prototype")]
    ways += [(source, "posterior") for source in sources_of(table)]
    for source, way in ways:
        row = [source, way]
        for share, size in itertools.product(SHARES, SIZES):
            chosen = (table["source"] == source) & (table["way"] == way)
            chosen &= (table["share"] == share) & (table["size"] == size)
            found = figures(table, chosen)
            row.append(f"{found[1]} ({float(found[3]):.0f})")
        rows.append(row)
    print_table(rows)


def sources_of(table):
    """List where shares come from."""
    return list(dict.fromkeys(table["source"].tolist()))


def print_each_case(table):
    """Print each case."""
    print("Each case: loss to the best line by a share counted on 30 messages, and the least change of F1.\n")
    rows = [["case", *(f"{100 * s:g} %: fitted, prototype, posterior" for s in SHARES), "least change"]]
    for case in dict.fromkeys(table["case"].tolist()):
        row = [case]
        for share in SHARES:
            chosen = (table["case"] == case) & (table["share"] == share) & (table["source"] == "counted 30")
            found = [figures(table, chosen & (table["way"] == way))[1] for way in ("fitted", "prototype", "posterior")]
            row.append(", ".join(found))
        chosen = (table["case"] == case) & (table["source"] == "counted 30") & (table["way"] == "posterior")
        rows.append([*row, figures(table, chosen)[2]])
    print_table(rows)


def print_doubled(table):
    """Print what happens if the share doubles."""
    print(
        "The share doubles after the line was set (counted 30): mean change against the fitted line, and the worst.\n"
    )
    rows = [["line", *(f"{100 * s:g} % to {200 * s:g} %" for s in SHARES if s < 0.5)]]
    for way in ("quantile", "prototype", "posterior"):
        row = [way]
        for share in (s for s in SHARES if s < 0.5):
            chosen = (table["way"] == way) & (table["share"] == share) & (table["source"] == "counted 30")
            change = (table["doubled"] - table["fitted_doubled"])[chosen]
            row.append(f"{change.mean():+.1f} ({change.min():+.1f})")
        rows.append(row)
    print_table(rows)


def print_constants(table):
    """Print other constants."""
    print("Other constants (logs of 300 messages): loss to the best line, and streams that lose more than 2.\n")
    names = sources_of(table)
    rows = [["constant", *names, "mean"]]
    for way in dict.fromkeys(table["way"].tolist()):
        row, losses = [way], []
        for source in names:
            found = figures(table, (table["way"] == way) & (table["source"] == source))
            losses.append(float(found[1]))
            row.append(f"{found[1]} ({float(found[3]):.1f})")
        rows.append([*row, f"{np.mean(losses):.2f}"])
    print_table(rows)
    print("The same, chosen on the other cases by the mean loss, judged on the named ones:\n")
    group = np.array([case.split("-")[0] for case in table["case"]])
    loss, ways = table["best"] - table["f1"], list(dict.fromkeys(table["way"].tolist()))
    mean = {(w, g): loss[(table["way"] == w) & (group == g)].mean() for w in ways for g in GROUPS}
    rows = [["judged on", "chosen on the others", "loss", "as chosen", "best of all"]]
    for judged in GROUPS:
        best = min(ways, key=lambda way: np.mean([mean[way, other] for other in GROUPS if other != judged]))
        numbers = mean[best, judged], mean["as chosen", judged], min(mean[way, judged] for way in ways)
        rows.append([judged, best, *(f"{value:.2f}" for value in numbers)])
    print_table(rows)


def powered(is_open, predicted, everywhere, weights=None):
    """Share by prediction-powered inference, and its Beta interval by the effective number of labels.

    The labels' mean plus λ times what the predictions have on all messages more than on the labelled ones; λ is the
    slope with the least variance, in [0, 1].
    """
    w = np.full(len(is_open), 1 / len(is_open)) if weights is None else weights / weights.sum()
    m = 1 / (w @ w)

    def cov(a, b):
        return float(w @ ((a - w @ a) * (b - w @ b)))

    slope = np.clip(cov(is_open, predicted) / max(cov(predicted, predicted) * (1 + m / len(everywhere)), 1e-12), 0, 1)
    share = float(np.clip(w @ is_open + slope * (everywhere.mean() - w @ predicted), 0, 1))
    rest = is_open - slope * predicted
    variance = cov(rest, rest) / m + slope**2 * everywhere.var() / len(everywhere)
    smooth = (share * m + 0.5) / (m + 1)
    effective = np.clip(smooth * (1 - smooth) / max(variance, 1e-12), m, 4 * m)
    return share * effective + 0.5, (1 - share) * effective + 0.5


def print_shares(cases, options):
    """Print errors and coverage of the share by labelled messages."""
    print(
        "Share from m labelled messages of 300 and 1,000: mean error, and percent of the streams in which the limits of"
    )
    print("the interval of 95 % hold, low and high. *Count*: Jeffreys. *Powered*: prediction-powered, by the")
    print("rejected messages or by a falling curve of the normal score. *Posterior*: that of the line.\n")
    rows = [["m", "share by", *(f"{100 * share:g} %" for share in SHARES)]]
    found = {}
    for case, size, share, draw in itertools.product(cases, (300, 1000), SHARES, range(options.draws)):
        stream = case.stream(
            size, share, np.random.default_rng([2, size, round(1000 * share), draw, *case.name.encode()])
        )
        z = case.normal(stream.scores)
        for m in (15, 30, 60):
            opened = stream.is_open[:m].astype(float)
            pairs = {"count": (opened.sum() + 0.5, m - opened.sum() + 0.5)}
            for name, predicted in (("rejected", z < case.normal(0.0)), ("curve", ndtr(-2.5 * (z + 1.7)))):
                predicted = predicted.astype(float)
                pairs[f"powered, {name}"] = powered(opened, predicted[:m], predicted[m:])
            told = {n: (a / (a + b), *beta.ppf([0.025, 0.975], a, b)) for n, (a, b) in pairs.items()}
            told["posterior"] = of_posterior(case, stream, m)
            for name, (mean, low, high) in told.items():
                true = stream.share
                figure = abs(mean - true), low <= true, high >= true
                found.setdefault((m, name), {}).setdefault(share, []).append(figure)
    for (m, name), of_share in found.items():
        means = [np.mean(of_share[share], axis=0) for share in SHARES]
        rows.append([str(m), name, *(f"{e:.3f} ({100 * low:.0f}, {100 * high:.0f})" for e, low, high in means)])
    print_table(rows)


def of_posterior(case, stream, m):
    """Mean and limits of the share by the posterior of the line."""
    found = lines.log_of(stream, lines.Share.counted(stream.is_open[:m])).fit(case.held).traffic()
    return found["open_share"], found["low"], found["high"]


def print_unlabelled(cases):
    """Print errors and coverage of the share without labels."""
    shares = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9)
    print("Share without labels, logs of 300 and 1,000 messages: mean error; percent of the logs in which the limits")
    print(
        "hold (low within .01), low and high; means of the limits. Cases whose known messages have moved come first.\n"
    )
    rows = [["cases", *(f"{100 * share:g} %" for share in shares)]]
    for group in ("shift", "real-bot", "real-c", "far", "home"):
        row = [group]
        for share in shares:
            found = []
            for case, size in itertools.product((c for c in cases if c.name.startswith(group)), (300, 1000)):
                rng = np.random.default_rng([3, size, round(1000 * share), *case.name.encode()])
                stream = case.stream(size, share, rng)
                told = lines.log_of(stream, lines.Share(share)).fit(case.held).traffic()
                low, high, true = told["low"], told["high"], stream.share
                found.append((abs(told["open_share"] - true), low <= true + 0.01, high >= true, low, high))
            error, holds_low, holds_high, low, high = np.mean(found, axis=0)
            row.append(f"{error:.2f} ({100 * holds_low:.0f}, {100 * holds_high:.0f}) {low:.2f}–{high:.2f}")
        rows.append(row)
    print_table(rows)


def print_probabilities(cases):
    """Print how good the probability of open is that ``predict_open_proba`` gives."""
    print("Probability of open for all messages at 5, 20 and 50 % open: Brier score over that of the share itself, and")
    print("expected calibration error; with nothing known but the share, and after a log of 300 with 30 labels.\n")
    rows = [["cases", "share told", "30 labels"]]
    found = {}
    for case, share in itertools.product(cases, (0.05, 0.2, 0.5)):
        m = case.messages
        numbers = [len(m.k_scores), len(m.o_scores)]
        is_open, weights = np.repeat([0.0, 1.0], numbers), np.repeat([(1 - share), share], numbers)
        weights /= np.repeat(numbers, numbers)
        stream = case.stream(300, share, np.random.default_rng([9, round(1000 * share), *case.name.encode()]))
        logs = (
            Log.empty().fit(case.held, share),
            lines.log_of(stream, lines.Share.counted(stream.is_open[:30])).fit(case.held),
        )
        for name, log in zip(rows[0][1:], logs, strict=True):
            told = of_scores(case.held, np.append(m.k_scores, m.o_scores), log.traffic())
            brier = np.average((told - is_open) ** 2, weights=weights) / (share * (1 - share))
            bins = np.minimum((15 * told).astype(int), 14)
            sums = [np.bincount(bins, weights * part, minlength=15) for part in (told, is_open)]
            found.setdefault((case.group, name), []).append((brier, np.abs(sums[0] - sums[1]).sum()))
    for group in GROUPS:
        means = [np.mean(found[group, name], axis=0) for name in rows[0][1:]]
        rows.append([group, *(f"{brier:.2f}, {error:.3f}" for brier, error in means)])
    print_table(rows)


def print_choice(cases):
    """Print what labels that are drawn along the score are worth, against labels drawn at random."""
    print(
        "Labels of a log of 400, drawn at random or along the score (choose_to_label): mean error of the share, percent"
    )
    print("of the logs in which its interval holds, and loss to the best line; two draws of each case.\n")
    rows, found = [["n", "drawn", *(f"{100 * share:g} %" for share in SHARES)]], {}
    for case, share, n, draw in itertools.product(cases, SHARES, (30, 60, 120), range(2)):
        rng = np.random.default_rng([4, round(1000 * share), draw, *case.name.encode()])
        stream, curve = case.stream(400, share, rng), case.all_messages(share)
        log = Log.unlabelled(stream.scores, stream.assigned)
        for way in ("random", "chosen"):
            chosen, weights = rng.permutation(400)[:n], np.ones(n)
            if way == "chosen":
                chosen, weights = drawn(stream.scores, log.copies, n, rng.uniform())
            labelled = np.isin(np.arange(400), chosen)
            model = log.labelled(labelled, stream.truth[labelled], weights, case.n_classes).fit(case.held)
            told = model.traffic()
            loss = curve.best - curve(place_threshold(case.held, model, log.scores, case.n_classes))
            figures = abs(told["open_share"] - stream.share), told["low"] <= stream.share <= told["high"], loss
            found.setdefault((n, way, share), []).append(figures)
    for n, way in itertools.product((30, 60, 120), ("random", "chosen")):
        means = [np.mean(found[n, way, share], axis=0) for share in SHARES]
        rows.append([str(n), way, *(f"{error:.3f} ({100 * holds:.0f}), {loss:.2f}" for error, holds, loss in means)])
    print_table(rows)


def print_tests(cases):
    """Print how often the labelled known messages tell that known traffic has moved."""
    print("Mean normal score of n labelled known messages, percent of 200 draws in which it is below that of held-out")
    print("samples with a one-sided p-value below .05 and .01.\n")
    table = [["case", "mean", "rejected less foretold", *(f"n = {n}" for n in (12, 15, 24, 30, 60))]]
    rng = np.random.default_rng(0)
    for case in cases:
        z, held = case.normal(case.messages.k_scores), case.normal(case.held.known.scores)
        moved = np.mean(case.messages.k_scores < 0) - np.mean(case.held.known.scores < 0)
        row = [case.name, f"{z.mean() - held.mean():+.2f}", f"{100 * moved:+.0f}"]
        for n in (12, 15, 24, 30, 60):
            means = z[rng.integers(len(z), size=(200, n))].mean(axis=1) - held.mean()
            p = ndtr(means / (held.std() * (1 / n + 1 / len(held)) ** 0.5))
            row.append(f"{100 * np.mean(p < 0.05):.0f}, {100 * np.mean(p < 0.01):.0f}")
        table.append(row)
    print_table(table)
