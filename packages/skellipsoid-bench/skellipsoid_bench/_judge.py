"""Figures of a fitted classifier on test samples, in percent."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skellipsoid import metrics
from skellipsoid._core.pipelines import closed_set_prediction, knownness, open_label_of

from ._data import OPEN

#: Members that rank the classes for each sample, so that a closed-set prediction follows.
_COLUMNS = ("decision_function", "predict_proba")


class Answers(NamedTuple):
    """What a fitted classifier says of samples."""

    predicted: NDArray[np.str_]  # (n_samples,) a class, or open
    score: NDArray[np.float64] | None  # (n_samples,) higher is more known
    nearest: NDArray[np.str_] | None  # (n_samples,) a class


def read_answers(estimator: Any, X: NDArray[Any], predicted: Any, classes: NDArray[np.str_]) -> Answers:
    """Read predictions, scores and closed-set predictions, and check them.

    Whatever the classifier raises goes on: a figure is missing only if the classifier has no member to make it of.

    Parameters
    ----------
    estimator : classifier
        Fitted.
    X : ndarray
    predicted : array-like of shape (n_samples,)
        Its predictions for ``X``.
    classes : ndarray of shape (n_classes,)
        The labels that it was fitted on.

    Raises
    ------
    TypeError
        If it has no ``classes_``.
    ValueError
        If a prediction, a class or a score cannot be one.
    """
    name, open_label = type(estimator).__name__, str(open_label_of(estimator))
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"{name} has no classes_ after fit; a method must be a classifier.")
    labels = np.asarray(estimator.classes_).astype(np.str_).tolist()
    strange = [label for label in labels if label not in {*classes.tolist(), open_label}]
    if strange:
        raise ValueError(
            f"classes_ of {name} holds {strange[0]!r}, which is no label of y; keep the labels that fit is given."
        )
    given = _one_for_each(f"predict of {name}", predicted, len(X)).astype(np.str_)
    is_open = given == open_label
    wrong = ~(is_open | np.isin(given, classes))
    if wrong.any():
        raise ValueError(
            f"{name} predicts {str(given[wrong][0])!r} for {wrong.sum()} of {len(given)} test samples, which is "
            f"neither a class nor its open label {open_label!r}; let predict give {open_label!r}, or set "
            "open_label_ in fit."
        )
    score = nearest = None
    if hasattr(estimator, "score_samples") or any(hasattr(estimator, member) for member in _COLUMNS):
        score = _one_for_each(f"The score of {name}", knownness(estimator, X), len(X)).astype(np.float64)
    if hasattr(estimator, "predict_known"):
        nearest = _one_for_each(f"predict_known of {name}", estimator.predict_known(X), len(X)).astype(np.str_)
    elif any(hasattr(estimator, member) for member in _COLUMNS):
        nearest = closed_set_prediction(estimator, X).astype(np.str_)
    return Answers(np.where(is_open, OPEN, given), score, nearest)


def _one_for_each(what: str, values: Any, n_samples: int) -> NDArray[Any]:
    found = np.asarray(values)
    if found.shape != (n_samples,):
        raise ValueError(f"{what} has the shape {found.shape}, but needs one entry for each of {n_samples} samples.")
    return found


def judge(answers: Answers, truth: NDArray[np.str_], classes: NDArray[np.str_]) -> dict[str, Any]:
    """Figures of predictions; those of scores are ``None`` without a score, or if no test sample is open."""
    labels: dict[str, Any] = {"labels": classes, "open_label": OPEN}
    predicted, score, nearest = answers
    f1 = _percent(metrics.open_set_f1_score(truth, predicted, zero_division=0, **labels))
    figures = {
        "f1": f1,
        "accuracy": _percent(metrics.open_set_accuracy(truth, predicted, **labels)),
        "f1_known": _percent(metrics.known_f1_score(truth, predicted, zero_division=0, **labels)),
        "f1_open": _percent(metrics.open_f1_score(truth, predicted, zero_division=0, **labels)),
        **dict.fromkeys(("auroc", "aupr_known", "aupr_open", "fpr95", "oscr", "oracle_f1")),
        "coarse": coarse_confusion(truth, predicted),
    }
    if score is None:
        return figures
    if len({*(truth == OPEN)}) == 2:
        figures["auroc"] = _percent(metrics.open_set_auroc(truth, score, **labels))
        figures["aupr_known"] = _percent(metrics.open_set_aupr(truth, score, **labels))
        figures["aupr_open"] = _percent(metrics.open_set_aupr(truth, score, positive="open", **labels))
        figures["fpr95"] = _percent(metrics.fpr_at_tpr(truth, score, **labels))
        if nearest is not None:
            figures["oscr"] = _percent(metrics.oscr_score(truth, nearest, score, **labels))
    if nearest is not None:
        figures["oracle_f1"] = max(f1, _percent(oracle_f1(truth, nearest, score, classes)))
    return figures


def _percent(share: float) -> float:
    return round(100 * share, 4)


def coarse_confusion(truth: NDArray[np.str_], predicted: NDArray[np.str_]) -> list[list[int]]:
    """Count known samples (first) and open ones by prediction: known and right, known and wrong, open."""
    is_open, rejected, right = truth == OPEN, predicted == OPEN, truth == predicted
    return [
        [int((rows & answer).sum()) for answer in (right & ~rejected, ~right & ~rejected, rejected)]
        for rows in (~is_open, is_open)
    ]


def oracle_f1(
    truth: NDArray[np.str_], nearest: NDArray[np.str_], score: NDArray[np.floating], known: NDArray[np.str_]
) -> float:
    """Best macro F1 of all thresholds on the score: that of somebody who sees the test samples' labels.

    One row after the other is accepted, from the highest score down. Each changes the F1 of its class and that of
    open alone.
    """
    order = np.argsort(-score, kind="stable")
    truth, nearest, score = truth[order], nearest[order], score[order]
    n_rows, is_open = len(truth), truth == OPEN
    macro = np.zeros(n_rows + 1)
    for label in known:
        accepted = np.flatnonzero(nearest == label)
        right = np.cumsum(truth[accepted] == label)
        f1 = 2 * right / (np.arange(1, len(accepted) + 1) + np.sum(truth == label))
        macro[accepted + 1] += np.diff(f1, prepend=0.0)
    macro = np.cumsum(macro)
    open_left = is_open.sum() - np.concatenate([[0], np.cumsum(is_open)])
    total = n_rows - np.arange(n_rows + 1) + is_open.sum()
    macro += 2 * np.divide(open_left, total, out=np.zeros(n_rows + 1), where=total > 0)
    # Rows of one score are accepted together.
    possible = np.concatenate([[True], score[1:] != score[:-1], [True]])
    return float(macro[possible].max() / (len(known) + 1))
