"""Features of a case: every text is embedded once, every encoder is trained once, and both are kept on disk."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from .. import SupConTextEncoder
from .._engine.devices import resolve_device
from .._engine.text import TextBackbone, packaged_model
from .._version import __version__
from ._cache import ContentCache, content_key
from ._data import DataSet

#: We raise this number when the same parameters give other features. Then features kept from before are not used.
_FORMAT = 1
#: Parameters that do not change the features, or that the benchmark sets.
_IGNORED = ("device", "verbose", "random_state", "open_label", "model_name", "keep_texts")
_OF_EMBEDDING = ("pooling", "max_length")


class EncoderSpec(NamedTuple):
    """An encoder with its name in the tables; ``params`` are those of ``SupConTextEncoder``, as sorted pairs."""

    name: str
    params: tuple[tuple[str, Any], ...]

    def build(self, **more: Any) -> SupConTextEncoder:
        """Make the encoder."""
        return SupConTextEncoder(**{**dict(self.params), **more})


class Features(NamedTuple):
    """Features to learn from and others to predict on, and what making them took."""

    train: NDArray[Any]
    other: NDArray[Any]
    seconds: float
    device: str


class FeatureSource:
    """Where the features of one data set by one encoder come from.

    Parameters
    ----------
    data : DataSet
    encoder : EncoderSpec or None
        ``None`` for a data set of features.
    cache : ContentCache
    device : str
    verbose : int
    """

    def __init__(
        self, data: DataSet, encoder: EncoderSpec | None, cache: ContentCache, device: str, verbose: int = 0
    ) -> None:
        self.data, self.encoder, self.cache, self.device, self.verbose = data, encoder, cache, device, verbose
        if encoder is not None:
            self.blueprint = encoder.build(device=device)
            self.model = model_identity(str(self.blueprint.model_name))

    def identity(self) -> Any:
        """Everything that the features depend on, beside rows and seed."""
        if self.encoder is None:
            return None
        params = {name: value for name, value in self.blueprint.get_params().items() if name not in _IGNORED}
        return {**params, "model": self.model, "format": [_FORMAT, __version__]}

    def prepare(self) -> None:
        """Embed all texts, if the text model stays as it is and they are not kept yet."""
        is_frozen = self.encoder is not None and self.blueprint.finetune != "full"
        if is_frozen and not self.cache.holds(self._embedding_key()):
            self._embeddings()

    def features(self, train: NDArray[np.int64], other: NDArray[np.int64], seed: int) -> Features:
        """Features of rows; the encoder learns from ``train`` alone.

        Parameters
        ----------
        train, other : ndarray
            Numbers of rows of the data set.
        seed : int
            Of the encoder's training.
        """
        rows, labels = self.data.rows, self.data.labels
        if self.encoder is None:
            return Features(rows[train], rows[other], 0.0, "none")
        if self.blueprint.finetune == "none":
            embedded = self._embeddings()
            both = [embedded["vectors"][part] for part in (train, other)]
            if self.blueprint.normalize:
                both = [normalize(part) for part in both]
            return Features(both[0], both[1], *_read_note(embedded["note"]))
        texts = [rows[part].tolist() for part in (train, other)]
        key = content_key("trained", self.identity(), seed, *texts, labels[train])
        found = self.cache.get(key, lambda: self._train(texts[0], labels[train], texts[1], seed))
        return Features(found["train"], found["other"], *_read_note(found["note"]))

    def _train(
        self, train: list[str], labels: NDArray[np.str_], other: list[str], seed: int
    ) -> dict[str, NDArray[Any]]:
        encoder = self.blueprint
        if encoder.finetune != "full":
            vectors = dict(zip(self.data.rows.tolist(), self._embeddings()["vectors"], strict=True))
            encoder = _LookedUp.using(vectors)(**encoder.get_params())
        encoder.set_params(random_state=seed, verbose=self.verbose)
        return self._timed(lambda: {"train": encoder.fit_transform(train, labels), "other": encoder.transform(other)})

    def _embeddings(self) -> Mapping[str, NDArray[Any]]:
        """Pooled vectors of every row of the data set, by the text model as it was downloaded."""
        params = {name: getattr(self.blueprint, name) for name in _OF_EMBEDDING}
        texts = self.data.rows.tolist()
        encoder = SupConTextEncoder(
            self.blueprint.model_name,
            finetune="none",
            normalize=False,
            device=self.device,
            verbose=self.verbose,
            **params,
        )
        return self.cache.get(
            self._embedding_key(), lambda: self._timed(lambda: {"vectors": encoder.fit_transform(texts)})
        )

    def _embedding_key(self) -> str:
        params = {name: getattr(self.blueprint, name) for name in _OF_EMBEDDING}
        return content_key("embedded", params, self.model, [_FORMAT, __version__], self.data.rows)

    def _timed(self, work: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        start = time.perf_counter()
        arrays = work()
        note = {"seconds": time.perf_counter() - start, "device": str(resolve_device(self.device))}
        return {**arrays, "note": np.array(json.dumps(note))}


class _LookedUp(SupConTextEncoder):
    """Encoder whose frozen text model was asked before: the vectors of all texts are there.

    They are those of a class made for them, since a fit clears what its object holds beside parameters.
    """

    _vectors: ClassVar[Mapping[str, NDArray[np.float32]]]

    @classmethod
    def using(cls, vectors: Mapping[str, NDArray[np.float32]]) -> type["_LookedUp"]:
        """Say what the text model makes of each text."""
        return type(cls.__name__, (cls,), {"_vectors": vectors})

    def _pooled(self, texts: Sequence[str]) -> Any:
        import torch

        return torch.from_numpy(np.stack([self._vectors[text] for text in texts]))


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
        msg = f"The files of the text model {name!r} are not found; pass the path of its folder."
        raise OSError(msg)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(path.relative_to(folder).as_posix(), path.stat()) for path in files]
    return _hash_files(str(folder), tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


def _model_folder(name: str) -> Path | None:
    if Path(name).is_dir():
        return Path(name)
    packaged = packaged_model(name)
    if packaged is not None:
        return packaged
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    for full_name in (name, f"sentence-transformers/{name}"):
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


def _read_note(note: NDArray[Any]) -> tuple[float, str]:
    read = json.loads(str(note))
    return read["seconds"], read["device"]
