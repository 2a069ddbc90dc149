"""The embedding x of a text: a transformer, then the mean of its token vectors or modules of sentence-transformers."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from .known_tokens import readable_tokens
from .positions import NO_LIMIT, table_size
from .text_modules import LayerMix, count_layers, pool, token_means, width_after
from .tokenizer_rules import encode


class EmbeddingModel(nn.Module):
    """A transformer, its tokenizer, and the modules of sentence-transformers after it.

    Parameters
    ----------
    transformer : transformers.PreTrainedModel
    tokenizer : transformers.PreTrainedTokenizerBase
    after : sequence of Module
        Modules that make a vector of a text from those of its tokens. If there are none, it is the mean.
    limit : int or None
        Largest number of tokens of a text; at most the positions that the transformer has rows for.
    lowers : bool
        Whether texts are converted to lower case first: a setting of sentence-transformers, not of the tokenizer.
    prompt : str
        Text that is put before every text.
    mix : LayerMix or None
        Adds intermediate layers of the transformer.
    zeros : bool
        Whether an unreadable text (``known_tokens``) gets a vector of zeros. Models saved before this setting existed
        give it an ordinary vector.
    """

    def __init__(
        self,
        transformer: Any,
        tokenizer: Any,
        after: Sequence[nn.Module],
        limit: int | None,
        *,
        lowers: bool,
        prompt: str = "",
        mix: LayerMix | None = None,
        zeros: bool = False,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.after = nn.ModuleList(after)
        self.mix = mix
        self.tokenizer, self.lowers, self.prompt = tokenizer, lowers, prompt
        self.zeros = False
        self.readable: Tensor
        self.register_buffer("readable", torch.zeros(0, dtype=torch.bool), persistent=False)
        if zeros:
            self.give_zeros()
        self.is_untried = False  # see ``probes``
        self.positions = table_size(transformer)  # None if positions are relative
        self.limit = limit if self.positions is None else min(limit or self.positions, self.positions)

    @classmethod
    def of(cls, model: Any, prompt: str = "") -> "EmbeddingModel":
        """Take the parts of a sentence-transformers model that begins with a transformer."""
        first, *after = model
        lowers = bool(getattr(first, "do_lower_case", False))
        limit = model.max_seq_length if (model.max_seq_length or NO_LIMIT) < NO_LIMIT else None
        read_as_letters(model.tokenizer)
        return cls(first.auto_model, model.tokenizer, after, limit, lowers=lowers, prompt=prompt)

    def give_zeros(self) -> None:
        """Embed unreadable texts as zeros from now on."""
        self.zeros, self.readable = True, readable_tokens(self.tokenizer)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Embed texts, given as token ids and their mask, (n_texts, width of the last module)."""
        if self.mix is not None:
            mixed: Tensor = self.mix(self.vectors(ids, mask, self.mix.layers))
            return mixed
        found = self.transformer(input_ids=ids, attention_mask=mask)[0]  # (n_texts, longest, width)
        return self._less_unread(pool(self.after, found.float(), mask, self.n_prompt), ids, mask)

    def vectors(self, ids: Tensor, mask: Tensor, layers: Sequence[int]) -> Tensor:
        """Vector of each text, and the mean of its token vectors after each layer, (n_texts, 1 + n_layers, width)."""
        found = self.transformer(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        means = [token_means(found.hidden_states[layer].float(), mask) for layer in layers]
        vectors = torch.stack([pool(self.after, found[0].float(), mask, self.n_prompt), *means], dim=1)
        return self._less_unread(vectors, ids, mask)

    def reads(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Whether each text has a readable token besides those of the prompt, (n_texts,)."""
        return (self.readable[ids] & mask.bool()).sum(dim=1) > self.n_prompt_readable

    def _less_unread(self, vectors: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """Set the vectors of unreadable texts to zeros, (n_texts, …)."""
        if not self.zeros:
            return vectors
        is_read = self.reads(ids, mask).reshape(-1, *(1,) * (vectors.ndim - 1))
        return torch.where(is_read, vectors, torch.zeros_like(vectors))

    def tokenize(self, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
        """Token ids of each text behind the prompt, as of ``encode``."""
        prompted = [self.prompt + text for text in texts]
        return encode(self.tokenizer, [text.lower() for text in prompted] if self.lowers else prompted, longest)

    def check_layers(self, numbers: Sequence[int]) -> None:
        """Raise an error if the transformer has no such layers, or their vectors cannot be added to those of texts."""
        if max(numbers) > self.n_layers:
            raise ValueError(
                f"layers={tuple(numbers)}, but the embedding model has {self.n_layers} layers; use numbers from 0 to "
                f"{self.n_layers}, where 0 is the embedding layer."
            )
        if self.width != self.token_width:
            raise ValueError(
                f"layers={tuple(numbers)} cannot be added, because the embedding model makes vectors of {self.width} "
                f"numbers from token vectors of {self.token_width}; use layers='last', or pooling='mean'."
            )

    @property
    def n_layers(self) -> int:
        """Number of layers of the transformer; 0 if it names none."""
        return count_layers(self.transformer) or 0

    @property
    def token_width(self) -> int:
        """Length of a token vector."""
        config: Any = self.transformer.config
        return int(getattr(config, "hidden_size", None) or config.dim)

    @property
    def width(self) -> int:
        """Length of the vector of a text, by the shapes of the parts: the model does not run."""
        return width_after(self.after, self.token_width)

    @cached_property
    def n_prompt(self) -> int:
        """Number of tokens before a text: those of the prompt, and special ones."""
        if not self.prompt:
            return 0
        (ids,) = self.tokenize([""])
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    @cached_property
    def n_prompt_readable(self) -> int:
        """Number of readable tokens of the prompt."""
        if not (self.prompt and self.zeros):
            return 0
        (ids,) = self.tokenize([""])
        return int(self.readable[ids].sum())


def read_as_letters(tokenizer: Any) -> None:
    """Read names of special tokens in a text, such as ``[MASK]``, as plain text, also after ``save_pretrained``."""
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
