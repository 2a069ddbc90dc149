"""Features of a case: every text is embedded once, every encoder is trained once, and both are kept on disk."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import normalize
from sklearn.utils.validation import has_fit_parameter

from skellipsoid import SupConTextEncoder, __version__
from skellipsoid._base import TrainedTextFeatures, resolve_device
from skellipsoid._core.files import replacing
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.torch.model_lookup import folder_of, gives_mean, hub_names

from ._data import DAMAGED, DataSet
from ._identity import answers_of, by_value, content_key, sources_of
from ._methods import seeded
from ._store import naming
from .language_models import LLMTextEncoder

#: We raise this number when the same parameters give other features. Then features kept from before are not used.
_FORMAT = 1
#: Parameters that do not change the features, or that the benchmark sets.
_IGNORED = ("device", "verbose", "random_state", "open_label", "model_name", "keep_texts")
#: Name of the texts themselves.
TEXTS = "texts"
_OF_EMBEDDING = ("pooling", "layers", "prompt", "max_length")
_Arrays = Mapping[str, NDArray[Any]]


class EncoderSpec(NamedTuple):
    """An encoder with its name in the tables."""

    name: str
    estimator: Any  # unfitted
    is_own: bool = False  # somebody else's, of which ``fit`` and ``transform`` are known alone


class Features(NamedTuple):
    """Features to learn from and others to predict on, and what making them took."""

    train: NDArray[Any]
    other: NDArray[Any]
    dev: NDArray[Any] | None = None
    seconds: float = 0.0
    device: str = "none"
    epochs: int | None = None  # of the encoder's training, if it says so
    stop: str | None = None  # why it ended


class FeatureSource:
    """Where the features of one data set by one encoder come from.

    Parameters
    ----------
    data : DataSet
    encoder : EncoderSpec or None
        ``None`` for a data set of features.
    cache : Path
        Folder of features and embeddings.
    device : str
    verbose : int
    """

    def __init__(self, data: DataSet, encoder: EncoderSpec | None, cache: Path, device: str, verbose: int = 0) -> None:
        self.data, self.encoder, self.cache, self.device, self.verbose = data, encoder, cache, device, verbose
        if encoder is None:
            return
        _, self.estimator, self.is_own = encoder
        if self.is_own:
            self.model = own_identity(self.estimator)
            return
        name = str(self.estimator.model_name)
        self.model = model_identity(name)
        folder = _model_folder(name)
        # Where both are the same, results and features that were made before "auto" was there count.
        if self.estimator.pooling == "auto" and folder is not None and gives_mean(folder, self.estimator.prompt):
            self.estimator = clone(self.estimator).set_params(pooling="mean")

    def identity(self) -> Any:
        """Everything that the features of an encoder depend on, beside rows and seed."""
        if self.is_own:
            return {"own": self.model, "format": _FORMAT}
        params = {name: value for name, value in self.estimator.get_params().items() if name not in _IGNORED}
        return {**params, "model": self.model, "format": [_FORMAT, __version__]}

    def prepare(self) -> None:
        """Embed all texts, if the text model stays as it is."""
        if self.encoder is None:
            return
        is_frozen = isinstance(self.estimator, SentenceModel) if self.is_own else self.estimator.finetune != "full"
        if is_frozen:
            self._embeddings()

    def features(
        self, train: NDArray[np.int64], other: NDArray[np.int64], seed: int, dev: NDArray[np.int64] | None = None
    ) -> Features:
        """Features of rows; the encoder learns from ``train`` alone.

        Parameters
        ----------
        train, other : ndarray
            Numbers of rows of the data set.
        seed : int
            Of the encoder's training.
        dev : ndarray, default=None
            Development rows, whose features are made too. An encoder that takes them watches them as it is trained.
        """
        parts = {"train": train, "other": other} | ({} if dev is None else {"dev": dev})
        rows: dict[str, Any] = {name: self.data.rows[part] for name, part in parts.items()}
        if self.encoder is None or isinstance(self.estimator, Texts):
            return Features(**rows)
        if isinstance(self.estimator, SentenceModel) or (not self.is_own and self._is_stateless):
            kept = self._embeddings()
            found: dict[str, Any] = {name: kept["vectors"][part] for name, part in parts.items()}
            if not self.is_own and self.estimator.normalize:
                found = {name: normalize(vectors) for name, vectors in found.items()}
        else:
            texts, labels = {name: part.tolist() for name, part in rows.items()}, self.data.labels
            watches = dev is not None and takes_dev(self.estimator)
            watched = {"X_val": texts["dev"], "y_val": labels[dev]} if watches else {}
            told = texts["train"], texts["other"], labels[train], *watched.values()
            key = content_key("trained", self.identity(), seed, *told)
            kept = _kept_arrays(self.cache, key, lambda: self._train(texts, labels[train], watched, seed), [*parts])
            found = {name: kept[name] for name in parts}
        return Features(**found, **json.loads(str(kept["note"])))

    def _train(
        self, texts: dict[str, list[str]], labels: NDArray[np.str_], watched: dict[str, Any], seed: int
    ) -> dict[str, NDArray[Any]]:
        """Train the encoder on the first texts, and make the features of all."""
        encoder = seeded(self.estimator, seed, self.device)
        if not self.is_own:
            encoder.set_params(verbose=self.verbose)
            if encoder.finetune != "full":
                vectors = dict(zip(self.data.rows.tolist(), self._embeddings()["vectors"], strict=True))
                encoder = _LookedUp.using(vectors)(**encoder.get_params())

        def work() -> dict[str, NDArray[Any]]:
            train = texts["train"]
            if hasattr(encoder, "fit_transform") and not (self.is_own and watched):
                first = encoder.fit_transform(train, labels, **watched)
            else:
                first = encoder.fit(train, labels, **watched).transform(train)
            found = {"train": first, **{name: encoder.transform(texts[name]) for name in texts if name != "train"}}
            return {name: _checked(encoder, features, len(texts[name])) for name, features in found.items()}

        return self._timed(work, encoder)

    @property
    def _is_stateless(self) -> bool:
        """Whether a frozen text model makes the same features whatever the encoder is fitted to."""
        return bool(self.estimator.finetune == "none" and self.estimator.layers == "last")

    def _embeddings(self) -> _Arrays:
        """Pooled vectors of every row of the data set, by the text model as it was downloaded."""
        if self.is_own:
            told, encoder = [self.identity()], seeded(self.estimator, 0, self.device)
        else:
            params: dict[str, Any] = {name: getattr(self.estimator, name) for name in _OF_EMBEDDING}
            told = [params, self.model, [_FORMAT, __version__]]
            encoder = SupConTextEncoder(self.estimator.model_name, finetune="none", normalize=False, **params)
            encoder.set_params(device=self.device, verbose=self.verbose)
        texts, key = self.data.rows.tolist(), content_key("embedded", *told, self.data.rows)

        def embed() -> dict[str, NDArray[Any]]:
            vectors = encoder.fit_transform(texts)
            if not self.is_own and encoder.layers_:  # before they are mixed, which a fit does
                vectors = encoder._backbone.embed_layers(texts, encoder.layers_, verbose=self.verbose).numpy()
            return {"vectors": vectors}

        return _kept_arrays(self.cache, key, lambda: self._timed(embed))

    def _timed(self, work: Callable[[], dict[str, NDArray[Any]]], encoder: Any = None) -> dict[str, NDArray[Any]]:
        start = time.perf_counter()
        arrays = work()
        seconds, epochs = time.perf_counter() - start, getattr(encoder, "n_iter_", None)
        note = {
            "seconds": seconds,
            "device": str(resolve_device(self.device)),
            "epochs": int(epochs) if isinstance(epochs, Integral) else None,
            "stop": getattr(encoder, "stop_reason_", None),
        }
        return {**arrays, "note": np.array(json.dumps(note))}


def _kept_arrays(folder: Path, key: str, make: Callable[[], _Arrays], names: Sequence[str] = ()) -> _Arrays:
    """Give the arrays of a key, from the disk or by ``make``, also if those on the disk lack a name.

    A file is there whole or not at all, so that any number of processes may share the folder.
    """
    path = folder / f"{key}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if {*names} <= {*stored.files}:
                return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        pass
    except DAMAGED:
        path.unlink()  # damaged by something else than a kill
    arrays = make()
    folder.mkdir(parents=True, exist_ok=True)
    with naming(path), replacing(path) as part, part.open("wb") as target:
        np.savez(target, **arrays)  # type: ignore[arg-type]
    return arrays


class SentenceModel(TransformerMixin, BaseEstimator):
    """Any folder that ``SentenceTransformer`` loads, as it is.

    Parameters
    ----------
    folder : str
    device : str, default="auto"
    """

    def __init__(self, folder: str = "", *, device: str = "auto") -> None:
        self.folder = folder
        self.device = device

    def fit(self, X: Any, y: Any = None) -> "SentenceModel":
        """Do nothing."""
        return self

    def transform(self, X: Sequence[str]) -> NDArray[Any]:
        """Embed texts."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(self.folder, device=str(resolve_device(self.device)))
        return np.asarray(model.encode(list(X), show_progress_bar=False))


class Texts(TransformerMixin, BaseEstimator):
    """The texts themselves, for classifiers that take texts."""

    def fit(self, X: Any, y: Any = None) -> "Texts":
        """Do nothing."""
        return self

    def transform(self, X: Sequence[str]) -> Sequence[str]:
        """Give the texts."""
        return X


def takes_dev(estimator: Any) -> bool:
    """Whether ``fit`` needs development samples: to decide when its training stops.

    The closed form of the ellipsoids could use them, but is compared with methods that have none.
    """
    takes = all(has_fit_parameter(estimator, name) for name in ("X_val", "y_val"))
    return (
        takes
        and getattr(estimator, "early_stopping", True) is not False
        and getattr(estimator, "trainer", 1) is not None
    )


def own_identity(encoder: Any) -> Any:
    """Everything that the features of an own encoder depend on: parameters, version and source, text model."""
    if isinstance(encoder, SentenceModel):
        return model_identity(encoder.folder)
    models = {TrainedTextFeatures: "model_name", LLMTextEncoder: "model"}
    names = [str(getattr(encoder, parameter)) for kind, parameter in models.items() if isinstance(encoder, kind)]
    source = sources_of(encoder)
    return [by_value(encoder), answers_of(encoder), *([source] if source else []), *map(model_identity, names)]


def _checked(encoder: Any, found: Any, n_texts: int) -> NDArray[Any]:
    """Check features of an own encoder."""
    name = type(encoder).__name__
    if issparse(found):
        raise TypeError(
            f"The encoder {name} gives a sparse matrix; let it end in TruncatedSVD, or in another dense transformer."
        )
    array = np.asarray(found)
    if array.ndim != 2 or len(array) != n_texts or array.dtype.kind not in "iuf":
        raise ValueError(
            f"The encoder {name} gives {array.dtype} of shape {array.shape} for {n_texts} texts, but must give numbers "
            "of shape (n_texts, n_features)."
        )
    return array


class _LookedUp(SupConTextEncoder):
    """Encoder whose frozen text model was asked before: vectors of all texts and of the layers that it reads are there.

    They are those of a class made for them, since a fit clears what its object holds beside parameters.
    """

    _vectors: ClassVar[Mapping[str, NDArray[np.float32]]]

    @classmethod
    def using(cls, vectors: Mapping[str, NDArray[np.float32]]) -> type["_LookedUp"]:
        """Say what the text model makes of each text."""
        return type(cls.__name__, (cls,), {"_vectors": vectors})

    def _pooled(self, texts: Sequence[str], layers: tuple[int, ...] = (), *, verbose: int | bool = 0) -> Any:
        import torch

        distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        vectors = torch.from_numpy(np.stack([self._vectors[text] for text in distinct]))
        vectors = self._backbone.read_layers(layers, vectors) if layers else self._backbone.mixed(vectors)
        return vectors[[distinct[text] for text in texts]]


def model_identity(name: str) -> str:
    """SHA-256 over the files of a text model, which is found as ``SupConTextEncoder`` finds it.

    Raises
    ------
    OSError
        If the model is found nowhere.
    """
    folder = _model_folder(name)
    if folder is None:
        TextBackbone.load(name)  # puts it into the hub's cache
        folder = _model_folder(name)
    if folder is None:
        raise OSError(f"The files of the text model {name!r} are not found; pass the path of its folder.")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(path.relative_to(folder).as_posix(), path.stat()) for path in files]
    return _hash_files(str(folder), tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


def _model_folder(name: str) -> Path | None:
    if (folder := folder_of(name)) is not None:
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    for full_name in hub_names(name):
        try:
            return Path(snapshot_download(full_name, local_files_only=True))
        except (LocalEntryNotFoundError, ValueError):
            continue
    return None


@lru_cache(maxsize=32)
def _hash_files(folder: str, files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, size, _ in files:
        digest.update(f"{name}:{size}:".encode())
        with (Path(folder) / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
