"""The posterior mean and credible interval of the proportion of open messages in a log, with or without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._core.pipelines import check_samples, split_estimator
from .._core.results import Result
from .._held_out.kept import held_out_of
from .._held_out.table import HeldOutTable
from .._traffic_model.normal_scores import NormalScores
from .._traffic_model.posterior import bins_of
from .log import Log, read_log

#: Above this open rate, too few samples are known to estimate how known traffic scores.
LARGE_RATE = 0.8


def estimate_open_share(
    estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
) -> Bunch:
    """Estimate the proportion of open messages, with an interval: without labels roughly, with thirty labels well.

    Without labels ``low`` and ``high`` allow for known messages that lie farther out than the training samples, as
    those of users do; if they lie still farther out, even ``low`` is too large. Labels of some messages say how far.

    Messages that are equal to training samples, up to rounding, are what their training label says. They are left out
    of the estimate for the others: they lie nearer than any new message.

    After :func:`learn_from_traffic` the estimate starts from the labels that were learned, and those of this log count
    in full. Those of other logs count together as ten for the proportion, which differs from week to week.

    Read more in the :ref:`User Guide <open_share>`.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. For others held-out scores and new ones are on unlike scales.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        A log: features, or texts for a text Pipeline. Repeated messages count as often as they occur, but widen the
        interval.
    y : array-like of shape (n_samples,), default=None
        Labels of some messages, ``None`` or NaN for the others; labels outside ``classes_`` are open. Draw the messages
        to label at random, or pass ``sample_weight``. Equal messages must have equal labels, and count as one with the
        weight of all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the labels, one over the chance of being labelled. What is given for unlabelled messages does not
        matter.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``share``: estimated proportion of open samples, the mean of its posterior.
        - ``low``, ``high``: its 95 % credible interval.
        - ``class_shares``: ndarray of shape (n_classes,), that of each known class, in the order of ``classes_``.
          Their sum is 1 − ``share``.
        - ``n_trained``: number of messages that are equal to training samples.
        - ``note``: a few sentences: how many messages are equal to training samples, and without labels what the
          limits rest on, with labels whether known messages have moved; ``None`` if there is nothing of the kind.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample, if ``X`` is not valid, if ``y`` holds no label, or if a label is a class or the
        open label in another spelling.

    Warns
    -----
    UserWarning
        If labels are read as open that are neither a class nor the open label.

    See Also
    --------
    set_operating_point : Sets the threshold by the same log.

    Notes
    -----
    The estimate is the posterior distribution that :func:`set_operating_point` describes. Without labels every share is
    equally probable beforehand. With labels it has Jeffreys' posterior of their count beforehand: thirty labels,
    none of them open, are an interval, not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(4000, 8, n_known=6, open_share=0.25, random_state=0)
    >>> train = (y != -1) & (np.arange(len(y)) < 2000)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    >>> log, labels = X[2000:], [*y[2000:2030], *[None] * 1970]
    >>> found = estimate_open_share(clf, log, labels)
    >>> bool(found.low < 0.25 < found.high)
    True
    """
    classifier = split_estimator(estimator)[1]
    check_is_fitted(classifier)
    held_out = held_out_of(classifier, "estimate_open_share")
    check_samples(X, "estimate_open_share")
    log = read_log(estimator, X, y, sample_weight, "estimate_open_share")
    found, n_classes = log.fit(held_out), len(classifier.classes_)
    limits = np.array([found.traffic()["open_share"], *found.interval()])
    others, trained = log.telling(), log.trained[: log.n_own]
    known = 1 - found.open_probability()[bins_of(NormalScores.of(held_out)(others.own_scores))]
    of_class = np.bincount(others.assigned[: others.n_own], known, minlength=n_classes)
    of_class = (1 - limits[0]) * others.n_own * of_class / max(of_class.sum(), 1e-12)
    # What equals a training sample is what its label says.
    counts = np.bincount(trained[trained >= 0], minlength=n_classes + 1)
    share, low, high = (others.n_own * limits + counts[-1]) / log.n_own
    note = _note(others, held_out, limits[1]) if others.n_own else None
    return Result(
        share=float(share),
        low=float(low),
        high=float(high),
        class_shares=(of_class + counts[:-1]) / log.n_own,
        n_trained=int(counts.sum()),
        note=" ".join(filter(None, [said_of_trained(int(counts.sum()), log.n_own), note])) or None,
    )


def said_of_trained(n_trained: int, n_messages: int | None = None) -> str | None:
    """Say how many of the messages are equal to training samples; ``None`` if none is."""
    if not n_trained:
        return None
    if n_trained == n_messages:
        return (
            f"All {n_messages} messages are training samples and count as labelled there: they do not show how much of "
            "the traffic is new; pass messages of users."
        )
    of_all = "" if n_messages is None else f" of {n_messages}"
    return (
        f"{n_trained}{of_all} messages are training samples: they count as labelled there, and say nothing of "
        "the others."
    )


def _note(log: Log, held_out: HeldOutTable, low: float) -> str | None:
    """Say what the limits rest on."""
    if log.n_new:
        return log.shift_seen(held_out)
    if len(log.truth):
        n_here = int((log.labels.counts > 0).sum()) - log.n_elsewhere
        return (
            f"The limits rest on the labels that were learned, {n_here} of them in this log."
            if n_here
            else "The limits rest on labels that were learned, none of this log; label about 30 of its messages "
            "if its open share may be another one."
        )
    note = (
        "Nothing without labels tells known messages that have moved from new ones: the limits hold if known messages "
        "lie at most about 1.5 standard deviations farther out than held-out training samples do; label about 30 "
        "messages to know."
    )
    if low > LARGE_RATE:
        note += (
            " Hardly any sample resembles the training samples: either nearly all of them are new, or features are "
            "made in another way."
        )
    return note
