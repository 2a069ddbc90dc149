"""Which messages of a log to label (systematic sampling), and a new model that is fitted to the labelled ones, too."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state

from .._core.labels import as_kind_of, as_partial_labels
from .._core.pipelines import less_class_offsets, read_estimator
from .._core.results import Result
from .._core.validation import check_squares, enumerated
from .._core.warn import silenced, warn
from .._ellipsoid.changes.classes import changed, check_can_change
from .._ellipsoid.changes.learned import (
    Learned,
    check_reach,
    comparable,
    find_learned,
    find_trained,
    in_units_of_X,
    learned_of,
    rounding_of,
    standardized,
)
from .._ellipsoid.changes.refit import kept_samples, with_learned
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._held_out.kept import Placed, held_out_of
from .._held_out.table import Floats, HeldOutTable, Integers
from .._traffic_model.threshold import place_threshold
from .._traffic_model.zones import costs_of
from .log import MEMBERS, Log, read_log, score
from .predict_set import first_classes, forecast_by_name, zones_placed
from .sheet import Sheet, read_sheet

#: Number of folds in which labelled messages are scored without themselves.
N_PARTS = 5
#: Number of different messages with a new name from which on it becomes a class.
FEWEST_OF_NEW = 5
#: Proportion of the messages that are low scores, and how many times as often as the others they are drawn.
LOW_PROPORTION, LOW_WEIGHT = 0.4, 2.0


def choose_to_label(estimator: Any, X: ArrayLike, n: int = 30, *, random_state: Any = 0) -> Bunch:
    """Choose messages of a log to label, and say what each of them counts.

    They are drawn evenly along the score, so that all kinds of messages occur; those of the lowest scores, where known
    and open messages meet, twice as often as others. The weights undo that. Copies of a message are drawn once;
    messages that were learned, and those that are equal to training samples, are not drawn.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        A log: features, or texts for a text Pipeline.
    n : int, default=30
        Number of messages to label. If there are no more different ones, all are chosen.
    random_state : int, RandomState instance or None, default=0
        Where the draw begins.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``rows``: ndarray of shape (n_chosen,), row numbers of the log in ascending order.
        - ``weights``: ndarray of shape (n_chosen,), how many messages each stands for: ``sample_weight`` of
          :func:`learn_from_traffic`, :func:`set_operating_point` and :func:`estimate_open_share`, for these rows.

    Raises
    ------
    ValueError
        If ``n`` is no positive whole number, or ``X`` is not valid.
    TypeError
        If the estimator is no fitted open-set classifier, or ``X`` holds what is no number, such as a dict.

    See Also
    --------
    learn_from_traffic : Learn from the labels.

    Notes
    -----
    The messages are ordered by their scores, and every k-th unit of their weights is drawn (systematic sampling). So a
    message is drawn with a known chance, and its weight is one over this chance.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(1000, 8, n_known=6, open_share=0.1, random_state=0)
    >>> train = (y != -1) & (np.arange(len(y)) < 600)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    >>> chosen = choose_to_label(clf, X[600:], n=30)
    >>> len(chosen.rows), round(chosen.weights.sum(), -2)
    (30, np.float64(400.0))
    """
    classifier, features = read_estimator(estimator, X, MEMBERS, "choose_to_label")
    check_squares(checked := EllipsoidOpenSetClassifier._validate_scored_data(classifier, features))
    is_trained = find_trained(classifier, features) >= 0
    fresh = np.flatnonzero((find_learned(classifier, features) < 0) & ~is_trained)
    scores, assigned = score(classifier, features)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r} is not a number of messages to label; use a whole number of at least 1.")
    if not len(fresh):
        what = "were learned before or are training samples" if is_trained.any() else "were learned before"
        raise ValueError(f"All {len(scores)} messages {what}; pass messages that came since.")
    log = Log.unlabelled(scores[fresh], assigned[fresh], *comparable(classifier, checked[fresh]))
    rows, weights = drawn(log.scores, log.copies, n, check_random_state(random_state).uniform())
    return Result(rows=fresh[rows], weights=weights)


def drawn(scores: Floats, copies: Integers, n: int, start: float) -> tuple[Integers, Floats]:
    """Draw n messages along the score, beginning in [0, 1): their numbers, and how many messages each stands for."""
    _, first, counts = np.unique(copies, return_index=True, return_counts=True)
    ascending = np.argsort(scores[first], kind="stable")
    order, counts = first[ascending], counts[ascending]
    is_low = (counts.cumsum() - counts / 2) / counts.sum() < LOW_PROPORTION
    chances = _chances(np.where(is_low, LOW_WEIGHT, 1.0) * counts, n)
    ends = np.cumsum(chances)
    n = round(float(ends[-1]))
    at = (start + np.arange(n)) * ends[-1] / n
    chosen = np.unique(np.searchsorted(ends, at, side="right").clip(max=len(order) - 1))
    numbers, weights = order[chosen], counts[chosen] / chances[chosen]
    ascending = np.argsort(numbers)
    return numbers[ascending], weights[ascending]


def _chances(sizes: Floats, n: int) -> Floats:
    """Chances of being drawn, in proportion to sizes and at most 1; their sum is n, or the number of sizes."""
    if n >= len(sizes):
        return np.ones(len(sizes))
    is_sure = np.zeros(len(sizes), dtype=bool)
    while True:
        left = n - is_sure.sum()
        chances = np.where(is_sure, 1.0, left * sizes / sizes[~is_sure].sum())
        if (chances <= 1).all():
            return np.asarray(chances)
        is_sure |= chances >= 1


def learn_from_traffic(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, picked: bool = False
) -> Any:
    """Learn from a log with some labels: classes, shapes, size and the threshold.

    No embedding model is trained again. Call it again when other messages are labelled.

    - Messages of known classes join the training samples, and weigh three times as much. A new name becomes a class if
      at least five different messages have it.
    - Open messages join the real open samples; what lies nearer to one than to any class loses score (:ref:`memory`).
    - Shrinkage and size are chosen anew.
    - The threshold is placed as by :func:`set_operating_point`. For that the labelled messages are scored by fits
      without them.

    Read more in the :ref:`User Guide <first_hour>`.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted :class:`EllipsoidOpenSetClassifier` that kept its samples, as it does by default, or a Pipeline that
        ends in one.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        A log: texts, if the Pipeline begins with an encoder, else features. Each different message is learned once,
        however often it has a label here or had one before: a labelling file that is filled week by week gives what
        one gives. With another label than before, a message is learned anew.
    y : array-like of shape (n_samples,)
        Labels, ``None`` or NaN where nobody has labelled. The ``open_label`` says that a message is of no class.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the labels, one over the chance of being labelled, if they were not drawn at random
        (:func:`choose_to_label`). They act on the threshold. Their unit does not matter, nor what is given for
        unlabelled messages. Without weights, a message counts by how often the log has it without a label.
    picked : bool, default=False
        Whether users picked the labels when they were asked (:func:`predict_set`): one of three classes, or the
        ``open_label`` for "none of these". Messages that were answered or left open have none, so the
        labels do not estimate the open rate: picks are compared with the forecast of scores and gaps like these. "None
        of these" may be of a class that was not offered: such messages do not join the real open samples. Pass the
        whole log, with ``None`` where nobody was asked. ``sample_weight`` is then not used.

    Returns
    -------
    estimator : object
        A new estimator, with the same fitted transformers. The given one is unchanged. The last entry of ``changes_``
        says what was learned: ``n_samples``, the new ``classes``, ``n_trained``, the number of messages that are equal
        to training samples and say nothing of the threshold, and of the labelled known messages the rate that the
        given estimator ``rejected`` and the rate that was ``expected``. ``before`` and ``after`` forecast what the
        given and the new estimator do with messages to come: of known ones the rates ``right``, ``wrong`` and
        ``rejected``, of open ones ``noticed``, each with its standard deviation; with :func:`predict_set`, ``asked``
        and ``open_asked``. Labelled messages tell it, scored without themselves. ``traffic_`` is as after
        :func:`set_operating_point`.

    Raises
    ------
    TypeError
        If the estimator does not end in a classifier whose classes can change.
    ValueError
        If ``y`` holds no label, labels of another kind than the classes, or a class or the open label in another
        spelling, if lengths differ, if the classifier kept no samples, or if all labelled messages were learned before.
        If equal messages have different labels; if a weight is above 1e150. If ``picked`` comes with ``sample_weight``.

    Warns
    -----
    UserWarning
        If some labelled messages were learned before. If users picked different labels for equal messages, which then
        have none. If a new name has too few messages to become a class: they count
        as open. If labelled known messages lie farther out than the training samples. And what a fit warns of.

    See Also
    --------
    set_operating_point : The threshold alone.
    add_classes : Add samples that are no messages of a log.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, learn_from_traffic
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(2000, 8, n_known=6, open_share=0.05, random_state=0)
    >>> train = (y != -1) & (np.arange(len(y)) < 1000)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    >>> log, labels = X[1000:], [*y[1000:1060], *[None] * 940]
    >>> learned = learn_from_traffic(clf, log, labels)
    >>> bool(np.mean(learned.predict(log) == -1) < np.mean(clf.predict(log) == -1))
    True
    """
    check_can_change(estimator)  # before texts are embedded
    if picked and sample_weight is not None:
        raise ValueError("picked says how messages came to their labels, as sample_weight does; leave one of them out.")
    classifier, features = read_estimator(estimator, X, MEMBERS, "learn_from_traffic")
    features, named = classifier._validate_scored_data(features), classifier
    classifier = copy(classifier)  # the names of the features were compared
    if hasattr(named, "feature_names_in_"):
        del classifier.feature_names_in_
    kept_samples(classifier)  # or an error
    check_reach(classifier, features)
    held_out = held_out_of(classifier, "learn_from_traffic")
    sheet = read_sheet(classifier, X, features, y, sample_weight, picked=picked)
    features = features[sheet.rows]
    reading = {"with_learned": False, "takes_new": True}
    before = read_log(classifier, features, sheet.y, sheet.weights, "learn_from_traffic", **reading)
    given, names = _labelled(classifier, features[sheet.labelled], sheet)
    if picked:
        gaps = first_classes(classifier, features[before.labels.labelled])[1]
        given = replace(given, gaps=gaps[sheet.labelled[before.labels.labelled]])
        before = before._replace(gaps=gaps)
    shifted = before.shift_seen(held_out)
    if shifted is not None:
        warn(shifted)
    messages = sheet.of_all(given)
    learned = with_learned(classifier, messages, names, len(given))
    others = features[~sheet.labelled]
    log = _scored_without_themselves(classifier, learned, messages, names, others)
    held_now = held_out_of(learned, "learn_from_traffic")
    of_messages = log.scores[: len(messages)], log.labels.is_right[: len(messages)]
    n_trained, before, log = int((before.trained >= 0).sum()), before.telling(), log.telling()
    # Labels of training samples alone tell nothing of the open share.
    found = log.fit(held_now, None if len(log.truth) else held_now.expected.open_share)
    learned.offset_ = place_threshold(held_now, found, log.scores, len(learned.classes_))
    learned.traffic_ = found.traffic()
    learned.asking_ = zones_placed(learned, found, log.scores, *costs_of(classifier.asking_))
    learned._taught = Placed(learned.offset_, learned.traffic_, learned.asking_)
    learned._learned = replace(learned._learned, scores=of_messages[0], right=of_messages[1])
    # Users pick where they are asked, so that picks are counted, too; else the new model has learned what has a label.
    unlearned = features if picked else others
    was = forecast_by_name(classifier, held_out, before.fit(held_out), before.scores_of_messages(), features)
    now = forecast_by_name(learned, held_now, found, log.scores_of_messages(), unlearned)
    change = _described(classifier, learned, before, held_out, {"before": was, "after": now})
    change["n_trained"] = n_trained
    learned.changes_ = [*classifier.changes_, change]
    if hasattr(named, "feature_names_in_"):
        learned.feature_names_in_ = named.feature_names_in_
    return changed(estimator, lambda _: learned)


def _labelled(
    classifier: EllipsoidOpenSetClassifier, features: NDArray[Any], sheet: Sheet
) -> tuple[Learned, NDArray[Any]]:
    """Return labelled messages, and the names that become classes; a name with few messages is open."""
    labels, n = as_kind_of(as_partial_labels(sheet.y)[0], classifier.classes_, "y", "classes_"), len(features)
    given = Learned(
        standardized(classifier, features),
        labels,
        sheet.weights[sheet.labelled],
        np.zeros(n),
        np.zeros(n, dtype=bool),
        np.full(n, np.nan),
        np.full(n, sheet.number),
    )
    all_labels = sheet.of_all(given).labels
    names: list[Any] = []
    few: list[Any] = []
    for name in np.setdiff1d(all_labels, [*classifier.classes_, classifier.open_label_]):
        (names if (all_labels == name).sum() >= FEWEST_OF_NEW else few).append(name)
    if few := [name for name in few if name in labels]:
        warn(
            f"{enumerated(np.array(few))} has fewer than {FEWEST_OF_NEW} different messages, too few for a class: they "
            "count as open; label more of them, or write the name of a known class."
        )
    return given, np.array(names, dtype=all_labels.dtype)


def _scored_without_themselves(
    classifier: EllipsoidOpenSetClassifier,
    learned: EllipsoidOpenSetClassifier,
    messages: Learned,
    names: NDArray[Any],
    others: NDArray[Any],
) -> Log:
    """Learned messages, scored by fits without them, and the other messages as the learned classifier scores them."""
    features = in_units_of_X(classifier, messages.features)
    scores, assigned = score(learned, features)
    parts = Log.unlabelled(scores, assigned, messages.features, rounding_of(classifier)).copies % N_PARTS
    for part in np.unique(parts):
        own, without = parts == part, classifier
        with silenced():  # the learned classifier has said it
            if not own.all():
                without = with_learned(classifier, messages.where(~own), names, chosen_by=learned)
            elif learned_of(classifier) is not None:
                without = with_learned(classifier, None, chosen_by=learned)
        scores[own], assigned_there = score(without, features[own])
        assigned[own] = learned._encode(without.classes_[assigned_there])
    rows: dict[str, NDArray[Any]] = {"scores": scores, "assigned": assigned, "truth": learned._encode(messages.labels)}
    rows |= {name: getattr(messages, name) for name in ("weights", "sheets", "gaps")}
    if len(others):
        # A copy of a labelled message has its label, which counts nothing, and the score without it.
        of_message = messages.find(standardized(classifier, others), rounding_of(classifier))
        others, copies = others[np.argsort(of_message < 0, kind="stable")], of_message[of_message >= 0]
        rows = {name: np.append(column, column[copies]) for name, column in rows.items()}
        rows["weights"][len(messages) :] = 0.0
        unlabelled = (column[len(copies) :] for column in score(learned, others))
        scores, assigned = map(np.append, (rows["scores"], rows["assigned"]), unlabelled)
        features = np.concatenate([features, others])
    is_labelled = np.arange(len(scores)) < len(rows["truth"])
    log = Log.unlabelled(scores, assigned, *comparable(classifier, features))
    log = log.labelled(is_labelled, rows["truth"], rows["weights"], len(learned.classes_), rows["sheets"])
    return log._replace(n_new=len(messages), gaps=rows["gaps"], trained=find_trained(classifier, features))


def _described(
    classifier: EllipsoidOpenSetClassifier,
    learned: EllipsoidOpenSetClassifier,
    before: Log,
    held_out: HeldOutTable,
    forecasts: dict[str, dict[str, list[float]]],
) -> dict[str, Any]:
    """Say what was learned, in numbers that can be checked."""
    is_known, labelled = ~before.labels.is_open & before.is_drawn, before.labels.labelled
    is_rejected = _below(classifier, before.scores[labelled], before.assigned[labelled])[is_known]
    rejected = np.average(is_rejected, weights=before.labels.counts[is_known]) if is_known.any() else np.nan
    expected = np.average(
        _below(classifier, held_out.known.scores, held_out.known.assigned), weights=held_out.known.weights
    )
    new = np.setdiff1d(learned.classes_, classifier.classes_)
    return {
        **learned.changes_[-1],
        "classes": new.tolist(),
        "rejected": None if np.isnan(rejected) else round(float(rejected), 4),
        "expected": round(float(expected), 4),
        **forecasts,
    }


def _below(classifier: EllipsoidOpenSetClassifier, scores: Floats, assigned: Integers) -> NDArray[np.bool_]:
    """Whether samples are below the threshold of a classifier."""
    return np.asarray(less_class_offsets(classifier, scores, classifier.classes_[assigned]) < classifier.offset_)
