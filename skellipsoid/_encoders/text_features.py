"""A fitted text encoder: embedding model, linear layer and normalisation to unit length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch.nn import functional

from skellipsoid_runtime._containers import check_texts

from .._core.fitted_state import of_one_fit
from .._core.state_rules import (
    CLASSES,
    COUNT,
    NUMBERS,
    TEXT,
    TRAINED,
    Rule,
    Sizes,
    floats,
    integers,
    is_array,
    optional,
    or_none,
    refuse,
)
from .._core.text_estimators import TakesTexts
from .._core.warn import warn
from .._torch import machine
from .._torch.devices import explain_out_of_memory, resolve_device
from .torch.backbone import ACTIVATIONS, TextBackbone, export
from .torch.objectives import TrainingSettings

#: Remedies for a lack of memory.
REMEDIES = "reduce batch_size or max_length, use a smaller embedding model, or device='cpu'"
#: Why a training ended.
STOP_REASONS = ("max_iter", "n_iter_no_change", "none")
#: Only with ``keep_texts``.
_KEPT_TEXTS = {
    "training_texts_": optional(Rule("an array of strings of type object", is_array("O"), ("n_texts",))),
    "training_labels_": optional(or_none(Rule("an array of labels", is_array("biufO"), ("n_texts",)))),
    "training_features_": optional(floats("n_texts", "n_outputs")),
}


#: Cache of vectors by embedding model; in use only inside of ``embedding_once``.
_KEPT: ContextVar[dict[tuple[Any, ...], dict[str, torch.Tensor]] | None] = ContextVar("kept", default=None)


@contextmanager
def embedding_once() -> Iterator[None]:
    """Embed each text once inside the block, for all encoders with the same frozen embedding model."""
    before = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(before)


class TextFeatures(TakesTexts, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of a text encoder: everything after the fit."""

    model_name: str
    finetune: str
    pooling: str
    prompt: str | None = None
    normalize: bool
    dtype: str = "float32"
    device: str | torch.device
    verbose: int | bool
    weight_: NDArray[np.float32] | None
    bias_: NDArray[np.float32] | None
    classes_: NDArray[Any]
    #: With a head: the classes among the embeddings before it, for ``discover_classes``.
    _embedding_means: NDArray[np.float32]
    _embedding_covariance: NDArray[np.float32]
    _backbone: TextBackbone
    _width: int
    #: What the training reads of the encoder.
    _settings: ClassVar[type[TrainingSettings]]
    #: Fitted attributes, and the rule for each in a saved model.
    _state: ClassVar[dict[str, Rule]] = {
        "finetune_": Rule("'none', 'head' or 'full'", lambda value: str(value) in ("none", "head", "full")),
        "classes_": optional(CLASSES),
        "weight_": or_none(floats("n_components", "width")),
        "bias_": or_none(floats("n_components")),
        "_width": replace(COUNT, size="width"),
        "groups_": optional(integers("n_samples")),
        **TRAINED,
        "validation_scores_": or_none(NUMBERS),
        "stop_reason_": optional(
            Rule("'max_iter', 'n_iter_no_change' or 'none'", lambda value: str(value) in STOP_REASONS)
        ),
        "training_data_sha256_": optional(TEXT),
        "_embedding_means": optional(floats("n_classes", "width")),
        "_embedding_covariance": optional(floats("width", "width")),
        "_backbone": Rule("an embedding model", lambda value: isinstance(value, TextBackbone)),
        **_KEPT_TEXTS,
    }

    @of_one_fit
    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Embed texts.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        features : ndarray of shape (n_samples, n_components), float32
            A row of zeros for a text that the model cannot read, since none of its tokens has a letter, a digit or a
            sign: blanks, punctuation, or an unknown script.

        Raises
        ------
        ValueError
            If ``X`` is not a sequence of strings or is empty.
        """
        check_is_fitted(self)
        return self._embed(check_texts(X))

    @of_one_fit
    def export(self, folder: str | Path) -> None:
        """Write a sentence-transformers model with the same features.

        Parameters
        ----------
        folder : str or Path
            A new or empty folder.

        Raises
        ------
        FileExistsError
            If the folder is not empty.
        ValueError
            If the encoder reads intermediate layers: sentence-transformers has no module for them.
        """
        check_is_fitted(self)
        if self._backbone.layers:
            raise ValueError(
                f"The encoder reads the layers {self._backbone.layers} of its embedding model, for which "
                "sentence-transformers has no module; use save, or fit with layers='last' to export."
            )
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{str(target)!r} exists and is not an empty folder; export into a new folder.")
        target.mkdir(parents=True, exist_ok=True)
        export(
            self._backbone,
            target,
            self.weight_,
            self.bias_,
            normalize=self.normalize,
            activation=self._settings.activation,
        )

    def __sklearn_tags__(self) -> Any:
        """Tags: texts as input, labels required unless nothing is trained."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.finetune != "none"
        tags.transformer_tags.preserves_dtype = ["float32"]  # of whatever texts
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has ended."""
        return hasattr(self, "n_iter_")

    @property
    def _n_features_out(self) -> int:
        return self._width if self.weight_ is None else len(self.weight_)

    def _pooled(self, texts: list[str], layers: tuple[int, ...] = (), *, verbose: int | bool = 0) -> torch.Tensor:
        """Vectors of texts, on the CPU, before W; equal texts are embedded once.

        With ``layers`` the texts are those of a fit: from now on the embedding model reads these layers.
        """
        backbone = self._backbone.to(resolve_device(self.device, fallback=True))
        self._check_pooling()
        if self.dtype == "bfloat16" and not backbone.is_reduced:
            warn_of_slow_bfloat16(resolve_device(self.device, fallback=True))
        distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        vectors = self._embedded(list(distinct), layers, {"dtype": self.dtype, "verbose": verbose})
        return vectors[[distinct[text] for text in texts]]

    def _embedded(self, texts: list[str], layers: tuple[int, ...], settings: dict[str, Any]) -> torch.Tensor:
        """Vectors of distinct texts; those in the cache are not embedded again."""
        backbone, kept = self._backbone, _KEPT.get()
        if kept is None or getattr(self, "finetune_", "none") == "full":
            if layers:
                return backbone.read_layers(layers, backbone.embed_layers(texts, layers, **settings))
            return backbone.embed(texts, **settings)
        read = layers or backbone.layers
        own = kept.setdefault((str(self.model_name), backbone.longest, self.pooling, self.prompt, self.dtype, read), {})
        if missing := [text for text in texts if text not in own]:
            found = backbone.embed_layers(missing, read, **settings) if read else backbone.embed(missing, **settings)
            own.update(zip(missing, found, strict=True))
        vectors = torch.stack([own[text] for text in texts])
        return backbone.read_layers(layers, vectors) if layers else backbone.mixed(vectors)

    def _check_pooling(self) -> None:
        if self.pooling == "mean" and len(self._backbone.model.after):
            raise ValueError("pooling='mean', but the encoder was fitted with another pooling; call fit again.")

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        with explain_out_of_memory(f"embedding {len(texts)} texts with {self.model_name!r}", REMEDIES):
            return self._project(self._pooled(texts))

    def _embed_both(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Features of texts, and their unit embeddings before W, by one pass of the embedding model."""
        with explain_out_of_memory(f"embedding {len(texts)} texts with {self.model_name!r}", REMEDIES):
            pooled = self._pooled(texts)
            return self._project(pooled), functional.normalize(pooled, dim=1).numpy()

    def _project(self, embeddings: torch.Tensor) -> NDArray[np.float32]:
        features = embeddings
        if self.weight_ is not None:
            features = functional.linear(features, torch.from_numpy(self.weight_), torch.from_numpy(self.bias_))
            features = ACTIVATIONS[self._settings.activation]()(features)
        if self.normalize:
            features = functional.normalize(features, dim=1)
        return np.asarray(less_unread(features, embeddings).numpy(), dtype=np.float32)

    def _check_state(self, sizes: Sizes) -> None:
        """Raise an error if attributes that are valid alone do not fit together."""
        self._check_pooling()
        width, is_frozen = self._backbone.model.width, self.finetune_ == "none"
        refuse(width != sizes["width"], f"its width is {sizes['width']}, but that of its embedding model {width}")
        fits = (self.weight_ is None, self.bias_ is None) == (is_frozen, is_frozen)
        refuse(not fits, f"finetune_ is {self.finetune_!r}, which does not fit weight_ and bias_")
        described = {hasattr(self, name) for name in ("_embedding_means", "_embedding_covariance")}
        refuse(len(described) > 1, "only one of _embedding_means and _embedding_covariance is there")
        if any(hasattr(self, name) for name in _KEPT_TEXTS):
            self._check_kept_texts()

    def _check_kept_texts(self) -> None:
        """Raise an error if a kept text, label or feature is missing or not printable."""
        for name in _KEPT_TEXTS:
            refuse(not hasattr(self, name), f"{name} is missing")
        for text in self.training_texts_:
            text.encode()  # a lone surrogate cannot be printed
        width = self.training_features_.shape[1]
        refuse(width != self._n_features_out, f"training_features_ has {width} columns, not {self._n_features_out}")


def less_unread(features: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
    """Set the features of texts that the embedding model cannot read, whose embeddings are zeros, to zeros."""
    return torch.where(embeddings.ne(0).any(dim=1, keepdim=True), features, torch.zeros_like(features))


def warn_of_slow_bfloat16(device: torch.device) -> None:
    """Warn of x86 processors that are slower in bfloat16; others were not measured."""
    if device.type == "cpu" and machine.instructions().get("amx_bf16") is False:
        warn("dtype='bfloat16' is slower than 'float32' on this processor, which has no AMX; use dtype='float32' here.")
