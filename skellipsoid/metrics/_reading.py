"""Reads the input of metrics and displays: true and predicted labels, scores and weights; what is known and open.

Labels of any container become ``int64`` or text, so that they can be compared. The rules:

- a true label is *known* when it is one of the known classes, and *open* otherwise;
- a prediction is *open* only when it is the open label; any other label outside the known classes is a wrong
  prediction;
- a row of weight 0 is dropped.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.labels import as_kind_of, as_labels, cast_open_label, is_text, positions
from .._core.validation import read_weights, unmasked
from .._core.warn import scored_estimator, warn

#: Labels: ``int64`` or text.
LabelArray = NDArray[np.int64] | NDArray[np.str_]


class LabelProblem(NamedTuple):
    """True and predicted labels as indices of K known classes.

    Attributes
    ----------
    true : ndarray of shape (n_samples,)
        0 … K − 1 for a known class, K for open.
    predicted : ndarray of shape (n_samples,)
        0 … K − 1 for a known class, K for open, K + 1 for a label that is neither.
    classes : ndarray of shape (n_classes,)
        The known classes in the order of ``labels``, sorted by default.
    open_label : int or str
        The open label in the type of the classes.
    weight : ndarray of shape (n_samples,)
        Weight of each row: more than 0.
    present : ndarray of shape (n_given,)
        Whether each given row weighs more than 0.
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    classes: LabelArray
    open_label: int | str
    weight: NDArray[np.float64]
    present: NDArray[np.bool_]


class ScoredRows(NamedTuple):
    """Whether each row is known, its score, and its weight: more than 0."""

    is_known: NDArray[np.bool_]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]

    @property
    def rank(self) -> NDArray[np.int64]:
        """Dense rank of each score: the same order and the same ties, infinite scores included."""
        return np.unique(self.score, return_inverse=True)[1]


class ClosedSetRows(NamedTuple):
    """Labels, closed-set predictions and scores of rows.

    Attributes
    ----------
    problem : LabelProblem
        True classes and closed-set predictions as indices, and weights.
    score : ndarray of shape (n_samples,)
    """

    problem: LabelProblem
    score: NDArray[np.float64]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether each row's true class is known."""
        return self.problem.true < len(self.problem.classes)


def read_label_problem(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    pred_name: str = "y_pred",
) -> LabelProblem:
    """Read true and predicted labels as indices, by the rules above.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
    open_label : int or str
    labels : array-like of shape (n_classes,) or None
        The known classes; None takes every label of either array but the open one.
    sample_weight : array-like of shape (n_samples,) or None
        None is 1 for all.
    pred_name : str
        Name of the predictions in error messages.
    """
    true, predicted = read_labels(y_true, "y_true"), read_labels(y_pred, pred_name)
    check_same_length(len(true), predicted, pred_name)
    as_kind_of(true, predicted, "y_true", pred_name)
    open_label = cast_open_label(open_label, true)
    weight = read_weights(sample_weight, len(true))
    present = weight > 0
    true, predicted = true[present], predicted[present]
    labels = classes_of_scored(true, open_label) if labels is None else labels
    if labels is None:
        found = np.union1d(true, predicted)
        classes = found[found != open_label]
    else:
        classes = read_known_classes(labels, true, open_label)
    predicted_codes = positions(predicted, classes)
    predicted_codes[(predicted_codes == len(classes)) & (predicted != open_label)] = len(classes) + 1
    return LabelProblem(positions(true, classes), predicted_codes, classes, open_label, weight[present], present)


def read_scored_rows(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> ScoredRows:
    """Read which rows are known, their scores and weights; None is a weight of 1 for all.

    Without ``labels`` every label but the open one is a known class.
    """
    true = read_labels(y_true, "y_true")
    open_label = cast_open_label(open_label, true)
    is_known = np.asarray(true != open_label)
    labels = classes_of_scored(true, open_label) if labels is None else labels
    if labels is not None:
        is_known = np.isin(true, read_known_classes(labels, true, open_label))
    scores, weight = read_scores(score, len(is_known)), read_weights(sample_weight, len(is_known))
    present = weight > 0
    return ScoredRows(is_known[present], scores[present], weight[present])


def read_closed_set_rows(
    y_true: ArrayLike,
    y_pred_known: ArrayLike,
    score: ArrayLike,
    *,
    open_label: Any,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> ClosedSetRows:
    """Read the input of curves over all thresholds; without weights each sample weighs 1.

    Raises
    ------
    ValueError
        If ``y_pred_known`` holds the open label, a score is NaN, lengths differ, labels are of mixed kinds, or weights
        are negative or all 0.
    """
    problem = read_label_problem(
        y_true,
        y_pred_known,
        open_label=open_label,
        labels=labels,
        sample_weight=sample_weight,
        pred_name="y_pred_known",
    )
    n_refused = int(np.sum(problem.predicted == len(problem.classes)))
    if n_refused:
        raise ValueError(
            f"y_pred_known holds the open label {problem.open_label!r} in {n_refused} of {len(problem.predicted)} "
            "rows: pass the closed-set prediction of every row, as predict_known returns it."
        )
    return ClosedSetRows(problem, read_scores(score, len(problem.present))[problem.present])


def trade_off_at(
    rows: ClosedSetRows, thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rates of known rejected, open detected and wrong class at rising thresholds, (n_thresholds,) each."""
    is_known = rows.is_known
    is_wrong = is_known & (rows.problem.true != rows.problem.predicted)
    place = np.searchsorted(thresholds, rows.score, side="right")  # the first threshold that rejects the row

    def weight_below(counted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weight of the rows below each threshold, and last of all rows, (n_thresholds + 1,)."""
        weights = rows.problem.weight[counted]
        return np.bincount(place[counted], weights=weights, minlength=len(thresholds) + 1).cumsum()

    known, opened, wrong = (weight_below(counted) for counted in (is_known, ~is_known, is_wrong))
    n_known, n_open = (found[-1] if found[-1] > 0 else np.nan for found in (known, opened))
    return known[:-1] / n_known, opened[:-1] / n_open, (wrong[-1] - wrong[:-1]) / n_known


def f1_at(
    rows: ClosedSetRows, thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """F1 over all classes, over the known ones, and of open at rising thresholds, (n_thresholds,) each.

    Rejecting a sample changes the F1 of its predicted class and that of open. So the rows of each predicted class are
    rejected in ascending order of score, and the changes are summed.
    """
    problem, n_known = rows.problem, len(rows.problem.classes)
    order = np.lexsort((rows.score, problem.predicted))
    predicted, weight = problem.predicted[order], problem.weight[order]
    right = weight * (problem.true == problem.predicted)[order]
    support = np.bincount(problem.true, weights=problem.weight, minlength=n_known + 2)
    support[n_known + 1] = 0.0  # predictions that are not a known class belong to none
    size = np.where(support > 0, support, np.inf)

    def left(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the later rows of the same predicted class."""
        return np.asarray(np.bincount(predicted, weights=values).cumsum()[predicted] - values.cumsum())

    right_left, weight_left = left(right), left(weight)
    after = 2 * right_left / (size[predicted] + weight_left)
    change = after - 2 * (right_left + right) / (size[predicted] + weight_left + weight)
    place = np.searchsorted(thresholds, rows.score[order], side="right")  # the first threshold that rejects the row

    def below(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the rows below each threshold."""
        return np.bincount(place, weights=values, minlength=len(thresholds) + 1).cumsum()[:-1]

    known = np.maximum(below(change) - change.sum(), 0)  # with all rows rejected, every F1 is 0
    opened = 2 * below(weight * ~rows.is_known[order]) / (support[n_known] + below(weight))
    return (known + opened) / (n_known + 1), known / n_known, opened


def check_offset(offset: float) -> float:
    """Raise an error if an offset is NaN; infinite ones accept everything or nothing."""
    value = float(offset)
    if value != value:
        raise ValueError(f"offset={offset!r} is not a number: pass the lowest score to accept.")
    return value


def read_known_classes(labels: ArrayLike, true: LabelArray, open_label: int | str) -> LabelArray:
    """Read the known classes: of the type of ``true``, each once, without the open label."""
    classes = read_labels(labels, "labels")
    as_kind_of(true, classes, "y_true", "labels")
    if open_label in classes:
        raise ValueError(
            f"labels lists the open label {open_label!r} among the known classes: leave it out of labels, "
            "or pass another open label."
        )
    distinct, counts = np.unique(classes, return_counts=True)
    if len(distinct) < len(classes):
        raise ValueError(f"labels lists {distinct[counts > 1][0].item()!r} more than once: name each known class once.")
    return classes


def read_labels(values: ArrayLike, name: str) -> LabelArray:
    """Read labels, and return them as ``int64`` or as text."""
    labels = as_labels(values, name)
    return labels.astype(np.str_) if is_text(labels) else labels.astype(np.int64)


def read_scores(score: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Read scores as ``float64``, one for each row, without NaN."""
    array = np.asarray(unmasked(score, "score"))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2 and scored_estimator() is not None:  # raising would become a NaN score in a search
        array = array.max(axis=1)
    if array.ndim != 1:
        raise ValueError(
            f"score has shape {array.shape}, but must be one-dimensional: pass one number for each row, as "
            "score_samples returns it."
        )
    check_same_length(n_rows, array, "score")
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    if array.dtype.kind not in "buif":
        raise ValueError(
            f"score is of type {array.dtype}, but must be numbers: pass the knownness of each row, not its label."
        )
    n_missing = int(np.isnan(array).sum())
    if n_missing:
        raise ValueError(
            f"score holds NaN in {n_missing} of {n_rows} rows, but every row needs a score: set missing ones to -inf, "
            "so that they rank last, or leave these rows out."
        )
    return array.astype(np.float64)


def classes_of_scored(true: LabelArray, open_label: Any) -> LabelArray | None:
    """Give the known classes where scikit-learn's own scorer passes labels that its estimator does not know.

    A warning says that these labels are read as open; ``None`` where there is no such label, or no such scorer.
    """
    classes = getattr(scored_estimator(), "classes_", None)
    if classes is None:
        return None
    known = as_labels(classes, "classes_").astype(true.dtype)
    unknown = np.setdiff1d(true, np.append(known, open_label))
    if not len(unknown):
        return None
    warn(
        f"y_true holds {unknown[0].item()!r}, which the estimator does not know: this score reads it as open; "
        "make the scorer with skellipsoid.metrics.make_open_set_scorer(metric), not with sklearn's make_scorer."
    )
    return np.asarray(known[known != open_label])


def check_same_length(n_rows: int, values: NDArray[Any], name: str) -> None:
    """Raise one sentence unless ``values`` has one entry for each true label."""
    if len(values) != n_rows:
        raise ValueError(
            f"y_true has {n_rows} rows and {name} has {len(values)}: pass one entry of each for every row."
        )
