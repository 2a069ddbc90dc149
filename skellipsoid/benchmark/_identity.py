"""What a method is: its parameters by value, and the source code that it runs."""

import ast
import hashlib
import json
import subprocess
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from importlib.metadata import packages_distributions, version
from inspect import getmro, signature
from pathlib import Path
from sys import modules
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

#: Where installed packages and the standard library are: their versions are recorded, their files are not read.
_INSTALLED = tuple(
    Path(folder).resolve()
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)

#: Classes that have moved, by the modules where they are, with those where results found them first.
_FIRST_MODULE = {
    "skellipsoid._after_fit.operating_point.tuned": "skellipsoid._operating_point._tuned",
    "skellipsoid._ellipsoid.classifier": "skellipsoid._ellipsoid",
    "skellipsoid._ellipsoid.elidecide": "skellipsoid._elidecide",
    "skellipsoid._encoders.llm": "skellipsoid._llm_encoder",
    "skellipsoid._encoders.supcon": "skellipsoid._encoder",
    "skellipsoid._prompt.classifier": "skellipsoid._prompt._classifier",
}
#: Defaults that have changed, with those that results found first: results name neither of what they found.
_FIRST_DEFAULTS = {"skellipsoid._encoder:SupConTextEncoder": {"pooling": "mean"}}


def by_value(thing: Any) -> Any:
    """Give what JSON can hold of a value, equal for equal values and in every process.

    Arrays stand for their SHA-256, estimators for their class and the parameters that are not defaults, functions for
    their name and the SHA-256 of their code.

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
        return {"class": path_of(thing)}
    if hasattr(thing, "get_params"):
        return {"class": path_of(type(thing)), "params": changed_params(thing)}
    if isinstance(thing, partial):
        return {"partial": by_value([thing.func, thing.args, thing.keywords])}
    if isinstance(thing, MethodType):
        return {"method": thing.__func__.__qualname__, "of": by_value(thing.__self__)}
    if isinstance(thing, FunctionType):
        inner = [cell.cell_contents for cell in thing.__closure__ or () if cell.cell_contents is not thing]
        parts = [_code(thing.__code__), by_value(thing.__defaults__), by_value(thing.__kwdefaults__), by_value(inner)]
        return {"function": path_of(thing), "sha256": hashlib.sha256(repr(parts).encode()).hexdigest()}
    try:
        return {"object": path_of(type(thing)), "hash": joblib.hash(thing, hash_name="sha1")}
    except Exception as error:  # whatever the object's own pickling raises
        raise ValueError(
            f"A value of the type {type(thing).__name__} cannot be stored ({error}), so that no result can be "
            "recognized by it; use a value, an array, an estimator or a function."
        ) from error


def content_key(*things: Any) -> str:
    """SHA-256 over arrays, lists of strings and whatever else has a value, each with its length."""
    digest = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
            content = _array_content(thing)
        else:
            plain = thing.tolist() if isinstance(thing, np.ndarray) else thing
            content = json.dumps(by_value(plain), sort_keys=True).encode()
        digest.update(f"{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _array_content(array: NDArray[Any]) -> bytes:
    """Give type, shape and entries of an array."""
    return f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()


def changed_params(estimator: Any) -> dict[str, Any]:
    """Give the parameters that are not the defaults of the estimator's class when results first named it, by value."""
    entries = signature(type(estimator)).parameters.items()
    params = estimator.get_params(deep=False)
    defaults = {name: by_value(entry.default) for name, entry in entries if entry.default is not entry.empty}
    defaults |= _FIRST_DEFAULTS.get(path_of(type(estimator)), {})
    found = {name: by_value(value) for name, value in params.items()}
    return {name: value for name, value in found.items() if name not in defaults or value != defaults[name]}


def path_of(kind: Any) -> str:
    """Where a class or a function is, ``module:name``; a class that has moved keeps the path that results name."""
    return f"{_FIRST_MODULE.get(kind.__module__, kind.__module__)}:{kind.__qualname__}"


def _code(code: CodeType) -> list[Any]:
    """Give what a function does, without the lines that it stands on."""
    constants = [_code(entry) if isinstance(entry, CodeType) else repr(entry) for entry in code.co_consts]
    return [code.co_code.hex(), code.co_names, code.co_varnames, constants]


def code_of(estimator: Any) -> dict[str, Any]:
    """Tell which code an estimator runs.

    Returns
    -------
    code : dict
        ``sha256``: of the source, without comments and docstrings, of the modules of its classes, of their bases, of
        estimators and functions among its parameters, and of what these modules import from their own folder.
        Installed packages are not read; ``None`` if nothing is left. ``package``, ``version`` and ``commit`` are those
        of its class, ``None`` where there is none.
    """
    found: dict[str, Path] = {}
    for name in sorted({kind.__module__ for kind in _kinds(estimator)}):
        _add_files(name, found)
    own = type(estimator).__module__
    package, number = _version_of(own.partition(".")[0])
    file = _file_of(own)
    sources = [[name, _source(path, path.stat().st_mtime_ns)] for name, path in sorted(found.items())]
    return {
        "sha256": hashlib.sha256(repr(sources).encode()).hexdigest() if sources else None,
        "package": package,
        "version": number,
        "commit": None if file is None or _is_installed(file) else _commit(str(file.parent)),
    }


def is_other_code(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether source or version differ; a commit alone may have changed anything."""
    return any(then.get(name) != now.get(name) for name in ("sha256", "package", "version", "encoder"))


def _kinds(thing: Any) -> Iterator[Any]:
    """Classes and functions of an estimator and of its parameters."""
    if isinstance(thing, type):
        yield from (kind for kind in getmro(thing) if kind is not object)
    elif isinstance(thing, FunctionType):
        yield thing
    elif isinstance(thing, list | tuple):
        for entry in thing:
            yield from _kinds(entry)
    elif hasattr(thing, "get_params"):
        yield from _kinds(type(thing))
        for value in thing.get_params(deep=False).values():
            yield from _kinds(value)


def _add_files(name: str, found: dict[str, Path]) -> None:
    """Add the file of a module, and of the modules that it takes things from within its own tree."""
    path = _file_of(name)
    if name in found or path is None or _is_installed(path):
        return
    found[name] = path
    # The folder of its top package, or the one that a module without a package is in.
    top = path.parents[max(name.count(".") - (path.name != "__init__.py"), 0)] if "." in name else path.parent
    taken = {
        thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
        for thing in vars(modules[name]).values()
        if isinstance(thing, ModuleType | type | FunctionType)
    }
    for other in taken:
        file = _file_of(other)
        if file is not None and file.is_relative_to(top):
            _add_files(other, found)


def _file_of(name: str) -> Path | None:
    file = getattr(modules.get(name), "__file__", None)
    return Path(file).resolve() if file and file.endswith(".py") else None


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _INSTALLED)


@lru_cache(maxsize=256)
def _source(path: Path, _changed: int) -> str:
    """SHA-256 of what a file does, so that a corrected docstring changes nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the user's escapes
        tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()


@lru_cache(maxsize=32)
def _version_of(top: str) -> tuple[str | None, str | None]:
    if names := packages_distributions().get(top):
        return names[0], version(names[0])
    found = getattr(modules.get(top), "__version__", None)
    return (top, str(found)) if found is not None else (None, None)


@lru_cache(maxsize=32)
def _commit(folder: str) -> str | None:
    """Give the commit of a folder's repository, with ``-dirty`` if tracked files differ from it."""
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
