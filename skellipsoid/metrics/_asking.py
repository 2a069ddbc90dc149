"""Rates of correct, wrong, asked and missed messages of a model that may ask back (selective classification)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from ._reading import read_label_problem, read_labels

_ACTIONS = ("answer", "ask", "open")


def asking_report(
    y_true: ArrayLike,
    result: Mapping[str, Any],
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Rates of the actions of :func:`skellipsoid.predict_set` on labelled samples; ``asking_`` estimates these rates.

    Read more in the :ref:`User Guide <asking_back>`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    result : mapping
        Result of :func:`skellipsoid.predict_set`, or ``predict_set`` of the runtime: ``action`` of shape (n_samples,)
        and ``classes`` of shape (n_samples, n_offered).
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels: −1 for numbers, ``"-1"`` for strings.
    labels : array-like of shape (n_classes,), default=None
        The known classes. None takes all that occur in ``y_true`` or ``classes`` and are not the open label; pass the
        training classes when ``y_true`` names the classes of open samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all.

    Returns
    -------
    report : dict
        Proportions of the known samples:

        - ``"served"``: the right class was predicted, without a question;
        - ``"wrong"``: another class was predicted;
        - ``"asked"``: a question was asked;
        - ``"missed"``: the right class was neither predicted nor offered in the question.

        Proportions of the open samples: ``"open_asked"``, and ``"open_answered"``, where a known class was predicted.
        NaN if there is no such sample.

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or an action is not "answer", "ask" or "open".

    See Also
    --------
    open_set_report : The report on ``predict``, which never asks.

    Examples
    --------
    >>> from skellipsoid.metrics import asking_report
    >>> result = {
    ...     "action": ["answer", "ask", "open", "ask"],
    ...     "classes": [["pay", "-1"], ["card", "pay"], ["-1", "-1"], ["pay", "card"]],
    ... }
    >>> report = asking_report(["pay", "pay", "card", "joke"], result, labels=["card", "pay"])
    >>> [round(report[name], 2) for name in ("served", "wrong", "asked", "missed")]
    [0.33, 0.0, 0.33, 0.33]
    >>> report["open_asked"], report["open_answered"]
    (1.0, 0.0)
    """
    true, action, classes = read_labels(y_true, "y_true"), np.asarray(result["action"]), np.asarray(result["classes"])
    check_consistent_length(true, action, classes, sample_weight)
    strange = np.setdiff1d(action, _ACTIONS)
    if len(strange) or classes.ndim != 2:
        what = f"the action {str(strange[0])!r}" if len(strange) else f"classes of {classes.ndim} dimensions"
        raise ValueError(f"result holds {what}; pass what predict_set returns.")
    n_offered = classes.shape[1]
    # Each offered class counts as a prediction.
    problem = read_label_problem(
        np.repeat(true, n_offered),
        classes.ravel(),
        open_label=open_label,
        labels=labels,
        sample_weight=None if sample_weight is None else np.repeat(np.asarray(sample_weight), n_offered),
        pred_name="classes",
    )
    truth, offered = problem.true[::n_offered], problem.predicted.reshape(-1, n_offered)
    weight, action = problem.weight[::n_offered], action[problem.present[::n_offered]]
    is_known, is_right = truth < len(problem.classes), (offered == truth[:, np.newaxis]).any(axis=1)
    answered, asked = action == "answer", action == "ask"

    def rate(of: Any, rows: Any) -> float:
        return float(np.average(of[rows], weights=weight[rows])) if rows.any() else float("nan")

    return {
        "served": rate(answered & is_right, is_known),
        "wrong": rate(answered & ~is_right, is_known),
        "asked": rate(asked, is_known),
        "missed": rate(~(answered | asked) | ~is_right, is_known),
        "open_asked": rate(asked, ~is_known),
        "open_answered": rate(answered, ~is_known),
    }
