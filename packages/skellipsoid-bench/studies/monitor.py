"""False alarms of OpenShareMonitor, and how soon it notices new traffic.

Frozen MiniLM. The classifier is fitted on 60 % of the training rows of the known classes. Their other training and
development rows are the known traffic, training and development rows of the other classes the new one; test rows are
not read. The reference has 1,000 samples, a tenth of them open, so has the stream for 500 samples; then the share of
open samples rises. Samples are drawn with replacement.

    python studies/monitor.py --data-home ../../../shared/data > results/monitor.rst   # about 5 minutes
"""

import argparse
import itertools

import numpy as np
from features import FETCHERS, RATIOS, embedded, known_classes
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor

BASE, N_REFERENCE, N_BEFORE, N_AFTER = 0.1, 1000, 500, 1500
#: Open samples in addition, and how many streams each case has of them.
STREAMS = {0.0: 112, 0.05: 20, 0.1: 20, 0.2: 20}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    options = parser.parse_args()
    print(".. list-table:: Alarms of a monitor with ``false_alarm_rate=0.05``")
    print("   :header-rows: 1\n")
    row("Data", "Known", "False alarms", *(f"Delay for +{100 * added:.0f} %" for added in STREAMS if added))
    found = []
    for name, ratio in itertools.product(FETCHERS, RATIOS):
        found.append(study(name, ratio, options.data_home))
        row(name, f"{ratio:.0%}", *described(found[-1]))
    row("all", "", *described({added: np.concatenate([one[added] for one in found]) for added in STREAMS}))
    print("\n*False alarms*: streams that raise one in 2,000 samples without a change. *Delay*: median number of")
    print("samples from the change to the alarm, and the share of the streams that raise one within 1,500.")


def row(*cells):
    """Print one row of the list table."""
    print("   * - " + "\n     - ".join(cells), flush=True)


def described(at):
    """Say for each share added how many streams raised an alarm, and after how many samples."""
    late = [after[after > N_BEFORE] - N_BEFORE for added, after in at.items() if added]
    shown = [f"{np.median(delay):.0f} ({np.isfinite(delay).mean():.0%})" for delay in late]
    return [f"{np.isfinite(at[0.0]).sum()} of {len(at[0.0])}", *(cell.replace("inf", "none") for cell in shown)]


class ScoredOnce(BaseEstimator):
    """A fitted classifier whose answers to all rows are computed once; a sample is the number of a row."""

    def __init__(self, clf, X):
        self.clf, self.X, self.classes_ = clf, X, clf.classes_
        self.offset_, self.class_offsets_ = clf.offset_, clf.class_offsets_
        self.scores, self.nearest = clf.score_samples(X), clf.predict_known(X)

    def fit(self, X, y):
        """Do nothing: it is fitted."""
        return self

    def score_samples(self, rows):
        """Give the scores of these rows."""
        return self.scores[rows]

    def predict_known(self, rows):
        """Give the nearest classes of these rows."""
        return self.nearest[rows]


def study(name, ratio, data_home):
    """Run the streams of one case: the number of samples at the first alarm, for each share added."""
    known = known_classes(name, ratio, 0, data_home)
    parts = [embedded(name, subset, data_home) for subset in ("train", "dev")]
    X, y = normalize(np.concatenate([part.embeddings for part in parts])), np.concatenate([p.target for p in parts])
    rng = np.random.default_rng(0)
    is_known = np.isin(y, known)
    is_fitted = is_known & (rng.random(len(y)) < 0.6) & (np.arange(len(y)) < len(parts[0].target))
    clf = ScoredOnce(EllipsoidOpenSetClassifier(random_state=0).fit(X[is_fitted], y[is_fitted]), X)
    own, new = np.flatnonzero(is_known & ~is_fitted), np.flatnonzero(~is_known)

    def draw(n, share):
        return np.where(rng.random(n) < share, rng.choice(new, n), rng.choice(own, n))

    at = {}
    for added, n_streams in STREAMS.items():
        at[added] = np.full(n_streams, np.inf)
        for stream in range(n_streams):
            monitor = OpenShareMonitor(clf, random_state=stream).fit(draw(N_REFERENCE, BASE))
            monitor.update(np.concatenate([draw(N_BEFORE, BASE), draw(N_AFTER, BASE + added)]))
            if monitor.alarm_:
                at[added][stream] = monitor.alarm_at_
    return at


if __name__ == "__main__":
    main()
