"""The ONNX export beside a model: ``predict`` uses it, and imports neither torch nor scikit-learn."""

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skellipsoid_runtime._folder import MANIFEST, TRAINING_FEATURES

from .._core.messages import cut
from .._core.norms import norms, warn_of_unlike_norms
from .._core.warn import warn
from .._torch import machine
from ..persistence._folder import read_manifest

#: Subfolder of a model that holds its export.
FOLDER = "onnx"
#: The file of the model that names its export: who can write the export alone changes no prediction.
NAMES_EXPORT = f"{FOLDER}.sha256"
#: Packages that run an export.
_NEEDED = ("onnxruntime", "tokenizers")
#: The first text of a model: it builds whatever is built at the first use.
FIRST_CALL = ["the first call builds the embedding model"]
#: Fewest texts of a thread.
_FEWEST_TEXTS = 16


class Predictor(NamedTuple):
    """A model as ``predict`` uses it, saved or exported: both give the same records."""

    #: Hash of the manifest of the saved model.
    model_sha256: str
    open_label: Any
    #: Gives a record for each line, its text last.
    predict: Callable[[list[str]], Iterator[dict[str, Any]]]


@dataclass(eq=False)
class _Trained:
    """The attribute that the warning of unlike norms reads of a classifier."""

    _norm_range: NDArray[np.float64]


def exported_predictor(options: argparse.Namespace) -> Predictor | None:
    """Take the export beside a model, or ``None`` where the model itself has to predict.

    The export is used only if the model names it, if it was made of the model as it is now, and if it is not quantized.

    Warns
    -----
    UserWarning
        If there is an export that cannot be used.
    """
    folder, is_ours = options.model / FOLDER, False
    asks_more = options.scores or options.explain or options.ask or options.keep_columns or options.revision is not None
    if asks_more or not os.path.isfile(folder / MANIFEST) or not all(map(find_spec, _NEEDED)):
        return None
    try:
        present = read_manifest(options.model)[0]["manifest_sha256"]
    except (OSError, ValueError):  # the load of the model says what is wrong
        return None
    try:
        manifest = read_export(folder)
        if manifest["quantized"]:  # its predictions differ, so whoever put it there uses it otherwise
            return None
        made_of, is_ours = manifest["made_of"], is_of_export(manifest)
        if made_of.get("manifest_sha256") != present:
            _warn(f"The export in {str(folder)!r} was not made of the model as it is now", options, is_ours=is_ours)
            return None
        from skellipsoid_runtime import OnnxPipeline

        model = OnnxPipeline(folder)
        if read_export(folder) != manifest:  # another export took its place meanwhile
            return None
        if manifest["sha256"] != _named_export(options.model):
            _warn(f"The export in {str(folder)!r} is not the one that the model names", options, is_ours=is_ours)
            return None
        return _predictor(model, made_of) if model.takes_texts else None
    except (ImportError, OSError, ValueError) as error:
        _warn(str(error).rpartition("; ")[0] or str(error).rstrip("."), options, is_ours=is_ours)
        return None


def _named_export(model: Path) -> str | None:
    """Read the hash of the export's manifest that stands in the folder of the model."""
    try:
        return (model / NAMES_EXPORT).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _warn(problem: str, options: argparse.Namespace, *, is_ours: bool) -> None:
    """Say why the model itself predicts, and what to do; ``is_ours``: whether ``export`` would replace the export."""
    command = f"skellipsoid export --model {options.model}"
    remedy = (
        f"export it again with {command}, or remove the folder {FOLDER!r} in it"
        if is_ours
        else f"move the folder {FOLDER!r} in it elsewhere, and export it with {command}"
    )
    warn(f"{problem}, so the model itself is loaded, which takes longer; {remedy}.")


def warn_of_stale_export(model: Path) -> None:
    """Warn if the export beside a model that was just saved is of an earlier model."""
    folder = model / FOLDER
    if not os.path.isfile(folder / MANIFEST):
        return
    try:
        manifest = read_export(folder)
        if manifest["made_of"].get("manifest_sha256") == read_manifest(model)[0]["manifest_sha256"]:
            return
        holds_texts = manifest.get("training_texts") is not None
        is_ours = is_of_export(manifest)
    except (OSError, ValueError):
        holds_texts, is_ours = os.path.lexists(folder / TRAINING_FEATURES), False  # written where texts are kept
    texts = " and holds its texts" if holds_texts else ""
    again = f"run skellipsoid export --model {model} again" if is_ours else "make it again"
    warn(f"The export in {str(folder)!r} is of an earlier model{texts}; {again}, or remove it.")


def read_export(folder: Path) -> dict[str, Any]:
    """Read the manifest of an export, and its hash; ``made_of`` is empty unless it says of which model it was made.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
        manifest = json.loads(content)
        found = {"quantized": bool(manifest.get("quantized")), "sha256": hashlib.sha256(content).hexdigest()}
        return {**manifest, **found, "made_of": {**manifest.get("made_of", {})}}
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}).") from error


class UnreadNote:
    """Warns once of messages of which the embedding model reads nothing, so that they are predicted open."""

    def __init__(self) -> None:
        self._is_said = False

    def __call__(self, lines: list[str], unread: Any) -> None:
        """Look at some more messages; an empty one needs no warning."""
        found = [line for line, is_unread in zip(lines, unread, strict=True) if is_unread and line.strip()]
        if found and not self._is_said:
            self._is_said = True
            named = ", ".join(repr(cut(line)) for line in [*dict.fromkeys(found)][:3])
            warn(
                "Messages of which the embedding model reads nothing, no letter, digit or emoji that it knows, are "
                f"open, such as {named}."
            )


def is_of_export(manifest: dict[str, Any]) -> bool:
    """Whether ``skellipsoid export`` wrote an export beside a model, so that it may replace it."""
    return bool(manifest["made_of"]) and not manifest["quantized"]


def _predictor(model: Any, made_of: dict[str, Any]) -> Predictor:
    """Let an exported model predict as the saved one does: each text once, and with the same warning."""
    usual = made_of.get("norm_range")
    trained = None if usual is None else _Trained(np.array(usual, dtype=np.float64))
    pool, note = ThreadPoolExecutor(machine.n_cores()), UnreadNote()

    def labels_of(lines: list[str]) -> list[Any]:
        places = {line: place for place, line in enumerate(dict.fromkeys(lines))}
        texts, rows = [*places], [places[line] for line in lines]
        size = max(_FEWEST_TEXTS, -(-len(texts) // machine.n_cores()))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        run: Any = map if len(parts) == 1 else pool.map
        predictions = [*run(model.answers, parts)]
        found = np.concatenate([each["label"] for each in predictions])
        if lines is not FIRST_CALL and all("unread" in each for each in predictions):
            note(texts, np.concatenate([each["unread"] for each in predictions]))
        if trained is not None:
            warn_of_unlike_norms(trained, norms(np.concatenate([each["features"] for each in predictions])[rows]))
        labels: list[Any] = found[rows].tolist()
        return labels

    def predict(lines: list[str]) -> Iterator[dict[str, Any]]:
        for label, line in zip(labels_of(lines), lines, strict=True):
            yield {"label": label, "text": line}

    labels_of(FIRST_CALL)
    return Predictor(made_of["manifest_sha256"], model.open_label_, predict)
