"""The text encoder: features z = (W x + b) / ‖W x + b‖₂ of the embedding x of a text."""

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.sklearn import Interval, StrOptions
from .._torch.devices import resolve_device
from .torch.contrastive import ContrastiveSettings, cross_fit, spread_as_fresh
from .torch.objectives import shown
from .trained_text_features import TrainedTextFeatures, read_settings
from .training_texts import TrainingTexts


@dataclass(kw_only=True, eq=False, repr=False)
class SupConTextEncoder(TrainedTextFeatures):
    """Text encoder trained with the supervised contrastive loss.

    The representation stage of EliDecide [1]_. The features of a text are z = (W x + b) / ‖W x + b‖₂ (eq. 1 of the
    paper), where x is the text's vector from the embedding model, in the paper the mean of its token vectors. The
    linear layer (W and b) is trained with the supervised contrastive loss [2]_ (eq. 2) on two dropout views of every
    text [3]_; with ``finetune="full"`` the embedding model is trained, too. The loss moves texts of the same class
    together and texts of different classes apart.

    ``fit_transform`` gives other features than ``fit`` followed by ``transform`` (see ``cross_fit``). Train a
    classifier on the features of ``fit_transform``.

    Read more in the :ref:`User Guide <text>`.

    Parameters
    ----------
    model_name : str, default="sentence-transformers/all-MiniLM-L6-v2"
        A sentence-transformers model or any Hugging Face encoder. The name is looked up as a folder, then in an
        installed package (the extra ``[offline]`` installs the default model), then in the hub's cache, then on the
        hub.

    finetune : {"auto", "head", "full", "none"}, default="auto"
        What is trained. ``"auto"``: ``"head"`` if there are at least 75 texts per class on average, else ``"none"``;
        copies of a text count once, unless ``duplicates`` says otherwise. With ``n_components`` it is always
        ``"head"``, with a single class ``"none"``. It is never ``"full"``. ``finetune_`` is the mode that was chosen.
        Read more in the :ref:`User Guide <texts_per_class>`. ``"head"``: W and b; the embedding model is frozen and
        embeds each text once (seconds on a CPU). ``"full"``: also the embedding model with its own layers, as in the
        paper (minutes on a CPU), by all processes of the default group of ``torch.distributed`` where there is one
        (:ref:`large_data`). ``"none"``: nothing; the features are x / ‖x‖₂.

    n_components : int, default=None
        Number of features. ``None`` is the width of the embedding model; W is then initialised with the identity, else
        with orthonormal random directions. Not with ``finetune="none"``.

    pooling : {"auto", "mean"}, default="auto"
        How the vector of a text is made from its token vectors. ``"auto"``: by the modules that follow the transformer
        in the embedding model (the first token or the last one, dense layers), or by the mean if there are none.
        ``"mean"``: the mean of all token vectors, as in the paper. Read more in the :ref:`User Guide <own_text_model>`.

    layers : {"auto", "last"} or tuple of int, default="auto"
        Intermediate layers that are read beside the last one; they keep more of the words of a text. For each of them,
        the mean-pooled vector, centred by its mean over the training texts and scaled to norm 0.4, is added to x, which
        has norm 1. ``"auto"``: the embedding layer and the middle layer; none with ``finetune="full"``, or if the width
        of x differs. ``"last"``: none, as in the paper. A tuple has the numbers of the layers; 0 is the embedding
        layer. Read more in the :ref:`User Guide <layers>`.

    prompt : str, default=None
        Text that is put before every text, such as ``"query: "`` for E5. ``None`` is the default prompt of the
        embedding model, if it has one; ``""`` is none.

    normalize : bool, default=True
        Whether features have unit length, also if the embedding model's own modules do not normalise. ``False`` is an
        ablation of the paper; the contrastive loss always compares directions.

    loss : {"supcon", "softmax"}, default="supcon"
        ``"supcon"``: the supervised contrastive loss. ``"softmax"``, an ablation of the paper: the cross-entropy of a
        linear classifier that is dropped after training.

    temperature : float, default=0.07
        τ of the contrastive loss.

    learning_rate : float or "auto", default="auto"
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine. ``"auto"``
        is 0.001 for a head and 5e-5 for full fine-tuning (the paper, with BERT-base: 2e-5).

    batch_size : int or "auto", default="auto"
        Texts per step, each with two views. ``"auto"`` is 256 for a head and 64 for full fine-tuning.

    max_iter : int or "auto", default="auto"
        Largest number of epochs. ``"auto"`` is 60 for a head and 4 for full fine-tuning.

    weight_decay : float, default=0.01
        Weight decay of AdamW.

    early_stopping : bool, default=False
        Whether to stop when the accuracy on a validation set has not improved by more than ``tol`` for
        ``n_iter_no_change`` epochs. A validation text counts as correct if the nearest class mean is that of its class;
        the means are those of the training texts, without dropout. The weights of the best epoch are kept, of the first
        one if several are equal. Validation texts are ``X_val`` of ``fit``, or else ``validation_fraction`` of the
        training texts. Without effect if nothing is trained (``finetune="none"``).

    validation_fraction : float, default=0.1
        Fraction of each class's texts in the validation set, with ``early_stopping``, or with ``finetune="full"`` and
        ``cross_fit``, if there is no ``X_val``. Copies of a text are held out together.

    n_iter_no_change : int, default=5
        Number of epochs without improvement after which training stops, with ``early_stopping``.

    tol : float, default=0.0001
        Smallest improvement of the accuracy that counts, with ``early_stopping``.

    duplicates : {"once", "each", "off"}, default="once"
        Treatment of exact and near duplicates of a text within its class. Exact duplicates are equal after case
        folding, Unicode normalisation (NFKC) and removal of extra white space; near duplicates have nearly the same
        embedding. ``"once"``: the encoder is trained on one of several exact duplicates, and duplicates are held out
        together. ``"each"``: it is trained on all of them. ``"off"``: duplicates are not searched. ``groups_`` shows
        the duplicates found. Read more in the :ref:`User Guide <repeated>`.

    cross_fit : bool, default=True
        Whether ``fit_transform`` (and so the fit of a Pipeline) returns features of the training texts that are
        distributed like those of new texts. ``transform`` does not change. For a head they are weighted averages of the
        final head's features and of out-of-fold features; the fewer texts, the larger is the weight of the out-of-fold
        features. Training takes about three times as long. With ``finetune="full"``, ``validation_fraction`` of each
        class's texts is not trained on. The features of the others are stretched about their class mean until they are
        as far from it as those of the held-out texts. With ``X_val``, which needs ``early_stopping``, these texts are
        used instead, and all texts are trained on.

    keep_texts : bool, default=False
        Whether the fitted encoder keeps its training texts, with their labels and features, so that
        :func:`~skellipsoid.explain` names the training texts that are nearest to a new text. The texts are then part of
        the pickle and of the saved model: whoever has the model can read them.

    max_length : int, default=None
        Largest number of tokens of a text; longer texts are truncated. ``None``: the limit of the model.

    dtype : {"float32", "bfloat16"}, default="float32"
        Precision in which texts are embedded. ``"bfloat16"`` (half precision) is more than twice as fast on CPUs with
        AMX (Intel's since 2023, the fourth Xeon generation), with the same F1. On other x86 CPUs it is slower, and a
        warning says so; on a GPU it was not measured. Training and saved weights are in single precision, so memory
        holds the model in both. Read more in the :ref:`User Guide <bfloat16>`.

    open_label : int or str, default=-1
        Texts with this label are not trained on. Cast to the type of ``y``: −1 for numbers, ``"-1"`` for strings.

    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU. On CUDA, full fine-tuning uses mixed
        precision. A fitted encoder uses the CPU if its device does not exist.

    random_state : int, RandomState instance or None, default=None
        Seed of batches, dropout and validation set. ``None`` draws one integer from NumPy's global generator, so that
        ``np.random.seed`` repeats a fit; no other random state of the caller changes.

    verbose : int, default=0
        Whether ``fit`` shows progress bars, if standard error is a terminal or a notebook.

    Attributes
    ----------
    finetune_ : {"head", "full", "none"}
        What was trained.

    layers_ : tuple of int
        The layers that are read beside the last one.

    classes_ : ndarray of shape (n_classes,)
        The known classes. Not with ``finetune="none"``.

    weight_ : ndarray of shape (n_components, width) or None
        W; ``None`` if nothing was trained.

    bias_ : ndarray of shape (n_components,) or None
        b; ``None`` if nothing was trained.

    groups_ : ndarray of shape (n_samples,)
        Texts with the same number are held out together: the ``groups`` of ``fit``, else the duplicates found (near
        duplicates with ``finetune="full"`` only if the encoder holds out a validation set). Not with
        ``finetune="none"``.

    n_iter_ : int
        Number of epochs.

    loss_curve_ : list of float
        Mean loss per text in each epoch.

    validation_scores_ : list of float or None
        Accuracy of the nearest class mean on the validation texts after each epoch; ``None`` without early stopping.

    stop_reason_ : {"max_iter", "n_iter_no_change", "none"}
        Why training ended: all epochs were run, the accuracy stopped improving, or nothing was trained.

    training_texts_ : ndarray of shape (n_texts,), of objects
        The distinct training texts; with ``keep_texts``.

    training_labels_ : ndarray of shape (n_texts,) or None
        Their labels; with ``keep_texts``.

    training_features_ : ndarray of shape (n_texts, n_components), float32
        Their features, as of ``transform``; with ``keep_texts``.

    training_data_sha256_ : str
        SHA-256 of the texts and labels given to ``fit``, as of ``sha256sum`` for a UTF-8 file of ``text<TAB>label``
        lines in their order (of texts alone with ``finetune="none"``). It identifies the training data of a saved
        model.

    See Also
    --------
    EllipsoidOpenSetClassifier : Fits boundaries to these features.

    Notes
    -----
    Training texts lie closer to their class mean than new texts, so a classifier fitted to their features would have
    too small boundaries. So with ``cross_fit=True`` the features of ``fit_transform`` differ from those of ``fit``
    followed by ``transform``, as in scikit-learn's :class:`~sklearn.preprocessing.TargetEncoder`.

    The fitted encoder contains the embedding model, also in its pickle.

    References
    ----------
    .. [1] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026.
    .. [2] Khosla, P., et al. "Supervised Contrastive Learning." NeurIPS 2020.
    .. [3] Gao, T., Yao, X., Chen, D. "SimCSE: Simple Contrastive Learning of Sentence Embeddings." EMNLP 2021.

    Examples
    --------
    >>> from skellipsoid import SupConTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = SupConTextEncoder(random_state=0).fit(texts, intents)
    >>> encoder.transform(["turn the light on"]).shape
    (1, 384)
    >>> encoder.finetune_  # two texts per class are too few to train on
    'none'
    """

    model_name: str = field(default="sentence-transformers/all-MiniLM-L6-v2", kw_only=False)
    finetune: str = "auto"
    n_components: int | None = None
    pooling: str = "auto"
    layers: str | tuple[int, ...] = "auto"
    prompt: str | None = None
    normalize: bool = True
    loss: str = "supcon"
    temperature: float = 0.07
    learning_rate: float | str = "auto"
    batch_size: int | str = "auto"
    max_iter: int | str = "auto"
    weight_decay: float = 0.01
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 1e-4
    duplicates: str = "once"
    cross_fit: bool = True
    keep_texts: bool = False
    max_length: int | None = None
    dtype: str = "float32"
    open_label: int | str = -1
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = 0

    _settings = ContrastiveSettings
    _without_labels = ", or finetune='none'"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TrainedTextFeatures._parameter_constraints,
        "finetune": [StrOptions({"auto", "head", "full", "none"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "pooling": [StrOptions({"auto", "mean"})],
        "layers": [StrOptions({"auto", "last"}), tuple],
        "prompt": [str, None],
        "normalize": ["boolean"],
        "loss": [StrOptions({"supcon", "softmax"})],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cross_fit": ["boolean"],
        "keep_texts": ["boolean"],
        "dtype": [StrOptions({"float32", "bfloat16"})],
    }

    @property
    def layers_(self) -> tuple[int, ...]:
        """The layers that are read beside the last one."""
        return self._backbone.layers

    def _as_fresh(
        self, features: NDArray[np.float32], training: TrainingTexts, embeddings: torch.Tensor | None
    ) -> NDArray[np.float32]:
        if self.cross_fit:
            known = torch.from_numpy(features[training.rows])
            fresh = self._spread(known, training) if embeddings is None else self._mixed(known, training, embeddings)
            features[training.rows] = fresh.numpy()
        # Matrix products round differently from row to row; the features of duplicates must be exactly equal.
        _, first, equal = np.unique(training.equal, return_index=True, return_inverse=True)
        return features[first[equal]]

    def _spread(self, known: torch.Tensor, training: TrainingTexts) -> torch.Tensor:
        """Features of the known texts that the embedding model was trained on, spread as those of held-out texts."""
        held, classes = training.held, training.classes
        rows = held & training.learns
        fresh, fresh_classes = known[torch.from_numpy(rows)], classes[rows]
        if training.validation.texts:
            fresh = torch.from_numpy(self._embed(training.validation.texts))
            fresh_classes = training.validation.classes
        moved = spread_as_fresh(known, classes, ~held, fresh, fresh_classes, training.learns)
        return shown(moved, read_settings(self))

    def _mixed(self, known: torch.Tensor, training: TrainingTexts, embeddings: torch.Tensor) -> torch.Tensor:
        """Features of the known texts behind a head, averaged with out-of-fold features."""
        device, validation = resolve_device(self.device), training.validation
        return cross_fit(
            embeddings[torch.from_numpy(training.rows)].to(device),
            training.classes,
            len(self.classes_),
            known.to(device),
            read_settings(self),
            training.seed,
            training.learns,
            training.blocks,
            (validation.embeddings.to(device), validation.classes),
        ).cpu()
