"""Ways to place the line by the scores of a log and its share of open messages, for ``real_lines.py``.

``posterior`` is that of ``set_operating_point``; the others are its rivals.
"""

from typing import NamedTuple

import numpy as np

from skellipsoid._traffic.log import Log
from skellipsoid._traffic_model.posterior import Labels, open_share_draws
from skellipsoid._traffic_model.threshold import place_threshold


class Share(NamedTuple):
    """What is known of the open share: a number or an interval is told, or the first m messages are labelled."""

    value: float
    interval: tuple[float, float] | None = None
    m: int = 0

    @classmethod
    def counted(cls, is_open):
        """Count the labelled messages."""
        return cls((np.sum(is_open) + 0.5) / (len(is_open) + 1), m=len(is_open))

    @property
    def told(self):
        """What ``set_operating_point`` gets as ``open_share``."""
        return None if self.m else self.interval or self.value


def log_of(stream, share):
    """Log of a stream, with the labels of its first messages."""
    log, labelled = Log.unlabelled(stream.scores, stream.assigned), np.arange(len(stream.scores)) < share.m
    return log.labelled(labelled, stream.truth[labelled], np.ones(share.m), stream.n_classes)


def posterior(case, stream, share):
    """Line of the package, by the log and the share."""
    log = log_of(stream, share)
    return place_threshold(case.held, log.fit(case.held, share.told), log.scores, case.n_classes)


def share_alone(case, stream, share):
    """Line of the package by the share, without the log; a count is told as a number."""
    log = Log.empty()
    return place_threshold(case.held, log.fit(case.held, share.interval or share.value), log.scores, case.n_classes)


def fitted(case, stream, share):
    """Line of the fit."""
    return 0.0


def quantile(case, stream, share):
    """Quantile of the log's scores at the share."""
    return float(np.quantile(stream.scores, share.value))


def prototype(case, stream, share, scores=None, value=None):
    """Ten lines: what the log has above the line, less the known ones that held-out scores foretell, is open."""
    scores = np.sort(stream.scores if scores is None else scores)
    share = share.value if value is None else value
    lines = np.unique(np.concatenate([scores, case.few_known]))
    rejected = np.searchsorted(case.sorted_known, lines) / len(case.sorted_known)
    below = np.searchsorted(scores, lines) / len(scores)
    accepted = np.minimum.accumulate(np.clip((1 - below) - (1 - share) * (1 - rejected), 0, share))
    right = (1 - share) * (1 - rejected)
    of_known = 2 * right / (right + accepted + 1 - share)
    of_open = 2 * (share - accepted) / (share - accepted + (1 - share) * rejected + share)
    f1 = (case.n_classes * of_known + of_open) / (case.n_classes + 1)
    return float(np.median(lines[f1 >= f1.max() - 0.002]))


def prototype_bootstrap(case, stream, share, n_resamplings=50):
    """Mean of the prototype's lines over a bootstrap of the messages and of the share."""
    rng = np.random.default_rng(0)
    labels = Labels.none(0)
    if share.m:
        labels = Labels.of(np.ones(share.m, bool), *[stream.is_open[: share.m]] * 2, np.ones(share.m))
    values = rng.permutation(open_share_draws(share.told, labels)[:, 0])[:n_resamplings]
    drawn = rng.choice(stream.scores, (n_resamplings, len(stream.scores)))
    return float(np.mean([prototype(case, stream, share, *draw) for draw in zip(drawn, values, strict=True)]))
