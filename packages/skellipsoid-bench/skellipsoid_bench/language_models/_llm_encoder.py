"""A language model as a text encoder: the hidden states of a causal model as features."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch.nn import functional

from skellipsoid._base import check_texts, explain_out_of_memory, fit_context, resolve_device
from skellipsoid._core.sklearn import Interval, StrOptions
from skellipsoid._core.text_estimators import TakesTexts
from skellipsoid._torch.devices import PROCESS_STATE

from ._causal import TEXT_FIELD, CausalModel, Reading

_REMEDIES = "use a smaller model, a smaller max_length, dtype='bfloat16', or device='cpu'"
_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
#: A sentence by which a model that is loaded again is known to be the one of the fit.
_PROBE = "The quick brown fox jumps over the lazy dog."
#: Least cosine of its two vectors; precisions and devices round differently.
_SAME = 0.98


@dataclass(kw_only=True, eq=False, repr=False)
class LLMTextEncoder(TakesTexts, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Text encoder that reads texts with a causal language model.

    The features of a text are the hidden state of its last token [1]_ (or the mean over its tokens) in one layer of
    the model. Nothing is trained, so labels are not needed. Put any classifier of this package behind it.

    Read more in the :ref:`User Guide <language_models>`.

    Parameters
    ----------
    model : str or Path, default="HuggingFaceTB/SmolLM2-135M-Instruct"
        A causal model of transformers: a folder, a GGUF file, or a name on the hub (``owner/repository``, or
        ``owner/repository/file.gguf``). GGUF files need the extra ``skellipsoid-bench[llm]``; their weights are
        converted to ``dtype``, so they need as much memory as the model in that precision.

    prompt : str, default=None
        A template with ``{text}`` once, such as ``'This sentence: "{text}" means in one word: "'`` [2]_. ``None`` is
        the text alone. Write the special tokens of a chat yourself if the model needs them.

    pooling : {"last", "mean"}, default="last"
        ``"last"``: the state of the last token, which has seen all others. ``"mean"``: the mean over all tokens, those
        of the prompt too.

    layer : int, default=-1
        Layer whose states are taken: 0 is the word vectors, 1 the first layer, −1 the last one, after the model's final
        normalisation. Which one is best depends on the model, the prompt and the pooling.

    normalize : bool, default=True
        Whether features have unit length.

    max_length : int, default=None
        Largest number of tokens of a text with its prompt. The end of a longer text is cut, never the prompt.
        ``None`` is the model's own limit.

    dtype : {"auto", "float32", "bfloat16", "float16"}, default="auto"
        Precision of the model. ``"auto"`` is ``"float32"`` on the CPU and ``"bfloat16"`` on CUDA. Features are always
        float32.

    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU. A fitted encoder uses the CPU if its
        device does not exist on the present machine.

    verbose : int, default=0
        Whether to show a progress bar, if standard error is a terminal or a notebook.

    Attributes
    ----------
    n_layers_ : int
        Number of layers of the model.

    See Also
    --------
    skellipsoid.SupConTextEncoder : A smaller model that is trained on the texts.
    PromptOpenSetClassifier : Asks a language model for the label itself.

    Notes
    -----
    Texts are sorted by length and padded on the right. A causal model reads from left to right, so the features of a
    text are the same alone and beside others, up to rounding.

    The language model is no part of a pickle: it is read again from ``model`` when it is first needed. If another model
    is found there, this is an error. :func:`~skellipsoid.save` refuses this encoder, because :func:`~skellipsoid.load`
    follows no path and no name of the hub.

    References
    ----------
    .. [1] Neelakantan, A., et al. "Text and Code Embeddings by Contrastive Pre-Training." arXiv:2201.10005, 2022.
    .. [2] Jiang, T., Huang, S., Luan, Z., Wang, D., Zhuang, F. "Scaling Sentence Embeddings with Large Language
       Models." Findings of EMNLP 2024.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid_bench.language_models import LLMTextEncoder
    >>> encoder = LLMTextEncoder("models/SmolLM2-135M-Instruct.Q4_1.gguf", layer=15)
    >>> pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier())
    >>> pipe.fit(texts, intents).predict(["wake me at six"])  # doctest: +SKIP
    array(['alarm'], dtype='<U7')
    """

    model: str | Path = field(default="HuggingFaceTB/SmolLM2-135M-Instruct", kw_only=False)
    prompt: str | None = None
    pooling: str = "last"
    layer: int = -1
    normalize: bool = True
    max_length: int | None = None
    dtype: str = "auto"
    device: str | torch.device = "auto"
    verbose: int | bool = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str, Path],
        "prompt": [str, None],
        "pooling": [StrOptions({"last", "mean"})],
        "layer": [Integral],
        "normalize": ["boolean"],
        "max_length": [Interval(Integral, 2, None, closed="left"), None],
        "dtype": [StrOptions({"auto", *_DTYPES})],
        "device": [str, torch.device],
        "verbose": ["verbose"],
    }
    #: Said by ``save``.
    _not_saved = (
        "its language model is read from a folder or the hub, and load follows no path and no name; save what comes "
        "after it, put a new LLMTextEncoder before what is loaded, or use joblib.dump"
    )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Load the language model.

        A fit that fails or is interrupted leaves the encoder as it was.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
            List, tuple, NumPy array, pandas or polars Series, Arrow array, or a table of one column. Only
            checked.
        y : array-like of shape (n_samples,), default=None
            Not used; present for scikit-learn's interface.

        Returns
        -------
        self : object
            The fitted encoder.

        Raises
        ------
        ValueError
            If ``X`` is not a sequence of strings or is empty, if ``prompt`` does not hold ``{text}`` once or leaves no
            room for a text, if the model has no such layer, or if ``max_length`` is larger than its limit.
        OSError
            If the model is not found or cannot be loaded.
        ImportError
            If the model is a GGUF file and the packages of the extra ``skellipsoid-bench[llm]`` are missing.
        """
        check_texts(X)
        reading = self._reading()
        device = resolve_device(self.device)
        model = self._load(device)
        model.check(reading)
        probe = self._probed(model)
        self._model: CausalModel | None = model
        self._probe = probe
        self.n_layers_ = model.n_layers
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None, **fit_params: Any) -> NDArray[np.float32]:
        """Load the language model and embed the same texts; the features are those of ``transform``.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
        y : array-like of shape (n_samples,), default=None
            Not used.
        **fit_params : dict
            As in scikit-learn; ``fit`` takes none.

        Returns
        -------
        features : ndarray of shape (n_samples, width), float32
        """
        return np.asarray(self.fit(X, y, **fit_params).transform(X))

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Embed texts.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        features : ndarray of shape (n_samples, width), float32

        Raises
        ------
        ValueError
            If ``X`` is not a sequence of strings or is empty, or if features are not finite in this precision.
        OSError
            After unpickling, if the model is not found, or if it is another one than that of the fit.
        """
        check_is_fitted(self)
        texts, reading = check_texts(X), self._reading()
        device = resolve_device(self.device, fallback=True)
        with explain_out_of_memory(f"reading {len(texts)} texts with {str(self.model)!r}", _REMEDIES):
            model = self._loaded(device).to(device)
            model.check(reading)
            features = model.embed(texts, reading, verbose=self.verbose)
        if not features.isfinite().all():
            raise ValueError(
                f"The language model {str(self.model)!r} gives features that are not finite in the precision "
                f"{self.dtype!r}; use dtype='float32' or 'bfloat16'."
            )
        if self.normalize:
            features = functional.normalize(features, dim=1)
        return np.asarray(features.numpy(), dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the language model."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_model": None} if "_model" in state else state

    @property
    def _n_features_out(self) -> int:
        return len(self._probe)

    def _reading(self) -> Reading:
        if self.prompt is not None and self.prompt.count(TEXT_FIELD) != 1:
            raise ValueError(
                f"prompt={self.prompt!r} holds {TEXT_FIELD} {self.prompt.count(TEXT_FIELD)} times, but must hold it "
                f"once: it is where the text stands; use for instance 'Message: {TEXT_FIELD}'."
            )
        return Reading(self.prompt, self.pooling, int(self.layer), self.max_length)

    def _load(self, device: torch.device) -> CausalModel:
        dtype = self.dtype if self.dtype != "auto" else "bfloat16" if device.type == "cuda" else "float32"
        with explain_out_of_memory(f"loading {str(self.model)!r}", _REMEDIES):
            return CausalModel.load(str(self.model), _DTYPES[dtype]).to(device)

    def _loaded(self, device: torch.device) -> CausalModel:
        """Give the model, which is read again after unpickling, once for all threads."""
        if self._model is None:
            with PROCESS_STATE:
                if self._model is None:
                    model = self._load(device)
                    self._check_same(model)
                    self._model = model
        return self._model

    def _probed(self, model: CausalModel) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = model.embed([_PROBE], Reading())[0].numpy()
        return vector

    def _check_same(self, model: CausalModel) -> None:
        found, known = self._probed(model), self._probe
        if found.shape == known.shape:
            cosine = float(found @ known) / max(float(np.linalg.norm(found) * np.linalg.norm(known)), 1e-30)
            if cosine >= _SAME:
                return
        raise OSError(
            f"The language model in {str(self.model)!r} is not the one that this encoder was fitted with; put that one "
            "back, or fit again."
        )
