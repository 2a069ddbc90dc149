"""Methods of a benchmark: short names, classes of the package and of a user, and the parameters that are searched."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from sklearn.base import clone

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, baselines

from . import literature
from ._identity import by_value, name_of_class

_METHODS = {name: getattr(module, name) for module in (baselines, literature) for name in module.__all__}
#: What every method that has these parameters is told of the traffic: the protocol of the literature has a quarter to
#: three quarters of the classes open, and no shift.
PROTOCOL: dict[str, Any] = {"open_share": (0.25, 0.75), "known_shift": 0}
#: Methods with a short name.
_SHORT: dict[str, Any] = {
    "ellipsoid": EllipsoidOpenSetClassifier(),
    # The boundary stage of the paper as its authors released it, on features as they are.
    "paper": EllipsoidOpenSetClassifier(trainer=EliDecide(rescale=False), duplicates="off", outliers="keep"),
    **{name: found() for name, found in _METHODS.items() if hasattr(found, "predict")},
}


def of_package(name: str) -> Any:
    """Find the class of this name that a short name stands for; ``None`` for classes of others."""
    return next((type(each) for each in _SHORT.values() if name_of_class(type(each)) == name), None)


class MethodSpec(NamedTuple):
    """An estimator with its name in the tables, and what is searched of its parameters."""

    name: str
    estimator: Any  # unfitted
    search: Mapping[str, list[Any]]
    encoder: str | None = None  # name of the only encoder that it is run with

    @property
    def path(self) -> str:
        """Its class, ``module:Class``, or the name alone of those that have a short name."""
        return name_of_class(type(self.estimator))

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters by value, as JSON holds them."""
        found: dict[str, Any] = by_value(self.estimator.get_params(deep=False))
        return found

    def build(self, seed: int, device: str, params: Mapping[str, Any]) -> Any:
        """Make an estimator to fit; its seed and its device are those of the run unless the plan says otherwise."""
        return seeded(self.estimator, seed, device).set_params(**params)


def seeded(estimator: Any, seed: int, device: str) -> Any:
    """Make an estimator to fit, with the seed and the device of the run where it has none."""
    estimator = clone(estimator)
    given = estimator.get_params()
    ours = {name: seed for name, value in given.items() if _ends(name, "random_state") and value is None}
    ours |= {name: device for name, value in given.items() if _ends(name, "device") and value == "auto"}
    return estimator.set_params(**ours)


def make_method(
    name: str | None,
    estimator: Any,
    params: Mapping[str, Any],
    search: Mapping[str, list[Any]],
    encoder: str | None = None,
) -> MethodSpec:
    """Make a method of a short name, of ``module:Class``, or of an unfitted estimator.

    A method that has the parameters of ``PROTOCOL`` is told them, unless ``params`` or the estimator says otherwise.

    Raises
    ------
    ValueError
        If the name is unknown, or if a parameter is none of the estimator's.
    """
    label = estimator.rpartition(":")[2] if isinstance(estimator, str) else type(estimator).__name__
    if isinstance(estimator, str) and estimator in _SHORT:
        estimator = _SHORT[estimator]
    elif isinstance(estimator, str):
        if ":" not in estimator:
            listed = ", ".join(_SHORT)
            raise ValueError(
                f"{estimator!r} is not a method; use {listed}, or module:Class for an estimator of your own."
            )
        estimator = make_own(estimator, "method", "classifier", ("fit", "predict", "get_params"))
    allowed = sorted(estimator.get_params())
    for parameter in (*params, *search):
        if parameter not in allowed:
            raise ValueError(
                f"The method {label!r} has no parameter {parameter!r}; its parameters are {', '.join(allowed)}."
            )
    for parameter, values in search.items():
        if not isinstance(values, list | tuple) or not values:
            raise ValueError(f"search of {label!r} has {parameter} = {values!r}, but needs a list of values to try.")
    estimator = told(clone(estimator).set_params(**params), params)
    if hasattr(estimator, "_parameter_constraints"):
        for given in ({}, *({parameter: value} for parameter, values in search.items() for value in values)):
            check_params(f"The method {label!r}", clone(estimator).set_params(**given))
    return MethodSpec(name or label, estimator, {key: list(values) for key, values in search.items()}, encoder)


def told(estimator: Any, given: Mapping[str, Any]) -> Any:
    """Tell an estimator the traffic of the protocol, where it asks for it and nothing was ``given``."""
    missing = {
        name: PROTOCOL[last]
        for name, value in estimator.get_params().items()
        if (last := name.rsplit("__", 1)[-1]) in PROTOCOL and name not in given and value is None
    }
    return estimator.set_params(**missing)


def check_params(what: str, estimator: Any) -> None:
    """Check parameters as ``fit`` does, before anything is trained."""
    try:
        estimator._validate_params()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what} cannot be used: {error}") from error


def short_names() -> list[str]:
    """List the short names of the methods of this package.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from skellipsoid_bench import short_names
    >>> short_names()[:2]
    ['ellipsoid', 'paper']
    """
    return list(_SHORT)


def encoder_names() -> list[str]:
    """List the short names of the text encoders of this package."""
    return [name for name, found in _METHODS.items() if hasattr(found, "transform")]


def make_own(path: str, what: str, kind: str, members: Sequence[str]) -> Any:
    """Make an estimator of ``module:Class``, which must have some members."""
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"The {what} {path!r} cannot be imported ({error}); check the name, and that Python finds the module."
        ) from error
    if not all(hasattr(found, member) for member in members):
        listed = f"{', '.join(members[:-1])} and {members[-1]}"
        raise ValueError(f"{path!r} is not a {kind} of scikit-learn's kind; it needs {listed}.")
    try:
        return found()
    except TypeError as error:
        raise ValueError(
            f"The {what} {name!r} cannot be made without arguments ({error}); give every parameter of it a "
            "default, or pass an estimator in Python."
        ) from error


def _ends(name: str, last: str) -> bool:
    return name.rsplit("__", 1)[-1] == last
