"""Loads a fitted estimator from JSON and files; no code or pickle in the folder is run."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import sklearn
from safetensors import SafetensorError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skellipsoid_runtime._hub import check_no_revision, download, has_hash, is_hub_name, is_whole_manifest

from .._core.sklearn import validate_params, validate_steps
from .._core.warn import silenced
from .._encoders.text_features import TextFeatures
from .._encoders.torch.backbone import TextBackbone
from .._encoders.torch.positions import check_length
from .._encoders.torch.stored_model import FILES, StoredModel, restore
from .._torch.devices import resolve_device
from ._card import parts_of
from ._describe import ARRAYS, BACKBONE, Backbones, is_far_wider
from ._folder import MANIFEST, CachedModel, Files, named_files, read_manifest, read_model, shown
from ._kinds import HOLD_FITTED, SPLITTERS, NotInstalledError, check_state, kind_of, rules_of
from ._needed import check_described
from ._sizes import allowed_sizes, any_size

_STRINGS = re.compile(r"[<>=|]?U[0-9]{1,5}|O|T", re.ASCII)
#: Errors for data that do not describe an estimator.
_ERRORS = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError, MemoryError, ImportError),
    SafetensorError,
)


def load(folder: str | Path, *, revision: str | None = None, token: str | bool | None = None) -> Any:
    """Load a model that ``save`` or ``push_to_hub`` wrote.

    Nothing in the folder is executed: it holds numbers, strings and weights, and only files and entries that ``save``
    writes are read. Only estimators of this package, of installed packages that register theirs, the scikit-learn
    classes that ``save`` supports, and embedding models of transformers' own classes are created. If another process
    replaces the model during the load, it is read again. The embedding model is not run: if its settings do not fit
    together, its first use raises a ``ValueError``.

    Parameters
    ----------
    folder : str or Path
        Folder of the model; or, as a string, the name ``user/name`` of a repository on the Hugging Face hub. An
        existing path has precedence over a repository, and a ``Path`` is never a repository. The manifest and the files
        that it names, all of one commit, are downloaded into the cache of ``huggingface_hub``, and checked like those
        of a folder. With ``HF_HUB_OFFLINE=1``, or without a network, only the cache is read.
    revision : str, default=None
        Branch, tag or commit of a repository; ``None`` is its main branch. Only the full hash of a commit always loads
        the same model, and needs the network only once.
    token : str or bool, default=None
        Token for a private repository; ``None`` takes the one of ``hf auth login`` or of ``HF_TOKEN``, if there is one,
        and ``False`` none. It is not stored.

    Returns
    -------
    estimator : estimator or Pipeline
        Fitted, with the same predictions as the saved one; on the CPU if the machine does not have its device. A model
        from the hub has the attribute ``loaded_from_``: ``"user/name@COMMIT"``, with the hash of the commit, which
        ``save`` writes into the model card. New models, as from ``add_classes``, do not have it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, repository or revision.
    PermissionError
        If the hub refuses access.
    ConnectionError
        If a repository is not in the cache, and the hub cannot be asked.
    ImportError
        If an estimator belongs to a package that is not installed.
    ValueError
        If the folder is not a saved model, if one of its files is missing or damaged, or if it describes an estimator
        that could not predict: a parameter is unknown or not allowed, fitted state is missing or of another shape,
        steps do not fit together. Also if ``revision`` is given for a folder.

    See Also
    --------
    save : Save a model.
    push_to_hub : Save a model to the Hugging Face hub.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import skellipsoid
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0)
    >>> clf = clf.fit([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skellipsoid.save(clf, Path(folder) / "model")
    ...     again = skellipsoid.load(Path(folder) / "model")
    >>> again.predict([[0.5], [100.0]]).tolist()
    ['a', '-1']
    """
    return load_with_manifest(find(folder, revision, token))[0]


def find(folder: str | Path, revision: str | None = None, token: str | bool | None = None) -> Path | CachedModel:
    """Find a model; from the hub it is downloaded."""
    if not is_hub_name(folder):
        check_no_revision(folder, revision)
        return Path(folder)
    name = str(folder)
    path = download(MANIFEST, name, revision, token, any_size(MANIFEST), is_whole_manifest)
    if path is None:
        raise ValueError(
            f"The repository {name!r} on the hub holds no model of this package: it has no {MANIFEST}; pass the name "
            "of one that skellipsoid.push_to_hub wrote."
        )
    model = CachedModel(name, commit=path.parent.name, folder=path.parent)
    manifest = read_manifest(model)[0]
    named = named_files(model, manifest)
    _check_manifest(model, manifest)
    for each, place in named.items():
        sizes = allowed_sizes(manifest, each)
        # A missing file is named when it is read.
        download(place, name, model.commit, token, sizes, has_hash(manifest["sha256"][each], sizes))
    return model


def load_with_manifest(source: Path | CachedModel) -> tuple[Any, dict[str, Any]]:
    """Load a model, and return it with its manifest."""
    manifest, files = read_model(source, partial(_check_manifest, source))
    with _described(source, manifest):
        estimator = _build(manifest["model"], files, {})
    if isinstance(source, CachedModel):
        estimator.loaded_from_ = f"{source.repository}@{source.commit}"
    return estimator, manifest


def _check_manifest(source: Path | CachedModel, manifest: dict[str, Any]) -> None:
    """Raise an error for a manifest that describes no estimator, before a file is read."""
    with _described(source, manifest):
        check_described(manifest["model"], manifest["sha256"])


@contextmanager
def _described(source: Path | CachedModel, manifest: dict[str, Any]) -> Iterator[None]:
    """Turn any error about a description into one sentence with the name of the model."""
    try:
        yield
    except NotInstalledError as error:
        raise NotInstalledError(f"The model in {str(source)!r} cannot be loaded: {error}") from error
    except _ERRORS as error:
        reason = _reason(error)
        msg = f"The model in {str(source)!r} does not describe an estimator of this package ({reason}); save it again."
        saved_with = manifest.get("versions")
        saved_with = saved_with.get("scikit-learn") if isinstance(saved_with, dict) else None
        if saved_with not in (None, sklearn.__version__):
            msg += f" It was saved with scikit-learn {shown(saved_with)}, this is {sklearn.__version__}."
        raise ValueError(msg) from error


def check_loadable(model: dict[str, Any], files: Files, backbones: Backbones) -> None:
    """Raise an error if ``load`` would refuse a description and its files, whose embedding models are ``backbones``.

    Raises
    ------
    ValueError
        The message says why.
    """
    try:
        with silenced():  # the fit has warned
            described = json.loads(json.dumps(model))
            check_described(described, files)
            _build(described, files, backbones)
    except MemoryError:
        raise
    except _ERRORS as error:
        raise ValueError(
            f"The estimator cannot be saved, because load would refuse it ({_reason(error).rstrip('.')}); fit it "
            "again, or undo what was changed since its fit."
        ) from error


def _reason(error: BaseException) -> str:
    return shown(f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else error)


class Asked(dict[str, Any]):
    """A mapping that records which of its items were read."""

    def __init__(self, items: Mapping[str, Any]) -> None:
        super().__init__(items)
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return super().__getitem__(name)

    def check_all(self, what: str) -> None:
        """Raise an error if there is an item that was never read."""
        if left := sorted(self.keys() - self._asked):
            raise ValueError(f"nothing in it needs the {what} {left[0]!r}")


def _check_keys(described: dict[str, Any], *required: str, optional: tuple[str, ...] = ()) -> None:
    """Raise an error if entries of a description are missing or unknown."""
    for name in sorted(described.keys() - {*required, *optional}):
        raise ValueError(f"it has the entry {name!r}, which save never writes")
    for name in required:
        described[name]


def _build(model: Any, files: Files, backbones: Backbones, *, fitted: bool = True) -> Any:
    """Create an estimator, or a Pipeline, from its description."""
    if model["class"] != "Pipeline":
        return _build_part(model, files, backbones, fitted=fitted)
    _check_keys(model, "class", "verbose", "transform_input", "steps")
    steps = []
    for step in model["steps"]:
        inside = {name: value for name, value in step.items() if name != "name"}
        skipped = inside == {"class": "passthrough"}
        steps.append((step["name"], "passthrough" if skipped else _build(inside, files, backbones, fitted=fitted)))
    options = {} if model["transform_input"] is None else {"transform_input": model["transform_input"]}
    pipeline = Pipeline(steps, verbose=model["verbose"], **options)
    validate_params(pipeline)
    validate_steps(pipeline)
    if fitted:
        _check_steps(pipeline)
    return pipeline


def _build_part(model: dict[str, Any], files: Files, backbones: Backbones, *, fitted: bool) -> Any:
    _check_keys(model, "class", "folder", "parameters", "state")
    cls = kind_of(model["class"]).cls
    folder = model["folder"]
    source = _Source(folder, files, Asked(safetensors.numpy.load(files[f"{folder}/{ARRAYS}"])), backbones)
    unknown = sorted(model["parameters"].keys() - set(cls._get_param_names()))  # type: ignore[attr-defined]
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {unknown[0]!r}")
    holds_fitted = issubclass(cls, HOLD_FITTED)
    estimator = cls(**{k: source.decode(v, fitted=holds_fitted) for k, v in model["parameters"].items()})
    if hasattr(cls, "_parameter_constraints"):
        validate_params(estimator)
    if hasattr(estimator, "device"):
        resolve_device(estimator.device, fallback=True)
    if model["state"] and not fitted:
        raise ValueError(f"a {cls.__name__} that is only a parameter has fitted state")
    state = {name: source.decode(value, fitted=True) for name, value in model["state"].items()}
    rules, n_classes = rules_of(estimator), int(np.size(state.get("classes_", ())))
    for name, value in state.items():
        if name not in rules:
            raise ValueError(f"{name!r} is no fitted attribute of {cls.__name__}")
        setattr(estimator, name, rules[name].made(name, value, n_classes))
    if fitted:
        for name, rule in rules.items():
            if name not in state and rule.otherwise is not None:
                setattr(estimator, name, rule.otherwise(estimator))
        check_is_fitted(estimator)
        check_state(estimator)
    source.arrays.check_all("array")
    return estimator


@dataclass(frozen=True)
class _Source:
    """The files of one estimator."""

    folder: str
    files: Files
    arrays: Asked
    backbones: Backbones

    def decode(self, value: Any, *, fitted: bool) -> Any:
        """Decode a value from JSON."""
        if isinstance(value, list):
            return [self.decode(item, fitted=fitted) for item in value]
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ValueError(f"it holds the integer {str(value)[:20]}…, which has more than 64 bits")
        if not isinstance(value, dict):
            return value
        if "mapping" in value:
            _check_keys(value, "mapping")
            return {name: self.decode(item, fitted=fitted) for name, item in value["mapping"].items()}
        if "tuple" in value:
            _check_keys(value, "tuple")
            return tuple(self.decode(value["tuple"], fitted=fitted))
        if "array" in value:
            _check_keys(value, "array", optional=("transposed", "flipped"))
            array = self.arrays[value["array"]]
            array = array.T if value.get("transposed") else array
            return np.flip(array, tuple(value["flipped"])) if value.get("flipped") else array
        if "strings" in value:
            _check_keys(value, "strings", "dtype")
            return _strings(value["strings"], value["dtype"])
        if "splitter" in value:
            _check_keys(value, "splitter", "parameters")
            chosen = {name: self.decode(item, fitted=False) for name, item in value["parameters"].items()}
            return SPLITTERS[value["splitter"]](**chosen)
        if "estimator" in value:
            _check_keys(value, "estimator")
            return _build(value["estimator"], self.files, self.backbones, fitted=fitted)
        _check_keys(value, "text_model", "max_length")
        return self._text_model(value["text_model"], value["max_length"])

    def _text_model(self, description: Any, max_length: Any) -> TextBackbone:
        if max_length is not None and (type(max_length) is not int or max_length < 2):
            raise ValueError(
                f"max_length of the embedding model is {max_length!r}, but must be an integer of at least 2, or null"
            )
        files = {name: self.files[f"{self.folder}/{BACKBONE}/{name}"] for name in FILES}
        if self.folder in self.backbones:
            return self.backbones[self.folder]
        model = restore(StoredModel(description, files))
        check_length(max_length, model.positions, "the embedding model")
        backbone = TextBackbone(model, max_length)
        backbone.check_prompt()
        return backbone


def _strings(strings: Any, dtype: Any) -> np.ndarray:
    if not (isinstance(dtype, str) and _STRINGS.fullmatch(dtype)):
        raise ValueError(f"{str(dtype)[:80]!r} is no type of strings")
    if dtype not in ("O", "T") and is_far_wider(int(dtype.partition("U")[2]), strings):
        raise ValueError(f"{dtype!r} is far wider than the longest string")
    array = np.array(strings, dtype=np.dtypes.StringDType() if dtype == "T" else dtype)
    if array.dtype.kind not in "OUT" or array.tolist() != strings or not all(isinstance(s, str) for s in array.flat):
        raise ValueError(f"{str(strings)[:80]} are no strings of type {dtype!r}")
    return array


def _check_steps(pipeline: Pipeline) -> None:
    """Raise an error if a step does not accept the output of the step before it."""
    given: int | str | None = None
    before = ""
    for name, part in parts_of(pipeline):
        taken = "texts" if isinstance(part, TextFeatures) else getattr(part, "n_features_in_", None)
        if taken is not None and given is not None and taken != given:
            raise ValueError(
                f"the step {name!r} takes {_named(taken)}, but the step {before!r} before it gives {_named(given)}"
            )
        before = name
        if isinstance(part, TextFeatures):
            given = part._n_features_out
        elif hasattr(part, "components_"):
            given = len(part.components_)
        elif taken is not None:
            given = taken


def _named(columns: int | str) -> str:
    return columns if isinstance(columns, str) else f"{columns} features"
