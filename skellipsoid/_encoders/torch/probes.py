"""Checks a stored embedding model with short texts: its tokens when it is built, its vectors at its first use.

Settings and weights are checked one by one before; only a text shows whether they fit together. The vectors are not
checked when a model is only loaded. ``model`` is an ``EmbeddingModel``, which imports this module.
"""

from typing import Any

import torch

from ..._torch.devices import MODEL_STATE
from ..._torch.threads import one_thread_each
from .tokenizer_rules import encode

#: Words, unknown characters, an empty text.
PROBES = ("one two", "\ufffd \U0001f600 x", "")
#: Largest number of tokens of such a text, special ones included.
_MOST_TOKENS = 100


def check_tokens(model: Any) -> None:
    """Raise an error if a tokenizer makes tokens that the transformer does not have, or too many of a short text."""
    n_rows = model.transformer.get_input_embeddings().num_embeddings
    if max(model.tokenizer.get_vocab().values(), default=0) >= n_rows:
        raise ValueError(f"it has {len(model.tokenizer)} tokens, but the transformer {n_rows}")
    for text in PROBES:
        (ids,) = encode(model.tokenizer, [text])
        if len(ids) > _MOST_TOKENS:
            raise ValueError(f"it makes {len(ids)} tokens of a text of {len(text)} letters")
        if max(ids, default=0) >= n_rows:
            raise ValueError(f"it makes the token {max(ids)} of {text!r}, but the transformer has {n_rows} tokens")


def check_vectors(model: Any) -> None:
    """Raise an error if a stored model cannot embed short texts; checked once, at its first use.

    Raises
    ------
    ValueError
        The message is a sentence for the user.
    """
    if not model.is_untried:
        return
    with MODEL_STATE:  # another thread may have changed the model for a while
        if model.is_untried:
            _check_vectors(model)


def _check_vectors(model: Any) -> None:
    device = next(model.transformer.parameters()).device
    try:
        with torch.inference_mode(), one_thread_each():
            for text in PROBES:
                ids = torch.tensor(model.tokenize([text], model.limit), dtype=torch.long, device=device)
                # Some tokenizers return no token for an empty text.
                if ids.numel() and not model(ids, torch.ones_like(ids)).isfinite().all():
                    raise ValueError(f"the vector of {text!r} is not finite")  # noqa: TRY301
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the libraries raise anything for altered settings
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"The stored embedding model cannot embed a short text ({reason}), so its files are not those that were "
            "saved; save the fitted model again."
        ) from error
    model.is_untried = False
