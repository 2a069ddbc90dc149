"""The fit of a text encoder: what is trained, on which texts, with which settings, and the features it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from skellipsoid_runtime._containers import check_texts

from .._core.fitted_state import fit_context
from .._core.labels import as_labels
from .._core.sklearn import Interval, StrOptions
from .._core.texts import first_of_equal, hash_table
from .._core.validation import check_groups
from .._core.warn import warn
from .._torch.devices import explain_out_of_memory, resolve_device, resolve_seed
from .._torch.shards import Shards
from .._torch.training_loop import History
from .text_features import REMEDIES, TextFeatures
from .torch.backbone import TextBackbone
from .torch.contrastive import start_projection, train_projection
from .torch.rows import FrozenRows, Rows, TokenRows
from .training_texts import (
    NO_TEXTS,
    TrainingTexts,
    ValidationTexts,
    find_training_texts,
    read_classes,
    read_kept_labels,
    read_validation,
)

#: What ``"auto"`` stands for. Full fine-tuning moves millions of pretrained weights, a head one matrix.
AUTO: dict[str, dict[str, float]] = {
    "head": {"learning_rate": 1e-3, "batch_size": 256, "max_iter": 60},
    "full": {"learning_rate": 5e-5, "batch_size": 64, "max_iter": 4},
}
#: Distinct texts per class from which ``finetune="auto"`` trains a head (studies/layers.py, texts_per_class.py).
HEAD_FROM = 75
#: Training texts per dimension at which the covariance of embeddings is shrunk half-way to a sphere.
SPHERE_ROWS = 8


class TrainedTextFeatures(TextFeatures):
    """Base of a text encoder that is trained: its fit."""

    n_components: int | None
    layers: str | Sequence[int] = "last"
    early_stopping: bool
    cross_fit: bool
    duplicates: str
    keep_texts: bool
    max_length: int | None
    open_label: int | str
    random_state: int | np.random.RandomState | None
    #: Values for ``"auto"``, by what is trained.
    _auto: ClassVar[Mapping[str, Mapping[str, float]]] = AUTO
    #: End of the error for missing labels: the alternative without labels.
    _without_labels: ClassVar[str] = ""
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model_name": [str, Path],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "max_length": [Interval(Integral, 2, None, closed="left"), None],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Train the encoder on labelled texts.

        A fit that fails or is interrupted leaves the encoder as it was.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
            Texts: list, tuple, NumPy array, pandas or polars Series, Arrow array, or a table of one column.
        y : array-like of shape (n_samples,), default=None
            Labels; not needed if nothing is trained. Texts with the label ``open_label`` are not trained on.
        groups : array-like of shape (n_samples,), default=None
            Group of each text: conversation, author, template. Texts of one group are held out together. ``None``: the
            duplicates found are the groups. Read more in the :ref:`User Guide <repeated>`.
        X_val : sequence of str of shape (n_val,), default=None
            Validation set, with ``early_stopping=True``. It is not trained on, and not read if nothing is trained. In a
            Pipeline see the :ref:`User Guide <full_as_released>`.
        y_val : array-like of shape (n_val,), default=None
            Their labels, of the classes in ``y``. Texts with the label ``open_label`` are left out.

        Returns
        -------
        self : object
            The fitted encoder.

        Raises
        ------
        ValueError
            If ``X`` is not a sequence of strings or is empty, if ``y`` or a label in it is missing, if the numbers of
            texts and labels differ, if labels mix numbers and strings, if groups are missing, or if every text is open.
            If only one of ``X_val`` and ``y_val`` is given, if ``X_val`` is empty, if a label in ``y_val`` is not in
            ``y``, or if they are given with ``early_stopping=False``.
        OSError
            If the embedding model is not found.
        """
        self._fit(X, y, groups, X_val, y_val)
        return self

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        **fit_params: Any,
    ) -> NDArray[np.float32]:
        """Train the encoder and return the features of the same texts.

        These are the features of ``transform``, unless something is trained with ``cross_fit=True``: then they are
        distributed like those of new texts. Frozen embeddings are computed only once.

        Parameters
        ----------
        X : sequence of str of shape (n_samples,)
        y : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
        X_val : sequence of str of shape (n_val,), default=None
        y_val : array-like of shape (n_val,), default=None
            As in ``fit``.
        **fit_params : dict
            Not used; present for scikit-learn's interface.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components), float32
        """
        if fit_params:
            taken = "X, y, groups, X_val and y_val"
            raise TypeError(
                f"{type(self).__name__}.fit_transform takes {taken}, got {sorted(fit_params)}; leave these out."
            )
        texts, training, embeddings = self._fit(X, y, groups, X_val, y_val)
        features = self._embed(texts) if embeddings is None else self._project(embeddings)
        if training is None:
            return features
        fresh = self._as_fresh(features, training, embeddings)
        return np.where(features.any(axis=1, keepdims=True), fresh, features)  # zeros of unread texts stay

    def _as_fresh(
        self, features: NDArray[np.float32], training: TrainingTexts, embeddings: torch.Tensor | None
    ) -> NDArray[np.float32]:
        """Compute what ``fit_transform`` returns if a layer was trained, from the features of all texts."""
        return features

    @fit_context(prefer_skip_nested_validation=True)
    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        groups: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
    ) -> tuple[list[str], TrainingTexts | None, torch.Tensor | None]:
        """Fit; returns the checked texts, the known ones if a layer was trained, and embeddings of a frozen model."""
        if self.finetune == "none" and self.n_components is not None:
            raise ValueError(
                f"n_components={self.n_components} needs a linear layer, but finetune='none' has none; use "
                "finetune='head' or n_components=None."
            )
        texts = check_texts(X)
        labels, validation = None, NO_TEXTS
        if self.finetune != "none":
            labels = self._check_labels(texts, y)
            validation = read_validation(X_val, y_val, labels[0], self.open_label, reads=self.early_stopping)
        if self.prompt is not None:
            check_texts([self.prompt], "prompt")
        given = check_groups(groups, len(texts))
        kept = read_kept_labels(texts, y) if self.keep_texts else None
        device = resolve_device(self.device)
        backbone = TextBackbone.load(str(self.model_name), self.max_length, self.pooling, self.prompt).to(device)
        layers = choose_layers(self, backbone)
        self._backbone = backbone
        self.training_data_sha256_ = hash_table(texts, None if labels is None else as_labels(y).tolist())
        what = f"{self.finetune!r} training of {self.model_name!r} on {len(texts)} texts"
        with explain_out_of_memory(what, REMEDIES):
            embeddings = None if self.finetune == "full" else self._pooled(texts, layers, verbose=self.verbose)
            training, history = self._train(texts, labels, given, embeddings, validation, device)
            if self.keep_texts:
                self._keep_texts(texts, kept, embeddings)
        self.n_iter_ = history.n_iter
        self.loss_curve_ = history.losses
        self.validation_scores_ = history.scores or None
        self.stop_reason_ = history.stop_reason
        return texts, training, embeddings

    def get_metadata_routing(self) -> Any:
        """Get metadata routing of this object.

        Without early stopping the validation set is not used, so a Pipeline does not pass it to the encoder, unless
        ``set_fit_request`` asks for it.

        Returns
        -------
        routing : MetadataRequest
        """
        routing = super().get_metadata_routing()
        if not self.early_stopping or self.finetune == "none":
            for name in ("X_val", "y_val"):
                if routing.fit.requests.get(name) is None:
                    routing.fit.add_request(param=name, alias=False)
        return routing

    def _check_labels(self, texts: list[str], y: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the classes, and the class index of each text, −1 for open texts."""
        who = f"{type(self).__name__} with finetune={self.finetune!r}"
        names, classes = read_classes(texts, y, self.open_label, who, self._without_labels)
        if len(names) < 2 and (self.finetune != "auto" or self.n_components is not None):
            warn(
                f"y has the single known class {names.tolist()[0]!r}, but training needs at least two; add a second "
                "class, or set finetune to 'none'."
            )
        return names, classes

    def _keep_texts(self, texts: list[str], labels: NDArray[Any] | None, embeddings: torch.Tensor | None) -> None:
        """Keep the distinct training texts, for the names of the nearest ones."""
        rows = first_of_equal(texts)
        chosen = [texts[i] for i in rows]
        self.training_texts_ = np.array(chosen, dtype=object)
        self.training_labels_ = None if labels is None else labels[rows]
        self.training_features_ = self._embed(chosen) if embeddings is None else self._project(embeddings[rows])

    def _train(
        self,
        texts: list[str],
        labels: tuple[NDArray[Any], NDArray[np.int64]] | None,
        groups: NDArray[np.int64] | None,
        embeddings: torch.Tensor | None,
        validation: ValidationTexts,
        device: torch.device,
    ) -> tuple[TrainingTexts | None, History]:
        """Train W and b, or the whole model, or nothing; in the last case there are no training texts."""
        self.finetune_, self.weight_, self.bias_ = "none", None, None
        if embeddings is not None:
            self._width = embeddings.shape[1]
        if labels is None:
            return None, History()
        self.classes_, classes = labels
        seed = resolve_seed(self.random_state)
        if self.finetune == "full":
            seed = Shards.of_group().agreed(seed)
        holds_out = self.early_stopping or (self.finetune == "full" and self.cross_fit)
        holds_out, near = holds_out and not validation.texts, embeddings
        if near is None and holds_out and self.duplicates != "off":  # near duplicates matter only if texts are held out
            near = self._pooled(texts)
        if embeddings is not None and validation.texts:
            validation = validation._replace(embeddings=self._pooled(validation.texts))
        training = find_training_texts(texts, classes, groups, near, self.duplicates, holds_out=holds_out)
        training = training._replace(validation=validation, seed=seed)
        self.groups_, n_classes = training.groups, len(self.classes_)
        self.finetune_ = choose_mode(self.finetune, self.n_components, training, n_classes)
        if self.finetune_ == "none":
            return None, History()
        history = self._train_layer(texts, training, embeddings, device)
        if embeddings is not None:
            learns = training.learns
            rows, of_rows = embeddings[torch.from_numpy(training.rows[learns])], training.classes[learns]
            self._embedding_means, self._embedding_covariance = describe_classes(rows, of_rows, n_classes)
        if not validation.texts:
            held_blocks = training.blocks[training.learns][history.held_out]
            training = training._replace(held=np.isin(training.blocks, held_blocks))
        return training, history

    def _train_layer(
        self, texts: list[str], training: TrainingTexts, embeddings: torch.Tensor | None, device: torch.device
    ) -> History:
        """Train W and b, and without embeddings the embedding model, too; the validation set is the last rows."""
        learns, validation = training.rows[training.learns], training.validation
        rows: Rows
        if embeddings is None:
            rows = TokenRows(self._backbone, [*(texts[i] for i in learns), *validation.texts])
            self._width = rows.plain(np.array([0])).shape[1]
        else:
            rows = FrozenRows(torch.cat([embeddings[torch.from_numpy(learns)], validation.embeddings]).to(device))
        projection = start_projection(self._width, self.n_components or self._width, training.seed).to(device)
        history = train_projection(
            rows,
            np.concatenate([training.classes[training.learns], validation.classes]),
            len(self.classes_),
            projection,
            read_settings(self),
            training.seed,
            training.blocks[training.learns],
            len(validation.texts),
        )
        self._backbone.model.eval()
        self.weight_, self.bias_ = (each.detach().cpu().numpy() for each in (projection.weight, projection.bias))
        return history


def choose_layers(encoder: TrainedTextFeatures, backbone: TextBackbone) -> tuple[int, ...]:
    """Choose the intermediate layers that are read beside the last one.

    Raises
    ------
    ValueError
        If the embedding model does not have the given layers.
    """
    chosen: Any = encoder.layers
    model = backbone.model
    if isinstance(chosen, str):
        can = encoder.finetune != "full" and model.n_layers > 0 and model.width == model.token_width
        return (0, model.n_layers // 2) if chosen == "auto" and can else ()
    if not all(isinstance(each, int | np.integer) and each >= 0 for each in chosen):
        raise ValueError(f"layers={chosen!r} must be 'auto', 'last', or a tuple of whole numbers from 0.")
    numbers = tuple(int(each) for each in chosen)
    if not numbers:
        return ()
    model.check_layers(numbers)
    if encoder.finetune == "full":
        raise ValueError(
            f"layers={numbers} needs a frozen embedding model, but finetune='full' trains it; use layers='last', or "
            "finetune='head'."
        )
    return numbers


def choose_mode(finetune: str, n_components: int | None, training: TrainingTexts, n_classes: int) -> str:
    """Choose what is trained; with a single class nothing is."""
    if finetune != "auto":
        return finetune
    trains = training.learns.sum() >= HEAD_FROM * n_classes and n_classes > 1
    return "head" if trains or n_components is not None else "none"


def describe_classes(
    embeddings: torch.Tensor, classes: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Means of classes among unit embeddings, (n_classes, width), and their common covariance, (width, width).

    The covariance is shrunk towards a sphere, about as strongly as the boundaries on frozen features are.
    """
    rows = torch.nn.functional.normalize(embeddings.double(), dim=1)
    n_rows, width = rows.shape
    of_row = torch.from_numpy(classes)
    means = rows.new_zeros(n_classes, width).index_add_(0, of_row, rows)
    counts = torch.bincount(of_row, minlength=n_classes)[:, None]
    means /= counts.clamp(min=1)
    covariance = (rows.T @ rows - means.T @ (counts * means)) / max(1, n_rows - n_classes)
    share = SPHERE_ROWS * width / (SPHERE_ROWS * width + n_rows)
    covariance = (1 - share) * covariance + share * covariance.trace() / width * torch.eye(width, dtype=rows.dtype)
    return means.float().numpy(), covariance.float().numpy()


def read_settings(encoder: Any) -> Any:
    """Read the settings of the training from the parameters of a fitted encoder."""
    chosen: dict[str, Any] = {field.name: getattr(encoder, field.name) for field in fields(encoder._settings)}
    chosen |= {name: value for name, value in encoder._auto[encoder.finetune_].items() if isinstance(chosen[name], str)}
    return encoder._settings(**chosen)
