"""How the displays read an estimator, labels and scores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..metrics._labels import LabelProblem, read_label_problem
from ..metrics._scores import read_scores


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


def split_estimator(estimator: Any) -> tuple[list[Any], Any]:
    """Split a Pipeline into its transformers and the classifier that it ends in.

    Parameters
    ----------
    estimator : classifier, Pipeline or search
        A Pipeline may end in another one; of a fitted search the best estimator is taken.

    Returns
    -------
    transformers : list
        In the order of the data; none for a classifier alone.
    classifier : estimator
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return [], estimator
    *steps, last = [step for _, step in estimator.steps]
    inner, classifier = split_estimator(last)
    return [step for step in steps if step is not None and step != "passthrough"] + inner, classifier


def read_estimator(estimator: Any, X: Any, members: Sequence[str], caller: str, remedy: str = "") -> tuple[Any, Any]:
    """Take a fitted classifier out of an estimator, and transform rows into what it sees.

    The rows are transformed once, however many methods of the classifier are called then: embedding texts is dear.

    Parameters
    ----------
    estimator : classifier, Pipeline or search
    X : array-like
        What the estimator predicts on.
    members : sequence of str
        Methods and attributes of the contract that the caller needs of the classifier.
    caller : str
        For the error.
    remedy : str
        What else can be done, for the error.

    Returns
    -------
    classifier : estimator
    features : array-like of shape (n_samples, n_features)

    Raises
    ------
    TypeError
        If the classifier lacks a member.
    NotFittedError
        If it is not fitted.
    """
    transformers, classifier = split_estimator(estimator)
    missing = [name for name in members if not (name.endswith("_") or hasattr(classifier, name))]
    if not missing:
        check_is_fitted(classifier)
        missing = [name for name in members if not hasattr(classifier, name)]
    if missing:
        msg = (
            f"{caller} reads {missing[0]}, which {type(classifier).__name__} does not have: pass an open-set "
            f"classifier of this package or a Pipeline that ends in one{remedy}."
        )
        raise TypeError(msg)
    for transformer in transformers:
        X = transformer.transform(X)
    return classifier, X


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
