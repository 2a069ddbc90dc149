"""A scored log, of which some messages may be labelled."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.utils import check_consistent_length

from .._core.labels import as_kind_of, as_partial_labels
from .._core.pipelines import read_estimator
from .._core.validation import only_column, read_weights
from .._held_out.log_model import Labels, LogModel, NormalScores, model_of
from .._held_out.scores import Floats, HeldOutScores, Integers

#: What the classifier must have.
MEMBERS = ("score_samples", "predict_known", "classes_")
#: Known traffic has moved if the mean score of labelled known messages is this unlikely without; so many are needed.
SHIFT_LEVEL, FEWEST_KNOWN = 0.01, 5


class Log(NamedTuple):
    """Scores of messages, the classes that they are assigned to, copies, and labels."""

    scores: Floats  # (n_messages,)
    assigned: Integers  # (n_messages,)
    copies: Integers  # (n_messages,) equal numbers for copies
    labels: Labels
    truth: Integers  # (n_labelled,) class of each labelled message, the number of classes if it is open

    @classmethod
    def empty(cls) -> "Log":
        """No message."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0), none, none, Labels.none(0), none)

    @classmethod
    def unlabelled(cls, scores: Floats, assigned: Integers) -> "Log":
        """Messages without a label. Copies are those of equal score and class."""
        copies = np.unique(np.stack([assigned, np.round(scores, 6)]), axis=1, return_inverse=True)[1].ravel()
        return cls(scores, assigned, copies, Labels.none(len(scores)), np.zeros(0, dtype=np.int64))

    def labelled(self, rows: NDArray[np.bool_], truth: Integers, weights: Floats, n_classes: int) -> "Log":
        """Give the same log with labels of some ``rows``, (n_messages,) Boolean."""
        labels = Labels.of(rows, truth == n_classes, truth == self.assigned[rows], weights)
        return self._replace(labels=labels, truth=truth)

    def fit(self, held_out: HeldOutScores, open_share: float | tuple[float, float] | None = None) -> LogModel:
        """Fit the model of the log's scores."""
        return model_of(held_out, self.scores, self.copies, self.labels, open_share)

    def shift_seen(self, held_out: HeldOutScores) -> str | None:
        """Say that labelled known messages lie farther out than held-out samples, if they do (one-sided t-test)."""
        is_known = ~self.labels.is_open
        if is_known.sum() < FEWEST_KNOWN:
            return None
        scores, counts = self.scores[self.labels.labelled][is_known], self.labels.counts[is_known]
        z, n = NormalScores(held_out)(scores), counts.sum()
        mean = np.average(z, weights=counts)
        variance = np.average(np.square(z - mean), weights=counts) * n / max(n - 1, 1e-9)
        error = (variance / n + 1 / len(held_out.known)) ** 0.5
        if student.cdf(mean / error, max(n - 1, 1)) >= SHIFT_LEVEL:
            return None
        rejected = np.average(scores < 0, weights=counts)
        foretold = np.average(held_out.known < 0, weights=held_out.weights)
        return (
            f"Known messages of this log lie farther out than the training samples: as fitted, {100 * rejected:.0f} % "
            f"of the {len(z)} labelled known ones are rejected, and {100 * foretold:.0f} % were foretold."
        )


def read_log(estimator: Any, X: Any, y: Any, sample_weight: Any, caller: str) -> Log:
    """Score a log, and read its labels.

    Raises
    ------
    ValueError
        If labels or weights have another length than the log, or are of another kind than the classes.
    """
    if X is None:
        for name, value in {"y": y, "sample_weight": sample_weight}.items():
            if value is not None:
                raise ValueError(f"{name} belongs to the messages of a log, but there are none; pass X.")
        return Log.empty()
    classifier, features = read_estimator(estimator, X, MEMBERS, caller)
    log = Log.unlabelled(*score(classifier, features))
    if y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight weighs the labels of a log, but there are none; pass y.")
        return log
    labels, labelled = as_partial_labels(y)
    check_consistent_length(log.scores, labelled)
    truth = classifier._encode(as_kind_of(labels, classifier.classes_, "y", "classes_"))
    weights = np.ones(len(truth))
    if sample_weight is not None:
        check_consistent_length(log.scores, given := only_column(sample_weight, "sample_weight"))
        weights = read_weights(np.asarray(given)[labelled], len(truth))
    counted = weights > 0
    labelled[labelled] = counted
    return log.labelled(labelled, truth[counted], weights[counted], len(classifier.classes_))


def score(classifier: Any, features: Any) -> tuple[Floats, Integers]:
    """Scores of samples and the classes that they are assigned to, both (n_samples,)."""
    scores = np.asarray(classifier.score_samples(features), dtype=np.float64)
    return scores, classifier._encode(classifier.predict_known(features))
