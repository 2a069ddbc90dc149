"""A causal language model as a reader of texts: find it, tokenise a text within a prompt, pool the states of a layer.

Transformers is imported when a model is loaded, not with the package. Texts are padded on the right: a token of a
causal model sees only what stands before it, so no vector depends on the texts beside it.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor
from tqdm.std import tqdm

from skellipsoid._encoders.torch.backbone import in_pieces, in_windows
from skellipsoid._encoders.torch.model_lookup import hub_is_reachable
from skellipsoid._encoders.torch.positions import check_length, n_positions
from skellipsoid._encoders.torch.text_modules import token_means
from skellipsoid._encoders.torch.token_table import TokenTable
from skellipsoid._torch.devices import kept_torch_state
from skellipsoid._torch.progress import quiet_libraries

#: Where the text stands in a prompt.
TEXT_FIELD = "{text}"
#: What the libraries raise over files that are missing, damaged, or of no model that they know.
_UNLOADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ImportError),
    *(SafetensorError, UnpicklingError),
)


class Reading(NamedTuple):
    """How texts are read: the parameters of the same names of ``LLMTextEncoder``."""

    prompt: str | None = None
    pooling: str = "last"
    layer: int = -1
    max_length: int | None = None


class CausalModel:
    """A pretrained language model without the layer that predicts words.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    tokenizer : transformers.PreTrainedTokenizerBase
    name : str
        For messages.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name

    @classmethod
    def load(cls, name: str, dtype: torch.dtype) -> "CausalModel":
        """Load a model: a folder, a GGUF file, or a name on the hub.

        Raises
        ------
        OSError
            If it is not found or cannot be loaded.
        ImportError
            If it is a GGUF file and the packages that read one are missing.
        ValueError
            If it is an encoder-decoder, or if weights of it are missing.
        """
        folder, file = _locate(name)
        if file is not None:
            _check_gguf(name)
        if not Path(folder).is_dir():
            try:
                return cls(*_load(folder, file, dtype, local_files_only=True), name)
            except _UNLOADABLE as not_cached:
                if not hub_is_reachable():
                    raise OSError(
                        f"The language model {name!r} is no folder and no GGUF file here, not in the hub's cache, and "
                        "could not be fetched from the hub; check the name, pass the path of a folder or of a GGUF "
                        "file, or connect to the network once."
                    ) from not_cached
        try:
            return cls(*_load(folder, file, dtype), name)
        except _UNLOADABLE as error:
            reason = " ".join(str(error).split()).partition(". ")[0][:300] or type(error).__name__
            raise OSError(
                f"{name!r} holds no language model that can be loaded ({reason}); pass another one."
            ) from error

    @property
    def n_layers(self) -> int:
        """Number of layers; the states before the first one are those of layer 0."""
        return int(self.model.config.get_text_config().num_hidden_layers)

    @property
    def longest(self) -> int | None:
        """Largest number of tokens of a text by the model's positions; ``None`` if it has no limit."""
        return n_positions(self.model)

    def to(self, device: torch.device) -> "CausalModel":
        """Move the model."""
        self.model.to(device)
        return self

    def check(self, reading: Reading) -> None:
        """Raise one sentence if texts cannot be read so by this model.

        Raises
        ------
        ValueError
            If there is no such layer, if ``max_length`` is larger than the model's limit, or if the prompt leaves no
            room for a text.
        """
        if not -self.n_layers - 1 <= reading.layer <= self.n_layers:
            raise ValueError(
                f"layer={reading.layer}, but the language model {self.name!r} has {self.n_layers} layers; use 0 (the "
                f"word vectors) to {self.n_layers}, or -1 (the last one) to {-self.n_layers - 1}."
            )
        check_length(reading.max_length, self.longest, f"the language model {self.name!r}")
        n_prompt, limit = len(self._ids(_within(reading.prompt, ""))), self._limit(reading)
        if limit is not None and n_prompt >= limit:
            raise ValueError(
                f"prompt has {n_prompt} tokens, but a text with its prompt may have {limit}; use a shorter prompt, or "
                "a larger max_length."
            )

    def tokenize(self, texts: Sequence[str], reading: Reading) -> list[list[int]]:
        """Token ids of each text within the prompt; of a text that is too long the end is cut, never the prompt."""
        prompted = [_within(reading.prompt, text) for text in texts]
        # verbose=False: no message for each text that is too long.
        found: list[list[int]] = self.tokenizer(prompted, padding=False, verbose=False)["input_ids"]
        limit = self._limit(reading)
        if limit is not None:
            n_prompt = len(self._ids(_within(reading.prompt, "")))
            for row, ids in enumerate(found):
                if len(ids) > limit:
                    found[row] = self._shortened(texts[row], reading.prompt, ids, limit, n_prompt)
        return [ids or [self._nothing] for ids in found]

    def embed(self, texts: Sequence[str], reading: Reading, *, verbose: int | bool = 0) -> Tensor:
        """Embed texts, (n_texts, width) in single precision on the CPU."""

        def pooled(ids: Tensor, mask: Tensor) -> Tensor:
            return self._pooled(ids, mask, reading)

        def read(tokens: list[tuple[int, ...]], progress: tqdm) -> Tensor:
            # Padded to the longest text of a piece alone, on every device.
            table = TokenTable(tokens, self.model.device, padding=0, longest=0)
            return in_pieces(table, np.arange(len(tokens)), pooled, progress)

        return in_windows(texts, lambda window: self.tokenize(window, reading), read, "reading", verbose)

    def _pooled(self, ids: Tensor, mask: Tensor, reading: Reading) -> Tensor:
        is_last = reading.layer in (-1, self.n_layers)
        answer = self.model(input_ids=ids, attention_mask=mask, use_cache=False, output_hidden_states=not is_last)
        # (n_texts, longest, width)
        states: Tensor = answer.last_hidden_state if is_last else answer.hidden_states[reading.layer]
        if reading.pooling == "last":
            return states[torch.arange(len(ids), device=ids.device), mask.sum(1) - 1]
        return token_means(states.float(), mask)

    def _limit(self, reading: Reading) -> int | None:
        return reading.max_length or self.longest

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, verbose=False)["input_ids"]
        return ids

    @property
    def _nothing(self) -> int:
        """Token that stands for a text without tokens."""
        found = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id, 0)
        return int(next(token for token in found if token is not None))

    def _shortened(self, text: str, prompt: str | None, ids: list[int], limit: int, n_prompt: int) -> list[int]:
        """Cut letters off the end until the rest fits; the share that fits is a guess, which is made again."""
        while len(ids) > limit:
            share = max(limit - n_prompt, 0) / max(len(ids) - n_prompt, 1)
            text = text[: min(int(len(text) * share), len(text) - 1)]
            ids = self._ids(_within(prompt, text))
        return ids


def _within(prompt: str | None, text: str) -> str:
    """Put a text into a prompt; braces in either have no other meaning."""
    if prompt is None:
        return text
    before, _, after = prompt.partition(TEXT_FIELD)
    return before + text + after


def _locate(name: str) -> tuple[str, str | None]:
    """Give the folder or the repository of a model, and its GGUF file if it is one."""
    path = Path(name)
    if path.is_dir():
        files = sorted(file.name for file in path.glob("*.gguf"))
        if (path / "config.json").exists() or not files:
            return name, None
        if len(files) > 1:
            raise OSError(
                f"The folder {name!r} holds {len(files)} GGUF files; pass one of them, such as {path / files[0]}."
            )
        return name, files[0]
    if path.suffix.lower() != ".gguf":
        return name, None
    if path.is_file():
        return str(path.parent), path.name
    repository, _, file = name.rpartition("/")
    if repository.count("/") != 1 or repository.startswith((".", "/")):  # owner/repository/file.gguf
        raise OSError(f"There is no file {name!r}; check the path, or pass owner/repository/file.gguf of the hub.")
    return repository, file


def _check_gguf(name: str) -> None:
    missing = [package for package in ("gguf", "accelerate") if importlib.util.find_spec(package) is None]
    if missing:
        raise ImportError(
            f"{name!r} is a GGUF file, which transformers reads with the package {missing[0]}, but it is not "
            "installed; run pip install 'skellipsoid-bench[llm]', or pass a folder of safetensors."
        )


def _load(folder: str, file: str | None, dtype: torch.dtype, **options: Any) -> tuple[Any, Any]:
    """Load model and tokenizer on the CPU; no code of the folder is run, and no pickled object but tensors is read."""
    with quiet_libraries(), kept_torch_state(), _quiet_gguf(file):
        from transformers import AutoModel, AutoTokenizer

        given: dict[str, Any] = {"trust_remote_code": False, **options}
        if file is not None:
            given["gguf_file"] = file
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, **given)
        model, report = AutoModel.from_pretrained(
            folder, dtype=dtype, weights_only=True, output_loading_info=True, **given
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(f"it is an encoder-decoder ({type(model).__name__}), but a causal language model is needed")
    wrong = sorted({*report["missing_keys"], *map(str, report["mismatched_keys"])})
    if wrong:
        raise ValueError(f"its weights lack {wrong[0]!r}")
    return model, tokenizer


@contextmanager
def _quiet_gguf(file: str | None) -> Iterator[None]:
    """Hide the progress bar of the conversion, which obeys no setting; inside ``quiet_libraries``, one at a time."""
    if file is None:
        yield
        return
    from transformers import modeling_gguf_pytorch_utils

    module: Any = modeling_gguf_pytorch_utils
    shown = module.tqdm
    module.tqdm = partial(shown, disable=True)
    try:
        yield
    finally:
        module.tqdm = shown
