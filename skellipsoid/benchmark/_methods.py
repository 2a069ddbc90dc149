"""Methods of a benchmark: short names, classes of the package and of a user, and the parameters that are searched."""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

from .. import EliDecide, EllipsoidOpenSetClassifier

#: The boundary stage of the paper as its authors released it, on features as they are.
_PAPER = {"trainer": EliDecide(rescale=False), "duplicates": "off", "outliers": "keep"}
_SHORT: dict[str, tuple[Any, dict[str, Any]]] = {
    "ellipsoid": (EllipsoidOpenSetClassifier, {}),
    "paper": (EllipsoidOpenSetClassifier, _PAPER),
}


class MethodSpec(NamedTuple):
    """An estimator with its name in the tables, and what is searched of its parameters."""

    name: str
    estimator: Any  # unfitted
    search: Mapping[str, list[Any]]

    @property
    def path(self) -> str:
        """Where its class is, ``module:Class``."""
        kind = type(self.estimator)
        return f"{kind.__module__}:{kind.__qualname__}"

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, as JSON holds them."""
        return _as_json(self.estimator.get_params(deep=False))

    @property
    def changed(self) -> dict[str, Any]:
        """Those of its parameters that are not the defaults of its class."""
        return changed_params(self.estimator)

    def build(self, seed: int, device: str, params: Mapping[str, Any]) -> Any:
        """Make an estimator to fit; its seed and its device are those of the run unless the plan says otherwise."""
        estimator = clone(self.estimator)
        given = estimator.get_params()
        ours = {name: seed for name, value in given.items() if _ends(name, "random_state") and value is None}
        ours |= {name: device for name, value in given.items() if _ends(name, "device") and value == "auto"}
        return estimator.set_params(**{**ours, **params})


def changed_params(estimator: Any) -> dict[str, Any]:
    """Give the parameters that are not the defaults of the estimator's class, as JSON holds them."""
    defaults = _as_json({name: entry.default for name, entry in signature(type(estimator)).parameters.items()})
    params = _as_json(estimator.get_params(deep=False))
    return {name: value for name, value in params.items() if name not in defaults or value != defaults[name]}


def make_method(
    name: str | None, estimator: Any, params: Mapping[str, Any], search: Mapping[str, list[Any]]
) -> MethodSpec:
    """Make a method of a short name, of ``module:Class``, or of an unfitted estimator.

    Raises
    ------
    ValueError
        If the name is unknown, or if a parameter is none of the estimator's.
    """
    label = estimator.rpartition(":")[2] if isinstance(estimator, str) else type(estimator).__name__
    own: Mapping[str, Any] = {}
    if isinstance(estimator, str):
        kind, own = _short_names().get(estimator) or (_import_class(estimator), {})
        try:
            estimator = kind()
        except TypeError as error:
            msg = (
                f"The method {label!r} cannot be made without arguments ({error}); give every parameter of it a "
                "default, or pass an estimator in Python."
            )
            raise ValueError(msg) from error
    # A clone of its own settings: a nested estimator is not shared.
    estimator = clone(clone(estimator).set_params(**own))
    allowed = sorted(estimator.get_params())
    for parameter in (*params, *search):
        if parameter not in allowed:
            msg = f"The method {label!r} has no parameter {parameter!r}; its parameters are {', '.join(allowed)}."
            raise ValueError(msg)
    for parameter, values in search.items():
        if not isinstance(values, list | tuple) or not values:
            msg = f"search of {label!r} has {parameter} = {values!r}, but needs a list of values to try."
            raise ValueError(msg)
    estimator = clone(estimator).set_params(**params)
    _check_values(label, estimator, search)
    return MethodSpec(name or label, estimator, {key: list(values) for key, values in search.items()})


def _check_values(label: str, estimator: Any, search: Mapping[str, list[Any]]) -> None:
    """Check values as ``fit`` does, if the estimator says which ones it takes."""
    if not hasattr(estimator, "_parameter_constraints"):
        return
    for given in ({}, *({name: value} for name, values in search.items() for value in values)):
        check_params(f"The method {label!r}", clone(estimator).set_params(**given))


def check_params(what: str, estimator: Any) -> None:
    """Check parameters as ``fit`` does, before anything is trained."""
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        msg = f"{what} cannot be used: {error}"
        raise ValueError(msg) from error


def short_names() -> list[str]:
    """List the short names of the methods of this package.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from skellipsoid.benchmark import short_names
    >>> short_names()[:2]
    ['ellipsoid', 'paper']
    """
    return list(_short_names())


@lru_cache(maxsize=1)
def _short_names() -> dict[str, tuple[Any, dict[str, Any]]]:
    try:
        baselines = import_module("skellipsoid.baselines")
    except ModuleNotFoundError as error:
        if error.name != "skellipsoid.baselines":
            raise
        return _SHORT
    classes = {name: getattr(baselines, name) for name in baselines.__all__}
    return _SHORT | {name: (found, {}) for name, found in classes.items() if hasattr(found, "predict")}


def _import_class(path: str) -> Any:
    module, separator, name = path.partition(":")
    if not separator:
        msg = (
            f"{path!r} is not a method; use {', '.join(_short_names())}, or module:Class for an estimator of your own."
        )
        raise ValueError(msg)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        msg = f"The method {path!r} cannot be imported ({error}); check the name, and that Python finds the module."
        raise ValueError(msg) from error
    if not (hasattr(found, "fit") and hasattr(found, "predict") and hasattr(found, "get_params")):
        msg = f"{path!r} is not a classifier of scikit-learn's kind; it needs fit, predict and get_params."
        raise ValueError(msg)
    return found


def _as_json(params: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(params, default=repr))
    return found


def _ends(name: str, last: str) -> bool:
    return name.rsplit("__", 1)[-1] == last
