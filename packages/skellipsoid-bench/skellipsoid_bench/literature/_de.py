"""DE: classifiers behind all layers of a text model vote, and a text leaves at the layer at which it is decided."""

import hashlib
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skellipsoid._base import (
    as_labels,
    cast_open_label,
    check_groups,
    check_texts,
    explain_out_of_memory,
    fit_context,
    resolve_device,
    resolve_seed,
)
from skellipsoid._core.state_rules import (
    CLASSES,
    LABEL,
    NUMBERS,
    TEXT,
    TRAINED,
    Rule,
    Sizes,
    floats,
    integers,
    or_none,
    refuse,
)
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.training_texts import find_training_texts, read_classes, read_validation
from skellipsoid.baselines import LOFOpenSetClassifier

from .._text_classifier import TextOpenSetClassifier
from ._cross_entropy_encoder import PublishedTraining
from ._de_heads import PIECE, add_votes, train_heads
from ._docs import published_docs
from ._sklearn import Interval, StrOptions
from ._torch.dynamic_ensemble import EnsembleSettings, Vote
from ._torch.layers import LayerHeads, layer_list

#: What helps where memory is short.
REMEDIES = "reduce batch_size or max_length, use a smaller text model, or device='cpu'"


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class DEClassifier(PublishedTraining, TextOpenSetClassifier):
    """Open-set classifier of texts by a dynamic ensemble (DE): the layers of a text model vote.

    It takes texts, and tunes a text model [1]_. Behind each layer l of the model is a head: the mean of the token
    vectors x_l becomes z_l = tanh(W_l x_l + b_l), and a linear classifier predicts a known class. The prediction
    is *open* if the local outlier factor of z_l among the training texts is too large.

    1. Training minimises Σ_l CE(l, y) − β Σ_l min_{j<l} CE(l, p_j). The first sum are the cross-entropies of all
       layers. The second keeps a layer from repeating the most similar of the layers before it.
    2. The loss is the mean over the texts as they are and ``adversarial_steps`` passes with word embeddings that are
       changed against the model: along the gradient of the loss, by at most ``adversarial_norm`` for each text.
    3. A text is decided as soon as the prediction of a layer has at least t · l^γ votes, counted from the first layer
       on. The layers after it are not computed. Without such a prediction the last layer decides.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    model_name : str, default="sentence-transformers/all-MiniLM-L6-v2"
        A sentence-transformers model or any Hugging Face encoder whose layers are a list, as for
        :class:`~skellipsoid.SupConTextEncoder`.

    redundancy : float, default=0.1
        β, in [0, 1].

    adversarial_steps : int, default=2
        Passes with changed word embeddings at each step (the paper's z). 0: none.

    adversarial_norm : float, default=0.4
        Largest length of the change of a text's word embeddings (ε).

    adversarial_rate : float, default=0.15
        Length of a step of that change.

    known_threshold : float, default=1.4
        t of the known classes.

    open_threshold : float, default=1.5
        t of open. With large thresholds the last layer always decides.

    exponent : float, default=0.75
        γ.

    n_neighbors : int, default=20
        Number of neighbours of the local outlier factor.

    contamination : "auto" or float in (0, 0.5], default="auto"
        As for :class:`~skellipsoid.baselines.LOFOpenSetClassifier`: ``"auto"`` takes a factor above 1.5 for open.

    learning_rate : float, default=2e-5
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine.

    {encoder_training}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    weight_ : ndarray of shape (n_layers, width, width)
        W_l; training starts at the identity.

    bias_ : ndarray of shape (n_layers, width)
        b_l.

    class_weight_ : ndarray of shape (n_layers, n_classes, width)
        Weights of the classifiers.

    class_bias_ : ndarray of shape (n_layers, n_classes)
        Their biases.

    outlier_factors_ : list of LOFOpenSetClassifier
        The local outlier factor of each layer.

    groups_ : ndarray of shape (n_samples,)
        Texts with the same number are held out together: the ``groups`` given to ``fit``, else the duplicates found.

    n_iter_ : int
        Number of epochs.

    loss_curve_ : list of float
        Mean loss per text in each epoch.

    validation_scores_ : list of float or None
        Accuracy on the validation texts after each epoch; ``None`` without early stopping.

    stop_reason_ : {"max_iter", "n_iter_no_change"}
        Why training ended: all epochs were run, or the accuracy did not improve any more.

    training_data_sha256_ : str
        SHA-256 of the texts and labels given to ``fit``, as for :class:`~skellipsoid.SupConTextEncoder`.

    See Also
    --------
    skellipsoid.baselines.LOFOpenSetClassifier : The local outlier factor of features.

    Notes
    -----
    A text can leave early only after several layers: with the default thresholds four layers that agree on a known
    class. So a model of 6 layers such as MiniLM leaves at layer 4 at the earliest, and one of 12 layers saves more. The
    votes need one local outlier factor for each layer, which costs time, too.

    The released code takes the first token's vector, chooses the threshold of the outlier factor so that 95 % of the
    known validation texts are kept (the EliDecide paper says ``"auto"``), and leaves the last layer out of the second
    sum. Its early exit is counted, not computed: all layers run. Validation texts are answered by the mean
    log-probability of all layers.

    References
    ----------
    .. [1] Zhou, Y., Yang, J., Wang, P., Qiu, X. "Two Birds One Stone: Dynamic Ensemble for OOD Intent Classification."
       ACL 2023. Public code: zyh190507/Dynamic-Ensemble-for-OOD, ``models.py``, ``train_step_freelb.py`` and
       ``eval.py``; settings of the EliDecide paper.

    Examples
    --------
    >>> from skellipsoid_bench.literature import DEClassifier
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> clf = DEClassifier(max_iter=1, early_stopping=False, n_neighbors=2, random_state=0).fit(texts, intents)
    >>> clf.predict(["turn the light on"]).shape, clf.exit_layers(["turn the light on"]).shape
    ((1,), (1,))
    """

    redundancy: float = 0.1
    adversarial_steps: int = 2
    adversarial_norm: float = 0.4
    adversarial_rate: float = 0.15
    known_threshold: float = 1.4
    open_threshold: float = 1.5
    exponent: float = 0.75
    n_neighbors: int = 20
    contamination: str | float = "auto"
    learning_rate: float = 2e-5

    # What the training reads.
    _settings = EnsembleSettings
    finetune_: ClassVar[str] = "full"

    _state: ClassVar[dict[str, Rule]] = {
        "classes_": CLASSES,
        "open_label_": LABEL,
        "weight_": floats("n_layers", "width", "width"),
        "bias_": floats("n_layers", "width"),
        "class_weight_": floats("n_layers", "n_classes", "width"),
        "class_bias_": floats("n_layers", "n_classes"),
        "outlier_factors_": Rule(
            "a list of LOFOpenSetClassifier",
            lambda value: isinstance(value, list) and all(isinstance(item, LOFOpenSetClassifier) for item in value),
        ),
        "groups_": integers("n_samples"),
        **TRAINED,
        "validation_scores_": or_none(NUMBERS),
        "stop_reason_": Rule("a reason", lambda value: str(value) in ("max_iter", "n_iter_no_change")),
        "training_data_sha256_": TEXT,
        "_backbone": Rule("a text model", lambda value: isinstance(value, TextBackbone)),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PublishedTraining._parameter_constraints,
        "redundancy": [Interval(Real, 0, 1, closed="both")],
        "adversarial_steps": [Interval(Integral, 0, None, closed="left")],
        "adversarial_norm": [Interval(Real, 0, None, closed="neither")],
        "adversarial_rate": [Interval(Real, 0, None, closed="neither")],
        "known_threshold": [Interval(Real, 0, None, closed="neither")],
        "open_threshold": [Interval(Real, 0, None, closed="neither")],
        "exponent": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "contamination": [Interval(Real, 0, 0.5, closed="right"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Tune the text model with all heads, and fit the local outlier factors.

        A fit that fails or is interrupted leaves the classifier as it was.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
            List, tuple, NumPy array, pandas or polars Series, Arrow array, or a table of one column.
        y : array-like of shape (n_samples,)
            Labels. Texts with the label ``open_label`` are not used.
        groups : array-like of shape (n_samples,), default=None
            Group of each text: conversation, author, template. Texts of one group are held out together. ``None``: the
            duplicates found are the groups.
        X_val : sequence of str of shape (n_val,), default=None
            Validation texts, with ``early_stopping=True``. They are not trained on.
        y_val : array-like of shape (n_val,), default=None
            Their labels, of the classes in ``y``. Texts with the label ``open_label`` are left out.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            As :meth:`skellipsoid.SupConTextEncoder.fit`; and if the layers of the text model are no list.
        OSError
            If the text model is not found.
        """
        texts = check_texts(X)
        names, classes = read_classes(texts, y, self.open_label, type(self).__name__)
        validation = read_validation(X_val, y_val, names, self.open_label, reads=self.early_stopping)
        given, device = check_groups(groups, len(texts)), resolve_device(self.device)
        backbone = TextBackbone.load(str(self.model_name), self.max_length, "mean", "").to(device)
        n_layers = len(layer_list(backbone.transformer))
        settings = EnsembleSettings(**{each.name: getattr(self, each.name) for each in fields(EnsembleSettings)})
        with explain_out_of_memory(f"training of {self.model_name!r} on {len(texts)} texts", REMEDIES):
            holds_out, near = self.early_stopping and not validation.texts, None
            if holds_out and self.duplicates != "off":
                near = backbone.embed(texts, verbose=self.verbose)
            training = find_training_texts(texts, classes, given, near, self.duplicates, holds_out=holds_out)
            training = training._replace(validation=validation, seed=resolve_seed(self.random_state))
            heads, history, features = train_heads(backbone, texts, training, len(names), n_layers, device, settings)
        self._store(backbone, heads, history)
        self.classes_, self.groups_ = names, training.groups
        self.open_label_ = cast_open_label(self.open_label, as_labels(y))
        self.training_data_sha256_ = _hashed(texts, as_labels(y).tolist())
        known = training.classes[training.learns]
        factors = LOFOpenSetClassifier(
            n_neighbors=self.n_neighbors, scope="all", contamination=self.contamination, duplicates="off"
        )
        self.outlier_factors_ = [clone(factors).fit(features[:, layer], known) for layer in range(n_layers)]
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each text with a known class, or with ``open_label_``.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        answers, _ = self._vote(X, with_open=True)
        return np.asarray(self._possible_labels()[answers])

    def predict_known(self, X: ArrayLike) -> NDArray[Any]:
        """Label each text with a known class, never open: the vote without outlier factors.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self.classes_[self._vote(X, with_open=False)[0]])

    def exit_layers(self, X: ArrayLike) -> NDArray[np.int64]:
        """Count the layers after which each text is decided.

        The speed-up of the paper is the number of layers, ``len(weight_)``, divided by the mean of these.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        n_layers : ndarray of shape (n_samples,)
            From 1 to the number of layers.
        """
        return self._vote(X, with_open=True)[1]

    def speed_up(self, X: ArrayLike) -> float:
        """Divide the number of layers by the mean number of layers that texts need.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)

        Returns
        -------
        speed_up : float
            1 if the last layer decides all texts.
        """
        return float(len(self.weight_) / self.exit_layers(X).mean())

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has ended."""
        return hasattr(self, "outlier_factors_")

    def _check_state(self, sizes: Sizes) -> None:
        n_layers, width = sizes["n_layers"], sizes["width"]
        refuse(len(self.outlier_factors_) != n_layers, f"outlier_factors_ must hold {n_layers} of them")
        for factor in self.outlier_factors_:
            refuse(factor.n_features_in_ != width, f"an outlier factor takes {factor.n_features_in_} features")
        found = len(layer_list(self._backbone.transformer)), self._backbone.width
        refuse(found != (n_layers, width), f"its text model has {found[0]} layers of the width {found[1]}")

    def _store(self, backbone: TextBackbone, heads: LayerHeads, history: Any) -> None:
        self._backbone = backbone
        arrays = {name: value.detach().cpu().numpy() for name, value in heads.named_parameters()}
        self.weight_, self.bias_ = arrays["weight"], arrays["bias"]
        self.class_weight_, self.class_bias_ = arrays["class_weight"], arrays["class_bias"]
        self.n_iter_, self.loss_curve_ = history.n_iter, history.losses
        self.validation_scores_ = history.scores or None
        self.stop_reason_ = history.stop_reason

    def _vote(self, X: ArrayLike, *, with_open: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Answers (the number of classes stands for open) and exit layers of texts; equal texts are run once."""
        check_is_fitted(self)
        texts = check_texts(X)
        device = resolve_device(self.device, fallback=True)
        backbone = self._backbone.to(device)
        backbone.model.eval()
        arrays = self.weight_, self.bias_, self.class_weight_, self.class_bias_
        heads = [torch.from_numpy(array).to(device) for array in arrays]
        distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        tokens = backbone.tokenize(list(distinct))
        answers, exits = np.empty(len(tokens), dtype=np.int64), np.empty(len(tokens), dtype=np.int64)
        lengths = np.array([len(ids) for ids in tokens])
        thresholds = np.append(np.full(len(self.classes_), self.known_threshold), self.open_threshold)
        factors = self.outlier_factors_ if with_open else []
        with explain_out_of_memory(f"answering {len(texts)} texts with {self.model_name!r}", REMEDIES):
            order = np.argsort(lengths, kind="stable")  # texts of a piece are padded to one length
            for piece in np.split(order, range(PIECE, len(order), PIECE)):
                vote = Vote(len(piece), len(self.weight_), thresholds, self.exponent)
                add_votes(vote, self._backbone, [tokens[i] for i in piece], heads, factors)
                answers[piece], exits[piece] = vote.answers, vote.exit_layers
        places = [distinct[text] for text in texts]
        return answers[places], exits[places]


def _hashed(texts: list[str], labels: list[Any]) -> str:
    """SHA-256 of a UTF-8 file of ``text<TAB>label`` lines."""
    lines = "".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True))
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
