"""How an encoder is trained: what is trained, on which rows, with which settings; features of the training texts."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from .._core.labels import as_labels
from .._core.sklearn import fit_context
from .._core.texts import check_texts, first_of_equal, hash_table
from .._core.validation import check_groups, unfit
from .._core.warn import warn
from .._torch.devices import explain_out_of_memory, resolve_device, resolve_seed
from .._torch.shards import Shards
from .._torch.training import History
from .text_features import REMEDIES, TextFeatures
from .torch.backbone import TextBackbone
from .torch.contrastive import (
    ContrastiveSettings,
    FrozenRows,
    TokenRows,
    cross_fit,
    spread_as_fresh,
    start_projection,
    train_projection,
)
from .torch.objectives import TrainingSettings, shown
from .training_texts import (
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
#: Distinct texts per class from which ``finetune="auto"`` trains a head, see benchmarks/texts_per_class.py.
HEAD_FROM = 25
#: With so many training texts for each dimension the covariance of embeddings and a sphere have the same weight.
SPHERE_ROWS = 8


class TrainedTextFeatures(TextFeatures):
    """Base of a text encoder: the fit, whose parameters are those of the encoder."""

    n_components: int | None
    early_stopping: bool
    cross_fit: bool = False
    duplicates: str
    keep_texts: bool
    max_length: int | None
    open_label: int | str
    random_state: int | np.random.RandomState | None
    #: What the training reads of the encoder, and its values for ``"auto"`` by what is trained.
    _settings: ClassVar[type[TrainingSettings]] = ContrastiveSettings
    _auto: ClassVar[Mapping[str, Mapping[str, float]]] = AUTO

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
            msg = (
                f"n_components={self.n_components} needs a linear layer, but finetune='none' has none; use "
                "finetune='head' or n_components=None."
            )
            raise ValueError(msg)
        texts = check_texts(X)
        labels = None if self.finetune == "none" else self._check_labels(texts, y)
        validation = None
        if labels is not None:
            validation = read_validation(X_val, y_val, labels[0], self.open_label, reads=self.early_stopping)
        given = check_groups(groups, len(texts))
        kept = read_kept_labels(texts, y) if self.keep_texts else None
        device = resolve_device(self.device)
        backbone = TextBackbone.load(str(self.model_name), self.max_length, self.pooling).to(device)
        # Unfitted until the end: an interrupted fit must not mix the weights of one fit with the text model of another.
        unfit(self)
        self._backbone = backbone
        self.training_data_sha256_ = hash_table(texts, None if labels is None else as_labels(y).tolist())
        what = f"{self.finetune!r} training of {self.model_name!r} on {len(texts)} texts"
        with explain_out_of_memory(what, REMEDIES):
            embeddings = None if self.finetune == "full" else self._pooled(texts)
            training, history = self._train(texts, labels, given, embeddings, validation, device)
            if self.keep_texts:
                self._keep_texts(texts, kept, embeddings)
        self.n_iter_ = history.n_iter
        self.loss_curve_ = history.losses
        self.validation_scores_ = history.scores or None
        self.stop_reason_ = "n_iter_no_change" if history.stopped_early else "max_iter" if history.n_iter else "none"
        return texts, training, embeddings

    def get_metadata_routing(self) -> Any:
        """Get metadata routing of this object.

        Without early stopping nothing reads validation texts. So in a Pipeline they pass the encoder by, unless
        ``set_fit_request`` says otherwise.

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

    def _check_fit_params(self, fit_params: Mapping[str, Any]) -> None:
        """Raise an error for what ``fit_transform`` does not take."""
        if fit_params:
            taken = "X, y, groups, X_val and y_val"
            msg = f"{type(self).__name__}.fit_transform takes {taken}, got {sorted(fit_params)}; leave these out."
            raise TypeError(msg)

    def _check_labels(self, texts: list[str], y: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Give the classes, and the class index of each text, −1 for open texts."""
        names, classes = read_classes(
            texts, y, self.open_label, f"{type(self).__name__} with finetune={self.finetune!r}"
        )
        if len(names) < 2 and (self.finetune != "auto" or self.n_components is not None):
            warn(
                f"y has the single known class {names.tolist()[0]!r}, which training cannot separate from another; "
                "add a second class, or use SupConTextEncoder(finetune='none')."
            )
        return names, classes

    def _keep_texts(self, texts: list[str], labels: NDArray[Any] | None, embeddings: torch.Tensor | None) -> None:
        """Keep what names the nearest training texts; a copy of a text says nothing more."""
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
        validation: ValidationTexts | None,
        device: torch.device,
    ) -> tuple[TrainingTexts | None, History]:
        """Train what is to be trained; without a trained layer there are no training texts."""
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
        holds_out, near = holds_out and validation is None, embeddings
        if near is None and holds_out and self.duplicates != "off":  # near duplicates matter only if texts are held out
            near = self._pooled(texts)
        if embeddings is not None and validation is not None:
            validation = validation._replace(embeddings=self._pooled(validation.texts))
        training = find_training_texts(texts, classes, groups, near, self.duplicates, holds_out=holds_out)
        training = training._replace(validation=validation, seed=seed)
        self.groups_, n_classes = training.groups, len(self.classes_)
        self.finetune_ = choose_mode(self.finetune, self.n_components, training, n_classes)
        if self.finetune_ == "none":
            return None, History()
        self.weight_, self.bias_, history = train_layer(
            self._backbone,
            texts,
            training,
            embeddings,
            n_classes,
            self.n_components,
            self.pooling,
            read_settings(self),
            device,
        )
        self._width = self.weight_.shape[1]
        if embeddings is not None:
            learns = training.learns
            rows, of_rows = embeddings[torch.from_numpy(training.rows[learns])], training.classes[learns]
            self._embedding_means, self._embedding_covariance = describe_classes(rows, of_rows, n_classes)
        if validation is None:
            held_blocks = training.blocks[training.learns][history.held_out]
            training = training._replace(held=np.isin(training.blocks, held_blocks))
        return training, history


def choose_mode(finetune: str, n_components: int | None, training: TrainingTexts, n_classes: int) -> str:
    """Choose what is trained; a single class has nothing to be separated from."""
    if finetune != "auto":
        return finetune
    trains = training.learns.sum() >= HEAD_FROM * n_classes and n_classes > 1
    return "head" if trains or n_components is not None else "none"


def describe_classes(
    embeddings: torch.Tensor, classes: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Means of classes among unit embeddings, (n_classes, width), and their common covariance, (width, width).

    The covariance is shrunk towards a sphere, about as the boundaries of frozen features choose it.
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


def train_layer(
    backbone: TextBackbone,
    texts: list[str],
    training: TrainingTexts,
    embeddings: torch.Tensor | None,
    n_classes: int,
    n_components: int | None,
    pooling: str,
    settings: TrainingSettings,
    device: torch.device,
) -> tuple[NDArray[np.float32], NDArray[np.float32], History]:
    """Train W and b, and, without embeddings of a frozen model, the text model; validation texts are the last rows."""
    learns, classes = training.rows[training.learns], training.classes[training.learns]
    validation, n_validation = training.validation, 0
    if validation is not None:
        classes, n_validation = np.concatenate([classes, validation.classes]), len(validation.classes)
    rows: FrozenRows | TokenRows
    if embeddings is None:
        new = [] if validation is None else validation.texts
        rows = TokenRows(backbone, [*(texts[i] for i in learns), *new], pooling)
        width = rows.plain(np.array([0])).shape[1]
    else:
        parts = [embeddings[torch.from_numpy(learns)]]
        if validation is not None and validation.embeddings is not None:
            parts.append(validation.embeddings)
        rows, width = FrozenRows(torch.cat(parts).to(device)), embeddings.shape[1]
    projection = start_projection(width, n_components or width, training.seed).to(device)
    blocks = training.blocks[training.learns]
    history = train_projection(rows, classes, n_classes, projection, settings, training.seed, blocks, n_validation)
    backbone.model.eval()
    return projection.weight.detach().cpu().numpy(), projection.bias.detach().cpu().numpy(), history


def spread(
    features: NDArray[np.float32],
    training: TrainingTexts,
    fresh: tuple[NDArray[np.float32], NDArray[np.int64]] | None,
    settings: ContrastiveSettings,
) -> NDArray[np.float32]:
    """Features of the known training texts of a tuned text model, spread as those of fresh or held-out texts."""
    held = np.zeros(len(features), dtype=bool) if training.held is None else training.held
    if fresh is None:
        rows = held & training.learns
        fresh = features[rows], training.classes[rows]
    given = torch.from_numpy(features), training.classes, ~held
    moved = spread_as_fresh(*given, torch.from_numpy(fresh[0]), fresh[1], training.learns)
    return np.asarray(shown(moved, settings).numpy(), dtype=np.float32)


def cross_fitted(
    embeddings: torch.Tensor,
    training: TrainingTexts,
    features: NDArray[np.float32],
    n_classes: int,
    settings: ContrastiveSettings,
    device: torch.device,
) -> NDArray[np.float32]:
    """Features of the known training texts, distributed as those of new texts."""
    validation = None
    if training.validation is not None and training.validation.embeddings is not None:
        validation = training.validation.embeddings.to(device), training.validation.classes
    mixed = cross_fit(
        embeddings[torch.from_numpy(training.rows)].to(device),
        training.classes,
        n_classes,
        torch.from_numpy(features).to(device),
        settings,
        training.seed,
        training.learns,
        training.blocks,
        validation,
    )
    return np.asarray(mixed.cpu().numpy(), dtype=np.float32)
