"""What is private in scikit-learn and used here, in one place: another release may move it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, InvalidParameterError, StrOptions
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as count_rows

__all__ = [
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "check_sample_weight",
    "count_rows",
    "take_rows",
    "validate_params",
    "validate_steps",
    "validated_fit",
]


class Interval(_Interval):
    """Numbers of a range; a Boolean, which Python counts among the numbers, is none of them."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool | np.bool_) and bool(super().is_satisfied_by(val))


def validated_fit(prefer_skip_nested_validation: bool) -> Callable[[Any], Any]:
    """Give what lets a fit validate its parameters first."""
    decorate: Callable[[Any], Any] = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return decorate


def take_rows(X: Any, rows: Any) -> Any:
    """Take rows of any container; those of Arrow's, scikit-learn takes from 1.9 on, and not of a record batch."""
    return X.take(rows) if type(X).__module__.partition(".")[0] == "pyarrow" else _safe_indexing(X, rows)


def validate_params(estimator: Any) -> None:
    """Check the parameters of an estimator against its constraints."""
    estimator._validate_params()


def validate_steps(pipeline: Pipeline) -> None:
    """Check that the steps of a Pipeline are estimators with unique names."""
    pipeline._validate_steps()
