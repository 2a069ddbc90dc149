"""Embeddings (n_texts, n_features) of texts by a pretrained model: tokenised, in batches of similar length."""

import copy
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.std import tqdm

from skellipsoid_runtime._pieces import length_sorted_pieces

from ..._torch.devices import MODEL_STATE, kept_torch_state, on_device
from ..._torch.progress import progress_bar, quiet_libraries
from ..._torch.threads import map_parts, one_thread_each
from .embedding_model import EmbeddingModel
from .model_lookup import find_model
from .positions import USUAL_LIMIT, check_length, n_positions
from .probes import check_vectors
from .stored_model import StoredModel, restore, restore_tokenizer, store
from .text_modules import LayerMix
from .token_table import PIECE_TOKENS, TokenTable

#: Activation functions that may follow the linear layer.
ACTIVATIONS: dict[str, type[nn.Module]] = {"identity": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}
#: Held by the thread that moves a model.
_MOVES = threading.Lock()
#: Norm at which an intermediate layer is added to the unit vector of a text (studies/layers.py).
LAYER_WEIGHT = 0.4
#: Texts tokenised at once, so that memory does not grow with the data set.
WINDOW = 8192


class TextBackbone:
    """A pretrained embedding model.

    It is pickled as plain data, and rebuilt at its first use, once for all threads.

    Parameters
    ----------
    model : EmbeddingModel
    max_length : int or None
        Largest number of tokens of a text; ``None`` is the model's own limit.
    """

    def __init__(self, model: EmbeddingModel, max_length: int | None = None) -> None:
        self._model: EmbeddingModel | None = model
        self._stored: StoredModel | None = None
        self._reduced: EmbeddingModel | None = None
        self.max_length = max_length

    @classmethod
    def load(
        cls, name: str, max_length: int | None = None, pooling: str = "auto", prompt: str | None = None
    ) -> "TextBackbone":
        """Load a model by folder or name, see ``find_model``.

        Raises
        ------
        OSError
            If the model is not found.
        ValueError
            As of ``find_model``; if the model has fewer positions than ``max_length``, or if the prompt leaves no room
            for a text.
        """
        backbone = cls(find_model(name, pooling, prompt), max_length)
        check_length(max_length, n_positions(backbone.transformer), f"the embedding model {name!r}")
        backbone.check_prompt()
        return backbone

    def check_prompt(self) -> None:
        """Raise a ``ValueError`` if the prompt leaves no room for a text."""
        if self.model.prompt and len(self.tokenize([""])[0]) >= self.longest:
            raise ValueError(
                f"prompt has {self.model.n_prompt} tokens, but a text with its prompt may have {self.longest}; "
                "use a shorter prompt, or a larger max_length."
            )

    @property
    def model(self) -> EmbeddingModel:
        """The model, built from plain data after unpickling."""
        if self._model is None:
            with MODEL_STATE:
                if self._model is None and self._stored is not None:  # no other thread has built it meanwhile
                    self._model, self._stored = restore(self._stored), None
        if self._model is None:
            raise RuntimeError("The embedding model has lost its weights; load or fit the encoder again.")
        return self._model

    @property
    def transformer(self) -> nn.Module:
        """The transformer alone: token ids in, token vectors out."""
        module: nn.Module = self.model.transformer
        return module

    @property
    def width(self) -> int:
        """Length of a token vector."""
        return self.model.token_width

    @property
    def longest(self) -> int:
        """Largest number of tokens of a text: ``max_length``, or the model's own limit."""
        return int(self.max_length or self._setting("limit") or USUAL_LIMIT)

    @property
    def lowers(self) -> bool:
        """Whether texts are converted to lower case first."""
        return bool(self._setting("lowers"))

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers that are read beside the last one."""
        if self._stored is not None:
            return tuple(self._setting("layers")["numbers"]) if self._setting("layers") else ()
        return self.model.mix.layers if self.model.mix else ()

    @property
    def prompt(self) -> str:
        """What stands before every text."""
        return str(self._setting("prompt") or "")

    def to(self, device: torch.device) -> "TextBackbone":
        """Move the model to a device, unless it is there: a move replaces weights that another thread may be using."""
        model = self.model
        with _MOVES:
            found = next(model.transformer.parameters()).device
            if device.type != found.type or device.index not in (None, found.index):
                model.to(device)
        return self

    @property
    def is_reduced(self) -> bool:
        """Whether there is a copy of the model in bfloat16."""
        return self._reduced is not None

    def reduced(self) -> EmbeddingModel:
        """Give a copy of the model whose transformer computes in bfloat16, made at its first use on a device."""
        model = self.model
        device = next(model.transformer.parameters()).device
        with MODEL_STATE:
            found = self._reduced
            if found is None or next(found.transformer.parameters()).device != device:
                found = self.copy().model.eval()
                found.transformer.bfloat16()
                self._reduced = found  # assigned when complete, so that an interruption leaves none
        return found

    def unfreeze(self) -> None:
        """Let the weights be trained; drops the copy in bfloat16, which would differ."""
        self._reduced = None
        self.model.requires_grad_(True)

    def copy(self) -> "TextBackbone":
        """Copy the weights; the tokenizer, which training does not change, is shared."""
        model = self.model
        transformer, after = copy.deepcopy(model.transformer), copy.deepcopy(list(model.after))
        return TextBackbone(
            EmbeddingModel(
                transformer,
                model.tokenizer,
                after,
                model.limit,
                lowers=model.lowers,
                prompt=model.prompt,
                mix=copy.deepcopy(model.mix),
                zeros=model.zeros,
            ),
            self.max_length,
        )

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text behind the prompt, special ones included, truncated to ``longest``, not padded."""
        return self.model.tokenize(texts, self.longest)

    def table(self, tokens: Sequence[Sequence[int]]) -> TokenTable:
        """Put token lists on the device of the model; at its first use the model is checked with short texts."""
        check_vectors(self.model)
        device = next(self.transformer.parameters()).device
        return TokenTable(tokens, device, self.model.tokenizer.pad_token_id or 0, self.longest)

    def pooled(self, table: TokenTable, rows: np.ndarray) -> Tensor:
        """Embed texts of a table, (n_rows, width of the pooled vector)."""
        return in_pieces(table, rows, self.model)

    def embed(self, texts: Sequence[str], *, dtype: str = "float32", verbose: int | bool = 0) -> Tensor:
        """Embed texts without dropout or gradients, (n_texts, width of the pooled vector) on the CPU."""
        return self._embed(texts, self._ready(dtype), verbose)

    def embed_layers(
        self, texts: Sequence[str], layers: Sequence[int], *, dtype: str = "float32", verbose: int | bool = 0
    ) -> Tensor:
        """Embed texts: their vectors and the means after layers, (n_texts, 1 + n_layers, width) on the CPU."""
        model = self._ready(dtype)
        return self._embed(texts, lambda ids, mask: model.vectors(ids, mask, layers), verbose)

    def read_layers(self, layers: Sequence[int], vectors: Tensor) -> Tensor:
        """Let the model read intermediate layers from now on.

        Parameters
        ----------
        layers : sequence of int
        vectors : Tensor of shape (n_texts, 1 + n_layers, width)
            Of the training texts, as of ``embed_layers``: their means are the centres.

        Returns
        -------
        mixed : Tensor of shape (n_texts, width)
            As of ``embed`` from now on.
        """
        mix = LayerMix(layers, LAYER_WEIGHT, vectors.shape[2])
        is_read = vectors[:, 0].ne(0).any(dim=1)
        mix.centres.copy_((vectors[is_read] if is_read.any() else vectors)[:, 1:].mean(dim=0))
        self.model.mix = mix.to(next(self.transformer.parameters()).device)
        self._reduced = None
        return self.mixed(vectors)

    def mixed(self, vectors: Tensor) -> Tensor:
        """Combine vectors of ``embed_layers`` to those of ``embed``."""
        mix = self.model.mix
        found: Tensor = vectors if mix is None else mix(vectors.to(mix.centres.device)).cpu()
        return found

    def _ready(self, dtype: str) -> EmbeddingModel:
        self.model.eval()
        return self.reduced() if dtype == "bfloat16" else self.model

    def _embed(self, texts: Sequence[str], forward: Callable[[Tensor, Tensor], Tensor], verbose: int | bool) -> Tensor:
        def pooled(tokens: list[tuple[int, ...]], progress: tqdm) -> Tensor:
            return in_pieces(self.table(tokens), np.arange(len(tokens)), forward, progress)

        return in_windows(texts, self.tokenize, pooled, "embedding", verbose)

    def stored(self) -> StoredModel:
        """Give the model as plain data."""
        return self._stored or store(self.model)

    def tokenizer(self) -> Any:
        """Give a tokenizer whose settings may be changed; the model is not built for it."""
        stored = self._stored  # another thread may build the model meanwhile
        return copy.deepcopy(self.model.tokenizer) if stored is None else restore_tokenizer(stored)

    def _setting(self, name: str) -> Any:
        """Give a setting of the model, which is not built for it."""
        stored = self._stored
        return getattr(self.model, name) if stored is None else stored.description.get(name)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the model as plain data, with the weights on the CPU."""
        return {"_model": None, "_stored": self.stored(), "_reduced": None, "max_length": self.max_length}


def in_windows(
    texts: Sequence[str],
    tokenize: Callable[[Sequence[str]], list[list[int]]],
    embed: Callable[[list[tuple[int, ...]], tqdm], Tensor],
    label: str,
    verbose: int | bool,
) -> Tensor:
    """Embed texts without gradients, (n_texts, width) in single precision on the CPU, one window after the other."""
    found = []
    with progress_bar(len(texts), label, "text", verbose, least=2) as progress:
        for start in range(0, len(texts), WINDOW):
            with torch.inference_mode():
                window = tokenize(texts[start : start + WINDOW])
                # Texts with the same tokens are embedded once, so that their vectors are exactly equal.
                distinct: dict[tuple[int, ...], int] = {}
                rows = np.array([distinct.setdefault(tuple(tokens), len(distinct)) for tokens in window])
                vectors = embed(list(distinct), progress).float().cpu()
                found.append(vectors[torch.from_numpy(rows)])
                progress.update(len(rows) - len(distinct))
    return torch.cat(found)


def in_pieces(
    table: TokenTable, rows: np.ndarray, forward: Callable[[Tensor, Tensor], Tensor], progress: tqdm | None = None
) -> Tensor:
    """Call ``forward`` with the padded ids and the mask of a few texts at a time; returns one tensor.

    Texts are sorted by length and divided into pieces with a bounded number of padded tokens, so that little is
    computed for padding. Gradients are computed if they are enabled.
    """
    lengths = table.lengths[rows]
    pieces = length_sorted_pieces(lengths, PIECE_TOKENS.get(table.device.type, PIECE_TOKENS["cpu"]))
    order = np.concatenate(pieces)
    sorted_rows, places = on_device(np.stack([rows[order], np.argsort(order)]), table.device)

    def compute(piece: np.ndarray, chosen: Tensor) -> Tensor:
        found = forward(*table.padded(chosen, int(lengths[piece[-1]])))
        if progress is not None:
            progress.update(len(piece))
        return found

    given = list(zip(pieces, sorted_rows.split([len(piece) for piece in pieces]), strict=True))
    if torch.is_grad_enabled():  # dropout differs from piece to piece
        return torch.cat([compute(*each) for each in given])[places]
    with one_thread_each():
        return torch.cat(map_parts(lambda each: compute(*each), given, np.inf, table.device))[places]


def export(
    backbone: TextBackbone,
    folder: Path,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    *,
    normalize: bool,
    activation: str = "identity",
) -> None:
    """Write a sentence-transformers folder with the same features: prompt, modules, linear layer, normalisation."""
    from sentence_transformers.sentence_transformer import modules as models

    after: list[Any] = [*backbone.model.after] or [models.Pooling(backbone.width, pooling_mode="mean")]
    if weight is not None and bias is not None:
        with kept_torch_state():  # a new layer is initialised at random before its weights are replaced
            dense = models.Dense(weight.shape[1], len(weight), activation_function=ACTIVATIONS[activation]())
        dense.load_state_dict({"linear.weight": torch.from_numpy(weight), "linear.bias": torch.from_numpy(bias)})
        after.append(dense)
    if normalize:
        after.append(models.Normalize())
    transformer, tokenizer = backbone.transformer, backbone.model.tokenizer
    with quiet_libraries():
        transformer.save_pretrained(folder)  # type: ignore[operator]
        tokenizer.save_pretrained(folder)
    settings = {"max_seq_length": backbone.longest, "do_lower_case": backbone.lowers}
    _write_json(folder / "sentence_bert_config.json", settings)
    if backbone.prompt:
        prompts = {"prompts": {"default": backbone.prompt}, "default_prompt_name": "default"}
        _write_json(folder / "config_sentence_transformers.json", prompts)
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, module in enumerate(after, start=1):
        name = type(module).__name__
        path = folder / f"{number}_{name}"
        path.mkdir()
        module.save(str(path))
        kind = f"sentence_transformers.models.{name}"
        modules.append({"idx": number, "name": str(number), "path": path.name, "type": kind})
    _write_json(folder / "modules.json", modules)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
