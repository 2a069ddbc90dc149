"""The open-set report: precision, recall and F1 of each class and of open, their means, and both rejection rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._counts import (
    Counts,
    ZeroDivision,
    check_zero_division,
    count_predictions,
    f1_scores,
    fill_undefined,
    macro,
    quotient,
    undefined_value,
)

_COLUMNS = ("precision", "recall", "f1-score")
_WIDTH = 9


def open_set_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any = -1,
    labels: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    sample_weight: ArrayLike | None = None,
    output_dict: bool = False,
    digits: int = 2,
) -> Any:
    """Report precision, recall and F1 of each known class and of open, and the metrics of the literature.

    The counterpart of :func:`sklearn.metrics.classification_report`, as text or as a dictionary.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, all numbers or all strings. A label outside ``labels`` is read as open.
    y_pred : array-like of shape (n_samples,)
        Predictions of the same kind. One outside ``labels`` that is not the open label is wrong for every sample and
        no false positive of any class.
    open_label : int or str, default=-1
        The label for open, cast to the type of the labels: −1 for numbers, ``"-1"`` for strings.
    labels : array-like of shape (n_classes,), default=None
        The known classes, in the order of the report. None takes all that occur in ``y_true`` or ``y_pred`` and are
        not the open label, sorted; pass the training classes when ``y_true`` names the classes of open samples.
    zero_division : {"warn", 0, 1, nan}, default="warn"
        Value of a quotient with the denominator zero: the precision of a class that is never predicted, the recall of a
        class that is no true label, the F1 of a class that is neither, and the F1 of open if no sample of ``y_true`` is
        open. "warn" is 0 with an ``UndefinedMetricWarning``; NaN is left out of averages.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; ``None`` is 1 for all. Samples of weight 0 are not used. With weights, support is a sum of
        them.
    output_dict : bool, default=False
        Return the dictionary instead of the text.
    digits : int, default=2
        Decimals in the text; the dictionary is never rounded.

    Returns
    -------
    report : str or dict
        The dictionary has the entries

        - ``"classes"``: for each known class, then for open, under its label as text: ``"precision"``, ``"recall"``,
          ``"f1-score"`` and ``"support"`` (samples that are this class);
        - ``"known avg"`` and ``"macro avg"``: the means over the K known classes, and over the known classes and open;
          their support is a sum;
        - ``"open_set_f1"``, ``"known_f1"``, ``"open_f1"``, ``"accuracy"``: as the functions of these names;
        - ``"open_rejection_rate"``: proportion of open samples that are predicted open, the recall of open;
        - ``"false_rejection_rate"``: proportion of known samples that are predicted open.

        The text is laid out as scikit-learn's: the f1-scores of its rows "known avg", "macro avg" and "open" are what
        the literature calls F1-known, F1 and F1-open.

    Raises
    ------
    ValueError
        If labels mix numbers and strings, lengths differ, or ``labels`` lists a class twice or the open label.

    See Also
    --------
    open_set_f1_score, known_f1_score, open_f1_score, open_set_accuracy : The figures one by one.
    skellipsoid.metrics.trade_off_curve : The two rates at every threshold, from scores.

    Notes
    -----
    Precision is TP / (TP + FP), recall is TP / (TP + FN), and F1 is 2 TP / (2 TP + FP + FN), with each class as the
    positive class in its row. The open rejection rate is the recall of open.

    References
    ----------
    .. [1] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    >>> from skellipsoid.metrics import open_set_report
    >>> y_true = ["pay", "pay", "card", "weather", "joke"]
    >>> y_pred = ["pay", "-1", "card", "card", "-1"]
    >>> print(open_set_report(y_true, y_pred, labels=["card", "pay"]))
                          precision    recall  f1-score   support
    <BLANKLINE>
                    card       0.50      1.00      0.67         1
                     pay       1.00      0.50      0.67         2
               open (-1)       0.50      0.50      0.50         2
    <BLANKLINE>
               known avg       0.75      0.75      0.67         3
               macro avg       0.67      0.67      0.61         5
    <BLANKLINE>
                accuracy                          0.60         5
     open rejection rate                          0.50         2
    false rejection rate                          0.33         3
    >>> report = open_set_report(y_true, y_pred, labels=["card", "pay"], output_dict=True)
    >>> report["classes"]["-1"]
    {'precision': 0.5, 'recall': 0.5, 'f1-score': 0.5, 'support': 2}
    """
    check_zero_division(zero_division)
    counts = count_predictions(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    report = _build(counts, zero_division)
    return report if output_dict else _format(report, digits)


def _build(counts: Counts, zero_division: ZeroDivision) -> dict[str, Any]:
    """Compute all figures; warnings point to the caller of the report."""
    columns = _class_columns(counts, zero_division)
    n_open = counts.support[-1:]
    n_known = counts.support[:-1].sum(keepdims=True)
    false_rejection_rate = fill_undefined(
        quotient(np.array([counts.n_false_rejections]), n_known),
        n_known == 0,
        zero_division,
        what="False rejection rate",
        missing="y_true has no",
        names=["known sample"],
    )
    names = [*map(str, counts.classes.tolist()), str(counts.open_label)]
    # Without a known class the mean is undefined, too; the rate above has already warned.
    known_columns = columns[:, :-1] if len(counts.classes) else np.full((3, 1), undefined_value(zero_division))
    known_avg = _scores([macro(column) for column in known_columns], n_known.item())
    macro_avg = _scores([macro(column) for column in columns], (n_known + n_open).item())
    return {
        "classes": {name: _scores(columns[:, k].tolist(), counts.support[k].item()) for k, name in enumerate(names)},
        "known avg": known_avg,
        "macro avg": macro_avg,
        "open_set_f1": macro_avg["f1-score"],
        "known_f1": known_avg["f1-score"],
        "open_f1": float(columns[2, -1]),
        "accuracy": float(counts.correct.sum() / (n_known + n_open).item()),
        "open_rejection_rate": float(columns[1, -1]),
        "false_rejection_rate": float(false_rejection_rate[0]),
    }


def _class_columns(counts: Counts, zero_division: ZeroDivision) -> NDArray[np.float64]:
    """Precision, recall and F1 of every class and open, (3, n_classes + 1), undefined ones filled."""
    f1, no_f1 = f1_scores(counts)
    columns = []
    for what, missing, values, undefined in (
        ("Precision", "y_pred has no", quotient(counts.correct, counts.predicted), counts.predicted == 0),
        ("Recall", "y_true has no", quotient(counts.correct, counts.support), counts.support == 0),
        ("F1", "y_true has no", f1, no_f1),
    ):
        columns.append(fill_undefined(values, undefined, zero_division, what=what, missing=missing, names=counts.names))
    return np.stack(columns)


def _scores(column: list[float], support: float) -> dict[str, float]:
    return {**dict(zip(_COLUMNS, column, strict=True)), "support": support}


def _format(report: dict[str, Any], digits: int) -> str:
    """Format the report like scikit-learn's."""
    *known, open_label = report["classes"]
    n_known, n_open = report["known avg"]["support"], report["classes"][open_label]["support"]
    open_name = f"open ({open_label})"
    blocks: list[dict[str, Any]] = [
        {name: report["classes"][name] for name in known},
        {"known avg": report["known avg"], "macro avg": report["macro avg"]},
        {
            "accuracy": {"f1-score": report["accuracy"], "support": n_known + n_open},
            "open rejection rate": {"f1-score": report["open_rejection_rate"], "support": n_open},
            "false rejection rate": {"f1-score": report["false_rejection_rate"], "support": n_known},
        },
    ]
    width = max(len(name) for name in [*known, open_name, *blocks[2]])
    cell = max(_WIDTH, digits + 2)

    def line(name: str, texts: list[str]) -> str:
        return f"{name:>{width}} " + " ".join(f"{text:>{cell}}" for text in texts)

    def row(name: str, scores: dict[str, float]) -> str:
        support = scores["support"]
        amount = f"{support:.{digits}f}" if isinstance(support, float) else str(support)
        return line(name, [*(f"{scores[c]:.{digits}f}" if c in scores else "" for c in _COLUMNS), amount])

    tables = [[row(name, scores) for name, scores in block.items()] for block in blocks]
    tables[0].append(row("open" if open_label == "open" else open_name, report["classes"][open_label]))
    return "\n\n".join([line("", [*_COLUMNS, "support"]), *("\n".join(table) for table in tables)])
