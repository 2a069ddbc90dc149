"""Models on disk without pickle: JSON and safetensors, whole or not at all.

A saved model is a folder with ``skellipsoid.json`` (the manifest: format, parts, parameters, SHA-256 of every file) and
one folder of parts, in it one folder per estimator. The manifest names its folder of parts, so that replacing this one
small file, which the file system does at once or not at all, replaces the model.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._ellipsoid import EllipsoidOpenSetClassifier
from ._encoder import SupConTextEncoder
from ._engine.text import TextBackbone, write_files
from ._version import __version__

_MANIFEST = "skellipsoid.json"
_FORMAT, _FORMAT_VERSION = "skellipsoid", 2
#: Of version 1 the ellipsoids are about the class means, in the features themselves.
_READABLE_VERSIONS = (1, 2)
_ARRAYS = "arrays.safetensors"
_BACKBONE = "text_model"
_PARTS = re.compile(r"parts-[0-9a-f]{16}")
_UNFINISHED = re.compile(re.escape(_MANIFEST) + r"\.[0-9a-f]{8}\.tmp")
_ESTIMATORS = {cls.__name__: cls for cls in (EllipsoidOpenSetClassifier, SupConTextEncoder)}

Files = dict[str, bytes]


def save(estimator: Any, folder: str | Path, *, overwrite: bool = False) -> None:
    """Save a fitted classifier, encoder or Pipeline of them, without pickle.

    Parameters
    ----------
    estimator : EllipsoidOpenSetClassifier, SupConTextEncoder or Pipeline
        Fitted. Every step of a Pipeline must be one of this package's estimators or ``"passthrough"``. The cache of a
        Pipeline (``memory``) is not part of the model.
    folder : str or Path
        Where to write. A save that is killed leaves what was there whole.
    overwrite : bool, default=False
        Whether a model that was saved in the folder before may be replaced. Other files in the folder stay.

    Raises
    ------
    TypeError
        If the estimator, or a step, is not one of this package's, or holds a value that JSON cannot; nothing is
        written.
    FileExistsError
        If the folder holds anything and ``overwrite`` is false, or if it holds something other than a saved model.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    load : The other way.

    Examples
    --------
    >>> import tempfile, numpy as np, skellipsoid
    >>> X, y = np.array([[0.0], [1.0], [9.0], [10.0]] * 5), [0, 0, 1, 1] * 5
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     skellipsoid.save(clf, parent + "/model")
    ...     skellipsoid.load(parent + "/model").predict([[0.5], [500.0]]).tolist()
    [0, -1]
    """
    target = Path(folder)
    description, files = _describe(estimator)
    replaced = _check_target(target, overwrite)
    parts = f"parts-{secrets.token_hex(8)}"
    manifest = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "skellipsoid_version": __version__,
        "parts": parts,
        "model": description,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    text = json.dumps(manifest, indent=1).encode()
    if not replaced:
        # The folder itself appears at once: written beside, then renamed.
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            write_files({f"{parts}/{name}": content for name, content in files.items()}, beside)
            write_files({_MANIFEST: text}, beside)
            _to_disk(beside)
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return
    beside = target / f"{_MANIFEST}.{secrets.token_hex(4)}.tmp"
    try:
        write_files(files, target / parts)
        beside.write_bytes(text)
        _to_disk(target / parts)
        _to_disk(beside)
        beside.replace(target / _MANIFEST)
    except BaseException:
        beside.unlink(missing_ok=True)
        shutil.rmtree(target / parts, ignore_errors=True)
        raise
    for old in target.iterdir():
        if _PARTS.fullmatch(old.name) and old.name != parts:
            shutil.rmtree(old, ignore_errors=True)
        elif _UNFINISHED.fullmatch(old.name):
            old.unlink(missing_ok=True)


def load(folder: str | Path) -> Any:
    """Load what ``save`` wrote.

    Nothing in the folder is executed: it holds numbers, strings and weights.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    estimator : EllipsoidOpenSetClassifier, SupConTextEncoder or Pipeline
        Fitted, predicting as the saved one did; on a machine without the device that it was fitted on, on the CPU.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If the folder is not a saved model, or if one of its files is missing or damaged.
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    files = _read_parts(source, manifest)
    try:
        return _build(manifest["model"], files)
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        msg = f"The model in {str(source)!r} does not describe an estimator of this package ({error}); save it again."
        raise ValueError(msg) from error


def _check_target(target: Path, overwrite: bool) -> bool:
    """Whether a saved model is to be replaced; an error where the folder must not be touched."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        return False
    if not overwrite:
        msg = f"{str(target)!r} exists; pass overwrite=True to replace a model that was saved there, or another folder."
        raise FileExistsError(msg)
    try:
        _read_manifest(target)
    except ValueError as error:
        msg = f"{str(target)!r} holds something other than a saved model, which is left alone; pass another folder."
        raise FileExistsError(msg) from error
    return True


def _to_disk(path: Path) -> None:
    """Flush a file, or every file below a folder, so that the rename that follows finds it written."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


def _describe(estimator: Any) -> tuple[dict[str, Any], Files]:
    """JSON description of an estimator or Pipeline, and its files by path below the folder of parts."""
    if not isinstance(estimator, Pipeline):
        return _describe_part(estimator, "estimator", f"The estimator is a {type(estimator).__name__}")
    files: Files = {}
    steps = []
    for name, step in estimator.steps:
        if step is None or step == "passthrough":
            steps.append({"name": name, "class": "passthrough"})
            continue
        folder = f"{len(steps)}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
        described, part = _describe_part(step, folder, f"The step {name!r} is a {type(step).__name__}")
        steps.append({"name": name, **described})
        files |= part
    return {"class": "Pipeline", "verbose": bool(estimator.verbose), "steps": steps}, files


def _describe_part(estimator: Any, folder: str, what: str) -> tuple[dict[str, Any], Files]:
    if _ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        msg = (
            f"{what}, which cannot be saved without pickle; only {', '.join(_ESTIMATORS)} and Pipelines of them can, "
            "use joblib.dump for everything else."
        )
        raise TypeError(msg)
    check_is_fitted(estimator)
    parameters = estimator.get_params(deep=False)
    arrays: dict[str, np.ndarray] = {}
    files: Files = {}
    described: dict[str, Any] = {"class": type(estimator).__name__, "folder": folder, "parameters": {}, "state": {}}
    for name, value in vars(estimator).items():
        if name == "_metadata_request":  # what a later fit is routed; no part of the fitted model
            continue
        group = "parameters" if name in parameters else "state"
        if isinstance(value, TextBackbone):
            described["state"][name] = {"text_model": _BACKBONE, "max_length": value.max_length}
            files |= {f"{folder}/{_BACKBONE}/{path}": content for path, content in value.files().items()}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            arrays[name] = np.ascontiguousarray(value)
            described["state"][name] = {"array": name}
        else:
            described[group][name] = _to_json(value, f"{name} of {type(estimator).__name__}")
    files[f"{folder}/{_ARRAYS}"] = safetensors.numpy.save(arrays)
    return described, files


def _to_json(value: Any, what: str) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _to_json(value.item(), what)
    if isinstance(value, list):
        return [_to_json(item, what) for item in value]
    if isinstance(value, dict):
        return {"mapping": {name: _to_json(item, what) for name, item in value.items()}}
    if isinstance(value, Path) or type(value).__module__ == "torch":
        return str(value)
    if isinstance(value, np.ndarray) and all(isinstance(item, str) for item in value.ravel().tolist()):
        return {"strings": value.tolist(), "dtype": {"T": "T", "O": "O"}.get(value.dtype.kind, value.dtype.str)}
    msg = f"{what} is {value!r}, which cannot be saved; set it to a number, a string or None (a seed, for instance)."
    raise TypeError(msg)


def _read_manifest(source: Path) -> dict[str, Any]:
    if not source.exists():
        msg = f"There is no folder {str(source)!r}; check the path of the saved model."
        raise FileNotFoundError(msg)
    try:
        manifest = json.loads((source / _MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        msg = (
            f"{str(source)!r} is not a saved model: it holds no {_MANIFEST}; pass a folder that skellipsoid.save wrote."
        )
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"{str(source / _MANIFEST)!r} is damaged ({error}); save the model again or take a copy of it."
        raise ValueError(msg) from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        msg = f"{str(source / _MANIFEST)!r} was not written by skellipsoid.save; pass a folder that it wrote."
        raise ValueError(msg)
    if manifest.get("format_version") not in _READABLE_VERSIONS:
        msg = (
            f"The model in {str(source)!r} has format version {manifest.get('format_version')!r}, this skellipsoid "
            f"({__version__}) reads versions 1 to {_FORMAT_VERSION}; it was written by skellipsoid "
            f"{manifest.get('skellipsoid_version')}, install that."
        )
        raise ValueError(msg)
    return manifest


def _read_parts(source: Path, manifest: dict[str, Any]) -> Files:
    """Read and check every file that the manifest names."""
    parts, expected = manifest.get("parts"), manifest.get("sha256")
    if not (isinstance(parts, str) and _PARTS.fullmatch(parts) and isinstance(expected, dict)):
        msg = f"{str(source / _MANIFEST)!r} is damaged; save the model again or take a copy of it."
        raise ValueError(msg)
    files: Files = {}
    for name, digest in expected.items():
        # An empty segment too: cut after it, the rest of the name would be an absolute path.
        if {"", ".", ".."} & {*name.split("/")} or {"\\", ":"} & {*name}:
            msg = f"{str(source / _MANIFEST)!r} names a file outside of its folder ({name!r}); do not trust this model."
            raise ValueError(msg)
        try:
            files[name] = (source / parts / name).read_bytes()
        except OSError as error:
            msg = (
                f"The model in {str(source)!r} lacks its file {name!r} ({error.strerror}); take a complete copy of it."
            )
            raise ValueError(msg) from error
        if hashlib.sha256(files[name]).hexdigest() != digest:
            msg = f"The file {name!r} of the model in {str(source)!r} is damaged (its SHA-256 differs); copy it again."
            raise ValueError(msg)
    return files


def _build(model: dict[str, Any], files: Files) -> Any:
    if model["class"] != "Pipeline":
        return _build_part(model, files)
    steps = [
        (step["name"], "passthrough" if step["class"] == "passthrough" else _build_part(step, files))
        for step in model["steps"]
    ]
    return Pipeline(steps, verbose=model["verbose"])


def _build_part(model: dict[str, Any], files: Files) -> Any:
    estimator = _ESTIMATORS[model["class"]](**model["parameters"])
    folder = model["folder"]
    arrays = safetensors.numpy.load(files[f"{folder}/{_ARRAYS}"])
    for name, value in model["state"].items():
        setattr(estimator, name, _from_json(value, arrays, folder, files))
    if isinstance(estimator, EllipsoidOpenSetClassifier):
        estimator._upgrade()
    return estimator


def _from_json(value: Any, arrays: dict[str, np.ndarray], folder: str, files: Files) -> Any:
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {name: _from_json(item, arrays, folder, files) for name, item in value["mapping"].items()}
    if "array" in value:
        return arrays[value["array"]]
    if "strings" in value:
        return np.array(value["strings"], dtype=np.dtypes.StringDType() if value["dtype"] == "T" else value["dtype"])
    prefix = f"{folder}/{value['text_model']}/"
    own = {name.removeprefix(prefix): content for name, content in files.items() if name.startswith(prefix)}
    return TextBackbone.from_files(own, value["max_length"])
