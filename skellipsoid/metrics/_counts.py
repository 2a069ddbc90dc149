"""Counts of true, predicted and correct labels, F1 = 2 TP / (predicted + true), and values for undefined F1."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from .._core.warn import warn
from ._reading import LabelArray, read_label_problem

#: Value of an undefined quotient: a number, or ``"warn"`` for 0 with a warning.
ZeroDivision = float | Literal["warn"]

_MANY = 5


class Counts(NamedTuple):
    """How often each of the K known classes and open (the last entry) is true, predicted, and both.

    Attributes
    ----------
    correct, predicted, support : ndarray of shape (n_classes + 1,)
        Correct predictions, predictions and samples of each class: numbers, or sums of weights.
    n_false_rejections : int or float
        Known samples that are predicted open.
    classes : ndarray of shape (n_classes,)
    open_label : int or str
    """

    correct: NDArray[np.int64] | NDArray[np.float64]
    predicted: NDArray[np.int64] | NDArray[np.float64]
    support: NDArray[np.int64] | NDArray[np.float64]
    n_false_rejections: float
    classes: LabelArray
    open_label: int | str

    @property
    def names(self) -> list[str]:
        """Names of the classes and open in warnings, in the order of the counts."""
        return [*map(repr, self.classes.tolist()), "open sample"]


def count_predictions(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    open_label: Any,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> Counts:
    """Count true and predicted labels by the rule of :mod:`skellipsoid.metrics._reading`, or sum their weights."""
    problem = read_label_problem(y_true, y_pred, open_label=open_label, labels=labels, sample_weight=sample_weight)
    n_known = len(problem.classes)
    is_right = problem.true == problem.predicted
    is_false_rejection = (problem.true < n_known) & (problem.predicted == n_known)

    def count(labels: NDArray[np.int64], rows: NDArray[np.bool_] | slice = slice(None)) -> NDArray[Any]:
        # The last bin holds predictions that are neither a known class nor open; they count for no class.
        weight = None if sample_weight is None else problem.weight[rows]
        return np.bincount(labels[rows], weights=weight, minlength=n_known + 2)[: n_known + 1]

    return Counts(
        correct=count(problem.true, is_right),
        predicted=count(problem.predicted),
        support=count(problem.true),
        n_false_rejections=count(problem.predicted, is_false_rejection)[n_known].item(),
        classes=problem.classes,
        open_label=problem.open_label,
    )


def f1_scores(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """F1 of each known class and of open (last), and where it is undefined (the value there is NaN).

    A known class that is neither a true label nor a prediction has no F1. Open has none without an open sample: its
    recall would be 0 / 0.
    """
    denominator = counts.support + counts.predicted
    undefined = denominator == 0
    undefined[-1] = counts.support[-1] == 0
    return quotient(2 * counts.correct, np.where(undefined, 0, denominator)), undefined


def quotient(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Quotient of counts, NaN where the denominator is zero."""
    values = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=values, where=denominator != 0)
    return values


def check_zero_division(zero_division: ZeroDivision) -> None:
    """Raise an error unless ``zero_division`` is one of the four allowed values."""
    # NaN is not equal to itself.
    if zero_division not in ("warn", 0, 1) and zero_division == zero_division:
        raise ValueError(f"zero_division={zero_division!r} is not allowed: pass 'warn', 0, 1 or nan.")


def fill_undefined(
    values: NDArray[np.float64],
    undefined: NDArray[np.bool_],
    zero_division: ZeroDivision,
    *,
    what: str,
    missing: str,
    names: list[str],
) -> NDArray[np.float64]:
    """Replace undefined values by the one of ``zero_division``, with a warning for "warn".

    Parameters
    ----------
    values, undefined : ndarray of shape (n_values,)
    zero_division : {"warn", 0, 1, nan}
    what : str
        The quantity, as the warning begins: "F1".
    missing : str
        What is missing; the names follow: "y_true has no".
    names : list of str
        Class of each value.
    """
    if not undefined.any():
        return values
    if zero_division == "warn":
        affected = [name for name, is_undefined in zip(names, undefined, strict=True) if is_undefined]
        listed = ", ".join(affected[:_MANY]) + (f" and {len(affected) - _MANY} more" if len(affected) > _MANY else "")
        warn(
            f"{what} is undefined and set to 0.0, since {missing} {listed}: control this with `zero_division`.",
            UndefinedMetricWarning,
        )
    return np.where(undefined, undefined_value(zero_division), values)


def undefined_value(zero_division: ZeroDivision) -> float:
    """Return the number for an undefined value."""
    return 0.0 if zero_division == "warn" else float(zero_division)


def macro(values: NDArray[np.float64]) -> float:
    """Mean of the values that are not NaN, as scikit-learn averages them; NaN if there is none."""
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else float("nan")


def has_both(is_known: NDArray[np.bool_], what: str) -> bool:
    """Whether there are known and open samples, with a warning unless there are.

    Parameters
    ----------
    is_known : ndarray of shape (n_samples,)
    what : str
        The quantity that is undefined otherwise.
    """
    missing = [name for name, rows in (("known", is_known), ("open", ~is_known)) if not rows.any()]
    if missing:
        warn(
            f"{what} is undefined and set to nan, since y_true has no {missing[0]} sample: pass samples of both kinds, "
            "and the known classes as labels if y_true names the classes of open samples.",
            UndefinedMetricWarning,
        )
    return not missing
