"""Identity of a method: its name, its settings by value, and the version of its predictions."""

import ast
import hashlib
import inspect
import json
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

#: Parameters that change no prediction.
_WITHOUT_EFFECT = {"keep_samples", "keep_texts", "verbose"}
#: Defaults that have changed, with those that results found first, which did not name them.
_FIRST_DEFAULTS: dict[str, dict[str, Any]] = {"SupConTextEncoder": {"pooling": "mean", "layers": "last"}}
#: Packages whose classes have their name alone, wherever they are.
_OURS = {"skellipsoid", "skellipsoid_bench"}
#: Folders of what is installed, whose code is not a user's own.
_INSTALLED = {"site-packages", "dist-packages", Path(sysconfig.get_path("stdlib")).name}


def name_of_class(kind: Any) -> str:
    """Name a class or a function: ``module:name``, or the name alone if it is of this package or of skellipsoid."""
    ours = kind.__module__.partition(".")[0] in _OURS
    return str(kind.__qualname__) if ours else f"{kind.__module__}:{kind.__qualname__}"


def by_value(thing: Any) -> Any:
    """Give what JSON can hold of a value, equal for equal values and in every process.

    Arrays stand for their SHA-256, estimators for their class and the parameters that are not defaults, functions for
    their name and what they hold.

    Raises
    ------
    ValueError
        If the value can be neither read nor pickled.
    """
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.generic):
        return by_value(thing.item())
    if isinstance(thing, Mapping):
        return {str(name): by_value(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [by_value(value) for value in thing]
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return {"array": list(thing.shape), "sha256": hashlib.sha256(_array_content(thing)).hexdigest()}
    if isinstance(thing, type):
        return {"class": name_of_class(thing)}
    if hasattr(thing, "get_params"):
        return {"class": name_of_class(type(thing)), "params": changed_params(thing)}
    if isinstance(thing, partial):
        return {"partial": by_value([thing.func, thing.args, thing.keywords])}
    if isinstance(thing, MethodType):
        return {"method": thing.__func__.__qualname__, "of": by_value(thing.__self__)}
    if isinstance(thing, FunctionType) and thing.__name__ != "<lambda>":
        holds = [cell.cell_contents for cell in thing.__closure__ or () if cell.cell_contents is not thing]
        return {"function": name_of_class(thing), "holds": by_value(holds)}
    try:
        return {"object": name_of_class(type(thing)), "hash": joblib.hash(thing, hash_name="sha1")}
    except Exception as error:  # whatever the object's own pickling raises
        raise ValueError(
            f"A value of the type {type(thing).__name__} cannot be stored ({error}), so that no result can be "
            "recognized by it; use a value, an array, an estimator or a function with a name."
        ) from error


def content_key(*things: Any) -> str:
    """SHA-256 over arrays, lists of strings and whatever else has a value, each with its length."""
    digest = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
            content = _array_content(thing)
        else:
            content = _told(thing.tolist() if isinstance(thing, np.ndarray) else thing).encode()
        digest.update(f"{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _array_content(array: NDArray[Any]) -> bytes:
    """Give type, shape and entries of an array."""
    return f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()


def _told(thing: Any) -> str:
    return json.dumps(by_value(thing), sort_keys=True)


def changed_params(estimator: Any) -> dict[str, Any]:
    """Give the parameters that are not the defaults of the estimator's class, by value."""
    found, defaults = by_value(estimator.get_params(deep=False)), _defaults(estimator)
    return {name: value for name, value in found.items() if name not in defaults or value != defaults[name]}


def _defaults(estimator: Any) -> dict[str, Any]:
    entries = signature(type(estimator)).parameters.items()
    found = {name: by_value(entry.default) for name, entry in entries if entry.default is not entry.empty}
    return found | _FIRST_DEFAULTS.get(name_of_class(type(estimator)), {})


def has_settings(estimator: Any, settings: Mapping[str, Any]) -> bool:
    """Whether stored parameters are those of an estimator.

    One that is not stored is newer than the result: it must have its default. One that the class no longer has does not
    count.
    """
    defaults = _defaults(estimator)
    for name, value in estimator.get_params(deep=False).items():
        if name in _WITHOUT_EFFECT:
            continue
        if name not in settings:
            if by_value(value) != defaults.get(name, ...):
                return False
        elif hasattr(value, "get_params") and not isinstance(value, type):
            stored = settings[name]
            if not isinstance(stored, Mapping) or stored.get("class") != name_of_class(type(value)):
                return False
            if not has_settings(value, stored["params"]):
                return False
        elif _told(value) != _told(settings[name]):
            return False
    return True


def answers_of(*estimators: Any) -> dict[str, int]:
    """Give ``answers_version`` of estimators, and of estimators among their parameters, by class; 1 is left out."""
    parts = [each for estimator in estimators for each in _parts(estimator)]
    versions = {name_of_class(type(each)): getattr(each, "answers_version", 1) for each in parts}
    return {name: version for name, version in sorted(versions.items()) if version != 1}


def _parts(thing: Any) -> Iterator[Any]:
    """Estimators inside a value, itself included."""
    if isinstance(thing, list | tuple):
        for entry in thing:
            yield from _parts(entry)
    elif hasattr(thing, "get_params") and not isinstance(thing, type):
        yield thing
        for value in thing.get_params(deep=False).values():
            yield from _parts(value)


def sources_of(*estimators: Any) -> dict[str, str]:
    """Give a hash of the source of own classes and functions among estimators, by name.

    It is that of the whole module, since a class calls what stands beside it; comments do not count. What is installed,
    and what has no source, is left out.
    """
    kinds = {kind for estimator in estimators for part in _parts(estimator) for kind in _code_of(part)}
    found = {name_of_class(kind): _source_hash(kind) for kind in kinds}
    return {name: digest for name, digest in sorted(found.items()) if digest is not None}


def _code_of(estimator: Any) -> Iterator[Any]:
    """Classes of an estimator, and functions among its parameters."""
    yield from type(estimator).__mro__
    for value in estimator.get_params(deep=False).values():
        if isinstance(value, FunctionType) and value.__name__ != "<lambda>":
            yield value


def _source_hash(kind: Any) -> str | None:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    is_installed = file is not None and bool(_INSTALLED & {*Path(file).parts})
    if kind.__module__.partition(".")[0] in {*_OURS, "builtins"} or is_installed:
        return None
    try:
        source = inspect.getsource(kind) if file is None else Path(file).read_text(encoding="utf-8")
        told = ast.dump(ast.parse(inspect.cleandoc(source) if file is None else source))
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    return hashlib.sha256(told.encode()).hexdigest()[:16]
