"""The labelled messages that a classifier has learned, each once, apart from its training samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min

from ..._core.validation import name_rows
from ..._samples.units import in_units

Floats = NDArray[np.float64]

#: Weight of a learned message, in training samples (skellipsoid-bench/TRIED.md).
WEIGHT = 3.0
#: The number of the sheet of all labels that nobody gave a weight; those with weights have sheets of their own.
UNWEIGHTED = 0
#: Largest absolute value of kept features, in the scale of the training samples: squares of single precision overflow.
_FARTHEST = 1e15


@dataclass(frozen=True, eq=False)
class Learned:
    """Labelled messages. Their features are those of the training samples, less the same mean, in the same scale."""

    features: NDArray[np.float32]  # (n_learned, n_features)
    labels: NDArray[Any]  # (n_learned,) as given: a class, a name that is no class yet, or the open label
    weights: Floats  # (n_learned,) one over the chance of being labelled, in the unit of the sheet
    scores: Floats  # (n_learned,) by fits without the message
    right: NDArray[np.bool_]  # (n_learned,) whether these assign it to the class of its label
    gaps: Floats  # (n_learned,) between the first two classes, where a user who was asked picked the label; else NaN
    # (n_learned,) number of the sheet that each came with. In a model that was saved without, all are of one sheet, and
    # a weight of 0 says that there was none.
    sheets: Any = None

    def __post_init__(self) -> None:
        """Put what was saved without sheets into one."""
        if self.sheets is None:
            given = self.weights > 0
            usual = self.weights[given].mean() if given.any() else 1.0
            object.__setattr__(self, "sheets", np.full(len(self.weights), UNWEIGHTED))
            object.__setattr__(self, "weights", np.where(given, self.weights, usual) / usual)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.features)

    def where(self, chosen: NDArray[np.bool_]) -> Self:
        """Select messages."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in vars(self)})

    def and_also(self, others: Self) -> Self:
        """Append messages."""
        return replace(
            self, **{name: np.concatenate([column, getattr(others, name)]) for name, column in vars(self).items()}
        )

    def without(self, labels: NDArray[Any]) -> "Self | None":
        """Leave out the messages of some labels; ``None`` if no other is there."""
        stays = ~np.isin(self.labels, labels)
        return self.where(stays) if stays.any() else None

    def renamed(self, new: NDArray[Any], labels: Sequence[Any] | NDArray[Any]) -> Self:
        """Replace some labels by a ``new`` one, an array of one."""
        return replace(self, labels=np.where(np.isin(self.labels, labels), new, self.labels))

    def find(self, features: NDArray[np.float32], within: float) -> NDArray[np.int64]:
        """Return the number of the learned message that each message is equal to, (n_messages,); −1: none."""
        if not len(features):
            return np.zeros(0, dtype=np.int64)
        nearest, distances = pairwise_distances_argmin_min(features, self.features)
        return np.where(distances <= within, nearest, -1)


def learned_of(classifier: Any) -> Learned | None:
    """Messages that a classifier has learned; ``None`` if there are none."""
    found: Learned | None = getattr(classifier, "_learned", None)
    return found


def find_learned(classifier: Any, features: Any) -> NDArray[np.int64]:
    """Return the number of the learned message that each message is equal to, (n_messages,); −1: none."""
    learned = learned_of(classifier)
    if learned is None:
        return np.full(len(features), -1, dtype=np.int64)
    return learned.find(standardized(classifier, classifier._validate_scored_data(features)), rounding_of(classifier))


def rounding_of(classifier: Any) -> float:
    """Return how far equal messages may lie from each other: as far as equal training samples of a class."""
    kept = classifier._kept
    return float(np.median(kept.rounding(len(classifier.classes_))[np.unique(kept.classes)]))


def comparable(classifier: Any, features: Any) -> tuple[Any, float | None]:
    """Return features of messages, and how far those of equal ones may lie from each other, if the classifier says."""
    if getattr(classifier, "_kept", None) is None:
        return features, None
    return standardized(classifier, features), rounding_of(classifier)


def find_trained(classifier: Any, features: Any) -> NDArray[np.int64]:
    """Return the class of the training sample that each message is equal to, (n_messages,).

    It is the number of classes of an open one, and −1 without one, or if the samples were not kept.
    """
    if getattr(classifier, "_kept", None) is None:
        return np.full(len(features), -1, dtype=np.int64)
    return trained_labels(classifier, standardized(classifier, classifier._validate_scored_data(features)))


def trained_labels(classifier: Any, features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return what ``find_trained`` gives, of features as the training samples are kept."""
    found: NDArray[np.int64] = classifier._kept.labels_of(features, len(classifier.classes_))
    return found


def standardized(classifier: Any, features: NDArray[Any]) -> NDArray[np.float32]:
    """Return features as the training samples are kept; none is larger than those that can be learned."""
    with np.errstate(over="ignore"):
        found = (in_units(features, classifier._boundaries.units) - classifier._kept.mean) / classifier.scale_
    return np.asarray(found.clip(-_FARTHEST, _FARTHEST), dtype=np.float32)


def check_reach(classifier: Any, X: NDArray[Any]) -> None:
    """Raise one sentence if samples are too far from the training samples to be kept beside them."""
    rows = np.flatnonzero((np.abs(standardized(classifier, X)) >= np.float32(_FARTHEST)).any(axis=1))
    if len(rows):
        raise ValueError(
            f"X has values in {name_rows(rows)} that are more than {_FARTHEST:.0e} times as far from the training "
            "samples as these lie from each other; check the units of X, or drop these rows."
        )


def in_units_of_X(classifier: Any, features: NDArray[np.float32]) -> Floats:
    """Return kept features as they came."""
    found = classifier._kept.mean + classifier.scale_ * features.astype(np.float64)
    units = classifier._boundaries.units
    return np.asarray(found if units is None else units * found)
