"""All layers of a text model: a head behind each, and the layers one after the other until a text is decided."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skellipsoid._encoders.torch.backbone import TextBackbone, in_pieces
from skellipsoid._encoders.torch.rows import TokenRows
from skellipsoid._encoders.torch.text_modules import count_layers, token_means
from skellipsoid._torch.devices import MODEL_STATE


class LayerHeads(nn.Module):
    """A linear layer behind every layer of a text model, and a linear classifier behind each.

    Parameters
    ----------
    n_layers : int
    width : int
    n_classes : int
    """

    def __init__(self, n_layers: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.out_features = width
        self.weight = nn.Parameter(torch.eye(width).repeat(n_layers, 1, 1))  # (n_layers, width, width)
        self.bias = nn.Parameter(torch.zeros(n_layers, width))
        limit = width**-0.5
        self.class_weight = nn.Parameter(torch.empty(n_layers, n_classes, width).uniform_(-limit, limit))
        self.class_bias = nn.Parameter(torch.zeros(n_layers, n_classes))

    def forward(self, means: Tensor) -> Tensor:
        """Give the outputs of the linear layers, (n_texts, n_layers, width), before the activation."""
        return torch.einsum("nli,loi->nlo", means, self.weight) + self.bias

    def logits(self, features: Tensor) -> Tensor:
        """Logits of every layer, (n_layers, n_texts, n_classes)."""
        return torch.einsum("nli,lki->lnk", features, self.class_weight) + self.class_bias.unsqueeze(1)


class LayerRows(TokenRows):
    """Tokenised texts as the mean token vector of every layer, (n_rows, n_layers, width)."""

    def perturbed(self, rows: np.ndarray, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Texts with dropout, and with changed word embeddings.

        Parameters
        ----------
        rows : ndarray
        change : callable
            Gives new word embeddings from those of the model, (n_texts, n_tokens, width), and from the mask of tokens.
            It is called for a few texts at a time, of similar length: the same texts for the same ``rows``.
        """
        self.backbone.model.train()
        return self._layers(rows, change)

    def _pooled(self, rows: np.ndarray) -> Tensor:
        return self._layers(rows, lambda embeddings, mask: embeddings)

    def _layers(self, rows: np.ndarray, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        transformer: Any = self.backbone.transformer
        device = self.table.device.type

        def forward(ids: Tensor, mask: Tensor) -> Tensor:
            embeddings = change(transformer.get_input_embeddings()(ids), mask)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                found = transformer(inputs_embeds=embeddings, attention_mask=mask, output_hidden_states=True)
            # The first is what goes into the first layer. The last is what the model gives, often normalised.
            layers = [*found.hidden_states[1:-1], found.last_hidden_state]
            return torch.stack([token_means(vectors.float(), mask) for vectors in layers], dim=1)

        return in_pieces(self.table, rows, forward)


def layer_list(transformer: nn.Module) -> nn.ModuleList:
    """Find the layers of a text model.

    Raises
    ------
    ValueError
        If it has none, or if it runs them more than once.
    """
    n_layers = count_layers(transformer)
    for module in transformer.modules():
        if isinstance(module, nn.ModuleList) and len(module) == n_layers:
            return module
    raise ValueError(
        f"{type(transformer).__name__} has no list of {n_layers} layers; use a text model like BERT or MiniLM."
    )


class _AllDecided(Exception):
    """Every text of a piece is decided: the layers after this one are not needed."""


def visit_layers(
    backbone: TextBackbone, tokens: Sequence[Sequence[int]], visit: Callable[[int, Tensor, Tensor], Tensor]
) -> None:
    """Run a text model layer by layer; a text that is decided is left out of the layers after it.

    One thread at a time: the layers of the model note what runs.

    Parameters
    ----------
    backbone : TextBackbone
    tokens : list of list of int
    visit : callable
        Gets the number of the layer, the mean token vectors of the texts that still run, (n_running, width), and the
        numbers of these texts. Gives a Boolean tensor: those that go on.
    """
    transformer = backbone.transformer
    table = backbone.table(tokens)
    running = torch.arange(len(tokens), device=table.device)
    ids, mask = table.padded(running, int(table.lengths.max()))

    def pick(value: Any) -> Any:
        # What the model gives to every layer, such as the mask, still has all texts.
        is_whole = isinstance(value, Tensor) and value.dim() > 0 and len(value) == len(tokens) != len(running)
        return value[running] if is_whole else value

    def before(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return tuple(map(pick, args)), {name: pick(value) for name, value in kwargs.items()}

    def after(number: int) -> Callable[[nn.Module, Any, Any], Any]:
        def decide(module: nn.Module, args: Any, output: Any) -> Any:
            nonlocal running
            vectors = output[0] if isinstance(output, tuple) else output
            goes_on = visit(number, token_means(vectors, mask[running]), running)
            if not goes_on.any():
                raise _AllDecided
            if goes_on.all():
                return output
            running = running[goes_on]
            return (vectors[goes_on], *output[1:]) if isinstance(output, tuple) else vectors[goes_on]

        return decide

    with MODEL_STATE, torch.inference_mode(), ExitStack() as hooks:
        layers = layer_list(transformer)
        for number, layer in enumerate(layers):
            hooks.callback(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
            if number < len(layers) - 1:
                hooks.callback(layer.register_forward_hook(after(number)).remove)
        try:
            last = transformer(input_ids=ids, attention_mask=mask).last_hidden_state
        except _AllDecided:
            return
        # Of the last layer that which the model gives: some models normalise it.
        visit(len(layers) - 1, token_means(last, mask[running]), running)
