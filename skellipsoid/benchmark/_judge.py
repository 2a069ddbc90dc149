"""Figures of a fitted classifier on test samples, in percent."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._pipelines import closed_set_answer, knownness, open_label_of
from ..metrics import (
    known_f1_score,
    open_f1_score,
    open_set_accuracy,
    open_set_auroc,
    open_set_f1_score,
)
from ._data import OPEN


def judge(estimator: Any, X: NDArray[Any], predicted: NDArray[Any], truth: NDArray[np.str_]) -> dict[str, Any]:
    """Figures of a fitted classifier whose answers to ``X`` are ``predicted``.

    ``auroc`` and ``oracle_f1`` are ``None`` for a classifier that gives no score.
    """
    if not hasattr(estimator, "classes_"):
        msg = f"{type(estimator).__name__} has no classes_ after fit; a method must be a classifier."
        raise TypeError(msg)
    known = np.asarray(estimator.classes_).astype(np.str_)
    known = known[known != str(open_label_of(estimator))]
    predicted = np.asarray(predicted).astype(np.str_)
    predicted = np.where(predicted == str(open_label_of(estimator)), OPEN, predicted)
    labels: dict[str, Any] = {"labels": known, "open_label": OPEN}
    f1 = _percent(open_set_f1_score(truth, predicted, zero_division=0, **labels))
    figures = {
        "f1": f1,
        "accuracy": _percent(open_set_accuracy(truth, predicted, **labels)),
        "f1_known": _percent(known_f1_score(truth, predicted, zero_division=0, **labels)),
        "f1_open": _percent(open_f1_score(truth, predicted, zero_division=0, **labels)),
        "auroc": None,
        "oracle_f1": None,
        "coarse": coarse_confusion(truth, predicted),
    }
    try:
        score = knownness(estimator, X)
        nearest = estimator.predict_known(X) if hasattr(estimator, "predict_known") else closed_set_answer(estimator, X)
    except TypeError:
        return figures
    if len({*(truth == OPEN)}) == 2:
        figures["auroc"] = _percent(open_set_auroc(truth, score, **labels))
    figures["oracle_f1"] = max(f1, _percent(oracle_f1(truth, np.asarray(nearest).astype(np.str_), score, known)))
    return figures


def _percent(share: float) -> float:
    return round(100 * share, 4)


def coarse_confusion(truth: NDArray[np.str_], predicted: NDArray[np.str_]) -> list[list[int]]:
    """Count known samples (first) and open ones by answer: known and right, known and wrong, open."""
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
