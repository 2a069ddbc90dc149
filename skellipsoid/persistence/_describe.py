"""Describes a fitted estimator as JSON and files."""

import inspect
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._core.pipelines import check_refits, is_search
from .._encoders.torch.backbone import TextBackbone
from ._folder import Files
from ._kinds import HOLD_FITTED, KINDS, SPLITTERS, kind_of, rules_of

ARRAYS = "arrays.safetensors"
BACKBONE = "text_model"
#: Characters by which a string type may be wider than twice the longest string.
_SLACK = 256

#: Embedding models by folder of their estimator.
Backbones = dict[str, TextBackbone]


def saved_form(estimator: Any) -> Any:
    """Return the estimator to save: the best one of a fitted search, and a Pipeline without samplers."""
    if is_search(estimator) and hasattr(estimator, "best_estimator_"):
        return saved_form(estimator.best_estimator_)
    check_refits(estimator)
    of_samplers = type(estimator).__module__.partition(".")[0] == "imblearn"
    if isinstance(estimator, Pipeline) and (
        of_samplers or any(hasattr(step, "fit_resample") for _, step in estimator.steps)
    ):
        steps = [(name, step) for name, step in estimator.steps if not hasattr(step, "fit_resample")]
        return Pipeline(steps, verbose=estimator.verbose)
    return estimator


def describe(
    estimator: Any, backbones: Backbones, folder: str = "", what: str = "The estimator", *, fitted: bool = True
) -> tuple[dict[str, Any], Files]:
    """JSON description of an estimator, and its files by path below the folder of parts; ``backbones`` are noted.

    Raises
    ------
    TypeError
        If it, or a step or value of it, cannot be saved; ``what`` names it in the error.
    sklearn.exceptions.NotFittedError
        If it is not fitted; with ``fitted=False`` only its parameters are kept.
    """
    estimator = saved_form(estimator)
    if type(estimator) is not Pipeline:
        return _describe_part(estimator, backbones, folder or "estimator", what, fitted=fitted)
    files: Files = {}
    steps = []
    for name, step in estimator.steps:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            steps.append({"name": name, "class": "passthrough"})
            continue
        own = f"{len(steps)}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
        place = f"{folder}/{own}" if folder else own
        described, part = describe(step, backbones, place, f"The step {name!r}", fitted=fitted)
        steps.append({"name": name, **described})
        files |= part
    chosen = getattr(estimator, "transform_input", None)
    options = {"verbose": bool(estimator.verbose), "transform_input": None if chosen is None else list(chosen)}
    return {"class": "Pipeline", **options, "steps": steps}, files


def _describe_part(
    estimator: Any, backbones: Backbones, folder: str, what: str, *, fitted: bool
) -> tuple[dict[str, Any], Files]:
    _check_kind(estimator, what)
    parameters = estimator.get_params(deep=False)
    if fitted:
        check_is_fitted(estimator)
    # An estimator that is frozen or monitored is fitted.
    part = _Part(folder, backbones, fitted=isinstance(estimator, HOLD_FITTED))
    described: dict[str, dict[str, Any]] = {"parameters": {}, "state": {}}
    rules = rules_of(estimator)
    for name, value in vars(estimator).items():
        what = f"{name} of {type(estimator).__name__}"
        if name == "memory" or (name == "verbose" and "memory" in parameters):  # of the machine or the user
            continue
        if name in parameters:
            described["parameters"][name] = part.encode(value, name, what)
        # Metadata requests are not part of the model, and the source of a loaded model is in the provenance.
        elif fitted and name not in ("_metadata_request", "loaded_from_"):
            if name not in rules:
                raise TypeError(
                    f"{what} is not an attribute that fit sets, and load would refuse it; delete it, and save again."
                )
            if name in ("_kept", "_learned") and not estimator.keep_samples:  # set to False since the fit
                value = None
            described["state"][name] = replace(part, fitted=True).encode(rules[name].saved(value), name, what)
    part.files[f"{folder}/{ARRAYS}"] = safetensors.numpy.save(part.arrays)
    return {"class": type(estimator).__name__, "folder": folder, **described}, part.files


def _check_kind(estimator: Any, what: str) -> None:
    if reason := getattr(type(estimator), "_not_saved", ""):
        raise TypeError(f"{what} is a {type(estimator).__name__}, which cannot be saved: {reason}.")
    try:
        kind = kind_of(type(estimator).__name__)
    except (KeyError, ImportError):
        kind = None
    if kind is None or kind.cls is not type(estimator):
        others = ", ".join(name for name, kind in KINDS.items() if kind.cls.__module__.startswith("sklearn."))
        msg = (
            f"{what} is a {type(estimator).__name__}, which cannot be saved without pickle; save keeps the estimators "
            f"of skellipsoid, {others} and Pipelines of them, use joblib.dump or skops.io.dump for everything else."
        )
        if is_search(estimator):
            msg += " Of a fitted search the best_estimator_ is saved."
        raise TypeError(msg)


@dataclass
class _Part:
    """Encodes the values of one estimator as JSON, and collects its arrays and files."""

    folder: str
    backbones: Backbones
    fitted: bool  # whether estimators among these values are fitted
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    files: Files = field(default_factory=dict)

    def encode(self, value: Any, name: str, what: str) -> Any:
        """Encode a value as JSON; arrays and files are collected."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item(), name, what)
        if isinstance(value, tuple):
            return {"tuple": self.encode(list(value), name, what)}
        if isinstance(value, list):
            return [self.encode(item, f"{name}.{i}", what) for i, item in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.encode(item, f"{name}.{key}", what) for key, item in value.items()}}
        if isinstance(value, Path) or type(value).__module__ == "torch":
            return str(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return self._encode_array(value, name)
        if isinstance(value, np.ndarray) and all(isinstance(item, str) for item in value.ravel().tolist()):
            return {"strings": value.tolist(), "dtype": _dtype_of_strings(value)}
        if isinstance(value, TextBackbone):
            self.backbones[self.folder] = value
            description, files = value.stored()
            self.files.update({f"{self.folder}/{BACKBONE}/{name}": content for name, content in files.items()})
            return {"text_model": description, "max_length": value.max_length}
        if SPLITTERS.get(type(value).__name__) is type(value):
            chosen = {key: vars(value)[key] for key in inspect.signature(type(value)).parameters if key in vars(value)}
            return {
                "splitter": type(value).__name__,
                "parameters": {key: self.encode(item, f"{name}.{key}", what) for key, item in chosen.items()},
            }
        if isinstance(value, BaseEstimator):
            described, files = describe(value, self.backbones, f"{self.folder}/{name}", what, fitted=self.fitted)
            self.files.update(files)
            return {"estimator": described}
        raise TypeError(
            f"{what} is {value!r}, which cannot be saved; set it to a number, a string or None (a seed, for instance)."
        )

    def _encode_array(self, value: np.ndarray, name: str) -> dict[str, Any]:
        """Collect an array; its memory layout is kept, because matrix products round differently in another."""
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


def is_far_wider(width: int, strings: Any) -> bool:
    """Whether a string type of this width takes far more memory than the strings need."""
    return width > _wide_enough(strings)


def _wide_enough(strings: Any) -> int:
    texts = np.array(strings, dtype=object).flat
    return 2 * max((len(text) for text in texts if isinstance(text, str)), default=0) + _SLACK


def _dtype_of_strings(value: np.ndarray) -> str:
    """Type of an array of strings, for JSON; one that is far too wide is made narrower."""
    if value.dtype.kind in "TO":
        return str(value.dtype.kind)
    width = min(value.dtype.itemsize // 4, _wide_enough(value.tolist()))
    return f"{value.dtype.str[:2]}{width}"
