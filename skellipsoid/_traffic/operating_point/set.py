"""The threshold of a fitted classifier: by a rate and samples, by a log or an open share, or as fitted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..._core.open_set_classifier import BaseOpenSetClassifier
from ..._core.pipelines import split_estimator
from ..._core.validation import is_number
from ..._core.warn import warn
from ..._held_out.expected import read_share
from ..._held_out.kept import KeepsHeldOutMixin, Placed, held_out_of
from ..._held_out.table import HeldOutTable
from ..._traffic_model.posterior import TrafficModel
from ..log import Log, read_log, threshold_for
from ..predict_set import read_asking, zones_placed
from .offsets import check_rates, offset_of_rate

#: A threshold that rejects this proportion of known samples, or accepts it of open ones, gets a warning.
NEARLY_ALL = 0.8


def set_operating_point(
    estimator: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    rejection_rate: float | None = None,
    open_acceptance_rate: float | None = None,
    open_share: float | tuple[float, float] | None = None,
    cost_open: float | None = None,
    cost_reject: float | None = None,
    miss_rate: float | None = None,
    ask_costs: Mapping[str, float] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Set the threshold between known and open of a fitted classifier, for the traffic that it meets.

    Sets ``offset_``, the score below which ``predict`` rejects, ``class_offsets_`` to 0, and ``asking_``, the
    zones of :func:`predict_set` around the threshold. For balls and ellipsoids, an offset of o multiplies the radius by
    1 − o. Nothing else changes. Use samples that were not used in training; messages of a log that are equal to
    training samples are left out, since they lie nearer than any new message.

    There are six ways to call it:

    - with a log and some labels, ``set_operating_point(clf, log, y)``: thirty labels are enough;
    - with a log and an open share that you know, ``set_operating_point(clf, log, open_share=0.05)``;
    - with the open share alone, ``set_operating_point(clf, open_share=0.05)``;
    - with a rate, and samples that it refers to;
    - with ``miss_rate`` or ``ask_costs`` alone: the threshold stays, and the zones around it are placed for what was
      learned of the traffic;
    - with nothing else, ``set_operating_point(clf)``: back to what the fit, or the last :func:`learn_from_traffic`,
      placed.

    Read more in the :ref:`User Guide <line_for_traffic>`.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted. It is changed in place; a later ``fit`` resets it.
    X : array-like of shape (n_samples, n_features), or n_samples texts, default=None
        Features, or texts for a text Pipeline: a log, or samples that a rate refers to.
    y : array-like of shape (n_samples,), default=None
        Labels; those outside ``classes_`` are open. For a log: ``None`` or NaN where nobody has labelled. For a rate
        every sample has a label, or ``y`` is ``None``: then every sample is known for ``rejection_rate`` and open for
        ``open_acceptance_rate``.
    rejection_rate : float in [0, 1], default=None
        Take the offset that rejects at most this rate of *new* known samples, on average over draws of the n given
        known samples [1]_. The offset is the score of rank (n + 1) · rate, rounded down, counted from the lowest: with
        99 samples and 0.05, the fifth lowest score. If this rank is 0, the offset is the lowest score. A rate of 0
        rejects none of the given known samples.
    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this rate of *new* open samples, on average over draws of the m
        given open samples: of these it accepts ⌊(m + 1) · rate⌋ − 1. If this number is negative, it accepts none of
        them. A rate of 0 accepts none of the given open samples.
    open_share : float in [0, 1] or pair of floats, default=None
        Proportion of open samples in future traffic, or an interval that holds it with a probability of 95 %. A
        number is taken to be right within a factor of about two. ``None``: what the labels say. Both may be given.
    cost_open, cost_reject : float, default=None
        Cost of an open sample that is accepted, and of a known sample that is rejected. If one of them is given, the
        offset has the lowest expected cost in place of the best F1; the other is 1 by default.
    miss_rate : float in [0, 1], default=None
        Largest proportion of known messages that get neither the right class nor a question that offers it among three.
        The zones of :func:`predict_set` ask as few questions as possible below it. ``None``: by the costs.
    ask_costs : mapping of str to float, default=None
        What a ``"question"`` costs (1 by default), a ``"wrong"`` prediction (4), and a ``"person"`` (2) to whom an open
        message is handed over, or one for which none of the offered classes is right. The zones have the lowest
        expected cost. What is not named has its default.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the labels of a log, one over the chance of being labelled, if they were not drawn at random. What is
        given for unlabelled messages does not matter.

    Returns
    -------
    estimator : object
        The same estimator. Its classifier's ``traffic_`` says what was learned: a dict with ``open_share`` and its
        bounds ``low`` and ``high``; ``known_shift``, how much farther out than held-out samples known messages lie, and
        ``known_spread``; ``open_place``, how far below these open ones lie, and ``open_width``. The unit is a standard
        deviation of the held-out samples. ``None`` as fitted; a rate leaves it. :func:`predict_open_proba` uses it.
        ``asking_`` says where the zones are (``low``, ``high``, ``gap``) and what they are expected to do: of known
        messages the rates ``served`` with the right class, predicted ``wrong``, ``asked`` and ``missed``, of open ones
        ``open_asked`` and ``open_answered``. ``None`` after a rate, as fitted, and if no held-out samples tell it: then
        they follow the threshold. What was learned before counts, also if an open share is given.

    Raises
    ------
    ValueError
        If both rates are given, if a rate is outside [0, 1], or if no sample of the wanted kind is there. If all known
        samples of a rate are so far out that their scores are −∞. If options of the open share and of a rate are mixed,
        or a cost is not positive. If a log has neither labels nor an open share: in it alone, known messages with
        another wording look like open ones. If an open share is given and the fit held out nothing. If a label is a
        class or the open label in another spelling: case, blanks, hyphens, quotes, brackets. If ``miss_rate`` is no
        rate, a cost of ``ask_costs`` is not positive or has another name, or both are given.
    TypeError
        If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one. If an
        open share is used and the classifier has no ``held_out_``.

    Warns
    -----
    UserWarning
        If labels are read as open that are neither a class nor the open label. If there are fewer samples than a rate
        needs: 1 / rate − 1. The warning says which rates so few can keep. If the labelled known messages lie farther
        out than held-out training samples: then the fit predicted too few rejections. If three classes cannot keep
        ``miss_rate``: the warning says which rate they can keep, and that one is kept. If the threshold rejects or
        accepts nearly everything, by a rate of 1, or by costs that differ too much.

    Notes
    -----
    *A log.* The scores of held-out samples give each score a place z in a normal distribution. Known messages of the
    log are assumed to lie as N(−d, s²), open ones as N(−m, t²), and a proportion π to be open. The five unknowns have
    priors that were chosen on text; labels and scores of the log give the posterior distribution. The offset has the
    best mean of the expected macro F1 over it. That a known message gets the right class depends on z as it does for
    held-out ones. A log counts as at most 50 messages, since the model of its scores is not the truth. A share that is
    given without a label moves the threshold half of the way where it asks for a stricter one than before: how far out
    known messages lie is then not known, and those that lie far out look open.

    *A rate.* Let r of n given samples be beyond the offset, and let the offset be the score of the next one. The
    proportion of new samples beyond the offset has the distribution Beta(r + 1, n − r), whatever the distribution of
    the scores. Its mean is (r + 1) / (n + 1). With five open samples, all of them rejected, one sixth of new open
    samples is accepted on average, and at most 45 % with a confidence of 0.95 [2]_. All this is about samples that are
    drawn alike: it says nothing about open samples of another kind.

    References
    ----------
    .. [1] Vovk, V., Gammerman, A., Shafer, G. "Algorithmic Learning in a Random World." Springer, 2005.
    .. [2] Wilks, S. S. "Determination of Sample Sizes for Setting Tolerance Limits." Annals of Mathematical Statistics
       12, 1941.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 2)) + np.repeat([[0], [9]], 200, axis=0), np.repeat([0, 1], 200)
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X[::2], y[::2])
    >>> clf = skellipsoid.set_operating_point(clf, X[1::2], rejection_rate=0.05)
    >>> bool((clf.predict(X[1::2]) == -1).mean() <= 0.05)  # the tenth lowest score of 200 is the offset
    True
    >>> clf = skellipsoid.set_operating_point(clf, open_share=0.02)
    >>> clf.offset_ < 0  # little is open: fewer known samples are rejected
    True
    """
    classifier = open_set_classifier(estimator)
    check_is_fitted(classifier)
    check_rates(rejection_rate, open_acceptance_rate)
    asked_by = read_asking(miss_rate, ask_costs)
    if miss_rate is not None or ask_costs is not None:
        held_out_of(classifier, "set_operating_point")  # or an error
    rates = {"rejection_rate": rejection_rate, "open_acceptance_rate": open_acceptance_rate}
    rate = next((name for name, value in rates.items() if value is not None), None)
    costs, found, log = _check_costs(cost_open, cost_reject), None, Log.empty()
    threshold_stays = asked_by != (None, None) and rate is None and X is None and open_share is None
    if rate is not None:
        others = {"open_share": open_share, "cost_open": cost_open, "cost_reject": cost_reject}
        _check_only_a_rate(rate, X, others | {"sample_weight": sample_weight})
        offset = offset_of_rate(estimator, X, y, rejection_rate, open_acceptance_rate)
        back = Placed(offset, getattr(classifier, "traffic_", None))
    elif X is None and open_share is None:
        _check_share_is_there(costs, y)
        back = getattr(classifier, "_taught", None) or Placed(0.0)
    else:
        held_out = held_out_of(classifier, "set_operating_point")
        log, found = _fit_log(held_out, estimator, X, y, sample_weight, open_share)
        offset = threshold_for(held_out, log, found, len(classifier.classes_), costs)
        back = Placed(offset, found.traffic())
        _warn_of_all(held_out, offset)
    placed = copy(classifier)
    if not threshold_stays:
        placed.offset_, placed.class_offsets_ = back.offset, np.zeros(len(placed.classes_))
    if isinstance(placed, KeepsHeldOutMixin):
        placed.traffic_ = placed.traffic_ if threshold_stays else back.traffic
        is_back = found is None and asked_by == (None, None)  # without zones of their own they follow the threshold
        placed.asking_ = back.asking if is_back else zones_placed(placed, found, log.own_scores, *asked_by)
    classifier.__dict__.update(vars(placed))  # all at once
    return estimator


def _fit_log(
    held_out: HeldOutTable, estimator: Any, X: Any, y: Any, sample_weight: Any, open_share: Any
) -> tuple[Log, TrafficModel]:
    """Read a log, and fit its model; warn if labelled known messages lie farther out than held-out samples."""
    share = None if open_share is None else read_share(open_share)
    log = read_log(estimator, X, y, sample_weight, "set_operating_point")
    if open_share is None and not len(log.telling().truth):
        if len(log.truth):
            raise ValueError(
                f"All {len(log.truth)} labelled messages are training samples, which say nothing about the others: "
                "label about 30 other messages, or pass open_share."
            )
        raise ValueError(
            "A log alone does not say where the threshold goes, since known messages that are worded unlike the "
            "training samples look like open ones: pass y with labels of about 30 messages, and None for the "
            "others, or open_share."
        )
    found = log.fit(held_out, share)
    if log.n_new and (shifted := log.shift_seen(held_out)) is not None:
        warn(shifted)
    return log, found


def _warn_of_all(held_out: HeldOutTable, offset: float) -> None:
    """Warn if a threshold rejects nearly all held-out known samples, or accepts nearly all of held-out classes."""
    rejected = np.average(held_out.known.scores < offset, weights=held_out.known.weights)
    opened = held_out.other_class
    accepted = np.average(opened.scores >= offset, weights=opened.weights) if len(opened) else 0.0
    advice = "pass costs that differ less, or another open_share"
    if rejected >= NEARLY_ALL:
        warn(f"The threshold rejects {100 * rejected:.0f} % of the known samples that the fit held out; {advice}.")
    elif accepted >= NEARLY_ALL:
        warn(f"The threshold accepts {100 * accepted:.0f} % of the samples whose class the fit held out; {advice}.")


def _check_costs(cost_open: Any, cost_reject: Any) -> tuple[float, float] | None:
    """Read the costs; ``None`` if neither is given."""
    costs = {"cost_open": cost_open, "cost_reject": cost_reject}
    for name, cost in costs.items():
        if cost is not None and not (is_number(cost) and 1e-9 <= cost <= 1e9):
            raise ValueError(f"{name}={cost!r} is not a cost; use a positive number, of at least 1e-9 and at most 1e9.")
    if cost_open is None and cost_reject is None:
        return None
    found = [1.0 if cost is None else float(cost) for cost in costs.values()]
    return found[0], found[1]


def _check_only_a_rate(rate: str, X: Any, others: dict[str, Any]) -> None:
    """Raise an error if a rate comes with other options of a threshold, or without samples."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} and {rate} are both given; set one of them and leave the other None.")
    if X is None:
        raise ValueError(f"{rate} is a proportion of samples, but there are none; pass X.")


def _check_share_is_there(costs: Any, y: Any) -> None:
    for name, value in {"A cost": costs, "y": y}.items():
        if value is not None:
            raise ValueError(f"{name} needs traffic: pass a log as X with labels of some messages, or open_share.")


def open_set_classifier(estimator: Any) -> BaseOpenSetClassifier:
    """Return the last step of an estimator; an error unless it has a threshold."""
    classifier = split_estimator(estimator)[1]
    if not isinstance(classifier, BaseOpenSetClassifier):
        raise TypeError(
            f"{type(classifier).__name__} has no operating point to set; pass an open-set classifier of this package "
            "or a Pipeline that ends in one."
        )
    return classifier
