"""The model in service: loaded, watched for a change, replaced, and brought back if the new one fails."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._answers import p_values
from .._folder import MANIFEST as EXPORTED
from .._hub import FIRST_LINE
from .._onnxruntime import onnxruntime
from .._pipeline import OnnxPipeline

_LOGGER = logging.getLogger("skellipsoid_runtime.serve")
SAVED = "skellipsoid.json"
#: Letters of a version: those of the SHA-256 that a manifest begins with.
_VERSION = 12
#: A pointer is a path, and no model.
_LONGEST_POINTER = 4096
#: Texts that a new model must answer before it is taken.
_PROBE = ["one text", "another text that is a little longer, with a number: 42", "größer, 左 \U0001f600", "?"]
#: How often a model is loaded that is replaced meanwhile.
_MOST_LOADS = 3
#: Batches after which the model before is let go.
_PROVEN = 100

#: Clients are told no more, since the reason has paths.
_SEE_LOG = "the log of the server has the reason"

Arrays = dict[str, NDArray[Any]]
State = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Loaded:
    """A model that answers.

    ``answers`` takes texts and gives arrays: ``label``, ``nearest_class``, ``score``, ``p_value`` if it has one, and
    ``unread``, whether a text is open because nothing is read of it, if it says so.
    """

    answers: Callable[[list[str]], Arrays]
    classes: list[Any]
    open_label: Any
    program: str
    version: str
    folder: Path
    loaded: datetime


class Models:
    """The present model, and the one before as long as the present one has not proved itself.

    Parameters
    ----------
    source : Path
        Folder of a model, or a file that holds the path of one; a path in it is relative to the file.
    on_change : callable
        Called with ``"taken"``, ``"failed"`` or ``"returned"``, and the model that answers from then on.
    """

    def __init__(self, source: Path, on_change: Callable[[str, Loaded], object]) -> None:
        self._source, self._on_change = source, on_change
        self._lock = threading.Lock()
        self._before: Loaded | None = None
        self._n_answered = 0
        folder = self._folder()
        self._seen: tuple[Path, State] | None = folder, _state(folder)
        self.current = load(folder)
        #: For everybody who asks: no paths, and nothing of what a file holds.
        self.error: str | None = None
        self._failed = ""

    def answers(self, texts: list[str]) -> tuple[Loaded, Arrays]:
        """Answer by the present model; by the one before, which returns, if that one can and the new one cannot."""
        with self._lock:
            model, before = self.current, self._before
        try:
            found = model.answers(texts)
        except Exception as error:
            if before is None:
                raise
            found = before.answers(texts)
            self._return(model, before, error)
            return before, found
        if before is not None:
            with self._lock:
                self._n_answered += 1
                if self._n_answered >= _PROVEN and self.current is model:
                    self._before = None
        return model, found

    def refresh(self, *, is_forced: bool = False) -> None:
        """Take a model that is new; the present one stays if it cannot be loaded, or does not answer.

        Parameters
        ----------
        is_forced : bool, default=False
            Load it also if nothing has changed.
        """
        try:
            folder = self._folder()
        except Exception as error:
            self._seen = None
            self._fail(error)
            return
        try:
            seen = folder, _state(folder)
            if seen == self._seen and not is_forced:
                return
            self._seen = seen
            if not is_forced and folder == self.current.folder and _version(folder) == self.current.version:
                self.error = None
                return  # other files beside those of the model, or the pointer is back
            new = load(folder)
        except Exception as error:  # of a damaged model, libraries raise many types
            self._fail(error)
            return
        with self._lock:
            self._before, self.current, self._n_answered, self.error = self.current, new, 0, None
        _LOGGER.info("model %s of %s answers from now on", new.version, new.folder)
        self._on_change("taken", new)

    def _fail(self, error: Exception) -> None:
        found = " ".join(str(error).split()) or type(error).__name__
        if self._failed != found or self.error is None:  # not again each second
            _LOGGER.error("the new model is not taken, %s still answers: %s", self.current.version, found)
            self._on_change("failed", self.current)
        self._failed = found
        self.error = f"the new model is not taken; {_SEE_LOG}"

    def _return(self, model: Loaded, before: Loaded, error: Exception) -> None:
        with self._lock:
            if self.current is not model:
                return
            self.current, self._before = before, None
            self.error = f"model {model.version} failed at a request; {_SEE_LOG}"
        found = " ".join(str(error).split())
        _LOGGER.error("model %s answers again, since %s failed: %s", before.version, model.version, found)
        self._on_change("returned", before)

    def _folder(self) -> Path:
        """Give the folder of the model, by the pointer if there is one."""
        source = self._source
        if source.is_file():
            with source.open(encoding="utf-8-sig") as file:  # some editors begin a file with a byte order mark
                named = file.read(_LONGEST_POINTER).strip()
            if not named or "\n" in named:
                raise ValueError(f"{str(source)!r} must hold the path of a model on one line; write it there.")
            source = source.parent / named
        try:
            return source.resolve()
        except RuntimeError:
            raise ValueError(f"{str(source)!r} is a loop of links; link to the folder of a model.") from None


def load(folder: Path) -> Loaded:
    """Load a model, and let it answer; once more if another one took its place meanwhile, so that its version is right.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it holds no model, a damaged one, one that takes no texts, or another one after each load.
    ImportError
        If it is a saved model, and skellipsoid is not installed.
    """
    for _ in range(_MOST_LOADS):
        version = _version(folder)
        found = _load_named(folder, version)
        if _version(folder) == version:
            return found
    raise ValueError(
        f"The model in {str(folder)!r} was replaced {_MOST_LOADS} times while it was loaded; save it less often."
    )


def _load_named(folder: Path, version: str) -> Loaded:
    answers, model = _load_exported(folder) if (folder / EXPORTED).is_file() else _load_saved(folder)
    found = answers(_PROBE)
    if not np.isfinite(found["score"]).all() or any(len(values) != len(_PROBE) for values in found.values()):
        raise ValueError(f"The model in {str(folder)!r} answers with no numbers; do not trust it, and make it again.")
    return Loaded(
        answers=answers,
        classes=model.classes_.tolist(),
        open_label=np.asarray(model.open_label_).item(),
        program=type(model).__module__.partition(".")[0],
        version=version,
        folder=folder,
        loaded=datetime.now(UTC),
    )


def _load_exported(folder: Path) -> tuple[Callable[[list[str]], Arrays], Any]:
    onnxruntime.disable_telemetry_events()
    model = OnnxPipeline(folder)
    if not model.takes_texts:
        raise ValueError(f"The model in {str(folder)!r} takes features, not texts; export a Pipeline with an encoder.")
    names = ("label", "nearest_class", "score", "p_value", "unread", "action")

    def answers(texts: list[str]) -> Arrays:
        found = model.answers(texts)
        given = {name: found[name] for name in names if name in found}
        if model.asks:
            given["candidates"] = _offered(found["candidates"], model.open_label_)
        return given

    return answers, model


def _load_saved(folder: Path) -> tuple[Callable[[list[str]], Arrays], Any]:
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}; check the path of the model.")
    if not (folder / SAVED).is_file():
        raise ValueError(
            f"{str(folder)!r} holds no model: neither {SAVED} nor {EXPORTED}; pass a folder that skellipsoid.save or "
            "skellipsoid.export_onnx wrote, or a file with the path of one."
        )
    try:  # the one import of what is above this package: what wrote a saved model reads it, where it is installed
        import skellipsoid
    except ImportError as error:
        raise ImportError(
            f"{str(folder)!r} is no exported model, and skellipsoid, which reads saved ones, is not installed "
            f"({error}); install it, or pass a folder that skellipsoid.export_onnx wrote."
        ) from error
    import torch

    torch.set_num_threads(1)  # operators that share threads wait actively for each other
    pipe = skellipsoid.load(folder)
    steps = getattr(pipe, "steps", ())
    if len(steps) < 2:
        raise ValueError(f"The model in {str(folder)!r} takes no texts; save a Pipeline of encoder and classifier.")
    encoder, classifier = pipe[:-1], pipe[-1]
    held_out = getattr(classifier, "held_out_scores_", None)
    in_order = None if held_out is None else np.sort(held_out)
    try:
        skellipsoid.predict_set(classifier, np.zeros((1, classifier.n_features_in_)))
        asks = True
    except (TypeError, ValueError):  # it keeps nothing that says where to ask
        asks = False

    def answers(texts: list[str]) -> Arrays:
        features = encoder.transform(texts)  # texts are embedded once
        found = {"label": classifier.predict(features), "score": classifier.score_samples(features)}
        found["nearest_class"] = classifier.predict_known(features)
        if in_order is not None:
            found["p_value"] = p_values(in_order, found["score"])
        if hasattr(classifier, "_unread"):
            found["unread"] = classifier._unread(np.asarray(features))
        if asks:
            sets = skellipsoid.predict_set(classifier, features)
            found["action"], found["candidates"] = sets.action, _offered(sets.classes, classifier.open_label_)
        return found

    return answers, classifier


def _offered(classes: Any, open_label: Any) -> Any:
    """Give the classes that are offered of each text, as lists without empty places."""
    found = np.empty(len(classes), dtype=object)
    for row, names in enumerate(classes.tolist()):
        found[row] = [name for name in names if name != open_label]
    return found


def _version(folder: Path) -> str:
    """Give the beginning of the SHA-256 of a manifest, or nothing where there is none."""
    for name in (EXPORTED, SAVED):
        try:
            with (folder / name).open("rb") as file:
                first = FIRST_LINE.match(file.readline(200))
        except OSError:
            continue
        return first[1].decode()[:_VERSION] if first else ""
    return ""


def _state(folder: Path) -> State:
    """Give the names, sizes and times of the files of a model; of any other folder nothing, it may be large."""
    found: list[tuple[str, int, int]] = []
    if not any((folder / name).is_file() for name in (EXPORTED, SAVED)):
        return ()
    for path in sorted(folder.rglob("*")):
        try:
            status = path.stat()
        except OSError:  # it was removed meanwhile
            continue
        found.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(found)
