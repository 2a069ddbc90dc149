"""Largest number of tokens of a text, by the table of positions of its model."""

import re
from typing import Any

import torch
from torch import nn

#: Names of the tables of positions, as transformers calls them.
_TABLE = re.compile(r"(^|\.)(position_embeddings|embed_positions|wpe)$")
#: A limit of tokens, or of positions, above this means no limit.
NO_LIMIT = 2**31
#: Largest number of tokens of a text if the model names no limit.
USUAL_LIMIT = 512


def table_size(transformer: nn.Module) -> int | None:
    """Largest number of tokens that a table of positions has rows for; ``None`` without such a table.

    If padding has a row in the table, as in RoBERTa or MPNet, texts begin after that row.
    """
    for name, module in transformer.named_modules():
        if isinstance(module, nn.Embedding) and _TABLE.search(name):
            first = getattr(module, "offset", 0) if module.padding_idx is None else module.padding_idx + 1
            return int(module.num_embeddings - first)
    return None


def without_weights(config: Any) -> Any:
    """Build the transformer of a configuration without memory for its weights."""
    from transformers import AutoModel

    build: Any = AutoModel.from_config
    with torch.device("meta"):
        return build(config, trust_remote_code=False)


def n_positions(transformer: Any) -> int | None:
    """Largest number of tokens of a text: of the table, or as configured; ``None`` if there is no limit."""
    found = table_size(transformer)
    if found is None:
        found = getattr(transformer.config.get_text_config(), "max_position_embeddings", None)
    return int(found) if found and 0 < found < NO_LIMIT else None


def check_limit(limit: int | None, transformer: Any) -> None:
    """Raise a ValueError if the limit of a stored model is beyond its table, rows for padding included."""
    if limit is not None and table_size(transformer) is not None:  # models with relative positions read longer texts
        positions = transformer.config.max_position_embeddings
        if positions < limit:
            raise ValueError(f"the embedding model's limit is {limit} tokens, but it has {positions} positions")


def check_length(max_length: int | None, positions: int | None, what: str) -> None:
    """Raise a ValueError if a text may have more tokens than there are positions; ``what`` names the model."""
    if max_length and positions and max_length > positions:
        raise ValueError(f"max_length={max_length}, but {what} has {positions} positions; use at most that.")
