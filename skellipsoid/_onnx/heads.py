"""Scaling steps and scores of all classifiers in closed form, in torch operators that ONNX has."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import Normalizer, StandardScaler
from torch import Tensor

from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._ellipsoid.math.tiles import PaddedAxes
from .._held_out.table import N_FIRST
from .._traffic_model.zones import NO_THRESHOLD
from ..baselines import (
    BallClassifier,
    EnergyClassifier,
    MahalanobisClassifier,
    MaxLogitClassifier,
    PLDAClassifier,
    SoftmaxOpenSetClassifier,
)
from ..baselines._covariance import SMALLEST_VARIANCE

#: Assigned class (n_rows,), its score (n_rows,), and the scores of all classes (n_rows, n_classes); where these do not
#: say it, the first classes in their order (n_rows, n_first) and how far the second is behind the first (n_rows,).
Scores = tuple[Tensor, ...]
Score = Callable[[Tensor], Scores]
Step = Callable[[Tensor], Tensor]


class Head(NamedTuple):
    """The classifier as a function of features."""

    score: Score
    bytes_per_row: int  # memory that it takes for each row, about


def step_of(step: Any, dtype: torch.dtype) -> Step:
    """Give a fitted transformer of features as a function of tensors."""

    def given(values: Any) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=dtype)

    return _STEPS[type(step)](step, given)


def head_of(classifier: Any, dtype: torch.dtype) -> Head:
    """Give a fitted classifier as a function of tensors of a type."""
    return _HEADS[type(classifier)](classifier, dtype)


def _scaler(step: StandardScaler, given: Callable[[Any], Tensor]) -> Step:
    shift = given(step.mean_ if step.with_mean else 0.0)
    scale = given(step.scale_ if step.with_std else 1.0)
    return lambda rows: (rows - shift) / scale


def _normalizer(step: Normalizer, given: Callable[[Any], Tensor]) -> Step:
    order = {"l1": 1.0, "l2": 2.0, "max": float("inf")}[step.norm]

    # scikit-learn treats shorter rows as zeros.
    return lambda rows: _of_length_1(rows, order, 10 * torch.finfo(rows.dtype).eps)


def _of_length_1(rows: Tensor, order: float, least: float = 0.0) -> Tensor:
    lengths = torch.linalg.vector_norm(rows, order, dim=1, keepdim=True)
    return rows / torch.where(lengths > least, lengths, torch.ones_like(lengths))


def _pca(step: PCA, given: Callable[[Any], Tensor]) -> Step:
    mean, axes = given(step.mean_), step.components_
    if step.whiten:
        spreads = np.sqrt(step.explained_variance_)
        axes = axes / np.maximum(spreads, np.finfo(spreads.dtype).eps)[:, np.newaxis]
    components = given(axes)
    return lambda rows: (rows - mean) @ components.T


def _svd(step: TruncatedSVD, given: Callable[[Any], Tensor]) -> Step:
    components = given(step.components_)
    return lambda rows: rows @ components.T


_STEPS: dict[type, Callable[[Any, Callable[[Any], Tensor]], Step]] = {
    StandardScaler: _scaler,
    Normalizer: _normalizer,
    PCA: _pca,
    TruncatedSVD: _svd,
}


def pick(values: Tensor, labels: Tensor) -> Tensor:
    """Take an entry of each row."""
    return values.gather(1, labels.unsqueeze(1)).squeeze(1)


def _gap(compared: Tensor) -> Tensor:
    """Second column minus the first; without a second one, larger than any gap."""
    if compared.shape[1] == 1:
        return torch.full_like(compared[:, 0], NO_THRESHOLD)
    return compared[:, 1] - compared[:, 0]


def first_by_score(by_class: Tensor) -> tuple[Tensor, Tensor]:
    """First classes by their scores, and the gap between the first and the second."""
    best, first = by_class.topk(min(N_FIRST, by_class.shape[1]), dim=1)
    return first, _gap(-best)


def _best(by_class: Tensor) -> Scores:
    labels = by_class.argmax(1)
    return labels, pick(by_class, labels), by_class


def _ellipsoids(classifier: EllipsoidOpenSetClassifier, dtype: torch.dtype) -> Head:
    # New tensors, because those cached for scoring are inference tensors, which cannot be traced.
    ready = classifier._boundaries.prepared(torch.device("cpu"), dtype)

    def score(rows: Tensor) -> Scores:
        features = ready.standardize(rows)
        margins, nearest, compared = ready.scorer.all(features)
        labels = pick(nearest, compared.argmin(1))
        scores = pick(margins, labels)
        found = labels, scores if ready.memory is None else scores - ready.lost(features), margins
        if nearest.shape[1] == 1:  # the others follow the assigned class, ordered by margin
            is_assigned = torch.arange(margins.shape[1], device=margins.device) == nearest
            inner = margins.masked_fill(is_assigned, float("inf"))
            first = inner.topk(min(N_FIRST, margins.shape[1]), dim=1).indices
            return *found, first, _gap((1 - margins.gather(1, first)).square())
        least, order = compared.topk(compared.shape[1], dim=1, largest=False)
        return *found, nearest.gather(1, order), _gap(least)

    return Head(score, ready.scorer.bytes_per_sample(of_all=True))


def _in_double(
    formula: Callable[[Any, Callable[[Any], Tensor]], tuple[Score, int]],
) -> Callable[[Any, torch.dtype], Head]:
    """Make the head of a method that scores in double precision; the formula also names its numbers per row."""

    def head(classifier: Any, dtype: torch.dtype) -> Head:
        found, numbers = formula(classifier, lambda values: torch.as_tensor(np.asarray(values), dtype=torch.float64))
        # A tensor, because Python numbers become single precision in a graph.
        threshold = torch.tensor(getattr(classifier, "threshold_", 0.0), dtype=torch.float64)

        def score(rows: Tensor) -> Scores:
            labels, knownness, by_class, *_ = found(rows.double())
            return labels, knownness - threshold, by_class

        return Head(score, 8 * max(1, numbers))  # of one class PLDA has no axes

    return head


def _distances(rows: Tensor, centres: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(rows.unsqueeze(1) - centres, dim=2)
    return found


def _balls(classifier: Any, given: Callable[[Any], Tensor]) -> tuple[Score, int]:
    centroids, radii = given(classifier.centroids_), given(classifier.radii_)

    def score(rows: Tensor) -> Scores:
        distances = _distances(rows, centroids)
        margins = 1 - distances / radii
        labels = distances.argmin(1)
        return labels, pick(margins, labels), margins

    return score, 2 * centroids.numel()


def _mahalanobis(classifier: MahalanobisClassifier, given: Callable[[Any], Tensor]) -> tuple[Score, int]:
    whitener = given(classifier._whitener)
    centres = given(classifier.centroids_ @ classifier._whitener)
    n_classes, n_features = centres.shape
    if classifier.covariance != "class":

        def score(rows: Tensor) -> Scores:
            by_class = -(rows @ whitener - centres.unsqueeze(1)).square().sum(2).T
            if classifier.covariance == "relative":
                by_class = by_class + ((rows - mean) @ all_whitener).square().sum(1, keepdim=True)
            return _best(by_class)

        if classifier.covariance == "relative":
            mean, all_whitener = given(classifier._mean), given(classifier._all_whitener)
        return score, 2 * centres.numel()
    variances, starts = classifier._axis_variances, classifier._axis_starts
    weights = given(np.column_stack([1 / variances, np.ones(len(variances))]))
    padded = PaddedAxes.of(given(classifier._axes), weights, starts.tolist())
    order = torch.cat(padded.members).argsort()
    residual = max(classifier.pooling, SMALLEST_VARIANCE)
    n_rest = n_features - np.diff(starts)
    logs = np.add.reduceat(np.append(np.log(variances), 0.0), starts[:-1]) * (np.diff(starts) > 0)
    log_det = given(classifier._log_det + logs + n_rest * np.log(residual))
    has_rest = torch.from_numpy(n_rest > 0).unsqueeze(1)

    def log_density(rows: Tensor) -> Scores:
        offsets = rows @ whitener - centres.unsqueeze(1)  # (n_classes, n_rows, n_features)
        sums = [
            torch.bmm(offsets[own], bucket.axes.transpose(1, 2)).square() @ bucket.weights
            for bucket, own in zip(padded.buckets, padded.members, strict=True)
        ]
        own_sums = torch.cat(sums)[order]
        off = (offsets.square().sum(2) - own_sums[..., 1]).clamp_min(0) / residual
        squares = own_sums[..., 0] + torch.where(has_rest, off, torch.zeros_like(off))
        return _best(-0.5 * (squares.T + log_det))

    return log_density, 3 * centres.numel() + 2 * n_classes * int(np.diff(starts).max())


def _plda(classifier: PLDAClassifier, given: Callable[[Any], Tensor]) -> tuple[Score, int]:
    between, counts = classifier.between_variances_, classifier._counts[:, np.newaxis]
    known = counts * between
    variances = 1 + between / (1 + known)  # (n_classes, n_axes)
    centres = given((classifier.centroids_ - classifier._mean) @ classifier._axes * known / (1 + known))
    inverse, log_det = given(1 / variances), given(np.log(variances).sum(axis=1))
    unseen, shift = given(1 / (1 + between)), given(np.log1p(between).sum())
    mean, axes = given(classifier._mean), given(classifier._axes)

    def score(rows: Tensor) -> Scores:
        along = (rows - mean) @ axes
        squares = ((along.unsqueeze(1) - centres).square() * inverse).sum(2)
        of_unseen = (along.square() * unseen).sum(1, keepdim=True) + shift
        return _best(0.5 * (of_unseen - squares - log_det))

    return score, 3 * centres.numel()


def _logits(classifier: Any, given: Callable[[Any], Tensor]) -> tuple[Score, int]:
    mean, coef, intercept = given(classifier._mean), given(classifier.coef_), given(classifier.intercept_)
    from_logits = _FROM_LOGITS[type(classifier)]

    def score(rows: Tensor) -> Scores:
        return from_logits(classifier, (rows - mean) @ coef.T + intercept)

    return score, 8 * len(intercept) + coef.shape[1]


def _max_logit(classifier: MaxLogitClassifier, logits: Tensor) -> Scores:
    return _best(logits - logits.mean(1, keepdim=True))


def _energy(classifier: EnergyClassifier, logits: Tensor) -> Scores:
    labels, _, by_class = _max_logit(classifier, logits)
    return labels, classifier.temperature * torch.logsumexp(by_class / classifier.temperature, dim=1), by_class


def _softmax(classifier: SoftmaxOpenSetClassifier, logits: Tensor) -> Scores:
    labels, by_class = logits.argmax(1), torch.softmax(logits, dim=1)
    return labels, pick(by_class, labels), by_class


_FROM_LOGITS: dict[type, Callable[[Any, Tensor], Scores]] = {
    EnergyClassifier: _energy,
    MaxLogitClassifier: _max_logit,
    SoftmaxOpenSetClassifier: _softmax,
}
_HEADS: dict[type, Callable[[Any, torch.dtype], Head]] = {
    EllipsoidOpenSetClassifier: _ellipsoids,
    BallClassifier: _in_double(_balls),
    MahalanobisClassifier: _in_double(_mahalanobis),
    PLDAClassifier: _in_double(_plda),
    **dict.fromkeys(_FROM_LOGITS, _in_double(_logits)),
}
#: Steps between the text encoder and the classifier, and classifiers, that a graph can hold.
STEPS, CLASSIFIERS = tuple(_STEPS), tuple(_HEADS)
