"""Reads the training and validation texts of an encoder, their labels and duplicates."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from torch.nn import functional

from skellipsoid_runtime._containers import check_texts

from .._core.characters import normalize_text
from .._core.labels import as_kind_of, as_labels, cast_open_label, check_given, is_text
from .._core.texts import equal_texts
from .._core.validation import enumerated, number
from .._samples.duplicates import find_duplicates
from .._samples.equal import in_order
from .._samples.samples import joined


class ValidationTexts(NamedTuple):
    """Texts of known classes in the validation set."""

    texts: list[str]
    classes: NDArray[np.int64]  # (n_texts,)
    embeddings: torch.Tensor = torch.empty(0)  # (n_texts, width), of a frozen model


NO_TEXTS = ValidationTexts([], np.empty(0, dtype=np.int64))


class TrainingTexts(NamedTuple):
    """The known texts: which are trained on, which are duplicates, which are held out."""

    rows: NDArray[np.int64]  # (n_known,) positions among all texts
    classes: NDArray[np.int64]  # (n_known,)
    learns: NDArray[np.bool_]  # (n_known,) whether it is trained on: one of several exact duplicates
    blocks: NDArray[np.int64]  # (n_known,) texts that are held out together
    groups: NDArray[np.int64]  # (n_samples,)
    equal: NDArray[np.int64]  # (n_samples,) texts with the same features
    held: NDArray[np.bool_]  # (n_known,) texts that the training held out
    validation: ValidationTexts = NO_TEXTS  # texts that are given
    seed: int = 0  # of the whole fit


def read_classes(
    texts: list[str], y: ArrayLike | None, open_label: Any, who: str, remedy: str = ""
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes, and the class index of each text, −1 for open texts; ``who`` is named in errors.

    Raises
    ------
    ValueError
        If labels are missing, if there is not one for each text, or if every text is open.
    """
    check_given(y, who, remedy)
    labels = as_labels(y)
    check_consistent_length(texts, labels)
    known = labels != cast_open_label(open_label, labels)
    if not known.any():
        raise ValueError(
            f"All {len(texts)} texts have the open label {open_label!r}; y needs at least one known class."
        )
    names, codes = np.unique(labels[known], return_inverse=True)
    classes = np.full(len(texts), -1, dtype=np.int64)
    classes[known] = codes
    return names, classes


def read_validation(
    X_val: ArrayLike | None, y_val: ArrayLike | None, names: NDArray[Any], open_label: Any, *, reads: bool
) -> ValidationTexts:
    """Check the validation set, and drop its open texts; it may be empty.

    Raises
    ------
    ValueError
        If only one of the two is given, if they would not be used, if they are not texts with one label each, or if a
        label is neither a class nor the open label.
    """
    if X_val is None and y_val is None:
        return NO_TEXTS
    if X_val is None or y_val is None:
        given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(
            f"{given} is given without {missing}: pass the validation texts and one label for each of them."
        )
    if not reads:
        raise ValueError(
            "X_val is given, but is not used with early_stopping=False; pass early_stopping=True, or leave it out."
        )
    texts, labels = check_texts(X_val, "X_val"), as_labels(y_val, "y_val")
    if len(texts) != len(labels):
        raise ValueError(
            f"X_val has {len(texts)} texts, but y_val has {len(labels)} labels; pass one label for each text."
        )
    labels = as_kind_of(labels, names, "y_val", "y")
    known = np.flatnonzero(labels != cast_open_label(open_label, labels))
    unknown = np.setdiff1d(labels[known], names)
    if len(unknown):
        raise ValueError(
            f"y_val holds {enumerated(unknown)}, but its labels must be among the {len(names)} classes of y; drop "
            f"these texts, or give them the open label {open_label!r}."
        )
    if not len(known):
        raise ValueError(
            f"All {len(texts)} texts of X_val have the open label {open_label!r}, but early stopping needs texts of "
            "known classes; pass some, or leave X_val out."
        )
    return ValidationTexts([texts[i] for i in known], np.searchsorted(names, labels[known]).astype(np.int64))


def read_kept_labels(texts: list[str], y: ArrayLike | None) -> NDArray[Any] | None:
    """Check the labels that are kept with the texts, if there are any."""
    if y is None:
        return None
    labels = as_labels(y)
    check_consistent_length(texts, labels)
    return labels.astype(object) if is_text(labels) else labels


def find_training_texts(
    texts: list[str],
    classes: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    embeddings: torch.Tensor | None,
    duplicates: str,
    *,
    holds_out: bool,
) -> TrainingTexts:
    """Find duplicates, and the texts that the encoder is trained on.

    Parameters
    ----------
    texts : list of str
    classes : ndarray of shape (n_samples,)
        −1 for open texts.
    groups : ndarray of shape (n_samples,) or None
        The caller's; ``None``: the duplicates are the groups.
    embeddings : Tensor of shape (n_samples, width) or None
        ``None``: near duplicates are not searched.
    duplicates : {"once", "each", "off"}
    holds_out : bool
        Whether a validation set is held out. Copies of one text are then held out together, whatever their labels and
        ``duplicates``, so that no validation text is trained on.
    """
    units = np.arange(len(texts))
    learns = np.ones(len(texts), dtype=bool)
    if duplicates != "off":
        equal = equal_texts(texts, classes)
        units = equal
        if embeddings is not None:
            directions = functional.normalize(embeddings, dim=1).numpy()
            units = joined(equal, find_duplicates(directions, classes))
        if duplicates == "once":
            learns = np.isin(np.arange(len(texts)), np.unique(equal, return_index=True)[1])
    found = units if groups is None else in_order(groups)
    known = np.flatnonzero(classes >= 0)
    blocks = joined(units, found)
    same = number(zip(texts, blocks.tolist(), strict=True))
    if holds_out:
        blocks = joined(number(map(normalize_text, texts)), blocks)
    held = np.zeros(len(known), dtype=bool)
    return TrainingTexts(known, classes[known], learns[known], blocks[known], found, same, held)
