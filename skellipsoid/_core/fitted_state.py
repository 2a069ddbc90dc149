"""Atomic fits: another thread sees the state of an estimator before a fit or after it, never half of it.

A fit works on a copy, whose attributes replace the old ones in one step. So a fit that fails or is interrupted leaves
the estimator as it was. A method that reads several attributes reads them from a snapshot.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from .sklearn import validated_fit

_Method = TypeVar("_Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
    """Validate the parameters before a fit, and store all fitted attributes in one step."""
    validated = validated_fit(prefer_skip_nested_validation)
    return lambda fit: at_once(validated(fit), anew=True)


def at_once(change: _Method, *, anew: bool = False) -> _Method:
    """Let a method change fitted state in one step, or not at all; ``anew``: it starts unfitted."""

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
    """Remove all fitted attributes, so that nothing of an earlier or partial fit remains.

    These are the attributes that ``_state`` declares, and names that end with an underscore, by which scikit-learn
    tells that an estimator is fitted. Other attributes stay: parameters, and those of users, subclasses and
    scikit-learn.
    """
    parameters, declared = estimator.get_params(deep=False), getattr(estimator, "_state", {})
    for name in [
        name for name in vars(estimator) if name not in parameters and (name in declared or name.endswith("_"))
    ]:
        delattr(estimator, name)


#: The snapshot of each estimator; the same object as long as the state is the same.
_PRESENT: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_ARE_PRESENT: WeakSet[Any] = WeakSet()


def present(estimator: Any) -> Any:
    """Return a snapshot of an estimator, which a later fit does not change."""
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
    """Let a method read all attributes from one snapshot."""

    @wraps(method)
    def asked(self: Any, *args: Any, **options: Any) -> Any:
        return method(present(self), *args, **options)

    return asked  # type: ignore[return-value]
