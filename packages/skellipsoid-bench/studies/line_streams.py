"""Logs drawn from the messages of a case, and the lines that are placed by them, for ``real_lines.py``."""

import itertools
import json
import sys
from types import SimpleNamespace

import lines
import numpy as np

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._held_out.kept import held_out_of
from skellipsoid._held_out.state import HELD_OUT
from skellipsoid._traffic_model import posterior
from skellipsoid._traffic_model.normal_scores import NormalScores

SIZES, SHARES = (100, 300, 1000), (0.02, 0.05, 0.2, 0.5)


class Case:
    """Held-out scores of a fit, and the scores of its messages."""

    def __init__(self, place):
        arrays = dict(np.load(place))
        self.name, self.n_classes = place.stem, int(arrays.pop("n_classes"))
        self.n_train = int(arrays.pop("n_train"))
        self.messages = SimpleNamespace(**{n: arrays.pop(n) for n in [*arrays] if n[:2] in ("k_", "o_")})
        fit = type("Fit", (EllipsoidOpenSetClassifier,), {"held_out_": None})()
        fit._held_out, fit.classes_ = HELD_OUT.made("_held_out", arrays, self.n_classes), np.arange(self.n_classes)
        self.table = arrays
        self.held = held = held_out_of(fit, "real_lines.py")
        self.sorted_known = np.sort(held.known.scores)
        self.few_known = np.quantile(held.known.scores, np.linspace(0, 1, 100))
        self.normal = NormalScores.of(held)

    @property
    def group(self):
        """Kind of case."""
        return self.name.split("-")[0]

    def stream(self, size, share, rng):
        """Draw a log; its first messages are those that somebody labels."""
        n_open = max(1, round(size * share))
        m = self.messages
        k, o = (
            rng.choice(len(pool), n, replace=n > len(pool))
            for pool, n in ((m.k_scores, size - n_open), (m.o_scores, n_open))
        )
        order = rng.permutation(size)
        scores, assigned = np.append(m.k_scores[k], m.o_scores[o])[order], np.append(m.k_assigned[k], m.o_assigned[o])
        truth = np.append(m.k_truth[k], np.full(n_open, self.n_classes))[order]
        return SimpleNamespace(
            scores=scores,
            assigned=assigned[order],
            truth=truth,
            is_open=truth == self.n_classes,
            share=n_open / size,
            n_classes=self.n_classes,
        )

    def all_messages(self, share):
        """All messages, weighted so that the share of open ones is as given."""
        m = self.messages
        n_known, n_open = len(m.k_scores), len(m.o_scores)
        return Curve(
            np.append(m.k_scores, m.o_scores),
            np.append(m.k_assigned, m.o_assigned),
            np.append(m.k_truth, np.full(n_open, self.n_classes)),
            self.n_classes,
            np.repeat([(1 - share) / n_known, share / n_open], [n_known, n_open]),
        )


class Curve:
    """Macro F1 over open and the classes that occur, at every line."""

    def __init__(self, scores, assigned, truth, n_classes, weights):
        order = np.argsort(scores, kind="stable")
        self.scores, assigned, truth, weights = scores[order], assigned[order], truth[order], weights[order]
        n = len(scores)
        correct, answered = np.zeros((2, n + 1, n_classes))
        at = np.arange(n) + 1, assigned
        correct[at], answered[at] = weights * (assigned == truth), weights
        correct, answered = (table.sum(axis=0) - table.cumsum(axis=0) for table in (correct, answered))
        known = truth < n_classes
        support = np.bincount(truth[known], weights[known], minlength=n_classes)
        f1 = 2 * correct[:, support > 0] / (answered + support)[:, support > 0]
        noticed, rejected = (np.append(0, np.cumsum(w)) for w in (weights * ~known, weights))
        of_open = 2 * noticed / (rejected + weights[~known].sum())
        self.f1 = 100 * (f1.sum(axis=1) + of_open) / ((support > 0).sum() + 1)
        self.best = self.f1.max()

    def __call__(self, line):
        """F1 in percent at a line."""
        return self.f1[np.searchsorted(self.scores, line, side="left")]


def cases_of(encoder, options):
    """Read the cases of an encoder."""
    return [Case(place) for place in sorted((options.cache / f"lines_{encoder}").glob("*.npz"))]


def sources(stream):
    """Say what is known of the share of a stream."""
    told = {
        name: min(factor * stream.share, 0.99) for name, factor in {"true": 1.0, "half": 0.5, "double": 2.0}.items()
    }
    found = {name: lines.Share(value) for name, value in told.items()}
    found["interval"] = lines.Share(stream.share, (told["half"], told["double"]))
    return found | {f"counted {m}": lines.Share.counted(stream.is_open[:m]) for m in (15, 30)}


WAYS = {
    "fitted": lines.fitted,
    "quantile": lines.quantile,
    "prototype": lines.prototype,
    "prototype, bootstrap": lines.prototype_bootstrap,
    "share alone": lines.share_alone,
    "posterior": lines.posterior,
}
COLUMNS = (
    "case size share draw way source f1 fitted best on_stream fitted_on_stream best_on_stream doubled fitted_doubled"
)


def placed(cases, ways, options, sizes=SIZES, seed=0):
    """Place the lines of all streams, one row for each way and source."""
    rows = []
    for case in cases:
        curves = {
            share: case.all_messages(share) for share in {*SHARES, *(2 * share for share in SHARES if share < 0.5)}
        }
        for size, share, draw in itertools.product(sizes, SHARES, range(options.draws)):
            rng = np.random.default_rng([seed, size, round(1000 * share), draw, *case.name.encode()])
            stream = case.stream(size, share, rng)
            here = Curve(stream.scores, stream.assigned, stream.truth, case.n_classes, np.ones(size))
            later = curves[share], here, curves.get(2 * share, curves[share])
            for (way, place), (source, told) in itertools.product(ways.items(), sources(stream).items()):
                offset = place(case, stream, told)
                rows.append((case.name, size, share, draw, way, source, *measured(offset, *later)))
        print(case.name, file=sys.stderr, flush=True)
    return rows


def measured(line, now, here, later):
    """F1, that of the fitted line and the best: of all messages, of the stream, and after the share has doubled."""
    return now(line), now(0.0), now.best, here(line), here(0.0), here.best, later(line), later(0.0)


def streams(options):
    """Draw the streams of every case."""
    for encoder in ("none", "head"):
        place = options.cache / f"placed_{encoder}.json"
        if not place.exists() and (cases := cases_of(encoder, options)):
            place.write_text(json.dumps(placed(cases, WAYS, options)))


#: Constants of the line and other values of them.
VARIANTS = {
    "SHIFT": ((0.0, 0.3), (0.3, 0.3), (0.6, 0.6)),
    "SPREAD": ((0.0, 0.01), (0.0, 0.2)),
    "PLACE": ((-0.4, 0.8), (0.4, 0.8), (0.0, 0.4), (0.0, 1.6)),
    "WIDTH": ((-0.4, 0.3), (0.4, 0.3), (0.0, 0.6)),
    "MOST_MESSAGES": (25, 100, 10**9),
    "TOLD_ERROR": (0.15, 0.6),
    "LOOK_KNOWN": (0.002, 0.05),
}


def varied(name, value):
    """Place the line with another value of a constant."""

    def place(case, stream, share):
        before = getattr(posterior, name)
        setattr(posterior, name, value)
        try:
            return lines.posterior(case, stream, share)
        finally:
            setattr(posterior, name, before)

    return place


def constants(options):
    """Other constants, on other streams."""
    ways = {"as chosen": lines.posterior}
    ways |= {f"{name} = {value}": varied(name, value) for name, values in VARIANTS.items() for value in values}
    options.draws = 1
    cases = [case for case in cases_of("none", options) if case.group != "home" or case.name.endswith(".0")]
    (options.cache / "constants.json").write_text(json.dumps(placed(cases, ways, options, (300,), seed=1)))
