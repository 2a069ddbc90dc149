"""A fitted estimator as JSON and files."""

import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._engine.text import TextBackbone
from ._folder import Files
from ._kinds import KINDS, SPLITTERS

ARRAYS = "arrays.safetensors"
BACKBONE = "text_model"
#: What is not part of the fitted model: how a later fit is routed.
_LEFT_OUT = {"_metadata_request"}


def describe(estimator: Any, folder: str = "", what: str = "The estimator") -> tuple[dict[str, Any], Files]:
    """JSON description of a fitted estimator, and its files by path below the folder of parts.

    Raises
    ------
    TypeError
        If it, or a step or value of it, cannot be kept; ``what`` it is called in the error.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if type(estimator) is not Pipeline:
        return _describe_part(estimator, folder or "estimator", what)
    files: Files = {}
    steps = []
    for name, step in estimator.steps:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            steps.append({"name": name, "class": "passthrough"})
            continue
        own = f"{len(steps)}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
        described, part = describe(step, f"{folder}/{own}" if folder else own, f"The step {name!r}")
        steps.append({"name": name, **described})
        files |= part
    return {"class": "Pipeline", **_pipeline_options(estimator), "steps": steps}, files


def _pipeline_options(pipeline: Pipeline) -> dict[str, Any]:
    chosen = getattr(pipeline, "transform_input", None)
    return {"verbose": bool(pipeline.verbose), "transform_input": None if chosen is None else list(chosen)}


def describe_unfitted(estimator: Any, what: str) -> dict[str, Any]:
    """JSON description of the parameters alone."""
    if type(estimator) is Pipeline:
        steps: list[dict[str, Any]] = []
        for name, step in estimator.steps:
            skipped = step is None or (isinstance(step, str) and step == "passthrough")
            described = {"class": "passthrough"} if skipped else describe_unfitted(step, f"The step {name!r}")
            steps.append({"name": name, **described})
        return {"class": "Pipeline", **_pipeline_options(estimator), "steps": steps}
    _check_kind(estimator, what)
    part = _Part("")
    found = {
        name: part.encode(value, name, f"{name} of {type(estimator).__name__}")
        for name, value in estimator.get_params(deep=False).items()
    }
    if part.arrays or part.files:
        msg = f"{what} is unfitted, but holds arrays, which cannot be saved; set its parameters to numbers or strings."
        raise TypeError(msg)
    return {"class": type(estimator).__name__, "parameters": found}


def _check_kind(estimator: Any, what: str) -> None:
    kind = KINDS.get(type(estimator).__name__)
    if kind is None or kind.cls is not type(estimator):
        msg = (
            f"{what} is a {type(estimator).__name__}, which cannot be saved without pickle; save keeps "
            f"{', '.join(KINDS)} and Pipelines of them, use joblib.dump or skops.io.dump for everything else."
        )
        if hasattr(estimator, "best_estimator_"):
            msg += " Of a search, save best_estimator_."
        raise TypeError(msg)


def _describe_part(estimator: Any, folder: str, what: str) -> tuple[dict[str, Any], Files]:
    _check_kind(estimator, what)
    check_is_fitted(estimator)
    parameters = estimator.get_params(deep=False)
    part = _Part(folder, keeps_fitted=isinstance(estimator, FrozenEstimator))
    described: dict[str, dict[str, Any]] = {"parameters": {}, "state": {}}
    for name, value in vars(estimator).items():
        if name not in _LEFT_OUT:
            group = "parameters" if name in parameters else "state"
            what = f"{name} of {type(estimator).__name__}"
            described[group][name] = part.encode(value, name, what, fitted=group == "state")
    part.files[f"{folder}/{ARRAYS}"] = safetensors.numpy.save(part.arrays)
    return {"class": type(estimator).__name__, "folder": folder, **described}, part.files


@dataclass
class _Part:
    """The values of one estimator on their way into JSON, its arrays and its files."""

    folder: str
    keeps_fitted: bool = False  # whether estimators among its parameters are fitted
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    files: Files = field(default_factory=dict)

    def encode(self, value: Any, name: str, what: str, *, fitted: bool = False) -> Any:
        """Give a value as JSON; arrays and files are noted."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item(), name, what)
        if isinstance(value, list):
            return [self.encode(item, f"{name}.{i}", what) for i, item in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.encode(item, f"{name}.{key}", what) for key, item in value.items()}}
        if isinstance(value, Path) or type(value).__module__ == "torch":
            return str(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return self._encode_array(value, name)
        if isinstance(value, np.ndarray) and all(isinstance(item, str) for item in value.ravel().tolist()):
            return {"strings": value.tolist(), "dtype": {"T": "T", "O": "O"}.get(value.dtype.kind, value.dtype.str)}
        if isinstance(value, TextBackbone):
            self.files |= {f"{self.folder}/{BACKBONE}/{path}": content for path, content in value.files().items()}
            return {"text_model": BACKBONE, "max_length": value.max_length}
        if SPLITTERS.get(type(value).__name__) is type(value):
            chosen = {key: vars(value)[key] for key in inspect.signature(type(value)).parameters if key in vars(value)}
            return {
                "splitter": type(value).__name__,
                "parameters": {key: self.encode(item, f"{name}.{key}", what) for key, item in chosen.items()},
            }
        if isinstance(value, BaseEstimator):
            return {"estimator": self._encode_estimator(value, name, what, fitted=fitted or self.keeps_fitted)}
        msg = (
            f"{what} is {value!r}, which cannot be saved; set it to a number, a string or None (a seed, for instance)."
        )
        raise TypeError(msg)

    def _encode_array(self, value: np.ndarray, name: str) -> dict[str, Any]:
        """Note an array; its layout in memory is kept, since matrix products round differently in another."""
        found: dict[str, Any] = {"array": name}
        if value.ndim == 2:
            flipped = [axis for axis, stride in enumerate(value.strides) if stride < 0]
            if flipped:
                found["flipped"] = flipped
                value = np.flip(value, tuple(flipped))
            if value.strides[0] < value.strides[1]:
                found["transposed"] = True
                value = value.T
        self.arrays[name] = np.ascontiguousarray(value)
        return found

    def _encode_estimator(self, value: Any, name: str, what: str, *, fitted: bool) -> dict[str, Any]:
        if not fitted:
            return describe_unfitted(value, what)
        described, files = describe(value, f"{self.folder}/{name}", what)
        self.files |= files
        return described
