"""A forecast of predictions on messages to come, by held-out samples and what was learned, without a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._core.pipelines import split_estimator
from .._core.results import Result
from .._ellipsoid.changes.learned import learned_of
from .._held_out.expected import Share, read_share
from .._held_out.kept import held_out_of
from .._held_out.table import HeldOutTable
from .._traffic_model.posterior import TrafficModel
from .._traffic_model.threshold import Figure, forecast_of
from .._traffic_model.zones import Zones, forecast_of_zones, place_zones
from .log import Log, expected_traffic, read_log, threshold_for
from .predict_set import asking_known

#: With fewer held-out samples, intervals of 90 % held in 0 to 75 % of trainings, by the figure and the number.
FEWEST_HELD_OUT = 20
#: Figures of open messages; the others are of known ones.
_OF_OPEN = ("noticed", "open_asked")


def forecast_answers(estimator: Any, *, open_share: float | tuple[float, float] | None = None) -> Bunch:
    """Forecast the predictions on messages of users, without a log.

    It is what ``skellipsoid train`` prints: a forecast, not a test. Known messages of users are worded unlike the
    training samples, and thirty labels tell how much (:func:`learn_from_traffic`). Read more in the
    :ref:`User Guide <forecast>`.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. It is not changed.
    open_share : float in [0, 1] or pair of floats, default=None
        Forecast the threshold that ``set_operating_point(estimator, open_share=open_share)`` would place, in
        traffic with this proportion of open messages. ``None``: the threshold as it is, in the
        traffic that was learned or is expected.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``figures``: a table with the columns ``figure``, ``messages``, ``mean``, ``low`` and ``high``. Of known
          messages the rates that are predicted ``right`` and ``wrong``, ``rejected`` and ``asked`` about
          (:func:`predict_set`); of open ones the rates that are detected (``noticed``) and ``open_asked``. The truth
          lies between ``low`` and ``high`` with a probability of 90 %.
        - ``offset``: the threshold that it is of, ``offset_``.
        - ``asking``: the zones of :func:`predict_set`, and what they are expected to do, as ``asking_`` has them after
          :func:`set_operating_point`: also as fitted, where ``asking_`` is ``None``.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample, or fewer than 20 and nothing was learned since: too few for a forecast. If
        ``open_share`` is not a proportion.

    See Also
    --------
    learn_from_traffic : Its ``changes_`` forecast the messages of a log, before and after its labels.
    estimate_open_share : The proportion of open messages in a log.

    Notes
    -----
    The model of the traffic is that of :func:`set_operating_point`, with what was learned or is expected in place of a
    log. The intervals are those of its unknowns, and of the number of held-out samples and classes that stand in for
    users' messages: with few of them, they are wide.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier, forecast_answers
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(1000, 8, n_known=6, open_share=0.1, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y != -1], y[y != -1])
    >>> found = forecast_answers(clf)
    >>> found.figures.figure.tolist()
    ['right', 'wrong', 'rejected', 'noticed', 'asked', 'open_asked']
    >>> right = found.figures.to_dict()[0]
    >>> right["low"] < right["mean"] < right["high"]
    True
    >>> bool(found.asking["low"] <= found.offset <= found.asking["high"])
    True
    """
    classifier = split_estimator(estimator)[1]
    check_is_fitted(classifier)
    held_out = held_out_of(classifier, "forecast_answers")
    if (n := len(held_out.known)) < FEWEST_HELD_OUT and learned_of(classifier) is None:
        raise ValueError(
            f"The fit held out {n} samples, and fewer than {FEWEST_HELD_OUT} do not tell what users will see: pass an "
            "estimator that was fitted to more samples of each class, or label 30 messages (learn_from_traffic)."
        )
    told = None if open_share is None else read_share(open_share)
    found = forecast_as_set(classifier, held_out) if told is None else forecast_placed(classifier, held_out, told)
    figures = found.figures.values()
    return Result(
        figures=Result(
            figure=np.array(list(found.figures)),
            messages=np.array(["open" if name in _OF_OPEN else "known" for name in found.figures]),
            **{part: np.array([getattr(figure, part) for figure in figures]) for part in ("mean", "low", "high")},
        ),
        offset=found.offset,
        asking=dict(found.asking),
    )


class Forecast(NamedTuple):
    """What is expected of messages to come by one threshold, and the zones around it."""

    offset: float
    asking: Mapping[str, float]
    figures: Mapping[str, Figure]


def forecast_as_set(classifier: Any, held_out: HeldOutTable) -> Forecast:
    """Forecast the threshold and the zones as they are, in the traffic that was learned, was told, or is expected."""
    log = read_log(classifier, None, None, None, "forecast_answers")
    found = log.fit(held_out, share_known(classifier, log, None, held_out))
    return _forecast(classifier, held_out, found, classifier.offset_, asking_known(classifier, held_out).asking)


def forecast_as_fitted(classifier: Any, held_out: HeldOutTable) -> Forecast:
    """Forecast the fitted threshold, in the traffic that is expected."""
    found, n_classes = expected_traffic(held_out), len(classifier.classes_)
    asking = place_zones(held_out, found, np.zeros(0), 0.0, n_classes)
    return _forecast(classifier, held_out, found, 0.0, asking)


def forecast_placed(classifier: Any, held_out: HeldOutTable, told: Share) -> Forecast:
    """Forecast the threshold that is placed for an open share."""
    log, n_classes = read_log(classifier, None, None, None, "forecast_answers"), len(classifier.classes_)
    found = log.fit(held_out, told)
    offset = threshold_for(held_out, log, found, n_classes)
    asking = place_zones(held_out, found, np.zeros(0), offset, n_classes)
    return _forecast(classifier, held_out, found, offset, asking)


def _forecast(
    classifier: Any, held_out: HeldOutTable, found: TrafficModel, offset: float, asking: Mapping[str, float]
) -> Forecast:
    zones = Zones(*(asking[name] for name in Zones._fields))
    of_zones = forecast_of_zones(held_out, found, zones, len(classifier.classes_))
    return Forecast(offset, asking, forecast_of(held_out, found, offset) | of_zones)


def share_known(classifier: Any, log: Log, told: Any, held_out: HeldOutTable) -> Share | None:
    """Return the open share: as given now, by labels (``None``), as set before, or as expected."""
    if told is not None:
        return read_share(told)
    if len(log.telling().truth):
        return None
    traffic = classifier.traffic_
    return held_out.expected.open_share if traffic is None else (traffic["low"], traffic["high"])
