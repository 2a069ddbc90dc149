"""A log of messages: their scores, copies and labels, and the model of the traffic that is fitted to them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from .._core.characters import TIME
from .._core.pipelines import read_estimator, split_estimator
from .._core.spelling import refuse_other_spellings, warn_of_strangers
from .._core.texts import texts_of
from .._core.validation import check_squares
from .._core.warn import warn
from .._ellipsoid.changes.learned import (
    UNWEIGHTED,
    Learned,
    comparable,
    find_learned,
    find_trained,
    learned_of,
    trained_labels,
)
from .._held_out.table import N_FIRST, Floats, HeldOutTable, Integers
from .._traffic_model.normal_scores import NormalScores
from .._traffic_model.posterior import Labels, TrafficModel, fit_traffic_model
from .._traffic_model.threshold import place_threshold
from .._traffic_model.zones import Ranks
from .equal import apart, draws_of_each, equal_messages, first_of_each, refuse_contradictions
from .sheet import Given, read_given

#: What the classifier must have.
MEMBERS = ("score_samples", "predict_known", "classes_")
#: The number of a sheet that is not learned.
_THIS_SHEET = -1
#: Significance level of the test for a score shift of known traffic, and the number of labels that it needs.
SHIFT_LEVEL, FEWEST_KNOWN = 0.01, 5
#: What is said of such traffic, before its figures.
SHIFTED = "Known messages of this log lie farther out than the training samples"
#: Part of the way to a stricter threshold that an open share without labels moves it: known messages that
#: lie far out are then taken for open ones. Chosen on bots 1 and 2 and cards (skellipsoid-bench/TRIED.md).
STRICTER = 0.5


class Log(NamedTuple):
    """Scores of messages, the classes that they are assigned to, copies, and labels.

    A copy of a labelled message has its label, which counts nothing: the message counts as often as the log has it.
    Messages that were learned are labelled, and have the scores of fits without them. Those that are not in the log
    stand at its end. Messages that are equal to training samples say nothing of where others lie: ``telling`` leaves
    them out.
    """

    scores: Floats  # (n_messages,)
    assigned: Integers  # (n_messages,)
    copies: Integers  # (n_messages,) equal numbers for copies
    labels: Labels
    truth: Integers  # (n_labelled,) class of each labelled message, the number of classes if it is open
    n_elsewhere: int = 0  # learned messages that are not in the log
    n_new: int = 0  # labels that were not learned
    gaps: Floats = np.zeros(0)  # (n_labelled,) of labels that were picked, NaN of others; empty if all were drawn
    # (n_messages,) class of the training sample that a message is equal to, −1 without one; empty if none is
    trained: Integers = np.zeros(0, dtype=np.int64)

    @property
    def n_own(self) -> int:
        """Number of messages of this log."""
        return len(self.scores) - self.n_elsewhere

    @property
    def own_scores(self) -> Floats:
        """Scores of the messages of this log that are not equal to training samples."""
        log = self.telling()
        return log.scores[: log.n_own]

    def scores_of_messages(self) -> Floats | None:
        """Scores of the log, whose messages forecasts are of; ``None`` where labels stand without a log of their own.

        Labelled messages alone do not say how known and open messages lie beside each other in the log: forecasts are
        then of the traffic to come.
        """
        log = self.telling()
        is_alone = log.labels.labelled[: log.n_own].all()
        return None if is_alone else log.scores[: log.n_own]

    def telling(self) -> "Log":
        """Return the log without messages that are equal to training samples."""
        tells = self.trained < 0
        if tells.all():
            return self
        labels, counts = self.labels, tells[self.labels.labelled]
        columns = {name: column[counts] for name, column in labels._asdict().items() if len(column) == len(counts)}
        return self._replace(
            scores=self.scores[tells],
            assigned=self.assigned[tells],
            copies=self.copies[tells],
            labels=labels._replace(**columns | {"labelled": labels.labelled[tells]}),
            truth=self.truth[counts],
            n_elsewhere=int(tells[self.n_own :].sum()),
            gaps=self.gaps[counts] if len(self.gaps) else self.gaps,
            trained=self.trained[tells],
        )

    @classmethod
    def empty(cls) -> "Log":
        """No message."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0), none, none, Labels.none(0), none)

    @classmethod
    def unlabelled(
        cls,
        scores: Floats,
        assigned: Integers,
        features: NDArray[Any] | None = None,
        rounding: float | None = None,
    ) -> "Log":
        """Messages without a label. Copies are those of equal features, numbered along the scores of each class.

        Without features, those of equal score and class. ``rounding`` is that of ``equal_messages``.
        """
        features = np.column_stack([scores, assigned]) if features is None else features
        groups, first, copies = np.unique(equal_messages(features, rounding), return_index=True, return_inverse=True)
        places = np.empty(len(groups), dtype=np.int64)
        places[np.lexsort([scores[first], assigned[first]])] = np.arange(len(groups))
        copies = places[copies.ravel()]
        return cls(scores, assigned, copies, Labels.none(len(scores)), np.zeros(0, dtype=np.int64))

    def labelled(
        self,
        rows: NDArray[np.bool_],
        truth: Integers,
        weights: Floats,
        n_classes: int,
        sheets: Integers | None = None,
    ) -> "Log":
        """Return the same log with labels of some ``rows``, (n_messages,) Boolean."""
        labels = Labels.of(rows, truth == n_classes, truth == self.assigned[rows], weights, sheets)
        return self._replace(labels=labels, truth=truth)

    def fit(self, held_out: HeldOutTable, open_share: float | tuple[float, float] | None = None) -> TrafficModel:
        """Fit the model of the log's scores, but for those of messages that are equal to training samples."""
        log = self.telling()
        labels, is_picked = log.labels, ~np.isnan(log.gaps)
        if is_picked.any():
            odds = np.full(len(log.gaps), np.nan)
            scores = log.scores[labels.labelled][is_picked]
            odds[is_picked] = Ranks(held_out, N_FIRST).gap_odds(scores, log.gaps[is_picked])
            labels = labels._replace(odds=odds)
        return fit_traffic_model(held_out, log.scores, log.copies, labels, open_share)

    @property
    def is_drawn(self) -> NDArray[np.bool_]:
        """Whether each label was drawn, (n_labelled,), not picked by a user who was asked."""
        return np.isnan(self.gaps) if len(self.gaps) else np.ones(len(self.truth), dtype=bool)

    def shift_seen(self, held_out: HeldOutTable) -> str | None:
        """Say that labelled known messages lie farther out than held-out samples, if they do (one-sided t-test)."""
        log = self.telling()
        is_known = ~log.labels.is_open & log.is_drawn & (log.labels.counts > 0)
        if is_known.sum() < FEWEST_KNOWN:
            return None
        scores, counts = log.scores[log.labels.labelled][is_known], log.labels.counts[is_known]
        z, n = NormalScores.of(held_out)(scores), counts.sum()
        mean = np.average(z, weights=counts)
        variance = np.average(np.square(z - mean), weights=counts) * n / max(n - 1, 1e-9)
        error = (variance / n + 1 / len(held_out.known)) ** 0.5
        if student.cdf(mean / error, max(n - 1, 1)) >= SHIFT_LEVEL:
            return None
        rejected = np.average(scores < 0, weights=counts)
        expected = np.average(held_out.known.scores < 0, weights=held_out.known.weights)
        return (
            f"{SHIFTED}: as fitted, {100 * rejected:.0f} % of the {len(z)} labelled known ones are rejected, and "
            f"{100 * expected:.0f} % were foretold."
        )


def expected_traffic(held_out: HeldOutTable) -> TrafficModel:
    """Return the model of the traffic that a classifier expects, which nothing was told of."""
    return Log.empty().fit(held_out, held_out.expected.open_share)


def threshold_for(
    held_out: HeldOutTable, log: Log, found: TrafficModel, n_classes: int, costs: tuple[float, float] | None = None
) -> float:
    """Place the threshold for a log or a share; without a label, half of the way where it is stricter than expected."""
    offset = place_threshold(held_out, found, log.own_scores, n_classes, costs)
    if len(log.telling().truth):
        return offset
    usual = place_threshold(held_out, expected_traffic(held_out), np.zeros(0), n_classes, costs)
    if offset <= usual:
        return offset
    normal = NormalScores.of(held_out)
    z_usual, z = normal(np.array([usual, offset]))
    return float(normal.inverse(np.array([z_usual + STRICTER * (z - z_usual)]))[0])


def read_log(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    caller: str,
    *,
    with_learned: bool = True,
    takes_new: bool = False,
) -> Log:
    """Score a log, and read its labels; beside them stand those that the classifier has learned.

    With ``takes_new`` unknown names are no open messages yet.

    Raises
    ------
    ValueError
        If labels or weights have another length than the log, or are of another kind than the classes, or if a label
        is the name of a class in another spelling.
    """
    if X is None:
        for name, value in {"y": y, "sample_weight": sample_weight}.items():
            if value is not None:
                raise ValueError(f"{name} belongs to the messages of a log, but there are none; pass X.")
        classifier = split_estimator(estimator)[1]
        learned, nothing = learned_of(classifier), (np.zeros(0, dtype=bool), Log.empty().truth, np.zeros(0), UNWEIGHTED)
        return Log.empty() if learned is None else _beside_learned(classifier, learned, None, Log.empty(), nothing)
    classifier, features = read_estimator(estimator, X, MEMBERS, caller)
    if (texts := texts_of(X)) and len(texts) > 1 and all(map(TIME.match, texts)):
        warn("Each message begins with a time, which is read as a part of it; pass the messages alone.")
    check_squares(checked := classifier._validate_scored_data(features))
    log = Log.unlabelled(*score(classifier, features), *comparable(classifier, checked))
    copies = apart(log.copies, X, checked)
    log = log._replace(trained=find_trained(classifier, features), copies=copies)
    labelled, truth, weights = np.zeros(len(log.scores), dtype=bool), log.truth, np.zeros(0)
    sheet = UNWEIGHTED
    if y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight weighs the labels of a log, but there are none; pass y.")
    else:
        given = read_given(len(log.scores), y, sample_weight, classifier.classes_)
        refuse_other_spellings(given.labels, classifier.classes_, classifier.open_label_, among_new=takes_new)
        if not takes_new:
            warn_of_strangers(given.labels, classifier.classes_, classifier.open_label_)
        labelled, truth, weights = _of_messages(X, log.copies, given, classifier._encode(given.labels))
        sheet = UNWEIGHTED if sample_weight is None else _THIS_SHEET
    learned = learned_of(classifier) if with_learned else None
    if learned is not None:
        return _beside_learned(classifier, learned, features, log, (labelled, truth, weights, sheet))
    if not len(truth):
        return log
    n_new = int((weights > 0).sum())
    return log.labelled(labelled, truth, weights, len(classifier.classes_))._replace(n_new=n_new)


def _of_messages(
    X: Any, messages: Integers, given: Given, truth: Integers
) -> tuple[NDArray[np.bool_], Integers, Floats]:
    """Label all copies of a message that has a label; the first one has its weight, the others have none.

    Gives which messages are labelled, (n_messages,), their classes and their weights, (n_labelled,).
    """
    rows = np.flatnonzero(given.labelled)
    refuse_contradictions(X, rows, messages[rows], truth)
    first, which = first_of_each(messages[rows])
    weights = np.zeros(len(messages))
    if given.weights is None:
        weights[rows[first]] = draws_of_each(messages, given.labelled)
    else:
        weights[rows[first]] = np.bincount(which, given.weights / given.weights.mean()) / np.bincount(which)
    of_message = np.full(messages.max() + 1, -1)
    of_message[messages[rows]] = truth
    labelled = of_message[messages] >= 0
    return labelled, of_message[messages][labelled], weights[labelled]


def _beside_learned(
    classifier: Any,
    learned: Learned,
    features: Any,
    log: Log,
    given: tuple[NDArray[np.bool_], Integers, Floats, int],
) -> Log:
    """Let learned messages take the place of those of the log that are equal, and stand at its end otherwise.

    They count once: of several equal ones, and of a label that is given again, nothing more is read.
    """
    n, n_classes, (labelled, truth, weights, sheet) = len(log.scores), len(classifier.classes_), given
    names = "scores", "weights", "right", "sheets", "gaps"
    rows: dict[str, NDArray[Any]] = {"truth": np.full(n, -1), "scores": log.scores.copy(), "weights": np.zeros(n)}
    rows |= {"sheets": np.full(n, sheet), "gaps": np.full(n, np.nan)}
    rows["truth"][labelled], rows["weights"][labelled] = truth, weights
    rows["right"] = rows["truth"] == log.assigned
    own = {"truth": classifier._encode(learned.labels), **{name: getattr(learned, name) for name in names}}
    found = find_learned(classifier, features) if n else np.zeros(0, dtype=np.int64)
    here, elsewhere = np.flatnonzero(found >= 0), np.setdiff1d(np.arange(len(learned)), found)
    n_new = int((np.delete(rows["weights"], here) > 0).sum())
    for name, column in rows.items():
        column[here] = own[name][found[here]]
    first = here[np.unique(found[here], return_index=True)[1]]  # of equal messages only this one counts
    rows["weights"][np.setdiff1d(here, first)] = 0.0
    rows = {name: np.append(column, own[name][elsewhere]) for name, column in rows.items()}
    reads = rows["truth"] >= 0
    read = {name: column[reads] for name, column in rows.items()}
    labels = Labels.of(reads, read["truth"] == n_classes, read["right"], read["weights"], read["sheets"])
    return Log(
        scores=rows["scores"],
        assigned=np.append(log.assigned, own["truth"][elsewhere].clip(max=n_classes - 1)),
        copies=np.append(log.copies, log.copies.max(initial=-1) + 1 + np.arange(len(elsewhere))),
        labels=labels.of_elsewhere(np.flatnonzero(reads) >= n),
        truth=read["truth"],
        gaps=read["gaps"],
        n_elsewhere=len(elsewhere),
        n_new=n_new,
        trained=np.append(log.trained, trained_labels(classifier, learned.features[elsewhere])),
    )


def score(classifier: Any, features: Any) -> tuple[Floats, Integers]:
    """Scores of samples and the classes that they are assigned to, both (n_samples,)."""
    scores = np.asarray(classifier.score_samples(features), dtype=np.float64)
    return scores, classifier._encode(classifier.predict_known(features))
