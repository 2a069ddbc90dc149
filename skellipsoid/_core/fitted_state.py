"""Fitted state that is set at once: whoever asks or pickles an estimator beside a fit has the state before it or after.

A fit works on a copy, whose attributes take the place of the old ones in one step. So a fit that fails or is
interrupted leaves the estimator as it was, and other threads meet no half of a fit. A method that reads several
attributes asks an object that has those of one moment.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from .sklearn import validated_fit

_Method = TypeVar("_Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
    """Validate the parameters before a fit, and set all that it fits at once."""
    validated = validated_fit(prefer_skip_nested_validation)
    return lambda fit: at_once(validated(fit), anew=True)


def at_once(change: _Method, *, anew: bool = False) -> _Method:
    """Let a method that changes fitted state set all of it at once, or nothing; ``anew``: it begins unfitted."""

    @wraps(change)
    def changed_at_once(self: Any, *args: Any, **options: Any) -> Any:
        fresh = object.__new__(type(self))
        fresh.__dict__ = dict(vars(self))
        if anew:
            unfit(fresh)
        result = change(fresh, *args, **options)
        self.__dict__ = vars(fresh)
        return self if result is fresh else result

    return changed_at_once  # type: ignore[return-value]


def unfit(estimator: Any) -> None:
    """Remove all that a fit has stored, so that neither a partial fit nor a part of an earlier one remains.

    It is what ``_state`` declares, and what ends with an underscore: for scikit-learn that makes an estimator fitted.
    All else stays, such as parameters and what the user, a subclass or scikit-learn keeps there.
    """
    parameters, declared = estimator.get_params(deep=False), getattr(estimator, "_state", {})
    for name in [
        name for name in vars(estimator) if name not in parameters and (name in declared or name.endswith("_"))
    ]:
        delattr(estimator, name)


#: For each estimator the object that has its present state, the same one as long as the state is the same.
_PRESENT: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_ARE_PRESENT: WeakSet[Any] = WeakSet()


def present(estimator: Any) -> Any:
    """Give an object with the attributes that an estimator has now; a later fit does not change them."""
    if type(estimator).__hash__ is None or estimator in _ARE_PRESENT:
        return estimator
    found, state = _PRESENT.get(estimator), vars(estimator)
    if found is None or vars(found) is not state:
        found = object.__new__(type(estimator))
        found.__dict__ = state
        _ARE_PRESENT.add(found)
        _PRESENT[estimator] = found
    return found


def of_one_fit(method: _Method) -> _Method:
    """Let a method read the attributes of one moment, however many it reads."""

    @wraps(method)
    def asked(self: Any, *args: Any, **options: Any) -> Any:
        return method(present(self), *args, **options)

    return asked  # type: ignore[return-value]
