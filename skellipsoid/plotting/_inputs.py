"""How the displays read an estimator, labels and scores."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._pipelines import read_estimator
from ..metrics._labels import LabelProblem, read_label_problem
from ..metrics._scores import read_scores


def read_estimator_rows(estimator: Any, X: Any, caller: str) -> tuple[Any, NDArray[Any], NDArray[np.floating]]:
    """Read the classifier, its closed-set answers, and scores of which those below ``offset_`` are answered open.

    The scores are those of ``score_samples`` less ``class_offsets_``.
    """
    members = ("predict_known", "score_samples", "classes_", "open_label_", "offset_", "class_offsets_")
    classifier, features = read_estimator(estimator, X, members, caller, remedy=", or use from_predictions")
    known, score = classifier.predict_known(features), classifier.score_samples(features)
    if not classifier.class_offsets_.any():
        return classifier, known, score
    offset, class_offsets = classifier.offset_, classifier.class_offsets_[np.searchsorted(classifier.classes_, known)]
    relative = score - class_offsets
    # The difference rounds otherwise than the sum that predict compares with.
    below = np.minimum(relative, np.nextafter(offset, -np.inf))
    return classifier, known, np.where(score < offset + class_offsets, below, np.maximum(relative, offset))


class ClosedSetRows(NamedTuple):
    """Labels, closed-set answers and scores of rows, both known and open ones among them.

    Attributes
    ----------
    problem : LabelProblem
        True classes and closed-set answers as positions.
    score : ndarray of shape (n_samples,)
    """

    problem: LabelProblem
    score: NDArray[np.float64]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether each row's true class is known."""
        return self.problem.true < len(self.problem.classes)


def read_closed_set_rows(
    y_true: ArrayLike, y_pred_known: ArrayLike, score: ArrayLike, *, open_label: Any, labels: ArrayLike | None
) -> ClosedSetRows:
    """Read what curves over all offsets are made of.

    Raises
    ------
    ValueError
        If ``y_pred_known`` holds the open label, a score is NaN, lengths differ, labels are of mixed kinds, or known
        or open rows are missing.
    """
    problem = read_label_problem(y_true, y_pred_known, open_label=open_label, labels=labels, pred_name="y_pred_known")
    n_refused = int(np.sum(problem.predicted == len(problem.classes)))
    if n_refused:
        msg = (
            f"y_pred_known holds the open label {problem.open_label!r} in {n_refused} of {len(problem.predicted)} "
            "rows: pass the closed-set answer for every row, as predict_known gives it."
        )
        raise ValueError(msg)
    rows = ClosedSetRows(problem, read_scores(score, len(problem.true)))
    require_both(rows.is_known, problem.open_label)
    return rows


def require_both(is_known: NDArray[np.bool_], open_label: Any) -> None:
    """Raise one sentence unless there are known and open rows."""
    if is_known.all():
        msg = (
            f"None of the {len(is_known)} rows of y is open, but this picture sets known against open rows: add rows "
            f"with the open label {open_label!r}, or pass the known classes as labels if y names the classes of open "
            "rows."
        )
        raise ValueError(msg)
    if not is_known.any():
        msg = (
            f"All of the {len(is_known)} rows of y are open, but this picture sets known against open rows: add rows "
            "of known classes."
        )
        raise ValueError(msg)


def check_offset(offset: float) -> float:
    """Raise one sentence unless an offset is a number; infinite ones accept everything or nothing."""
    value = float(offset)
    if value != value:
        msg = f"offset={offset!r} is no operating point: pass the lowest score that is accepted."
        raise ValueError(msg)
    return value
