"""Predictions with a reject option and questions: one class, a few to choose from, or open."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import Bunch

from skellipsoid_runtime._answers import ASK, OPEN, actions, check_max_classes, offered

from .._core.open_set_classifier import Predictions
from .._core.pipelines import read_estimator
from .._core.results import Result
from .._core.validation import is_number
from .._core.warn import warn
from .._held_out.kept import held_out_of
from .._held_out.table import N_FIRST, Floats, HeldOutTable, gap_of
from .._traffic_model.posterior import TrafficModel, Unknowns
from .._traffic_model.priors import CONFUSION
from .._traffic_model.threshold import forecast_of
from .._traffic_model.zones import Costs, Questions, Ranks, Zones, forecast_of_zones, least_missed, place_zones
from .log import MEMBERS, expected_traffic
from .proba import of_scores


def predict_set(estimator: Any, X: ArrayLike, *, max_classes: int = 3) -> Bunch:
    """Predict a class for each message, ask which of a few classes it is, or reject it as open.

    A message is answered if its score, and the gap between its first two classes, leave little doubt. It is open if no
    class is likely. In between, a question offers the most likely classes and "none of these". Read more in the
    :ref:`User Guide <asking_back>`.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. For others held-out scores and new ones are on unlike scales.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Features, or texts for a text Pipeline.
    max_classes : {1, 2, 3}, default=3
        Most classes that a question offers. The zones are placed for three: with fewer, more questions miss.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``action``: ndarray of shape (n_samples,), ``"answer"``, ``"ask"`` or ``"open"``. It only adds
          questions: no message is answered that ``predict`` rejects, and none is open that ``predict`` accepts.
        - ``classes``: ndarray of shape (n_samples, max_classes). The class that is answered, or those to ask about, in
          the order of ``decision_function``; empty places hold the open label.
        - ``probability``: ndarray of shape (n_samples,), that the right class is among them; of an open message, that
          it is open.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample, if ``max_classes`` is not 1, 2 or 3, or if ``X`` is not valid.

    See Also
    --------
    set_operating_point : Places the zones: for a log, for other costs (``ask_costs``), or for a rate (``miss_rate``).
    predict_open_proba : Probabilities of all classes.

    Notes
    -----
    The zones are two thresholds of the score and one of the gap. They follow from the model of the traffic that places
    the threshold of ``predict``, and from held-out samples: how often their class is the first, among the first two and
    three, by their score and gap (logistic regressions). ``asking_`` holds them after :func:`set_operating_point`;
    before, they are those of the traffic that the classifier expects.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, predict_set
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [3, 0], [0, 20]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["a", "b", "c"], 100))
    >>> found = predict_set(clf, [[0, 20], [1.5, 0], [60, 60]], max_classes=2)
    >>> found.action.tolist()
    ['answer', 'ask', 'open']
    >>> found.classes[[0, 2]].tolist()
    [['c', '-1'], ['-1', '-1']]
    """
    max_classes = check_max_classes(max_classes)
    classifier, features = read_estimator(estimator, X, MEMBERS, "predict_set")
    held_out = held_out_of(classifier, "predict_set")
    known = asking_known(classifier, held_out)
    first, gaps = first_classes(classifier, features)
    found = classifier._score_checked(features)  # to the last bit as predict compares it
    scores = np.asarray(found.scores, dtype=np.float64)
    action = _actions(classifier, known.asking, found, gaps)
    codes = offered(action, first, found.assigned, len(classifier.classes_), max_classes)
    n_offered = np.where(action == ASK, max_classes, 1)
    log_odds = known.ranks.log_odds(known.ranks.scores(scores), known.ranks.normal_gaps(gaps))
    among = expit(log_odds - known.confusion)[n_offered - 1, np.arange(len(first))]
    is_open = of_scores(held_out, scores, known.traffic)
    probability = np.where(action == OPEN, is_open, (1 - is_open) * among)
    return Result(action=action, classes=classifier._possible_labels()[codes], probability=probability)


def first_classes(classifier: Any, features: Any) -> tuple[NDArray[np.int64], Floats]:
    """First classes of each sample, (n_samples, at most 3), and the gap between the first two, (n_samples,)."""
    first, compared = classifier._in_order(features, N_FIRST)
    return first, gap_of(compared)


def _actions(classifier: Any, zones: Mapping[str, float], found: Predictions, gaps: Floats) -> NDArray[np.str_]:
    """Say what is done with each message, by zones and the threshold as it is now."""
    class_offsets, scores = classifier.class_offsets_[found.assigned], found.scores
    is_known = scores >= (classifier.offset_ + class_offsets).astype(scores.dtype)  # as predict does
    return actions(~is_known, scores, gaps, zones, class_offsets, found.unread)


def read_asking(miss_rate: Any, ask_costs: Any) -> tuple[Costs | None, float | None]:
    """Read what the zones are to be placed by."""
    if miss_rate is not None and ask_costs is not None:
        raise ValueError("miss_rate and ask_costs are both given; set one of them and leave the other None.")
    if miss_rate is not None:
        if not (is_number(miss_rate) and 0 <= miss_rate <= 1):
            raise ValueError(f"miss_rate={miss_rate!r} is not a share; use a number from 0 to 1.")
        return None, float(miss_rate)
    if ask_costs is None:
        return None, None
    if not isinstance(ask_costs, Mapping) or not ask_costs.keys() <= set(Costs._fields):
        raise ValueError(
            f"ask_costs={ask_costs!r} is no mapping of costs; use the names 'question', 'wrong' and 'person', such as "
            "{'wrong': 10}."
        )
    for name, cost in ask_costs.items():
        if not (is_number(cost) and 1e-9 <= cost <= 1e9):
            raise ValueError(
                f"The cost {name!r} of ask_costs is {cost!r}; use a positive number, of at least 1e-9 and at most 1e9."
            )
    return Costs(**{name: float(cost) for name, cost in ask_costs.items()}), None


def zones_placed(
    classifier: Any, found: TrafficModel | None, scores: Floats, costs: Costs | None, miss_rate: float | None
) -> dict[str, float] | None:
    """Place the zones around the threshold of a classifier; ``None`` if it keeps nothing that tells where.

    Without a model of the traffic they are those of what the classifier has learned of it, or expects.
    """
    try:
        held_out = held_out_of(classifier, "set_operating_point")
    except (TypeError, ValueError):
        return None
    if found is None:
        found = _traffic_known(classifier, held_out)
    n_classes = len(classifier.classes_)
    if miss_rate is not None and (least := least_missed(held_out, found, scores, n_classes)) > miss_rate:
        warn(
            f"Three classes cannot keep miss_rate={miss_rate:g}: if every message is asked about, {least:.3f} of the "
            "known ones are still expected to miss; that rate is kept, and no message is answered without a question."
        )
    return place_zones(held_out, found, scores, classifier.offset_, n_classes, costs, miss_rate).as_mapping()


def zones_of(classifier: Any) -> Mapping[str, float] | None:
    """Return the zones of a classifier, ``asking_`` or what is expected; ``None`` if it cannot ask."""
    try:
        return asking_known(classifier, held_out_of(classifier, "predict_set")).asking
    except (TypeError, ValueError):
        return None


def forecast_by_name(
    classifier: Any, held_out: HeldOutTable, found: TrafficModel, scores: Floats | None, messages: Any = ()
) -> dict[str, list[float]]:
    """Forecast what a classifier does with traffic to come, with or without a log of these ``scores``.

    Gives each proportion with its standard deviation. Which of the ``messages`` of the log are asked about is counted.
    """
    of_threshold = forecast_of(held_out, found, classifier.offset_, len(classifier.classes_), scores)
    log = [] if scores is None else [scores]
    if log and len(messages):
        log = [classifier.score_samples(messages).astype(np.float64), first_classes(classifier, messages)[1]]
    return of_threshold.rounded() | forecast_of_questions(classifier, held_out, found, *log).rounded()


def forecast_of_questions(classifier: Any, held_out: HeldOutTable, found: TrafficModel, *log: Floats) -> Questions:
    """Forecast how much a classifier asks about, in a ``log`` of scores and gaps or in traffic to come."""
    asking = asking_known(classifier, held_out).asking
    zones = Zones(*(asking[name] for name in Zones._fields))
    return forecast_of_zones(held_out, found, zones, len(classifier.classes_), *log)


class Known(NamedTuple):
    """What a classifier knows of its messages, by which they are answered."""

    asking: Mapping[str, float]
    traffic: Mapping[str, float]
    confusion: float
    ranks: Ranks


#: The fitted state that it is computed from; no parameter, which may be set after the fit.
_COMPUTED_FROM = ("classes_", "_held_out", "_expected", "_learned", "traffic_", "asking_", "offset_")
#: Of classifiers, by this state.
_KNOWN: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Known]] = WeakKeyDictionary()
_LOCK = Lock()


def asking_known(classifier: Any, held_out: HeldOutTable) -> Known:
    """Zones, traffic and ranks of a classifier; computed once, as long as nothing of it changes."""
    of = tuple(getattr(classifier, name, None) for name in _COMPUTED_FROM)
    with _LOCK:
        before = _KNOWN.get(classifier)
    if before is not None and all(one is other for one, other in zip(before[0], of, strict=True)):
        return before[1]
    found = _known(classifier, held_out)
    with _LOCK:
        _KNOWN[classifier] = of, found
    return found


def _known(classifier: Any, held_out: HeldOutTable) -> Known:
    n_classes, asking, traffic = len(classifier.classes_), classifier.asking_, classifier.traffic_
    ranks = Ranks(held_out, n_classes)
    if traffic is None or asking is None:
        model = _traffic_known(classifier, held_out)
        traffic = traffic or model.traffic()
        asking = asking or place_zones(held_out, model, np.zeros(0), classifier.offset_, n_classes).as_mapping()
    return Known(asking, traffic, asking["confusion"], ranks)


def _traffic_known(classifier: Any, held_out: HeldOutTable) -> TrafficModel:
    """Return the model of the traffic by the means that a classifier has learned: one draw; else what it expects."""
    traffic, asking = classifier.traffic_, classifier.asking_
    if traffic is None:
        return expected_traffic(held_out)
    unknowns = Unknowns._make(np.array([[traffic[name]]]) for name in Unknowns._fields)
    known, opened = unknowns.of_bins()
    confusion = unknowns.known_shift + CONFUSION[0] if asking is None else np.array([[asking["confusion"]]])
    return TrafficModel(np.ones(1), unknowns, known, opened, np.zeros_like(known), confusion)
